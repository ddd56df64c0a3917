//! One load made by several processes, on one machine or many: each makes a shard of it.
//!
//! Rates, workers and operations under way are divided; keys are not: every shard draws from the whole key space, since n
//! parts with a hot spot each would be another load. What has to be unique is dealt out in turn ([`Turn`]).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Load, Model, Plan, Stage};
use crate::units::Rate;

/// The most shards of one load.
pub const MOST_SHARDS: u32 = 1000;

/// Which part of a load this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// From 0; below the count.
    pub index: u32,
    /// How many shards there are; at least one.
    pub count: u32,
    /// When the load of all of them begins; `None` when there is one alone, which waits for nobody.
    pub start_at: Option<Timestamp>,
}

impl Shard {
    /// Whether it does for all what is done once: it prepares the data, puts overloads on, and asks the servers.
    pub const fn leads(self) -> bool {
        self.index == 0
    }

    /// Whether there are others.
    pub const fn is_part(self) -> bool {
        self.count > 1
    }

    /// Its turn among all shards.
    pub const fn turn(self) -> Turn {
        Turn { index: self.index, count: self.count }
    }

    /// Its part of a number that cannot be split further; the parts sum to the whole, and differ by one at most.
    fn part_of(self, whole: u64) -> u64 {
        let until = |shards: u32| u128::from(whole) * u128::from(shards) / u128::from(self.count);
        // A part of a u64 is one.
        u64::try_from(until(self.index + 1) - until(self.index)).unwrap_or(whole)
    }
}

/// One of several that take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// From 0; below the count.
    pub index: u32,
    /// How many take turns; at least one.
    pub count: u32,
}

impl Turn {
    /// The place among all of what is the n-th here (from 0).
    pub const fn of(self, n: u64) -> u64 {
        n.wrapping_mul(self.count as u64).wrapping_add(self.index as u64)
    }
}

/// As people write it.
impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Plan {
    /// Whether this process does what is done once for a load.
    pub fn leads(&self) -> bool {
        self.shard.is_none_or(Shard::leads)
    }

    /// Whether others make parts of the same load.
    pub fn is_part(&self) -> bool {
        self.shard.is_some_and(Shard::is_part)
    }

    /// A shard's part of this plan.
    ///
    /// # Errors
    /// When nothing would be left for one of the shards.
    pub fn divided(&self, shard: Shard) -> Result<Self, String> {
        Ok(Self { load: divided(&self.load, shard)?, shard: Some(shard), ..self.clone() })
    }

    /// The plan that these are the shards of, all of them, in their order; `None` when they are not.
    pub fn whole(shards: &[Self]) -> Option<Self> {
        let first = shards.first()?;
        let whole = Self { load: joined(shards)?, shard: None, ..first.clone() };
        let is_part = |(index, part): (u32, &Self)| {
            let shard = part.shard.filter(|shard| shard.index == index)?;
            (usize::try_from(shard.count) == Ok(shards.len()) && whole.divided(shard).as_ref() == Ok(part))
                .then_some(())
        };
        (0..).zip(shards).all(|pair| is_part(pair).is_some()).then_some(whole)
    }
}

fn divided(load: &Load, shard: Shard) -> Result<Load, String> {
    let model = match &load.model {
        Model::Open { stages, arrivals, max_in_flight } => Model::Open {
            stages: stages
                .iter()
                .map(|stage| Stage {
                    length: stage.length,
                    from: part_of_rate(stage.from, shard),
                    to: part_of_rate(stage.to, shard),
                })
                .collect(),
            arrivals: *arrivals,
            max_in_flight: part_of_count("max_in_flight", *max_in_flight, shard)?,
        },
        Model::Closed { workers } => Model::Closed { workers: part_of_count("workers", *workers, shard)? },
    };
    Ok(Load { model, ..load.clone() })
}

/// The load that these are the parts of.
fn joined(shards: &[Plan]) -> Option<Load> {
    let mut loads = shards.iter().map(|plan| &plan.load);
    let mut whole = loads.next()?.clone();
    for part in loads {
        match (&mut whole.model, &part.model) {
            (
                Model::Open { stages, max_in_flight, .. },
                Model::Open { stages: more, max_in_flight: others, .. },
            ) if stages.len() == more.len() => {
                *max_in_flight = max_in_flight.checked_add(*others)?;
                for (stage, more) in stages.iter_mut().zip(more) {
                    stage.from = sum(stage.from, more.from)?;
                    stage.to = sum(stage.to, more.to)?;
                }
            }
            (Model::Closed { workers }, Model::Closed { workers: more }) => {
                *workers = workers.checked_add(*more)?;
            }
            _ => return None,
        }
    }
    Some(whole)
}

fn sum(a: Rate, b: Rate) -> Option<Rate> {
    Rate::per_second(a.get() + b.get()).ok()
}

fn part_of_count(name: &str, whole: u32, shard: Shard) -> Result<u32, String> {
    if whole < shard.count {
        return Err(format!(
            "{name} = {whole} cannot be divided among {} shards: one of them would have none; give at least {} or fewer \
             shards",
            shard.count, shard.count
        ));
    }
    // A part of a u32 is one.
    Ok(u32::try_from(shard.part_of(whole.into())).unwrap_or(whole))
}

/// A floating-point number is a whole number of its smallest steps. Dividing those makes parts whose sum is the rate to the
/// last bit, in whichever order they are added.
fn part_of_rate(whole: Rate, shard: Shard) -> Rate {
    /// The bits of an f64 that hold its digits; the leading one is implied.
    const DIGITS: u32 = f64::MANTISSA_DIGITS - 1;
    let rate = whole.get();
    let fraction = rate.to_bits() & ((1 << DIGITS) - 1);
    let steps = if rate.is_normal() { fraction | (1 << DIGITS) } else { fraction };
    #[expect(clippy::cast_precision_loss, reason = "53 bits are just what an f64 holds exactly")]
    let (step, part) = (rate / steps as f64, shard.part_of(steps) as f64);
    // Between nothing and the whole, so it is in bounds.
    Rate::per_second(step * part).unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing;
    use proptest::prelude::*;

    fn shards(count: u32) -> impl Iterator<Item = Shard> {
        (0..count).map(move |index| Shard { index, count, start_at: None })
    }

    #[test]
    fn workers_are_dealt_out_and_none_goes_without() {
        let workers = |whole, count| -> Result<Vec<u32>, String> {
            let plan = testing::closed_plan(whole);
            shards(count)
                .map(|shard| match plan.divided(shard)?.load.model {
                    Model::Closed { workers } => Ok(workers),
                    Model::Open { .. } => unreachable!("it was closed"),
                })
                .collect()
        };
        assert_eq!(workers(10, 4), Ok(vec![2, 3, 2, 3]));
        assert_eq!(workers(4, 4), Ok(vec![1; 4]));
        assert_eq!(workers(7, 1), Ok(vec![7]));
        let refused = workers(3, 4).unwrap_err();
        assert!(refused.contains("workers = 3") && refused.contains("4 shards"), "{refused}");
        let mut open = testing::plan();
        let Model::Open { max_in_flight, .. } = &mut open.load.model else { unreachable!("it is open") };
        *max_in_flight = 3;
        let refused = open.divided(Shard { index: 0, count: 4, start_at: None }).unwrap_err();
        assert!(refused.contains("max_in_flight = 3"), "{refused}");
    }

    #[test]
    fn a_whole_is_made_of_all_its_parts_and_of_no_others() {
        let plan = testing::overload_plan();
        let parts: Vec<Plan> = shards(3).map(|shard| plan.divided(shard).unwrap()).collect();
        assert_eq!(Plan::whole(&parts), Some(plan.clone()));
        assert_eq!(Plan::whole(&parts[..2]), None, "one is missing");
        assert_eq!(Plan::whole(&[parts[1].clone(), parts[0].clone(), parts[2].clone()]), None, "their order");
        let mut other = parts.clone();
        other[1].seed += 1;
        assert_eq!(Plan::whole(&other), None, "another seed");
        let mut other = parts;
        other[2] = plan.divided(Shard { index: 2, count: 4, start_at: None }).unwrap();
        assert_eq!(Plan::whole(&other), None, "another division");
        assert_eq!(Plan::whole(std::slice::from_ref(&plan)), None, "no shard at all");
        let only = Shard { index: 0, count: 1, start_at: None };
        assert_eq!(Plan::whole(&[plan.divided(only).unwrap()]), Some(plan));
    }

    #[test]
    fn shards_take_turns() {
        let shard = |index| Shard { index, count: 3, start_at: None };
        let turns: Vec<u64> = (0..3).flat_map(|n| [0, 1, 2].map(|i| shard(i).turn().of(n))).collect();
        assert_eq!(turns, (0..9).collect::<Vec<u64>>());
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_whole_exactly(
            from in 1e-9_f64..=Rate::MOST, to in 1e-9_f64..=Rate::MOST, count in 1..=MOST_SHARDS,
            extra in 0_u32..100_000,
        ) {
            let rate = |r| Rate::per_second(r).unwrap();
            let mut plan = testing::plan_with_stages(&[(1, 1.0, 1.0)]);
            if let Model::Open { stages, max_in_flight, .. } = &mut plan.load.model {
                (stages[0].from, stages[0].to) = (rate(from), rate(to));
                *max_in_flight = count + extra;
            }
            let parts: Vec<Plan> = shards(count).map(|shard| plan.divided(shard).unwrap()).collect();
            let joined = joined(&parts).unwrap();
            prop_assert_eq!(&joined, &plan.load);
            for part in &parts {
                let Model::Open { stages, .. } = &part.load.model else { unreachable!("it is open") };
                let fair = from / f64::from(count);
                prop_assert!((stages[0].from.get() / fair - 1.0).abs() < 1e-9);
            }
        }

        #[test]
        fn parts_of_workers_differ_by_one_at_most(workers in 1_u32..100_000, count in 1..=MOST_SHARDS) {
            prop_assume!(workers >= count);
            let parts: Vec<u64> = shards(count).map(|shard| shard.part_of(workers.into())).collect();
            prop_assert_eq!(parts.iter().sum::<u64>(), u64::from(workers));
            prop_assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1);
        }
    }
}
