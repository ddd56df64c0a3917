//! What is turned by hand while the load runs. Data only: a screen sends it, the coordinator of trials answers.

use tokio::sync::mpsc;

/// One turn of a knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// `maxAdaptiveRetries`, one more.
    MoreRetries,
    /// `maxAdaptiveRetries`, one less.
    FewerRetries,
    /// `enableOverloadRetargeting`, on or off.
    Retargeting,
    /// The rate, or the workers: a quarter more.
    MoreLoad,
    /// The rate, or the workers: a fifth less.
    LessLoad,
    /// What the profile does to the servers, on or off.
    Overload,
}

/// Who turns.
pub type Hand = mpsc::UnboundedSender<Turn>;

/// What was turned and is not yet answered.
pub type Turns = mpsc::UnboundedReceiver<Turn>;
