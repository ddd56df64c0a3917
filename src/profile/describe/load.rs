//! The load and its operations in words.

use std::fmt::Write;

use crate::plan::{Arrivals, Model, Plan, Stage};

use super::section;

/// How much is asked for, and when.
pub fn load(plan: &Plan) -> String {
    section("load", &[how_much(plan), when(plan)].concat())
}

/// How much is asked for.
pub fn how_much(plan: &Plan) -> Vec<String> {
    match &plan.load.model {
        Model::Closed { workers } => {
            vec![format!("closed: {workers} workers, each starts its next operation when the last has ended")]
        }
        Model::Open { stages, arrivals, max_in_flight } => {
            let arrivals = match arrivals {
                Arrivals::Poisson => "Poisson arrivals",
                Arrivals::Even => "even arrivals",
            };
            let first = format!("open: {arrivals}, at most {max_in_flight} operations in flight");
            std::iter::once(first).chain(stages.iter().map(stage)).collect()
        }
    }
}

/// When, and on what.
pub fn when(plan: &Plan) -> Vec<String> {
    let (load, data) = (&plan.load, &plan.data);
    vec![
        format!("warm-up {}, measured {}, cool-down at most {}", load.warmup, load.duration, load.cooldown),
        format!("{} documents in {}.{}", data.documents, data.database, data.collection),
        format!("seed {}", plan.seed),
    ]
}

fn stage(stage: &Stage) -> String {
    if stage.from == stage.to {
        format!("{} for {}", stage.from, stage.length)
    } else {
        format!("{} to {} over {}", stage.from, stage.to, stage.length)
    }
}

/// How many operations the stages offer.
fn offered(plan: &Plan) -> Option<f64> {
    let Model::Open { stages, .. } = &plan.load.model else { return None };
    let of = |s: &Stage| (s.from.get() + s.to.get()) / 2.0 * s.length.duration().as_secs_f64();
    Some(stages.iter().map(of).sum())
}

/// The mix.
pub fn operations(plan: &Plan) -> String {
    let total: f64 = plan.operations.iter().map(|op| f64::from(op.weight)).sum();
    let offered = offered(plan);
    let width = plan.operations.iter().map(|op| op.name.chars().count()).max().unwrap_or(0);
    let lines: Vec<String> = plan
        .operations
        .iter()
        .map(|op| {
            let share = f64::from(op.weight) / total;
            let mut line = format!("{:width$}  {:<19}  {:>5.1} %", op.name, op.action.kind(), share * 100.0);
            if let Some(offered) = offered {
                // Writing to a String cannot fail.
                let _ = write!(line, "  about {:.0}", share * offered);
            }
            line
        })
        .collect();
    match offered {
        Some(offered) => section(&format!("operations: about {offered:.0} offered while measured"), &lines),
        None => section("operations", &lines),
    }
}
