//! Operations under way.

use crate::document::Random;

/// An operation under way. Times are nanoseconds, moments since Go. Each begins a line of the processor's cache, since those
/// that wait are many, and whose turn it is is random.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Flight {
    /// Its intended start.
    pub due_ns: u64,
    /// Its actual start.
    pub started_ns: u64,
    /// When its last call began.
    pub called_ns: u64,
    /// When what it is doing began.
    pub since_ns: u64,
    /// It has waited so long for connections.
    pub checkout_ns: u64,
    /// And so long for answers.
    pub attempt_ns: u64,
    /// And so long for the next attempt or call.
    pub backoff_ns: u64,
    /// Its own random numbers.
    pub random: Random,
    /// The servers that the driver avoids for this command, as bits.
    pub avoid: u64,
    /// Whose it is.
    pub client: u32,
    /// Counts what nobody waits for any more: events of another epoch are void.
    pub epoch: u32,
    /// Its neighbours in the queue for a connection.
    pub neighbours: Neighbours,
    /// Calls so far, this one included.
    pub calls: u32,
    /// Retries of all its commands so far.
    pub retries: u32,
    /// Retries of this command so far.
    pub retry: u16,
    /// Commands of this call that are not done.
    pub commands: u16,
    /// Its number in the plan.
    pub op: u16,
    /// The segment of its intended start.
    pub segment: u16,
    /// Where the attempt goes, or the last one went.
    pub server: u8,
    /// Whether this attempt goes elsewhere than where the last was rejected.
    pub retargeted: bool,
    /// What it is doing.
    pub step: Step,
}

/// Those before and behind in a queue, by their slots; [`super::event::NOBODY`] at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// The one before.
    pub before: u32,
    /// The one behind.
    pub behind: u32,
}

/// What an operation is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Waiting until the application may send it: it has not begun.
    Held,
    /// Waiting for a connection.
    Queued,
    /// Waiting for an answer.
    Sent,
    /// Waiting for the time of the next attempt or call.
    Paused,
    /// Nothing: the slot is free.
    Ended,
}

/// Slots for operations under way, used again and again: memory follows the most at a time, never how many there were.
#[derive(Debug, Default)]
pub struct Flights {
    slots: Vec<Flight>,
    free: Vec<u32>,
}

impl Flights {
    /// A slot for one more; its epoch goes on from the slot's earlier ones.
    pub fn add(&mut self, flight: Flight) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                let place = self.get(slot);
                let epoch = place.epoch;
                *place = Flight { epoch, ..flight };
                slot
            }
            None => {
                self.slots.push(flight);
                // The load's bounds are far below.
                u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
            }
        }
    }

    /// Gives a slot back. What is planned for it is void.
    pub fn remove(&mut self, slot: u32) {
        let flight = self.get(slot);
        flight.epoch = flight.epoch.wrapping_add(1);
        flight.step = Step::Ended;
        self.free.push(slot);
    }

    /// The operation in a slot.
    pub fn get(&mut self, slot: u32) -> &mut Flight {
        &mut self.slots[slot as usize]
    }

    /// Whether somebody still waits for what was planned in an epoch.
    pub fn is_awaited(&self, slot: u32, epoch: u32) -> bool {
        self.slots[slot as usize].epoch == epoch
    }

    /// How many are under way.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// All that are under way.
    pub fn iter(&self) -> impl Iterator<Item = &Flight> {
        self.slots.iter().filter(|flight| flight.step != Step::Ended)
    }
}
