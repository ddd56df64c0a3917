//! A gate's limiters, settings and tallies: what its connections share.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bson::RawDocumentBuf;
use tokio::sync::watch;

use super::{GateCounters, rejection};
use crate::limiter::{Decision, Limiter};
use crate::plan::{GateSettings, Limit};

/// Settings, and what follows from them.
#[derive(Debug)]
pub(super) struct InForce {
    pub(super) settings: GateSettings,
    pub(super) rejection: RawDocumentBuf,
}

/// Which of the two limiters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    Requests,
    Connections,
}

impl Which {
    const fn limit(self, settings: &GateSettings) -> Option<Limit> {
        match self {
            Self::Requests => settings.requests,
            Self::Connections => settings.connections,
        }
    }
}

#[derive(Debug)]
pub(super) struct Limits {
    started: Instant,
    /// Held for some tens of nanoseconds a message, never across a wait.
    state: Mutex<State>,
    /// The same settings for those who wait, so that they hear of new ones.
    news: watch::Sender<Arc<InForce>>,
    next_id: AtomicI32,
    pub(super) accepted: AtomicU64,
    pub(super) open: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) malformed: AtomicU64,
}

#[derive(Debug)]
struct State {
    requests: Limiter,
    connections: Limiter,
    in_force: Arc<InForce>,
}

impl State {
    const fn limiter(&mut self, which: Which) -> &mut Limiter {
        match which {
            Which::Requests => &mut self.requests,
            Which::Connections => &mut self.connections,
        }
    }
}

impl Limits {
    pub(super) fn new(settings: GateSettings) -> io::Result<Self> {
        let requests = Limiter::new(settings.requests, 0);
        let connections = Limiter::new(settings.connections, 0);
        let in_force = Arc::new(InForce { rejection: rejection::document(&settings)?, settings });
        Ok(Self {
            started: Instant::now(),
            state: Mutex::new(State { requests, connections, in_force: Arc::clone(&in_force) }),
            news: watch::Sender::new(in_force),
            next_id: AtomicI32::new(1),
            accepted: AtomicU64::new(0),
            open: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
        })
    }

    pub(super) fn configure(&self, settings: GateSettings) -> io::Result<()> {
        let in_force = Arc::new(InForce { rejection: rejection::document(&settings)?, settings });
        let mut state = self.state();
        let now = self.now();
        state.requests.configure(in_force.settings.requests, now);
        state.connections.configure(in_force.settings.connections, now);
        state.in_force = Arc::clone(&in_force);
        // Still under the lock, so that two who configure at once leave the same settings in both places.
        self.news.send_replace(in_force);
        Ok(())
    }

    pub(super) fn settings(&self) -> GateSettings {
        self.state().in_force.settings.clone()
    }

    pub(super) fn is_literal(&self) -> bool {
        self.state().in_force.settings.literal
    }

    pub(super) fn counters(&self) -> GateCounters {
        let mut state = self.state();
        let now = self.now();
        GateCounters {
            requests: state.requests.counters(now),
            connections: state.connections.counters(now),
            accepted: self.accepted.load(Ordering::Relaxed),
            open: self.open.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            malformed: self.malformed.load(Ordering::Relaxed),
        }
    }

    /// Takes a token, waiting for it where there is a queue. Those whom the settings exempt need none.
    ///
    /// # Errors
    /// Rejected, with the settings that say how.
    pub(super) async fn admit(
        &self,
        which: Which,
        exempt: impl Fn(&GateSettings) -> bool,
    ) -> Result<(), Arc<InForce>> {
        let until = {
            let mut guard = self.state();
            let state = &mut *guard;
            if !state.limiter(which).is_on() {
                return Ok(());
            }
            if exempt(&state.in_force.settings) {
                state.limiter(which).exempt();
                return Ok(());
            }
            // Read under the lock, so that the limiter sees time go forward.
            match state.limiter(which).ask(self.now()) {
                Decision::Admit => return Ok(()),
                Decision::Reject => return Err(Arc::clone(&state.in_force)),
                Decision::WaitUntil(until) => until,
            }
        };
        let place = Place { limits: self, which, passed: false };
        let mut news = self.news.subscribe();
        tokio::select! {
            () = tokio::time::sleep_until((self.started + Duration::from_nanos(until)).into()) => {}
            // The sender is in `self`, so this ends only with the limit.
            _ = news.wait_for(|in_force| which.limit(&in_force.settings).is_none()) => {}
        }
        place.pass();
        Ok(())
    }

    /// A number for a message of the gate's own.
    pub(super) fn next_id(&self) -> i32 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a queue. Whoever drops it without having passed has gone away.
struct Place<'a> {
    limits: &'a Limits,
    which: Which,
    passed: bool,
}

impl Place<'_> {
    fn pass(mut self) {
        self.passed = true;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.limits.state().limiter(self.which).leave_queue(self.passed);
    }
}
