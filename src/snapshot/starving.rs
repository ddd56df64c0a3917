//! Whether a driver's pool gives its calls no connections although it has some.

use super::Snapshot;
use crate::client::attempt::Waiting;

impl Snapshot {
    /// How many connections a pool has that gave none to anyone: calls waited for them in vain while none was in use, as
    /// nothing was sent, and no call timed out with something on the wire. `None` where it is not so.
    pub fn starving(&self) -> Option<u64> {
        let timed_out = |waiting: Waiting| {
            let of_kind = self.errors.iter().filter(|error| error.class.kind == waiting.kind());
            of_kind.map(|error| error.count).sum::<u64>()
        };
        let asked: u64 = self.servers.iter().map(|server| server.attempts).sum();
        let open: u64 = self.servers.iter().map(|server| server.connections_open).sum();
        let is_so = asked == 0
            && open > 0
            && timed_out(Waiting::Checkout) > 0
            && timed_out(Waiting::Reply) + timed_out(Waiting::Unknown) == 0;
        is_so.then_some(open)
    }
}

#[cfg(test)]
mod tests {
    use crate::results::testing;
    use crate::snapshot::{ErrorClass, ErrorCount, ErrorLevel, ServerStats, Snapshot};

    fn timed_out(kind: &str, attempts: u64) -> Snapshot {
        let mut snapshot = testing::snapshot(0, 1, [], [0, 0, 0]);
        snapshot.servers = vec![ServerStats { attempts, connections_open: 4, ..ServerStats::default() }];
        snapshot.errors = vec![ErrorCount {
            segment: 1,
            operation: 0,
            level: ErrorLevel::Operation,
            class: ErrorClass { kind: kind.to_owned(), ..ErrorClass::default() },
            count: 3,
            first_ns: 0,
            last_ns: 0,
            example: String::new(),
        }];
        snapshot
    }

    #[test]
    fn calls_that_wait_for_connections_in_vain_while_none_is_in_use_starve() {
        assert_eq!(timed_out("timeout_checkout", 0).starving(), Some(4));
        assert_eq!(timed_out("timeout_checkout", 1).starving(), None, "somebody got one");
        assert_eq!(timed_out("timeout_reply", 0).starving(), None, "it was in use");
    }
}
