//! What the screen is to be told, left where it finds it: nobody waits for it, and it grows no larger than its room however
//! long a terminal is stopped.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::keys::Action;
use crate::results::TrialFacts;
use crate::snapshot::{Event, ServerFacts, Snapshot};

/// News that may wait: some ten seconds, which may be a megabyte each.
const ROOM: usize = 32;

/// Something the screen is to be told.
#[derive(Debug)]
pub enum News {
    /// An interval is over.
    Snapshot(Box<Snapshot>),
    /// What the servers said then.
    Servers(Vec<ServerFacts>),
    /// Another trial runs from here on, so long after the first one began.
    TakenOver(Box<TrialFacts>, Duration),
    /// Something happened.
    Event(Event),
    /// People are told something.
    Note(String),
    /// A key that is about what is shown.
    Key(Action),
    /// The terminal is to be given back, and the program to stop.
    Suspend,
    /// The program goes on after someone stopped it.
    Resumed,
}

/// Where news waits.
#[derive(Debug, Default)]
pub struct Inbox {
    waiting: Mutex<Waiting>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    news: VecDeque<News>,
    closed: bool,
}

impl Inbox {
    /// Leaves something, and does not wait.
    pub fn post(&self, news: News) {
        let mut waiting = self.lock();
        if waiting.news.len() >= ROOM {
            make_room(&mut waiting.news);
        }
        waiting.news.push_back(news);
        self.bell.notify_all();
    }

    /// What there is, or will be before the patience ends; `None` when the screen is to end.
    pub fn collect(&self, patience: Duration) -> Option<VecDeque<News>> {
        let nothing = |waiting: &mut Waiting| waiting.news.is_empty() && !waiting.closed;
        let (mut waiting, _) = self
            .bell
            .wait_timeout_while(self.lock(), patience, nothing)
            .unwrap_or_else(PoisonError::into_inner);
        (!waiting.closed).then(|| std::mem::take(&mut waiting.news))
    }

    /// The screen is to end, or has.
    pub fn close(&self) {
        self.lock().closed = true;
        self.bell.notify_all();
    }

    /// Whether it is to end, or has.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes one of each two intervals in a row that belong to the same segment of one trial, so that no count is lost; of what the
/// servers say the newest is enough. When that frees nothing, the oldest of what is left goes.
fn make_room(news: &mut VecDeque<News>) {
    let mut kept: VecDeque<News> = VecDeque::with_capacity(news.len());
    let (mut snapshot, mut servers, before) = (None, None, news.len());
    for each in news.drain(..) {
        match each {
            News::Snapshot(next) => match snapshot.and_then(|at: usize| kept.get_mut(at)) {
                Some(News::Snapshot(sum)) if sum.segment == next.segment => sum.merge_after(*next),
                _ => {
                    snapshot = Some(kept.len());
                    kept.push_back(News::Snapshot(next));
                }
            },
            News::Servers(facts) => servers = Some(facts),
            News::TakenOver(..) => {
                snapshot = None;
                kept.push_back(each);
            }
            other => kept.push_back(other),
        }
    }
    kept.extend(servers.map(News::Servers));
    if kept.len() >= before {
        let oldest = kept.iter().position(|news| !matches!(news, News::Snapshot(_) | News::TakenOver(..)));
        kept.remove(oldest.unwrap_or(0));
    }
    *news = kept;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::{cell, snapshot};

    #[test]
    fn a_reader_that_cannot_keep_up_loses_no_counts() {
        let inbox = Inbox::default();
        for second in 0..1000 {
            let one = snapshot(second, 1, [((1, 0), cell(3, 2, 2, 0))], [second, 0, 0]);
            inbox.post(News::Snapshot(Box::new(one)));
            inbox.post(News::Servers(Vec::new()));
            inbox.post(News::Note(format!("{second}")));
        }
        let news = inbox.collect(Duration::ZERO).unwrap();
        assert!(news.len() <= ROOM, "{}", news.len());
        let offered = |news: &News| match news {
            News::Snapshot(snapshot) => snapshot.cells[&(1, 0)].offered,
            _ => 0,
        };
        assert_eq!(news.iter().map(offered).sum::<u64>(), 3000);
        let newest = |news: &News| matches!(news, News::Note(text) if text == "999");
        assert!(news.iter().any(newest), "what was said last is there");
    }

    #[test]
    fn intervals_of_two_segments_are_not_mixed() {
        let mut news: VecDeque<News> = (0..6)
            .map(|second| News::Snapshot(Box::new(snapshot(second, usize::from(second > 2), [], [0; 3]))))
            .collect();
        make_room(&mut news);
        let ends = |news: &News| match news {
            News::Snapshot(snapshot) => (snapshot.segment, snapshot.end_ns / 1_000_000_000),
            _ => (9, 9),
        };
        assert_eq!(news.iter().map(ends).collect::<Vec<_>>(), [(0, 3), (1, 6)]);
    }

    #[test]
    fn a_closed_inbox_has_nothing_more() {
        let inbox = Inbox::default();
        assert_eq!(inbox.collect(Duration::ZERO).map(|news| news.len()), Some(0));
        inbox.post(News::Suspend);
        inbox.close();
        assert!(inbox.collect(Duration::from_secs(60)).is_none() && inbox.is_closed());
    }
}
