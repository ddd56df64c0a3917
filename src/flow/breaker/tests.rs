use proptest::prelude::*;

use super::*;
use crate::plan::Signal;
use crate::units::Span;

const SECOND: u64 = 1_000_000_000;

/// Opens at half of at least ten within 10 s, for 60 s.
fn circuit() -> Circuit {
    cooling_down_for(60)
}

fn cooling_down_for(seconds: u64) -> Circuit {
    Circuit::new(Breaker {
        signal: Signal::Operation,
        threshold: 0.5,
        window: Span::seconds(10),
        minimum: 10,
        cool_down: Span::seconds(seconds),
    })
}

fn reply(verdict: Verdict, started_ns: u64, ended_ns: u64) -> Reply {
    Reply { verdict, started_ns, ended_ns, in_flight: 1 }
}

/// Tells it of so many endings at one time; the last change.
fn tell(circuit: &mut Circuit, verdict: Verdict, count: u32, now_ns: u64) -> Option<Change> {
    (0..count).filter_map(|_| circuit.told(&reply(verdict, now_ns, now_ns))).last()
}

/// One that has opened at 1 s.
fn open() -> Circuit {
    let mut circuit = circuit();
    tell(&mut circuit, Verdict::Rejected, 10, SECOND);
    circuit
}

#[test]
fn opens_at_its_share_of_enough_endings() {
    let mut few = circuit();
    assert_eq!(tell(&mut few, Verdict::Rejected, 9, 0), None, "nine are too few, whatever they are");
    let opened = Change { from: State::Closed, to: State::Open, at_ns: SECOND };
    assert_eq!(tell(&mut few, Verdict::Rejected, 1, SECOND), Some(opened));
    assert_eq!(few.ask(SECOND), Admission::Refuse);

    let mut half = circuit();
    tell(&mut half, Verdict::Served, 20, 0);
    assert_eq!(tell(&mut half, Verdict::Rejected, 19, 0), None, "19 of 39 are less than half");
    assert!(tell(&mut half, Verdict::Rejected, 1, 0).is_some());
}

#[test]
fn rejections_that_are_long_past_do_not_count() {
    let mut circuit = circuit();
    tell(&mut circuit, Verdict::Rejected, 9, 0);
    assert_eq!(tell(&mut circuit, Verdict::Rejected, 1, 11 * SECOND), None);
    assert_eq!(circuit.ask(11 * SECOND), Admission::Pass);
}

#[test]
fn one_probe_decides() {
    let mut circuit = open();
    assert_eq!(circuit.probe_at(), Some(61 * SECOND));
    assert_eq!(circuit.ask(61 * SECOND - 1), Admission::Refuse);
    let Admission::Probe(probe, change) = circuit.ask(61 * SECOND) else { panic!("no probe") };
    assert_eq!(change, Change { from: State::Open, to: State::HalfOpen, at_ns: 61 * SECOND });
    assert_eq!(circuit.ask(1000 * SECOND), Admission::Refuse, "as long as the probe takes");

    let again = circuit.conclude(probe, Verdict::Rejected, 62 * SECOND);
    assert_eq!((again.from, again.to), (State::HalfOpen, State::Open));
    assert_eq!(circuit.probe_at(), Some(122 * SECOND), "the cool-down begins anew");

    let Admission::Probe(probe, _) = circuit.ask(130 * SECOND) else { panic!("no probe") };
    let closed = circuit.conclude(probe, Verdict::Served, 131 * SECOND);
    assert_eq!((closed.from, closed.to), (State::HalfOpen, State::Closed));
    assert_eq!(circuit.state(), (State::Closed, 131 * SECOND));
    assert_eq!(circuit.ask(131 * SECOND), Admission::Pass);
}

#[test]
fn rejections_before_it_opened_do_not_open_it_again() {
    let mut circuit = cooling_down_for(1);
    tell(&mut circuit, Verdict::Rejected, 10, 0);
    let Admission::Probe(probe, _) = circuit.ask(SECOND) else { panic!("no probe") };
    circuit.conclude(probe, Verdict::Served, 2 * SECOND);
    assert_eq!(tell(&mut circuit, Verdict::Rejected, 9, 3 * SECOND), None, "within the same window");
    assert!(tell(&mut circuit, Verdict::Rejected, 1, 3 * SECOND).is_some());
}

#[test]
fn late_endings_of_the_time_before_change_nothing() {
    let mut circuit = open();
    assert_eq!(tell(&mut circuit, Verdict::Served, 100, 2 * SECOND), None);
    let Admission::Probe(probe, _) = circuit.ask(61 * SECOND) else { panic!("no probe") };
    assert_eq!(tell(&mut circuit, Verdict::Served, 100, 61 * SECOND), None);
    assert_eq!(circuit.state().0, State::HalfOpen, "only the probe closes it");
    circuit.conclude(probe, Verdict::Served, 62 * SECOND);
    for _ in 0..100 {
        assert_eq!(
            circuit.told(&reply(Verdict::Rejected, SECOND, 63 * SECOND)),
            None,
            "sent before it opened"
        );
    }
    assert!(tell(&mut circuit, Verdict::Rejected, 10, 63 * SECOND).is_some());
}

proptest! {
    /// Whatever happens in whatever order, there is at most one probe, nothing else goes meanwhile, and none goes before
    /// its time.
    #[test]
    fn there_is_never_a_second_probe(steps in prop::collection::vec((0_u8..4, 0_u64..30), 0..400)) {
        let mut circuit = circuit();
        let (mut now, mut probe) = (0, None);
        for (step, seconds) in steps {
            now += seconds * SECOND;
            match step {
                0 => {
                    let before = circuit.state();
                    match circuit.ask(now) {
                        Admission::Pass => prop_assert!(probe.is_none() && before.0 == State::Closed),
                        Admission::Probe(new, change) => {
                            prop_assert!(probe.is_none());
                            prop_assert!(before.0 == State::Open && now >= before.1 + 60 * SECOND);
                            prop_assert_eq!((change.from, change.to), (State::Open, State::HalfOpen));
                            probe = Some(new);
                        }
                        Admission::Refuse => prop_assert!(
                            probe.is_some() || (before.0 == State::Open && now < before.1 + 60 * SECOND)
                        ),
                    }
                }
                1 => {
                    if let Some(probe) = probe.take() {
                        let verdict = if seconds % 2 == 0 { Verdict::Served } else { Verdict::Rejected };
                        circuit.conclude(probe, verdict, now);
                    }
                }
                2 => { tell(&mut circuit, Verdict::Rejected, 4, now); }
                _ => { tell(&mut circuit, Verdict::Served, 1, now); }
            }
            prop_assert_eq!(probe.is_some(), circuit.state().0 == State::HalfOpen);
        }
    }
}
