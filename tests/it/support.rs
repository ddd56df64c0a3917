//! Runs the program as people do, and reads what it leaves.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bson::Document;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_overdrive");

/// Nothing here takes that long, whatever else the machine does.
const PATIENCE: Duration = Duration::from_secs(60);

/// A row by its columns' names.
pub type Row = BTreeMap<String, String>;

/// What a run came to.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// The run's directory, if one was made.
    pub directory: Option<PathBuf>,
}

impl Finished {
    /// The exit code; none after a signal.
    #[track_caller]
    pub fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.status.code(), Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// The directory of a run that has one.
    #[track_caller]
    pub fn directory(&self) -> &Path {
        self.directory.as_deref().unwrap_or_else(|| panic!("no results: {}", self.stderr))
    }
}

/// The program with these arguments, and with nothing that this process's own surroundings would add.
pub fn overdrive<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(args).env_remove("OVERDRIVE_URI").env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A directory of its own to run in, with a profile.
pub struct Place {
    home: TempDir,
}

impl Place {
    /// With this text as `profile.toml`.
    pub fn new(profile: impl AsRef<[u8]>) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("profile.toml"), profile).unwrap();
        Self { home }
    }

    pub fn path(&self) -> &Path {
        self.home.path()
    }

    /// `overdrive run profile.toml` and these arguments, here.
    pub fn run(&self, args: &[&str]) -> Command {
        let mut command = overdrive(["run", "profile.toml"].iter().chain(args));
        command.current_dir(self.path());
        command
    }

    /// The directories of runs, in order of time.
    pub fn runs(&self) -> Vec<PathBuf> {
        runs_in(&self.path().join("results"))
    }
}

/// The directories of runs in a place for results, the newest last: two of one second have names in no order.
pub fn runs_in(results: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(results).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut runs: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    runs.sort_by_key(|run| {
        (fs::metadata(run.join("profile.toml")).and_then(|file| file.modified()).ok(), run.clone())
    });
    runs
}

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Finished {
    Running::start(command).finish()
}

/// A run that goes on, and the lines it writes on standard error.
pub struct Running {
    child: Child,
    results: PathBuf,
    lines: Receiver<String>,
    heard: Vec<String>,
    stdout: Option<JoinHandle<String>>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let results = command.get_current_dir().unwrap_or(Path::new(".")).join("results");
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        if let Some(stderr) = child.stderr.take() {
            thread::spawn(move || {
                BufReader::new(stderr).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
            });
        }
        let stdout = child.stdout.take().map(|mut pipe| {
            thread::spawn(move || {
                let mut text = String::new();
                pipe.read_to_string(&mut text).unwrap();
                text
            })
        });
        Self { child, results, lines, heard: Vec::new(), stdout }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line with this in it.
    #[track_caller]
    pub fn wait_for(&mut self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.heard.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
        panic!("no '{part}' in: {}", self.heard.join("\n"));
    }

    pub fn signal(&self, signal: Signal) {
        send(self.id(), signal);
    }

    /// Waits for its end.
    #[track_caller]
    pub fn finish(mut self) -> Finished {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    self.child.kill().unwrap();
                    self.heard.extend(self.lines.iter());
                    panic!("it does not end: {}", self.heard.join("\n"));
                }
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        self.heard.extend(self.lines.iter());
        let stdout = self.stdout.take().map(|text| text.join().unwrap()).unwrap_or_default();
        let directory = runs_in(&self.results).pop();
        Finished { status, stdout, stderr: self.heard.join("\n"), directory }
    }
}

/// Sends a signal to a process that a test has started.
pub fn send(id: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal).unwrap();
}

/// A table of a run. Whole lines only, none shorter or longer than the header; no number that is none.
#[track_caller]
pub fn table(directory: &Path, name: &str) -> Vec<Row> {
    let text = fs::read_to_string(directory.join(name)).unwrap();
    assert!(text.ends_with('\n'), "{name} ends in the middle of a line");
    for nonsense in ["NaN", "inf"] {
        assert!(!text.split([',', '\n']).any(|field| field == nonsense), "{name}: {text}");
    }
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.unwrap()).collect()
}

/// `run.json`.
#[track_caller]
pub fn run_json(directory: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(directory.join("run.json")).unwrap()).unwrap()
}

/// The row of all operations over the whole measured time.
#[track_caller]
pub fn whole(directory: &Path) -> Row {
    let rows = table(directory, "summary.csv");
    rows.into_iter().find(|row| row["segment"] == "all" && row["op"] == "all").unwrap()
}

/// A count in a row.
#[track_caller]
pub fn count(row: &Row, column: &str) -> u64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} is '{}'", row[column]))
}

/// Every outcome that an operation can have.
pub const OUTCOMES: [&str; 7] = [
    "ops_ok",
    "ops_failed",
    "ops_timed_out",
    "ops_dropped",
    "ops_parked",
    "ops_not_started",
    "ops_in_flight",
];

/// The sum of all outcomes of a row.
#[track_caller]
pub fn outcomes(row: &Row) -> u64 {
    OUTCOMES.iter().map(|column| count(row, column)).sum()
}

/// Whether the sums of a run that has ended add up, by the files alone.
#[track_caller]
pub fn assert_sums(directory: &Path) {
    for row in table(directory, "summary.csv") {
        assert_eq!(count(&row, "offered"), outcomes(&row), "{row:?}");
    }
    let rows = table(directory, "intervals.csv");
    for row in &rows {
        let open = |column| count(row, column);
        assert_eq!(open("open_at_start") + open("offered"), outcomes(row) + open("open_at_end"), "{row:?}");
    }
    assert_eq!(rows.last().map(|row| count(row, "open_at_end")), Some(0), "nothing is open in the end");
    assert_eq!(run_json(directory)["ok"], true);
}

/// For tests that are no tasks.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Asks one member something, on a connection of its own.
pub fn ask(address: impl std::fmt::Display, command: Document) -> Document {
    block_on(async {
        let uri = format!("mongodb://{address}/?directConnection=true&appName=overdrive-test");
        let client = mongodb::Client::with_uri_str(uri).await.unwrap();
        client.database("admin").run_command(command).await.unwrap()
    })
}
