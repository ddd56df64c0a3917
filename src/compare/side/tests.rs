use super::*;
use serde_json::json;

/// A trial of a run, without figures: what it was run with.
pub(crate) fn trial(number: u32, driver: &str, params: &[(&str, Option<&str>)]) -> Trial {
    let given = params.iter().map(|&(name, value)| (name.to_owned(), value.map(str::to_owned)));
    let options = [("maxAdaptiveRetries", "2"), ("retryReads", "true")];
    let set = params.iter().filter_map(|&(name, value)| Some((name, value?)));
    Trial {
        directory: "results/run".into(),
        run_id: "run".to_owned(),
        trial: number.to_string(),
        variant: "base".to_owned(),
        repeat: "1".to_owned(),
        driver: driver.to_owned(),
        server: "6.0.5".to_owned(),
        mechanism: String::new(),
        closed: false,
        params: given.collect(),
        options: options.into_iter().chain(set).map(|(n, v)| (n.to_owned(), v.to_owned())).collect(),
        plan: json!({"profile": "p", "seed": 1, "load": {"warmup": "5s"}}),
        machine: "2 × cpu (x86_64)".to_owned(),
        tool_version: "0.1.0".to_owned(),
        whole: true,
        live: "false",
        figures: Vec::new(),
    }
}

pub(crate) fn side(trials: Vec<Trial>) -> Side {
    Side { name: "side".to_owned(), trials, notes: Vec::new() }
}

fn names(side: Side) -> Vec<(String, usize)> {
    side.across().unwrap().into_iter().map(|side| (side.name, side.trials.len())).collect()
}

fn retries(number: u32, retries: Option<&str>) -> Trial {
    trial(number, "rust 3.9.1", &[("maxAdaptiveRetries", retries), ("maxPoolSize", Some("100"))])
}

#[test]
fn a_run_falls_apart_by_what_varies() {
    let run = vec![retries(1, None), retries(2, Some("5")), retries(3, None), retries(4, Some("0"))];
    let wanted = [("maxAdaptiveRetries=unset", 2), ("maxAdaptiveRetries=5", 1), ("maxAdaptiveRetries=0", 1)];
    assert_eq!(names(side(run)), wanted.map(|(name, n)| (name.to_owned(), n)));
    let drivers = vec![trial(1, "rust 3.8.2", &[]), trial(2, "rust 3.9.1", &[])];
    assert_eq!(names(side(drivers))[1], ("driver=rust 3.9.1".to_owned(), 1));
}

#[test]
fn it_must_be_one_thing_that_varies() {
    let same = side(vec![retries(1, None), retries(2, None)]).across().unwrap_err().to_string();
    assert!(same.contains("give a second side"), "{same}");
    let other = trial(2, "rust 3.8.2", &[("maxAdaptiveRetries", Some("5")), ("maxPoolSize", Some("100"))]);
    let several = side(vec![retries(1, None), other]).across().unwrap_err().to_string();
    assert!(several.contains("driver and maxAdaptiveRetries") && several.contains("side:"), "{several}");
}

#[test]
fn selections_choose_among_trials() {
    let run = || vec![retries(1, None), retries(2, Some("5")), trial(3, "rust 3.8.2", &[])];
    let numbers = |text: &str| -> Result<Vec<String>, String> {
        let selection = &parse(&format!("run:{text}")).unwrap()[0];
        let trials = chosen(selection, run()).map_err(|e| e.to_string())?;
        Ok(trials.into_iter().map(|trial| trial.trial).collect())
    };
    assert_eq!(numbers("maxAdaptiveRetries=5").unwrap(), ["2"]);
    assert_eq!(numbers("maxAdaptiveRetries=unset").unwrap(), ["1"]);
    assert_eq!(numbers("maxAdaptiveRetries=2").unwrap(), ["1", "3"], "the driver's default counts");
    assert_eq!(numbers("driver=3.9.1,trial=1").unwrap(), ["1"]);
    assert_eq!(numbers("driver=rust").unwrap().len(), 3);
    let error = numbers("maxAdaptiveRetries=7").unwrap_err();
    assert!(error.contains("there are 2, 5, unset"), "{error}");
    let error = numbers("maxAdaptiveRetry=5").unwrap_err();
    assert!(error.contains("maxPoolSize, driver, variant"), "{error}");
}

#[test]
fn a_client_is_judged_by_its_own_model() {
    let mut mixed = trial(1, "rust 3.9.1", &[]);
    mixed.closed = true;
    mixed.plan = json!({"clients": [
        {"name": "web", "model": {"open": {}}},
        {"name": "batch", "model": {"closed": {"workers": 4}}},
    ]});
    let closed = ["web/read", "web/all", "batch/all", "all"].map(|op| mixed.is_closed(op));
    assert_eq!(closed, [false, false, true, true]);
    assert!(!trial(1, "rust 3.9.1", &[]).is_closed("read"));
}
