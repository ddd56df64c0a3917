//! What varies in a run: each variant as a plan with its target, and the trials' order.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::shard;
use crate::cache;
use crate::calibration::{Calibration, Key};
use crate::cli::RunArgs;
use crate::client::merge::{APP_NAME, Resolved, resolve_options};
use crate::client::uri::Uri;
use crate::command::target::check_tls_files;
use crate::command::{UsageError, resolve_plan, stub};
use crate::driver;
use crate::plan::timeline::on_time;
use crate::plan::{ClientGroup, Flow, OptionSetting, Plan};
use crate::profile::Profile;
use crate::profile::estimate::{Options, doubts_of_each};
use crate::variants::{Place, Variant, Varied, variants};

/// What a trial takes beside its load, roughly: connecting, the data, the last retries.
const AROUND: Duration = Duration::from_secs(3);

/// Names of what is set or varies, with values; `None` where it is taken away or not set.
pub type Params = Vec<(String, Option<String>)>;

/// A variant, with nothing left to decide.
pub struct Prepared {
    /// Its values and its name.
    pub variant: Variant,
    /// Its plan as it was written.
    pub written: Plan,
    /// The same without overloads that are never on: what is never on needs no leave, no preparation, and no note.
    pub plan: Arc<Plan>,
    /// Where it runs, with all options in place.
    pub target: Resolved,
    /// The same for each client, where there are several.
    pub clients: Vec<Resolved>,
    /// What people should read beside its numbers.
    pub notes: Vec<String>,
}

/// Every variant that the command line asks for, on this deployment.
///
/// # Errors
/// Whatever is wrong with one of them.
pub fn prepare(profile: &Profile, args: &RunArgs, uri: &Uri) -> Result<Vec<Prepared>, UsageError> {
    refuse_twice(&args.vary)?;
    variants(&args.vary).into_iter().map(|variant| prepare_one(profile, args, uri, variant)).collect()
}

/// Whether nothing varies twice.
///
/// # Errors
/// What does.
pub fn refuse_twice(varied: &[Varied]) -> Result<(), UsageError> {
    for (i, later) in varied.iter().enumerate() {
        // Options are spelt with and without capitals.
        if varied[..i].iter().any(|earlier| earlier.key.eq_ignore_ascii_case(&later.key)) {
            return Err(UsageError::new(format!("--vary {}: it varies twice", later.key)));
        }
    }
    Ok(())
}

/// One of them.
///
/// # Errors
/// Whatever is wrong with it.
pub fn prepare_one(
    profile: &Profile,
    args: &RunArgs,
    uri: &Uri,
    variant: Variant,
) -> Result<Prepared, UsageError> {
    let (mut written, note) = resolve_plan(profile, &args.load, &variant.settings)?;
    let shard = shard::asked_for(args)?;
    if let (Some(shard), false) = (shard, written.clients.is_empty()) {
        return Err(UsageError::new(format!(
            "--shard {shard}: several clients are not divided yet: give each a profile of its own, and shard those"
        )));
    }
    if let Some(shard) = shard {
        written =
            written.divided(shard).map_err(|what| UsageError::new(format!("--shard {shard}: {what}")))?;
    }
    let mut notes = args.stub.as_ref().map_or_else(Vec::new, |script| stub::adapt(&mut written, script));
    let mut plan = written.clone();
    if let Some(driver) = plan.driver.clone() {
        driver::launch(&driver).map_err(|error| UsageError::new(format!("{error:#}")))?;
        notes.extend(driver::fit(&driver, &mut plan).map_err(UsageError::new)?);
    }
    if plan.is_part() && plan.flow != Flow::default() {
        let note =
            "each shard has a [flow] of its own: its limit, queue and budget are not divided among them";
        notes.push(note.to_owned());
    }
    plan.overloads.retain(|overload| on_time(&plan.load, overload).is_some());
    notes.extend(shard.and_then(shard::note));
    let (target, clients) = resolve_targets(uri, &plan)?;
    let doubts = doubts_of_each(&written, &options_of_each(&target, &clients));
    notes.extend(target.notices.iter().cloned().chain(note).chain(doubts).chain(beyond_this_machine(&plan)));
    Ok(Prepared { variant, written, plan: Arc::new(plan), target, clients, notes })
}

/// The options of each engine that there will be.
fn options_of_each<'a>(target: &'a Resolved, clients: &'a [Resolved]) -> Vec<Options<'a>> {
    let each = if clients.is_empty() { std::slice::from_ref(target) } else { clients };
    each.iter().map(|target| Options(Some(&target.options))).collect()
}

impl Prepared {
    /// The same on another deployment.
    ///
    /// # Errors
    /// When it does not take the options.
    pub fn retarget(&mut self, uri: &Uri) -> Result<(), UsageError> {
        (self.target, self.clients) = resolve_targets(uri, &self.plan)?;
        Ok(())
    }

    /// How long one trial of it lasts, roughly.
    fn length(&self) -> Duration {
        self.plan.load.warmup.duration() + self.plan.load.duration.duration() + AROUND
    }
}

/// What is set or varies, with its value in a variant.
pub fn params_of(target: &Resolved, plan: &Plan, variant: &Variant) -> Params {
    with_settings(target.params(&plan.client), variant)
}

/// The same of several clients. Options are spelt as what sets them, since each client may have another value.
fn params_of_clients(clients: &[Resolved], plan: &Plan, variant: &Variant) -> Params {
    let of_client = |(group, target): (&ClientGroup, &Resolved)| {
        let own = target.params(&group.client).into_iter();
        own.map(|(name, value)| (format!("clients.{}.client.{name}", group.name), value)).collect::<Vec<_>>()
    };
    with_settings(plan.clients.iter().zip(clients).flat_map(of_client).collect(), variant)
}

/// With what else a variant sets.
fn with_settings(mut params: Params, variant: &Variant) -> Params {
    for (key, value) in &variant.settings {
        let option = key.strip_prefix("client.").unwrap_or(key);
        if !params.iter().any(|(name, _)| name.eq_ignore_ascii_case(option)) {
            params.push((key.clone(), Some(value.clone())));
        }
    }
    params
}

/// What varies or is set anywhere, with each variant's value.
pub fn params(variants: &[Prepared]) -> Vec<Params> {
    let of = |Prepared { target, clients, plan, variant, .. }: &Prepared| match clients.as_slice() {
        [] => params_of(target, plan, variant),
        several => params_of_clients(several, plan, variant),
    };
    aligned(&variants.iter().map(of).collect::<Vec<_>>())
}

/// The same names in the same order in all, since they are the columns of one table.
pub fn aligned(each: &[Params]) -> Vec<Params> {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in each.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let value = |params: &[(String, Option<String>)], name: &String| {
        params.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.clone())
    };
    each.iter().map(|own| names.iter().map(|&name| (name.clone(), value(own, name))).collect()).collect()
}

/// How long these trials last, roughly.
pub fn length(variants: &[Prepared], places: &[Place]) -> Duration {
    places.iter().map(|place| variants[place.variant].length()).sum()
}

/// The connection string with all options, and that of each client where there are several. Faults that go by a name have to
/// meet all of them, so they have one name.
fn resolve_targets(uri: &Uri, plan: &Plan) -> Result<(Resolved, Vec<Resolved>), UsageError> {
    let faults_go_by_name = plan.overloads.iter().any(|overload| overload.fault.goes_by_name());
    let scope = faults_go_by_name.then(|| format!("{APP_NAME}-{:08x}", run_number(plan)));
    let resolved = |settings: &[OptionSetting]| {
        let target = resolve_options(uri, settings, scope.as_deref(), &plan.driver())?;
        check_tls_files(&target.uri)?;
        Ok::<_, anyhow::Error>(target)
    };
    let target = resolved(&plan.client).map_err(|why| UsageError::new(format!("{why:#}")))?;
    let of_client = |group: &ClientGroup| {
        resolved(&group.client).map_err(|why| UsageError::new(format!("client {}: {why:#}", group.name)))
    };
    let clients = plan.clients.iter().map(of_client).collect::<Result<_, _>>()?;
    Ok((target, clients))
}

/// A number that no other run has, and all shards of one load do: what is put on connections of this name must meet all of
/// them.
fn run_number(plan: &Plan) -> u32 {
    let Some(start_at) = plan.shard.and_then(|shard| shard.start_at) else { return rand::random() };
    let of_all = format!("{start_at} {} {} {}", plan.seed, plan.data.database, plan.data.collection);
    let digest = Sha256::digest(of_all);
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
}

/// Whether the plan asks for more than this machine was seen to make, if it was calibrated.
fn beyond_this_machine(plan: &Plan) -> Option<String> {
    match Calibration::load(&cache::directory()?, &Key::here()) {
        Ok(calibration) => calibration?.doubt(plan),
        Err(error) => Some(format!("{error:#}")),
    }
}
