//! A pseudo-terminal with a screen that can be looked at, and a program of its own that runs in it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use crate::support::send;

/// Nothing here takes that long, whatever else the machine does.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal in which a program runs.
pub struct Terminal {
    master: Option<File>,
    /// Kept open, so that the terminal's settings can be looked at when the program has ended.
    slave: File,
    parser: Arc<Mutex<vt100::Parser>>,
    stopped: Arc<AtomicBool>,
    hung_up: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    child: Child,
    settings: String,
}

/// Where the program's standard output goes.
pub enum Output {
    /// To the terminal, as when someone types the command.
    Terminal,
    /// Elsewhere.
    Null,
}

impl Terminal {
    /// Runs a command in a terminal of this size.
    pub fn start(command: &mut Command, (columns, rows): (u16, u16), output: Output) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, size(columns, rows)).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = std::ffi::OsStr::from_bytes(name.to_bytes()).to_owned();
        let slave = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let master = File::from(master);
        let settings = settings(&slave);
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(stdio()).stderr(stdio()).env("TERM", "xterm").stdout(match output {
            Output::Terminal => stdio(),
            Output::Null => Stdio::null(),
        });
        // Only calls that are safe between fork and exec.
        #[expect(unsafe_code, reason = "there is no safe way to give a child a controlling terminal")]
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        let parser = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 1000)));
        let (stopped, hung_up) = (Arc::default(), Arc::default());
        let reader = {
            let (master, parser) = (master.try_clone().unwrap(), Arc::clone(&parser));
            let (stopped, hung_up) = (Arc::clone(&stopped), Arc::clone(&hung_up));
            thread::spawn(move || read(master, &parser, &stopped, &hung_up))
        };
        Self { master: Some(master), slave, parser, stopped, hung_up, reader: Some(reader), child, settings }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Types.
    pub fn keys(&mut self, keys: &str) {
        self.master.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        send(self.id(), signal);
    }

    /// What can be read on it now.
    pub fn text(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    /// What it has been told to be, beside what can be read.
    pub fn look<T>(&self, at: impl FnOnce(&vt100::Screen) -> T) -> T {
        at(self.parser.lock().unwrap().screen())
    }

    /// Waits until this can be read.
    #[track_caller]
    pub fn wait_for(&self, part: &str) -> String {
        self.wait_until(part, |text| text.contains(part))
    }

    /// Waits until what can be read is as wanted.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if is_so(&text) {
                return text;
            }
            assert!(Instant::now() < deadline, "no '{what}' on:\n{text}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// It takes nothing more, like a terminal whose user has stopped it; or goes on.
    pub fn stop(&self, stopped: bool) {
        self.stopped.store(stopped, Ordering::Relaxed);
    }

    /// Makes it larger or smaller.
    pub fn resize(&self, columns: u16, rows: u16) {
        tcsetwinsize(self.master.as_ref().unwrap(), size(columns, rows)).unwrap();
        self.parser.lock().unwrap().screen_mut().set_size(rows, columns);
    }

    /// Does what a shell does to it when it takes it over.
    pub fn scribble(&self) {
        let mut settings = tcgetattr(&self.slave).unwrap();
        settings.local_modes |= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        tcsetattr(&self.slave, OptionalActions::Now, &settings).unwrap();
        self.parser.lock().unwrap().process(b"\x1b[2J\x1b[?1049l\x1b[?25h");
    }

    /// Closes its window.
    pub fn hang_up(&mut self) {
        self.hung_up.store(true, Ordering::Relaxed);
        self.reader.take().unwrap().join().unwrap();
        self.master = None;
    }

    /// `T` when it is stopped, as in the process table.
    pub fn state(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('?')
    }

    /// Processor time of one of the program's threads so far.
    pub fn cpu(&self, thread: &str) -> Duration {
        let tasks =
            std::fs::read_dir(format!("/proc/{}/task", self.id())).unwrap().map(|task| task.unwrap().path());
        let is_it = |task: &std::path::PathBuf| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == thread)
        };
        let task = tasks.into_iter().find(is_it).unwrap();
        let times = std::fs::read_to_string(task.join("schedstat")).unwrap();
        Duration::from_nanos(times.split(' ').next().unwrap().parse().unwrap())
    }

    /// Whether the terminal is as the program found it.
    pub fn is_clean(&self) -> bool {
        let screen = self.look(|screen| (screen.alternate_screen(), screen.hide_cursor()));
        screen == (false, false) && settings(&self.slave) == self.settings
    }

    /// Waits for the program's end, and until the terminal has shown everything.
    #[track_caller]
    pub fn end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    self.child.kill().unwrap();
                    panic!("it does not end:\n{}", self.text());
                }
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        // What it has said last may still be on its way.
        let mut before = String::new();
        while !self.stopped.load(Ordering::Relaxed) && before != self.text() {
            before = self.text();
            thread::sleep(Duration::from_millis(500));
        }
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Those that have ended do not mind.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.hung_up.store(true, Ordering::Relaxed);
    }
}

fn read(mut master: File, parser: &Mutex<vt100::Parser>, stopped: &AtomicBool, hung_up: &AtomicBool) {
    let mut bytes = [0; 4096];
    while !hung_up.load(Ordering::Relaxed) {
        let patience = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let ready = poll(&mut [PollFd::new(&master, PollFlags::IN)], Some(&patience)).unwrap_or(0);
        if ready == 0 || stopped.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(5));
            continue;
        }
        match master.read(&mut bytes) {
            Ok(count) if count > 0 => parser.lock().unwrap().process(&bytes[..count]),
            _ => return,
        }
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Everything that a program can set.
fn settings(slave: &File) -> String {
    format!("{:?}", tcgetattr(slave).unwrap())
}
