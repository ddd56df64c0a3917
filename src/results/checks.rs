//! Sums that must add up, whatever the servers do. One that does not is a fault of ours, and makes the run fail: numbers
//! that contradict each other are not to be trusted.

use serde::Serialize;

use super::accumulated::{Accumulated, Broken};
use super::facts::{Scope, operations};
use crate::plan::{Attempts, Plan};
use crate::snapshot::Totals;

/// The driver's own housekeeping: all that may be sent outside an operation.
const HOUSEKEEPING: [&str; 2] = ["killCursors", "endSessions"];

/// What the driver sends for a transaction that nobody waits for any more.
const ABANDONED: &str = "abortTransaction";

/// One kind of sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What must hold.
    pub name: &'static str,
    /// Whether it does.
    pub ok: bool,
    /// Where it does not, with the numbers.
    pub broken: Vec<String>,
}

/// Every check of a trial that has ended.
pub(crate) fn checks(plan: &Plan, sums: &Accumulated, totals: &Totals) -> Vec<Check> {
    let mut checks = vec![
        check("offered_equals_outcomes", outcomes(plan, sums)),
        check("ended_equals_totals", ended(plan, sums, totals)),
        check("attempts_equal_totals", attempts(sums, totals)),
        check("open_operations_add_up", described(&sums.unbalanced)),
        check("intervals_follow_each_other", described(&sums.gaps)),
        check("only_housekeeping_outside_operations", orphans(plan, sums)),
    ];
    if plan.attempts == Attempts::Full {
        checks.push(check("attempts_equal_commands_plus_retries", commands(plan, sums)));
        checks.push(check("one_command_a_call", single_commands(plan, sums)));
    }
    if !plan.clients.is_empty() {
        checks.push(check("clients_add_up", clients(plan, sums, totals)));
    }
    checks
}

fn check(name: &'static str, broken: Vec<String>) -> Check {
    Check { name, ok: broken.is_empty(), broken }
}

fn measured(sums: &Accumulated) -> Vec<usize> {
    sums.measured().into_iter().flat_map(|(_, parts)| parts).collect()
}

/// Positions and titles of the operations that run.
fn named(plan: &Plan) -> impl Iterator<Item = (usize, String)> {
    operations(plan).map(|(i, _)| (i, Scope::Operation(i).title(plan)))
}

/// What was recorded of each client is what its engine counted. Operations that ended are compared one by one.
fn clients(plan: &Plan, sums: &Accumulated, totals: &Totals) -> Vec<String> {
    let every: Vec<usize> = (0..sums.segments.len()).collect();
    let broken = |(client, &counted): (usize, &u64)| {
        let whose = Scope::Client(client);
        let recorded = sums.merged_of(&every, &whose.operations(plan)).attempts;
        let name = whose.client(plan);
        (recorded != counted)
            .then(|| format!("{counted} attempts of client {name} ended, but {recorded} were recorded"))
    };
    totals.clients.iter().enumerate().filter_map(broken).collect()
}

fn outcomes(plan: &Plan, sums: &Accumulated) -> Vec<String> {
    let measured = measured(sums);
    let broken = |(i, name): (usize, String)| {
        let stats = sums.merged(&measured, Some(i));
        let (offered, resolved) = (stats.offered, stats.outcomes.sum());
        (offered != resolved)
            .then(|| format!("{offered} {name} operations were offered in the measured time, but {resolved} have an outcome"))
    };
    named(plan).filter_map(broken).collect()
}

fn ended(plan: &Plan, sums: &Accumulated, totals: &Totals) -> Vec<String> {
    let every: Vec<usize> = (0..sums.segments.len()).collect();
    let broken = |(i, name): (usize, String)| {
        let recorded = sums.merged(&every, Some(i)).outcomes.sum();
        let counted = totals.ended.get(i).copied().unwrap_or(0);
        (recorded != counted)
            .then(|| format!("{counted} {name} operations ended, but {recorded} outcomes were recorded"))
    };
    named(plan).filter_map(broken).collect()
}

fn attempts(sums: &Accumulated, totals: &Totals) -> Vec<String> {
    let recorded: u64 = sums.cells.values().map(|stats| stats.attempts).sum();
    let counted = totals.attempts;
    let broken =
        (recorded != counted).then(|| format!("{counted} attempts ended, but {recorded} were recorded"));
    broken.into_iter().collect()
}

/// Kinds that send one command a call must not send more: a retry that was taken for a command would show here. An
/// operation that found no server sends none, and one that was under way at the end counts as no call.
fn single_commands(plan: &Plan, sums: &Accumulated) -> Vec<String> {
    let every: Vec<usize> = (0..sums.segments.len()).collect();
    let calls = |operation: usize| {
        let backoff = plan.client_of(operation).map_or(plan.backoff, |client| plan.clients[client].backoff);
        u64::from(backoff.map_or(1, |backoff| backoff.max_attempts))
    };
    let broken = |(i, name): (usize, String)| {
        let stats = sums.merged(&every, Some(i));
        let (commands, calls) = (stats.commands, stats.calls + stats.outcomes.in_flight * calls(i));
        (plan.operations[i].action.is_single_command() && commands > calls)
            .then(|| format!("{name} sends one command a call, but sent {commands} in {calls} calls"))
    };
    named(plan).filter_map(broken).collect()
}

/// Each attempt that was recorded is a command's first or a retry.
fn commands(plan: &Plan, sums: &Accumulated) -> Vec<String> {
    let measured = measured(sums);
    let broken = |(i, name): (usize, String)| {
        let stats = sums.merged(&measured, Some(i));
        let (attempts, commands, retries) = (stats.attempts, stats.commands, stats.retries);
        (attempts != commands + retries).then(|| {
            format!("{name} made {attempts} attempts in the measured time, but {commands} commands and {retries} retries")
        })
    };
    named(plan).filter_map(broken).collect()
}

fn orphans(plan: &Plan, sums: &Accumulated) -> Vec<String> {
    let mut timeouts = plan.clients.iter().map(|group| &group.timeout).chain([&plan.timeout]);
    let deadline = timeouts.any(|timeout| timeout.operation.is_some());
    let known = |name: &str| HOUSEKEEPING.contains(&name) || (deadline && name == ABANDONED);
    let strangers = sums.orphans.iter().filter(|(name, _)| !known(name));
    strangers
        .map(|(name, count)| format!("{count} {name} commands were sent outside any operation"))
        .collect()
}

fn described(broken: &Broken) -> Vec<String> {
    let mut sentences = broken.described.clone();
    if broken.count > sentences.len() {
        sentences.push(format!("the same in {} more places", broken.count - sentences.len()));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::{self, cell, snapshot};

    fn sums() -> (Plan, Accumulated, Totals) {
        let plan = testing::plan();
        let mut sums = Accumulated::new(&plan);
        // Two operations due in the measured time: one ends in the same second, one in the next, after a retry.
        sums.add(&plan, &snapshot(0, 1, [((1, 0), cell(2, 1, 1, 0))], [1, 0, 0]));
        sums.add(&plan, &snapshot(1, 1, [((1, 0), cell(0, 1, 1, 1))], [0, 0, 0]));
        (plan, sums, Totals { ended: vec![2, 0, 0], attempts: 3, cut: false, ..Totals::default() })
    }

    fn broken(plan: &Plan, sums: &Accumulated, totals: &Totals) -> Vec<(&'static str, String)> {
        let checks = checks(plan, sums, totals);
        checks.into_iter().flat_map(|c| c.broken.into_iter().map(move |b| (c.name, b))).collect()
    }

    #[test]
    fn a_sound_trial_passes() {
        let (plan, sums, totals) = sums();
        assert_eq!(broken(&plan, &sums, &totals), []);
        assert_eq!(checks(&plan, &sums, &totals).len(), 8);
    }

    #[test]
    fn an_outcome_too_few_breaks_three_sums() {
        let (plan, mut sums, totals) = sums();
        sums.add(&plan, &snapshot(2, 1, [((1, 0), cell(1, 0, 0, 0))], [0, 0, 0]));
        assert_eq!(
            broken(&plan, &sums, &totals),
            [
                (
                    "offered_equals_outcomes",
                    "3 read operations were offered in the measured time, but 2 have an outcome".to_owned()
                ),
                (
                    "open_operations_add_up",
                    "from 2 s to 3 s read had 0 open operations, got 1 more, resolved 0 and had 0 left"
                        .to_owned()
                ),
            ]
        );
    }

    #[test]
    fn the_engines_own_counts_are_compared() {
        let (plan, sums, _) = sums();
        let totals = Totals { ended: vec![3, 0, 0], attempts: 4, cut: false, ..Totals::default() };
        assert_eq!(
            broken(&plan, &sums, &totals),
            [
                ("ended_equals_totals", "3 read operations ended, but 2 outcomes were recorded".to_owned()),
                ("attempts_equal_totals", "4 attempts ended, but 3 were recorded".to_owned()),
            ]
        );
    }

    #[test]
    fn attempts_must_be_commands_and_retries_where_both_are_known() {
        let (mut plan, mut sums, totals) = sums();
        sums.cells.get_mut(&(1, 0)).unwrap().retries = 2;
        assert_eq!(
            broken(&plan, &sums, &totals),
            [(
                "attempts_equal_commands_plus_retries",
                "read made 3 attempts in the measured time, but 2 commands and 2 retries".to_owned()
            )]
        );
        plan.attempts = Attempts::Light;
        assert_eq!(broken(&plan, &sums, &totals), []);
    }

    #[test]
    fn a_retry_that_is_taken_for_a_command_is_told() {
        let (plan, mut sums, totals) = sums();
        let read = sums.cells.get_mut(&(1, 0)).unwrap();
        (read.commands, read.retries) = (3, 0);
        let sentence = "read sends one command a call, but sent 3 in 2 calls".to_owned();
        assert_eq!(broken(&plan, &sums, &totals), [("one_command_a_call", sentence)]);
        // A command of an operation that was still under way has no call yet.
        sums.cells.get_mut(&(1, 0)).unwrap().outcomes.in_flight = 1;
        assert!(broken(&plan, &sums, &totals).iter().all(|(name, _)| *name != "one_command_a_call"));
    }

    #[test]
    fn gaps_and_strangers_are_told() {
        let (plan, mut sums, totals) = sums();
        let mut late = snapshot(7, 1, [], [0, 0, 0]);
        late.orphans.insert("endSessions".to_owned(), 1);
        late.orphans.insert("find".to_owned(), 4);
        sums.add(&plan, &late);
        assert_eq!(
            broken(&plan, &sums, &totals),
            [
                (
                    "intervals_follow_each_other",
                    "an interval ended at 2 s and the next started at 7 s".to_owned()
                ),
                (
                    "only_housekeeping_outside_operations",
                    "4 find commands were sent outside any operation".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn several_clients_have_to_add_up() {
        let plan = testing::groups_plan();
        let mut sums = Accumulated::new(&plan);
        sums.add(&plan, &snapshot(0, 1, [((1, 0), cell(3, 3, 3, 1)), ((1, 2), cell(2, 2, 2, 0))], [0; 3]));
        let broken = |critical: u64, batch: u64| {
            let engine =
                |ended: &[u64], attempts| Totals { ended: ended.to_vec(), attempts, ..Totals::default() };
            broken(&plan, &sums, &Totals::of_all(vec![engine(&[3, 0], critical), engine(&[2], batch)]))
        };
        assert_eq!(broken(4, 2), []);
        // All together are right, and each is not.
        let told = |text: &str| ("clients_add_up", text.to_owned());
        assert_eq!(
            broken(3, 3),
            [
                told("3 attempts of client critical ended, but 4 were recorded"),
                told("3 attempts of client batch ended, but 2 were recorded"),
            ]
        );
    }

    #[test]
    fn one_bug_does_not_fill_the_screen() {
        let (plan, mut sums, totals) = sums();
        for i in 2..100 {
            sums.add(&plan, &snapshot(i, 1, [], [i, 0, 0]));
        }
        let broken = broken(&plan, &sums, &totals);
        assert_eq!(broken.len(), 6);
        assert_eq!(broken[5].1, "the same in 93 more places");
    }
}
