//! Plans in words.

use insta::assert_snapshot;

use super::*;
use crate::plan::client::OptionSource;
use crate::profile::estimate::doubts;
use crate::profile::{Overrides, Profile, resolve};

fn described(name: &str, sets: &[(&str, &str)]) -> String {
    let any = |name: &str, _: Option<&str>| Ok(name.to_owned());
    let sets = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let profile = Profile::open(name, &any).unwrap();
    let plan = resolve(&profile, &Overrides { sets, ..Overrides::default() }, &any).unwrap();
    describe(&plan, None, &doubts(&plan, Options::default()))
}

#[test]
fn an_open_plan() {
    assert_snapshot!(described("quickstart", &[("maxAdaptiveRetries", "5"), ("appName", "unset")]), @r"
    quickstart: A first look: reads, updates and pings at 400/s, and servers that shed what is beyond 250/s for 8 s in the middle

    load
      open: Poisson arrivals, at most 10000 operations in flight
      400/s for 25s
      warm-up 5s, measured 25s, cool-down at most 30s
      1000 documents in overdrive.load
      seed 42

    operations: about 10000 offered while measured
      read  find_one              60.0 %  about 6000
      bump  update_one            30.0 %  about 3000
      ping  run_command           10.0 %  about 1000

    connection-string options
      maxPoolSize = 100  (from profile)
      maxAdaptiveRetries = 5  (from --set)
      appName taken away  (from --set)

    overload
      overload at 8s for 8s, on all members: rejects requests beyond 250/s (burst 1s)

    estimate, while every attempt is rejected
      400/s × (1 ms service + 3100 ms backoff over 5 retries) = about 1240 operations under way
      max_in_flight = 10000, maxPoolSize = 100 (an operation that backs off holds no connection)
    ");
}

#[test]
fn a_closed_plan_with_doubts() {
    assert_snapshot!(described("primary-preferred", &[("workers", "20"), ("maxPoolSize", "unset"), ("duration", "9s")]), @r"
    primary-preferred: Reads that prefer the primary while the primary alone sheds load: do retries go elsewhere?

    load
      closed: 20 workers, each starts its next operation when the last has ended
      warm-up 5s, measured 9s, cool-down at most 30s
      5000 documents in overdrive.load
      seed 42

    operations
      read  find_one              90.0 %
      bump  update_one            10.0 %

    connection-string options
      maxPoolSize taken away  (from --set)
      readPreference = primaryPreferred  (from profile)
      maxAdaptiveRetries = 2  (from profile)
      enableOverloadRetargeting = true  (from profile)

    overload
      primary_sheds at 10s for 10s, on the primary: rejects 70 % of find and update (code 462)

    warning: maxPoolSize is not set: unless the connection string sets it, the driver opens 10 connections per server, and the load may queue in the client
    warning: the overload primary_sheds is never on: it lasts 10s from 10s on, and the load is over after 9s of measured time
    ");
}

#[test]
fn a_staleness_probe() {
    let text = described("ycsb-c", &[("staleness.every", "100ms")]);
    let part = text.split("\n\n").find(|part| part.starts_with("staleness")).unwrap();
    assert_snapshot!(part, @r"
    staleness probe
      every 100ms a heartbeat in overdrive.overdrive.heartbeat and a read of it from each member
    ");
}

#[test]
fn more_than_may_be_under_way() {
    let text = described(
        "tests/data/every-kind.toml",
        &[("load.max_in_flight", "50"), ("overload.everything.for", "1s")],
    );
    assert_snapshot!(text, @r"
    every-kind: Every kind of operation and every generator once: for tests, not for measuring

    load
      open: even arrivals, at most 50 operations in flight
      50/s for 2s
      50/s to 200/s over 2s
      warm-up 500ms, measured 4s, cool-down at most 5s
      200 documents in overdrive_test.every_kind
      seed 42

    operations: about 350 offered while measured
      find_one             find_one              16.7 %  about 58
      find                 find                   5.6 %  about 19
      aggregate            aggregate              5.6 %  about 19
      count                count                  5.6 %  about 19
      distinct             distinct               5.6 %  about 19
      insert_one           insert_one             5.6 %  about 19
      insert_many          insert_many            5.6 %  about 19
      update_one           update_one             5.6 %  about 19
      update_many          update_many            5.6 %  about 19
      replace_one          replace_one            5.6 %  about 19
      delete_one           delete_one             5.6 %  about 19
      delete_many          delete_many            0.0 %  about 0
      find_one_and_update  find_one_and_update    5.6 %  about 19
      bulk_write           bulk_write             0.0 %  about 0
      transaction          transaction            5.6 %  about 19
      create_collection    create_collection      5.6 %  about 19
      drop                 drop                   5.6 %  about 19
      run_command          run_command            5.6 %  about 19

    connection-string options
      maxPoolSize = 50  (from profile)
      retryReads = true  (from profile)
      readPreference = primary  (from profile)
      compressors = zstd,zlib  (from profile)

    overload
      fail_command at 1s for 500ms, on all members: rejects 100 % of find, getMore, aggregate, distinct, count, insert, update, delete, findAndModify, bulkWrite, create and drop (code 462)
      everything at -250ms for 1s, on members 0, 2: rejects 25 % of find and ping (code 433)

    estimate, while every attempt is rejected
      200/s × (1 ms service + 300 ms backoff over 2 retries) = about 60 operations under way
      max_in_flight = 50, maxPoolSize = 50 (an operation that backs off holds no connection)

    warning: about 60 operations would be under way while everything is rejected, more than max_in_flight = 50
    ");
}

#[test]
fn where_it_would_run_and_what_is_in_effect_there() {
    let any = |name: &str, _: Option<&str>| Ok(name.to_owned());
    let profile = Profile::open("primary-preferred", &any).unwrap();
    let plan = resolve(&profile, &Overrides::default(), &any).unwrap();
    let option = |name, value: &str, from| ResolvedOption { name, value: value.to_owned(), from };
    let options = [
        option("maxConnecting", "2", OptionSource::Default),
        option("maxPoolSize", "7", OptionSource::Uri),
        option("maxAdaptiveRetries", "5", OptionSource::Uri),
    ];
    let destination = Destination { deployment: "a.example, b.example:27018", options: &options };
    let known = Options(Some(&options));
    assert_eq!(doubts(&plan, known), Vec::<String>::new(), "the connection string sets maxPoolSize");
    assert_eq!(doubts(&plan, Options(Some(&options[..1]))).len(), 1, "here nobody does");
    let text = describe(&plan, Some(destination), &[]);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    for line in [
        "a.example, b.example:27018",
        "maxPoolSize = 7  (from URI)",
        "maxAdaptiveRetries = 5  (from URI)",
        "maxConnecting = 2  (from default)",
    ] {
        assert!(lines.contains(&line), "{line}: {text}");
    }
    assert!(text.contains("maxPoolSize = 7 (an operation that backs off") && text.contains("over 5 retries"));
}

/// The part about the application, and warnings.
fn application(name: &str, sets: &[(&str, &str)]) -> String {
    let text = described(name, sets);
    let wanted = |part: &&str| part.starts_with("application") || part.starts_with("warning");
    text.split("\n\n").filter(wanted).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_the_application_does() {
    assert_snapshot!(application("ycsb-a", &[
        ("timeout.operation", "100ms"),
        ("timeout.max_time", "50ms"),
        ("flow.backoff", "fixed"),
        ("flow.budget", "token_bucket"),
        ("flow.limit", "aimd"),
        ("flow.limit.once_per_round_trip", "true"),
        ("flow.breaker.threshold", "0.5%"),
        ("flow.when_full", "spool"),
    ]), @r"
    application
      waits 100ms for a call, then drops it, and the driver its connection
      tells servers to give up what is no write after 50ms (maxTimeMS)
      calls up to 3 times in all, 100ms apart
      takes a token for each further call out of a bucket of 1000, and puts 0.1 back for each of the operations that succeeds
      has 10 operations under way at first, then from 1 to 200 (aimd: up by 1 after a full window of operations without a rejection, times 0.5 at a rejection, once per round trip)
      stops sending for 5s when 0.5 % of at least 20 operations within 10s were rejected, then tries one operation
      lets up to 64 arrivals wait in a queue; further ones go to the spool
      spools up to 64MiB on disk, in files of 8MiB, and sends at most 1000/s of it later
    warning: timeout.max_time = 50ms is not sent with update: the driver has no such option for writes
    ");
    assert_snapshot!(application("ycsb-a", &[
        ("timeout.operation", "100ms"),
        ("timeout.on_timeout", "read_in_background"),
        ("timeout.max_time", "30h"),
        ("flow.backoff", "server_guided"),
        ("flow.budget", "throttle"),
        ("flow.limit", "gradient"),
        ("flow.limit.signal", "attempt"),
        ("flow.breaker", "on"),
        ("flow.queue", "5"),
    ]), @r"
    application
      waits 100ms for a call, then lets its reply come in the background for 1s, to keep the connection
      tells servers to give up what is no write after 30h (maxTimeMS)
      calls up to 3 times in all, after pauses (server_guided, base 100ms, cap 10s)
      leaves out calls by itself, to make no more than 2 for each that was accepted (operations of the last 2m)
      has 10 operations under way at first, then from 1 to 200 (gradient: less when round trips of attempts take more than 1.5 times the shortest of 1m, 0.2 of the way at a time)
      stops sending for 5s when 50 % of at least 20 operations within 10s were rejected, then tries one operation
      lets up to 5 arrivals wait in a queue; the next one waits before the queue, and counts from when it was due
    warning: timeout.max_time = 30h is not sent with update: the driver has no such option for writes
    ");
    assert_snapshot!(application("ycsb-c", &[
        ("timeout.max_time", "600h"),
        ("flow.budget", "token_bucket"),
        ("flow.when_full", "drop"),
    ]), @r"
    application
      takes a token for each further call out of a bucket of 1000, and puts 0.1 back for each of the operations that succeeds
      lets up to 64 arrivals wait in a queue; further ones are dropped, and counted
    warning: timeout.max_time = 600h is longer than the longest that servers take (2147483647ms), so they are told nothing
    warning: flow.budget is a token bucket for further calls, and without flow.backoff there are none
    ");
}
