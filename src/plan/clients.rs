//! Several clients in one load: groups with options, operations, a load and a flow of their own, against the same servers
//! at the same time.
//!
//! The plan's operations are those of all groups, one group after the other, so that an operation's position tells whose
//! it is. What an engine carries out is the plan of one of them ([`Plan::of_client`]).

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Backoff, Flow, Load, Model, OptionSetting, Plan, Stage, Timeout, Turn};
use crate::document::{Random, Stream};
use crate::units::{Rate, Span};

/// The most client groups of one load.
pub const MOST_GROUPS: usize = 16;

/// One of several clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientGroup {
    /// Its name, as in the tables' column `client`.
    pub name: String,
    /// Which of the plan's operations are its own: some in a row.
    pub operations: Range<usize>,
    /// How much it asks for. When is the same for all groups, and in the plan's load.
    pub model: Model,
    /// The connection-string options that differ from the URI's own.
    pub client: Vec<OptionSetting>,
    /// How long the application waits for a call.
    #[serde(default)]
    pub timeout: Timeout,
    /// What the application does about a failed call.
    #[serde(default)]
    pub backoff: Option<Backoff>,
    /// What the application does about rejection beside that.
    #[serde(default)]
    pub flow: Flow,
}

impl Plan {
    /// The plan of one client group alone. What it draws it draws by a seed that goes by its name, so that no other group
    /// does the same, and what has to be unique it takes turns for with the others.
    pub fn of_client(&self, index: usize) -> Self {
        let group = &self.clients[index];
        // There are MOST_GROUPS at most.
        let turn = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            seed: Random::stream(self.seed, Stream::Group, hash(&group.name)).next_u64(),
            load: Load { model: group.model.clone(), ..self.load.clone() },
            client: group.client.clone(),
            operations: self.operations[group.operations.clone()].to_vec(),
            timeout: group.timeout,
            backoff: group.backoff,
            flow: group.flow.clone(),
            clients: Vec::new(),
            turn: Some(Turn { index: turn(index), count: turn(self.clients.len()) }),
            ..self.clone()
        }
    }

    /// The plans that engines carry out: that of each client group, or this one where there are none.
    pub fn engines(&self) -> Vec<Self> {
        match self.clients.len() {
            0 => vec![self.clone()],
            count => (0..count).map(|index| self.of_client(index)).collect(),
        }
    }

    /// The client group that an operation is of; `None` where there are none.
    pub fn client_of(&self, operation: usize) -> Option<usize> {
        self.clients.iter().position(|group| group.operations.contains(&operation))
    }

    /// Whether some client groups are open and others closed. The plan's own model is closed then, as what it offers is not
    /// known.
    pub fn is_mixed(&self) -> bool {
        let open = |group: &ClientGroup| matches!(group.model, Model::Open { .. });
        self.clients.iter().any(open) && !self.clients.iter().all(open)
    }
}

/// The load of all groups together. `None` when that is more than can be had.
pub fn together(groups: &[ClientGroup]) -> Option<Model> {
    let mut open = Vec::new();
    let mut workers = 0_u32;
    let mut most_in_flight = 0_u32;
    let mut how = super::Arrivals::default();
    for group in groups {
        match &group.model {
            Model::Open { stages, arrivals, max_in_flight } => {
                open.push(stages.as_slice());
                most_in_flight = most_in_flight.saturating_add(*max_in_flight);
                how = *arrivals;
            }
            Model::Closed { workers: more } => workers = workers.saturating_add(*more),
        }
    }
    if open.len() < groups.len() {
        return Some(Model::Closed { workers });
    }
    Some(Model::Open { stages: sum(&open)?, arrivals: how, max_in_flight: most_in_flight })
}

/// Stages cut where any of them begins or ends, with the sums of their rates.
fn sum(all: &[&[Stage]]) -> Option<Vec<Stage>> {
    let mut borders = BTreeSet::from([Duration::ZERO]);
    for stages in all {
        let mut end = Duration::ZERO;
        borders.extend(stages.iter().map(|stage| {
            end += stage.length.duration();
            end
        }));
    }
    let borders: Vec<Duration> = borders.into_iter().collect();
    let pairs = borders.windows(2).map(|pair| (pair[0], pair[1]));
    pairs
        .map(|(begin, end)| {
            let (mut from, mut to) = (0.0, 0.0);
            for stages in all {
                let (a, b) = rates(stages, begin, end);
                from += a;
                to += b;
            }
            Some(Stage {
                length: Span::from(end - begin),
                from: Rate::per_second(from).ok()?,
                to: Rate::per_second(to).ok()?,
            })
        })
        .collect()
}

/// The rates at both ends of a stretch that no border lies in.
fn rates(stages: &[Stage], begin: Duration, end: Duration) -> (f64, f64) {
    let mut start = Duration::ZERO;
    for stage in stages {
        let length = stage.length.duration();
        if begin < start + length {
            let (from, to) = (stage.from.get(), stage.to.get());
            let at = |time: Duration| match from == to {
                true => from,
                false => from + (to - from) * (time - start).as_secs_f64() / length.as_secs_f64(),
            };
            return (at(begin), at(end));
        }
        start += length;
    }
    // All stages are as long as the measured time.
    let last = stages.last().map_or(0.0, |stage| stage.to.get());
    (last, last)
}

/// FNV-1a of a name.
fn hash(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::seed;
    use crate::results::testing;

    #[test]
    fn a_group_has_a_plan_of_its_own() {
        let plan = testing::groups_plan();
        let [critical, batch] = &plan.engines()[..] else { unreachable!("there are two") };
        let names = |plan: &Plan| -> Vec<String> { plan.operations.iter().map(|o| o.name.clone()).collect() };
        assert_eq!(
            (names(critical), names(batch)),
            (vec!["read".into(), "scan".into()], vec!["read".into()])
        );
        assert_eq!(batch.load.model, Model::Closed { workers: 4 });
        assert_eq!((batch.load.warmup, batch.load.duration), (plan.load.warmup, plan.load.duration));
        assert!(batch.clients.is_empty() && batch.client_of(0).is_none());
        assert_eq!((plan.client_of(1), plan.client_of(2)), (Some(0), Some(1)));
        let seeds = [seed(critical), seed(batch), seed(&plan)];
        assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2] && seeds[0] != seeds[2], "{seeds:?}");
        // Another neighbour changes nothing of what a group does.
        let mut alone = plan.clone();
        alone.clients[1].name = "other".to_owned();
        assert_eq!(seed(&alone.of_client(0)), seeds[0]);
    }

    #[test]
    fn a_plan_without_groups_is_its_own_engine() {
        let plan = testing::plan();
        assert_eq!(plan.engines(), std::slice::from_ref(&plan));
        assert!(!serde_json::to_string(&plan).unwrap().contains("\"clients\""), "as it was before");
    }

    #[test]
    fn loads_add_up_where_all_are_open() {
        let stages = |all: &[(u64, f64, f64)]| testing::plan_with_stages(all).load.model;
        let group = |model| ClientGroup { model, ..testing::groups_plan().clients[0].clone() };
        // Flat 100/s for 20 s, and 50/s for 5 s, then up to 200/s.
        let sum = together(&[
            group(stages(&[(20, 100.0, 100.0)])),
            group(stages(&[(5, 50.0, 50.0), (15, 50.0, 200.0)])),
        ]);
        let Some(Model::Open { stages: all, max_in_flight, .. }) = sum else { unreachable!("all are open") };
        let shown: Vec<_> = all.iter().map(|s| format!("{} {}-{}", s.length, s.from, s.to)).collect();
        assert_eq!(shown, ["5s 150/s-150/s", "15s 150/s-300/s"]);
        assert_eq!(max_in_flight, 2000);
        let closed = group(Model::Closed { workers: 3 });
        let mixed = together(&[group(stages(&[(20, 1.0, 1.0)])), closed.clone(), closed]);
        assert_eq!(mixed, Some(Model::Closed { workers: 6 }), "what it offers is not known");
    }

    #[test]
    fn more_than_can_be_had_is_none() {
        let most = testing::plan_with_stages(&[(1, Rate::MOST, Rate::MOST)]).load.model;
        let group = ClientGroup { model: most, ..testing::groups_plan().clients[0].clone() };
        assert_eq!(together(&[group.clone(), group]), None);
    }
}
