//! `overdrive compare` on runs whose numbers are known: copies of the sample with others in them.

use std::fs;
use std::path::{Path, PathBuf};

use overdrive::metric::Metric;
use tempfile::TempDir;

use crate::support::{Finished, finish, overdrive};

/// The run that others are made of.
fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("results/sample")
}

/// A place with runs in it.
struct Runs {
    home: TempDir,
}

impl Runs {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    /// Puts a copy of the sample there, in which every figure of the tables that `changed` has an opinion of is another.
    fn add(&self, name: &str, changed: impl Fn(&str, &str) -> Option<String>) {
        let directory = self.home.path().join(name);
        fs::create_dir(&directory).unwrap();
        fs::copy(sample().join("run.json"), directory.join("run.json")).unwrap();
        for table in ["summary.csv", "intervals.csv"] {
            let mut reader = csv::Reader::from_path(sample().join(table)).unwrap();
            let columns = reader.headers().unwrap().clone();
            let mut writer = csv::Writer::from_path(directory.join(table)).unwrap();
            writer.write_record(&columns).unwrap();
            for row in reader.records() {
                let row = row.unwrap();
                let fields = columns.iter().zip(&row);
                let fields = fields.map(|(column, field)| match column {
                    "run_id" => name.to_owned(),
                    _ => changed(column, field).unwrap_or_else(|| field.to_owned()),
                });
                writer.write_record(fields).unwrap();
            }
            writer.flush().unwrap();
        }
    }

    /// Several of them: in the i-th goodput and latency are scaled, and a little noise is on top.
    fn add_trials(&self, prefix: &str, n: u32, goodput: f64, latency: f64) {
        for i in 0..n {
            let noise = 1.0 + f64::from(i) / 500.0;
            self.add(&format!("{prefix}{i}"), |column, field| {
                let value: f64 = field.parse().ok()?;
                match column {
                    "goodput_ops_per_s" => Some((value * goodput * noise).to_string()),
                    c if c.starts_with("latency_") => Some(format!("{:.0}", value * latency * noise)),
                    _ => None,
                }
            });
        }
    }

    /// Changes the text of a run's file.
    fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.home.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from} is not in {file}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    /// `overdrive compare` and these arguments, here.
    fn compare(&self, args: &[&str]) -> Finished {
        let mut command = overdrive(["compare"].iter().chain(args));
        command.current_dir(self.home.path());
        finish(&mut command)
    }
}

fn unchanged(_: &str, _: &str) -> Option<String> {
    None
}

/// The line of a metric in a table.
#[track_caller]
fn line<'a>(finished: &'a Finished, metric: &str) -> &'a str {
    let start = format!("| {metric} ");
    finished
        .stdout
        .lines()
        .find(|line| line.starts_with(&start))
        .unwrap_or_else(|| panic!("{}", finished.stdout))
}

#[test]
fn a_clear_regression_is_worse_and_ends_with_3() {
    let runs = Runs::new();
    runs.add_trials("a", 6, 1.0, 1.0);
    runs.add_trials("b", 6, 0.8, 1.3);
    let finished = runs.compare(&["a*", "b*", "--fail-on-regression"]);
    finished.assert_code(3);
    for metric in ["goodput", "latency p50", "latency p99"] {
        assert!(line(&finished, metric).contains("| worse "), "{}", finished.stdout);
    }
    assert!(line(&finished, "goodput").contains("0.800"), "{}", finished.stdout);
    assert!(line(&finished, "error rate").contains("no difference seen"), "{}", finished.stdout);
    assert!(finished.stdout.contains("base: a* (6 trials, driver rust 3.9.1, server 6.0.5)"));
    // Without being asked for an exit code it is a comparison as any.
    runs.compare(&["a*", "b*"]).assert_code(0);
    // The other way round it is none.
    let better = runs.compare(&["b*", "a*", "--fail-on-regression"]);
    better.assert_code(0);
    assert!(line(&better, "goodput").contains("better"), "{}", better.stdout);
    // Lists are sides as well, and each new side stands by itself.
    let several =
        runs.compare(&["a0,a1,a2,a3,a4", "a1,a2,a3,a4,a5", "b0,b1,b2,b3,b4", "--metrics", "goodput"]);
    let verdicts: Vec<bool> =
        several.stdout.lines().filter(|l| l.starts_with("| goodput")).map(|l| l.contains("worse")).collect();
    assert_eq!(verdicts, [false, true], "{}", several.stdout);
}

#[test]
fn equals_are_not_told_apart() {
    let runs = Runs::new();
    runs.add_trials("a", 6, 1.0, 1.0);
    runs.add_trials("b", 6, 1.001, 1.0);
    let finished = runs.compare(&["a*", "b*", "--fail-on-regression"]);
    finished.assert_code(0);
    assert!(!finished.stdout.contains("worse") && !finished.stdout.contains("better"), "{}", finished.stdout);
    assert!(finished.stderr.is_empty(), "{}", finished.stderr);
}

#[test]
fn one_trial_a_side_describes_and_decides_nothing() {
    let runs = Runs::new();
    runs.add_trials("a", 1, 1.0, 1.0);
    runs.add_trials("b", 1, 0.2, 5.0);
    let finished = runs.compare(&["a0", "b0", "--fail-on-regression"]);
    finished.assert_code(0);
    let goodput = line(&finished, "goodput");
    assert!(goodput.contains("(weaker)") && goodput.contains("not enough data"), "{goodput}");
    assert!(!finished.stdout.contains("worse"), "{}", finished.stdout);
    assert!(finished.stdout.contains("4 trials a side"), "{}", finished.stdout);
    assert!(finished.stderr.contains("none could have been"), "{}", finished.stderr);
    // The shell makes a side of each directory that an unquoted pattern finds.
    let spread = runs.compare(&["a0", "b0", "b0"]);
    assert!(spread.stderr.contains("in quotes"), "{}", spread.stderr);
    // Without the seconds there is no interval, and still a description.
    fs::remove_file(runs.home.path().join("b0/intervals.csv")).unwrap();
    let described = runs.compare(&["a0", "b0"]);
    described.assert_code(0);
    assert!(line(&described, "goodput").contains("| 0.200 |            - |"), "{}", described.stdout);
    let three = Runs::new();
    three.add_trials("a", 3, 1.0, 1.0);
    three.add_trials("b", 3, 0.2, 5.0);
    let finished = three.compare(&["a*", "b*"]);
    assert!(line(&finished, "goodput").contains("| not enough data "), "{}", finished.stdout);
    assert!(finished.stdout.contains("3 against 3 trials"), "{}", finished.stdout);
}

#[test]
fn what_did_not_do_the_same_is_refused() {
    let runs = Runs::new();
    runs.add("a", unchanged);
    runs.add("b", unchanged);
    runs.edit("b/run.json", "\"from\": \"400/s\"", "\"from\": \"500/s\"");
    let finished = runs.compare(&["a", "b"]);
    finished.assert_code(2);
    assert!(finished.stdout.is_empty(), "{}", finished.stdout);
    assert!(finished.stderr.contains("from is 400/s and 500/s"), "{}", finished.stderr);
    assert!(finished.stderr.contains("--across load"), "{}", finished.stderr);
    let finished = runs.compare(&["a", "b", "--across", "load"]);
    finished.assert_code(0);
    assert!(finished.stdout.contains("compared across"), "{}", finished.stdout);
}

#[test]
fn programs_get_csv_and_json() {
    let runs = Runs::new();
    runs.add_trials("a", 6, 1.0, 1.0);
    runs.add_trials("b", 6, 0.8, 1.3);
    let finished = runs.compare(&["a*", "b*", "--format", "csv"]);
    finished.assert_code(0);
    let mut reader = csv::Reader::from_reader(finished.stdout.as_bytes());
    let columns = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), Metric::COMPARED.len());
    let field =
        |row: usize, name: &str| rows[row][columns.iter().position(|c| c == name).unwrap()].to_owned();
    assert_eq!(field(0, "metric"), "goodput_ops_per_s");
    assert_eq!(field(0, "verdict"), "worse");
    assert!((field(0, "ratio").parse::<f64>().unwrap() - 0.8).abs() < 1e-9);
    let (low, high): (f64, f64) =
        (field(0, "ratio_low").parse().unwrap(), field(0, "ratio_high").parse().unwrap());
    assert!(low < 0.8 && 0.8 < high && high < 0.85, "{low} … {high}");
    assert_eq!(field(7, "metric"), "latency_p99_9_us");
    assert_eq!((field(7, "ratio"), field(7, "verdict")), (String::new(), "not enough data".to_owned()));

    let finished = runs.compare(&["a*", "b*", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(document["regression"], true);
    assert_eq!(document["base"]["trials"].as_array().unwrap().len(), 6);
    assert_eq!(document["comparisons"][0]["metrics"][0]["verdict"], "worse");
    assert_eq!(document["comparisons"][0]["metrics"][0]["trials"]["new"], 6);

    let finished = runs.compare(&["a*", "b*", "--format", "markdown"]);
    assert!(finished.stdout.starts_with("### b\\* against a\\*\n"), "{}", finished.stdout);
}

#[test]
fn a_run_is_compared_across_what_varies_in_it() {
    let runs = Runs::new();
    runs.add("a", unchanged);
    // A second trial, as a run with variants has it.
    for table in ["summary.csv", "intervals.csv"] {
        let path = runs.home.path().join("a").join(table);
        let text = fs::read_to_string(&path).unwrap();
        let (header, rows) = text.split_once('\n').unwrap();
        let second = rows.replace("a,1,base,", "a,2,maxPoolSize=5,").replace(",100\n", ",5\n");
        fs::write(&path, format!("{header}\n{rows}{second}")).unwrap();
    }
    let path = runs.home.path().join("a/run.json");
    let mut run: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let mut second = run["trials"][0].clone();
    second["trial"] = 2.into();
    run["trials"].as_array_mut().unwrap().push(second);
    fs::write(&path, run.to_string()).unwrap();

    let finished = runs.compare(&["a"]);
    finished.assert_code(0);
    assert!(finished.stdout.contains("base: maxPoolSize=100 (1 trial"), "{}", finished.stdout);
    assert!(finished.stdout.contains("options differ: maxPoolSize is 100 and 5"), "{}", finished.stdout);
    let finished = runs.compare(&["a:maxPoolSize=5", "a:variant=base"]);
    finished.assert_code(0);
    assert!(finished.stdout.contains("maxPoolSize is 5 and 100"), "{}", finished.stdout);
    let finished = runs.compare(&["a", "a:maxPoolSize=5"]);
    finished.assert_code(2);
    assert!(finished.stderr.contains("mixture"), "{}", finished.stderr);
}

#[test]
fn the_closed_model_has_no_verdict_across_retries() {
    let runs = Runs::new();
    for (side, retries) in [("a", "0"), ("b", "5")] {
        runs.add_trials(side, 6, if side == "a" { 1.0 } else { 0.8 }, if side == "a" { 1.0 } else { 2.0 });
        for i in 0..6 {
            let run = format!("{side}{i}");
            runs.edit(&format!("{run}/summary.csv"), ",failpoint,open,", ",failpoint,closed,");
            let default = "\"name\": \"maxAdaptiveRetries\",\n          \"value\": \"2\"";
            runs.edit(
                &format!("{run}/run.json"),
                default,
                &default.replace("\"2\"", &format!("\"{retries}\"")),
            );
        }
    }
    let finished = runs.compare(&["a*", "b*"]);
    finished.assert_code(0);
    assert!(line(&finished, "latency p50").contains("no verdict"), "{}", finished.stdout);
    assert!(line(&finished, "error rate").contains("no verdict"), "{}", finished.stdout);
    assert!(line(&finished, "goodput").contains("worse"), "{}", finished.stdout);
    for note in
        ["closed: latency omits waiting", "more retries always look better", "maxAdaptiveRetries is 0 and 5"]
    {
        assert!(finished.stdout.contains(note), "{note}: {}", finished.stdout);
    }
}

#[test]
fn broken_and_missing_runs_are_named() {
    let runs = Runs::new();
    runs.add("a", unchanged);
    for (name, file, text, code, wanted) in [
        ("killed", "run.json", None, 2, "was killed before its end"),
        ("half", "run.json", Some("{\"schema_version\": 1"), 1, "half/run.json"),
        ("newer", "run.json", Some("{\"schema_version\": 99}"), 1, "newer overdrive"),
        ("other", "run.json", Some("{}"), 1, "no schema_version"),
        ("untold", "run.json", Some("{\"schema_version\": 1, \"trials\": []}"), 1, "nothing of trial 1"),
        ("empty", "summary.csv", Some("schema_version,trial,segment,op\n"), 1, "measured nothing"),
        ("foreign", "summary.csv", Some("x,y\n1,2\n"), 1, "no column trial"),
        ("tableless", "summary.csv", None, 1, "tableless/summary.csv"),
    ] {
        runs.add(name, unchanged);
        let path = runs.home.path().join(name).join(file);
        match text {
            Some(text) => fs::write(path, text).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
        let finished = runs.compare(&["a", name]);
        finished.assert_code(code);
        assert!(finished.stderr.contains(wanted), "{name}: {}", finished.stderr);
    }
    runs.add("odd", |column, _| (column == "goodput_ops_per_s").then(|| "NaN".to_owned()));
    let odd = runs.compare(&["a", "odd"]);
    odd.assert_code(1);
    assert!(odd.stderr.contains("line 2: goodput_ops_per_s is 'NaN'"), "{}", odd.stderr);
    for (args, wanted) in [
        (&["a", "nowhere"][..], "no directory 'nowhere'"),
        (&["a", "z*"], "no directory is called 'z*'"),
        (&["a", "a/run.json"], "is a file"),
        (&["a", "."], "'./*'"),
        (&["a"], "give a second side"),
        (&["a", "a", "--segment", "afterwards"], "before, rejection, after"),
        (&["a", "a", "--op", "write"], "all, bump, ping, read"),
        (&["a", "a", "--metrics", "speed"], "possible values"),
        (&["a", "mongodb://u:s3cret@h"], "connection string"),
    ] {
        let finished = runs.compare(args);
        finished.assert_code(2);
        assert!(finished.stderr.contains(wanted), "{args:?}: {}", finished.stderr);
        assert!(!finished.stderr.contains("s3cret"), "{}", finished.stderr);
    }
    // A run that was cut short is left out, and one of an older version has fewer columns.
    runs.add("cut", unchanged);
    runs.edit("cut/run.json", "\"cut\": false", "\"cut\": true");
    let cut = runs.compare(&["a", "cut"]);
    cut.assert_code(2);
    assert!(cut.stderr.contains("cut short"), "{}", cut.stderr);
    runs.add("old", unchanged);
    runs.edit("old/summary.csv", "service_p50_us", "not_yet");
    let old = runs.compare(&["a", "old"]);
    old.assert_code(0);
    assert!(
        old.stdout.contains("service p50, service p99.9") || old.stdout.contains("no value"),
        "{}",
        old.stdout
    );
}
