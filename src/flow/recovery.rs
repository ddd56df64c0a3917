//! How long it takes to be rid of a backlog.

use std::time::Duration;

/// How long a backlog lasts when operations are taken out as fast as the servers bear while others go on arriving:
/// backlog ÷ (capacity − arrival), both per second. `None` when it never ends, because at least as many arrive as are
/// served, or would outlast what a [`Duration`] holds.
#[expect(clippy::cast_precision_loss, reason = "an estimate needs no more than 53 bits of a backlog")]
pub fn time_to_recover(backlog: u64, capacity: f64, arrival: f64) -> Option<Duration> {
    let spare = capacity - arrival;
    match backlog {
        0 => Some(Duration::ZERO),
        _ if spare > 0.0 => Duration::try_from_secs_f64(backlog as f64 / spare).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_count_against_the_capacity() {
        // Two hours of 15 000/s at 20 000/s: an hour and a half if nothing more came, six hours if it does.
        let backlog = 2 * 3600 * 15_000;
        assert_eq!(time_to_recover(backlog, 20_000.0, 0.0), Some(Duration::from_secs(5400)));
        assert_eq!(time_to_recover(backlog, 20_000.0, 15_000.0), Some(Duration::from_secs(6 * 3600)));
        assert_eq!(time_to_recover(backlog, 20_000.0, 20_000.0), None);
        assert_eq!(time_to_recover(1, 1.0, f64::NAN), None);
        assert_eq!(time_to_recover(0, 1.0, 2.0), Some(Duration::ZERO), "there is nothing to be rid of");
    }
}
