//! Against the sample run, and what becomes of it when something is missing.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("results/sample")
}

/// A copy of the sample with these files only.
fn copy(files: &[&str]) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    for file in files {
        fs::copy(sample().join(file), home.path().join(file)).unwrap();
    }
    home
}

fn read(directory: &Path) -> StoredTrial {
    let found = trials(directory).unwrap();
    let mut run = run(directory, found).unwrap();
    assert_eq!(run.trials.len(), 1);
    run.trials.remove(0)
}

#[test]
fn a_run_is_read_from_its_files() {
    let trial = read(&sample());
    assert_eq!((trial.state, trial.trial.driver.as_str()), (State::Whole, "rust 3.9.1"));
    assert_eq!(trial.row(ALL, ALL).unwrap().ops_ok, Some(9507.0));
    let retries = trial.row(ALL, ALL).unwrap().retries_per_op().unwrap();
    assert!((retries - 2491.0 / 9953.0).abs() < 1e-12, "{retries}");
    let wanted = Band { name: "rejection".to_owned(), on_s: 13.069_369, off_s: 21.036_218 };
    assert_eq!(trial.overloads, [wanted]);
    assert_eq!(trial.intervals.len(), 31);
    assert!(trial.errors.iter().all(|error| error.level == "operation"));
}

#[test]
fn distributions_are_those_of_the_tables() {
    let trial = read(&sample());
    let all = trial.distribution(ALL, ALL).unwrap();
    assert_eq!(all.len(), 9507, "warm-up and cool-down are left out");
    let told = trial.row(ALL, ALL).unwrap();
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let percentile = |quantile| Some(all.value_at_quantile(quantile) as f64);
    assert_eq!(percentile(0.5), told.latency_p50_us);
    assert_eq!(percentile(0.99), told.latency_p99_us);
    let reads = trial.distribution("rejection", "read").unwrap();
    assert_eq!(reads.len(), 990 + 461 + 247, "as retries.csv has them");
    assert_eq!(trial.distribution("rejection", "nobody"), None);
}

#[test]
fn what_was_killed_is_read_as_far_as_it_goes() {
    let home = copy(&["intervals.csv", "events.csv", "latency.hlog"]);
    for (file, cut) in [("intervals.csv", 60), ("events.csv", 20), ("latency.hlog", 30)] {
        let path = home.path().join(file);
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() - cut]).unwrap();
    }
    let trial = read(home.path());
    assert_eq!(trial.state, State::Killed);
    assert_eq!((trial.trial.trial.as_str(), trial.trial.variant.as_str()), ("1", "base"));
    assert!(!trial.trial.whole, "nothing is compared with it");
    assert_eq!(trial.intervals.len(), 30, "the last row was cut");
    assert_eq!(trial.summary, []);
    assert!(trial.distribution(ALL, ALL).is_some());

    // In a run that ended the same is damage.
    fs::copy(sample().join("run.json"), home.path().join("run.json")).unwrap();
    fs::copy(sample().join("summary.csv"), home.path().join("summary.csv")).unwrap();
    let error = run(home.path(), trials(home.path()).unwrap()).unwrap_err().to_string();
    assert!(error.contains("intervals.csv"), "{error}");
}

#[test]
fn what_was_cut_or_does_not_add_up_says_so() {
    for (from, to, wanted) in [
        ("\"cut\": false\n      },", "\"cut\": true\n      },", State::Cut),
        ("\"broken\": [],\n      \"notes\"", "\"broken\": [\"1 is 2\"],\n      \"notes\"", State::Broken),
    ] {
        let home = copy(&["run.json", "summary.csv"]);
        let path = home.path().join("run.json");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replace(from, to)).unwrap();
        let trial = read(home.path());
        assert_eq!(trial.state, wanted);
        assert_eq!((trial.intervals.len(), trial.overloads.len()), (0, 0), "there are no such files");
    }
}

#[test]
fn what_is_no_run_and_no_figure_is_refused() {
    let home = copy(&["run.json", "summary.csv"]);
    let path = home.path().join("summary.csv");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen(",25.0,", ",inf,", 1)).unwrap();
    let error = run(home.path(), Vec::new()).unwrap_err().to_string();
    assert!(error.contains("summary.csv") && error.contains("is no figure"), "{error}");
    let error = trials(copy(&[]).path()).unwrap_err().to_string();
    assert!(error.contains("no run's directory"), "{error}");
    let empty = copy(&[]);
    fs::write(empty.path().join("intervals.csv"), "trial,elapsed_s\n").unwrap();
    let error = trials(empty.path()).unwrap_err().to_string();
    assert!(error.contains("before it measured anything"), "{error}");
}

#[test]
fn an_overload_that_was_never_taken_back_was_on_to_the_end() {
    let event = |elapsed_s, kind: &str, subject: &str| Event {
        trial: "1".to_owned(),
        elapsed_s,
        kind: kind.to_owned(),
        subject: subject.to_owned(),
    };
    let events = [
        event(1.0, "overload_on", "a"),
        event(2.0, "overload_on", "b"),
        event(3.0, "overload_off", "a"),
        event(4.0, "overload_on", "a"),
    ];
    let bands: Vec<_> = bands(events.iter()).into_iter().map(|b| (b.name, b.on_s, b.off_s)).collect();
    let wanted = [("a", 1.0, 3.0), ("b", 2.0, f64::INFINITY), ("a", 4.0, f64::INFINITY)];
    assert_eq!(bands, wanted.map(|(name, on, off)| (name.to_owned(), on, off)));
}
