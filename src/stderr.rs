//! Talking to people on standard error, without ever waiting for it: a terminal that was stopped, or a pipe that nobody
//! reads, must hold up neither load nor results. What finds no room is lost.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Lines that may wait.
const ROOM: usize = 1000;

/// How long the end waits for what was said last.
const PATIENCE: Duration = Duration::from_secs(1);

enum Word {
    Line(String),
    Flush(SyncSender<()>),
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
    for word in words {
        match word {
            Word::Line(text) => {
                let _ = writeln!(std::io::stderr(), "{text}");
            }
            Word::Flush(done) => {
                let _ = done.try_send(());
            }
        }
    }
}
