//! The driver of every simulated client: which server it goes to, and what it does about a rejection.

use std::time::Duration;

use crate::document::Random;
use crate::plan::timeline::nanos;

/// What backoffs grow from where the server names no other base.
pub const BASE: Duration = Duration::from_millis(100);

/// The longest backoff.
pub const CAP: Duration = Duration::from_secs(10);

/// Options of a client, and the behaviour of its driver's version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// `maxAdaptiveRetries`; 0 in drivers that know no retries of this kind.
    pub max_retries: u32,
    /// The exponent before the first retry: 0 in versions 3.6 to 3.8, 1 from 3.9 on.
    pub first_exponent: u32,
    /// Whether a rejection's `baseBackoffMS` counts: from 3.9 on.
    pub heeds_base: bool,
    /// `enableOverloadRetargeting`
    pub retargets: bool,
    /// `readPreference`
    pub prefers: ReadPreference,
    /// `retryReads`
    pub retry_reads: bool,
    /// `retryWrites`
    pub retry_writes: bool,
    /// `maxPoolSize`: connections to each server.
    pub pool: u32,
}

/// Where reads go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPreference {
    /// The primary alone.
    Primary,
    /// The primary, or else a secondary.
    PrimaryPreferred,
    /// A secondary alone.
    Secondary,
    /// A secondary, or else the primary.
    SecondaryPreferred,
    /// Any: all are as near.
    Nearest,
}

impl Driver {
    /// The pause before a retry (1 is the first) in nanoseconds: drawn evenly from 0 to min(cap, base·2^exponent), as the
    /// client-backpressure specification has it. `base_ms` is what the rejection said of it, if anything.
    pub fn backoff_ns(&self, retry: u32, base_ms: Option<i64>, random: &mut Random) -> u64 {
        let named = base_ms.filter(|_| self.heeds_base).and_then(|ms| u64::try_from(ms).ok());
        let base = named.map_or(nanos(BASE), |ms| ms.saturating_mul(1_000_000));
        let exponent = retry.saturating_sub(1) + self.first_exponent;
        let most = base.saturating_mul(1_u64.checked_shl(exponent).unwrap_or(u64::MAX)).min(nanos(CAP));
        random.below(most.saturating_add(1))
    }
}

impl ReadPreference {
    /// Which of some servers, as bits, it allows; bit 0 is the primary.
    pub const fn eligible(self, servers: u64) -> u64 {
        let (primary, secondaries) = (servers & 1, servers & !1);
        match self {
            Self::Primary => primary,
            Self::PrimaryPreferred if primary != 0 => primary,
            Self::Secondary | Self::PrimaryPreferred => secondaries,
            Self::SecondaryPreferred if secondaries != 0 => secondaries,
            Self::SecondaryPreferred => primary,
            Self::Nearest => servers,
        }
    }
}

/// Selects a server as the server-selection specification says: of the eligible ones that are not to be avoided, or else
/// of all eligible ones, two are drawn, and the one with fewer operations of this client (`busy`) is taken.
pub fn select(
    prefers: ReadPreference,
    servers: u64,
    avoid: u64,
    busy: impl Fn(u8) -> u32,
    random: &mut Random,
) -> u8 {
    let choice = match prefers.eligible(servers & !avoid) {
        0 => prefers.eligible(servers),
        preferred => preferred,
    };
    let count = u64::from(choice.count_ones());
    if count < 2 {
        return nth(choice, 0);
    }
    let first = random.below(count);
    // Another one: the numbers beyond the first move up by one.
    let second = random.below(count - 1);
    let second = second + u64::from(second >= first);
    let (first, second) = (nth(choice, first), nth(choice, second));
    if busy(second) < busy(first) { second } else { first }
}

/// The place of the n-th bit that is set, from 0.
fn nth(mut bits: u64, n: u64) -> u8 {
    for _ in 0..n {
        bits &= bits - 1;
    }
    // At most 64, where no bit is left.
    u8::try_from(bits.trailing_zeros()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(first_exponent: u32) -> Driver {
        Driver {
            max_retries: 2,
            first_exponent,
            heeds_base: first_exponent == 1,
            retargets: false,
            prefers: ReadPreference::Primary,
            retry_reads: true,
            retry_writes: true,
            pool: 10,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn mean_ms(driver: &Driver, retry: u32, base_ms: Option<i64>) -> f64 {
        let mut random = Random::new(7);
        let sum: u64 = (0..20_000).map(|_| driver.backoff_ns(retry, base_ms, &mut random)).sum();
        sum as f64 / 20_000.0 / 1e6
    }

    /// Measured: 48, 103 and 184 ms with 3.6.0, 98, 197 and 379 ms with 3.9.1.
    #[test]
    fn mean_backoffs_are_those_of_the_driver_versions() {
        for (exponent, means) in [(0, [50.0, 100.0, 200.0]), (1, [100.0, 200.0, 400.0])] {
            for (retry, mean) in (1..).zip(means) {
                let got = mean_ms(&driver(exponent), retry, None);
                assert!((got / mean - 1.0).abs() < 0.02, "{exponent}: retry {retry} {got}");
            }
        }
    }

    #[test]
    fn backoffs_are_capped_and_start_from_what_the_server_says_if_the_driver_heeds_it() {
        for retry in [7, 8, 31, 64, 1000] {
            let got = mean_ms(&driver(1), retry, None);
            assert!((got / 5000.0 - 1.0).abs() < 0.02, "retry {retry}: {got}");
        }
        assert!((mean_ms(&driver(1), 1, Some(10)) - 10.0).abs() < 0.2, "20 ms at most");
        assert!((mean_ms(&driver(0), 1, Some(10)) - 50.0).abs() < 1.0, "it is not heeded before 3.9");
        assert!((mean_ms(&driver(1), 1, Some(i64::MAX)) - 5000.0).abs() < 100.0);
    }

    #[test]
    fn reads_go_where_they_are_wanted_and_elsewhere_when_there_is_an_elsewhere() {
        use ReadPreference::{Nearest, Primary, PrimaryPreferred, Secondary, SecondaryPreferred};
        let mut random = Random::new(1);
        let mut seen = |prefers, avoid| {
            (0..200).fold(0_u64, |seen, _| seen | 1 << select(prefers, 0b111, avoid, |_| 0, &mut random))
        };
        for (prefers, usual) in [
            (Primary, 0b001),
            (PrimaryPreferred, 0b001),
            (Secondary, 0b110),
            (SecondaryPreferred, 0b110),
            (Nearest, 0b111),
        ] {
            assert_eq!(seen(prefers, 0), usual, "{prefers:?}");
            assert_eq!(seen(prefers, 0b111), usual, "{prefers:?}: all are to be avoided, so none is");
        }
        assert_eq!(seen(Primary, 0b001), 0b001, "nowhere else to go");
        assert_eq!(seen(PrimaryPreferred, 0b001), 0b110);
        assert_eq!(seen(Secondary, 0b010), 0b100);
        assert_eq!(seen(SecondaryPreferred, 0b110), 0b001);
        assert_eq!(seen(Nearest, 0b011), 0b100);
    }

    #[test]
    fn of_two_servers_the_idler_one_is_taken() {
        let mut random = Random::new(1);
        let busy = |server: u8| [9, 5, 0][usize::from(server)];
        let picks: Vec<u8> =
            (0..3000).map(|_| select(ReadPreference::Nearest, 0b111, 0, busy, &mut random)).collect();
        let share = |server| picks.iter().filter(|&&pick| pick == server).count();
        // Of three pairs the idlest wins two and the busiest none.
        assert_eq!(share(0), 0);
        assert!((1900..2100).contains(&share(2)), "{}", share(2));
    }
}
