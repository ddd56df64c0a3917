//! `flow.queue`, `flow.when_full` and `[flow.spool]`: what stands between arrivals and the operations under way.

use crate::plan::{Flow, Producer, SpoolPlan, WhenFull};
use crate::profile::diagnostic::Diagnostic;
use crate::profile::load::{ModelName, WrittenLoad};
use crate::profile::reader::Table;
use crate::units::ByteCount;

use super::{MOST_OPERATIONS, SPOOL};

/// The words for what becomes of an arrival that can neither go nor wait.
pub const WHEN_FULL: [(&str, WhenFull); 3] =
    [("block", WhenFull::Block), ("drop", WhenFull::Drop), ("spool", WhenFull::Spool)];

/// What was written of the producer and its spool. What was left out is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WrittenProducer {
    queue: Option<u32>,
    when_full: Option<WhenFull>,
    spool: Option<SpoolPlan>,
}

impl WrittenProducer {
    /// The producer, which is there when one of its keys is, and the spool, which is there when the producer spools. What
    /// was not written is taken from another.
    pub fn over(&self, base: &Flow) -> (Option<Producer>, Option<SpoolPlan>) {
        let before = base.producer.unwrap_or_default();
        let own = Producer {
            queue: self.queue.unwrap_or(before.queue),
            when_full: self.when_full.unwrap_or(before.when_full),
        };
        let written = self.queue.is_some() || self.when_full.is_some();
        let producer = if written { Some(own) } else { base.producer };
        let spools = producer.is_some_and(|producer| producer.when_full == WhenFull::Spool);
        (producer, spools.then(|| self.spool.or(base.spool).unwrap_or(SPOOL)))
    }
}

/// Reads the keys of the producer, and the spool.
pub fn read(flow: &mut Table<'_>, load: &WrittenLoad) -> WrittenProducer {
    let (queue, when_full) = (flow.integer("queue", 1, MOST_OPERATIONS), flow.word("when_full", &WHEN_FULL));
    let written: Vec<&str> =
        ["queue", "when_full"].into_iter().filter(|key| flow.key_span(key).is_some()).collect();
    if load.model == Some(ModelName::Closed) {
        for key in &written {
            let path = flow.path_of(key);
            let message = format!("`{path}` belongs to the open model, and this load is closed");
            let place = flow.key_span(key).unwrap_or_default();
            let help = "leave it out, or write model = \"open\"";
            flow.mistakes().add(Diagnostic::error(place, message).help(help));
        }
    }
    let spool = read_spool(flow);
    // A word that is not known has been reported, and may have meant the spool.
    let spools = when_full == Some(WhenFull::Spool);
    let unclear = when_full.is_none() && written.contains(&"when_full");
    if let (Some(place), false, false) = (flow.key_span("spool"), spools, unclear) {
        let (spool, when_full) = (flow.path_of("spool"), flow.path_of("when_full"));
        let message = format!("`{spool}` says nothing unless `{when_full}` is \"spool\"");
        let help = "write when_full = \"spool\" in [flow], or leave the spool out";
        flow.mistakes().add(Diagnostic::error(place, message).help(help));
    }
    WrittenProducer { queue, when_full, spool }
}

fn read_spool(flow: &mut Table<'_>) -> Option<SpoolPlan> {
    let mut table = flow.table("spool")?;
    let [max, rotate] = ["max", "rotate"].map(|key| bytes(&mut table, key));
    let max = max.unwrap_or_else(|| SPOOL.max_bytes.max(rotate.unwrap_or_default()));
    let spool = SpoolPlan {
        max_bytes: max,
        rotate_bytes: rotate.unwrap_or(SPOOL.rotate_bytes.min(max)),
        drain: table.quantity("drain").map_or(SPOOL.drain, |rate| rate.into_inner()),
    };
    if let (Some(message), Some(place)) = (disorder(&spool), table.key_span("rotate")) {
        table.wrong(place, message);
    }
    table.finish();
    Some(spool)
}

fn bytes(table: &mut Table<'_>, key: &'static str) -> Option<ByteCount> {
    let written = table.quantity(key)?;
    let checked = check_bytes(*written.get_ref());
    checked.map_err(|message| table.wrong(written.span(), format!("`{}` {message}", table.path_of(key)))).ok()
}

/// A number of bytes that is something.
///
/// # Errors
/// When it is 0; the key's name is to stand before it.
pub fn check_bytes(bytes: ByteCount) -> Result<ByteCount, String> {
    match bytes {
        ByteCount::ZERO => Err("must be above 0".to_owned()),
        bytes => Ok(bytes),
    }
}

/// What is wrong with a spool although each of its numbers is in bounds.
pub fn disorder(spool: &SpoolPlan) -> Option<String> {
    let SpoolPlan { max_bytes, rotate_bytes, .. } = spool;
    (rotate_bytes > max_bytes)
        .then(|| format!("flow.spool.rotate = {rotate_bytes} is above flow.spool.max = {max_bytes}"))
}
