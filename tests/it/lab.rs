//! The lab: that it is a replica set, and above all that it goes away.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bson::{Document, doc};
use overdrive::lab::keeper::Order;
use overdrive::lab::members::{Members, Refused};
use overdrive::lab::{Lab, LabOptions, Member, mongod};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::{lab_options, shared_lab};

const PROGRAM: &str = env!("CARGO_BIN_EXE_overdrive");

/// Nobody waits here for a keeper that has ended: this is how long it may take.
pub const GONE_LIMIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn three_members_one_of_them_primary() {
    let lab = tokio::task::spawn_blocking(shared_lab).await.unwrap();
    assert!(lab.version.split('.').count() == 3, "{}", lab.version);
    let mut primaries = Vec::new();
    for member in &lab.members {
        let hello = hello(member).await;
        let hosts = hello.get_array("hosts").unwrap().iter().map(|host| host.as_str().unwrap().to_owned());
        assert!(hosts.eq(lab.members.iter().map(|member| member.address.to_string())), "{hello}");
        primaries.push(hello.get_bool("isWritablePrimary").unwrap());
        assert_ne!(hello.get_bool("secondary").unwrap(), *primaries.last().unwrap());
    }
    assert_eq!(primaries, [true, false, false]);
    let client = mongodb::Client::with_uri_str(&lab.uri).await.unwrap();
    client.database("admin").run_command(doc! { "ping": 1 }).await.unwrap();
}

async fn hello(member: &Member) -> Document {
    let uri = format!("mongodb://{}/?directConnection=true", member.address);
    let client = mongodb::Client::with_uri_str(uri).await.unwrap();
    client.database("admin").run_command(doc! { "hello": 1 }).await.unwrap()
}

#[test]
fn ctrl_c_leaves_nothing_and_is_a_normal_end() {
    let mut lab = ByHand::start();
    lab.signal(Signal::INT);
    assert!(lab.child.wait().unwrap().success());
    // Not 'soon': it has waited for the keeper.
    lab.left.assert_gone(Duration::ZERO);
}

#[test]
fn sigkill_leaves_nothing() {
    let mut lab = ByHand::start();
    lab.child.kill().unwrap();
    lab.child.wait().unwrap();
    lab.left.assert_gone(GONE_LIMIT);
}

#[test]
fn ctrl_c_while_starting_leaves_nothing() {
    let mut child =
        Command::new(PROGRAM).arg("lab").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("Starting") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "the lab does not start");
    }
    let keeper = wait_for(|| children_of(child.id()).into_iter().find(|pid| is(*pid, "keeper")));
    let mongod = wait_for(|| children_of(keeper).into_iter().next());
    kill_process(pid(child.id()), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    Leavings { pids: vec![keeper, mongod], directory: PathBuf::new() }.assert_gone(GONE_LIMIT);
}

#[tokio::test]
async fn a_panic_leaves_nothing() {
    let lab = Lab::start(&lab_options(), &|_| {}).await.unwrap();
    let left = Leavings::of(&lab);
    let panicked = tokio::spawn(async move {
        assert!(lab.uri().is_empty(), "a panic with a lab in its hands");
    });
    assert!(panicked.await.unwrap_err().is_panic());
    left.assert_gone(GONE_LIMIT);
}

#[tokio::test]
async fn members_that_were_killed_or_stopped_are_no_trouble() {
    let started = Instant::now();
    let lab = Lab::start(&lab_options(), &|_| {}).await.unwrap();
    eprintln!("a lab was ready after {:.1} s", started.elapsed().as_secs_f64());
    let (mut left, pids) = (Leavings::of(&lab), lab.pids());
    kill_process(pid(pids[1]), Signal::KILL).unwrap();
    kill_process(pid(pids[2]), Signal::STOP).unwrap();
    while lab.deaths().is_empty() {
        assert!(started.elapsed() < Duration::from_secs(60), "nobody tells of the death");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let deaths = lab.deaths();
    assert_eq!(deaths.len(), 1);
    assert_eq!(deaths[0].member, lab.members()[1]);
    assert!(deaths[0].status.contains("SIGKILL"), "{}", deaths[0].status);

    lab.restart(1).await.unwrap();
    let member = lab.members()[1];
    assert!(member.address == deaths[0].member.address && member.pid != pids[1]);
    left.pids.push(member.pid);
    while !hello(&member).await.get_bool("secondary").unwrap() {
        assert!(started.elapsed() < Duration::from_secs(90), "it does not come back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    kill_process(pid(member.pid), Signal::KILL).unwrap();
    lab.stop().await.unwrap();
    left.assert_gone(Duration::ZERO);
}

#[tokio::test]
async fn a_taken_port_is_recognised() {
    let mongod = mongod::find(None, &|_| {}).await.unwrap().path;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let order = Order { mongod, members: 1, replica_set: "test".to_owned() };
    let refused = Members::start_at(&order, vec![taken.local_addr().unwrap()], &|| false).unwrap_err();
    assert!(matches!(refused, Refused::PortTaken), "{refused:?}");
}

#[tokio::test]
async fn a_mongod_that_ends_at_once_is_quoted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mongod");
    let script =
        "#!/bin/sh\n[ $1 = --version ] && echo db version v9.9.9 && exit\necho no such luck\nexit 3\n";
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let options = LabOptions { mongod: Some(path), ..lab_options() };
    let error = format!("{:#}", Lab::start(&options, &|_| {}).await.unwrap_err());
    assert!(error.contains("exit status: 3") && error.contains("no such luck"), "{error}");
}

#[test]
fn a_wrong_mongod_is_named() {
    for (path, reason) in [("/no/such/mongod", "cannot run"), ("/bin/true", "is no mongod")] {
        let output = Command::new(PROGRAM).args(["lab", "--mongod", path]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(path) && stderr.contains(reason) && stderr.contains("--mongod"), "{stderr}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn without_any_mongod_the_ways_out_are_shown() {
    let nothing = tempfile::tempdir().unwrap();
    let output = Command::new(PROGRAM)
        .arg("lab")
        .env_clear()
        .env("PATH", nothing.path())
        .env("HOME", nothing.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for way in ["PATH", "--mongod", "$OVERDRIVE_MONGOD", "--uri"] {
        assert!(stderr.contains(way), "{stderr}");
    }
    let kept = std::fs::read_dir(nothing.path().join(".cache/overdrive")).map_or(0, Iterator::count);
    assert_eq!(kept, 0, "a fetch that failed leaves nothing behind");
}

/// `overdrive lab` as a person runs it.
struct ByHand {
    child: Child,
    left: Leavings,
}

impl ByHand {
    fn start() -> Self {
        let mut child =
            Command::new(PROGRAM).arg("lab").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut uri = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut uri).unwrap();
        if !uri.starts_with("mongodb://127.0.0.1:") {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("no lab: {said}");
        }
        let left = Leavings::of_program(child.id());
        Self { child, left }
    }

    fn signal(&self, signal: Signal) {
        kill_process(pid(self.child.id()), signal).unwrap();
    }
}

/// What must not be left.
pub struct Leavings {
    pids: Vec<u32>,
    directory: PathBuf,
}

impl Leavings {
    fn of(lab: &Lab) -> Self {
        let directory = lab.directory().to_owned();
        assert!(directory.is_dir());
        Self { pids: lab.pids().into_iter().chain([lab.keeper_pid()]).collect(), directory }
    }

    /// Of a program that has a lab of three.
    pub fn of_program(id: u32) -> Self {
        let keeper = children_of(id).into_iter().find(|pid| is(*pid, "keeper")).unwrap();
        let mongods = children_of(keeper);
        assert_eq!(mongods.len(), 3);
        let directory = data_directory(mongods[0]);
        assert!(directory.is_dir());
        Self { pids: mongods.into_iter().chain([keeper]).collect(), directory }
    }

    pub fn assert_gone(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        loop {
            let alive: Vec<_> = self
                .pids
                .iter()
                .filter(|id| test_kill_process(pid(**id)).is_ok() && !is_zombie(**id))
                .collect();
            if alive.is_empty() && !self.directory.exists() {
                return;
            }
            assert!(Instant::now() < deadline, "left: processes {alive:?}, {}", self.directory.display());
            thread::sleep(Duration::from_millis(50));
        }
    }
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).unwrap()).unwrap()
}

/// In a container without an init process nobody buries orphans.
fn is_zombie(id: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

fn arguments(id: u32) -> Vec<String> {
    let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn is(id: u32, subcommand: &str) -> bool {
    arguments(id).get(1).is_some_and(|argument| argument == subcommand)
}

fn data_directory(mongod: u32) -> PathBuf {
    let arguments = arguments(mongod);
    let at = arguments.iter().position(|argument| argument == "--dbpath").unwrap();
    Path::new(&arguments[at + 1]).parent().unwrap().to_owned()
}

fn children_of(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_child = |id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status
            .lines()
            .any(|line| line.strip_prefix("PPid:").is_some_and(|id| id.trim() == parent.to_string()))
    };
    let mut children: Vec<u32> = processes.filter(is_child).collect();
    children.sort_unstable();
    children
}

fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + GONE_LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {GONE_LIMIT:?}");
        thread::sleep(Duration::from_millis(10));
    }
}
