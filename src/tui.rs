//! The screen, and the only code that touches the terminal.
//!
//! It is drawn on the controlling terminal, so that standard output carries the result alone. Whatever ends the drawing
//! gives the terminal back as it was: `Tty` does so when it is dropped.

mod app;
mod history;
mod keys;
mod model;
mod news;
mod screen;
mod theme;
mod view;

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::crossterm::{Command, queue};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::getpgrp;
use rustix::termios::{
    OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};

pub use keys::BINDINGS;
pub use screen::Screen;
pub use theme::Theme;

/// Where the controlling terminal is found.
const TERMINAL: &str = "/dev/tty";

/// What a terminal is taken for that does not tell its size.
const USUAL_SIZE: (u16, u16) = (80, 24);

/// A picture in one write, if it is not large.
const PICTURE: usize = 1 << 16;

/// How long one wait for a terminal that was stopped may last.
const WAIT: Duration = Duration::from_millis(50);

/// How long the end waits for a terminal that takes nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether there is a terminal to draw on: the talk goes to one, and it is this program's now.
pub fn is_possible() -> bool {
    io::stderr().is_terminal() && open().is_ok_and(|terminal| is_in_front(&terminal))
}

/// Whether a screen is what people expect: where one is possible, and the terminal can move its cursor.
pub fn is_expected() -> bool {
    std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb") && is_possible()
}

/// The controlling terminal. Its own screen and raw mode begin with [`Tty::take`] and end with [`Tty::give_back`].
struct Tty {
    file: File,
    terminal: Terminal<CrosstermBackend<BufWriter<Output>>>,
    abandoned: Arc<AtomicBool>,
    /// How it was before it was taken.
    before: Option<Termios>,
}

impl Tty {
    /// While the terminal takes nothing, a picture waits until `is_over` says that nobody wants it any more.
    fn open(is_over: impl Fn() -> bool + Send + 'static) -> io::Result<Self> {
        let file = open()?;
        let abandoned = Arc::new(AtomicBool::new(false));
        let output =
            Output { file: file.try_clone()?, abandoned: Arc::clone(&abandoned), is_over: Box::new(is_over) };
        let backend = CrosstermBackend::new(BufWriter::with_capacity(PICTURE, output));
        let options = TerminalOptions { viewport: Viewport::Fixed(area(&file)) };
        Ok(Self { file, terminal: Terminal::with_options(backend, options)?, abandoned, before: None })
    }

    /// Its input, for a reader of its own.
    fn keyboard(&self) -> io::Result<Keyboard> {
        Ok(Keyboard(self.file.try_clone()?))
    }

    /// Whether it is this program's now, and not its shell's or another job's.
    fn is_in_front(&self) -> bool {
        is_in_front(&self.file)
    }

    const fn is_taken(&self) -> bool {
        self.before.is_some()
    }

    /// Puts its own screen up; once more, where someone else may have changed it meanwhile.
    fn take(&mut self) -> io::Result<()> {
        let now = tcgetattr(&self.file)?;
        let before = self.before.get_or_insert(now);
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&self.file, OptionalActions::Now, &raw)?;
        queue!(self.terminal.backend_mut(), EnterAlternateScreen, Hide)?;
        // This makes the next picture a whole one. (To clear it would ask the terminal for its cursor and wait.)
        self.terminal.resize(area(&self.file))
    }

    /// Draws a picture. What has not changed is not sent.
    fn draw(&mut self, picture: impl FnOnce(Rect, &mut Buffer)) -> io::Result<()> {
        let area = area(&self.file);
        if area != self.terminal.get_frame().area() {
            self.terminal.resize(area)?;
        }
        self.terminal.draw(|frame| picture(frame.area(), frame.buffer_mut()))?;
        Ok(())
    }

    /// Takes its own screen down. One that was not put up stays away.
    fn give_back(&mut self) {
        let Some(before) = self.before.take() else { return };
        // The settings first: they never wait, as writing may. Behind another job's back nothing is set, because that
        // would stop this program; its shell has set what it wants.
        if self.is_in_front() {
            let _ = tcsetattr(&self.file, OptionalActions::Now, &before);
        }
        if self.abandoned.load(Ordering::Relaxed) {
            // What it has not shown of the last picture makes room for what gives it back.
            let _ = tcflush(&self.file, QueueSelector::OFlush);
        }
        let mut commands = String::new();
        let _ = LeaveAlternateScreen.write_ansi(&mut commands);
        let _ = Show.write_ansi(&mut commands);
        let end = Instant::now() + PATIENCE;
        let _ = write_all(&self.file, commands.as_bytes(), || Instant::now() > end);
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// What is drawn. It waits for a terminal that was stopped as long as there is a point in it.
struct Output {
    file: File,
    /// Set when a picture was given up in the middle: nothing may follow it.
    abandoned: Arc<AtomicBool>,
    is_over: Box<dyn Fn() -> bool + Send>,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.abandoned.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        write_all(&self.file, bytes, || (self.is_over)())
            .inspect_err(|_| self.abandoned.store(true, Ordering::Relaxed))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is typed.
struct Keyboard(File);

impl Keyboard {
    /// Waits for what is typed, but no longer than this; nothing when nothing was.
    ///
    /// # Errors
    /// When the terminal is gone.
    fn read(&mut self, patience: Duration) -> io::Result<Vec<u8>> {
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        match poll(&mut ready, Some(&patience)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        // What is typed for the shell is the shell's, and to read it would stop this program.
        if !is_in_front(&self.0) {
            std::thread::sleep(Duration::from_millis(100));
            return Ok(Vec::new());
        }
        let mut bytes = [0; 256];
        match self.0.read(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => Ok(bytes[..count].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// An opening of its own, so that only here nobody waits for the terminal unasked.
fn open() -> io::Result<File> {
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(TERMINAL)
}

fn write_all(mut file: &File, mut bytes: &[u8], is_over: impl Fn() -> bool) -> io::Result<()> {
    let patience = Timespec::try_from(WAIT).map_err(io::Error::other)?;
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if is_over() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                // However this ends, the next write tells.
                let _ = poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(&patience));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_in_front(terminal: &File) -> bool {
    tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
}

fn area(terminal: &File) -> Rect {
    let (width, height) = match tcgetwinsize(terminal) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => USUAL_SIZE,
    };
    Rect { x: 0, y: 0, width, height }
}
