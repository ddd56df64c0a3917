//! The thread that writes results, and the way to it: nothing here ever makes the engine wait, and nothing is lost. When
//! the disk cannot keep up, the intervals that wait for it are merged, so memory stays bounded, too.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};

use super::recording::Recording;
use super::{EndFacts, Error, RunDirectory, Summary, TrialFacts};
use crate::snapshot::{Event, ServerFacts, Snapshot, Totals};

/// How many intervals may wait before they are merged.
const QUEUE_LENGTH: usize = 16;

/// An interval with what the servers said of themselves in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub snapshot: Snapshot,
    pub servers: Vec<ServerFacts>,
}

/// Where the thread puts what it gets.
pub(crate) trait Sink {
    /// What is known at the end.
    type Output;
    /// One interval, in order.
    fn interval(&mut self, batch: Batch) -> Result<(), Error>;
    /// One event; its place among the intervals means nothing.
    fn event(&mut self, event: &Event) -> Result<(), Error>;
    /// The trial ended without totals: keep what there is.
    fn abandon(&mut self) -> Result<(), Error>;
    /// The trial ended.
    fn finish(self, totals: Totals, end: EndFacts) -> Result<Self::Output, Error>;
}

/// What goes to the thread. Its end without a Finish means that the trial failed.
enum Message {
    Interval(Box<Batch>),
    Event(Event),
    Finish(Totals, EndFacts),
}

/// The engine's side of the thread.
struct Queue<T> {
    sender: SyncSender<Message>,
    thread: Option<JoinHandle<Result<Option<T>, Error>>>,
    /// What did not fit into the channel: at most one interval per change of segment.
    waiting: VecDeque<Box<Batch>>,
    events: VecDeque<Event>,
    next_sequence: u64,
    merged: u64,
    missing: Vec<String>,
}

impl<T: Send + 'static> Queue<T> {
    fn start<S>(sink: S, length: usize) -> Result<Self, Error>
    where
        S: Sink<Output = T> + Send + 'static,
    {
        let (sender, receiver) = sync_channel(length);
        let thread = std::thread::Builder::new()
            .name("results".to_owned())
            .spawn(move || write(sink, &receiver))
            .map_err(|_| Error::Thread)?;
        Ok(Self {
            sender,
            thread: Some(thread),
            waiting: VecDeque::new(),
            events: VecDeque::new(),
            next_sequence: 0,
            merged: 0,
            missing: Vec::new(),
        })
    }

    fn interval(&mut self, batch: Batch) -> Result<(), Error> {
        let (got, wanted) = (batch.snapshot.sequence, self.next_sequence);
        if got != wanted {
            self.missing.push(format!("interval number {got} came where {wanted} was due"));
        }
        self.next_sequence = got + 1;
        match self.waiting.back_mut() {
            Some(last) if last.snapshot.segment == batch.snapshot.segment => {
                last.snapshot.merge_after(batch.snapshot);
                ServerFacts::merge_after(&mut last.servers, batch.servers);
                self.merged += 1;
            }
            _ => self.waiting.push_back(Box::new(batch)),
        }
        self.pass_on()
    }

    fn event(&mut self, event: Event) -> Result<(), Error> {
        self.events.push_back(event);
        self.pass_on()
    }

    /// Sends what the channel takes.
    fn pass_on(&mut self) -> Result<(), Error> {
        loop {
            let message = if let Some(event) = self.events.pop_front() {
                Message::Event(event)
            } else if let Some(batch) = self.waiting.pop_front() {
                Message::Interval(batch)
            } else {
                return Ok(());
            };
            match self.sender.try_send(message) {
                Ok(()) => {}
                Err(TrySendError::Full(Message::Event(event))) => {
                    self.events.push_front(event);
                    return Ok(());
                }
                Err(TrySendError::Full(Message::Interval(batch))) => {
                    self.waiting.push_front(batch);
                    return Ok(());
                }
                Err(TrySendError::Full(Message::Finish(..))) => unreachable!("made nowhere above"),
                Err(TrySendError::Disconnected(_)) => return Err(self.why()),
            }
        }
    }

    /// Why the thread ended before it was told to.
    fn why(&mut self) -> Error {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => error,
            _ => Error::Thread,
        }
    }

    /// The same, but waits for the disk instead of merging intervals.
    fn interval_waiting(&mut self, batch: Batch) -> Result<(), Error> {
        self.interval(batch)?;
        let events = std::mem::take(&mut self.events).into_iter().map(Message::Event);
        let batches = std::mem::take(&mut self.waiting).into_iter().map(Message::Interval);
        for message in events.chain(batches) {
            if self.sender.send(message).is_err() {
                return Err(self.why());
            }
        }
        Ok(())
    }

    /// Waits until everything is written.
    fn finish(mut self, last: Option<(Totals, EndFacts)>) -> Result<Option<T>, Error> {
        let events = std::mem::take(&mut self.events).into_iter().map(Message::Event);
        let batches = std::mem::take(&mut self.waiting).into_iter().map(Message::Interval);
        let finish = last.map(|(totals, end)| Message::Finish(totals, end));
        for message in events.chain(batches).chain(finish) {
            if self.sender.send(message).is_err() {
                return Err(self.why());
            }
        }
        drop(self.sender);
        match self.thread.map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(Error::Thread),
        }
    }
}

/// The thread.
fn write<S: Sink>(mut sink: S, receiver: &Receiver<Message>) -> Result<Option<S::Output>, Error> {
    for message in receiver {
        match message {
            Message::Interval(batch) => sink.interval(*batch)?,
            Message::Event(event) => sink.event(&event)?,
            Message::Finish(totals, end) => return sink.finish(totals, end).map(Some),
        }
    }
    sink.abandon()?;
    Ok(None)
}

/// Writes one trial's results.
pub struct Writer {
    queue: Queue<Summary>,
}

impl Writer {
    /// Opens the trial's files and starts the thread.
    ///
    /// # Errors
    /// When a file cannot be written, or was begun by a trial with other options.
    pub fn start(directory: &RunDirectory, facts: TrialFacts) -> Result<Self, Error> {
        let recording = Recording::start(directory, facts)?;
        Ok(Self { queue: Queue::start(recording, QUEUE_LENGTH)? })
    }

    /// Takes the next interval. Never waits.
    ///
    /// # Errors
    /// When something earlier could not be written: the run cannot go on, since its results would be lost.
    pub fn snapshot(&mut self, snapshot: Snapshot, servers: Vec<ServerFacts>) -> Result<(), Error> {
        self.queue.interval(Batch { snapshot, servers })
    }

    /// Takes the next interval, and waits for the disk where that cannot keep up: for those who have time.
    ///
    /// # Errors
    /// As for [`Self::snapshot`].
    pub fn snapshot_waiting(&mut self, snapshot: Snapshot, servers: Vec<ServerFacts>) -> Result<(), Error> {
        self.queue.interval_waiting(Batch { snapshot, servers })
    }

    /// Takes an event. Never waits.
    ///
    /// # Errors
    /// As for [`Self::snapshot`].
    pub fn event(&mut self, event: Event) -> Result<(), Error> {
        self.queue.event(event)
    }

    /// Writes the trial's last rows and adds it up. Waits for the disk.
    ///
    /// # Errors
    /// When something could not be written. Sums that do not add up are no error here but [`Summary::broken`].
    pub fn finish(self, totals: Totals, mut end: EndFacts) -> Result<Summary, Error> {
        let Queue { merged, .. } = self.queue;
        if merged > 0 {
            end.notes
                .push(format!("the disk was slow: {merged} intervals were merged into their predecessors"));
        }
        let missing = self.queue.missing.clone();
        let mut summary = self.queue.finish(Some((totals, end)))?.ok_or(Error::Thread)?;
        summary.broken.extend(missing);
        Ok(summary)
    }

    /// Keeps the intervals of a trial that failed; it gets no summary. Waits for the disk.
    ///
    /// # Errors
    /// When something could not be written.
    pub fn abandon(self) -> Result<(), Error> {
        self.queue.finish(None).map(|_| ())
    }
}

#[cfg(test)]
mod tests;
