//! The screen in a real pseudo-terminal: its keys, what it shows, and that it always leaves the terminal as it was.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use overdrive::interrupts::Interrupts;
use overdrive::panics;
use overdrive::plan::Driver;
use overdrive::progress::Progress;
use overdrive::report::human::{micros, percent, quotient, rate};
use overdrive::results::TrialFacts;
use overdrive::tui::{Screen, Theme};
use rustix::process::Signal;

use crate::support::{Place, Row, assert_sums, block_on, finish, overdrive, table};
use crate::terminal::{Output, Terminal};
use crate::{alone, shared_lab};

const PROFILE: &str = r#"
[data]
collection = "screen_NAME"
documents = 50
[load]
rate = "200/s"
warmup = "1s"
duration = "DURATION"
[client]
maxPoolSize = 50
[op.read.find_one]
weight = 3
filter = { _id = { "^Key" = "uniform" } }
[op.touch.update_one]
weight = 1
filter = { _id = { "^Key" = "uniform" } }
update = { "$inc" = { n = 1 } }
[[overload]]
name = "shed"
at = "1s"
for = "2s"
members = "all"
fail_command = { commands = ["find", "update"], probability = 0.5 }
"#;

const USUAL: (u16, u16) = (120, 40);

fn place(name: &str, duration: &str) -> Place {
    Place::new(PROFILE.replace("NAME", name).replace("DURATION", duration))
}

/// The command of a run, which puts faults on the servers of all tests, but on its own connections alone.
fn command(place: &Place, args: &[&str]) -> Command {
    let target = ["--uri", &shared_lab().uri, "--allow-faults", "fail_command"];
    place.run(&[&target[..], args].concat())
}

/// A run of this length whose screen is up. Faults are one run's at a time.
fn start(name: &str, duration: &str, output: Output) -> (impl Drop, Place, Terminal) {
    let alone = block_on(alone());
    let place = place(name, duration);
    let terminal = Terminal::start(&mut command(&place, &[]), USUAL, output);
    terminal.wait_for("last 1 s");
    assert!(terminal.look(vt100::Screen::alternate_screen));
    (alone, place, terminal)
}

#[test]
fn a_whole_run_leaves_its_result_on_the_normal_screen() {
    let (_alone, place, mut terminal) = start("whole", "4s", Output::Terminal);
    let text = terminal.wait_for("ON shed");
    for part in [
        "measure: ",
        "goodput",
        "retries per operation",
        "latency (successful)",
        "gave up",
        "touch",
        "primary",
    ] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
    assert_eq!(terminal.end().code(), Some(0), "{}", terminal.text());
    let text = terminal.text();
    assert!(terminal.is_clean() && text.contains("Results: results/"), "{text}");
    assert_sums(&place.runs()[0]);
}

#[test]
fn keys_do_what_the_help_says() {
    let (_alone, place, mut terminal) = start("keys", "60s", Output::Terminal);
    assert_cheap(&terminal);
    terminal.keys("?");
    terminal.wait_for("pick an operation, or all");
    terminal.keys("?");
    terminal.wait_until("no help", |text| !text.contains("pick an operation, or all"));
    terminal.keys("\t");
    terminal.wait_for(">read");
    // Keys that mean nothing here: letters, an arrow, a function key.
    terminal.keys("xyz\x1b[A\x1bOQ");
    terminal.keys("\t\t");
    terminal.wait_for(">all");
    terminal.keys(" ");
    let frozen = terminal.wait_for("FROZEN at");
    sleep(Duration::from_millis(1500));
    let later = terminal.text();
    let figures = |text: &str| text.lines().skip(3).take(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(figures(&later), figures(&frozen), "it stands still");
    terminal.keys("q");
    assert_eq!(terminal.end().code(), Some(130), "{}", terminal.text());
    let text = terminal.text();
    assert!(terminal.is_clean() && text.contains("Results: results/"), "{text}");
    let directory = &place.runs()[0];
    assert_sums(directory);
    assert_figures(&frozen, directory);
}

/// Drawing takes less than 3 % of a processor; ten times that before the compiler has optimized it.
fn assert_cheap(terminal: &Terminal) {
    let (began, before) = (Instant::now(), terminal.cpu("screen"));
    sleep(Duration::from_secs(2));
    let share = (terminal.cpu("screen") - before).as_secs_f64() / began.elapsed().as_secs_f64();
    let limit = if cfg!(debug_assertions) { 0.3 } else { 0.03 };
    assert!(share < limit, "{share} of a processor");
}

/// The figures of the last interval on a frozen screen are those of the file.
fn assert_figures(frozen: &str, directory: &Path) {
    let second = frozen.split("FROZEN at ").nth(1).unwrap().split(' ').next().unwrap();
    let rows = table(directory, "intervals.csv");
    let at = format!("{second}.0");
    let row = rows.iter().find(|row| row["op"] == "all" && row["elapsed_s"] == at).unwrap();
    let real = |row: &Row, column: &str| row[column].parse::<f64>().ok();
    let count = |column: &str| row[column].parse::<u64>().ok();
    let (commands, ended) = (count("retries"), count("ops_ok").zip(count("ops_failed")));
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    let retries = commands.zip(ended).map(|(r, (ok, failed))| r as f64 / (ok + failed) as f64);
    let expected = [
        rate(real(row, "offered_ops_per_s")),
        rate(real(row, "goodput_ops_per_s")),
        percent(real(row, "error_rate")),
        quotient(retries),
        quotient(real(row, "amplification")),
        micros(count("latency_p50_us")),
        micros(count("latency_p99_us")),
        micros(count("service_p50_us")),
        micros(count("service_p99_us")),
        row["in_flight"].clone(),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
        micros(real(row, "behind_ms").map(|ms| (ms * 1e3) as u64)),
    ];
    let line = frozen.lines().find(|line| line.starts_with("last 1 s")).unwrap();
    let shown: Vec<&str> = line.split_whitespace().skip(3).collect();
    assert_eq!(shown, expected, "{line}\n{row:?}");
    let servers = table(directory, "servers.csv");
    for server in servers.iter().filter(|row| row["elapsed_s"] == at) {
        let line = frozen.lines().find(|line| line.contains(&format!("  {} ", server["server"]))).unwrap();
        assert!(line.contains(&rate(real(server, "attempts"))), "{server:?}\n{line}");
        assert!(line.contains(&server["role"]), "{server:?}\n{line}");
    }
}

#[test]
fn every_request_for_an_end_leaves_a_clean_terminal() {
    type Request = fn(&mut Terminal);
    let requests: [(&str, Request, i32); 5] = [
        ("ctrl_c", |terminal| terminal.keys("\x03"), 130),
        ("sigterm", |terminal| terminal.signal(Signal::TERM), 130),
        ("sighup", |terminal| terminal.signal(Signal::HUP), 130),
        ("leave", |terminal| terminal.keys("Q"), 1),
        ("ctrl_c_twice", |terminal| terminal.keys("\x03\x03"), 1),
    ];
    for (name, request, code) in requests {
        let (_alone, _place, mut terminal) = start(name, "60s", Output::Terminal);
        request(&mut terminal);
        let status = terminal.end();
        let text = terminal.text();
        assert_eq!(status.code(), Some(code), "{name}: {text}");
        assert!(terminal.is_clean(), "{name}: {text}");
        assert!(
            text.contains(if code == 1 { "left at once, as asked" } else { "stopping:" }),
            "{name}: {text}"
        );
    }
}

#[test]
fn a_closed_window_ends_the_run_and_keeps_its_results() {
    let (_alone, place, mut terminal) = start("window", "60s", Output::Null);
    terminal.hang_up();
    assert_eq!(terminal.end().code(), Some(130));
    assert_sums(&place.runs()[0]);
}

#[test]
fn suspended_and_resumed() {
    let (_alone, place, mut terminal) = start("suspend", "60s", Output::Terminal);
    for _ in 0..2 {
        terminal.keys("\x1a");
        wait_until("it stops", || terminal.state() == 'T');
        wait_until("it is given back", || terminal.is_clean());
        terminal.signal(Signal::CONT);
        wait_until("it goes on", || terminal.look(vt100::Screen::alternate_screen));
        terminal.wait_for("retries per operation");
    }
    // Someone may stop it without asking, and change the terminal meanwhile.
    terminal.signal(Signal::STOP);
    wait_until("it stops", || terminal.state() == 'T');
    terminal.scribble();
    terminal.signal(Signal::CONT);
    terminal.wait_for("retries per operation");
    terminal.keys("q");
    assert_eq!(terminal.end().code(), Some(130), "{}", terminal.text());
    assert!(terminal.is_clean(), "{}", terminal.text());
    assert_sums(&place.runs()[0]);
}

#[test]
fn another_size() {
    let (_alone, _place, mut terminal) = start("resize", "60s", Output::Terminal);
    terminal.resize(60, 16);
    terminal.wait_for("no room: rates");
    terminal.resize(200, 60);
    terminal
        .wait_until("everything", |text| text.contains("load generator") && text.contains("errors so far"));
    terminal.resize(30, 5);
    terminal.wait_until("something", |text| text.starts_with("overdrive profile") && !text.contains("rates"));
    terminal.keys("q");
    assert_eq!(terminal.end().code(), Some(130));
    assert!(terminal.is_clean());
}

#[test]
fn a_stopped_terminal_stalls_neither_load_nor_results() {
    let (_alone, place, mut terminal) = start("stopped", "5s", Output::Null);
    terminal.stop(true);
    // A picture each tick until there is no room for more.
    let began = Instant::now();
    while fs::read_dir(place.path().join("results")).is_ok() && began.elapsed() < Duration::from_secs(2) {
        terminal.keys("\t?");
        sleep(Duration::from_millis(100));
    }
    assert_eq!(terminal.end().code(), Some(0));
    let directory = &place.runs()[0];
    assert_sums(directory);
    let rows = table(directory, "intervals.csv");
    let times: Vec<&str> =
        rows.iter().filter(|row| row["op"] == "all").map(|row| &*row["elapsed_s"]).take(6).collect();
    assert_eq!(times, ["1.0", "2.0", "3.0", "4.0", "5.0", "6.0"], "every interval was written");
    terminal.stop(false);
    wait_until("it is given back", || terminal.is_clean());
}

#[test]
fn a_stopped_terminal_can_still_be_told_to_end() {
    let (_alone, place, mut terminal) = start("told", "60s", Output::Null);
    terminal.stop(true);
    sleep(Duration::from_millis(500));
    terminal.keys("\x03");
    assert_eq!(terminal.end().code(), Some(130));
    assert_sums(&place.runs()[0]);
}

#[test]
fn only_ascii_and_no_colours_where_that_is_wanted() {
    let (_alone, place) = (block_on(alone()), place("ascii", "60s"));
    let mut terminal = Terminal::start(&mut command(&place, &["--ascii"]), USUAL, Output::Terminal);
    let text = terminal.wait_for("retries per operation");
    assert!(text.is_ascii(), "{text}");
    let plain = terminal.look(|screen| {
        let cells = (0..40).flat_map(|row| (0..120).map(move |column| (row, column)));
        let mut cells = cells.filter_map(|(row, column)| screen.cell(row, column));
        cells.all(|cell| cell.fgcolor() == vt100::Color::Default && cell.bgcolor() == vt100::Color::Default)
    });
    assert!(plain, "NO_COLOR is set");
    let bold = terminal.look(|screen| screen.cell(0, 10).is_some_and(vt100::Cell::bold));
    assert!(bold, "what is no colour stays");
    terminal.keys("q");
    assert_eq!(terminal.end().code(), Some(130));
}

#[test]
fn lines_on_a_terminal_where_they_are_wanted() {
    let (_alone, place) = (block_on(alone()), place("lines", "1s"));
    let mut terminal = Terminal::start(&mut command(&place, &["--ui", "lines"]), (200, 60), Output::Terminal);
    terminal.wait_for("offered");
    assert!(!terminal.look(vt100::Screen::alternate_screen));
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn no_screen_without_a_terminal() {
    let finished = finish(&mut place("none", "1s").run(&["--ui", "tui"]));
    finished.assert_code(2);
    assert!(finished.stderr.contains("--ui tui needs a terminal"), "{}", finished.stderr);
}

#[test]
fn a_panic_gives_the_terminal_back_and_is_told() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "screen::panics_in_a_terminal", "--nocapture"]);
    let mut terminal = Terminal::start(&mut command, USUAL, Output::Null);
    assert_eq!(terminal.end().code(), Some(101), "{}", terminal.text());
    let text = terminal.text();
    assert!(terminal.is_clean(), "{text}");
    assert!(text.contains("said before it") && text.contains("a mistake of ours"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs in a terminal that the test above makes"]
async fn panics_in_a_terminal() {
    panics::install();
    let plan = crate::running::plan(&PROFILE.replace("DURATION", "9s"), "screen");
    let facts = TrialFacts {
        trial: 1,
        variant: "base".to_owned(),
        repeat: 1,
        plan,
        driver: Driver { name: "rust".to_owned(), version: "3".to_owned() },
        server_versions: Vec::new(),
        mechanism: String::new(),
        params: Vec::new(),
        knobs: Vec::new(),
        options: serde_json::Value::Null,
        go: Timestamp::now(),
        cores: 2,
    };
    let mut screen = Screen::new(Theme::new(false, false), Interrupts::listen().unwrap(), None).unwrap();
    screen.started(&facts, Path::new("results"));
    screen.note("said before it");
    sleep(Duration::from_millis(500));
    panic!("a mistake of ours");
}

#[test]
#[ignore = "rewrites the README's picture from a run of the first profile that people meet"]
fn picture_for_the_readme() {
    let home = tempfile::tempdir().unwrap();
    let mut command = overdrive(["run", "--seed", "1"]);
    let mut terminal = Terminal::start(command.current_dir(home.path()), (104, 33), Output::Terminal);
    terminal.wait_for("ON overload");
    sleep(Duration::from_millis(6500));
    let picture = terminal.text();
    terminal.keys("q");
    terminal.end();
    let readme = fs::read_to_string("README.md").unwrap();
    let (before, rest) = readme.split_once("```text\n").unwrap();
    let (_, after) = rest.split_once("```\n<!-- end of picture").unwrap();
    let lines: Vec<&str> = picture.lines().map(str::trim_end).collect();
    let picture = lines.join("\n");
    fs::write("README.md", format!("{before}```text\n{picture}\n```\n<!-- end of picture{after}")).unwrap();
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "not yet: {what}");
        sleep(Duration::from_millis(20));
    }
}
