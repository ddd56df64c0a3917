//! Talking to people on standard error, without ever waiting for it: a terminal that was stopped, or a pipe that nobody
//! reads, must hold up neither load nor results. What finds no room is lost.
//!
//! While something else has the terminal, what is said is held back, and said when the terminal is free again.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Lines that may wait.
const ROOM: usize = 1000;

/// How long the end waits for what was said last.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether what is said is held back.
static HELD: AtomicBool = AtomicBool::new(false);

/// Who hears at once what is held back.
type Listener = Box<dyn Fn(&str) + Send>;

enum Word {
    Line(String),
    Flush(SyncSender<()>),
    Hold(Listener),
    Release,
}

/// Says a line. A reader that is gone must not end what goes on.
pub fn tell(text: &str) {
    let _ = words().try_send(Word::Line(text.to_owned()));
}

/// Waits, but not for long, until all is said. To be called before the process ends or asks something.
pub fn flush() {
    let (done, said) = sync_channel(1);
    if words().try_send(Word::Flush(done)).is_ok() {
        let _ = said.recv_timeout(PATIENCE);
    }
}

/// From here on lines go to `listener` alone, and to standard error only after [`release`].
pub fn hold(listener: impl Fn(&str) + Send + 'static) {
    flush();
    if words().try_send(Word::Hold(Box::new(listener))).is_ok() {
        HELD.store(true, Ordering::Relaxed);
    }
}

/// Says what was held back.
pub fn release() {
    if HELD.swap(false, Ordering::Relaxed) {
        let _ = words().try_send(Word::Release);
        flush();
    }
}

/// Whether what is said is held back now.
pub fn is_held() -> bool {
    HELD.load(Ordering::Relaxed)
}

fn words() -> &'static SyncSender<Word> {
    static WORDS: OnceLock<SyncSender<Word>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let (sender, receiver) = sync_channel(ROOM);
        // Without a thread nothing is said, and everything else goes on.
        let _ = std::thread::Builder::new().name("stderr".to_owned()).spawn(move || say(&receiver));
        sender
    })
}

fn say(words: &Receiver<Word>) {
    let (mut held, mut listener): (Vec<String>, Option<Listener>) = (Vec::new(), None);
    for word in words {
        match word {
            Word::Line(text) => match &listener {
                Some(hear) => {
                    hear(&text);
                    if held.len() < ROOM {
                        held.push(text);
                    }
                }
                None => write(&text),
            },
            Word::Flush(done) => {
                let _ = done.try_send(());
            }
            Word::Hold(hear) => listener = Some(hear),
            Word::Release => {
                listener = None;
                held.drain(..).for_each(|text| write(&text));
            }
        }
    }
}

fn write(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
