//! What happens when something panics.

use crate::client::attempt;

/// Keeps panics inside an operation quiet: they are caught there, and counted as what became of the operation.
pub fn install() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !attempt::inside_operation() {
            default(info);
        }
    }));
}
