//! Where workers leave their records: a buffer per runtime thread, so that writing never waits for another writer.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::sample::Record;

/// More than a runtime has threads; should there be more, some share a buffer, which is slower but right.
const BUFFERS: usize = 64;

thread_local! {
    static THREAD: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The buffers of one engine.
#[derive(Debug)]
pub struct Buffers(Vec<Buffer>);

/// One thread's. Alone in its cache lines (two, since processors fetch them in pairs): beside another thread's, each push
/// would wait for the line to come over from the other processor.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Buffer {
    records: Mutex<Vec<Record>>,
    /// Attempts by their check-outs, less those that turned out to be none.
    checkouts: AtomicI64,
}

impl Default for Buffers {
    fn default() -> Self {
        Self((0..BUFFERS).map(|_| Buffer::default()).collect())
    }
}

impl Buffers {
    /// Leaves a record in this thread's buffer. The lock is only ever shared with `take`, ten times a second.
    pub fn push(&self, record: Record) {
        self.own().records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    /// Counts an attempt by its check-out, or takes one back.
    pub fn count_checkout(&self, change: i64) {
        self.own().checkouts.fetch_add(change, Ordering::Relaxed);
    }

    /// Attempts by their check-outs so far.
    pub fn checkouts(&self) -> u64 {
        // A worker moves between threads, so that a single buffer's count may be negative.
        let sum: i64 = self.0.iter().map(|buffer| buffer.checkouts.load(Ordering::Relaxed)).sum();
        u64::try_from(sum).unwrap_or(0)
    }

    fn own(&self) -> &Buffer {
        &self.0[thread_number() % self.0.len()]
    }

    /// Exchanges every buffer for an empty one, all at one instant, and hands the records to `fold`. At one instant,
    /// because a worker moves between threads: its operation's end must not be seen before its start. `spare` is the
    /// other half of the exchange; its memory is used again.
    pub fn take(&self, spare: &mut Vec<Vec<Record>>, fold: impl FnMut(&Record)) {
        spare.resize_with(self.0.len(), Vec::new);
        let mut locked: Vec<_> = self
            .0
            .iter()
            .map(|buffer| buffer.records.lock().unwrap_or_else(PoisonError::into_inner))
            .collect();
        for (buffer, spare) in locked.iter_mut().zip(spare.iter_mut()) {
            std::mem::swap(&mut **buffer, spare);
        }
        drop(locked);
        spare.iter().flatten().for_each(fold);
        spare.iter_mut().for_each(Vec::clear);
    }
}

fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    THREAD.get().unwrap_or_else(|| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        THREAD.set(Some(number));
        number
    })
}
