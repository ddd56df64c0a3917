//! Several clients become one plan: each with what it says, and the time that all of them share.

use super::{DURATION, OverrideErrors, check, load, plan};
use crate::plan::clients::together;
use crate::plan::{ClientGroup, Flow, Load, Plan, Timeout};
use crate::profile::load::{ModelName, WrittenLoad};
use crate::profile::overrides::Draft;
use crate::units::{Rate, Span};

/// The plan of all clients together.
pub fn resolve(mut draft: Draft) -> Result<Plan, OverrideErrors> {
    let duration = duration(&draft);
    let clients = std::mem::take(&mut draft.clients);
    let mut errors = Vec::new();
    if draft.profile.driver.is_some() {
        errors.push(
            "several clients make their load in one process, with the driver that overdrive is built with: leave the driver \
             out, or give each client a run of its own"
                .to_owned(),
        );
    }
    let (mut groups, mut operations) = (Vec::new(), Vec::new());
    for (name, client) in clients {
        let own = client.profile;
        let written = WrittenLoad { duration: Some(duration), ..own.load.clone() };
        let whose = format!("clients.{name}.");
        let loaded = load(written).and_then(|load| check(&own, &load.model, &whose).map(|()| load));
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(OverrideErrors(mistakes)) => {
                errors.extend(mistakes.into_iter().map(|mistake| format!("client {name}: {mistake}")));
                continue;
            }
        };
        if own.flow.spool.is_some() {
            errors.push(format!(
                "client {name}: several clients cannot spool, as a spool is sent later by one client: write when_full = \
                 \"drop\" or \"block\""
            ));
        }
        let first = operations.len();
        operations.extend(own.operations);
        groups.push(ClientGroup {
            name,
            operations: first..operations.len(),
            model: loaded.model,
            client: own.client,
            timeout: own.timeout,
            backoff: own.backoff,
            flow: own.flow,
        });
    }
    let model = together(&groups);
    if model.is_none() {
        errors
            .push(format!("the clients ask for more than {:.0} operations per second together", Rate::MOST));
    }
    let (Some(model), true) = (model, errors.is_empty()) else { return Err(OverrideErrors(errors)) };
    // They are the same for all of them.
    let written = WrittenLoad { duration: Some(duration), model: None, ..draft.profile.load.clone() };
    let times = load(written)?;
    Ok(Plan {
        operations,
        timeout: Timeout::default(),
        flow: Flow::default(),
        backoff: None,
        clients: groups,
        ..plan(draft, Load { model, ..times })
    })
}

/// How long all of them are measured: what the profile says, or else the longest that stages last.
fn duration(draft: &Draft) -> Span {
    let said = draft.profile.load.duration.or(draft.profile.load.staged());
    let staged = draft.clients.iter().filter_map(|(_, client)| client.profile.load.staged()).max();
    said.or(staged).unwrap_or(DURATION)
}

/// What to say where stages of some clients are over before the measured time is.
pub fn stretched(draft: &Draft) -> Option<String> {
    let duration = duration(draft);
    let over = draft.clients.iter().find_map(|(name, client)| {
        let load = &client.profile.load;
        let open = load.model != Some(ModelName::Closed);
        load.staged().filter(|staged| open && *staged < duration).map(|staged| (name, staged))
    });
    over.map(|(name, staged)| {
        format!(
            "the stages of client {name} last {staged} together and the measured time {duration}: the rate that the last one \
             ends with goes on until then"
        )
    })
}
