use std::path::PathBuf;

use super::*;
use crate::client::merge::resolve_options;
use crate::client::uri::Uri;
use crate::plan::Driver;
use crate::plan::timeline::segments;
use crate::results::testing;
use crate::trial::Keeping;

fn first(plan: Plan) -> Setup {
    let uri = Uri::parse("mongodb://h/?maxPoolSize=7").unwrap();
    let set =
        |name: &str, value: &str, from| OptionSetting { name: name.into(), value: Some(value.into()), from };
    let options = [set("retryReads", "false", OptionSource::Profile)];
    Setup {
        clients: Vec::new(),
        target: resolve_options(&uri, &options, Some("overdrive-1"), &Driver::built_in()).unwrap(),
        plan: Arc::new(plan),
        place: Place::ONLY,
        variant: "base".to_owned(),
        params: vec![
            ("retryReads".to_owned(), Some("false".to_owned())),
            ("load.rate".to_owned(), Some("100/s".to_owned())),
        ],
        knobs: Vec::new(),
        keeping: Arc::new(Keeping::new(PathBuf::new(), None, String::new())),
        notes: vec!["something about the first".to_owned()],
        lab: None,
        stub: None,
    }
}

fn after(first: &Setup, turns: &[Turn], seconds: u64) -> Result<Setup, String> {
    let mut stand = Stand::of(&first.target);
    let now = stand.clone();
    turns.iter().for_each(|&turn| stand.turn(turn, &now, false));
    setup(first, &stand, Place { trial: 2, variant: 0, repeat: 1 }, Duration::from_secs(seconds))
}

fn knob<'a>(setup: &'a Setup, name: &str) -> Option<&'a str> {
    setup.knobs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

#[test]
fn knobs_stand_where_the_options_are() {
    let first = first(testing::overload_plan());
    let mut stand = Stand::of(&first.target);
    // The driver's own defaults.
    assert_eq!((stand.retries, stand.retargeting), (2, false));
    for turn in [Turn::FewerRetries, Turn::FewerRetries, Turn::FewerRetries, Turn::Retargeting] {
        stand.turn(turn, &Stand::of(&first.target), false);
    }
    assert_eq!((stand.retries, stand.retargeting), (0, true), "there is nothing below none");
    let changes = stand.changes(&Stand::of(&first.target), &first.plan);
    assert_eq!(changes, "maxAdaptiveRetries 2 to 0, enableOverloadRetargeting false to true");
}

#[test]
fn the_overload_is_switched_against_what_is() {
    let stand = Stand::of(&first(testing::overload_plan()).target);
    let turned = |now: &Stand, pushed| {
        let mut stand = now.clone();
        stand.turn(Turn::Overload, now, pushed);
        stand
    };
    let (off, on) = (turned(&stand, true), turned(&stand, false));
    assert_eq!((off.pushing(), on.pushing()), (Pushing::Off, Pushing::On));
    assert_eq!((turned(&off, false).pushing(), turned(&on, true).pushing()), (Pushing::On, Pushing::Off));
    // Back before anything was done about it, the timeline goes on.
    let mut back = on;
    back.turn(Turn::Overload, &stand, false);
    assert_eq!(back, stand);
}

#[test]
fn a_live_trial_ends_when_the_first_would_have() {
    // Warm-up 2 s, 9 s measured, an overload from 5 s to 8 s after Go.
    let first = first(testing::overload_plan());
    let next = after(&first, &[Turn::MoreRetries], 3).unwrap();
    let load = &next.plan.load;
    assert!(next.plan.live);
    assert_eq!((load.warmup, load.duration), (Span::seconds(5), Span::seconds(3)));
    // It begins at 3 s: the overload is on from 2 s to 5 s of its own time.
    let on = on_time(load, &next.plan.overloads[0]).map(|(on, off)| [on, off].map(|ns| ns / 1_000_000_000));
    assert_eq!(on, Some([2, 5]));
    let names: Vec<String> = segments(&next.plan).into_iter().map(|segment| segment.name).collect();
    assert_eq!(names, ["transition", "measure", "cooldown"]);
    let late = after(&first, &[Turn::MoreRetries], 5).map(|_| ()).unwrap_err();
    assert!(late.contains("too late") && late.contains("5s") && late.contains("2s"), "{late}");
}

#[test]
fn an_overload_that_is_switched_on_lasts() {
    let first = first(testing::overload_plan());
    let on = after(&first, &[Turn::Overload], 2).unwrap();
    // Transition, 4 s measured, and as long as the load may go on after that.
    assert_eq!(on_time(&on.plan.load, &on.plan.overloads[0]), Some((0, 14_000_000_000)));
    assert_eq!(knob(&on, "overload"), Some("on"));
    let mut stand = Stand::of(&first.target);
    stand.turn(Turn::Overload, &Stand::of(&first.target), true);
    let off = setup(&first, &stand, Place::ONLY, Duration::from_secs(2)).unwrap();
    assert!(off.plan.overloads.is_empty());
    assert_eq!((knob(&off, "overload"), &*off.variant), (Some("off"), "live overload=off"));
}

#[test]
fn options_change_and_others_stay_with_who_decided_them() {
    let first = first(testing::overload_plan());
    let next = after(&first, &[Turn::MoreRetries, Turn::Retargeting], 2).unwrap();
    let option = |name: &str| {
        let option = next.target.options.iter().find(|option| option.name == name).unwrap();
        (option.value.as_str(), option.from)
    };
    assert_eq!(option("maxAdaptiveRetries"), ("3", OptionSource::Vary));
    assert_eq!(option("enableOverloadRetargeting"), ("true", OptionSource::Vary));
    assert_eq!(option("retryReads"), ("false", OptionSource::Profile));
    assert_eq!(option("maxPoolSize"), ("7", OptionSource::Uri));
    assert_eq!(option("appName"), ("overdrive-1", OptionSource::Overdrive));
    assert_eq!(next.variant, "live maxAdaptiveRetries=3 enableOverloadRetargeting=true");
    assert_eq!(knob(&next, "maxAdaptiveRetries"), Some("3"));
    assert_eq!(next.params, first.params, "knobs that nobody had set get no column");
    let faster = after(&first, &[Turn::MoreLoad], 2).unwrap();
    assert_eq!(faster.params[1], ("load.rate".to_owned(), Some("125/s".to_owned())));
    assert_eq!(faster.notes[0], "something about the first");
    // There and back again is nothing new.
    let back = after(&first, &[Turn::MoreRetries, Turn::FewerRetries], 2).unwrap();
    assert_eq!((&*back.variant, &back.target), ("live base", &first.target));
}

#[test]
fn stages_go_on_where_they_were() {
    // 10 s at 100/s, then up to 300/s in 10 s; the live trial is measured from 15 s on.
    let first = first(testing::plan_with_stages(&[(10, 100.0, 100.0), (10, 100.0, 300.0)]));
    let stages = |turns: &[Turn]| {
        let next = after(&first, turns, 10).unwrap();
        let Model::Open { stages, .. } = &next.plan.load.model else { panic!("the model stays") };
        let all = stages.iter().map(|s| (s.length, s.from.get(), s.to.get()));
        (all.collect::<Vec<_>>(), knob(&next, "rate").unwrap().to_owned())
    };
    assert_eq!(stages(&[Turn::Retargeting]), (vec![(Span::seconds(5), 200.0, 300.0)], "x1.000".to_owned()));
    assert_eq!(stages(&[Turn::MoreLoad]), (vec![(Span::seconds(5), 250.0, 375.0)], "x1.250".to_owned()));
    assert_eq!(stages(&[Turn::LessLoad]), (vec![(Span::seconds(5), 160.0, 240.0)], "x0.800".to_owned()));
}

#[test]
fn a_step_of_the_load_is_always_felt() {
    let workers = [(1, 1), (1, -1), (3, 1), (10, 1), (10, -1), (100, 5), (100_000, 3)];
    assert_eq!(
        workers.map(|(workers, steps)| stepped_workers(workers, steps)),
        [2, 1, 4, 13, 8, 305, 100_000]
    );
    let rate = |rate, steps| stepped(Rate::per_second(rate).unwrap(), steps).map(Rate::get);
    assert_eq!([rate(1000.0, 2), rate(60.0, 1), rate(0.5, -1)], [Ok(1560.0), Ok(75.0), Ok(0.4)]);
    assert!(rate(9e6, 1).is_err(), "beyond what a rate can be");
    let first = first(testing::closed_plan(10));
    let next = after(&first, &[Turn::MoreLoad], 2).unwrap();
    assert_eq!((knob(&next, "workers"), &*next.variant), (Some("13"), "live workers=13"));
    assert!(matches!(next.plan.load.model, Model::Closed { workers: 13 }));
}
