//! What happens when something panics.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::client::attempt;
use crate::stderr;
use crate::verify::observe;

/// Whether the outcome is known and only the runtime's end is to come.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Keeps panics inside an operation quiet: they are caught there, and counted as what became of the operation.
pub fn install() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if attempt::inside_operation() || observe::is_watching() || ENDING.load(Ordering::Relaxed) {
            return;
        }
        if stderr::is_held() {
            // The screen is on: it shows this in its own way, and gives the terminal back in its own time.
            let thread = std::thread::current();
            stderr::tell(&format!("thread '{}' {info}", thread.name().unwrap_or("unnamed")));
        } else {
            default(info);
        }
    }));
}

/// From now on panics are quiet. The driver's own tasks do not expect each other's end, and when the runtime drops them
/// one after the other, some panic; nobody is to take that for the outcome.
pub fn ending() {
    ENDING.store(true, Ordering::Relaxed);
}
