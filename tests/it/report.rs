//! `overdrive report` and `overdrive export` on the sample run, and on copies of it with other numbers and hostile names in
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::{Finished, Place, finish, overdrive};

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

    /// Puts a copy of the sample there, each of its files as `changed` makes it.
    fn add(&self, name: &str, changed: impl Fn(&str, String) -> String) {
        let directory = self.path(name);
        fs::create_dir(&directory).unwrap();
        for entry in fs::read_dir(sample()).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let text = fs::read_to_string(sample().join(&file)).unwrap();
            let text = text.replace("20261129T214802Z-quickstart-c372", name);
            fs::write(directory.join(&file), changed(&file, text)).unwrap();
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// `overdrive report` and these arguments, here.
    fn report(&self, args: &[&str]) -> Finished {
        self.run("report", args)
    }

    fn run(&self, command: &str, args: &[&str]) -> Finished {
        let mut command = overdrive([command].iter().chain(args));
        command.current_dir(self.home.path());
        finish(&mut command)
    }
}

fn unchanged(_: &str, text: String) -> String {
    text
}

/// Whether every element that is opened is closed, in its order, and nothing of another place is asked for.
#[track_caller]
fn assert_self_contained(page: &str) {
    for foreign in ["<script", "<link", "<img", "<iframe", "<object", "url(", "@import", " href=", " src="] {
        assert!(!page.contains(foreign), "{foreign} in the page");
    }
    let without = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!without.contains("http:") && !without.contains("https:"), "the page names another place");
    let mut open: Vec<String> = Vec::new();
    for tag in page.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        let name: String = tag.chars().take_while(|c| !c.is_whitespace()).collect();
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closed in another order");
        } else if !tag.ends_with('/') && !tag.starts_with(['!', '?']) && name != "meta" {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0], "left open");
}

#[test]
fn a_run_becomes_a_page_of_its_own() {
    let runs = Runs::new();
    runs.add("a", unchanged);
    let finished = runs.report(&["a"]);
    finished.assert_code(0);
    assert_eq!(finished.stdout, "Report: a/report.html\n");
    let page = runs.read("a/report.html");
    assert_self_contained(&page);
    for part in [
        "overdrive: quickstart",
        "<h2>Headline</h2>",
        "<h2>Over time</h2>",
        "<h2>Retries per operation</h2>",
        "<h2>Latency by percentile</h2>",
        "<h2>Settings and versions</h2>",
        "rust 3.9.1",
        "380/s",
        "class=\"overload\"",
        ">rejection<",
        ">p99<",
        "8323 (83.6%)",
        "maxAdaptiveRetries=2",
        "prefers-color-scheme:dark",
        "@media print",
        "these rejections do not depend on load",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<h2>Verdicts</h2>"), "there is nothing to compare");
    assert!(!page.contains("NaN") && !page.contains(">inf"), "no number that is none");
    // The same again is the same page, and takes the place of the first.
    runs.report(&["a"]).assert_code(0);
    assert_eq!(runs.read("a/report.html"), page);
    let printed = runs.report(&["a", "-o", "-"]);
    assert_eq!(printed.assert_code(0).stdout, page);
}

#[test]
fn several_runs_are_held_against_the_first() {
    let runs = Runs::new();
    for i in 0..6 {
        runs.add(&format!("a{i}"), unchanged);
        runs.add(&format!("b{i}"), |file, text| match file {
            "summary.csv" => text.replace(",380.28,", &format!(",30{i}.28,")),
            _ => text,
        });
    }
    let finished = runs.report(&["a*", "b*", "--svg", "plots", "-o", "page.html"]);
    finished.assert_code(0);
    assert_eq!(finished.stdout, "Report: page.html\nPlots: plots\n");
    let page = runs.read("page.html");
    assert_self_contained(&page);
    assert!(page.contains("<h2>Verdicts</h2>") && page.contains("<h3>b* against a*</h3>"));
    assert!(page.contains("✗ worse"), "in shapes and words");
    assert!(page.contains("up to 6 intervals") && page.contains("of 6 trials"), "what a point stands for");
    let mut files: Vec<String> = fs::read_dir(runs.path("plots"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort_unstable();
    for wanted in ["latency-1-All-operations", "over-time-1-a", "over-time-2-b", "ratios-1-b", "retries-1-a"]
    {
        assert!(files.iter().any(|file| file.starts_with(wanted)), "{wanted}: {files:?}");
    }
    for file in &files {
        let plot = runs.read(&format!("plots/{file}"));
        assert!(plot.starts_with("<?xml") && plot.contains("<style>"), "{file}");
        assert_self_contained(&plot);
    }
    let markdown = runs.report(&["a*", "b*", "--markdown"]);
    markdown.assert_code(0);
    assert!(markdown.stdout.starts_with("## overdrive: quickstart\n"), "{}", markdown.stdout);
    assert!(markdown.stdout.contains("| goodput ") && markdown.stdout.contains("| worse "));
    assert!(!runs.path("report.html").exists());
}

#[test]
fn variants_of_one_run_are_held_beside_each_other() {
    let profile = "description = \"Two\"\n[data]\ndocuments = 10\n[load]\nrate = \"200/s\"\nwarmup = \"0s\"\nduration = \"1s\"\n\
                   [op.ping.run_command]\ncommand = { ping = 1 }\n";
    let place = Place::new(profile);
    let run =
        finish(&mut place.run(&["--stub=fail=every:4", "--vary", "maxAdaptiveRetries=0,2", "--ui", "none"]));
    run.assert_code(0);
    let mut command = overdrive(["report".as_ref(), run.directory().as_os_str()]);
    let finished = finish(&mut command);
    finished.assert_code(0);
    let page = fs::read_to_string(run.directory().join("report.html")).unwrap();
    assert_self_contained(&page);
    for part in
        ["maxAdaptiveRetries=0", "maxAdaptiveRetries=2 against maxAdaptiveRetries=0", "not enough data"]
    {
        assert!(page.contains(part), "{part}");
    }
    let figures = page.matches("operations and attempts per second over time").count();
    assert_eq!(figures, 2, "small multiples");
    let chosen = format!("{}:maxAdaptiveRetries=2", run.directory().display());
    let finished = finish(&mut overdrive(["report", &chosen, "-o", "-"]));
    finished.assert_code(0);
    assert!(!finished.stdout.contains("<h2>Verdicts</h2>"), "one variant alone");
}

#[test]
fn hostile_names_stay_names() {
    let runs = Runs::new();
    let hostile = "</text></svg><script>alert(1)</script>&'x'";
    runs.add("a", |file, text| match file {
        "run.json" => text
            .replace("\"bump\"", &format!("\"{hostile}\""))
            .replace("\"A first look:", &format!("\"{hostile}:")),
        "latency.hlog" => text,
        _ => text
            .replace(",bump,", &format!(",{hostile},"))
            .replace("rejection", hostile)
            .replace("Failing command", &format!("{hostile} command")),
    });
    runs.add("b", unchanged);
    let finished = runs.report(&["a", "--svg", "plots"]);
    finished.assert_code(0);
    let page = runs.read("a/report.html");
    assert_self_contained(&page);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#39;x&#39;"), "told all the same");
    for entry in fs::read_dir(runs.path("plots")).unwrap() {
        assert_self_contained(&fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let markdown = runs.report(&["a", "--markdown"]);
    markdown.assert_code(0);
    assert!(!markdown.stdout.contains("<script"), "{}", markdown.stdout);
}

#[test]
fn what_did_not_end_well_is_shown_as_such() {
    let runs = Runs::new();
    runs.add("whole", unchanged);
    runs.add("killed", unchanged);
    for file in ["run.json", "summary.csv", "retries.csv", "errors.csv"] {
        fs::remove_file(runs.path("killed").join(file)).unwrap();
    }
    runs.add("cut", |file, text| match file {
        "run.json" => text
            .replace("\"cut\": false", "\"cut\": true")
            .replace("\"complete\": true", "\"complete\": false"),
        _ => text,
    });
    for (run, wanted) in [("killed", "has no run.json"), ("cut", "was cut short")] {
        let finished = runs.report(&["whole", run, "-o", "page.html"]);
        finished.assert_code(0);
        let page = runs.read("page.html");
        assert_self_contained(&page);
        assert!(page.contains("class=\"warnings\"") && page.contains(wanted), "{run}");
        assert!(page.contains("none of its trials ran to its end"), "{run}: no verdict rests on it");
        assert_eq!(page.matches("operations and attempts per second over time").count(), 2, "{run}");
    }
    let markdown = runs.report(&["cut", "--markdown"]);
    assert!(markdown.assert_code(0).stdout.contains("> **Warning:** trial 1 of 'cut' was cut short"));
    assert!(markdown.stdout.contains("is not complete"), "{}", markdown.stdout);

    // A pattern finds what it finds; what somebody names has to be a run.
    runs.add("unborn", unchanged);
    fs::remove_file(runs.path("unborn/run.json")).unwrap();
    fs::remove_file(runs.path("unborn/summary.csv")).unwrap();
    let header = runs.read("unborn/intervals.csv").lines().next().unwrap().to_owned();
    fs::write(runs.path("unborn/intervals.csv"), header + "\n").unwrap();
    fs::create_dir(runs.path("unrelated")).unwrap();
    let finished = runs.report(&["*", "-o", "-"]);
    finished.assert_code(0);
    for left_out in ["left out: &#39;unborn&#39;", "left out: &#39;unrelated&#39;", "3 trials in 3 runs"] {
        assert!(finished.stdout.contains(left_out), "{left_out}");
    }
    let named = runs.report(&["unborn"]);
    assert!(named.assert_code(1).stderr.contains("before it measured anything"), "{}", named.stderr);
}

#[test]
fn runs_that_did_different_things_are_shown_without_verdicts() {
    let runs = Runs::new();
    runs.add("a", unchanged);
    runs.add("b", |file, text| match file {
        "run.json" => text.replace("\"from\": \"400/s\"", "\"from\": \"500/s\""),
        _ => text,
    });
    let finished = runs.report(&["a", "b", "-o", "-"]);
    finished.assert_code(0);
    assert!(finished.stdout.contains("did not do the same"), "the reason");
    assert!(!finished.stdout.contains("ratios to the base"), "no verdict");
    let finished = runs.report(&["a", "b", "-o", "-", "--across", "load"]);
    assert!(finished.assert_code(0).stdout.contains("compared across"));
}

#[test]
fn mistakes_are_told_with_the_way_out() {
    let runs = Runs::new();
    runs.add("a", unchanged);
    for (args, code, wanted) in [
        (&[][..], 2, "<RUN>"),
        (&["nowhere"], 2, "no directory 'nowhere'"),
        (&["a/run.json"], 2, "is a file"),
        (&["."], 2, "'./*'"),
        (&["a:maxPoolSize=7"], 2, "there are 100"),
        (&["mongodb://u:s3cret@h"], 2, "connection string"),
        (&["a", "-o", "a"], 2, "is a directory"),
        (&["a", "-o", "none/page.html"], 1, "none/page.html"),
        (&["a", "--markdown", "-o", "x"], 2, "cannot be used with"),
    ] {
        let finished = runs.report(args);
        finished.assert_code(code);
        assert!(finished.stderr.contains(wanted), "{args:?}: {}", finished.stderr);
        assert!(!finished.stderr.contains("s3cret") && finished.stdout.is_empty(), "{}", finished.stderr);
    }
    assert_eq!(fs::read_dir(runs.home.path()).unwrap().count(), 1, "nothing is left behind");
}

/// A line of benchstat's format.
struct Benchmark {
    name: String,
    count: u64,
    /// By their units.
    values: BTreeMap<String, f64>,
}

fn benchmarks(text: &str) -> Vec<Benchmark> {
    let lines = text.lines().filter(|line| line.starts_with("Benchmark"));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(fields.len() % 2, 0, "{line}");
            let values = fields[2..].chunks(2).map(|pair| (pair[1].to_owned(), pair[0].parse().unwrap()));
            Benchmark {
                name: fields[0].to_owned(),
                count: fields[1].parse().unwrap(),
                values: values.collect(),
            }
        })
        .collect()
}

#[test]
fn benchstat_gets_a_line_for_each_trial_segment_and_operation() {
    let runs = Runs::new();
    runs.add("a", unchanged);
    runs.add("b", unchanged);
    let finished = runs.run("export", &["a,b", "--format", "benchfmt"]);
    finished.assert_code(0);
    let lines = benchmarks(&finished.stdout);
    assert_eq!(lines.len(), 2 * 4 * 4, "two trials, four operations with all, four segments with all");
    let Benchmark { name, count, values } = &lines[0];
    assert_eq!(name, "BenchmarkQuickstart/maxPoolSize=100/op=read/segment=all");
    assert_eq!(*count, 5967, "what ended");
    let value = |unit: &str| values[unit];
    assert!((value("goodput-ops/s") - 229.6).abs() < 1e-9);
    assert!((value("latency-p50-ns") - 3_317_000.0).abs() < 1e-6);
    assert!((value("retries/op") - 1409.0 / 5967.0).abs() < 1e-12);
    assert!(!values.contains_key("latency-p99.9-ns"), "too few for it");
    assert!(finished.stdout.starts_with("Unit goodput-ops/s better=higher\n"), "{}", finished.stdout);
    for line in ["driver: rust 3.9.1", "server: 6.0.5", "profile: quickstart", "# run b"] {
        assert!(finished.stdout.lines().any(|l| l == line), "{line}: {}", finished.stdout);
    }
    let one = runs.run("export", &["a", "--format", "benchfmt", "--op", "all", "--segment", "rejection"]);
    assert_eq!(benchmarks(&one.assert_code(0).stdout).len(), 1);
}

#[test]
fn the_plotter_gets_percentiles_in_milliseconds() {
    let runs = Runs::new();
    runs.add("a", unchanged);
    let finished = runs.run("export", &["a", "--format", "hgrm"]);
    finished.assert_code(0);
    let rows: Vec<Vec<f64>> = finished
        .stdout
        .lines()
        .skip(2)
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(|field| field.parse().unwrap()).collect())
        .collect();
    assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][2] <= pair[1][2]), "ascending");
    let at = |percentile: f64| rows.iter().find(|row| (row[1] - percentile).abs() < 1e-9).unwrap()[0];
    // summary.csv has 5639 us and 658431 us.
    assert!((at(0.5) - 5.639).abs() < 1e-9 && (at(1.0) - 658.431).abs() < 1e-9, "{}", finished.stdout);
    assert!(finished.stdout.contains("Total count    =         9507]"), "{}", finished.stdout);
    let reads = runs.run("export", &["a", "--format", "hgrm", "--op", "read", "--segment", "rejection"]);
    assert!(reads.assert_code(0).stdout.contains("Total count    =         1698]"), "{}", reads.stdout);
    runs.add("b", unchanged);
    let both = runs.run("export", &["a,b", "--format", "hgrm"]);
    assert!(both.assert_code(0).stdout.contains("Total count    =        19014]"), "{}", both.stdout);
    assert!(both.stderr.contains("2 trials together"), "{}", both.stderr);
}

#[test]
fn what_cannot_be_exported_is_told() {
    let runs = Runs::new();
    runs.add("a", unchanged);
    runs.add("cut", |file, text| match file {
        "run.json" => text.replace("\"cut\": false", "\"cut\": true"),
        _ => text,
    });
    for (args, wanted) in [
        (&["a"][..], "--format"),
        (&["nowhere", "--format", "hgrm"], "no directory 'nowhere'"),
        (&["a", "--format", "hgrm", "--op", "write"], "the operations all, bump, ping, read"),
        (&["a", "--format", "benchfmt", "--segment", "later"], "the segments after, all, before, rejection"),
        (&["cut", "--format", "benchfmt"], "no trial to export: trial 1 of 'cut'"),
    ] {
        let finished = runs.run("export", args);
        finished.assert_code(2);
        assert!(finished.stderr.contains(wanted), "{args:?}: {}", finished.stderr);
    }
    let both = runs.run("export", &["a,cut", "--format", "benchfmt"]);
    assert_eq!(benchmarks(&both.assert_code(0).stdout).len(), 16);
    assert!(both.stderr.contains("trial 1 of 'cut' is left out: it was cut short"), "{}", both.stderr);
}

#[test]
fn shells_and_manuals_get_what_they_read() {
    let script = finish(&mut overdrive(["completions", "bash"]));
    assert!(script.assert_code(0).stdout.contains("overdrive,report)"), "{}", script.stdout);
    let page = finish(&mut overdrive(["man", "export"]));
    assert!(page.assert_code(0).stdout.contains(".TH overdrive-export 1"), "{}", page.stdout);
    finish(&mut overdrive(["man", "stub"])).assert_code(2);
    finish(&mut overdrive(["completions", "cmd"])).assert_code(2);
}
