//! What is said about bad profiles.

use insta::assert_snapshot;

use super::{PING, told};

#[test]
fn unknown_names_are_shown_with_the_nearest_known_one() {
    assert_snapshot!(told(r#"
descripton = "a"
[load]
rte = "5/s"
arrivals = "poison"
[op.a.find_on]
[op.b.find_one]
filtr = {}
limit = 3
[op.c.update_one]
filter = { _id = { "^Kye" = "uniform" }, n = { "^Key" = "zipfan" } }
update = { "$inc" = { n = 1 } }
[op.d]
weight = 5
[[overload]]
at = "1s"
for = "1s"
limit_request = { rate = 5 }
[flow]
backoff = 1
"#), @r#"
    error: unknown key `descripton` in a profile
     --> test.toml:2:1
      |
    2 | descripton = "a"
      | ^^^^^^^^^^ did you mean `description`?

    error: unknown key `rte` in `load`
     --> test.toml:4:1
      |
    4 | rte = "5/s"
      | ^^^ did you mean `rate`?

    error: `load.arrivals` cannot be 'poison'
     --> test.toml:5:12
      |
    5 | arrivals = "poison"
      |            ^^^^^^^^ did you mean `poisson`?

    error: unknown kind of operation `find_on`
     --> test.toml:6:7
      |
    6 | [op.a.find_on]
      |       ^^^^^^^ did you mean `find_one`?

    error: unknown key `filtr` in `op.b.find_one`
     --> test.toml:8:1
      |
    8 | filtr = {}
      | ^^^^^ did you mean `filter`?

    error: `limit` belongs to find; find_one reads one document
     --> test.toml:9:1
      |
    9 | limit = 3
      | ^^^^^

    error: there is no generator `^Kye`: did you mean `^Key`?
      --> test.toml:11:20
       |
    11 | filter = { _id = { "^Kye" = "uniform" }, n = { "^Key" = "zipfan" } }
       |                    ^^^^^^

    error: "zipfan" is no distribution of keys: did you mean `zipfian`?
      --> test.toml:11:48
       |
    11 | filter = { _id = { "^Kye" = "uniform" }, n = { "^Key" = "zipfan" } }
       |                                                ^^^^^^

    error: `weight` stands directly in `op.d`, which holds the operation's kind alone
      --> test.toml:14:1
       |
    14 | weight = 5
       | ^^^^^^
       |
       = help: put it in a table like [op.d.find_one]

    error: unknown key `limit_request` in `overload`
      --> test.toml:18:1
       |
    18 | limit_request = { rate = 5 }
       | ^^^^^^^^^^^^^ did you mean `limit_requests`?

    error: `flow.backoff` must be a table, not a whole number
      --> test.toml:20:11
       |
    20 | backoff = 1
       |           ^
    "#);
}

#[test]
fn quantities_out_of_bounds_say_what_would_be_right() {
    assert_snapshot!(told(&format!(r#"
[load]
rate = 0
warmup = "-1s"
duration = "0s"
cooldown = 10
max_in_flight = 0
[data]
documents = -1
database = "admin"
[[overload]]
at = 0
for = "584y"
fail_command = {{ probability = 1.5, code = 0, commands = [] }}
{PING}weight = 10001
"#)), @r#"
    error: `load.rate`: a rate of 0/s cannot be had: it must be above 0 and at most 10000000/s
     --> test.toml:3:8
      |
    3 | rate = 0
      |        ^

    error: `load.warmup`: '-1s' is negative: a length of time is wanted, like 10s
     --> test.toml:4:10
      |
    4 | warmup = "-1s"
      |          ^^^^^

    error: `load.duration` must be longer than 0
     --> test.toml:5:12
      |
    5 | duration = "0s"
      |            ^^^^

    error: `load.cooldown`: '10' has no unit: write 10s, 10ms or 10m
     --> test.toml:6:12
      |
    6 | cooldown = 10
      |            ^^

    error: `load.max_in_flight` must be from 1 to 1000000
     --> test.toml:7:17
      |
    7 | max_in_flight = 0
      |                 ^

    error: `data.documents` must be from 0 to 1000000000
     --> test.toml:9:13
      |
    9 | documents = -1
      |             ^^

    error: `admin` is the server's own database: a load must have another
      --> test.toml:10:12
       |
    10 | database = "admin"
       |            ^^^^^^^

    error: `overload.for`: '584y' is no length of time: write one like 250ms, 10s or 1m30s
      --> test.toml:13:7
       |
    13 | for = "584y"
       |       ^^^^^^

    error: a probability must be above 0 and at most 1, not 1.5
      --> test.toml:14:32
       |
    14 | fail_command = { probability = 1.5, code = 0, commands = [] }
       |                                ^^^

    error: `overload.fail_command.code` must be from 1 to 2147483647
      --> test.toml:14:44
       |
    14 | fail_command = { probability = 1.5, code = 0, commands = [] }
       |                                            ^

    error: `commands` must not be empty; left out, it means every command with data
      --> test.toml:14:47
       |
    14 | fail_command = { probability = 1.5, code = 0, commands = [] }
       |                                               ^^^^^^^^

    error: `op.ping.run_command.weight` must be from 0 to 10000
      --> test.toml:17:10
       |
    17 | weight = 10001
       |          ^^^^^
    "#);
}

#[test]
fn models_keep_their_keys_apart() {
    assert_snapshot!(told(&format!("[load]\nmodel = \"closed\"\nrate = 5\nstages = [{{ for = \"1s\", rate = 1 }}]\n{PING}")), @r#"
    error: a closed load lacks `workers`
     --> test.toml:1:1
      |
    1 | [load]
      | ^^^^^^

    error: `load.rate` belongs to the open model, and this load is closed
     --> test.toml:3:1
      |
    3 | rate = 5
      | ^^^^
      |
      = help: leave it out, or write model = "open"

    error: `load.stages` belongs to the open model, and this load is closed
     --> test.toml:4:1
      |
    4 | stages = [{ for = "1s", rate = 1 }]
      | ^^^^^^
      |
      = help: leave it out, or write model = "open"
    "#);
    assert_snapshot!(told(&format!("[load]\nworkers = 5\n{PING}")), @r#"
    error: `load.workers` belongs to the closed model, and this load is open
     --> test.toml:2:1
      |
    2 | workers = 5
      | ^^^^^^^
      |
      = help: leave it out, or write model = "closed"
    "#);
}

#[test]
fn stages_must_agree() {
    assert_snapshot!(told(&format!("[load]\nrate = 5\nduration = \"10s\"\nstages = [{{ for = \"1s\", rate = 1 }}]\n{PING}")), @r#"
    error: `load.rate` and `load.stages` both say how much load there is
     --> test.toml:2:1
      |
    2 | rate = 5
      | ^^^^
      |
      = help: leave one of them out

    error: the stages last 1s together, but `load.duration` is 10s
     --> test.toml:4:1
      |
    4 | stages = [{ for = "1s", rate = 1 }]
      | ^^^^^^
      |
      = help: leave the duration out
    "#);
    assert_snapshot!(told(&format!("[load]\nstages = []\n{PING}")), @r"
    error: `load.stages` must not be empty
     --> test.toml:2:1
      |
    2 | stages = []
      | ^^^^^^
    ");
    assert_eq!(
        told(&format!("[load]\nduration = \"1s\"\nstages = [{{ for = \"1s\", rate = 1 }}]\n{PING}")),
        ""
    );
    assert_snapshot!(told(&format!(r#"
[load]
rate = 5
duration = "10s"
stages = [{{ for = "1s", rate = 1 }}, {{ for = "1s", from = 1 }}, {{ rate = 5 }}, {{ for = "2s", rate = 0 }}]
{PING}"#)), @r#"
    error: a stage has either `rate`, or both `from` and `to`
     --> test.toml:5:37
      |
    5 | stages = [{ for = "1s", rate = 1 }, { for = "1s", from = 1 }, { rate = 5 }, { for = "2s", rate = 0 }]
      |                                     ^^^^^^^^^^^^^^^^^^^^^^^^

    error: `load.stages` lacks `for`
     --> test.toml:5:63
      |
    5 | stages = [{ for = "1s", rate = 1 }, { for = "1s", from = 1 }, { rate = 5 }, { for = "2s", rate = 0 }]
      |                                                               ^^^^^^^^^^^^

    error: `load.stages.rate`: a rate of 0/s cannot be had: it must be above 0 and at most 10000000/s
     --> test.toml:5:98
      |
    5 | stages = [{ for = "1s", rate = 1 }, { for = "1s", from = 1 }, { rate = 5 }, { for = "2s", rate = 0 }]
      |                                                                                                  ^
    "#);
}

#[test]
fn operations_are_checked() {
    assert_snapshot!(told(r#"
[op.all.run_command]
command = {}
[op."with.dot".find_one]
filter = 5
[op.two.find_one]
[op.two.count]
[op.del.delete_many]
[op.set.update_one]
filter = { "^Key" = "uniform" }
update = { n = 1 }
[op.replace.replace_one]
filter = {}
replacement = { "$set" = { n = 1 } }
[op.nest.transaction]
statements = [{ bulk_write = {} }, { find_one = { filter = { at = 2026-01-31 } } }]
[op.scan.find]
limit = 0
"#), @r#"
    error: an operation cannot be called `all`: the rows of all operations together are
     --> test.toml:2:5
      |
    2 | [op.all.run_command]
      |     ^^^

    error: a command needs a name: its first key, like { ping = 1 }
     --> test.toml:3:11
      |
    3 | command = {}
      |           ^^

    error: an operation's name has letters, digits, _ and - only, not 'with.dot'
     --> test.toml:4:5
      |
    4 | [op."with.dot".find_one]
      |     ^^^^^^^^^^

    error: `op.with.dot.find_one.filter` must be a document, not a whole number
     --> test.toml:5:10
      |
    5 | filter = 5
      |          ^
      |
      = help: write it as a table: { field = value }

    error: `op.two` has two kinds, find_one and count
     --> test.toml:7:9
      |
    7 | [op.two.count]
      |         ^^^^^
      |
      = help: make them two operations, each with its own name

    error: `op.del.delete_many` lacks `filter`
     --> test.toml:8:1
      |
    8 | [op.del.delete_many]
      | ^^^^^^^^^^^^^^^^^^^^
      |
      = help: filter = {} means every document

    error: `op.set.update_one.filter` must be a document, not a single value
      --> test.toml:10:10
       |
    10 | filter = { "^Key" = "uniform" }
       |          ^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: write it as a table: { field = value }

    error: `op.set.update_one.update` must consist of operators such as "$set" or "$inc"
      --> test.toml:11:10
       |
    11 | update = { n = 1 }
       |          ^^^^^^^^^
       |
       = help: to put another document in its place, use replace_one

    error: a replacement is a whole document; `$set` belongs to an update
      --> test.toml:14:15
       |
    14 | replacement = { "$set" = { n = 1 } }
       |               ^^^^^^^^^^^^^^^^^^^^^^

    error: a transaction cannot hold `bulk_write`
      --> test.toml:16:17
       |
    16 | statements = [{ bulk_write = {} }, { find_one = { filter = { at = 2026-01-31 } } }]
       |                 ^^^^^^^^^^
       |
       = help: it may hold find_one, find, aggregate, count, distinct, insert_one, insert_many, update_one, update_many, replace_one, delete_one, delete_many, find_one_and_update or run_command

    error: a date needs a time and an offset: 2026-01-31T12:00:00Z
      --> test.toml:16:67
       |
    16 | statements = [{ bulk_write = {} }, { find_one = { filter = { at = 2026-01-31 } } }]
       |                                                                   ^^^^^^^^^^

    error: `op.scan.find.limit` must be a whole number above 0, or a generator of such
      --> test.toml:18:9
       |
    18 | limit = 0
       |         ^
    "#);
    assert_snapshot!(told("description = \"nothing to do\"\n"), @r"
    error: there is no operation
     |
     = help: add one, for example [op.ping.run_command] with command = { ping = 1 }
    ");
    assert_snapshot!(told(&format!("{PING}weight = 0\n")), @r"
    error: every operation has weight 0, so there is nothing to do
     --> test.toml:1:2
      |
    1 | [op.ping.run_command]
      |  ^^
      |
      = help: give one of them a weight above 0
    ");
}

#[test]
fn overloads_are_checked() {
    assert_snapshot!(told(&format!(r#"
{PING}
[[overload]]
name = "before"
at = "1s"
for = "1s"
members = "seconderies"
[[overload]]
name = "x"
at = "1s"
for = "1s"
fail_command = {{ commands = ["pin"] }}
[[overload]]
name = "x"
at = "1s"
for = "1s"
fail_command = {{ commands = ["ping"] }}
"#)), @r#"
    error: this overload does nothing: it lacks limit_requests, limit_connections, fail_command, tickets, hold_tickets, latency_event, stall, kill or step_down
     --> test.toml:5:1
      |
    5 | [[overload]]
      | ^^^^^^^^^^^^
      |
      = help: for example limit_requests = { rate = "200/s" }

    error: an overload cannot be called `before`: a part of every run is called that
     --> test.toml:6:8
      |
    6 | name = "before"
      |        ^^^^^^^^

    error: `overload.members` cannot be 'seconderies'
     --> test.toml:9:11
      |
    9 | members = "seconderies"
      |           ^^^^^^^^^^^^^ did you mean `secondaries`?

    warning: no operation of this profile sends `pin`
      --> test.toml:14:30
       |
    14 | fail_command = { commands = ["pin"] }
       |                              ^^^^^ did you mean `ping`?

    error: two overloads are called `x`
      --> test.toml:16:8
       |
    16 | name = "x"
       |        ^^^
    "#);
}

#[test]
fn dotted_keys_in_filters_are_doubted() {
    assert_snapshot!(told(r#"
[op.a.find_one]
filter = { a.b = 1, c."$gt" = 2, "d.e" = 3, f = { g = 1 } }
"#), @r#"
    warning: `a.b` without quotes is a subdocument that holds `b` alone
     --> test.toml:3:12
      |
    3 | filter = { a.b = 1, c."$gt" = 2, "d.e" = 3, f = { g = 1 } }
      |            ^^^
      |
      = help: for the field within it, write "a.b"
    "#);
}

#[test]
fn broken_toml_is_shown() {
    assert_snapshot!(told("[load\nrate = \n"), @r"
    error: not valid TOML: unclosed table, expected `]`
     --> test.toml:1:6
      |
    1 | [load
      |      ^
    ");
    assert_snapshot!(told("a = 1\na = 2\n"), @r"
    error: not valid TOML: duplicate key
     --> test.toml:2:1
      |
    2 | a = 2
      | ^
    ");
}

#[test]
fn faults_are_checked() {
    assert_snapshot!(told(&format!(
        r#"
{PING}
[[overload]]
name = "a"
at = "1s"
for = "1s"
limit_requests = {{ rate = "1.5/s", mechanism = "native", code = 7, base_backoff_ms = 600001 }}
stall = {{}}
[[overload]]
name = "b"
at = "1s"
for = "1s"
limit_requests = {{ rate = "1.5/s", mechanism = "native", code = 7, base_backoff_ms = 600001 }}
[[overload]]
name = "c"
at = "1s"
for = "1s"
members = "secondaries"
step_down = {{ hard = true }}
[[overload]]
name = "d"
at = "1s"
for = "1s"
tickets = {{ read = 4 }}
[[overload]]
name = "e"
at = "1s"
for = "1s"
hold_tickets = {{ hold = "0" }}
[[overload]]
name = "f"
at = "1s"
for = "1s"
latency_event = {{ documents = 0, size = -1 }}
[[overload]]
name = "g"
at = "1s"
for = "1s"
limit_connections = {{ burst = "1s", queue_depth = -1 }}
"#
    )), @r##"
    error: an overload does one thing: it has `limit_requests` already
      --> test.toml:10:1
       |
    10 | stall = {}
       | ^^^^^
       |
       = help: give `stall` an [[overload]] of its own; both may be on at the same time

    error: `overload.limit_requests.rate`: '1.5/s' is no whole number per second, which is what servers take
      --> test.toml:15:27
       |
    15 | limit_requests = { rate = "1.5/s", mechanism = "native", code = 7, base_backoff_ms = 600001 }
       |                           ^^^^^^^

    error: a server's own limiter has its own `code`: this is for gates
      --> test.toml:15:58
       |
    15 | limit_requests = { rate = "1.5/s", mechanism = "native", code = 7, base_backoff_ms = 600001 }
       |                                                          ^^^^

    error: `overload.limit_requests.base_backoff_ms` must be from 1 to 600000
      --> test.toml:15:86
       |
    15 | limit_requests = { rate = "1.5/s", mechanism = "native", code = 7, base_backoff_ms = 600001 }
       |                                                                                      ^^^^^^

    error: `step_down` is of the primary: leave `members` out
      --> test.toml:20:11
       |
    20 | members = "secondaries"
       |           ^^^^^^^^^^^^^

    error: unknown key `hard` in `overload.step_down`
      --> test.toml:21:15
       |
    21 | step_down = { hard = true }
       |               ^^^^

    error: `overload.tickets.read` must be from 5 to 100000
      --> test.toml:26:20
       |
    26 | tickets = { read = 4 }
       |                    ^

    error: `overload.hold_tickets` lacks `count`
      --> test.toml:31:16
       |
    31 | hold_tickets = { hold = "0" }
       |                ^^^^^^^^^^^^^^

    error: `overload.hold_tickets.hold` must be longer than 0
      --> test.toml:31:25
       |
    31 | hold_tickets = { hold = "0" }
       |                         ^^^

    error: `overload.latency_event.documents` must be from 1 to 100000000
      --> test.toml:36:31
       |
    36 | latency_event = { documents = 0, size = -1 }
       |                               ^

    error: `overload.latency_event.size` must be from 0 to 1000000
      --> test.toml:36:41
       |
    36 | latency_event = { documents = 0, size = -1 }
       |                                         ^^

    error: `overload.limit_connections` lacks `rate`
      --> test.toml:41:21
       |
    41 | limit_connections = { burst = "1s", queue_depth = -1 }
       |                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: `overload.limit_connections.queue_depth` must be from 0 to 1000000
      --> test.toml:41:51
       |
    41 | limit_connections = { burst = "1s", queue_depth = -1 }
       |                                                   ^^
    "##);
}

#[test]
fn a_staleness_probe_has_a_period_that_servers_bear() {
    assert_snapshot!(told(&format!("[staleness]\nevery = \"9ms\"\nread = true\n{PING}")), @r#"
    error: `staleness.every` must be at least 10ms
     --> test.toml:2:9
      |
    2 | every = "9ms"
      |         ^^^^^

    error: unknown key `read` in `staleness`
     --> test.toml:3:1
      |
    3 | read = true
      | ^^^^
      |
      = help: known here: every
    "#);
    assert_snapshot!(told(&format!("[staleness]\nevry = \"1s\"\n{PING}")), @r#"
    error: `staleness` lacks `every`
     --> test.toml:1:1
      |
    1 | [staleness]
      | ^^^^^^^^^^^

    error: unknown key `evry` in `staleness`
     --> test.toml:2:1
      |
    2 | evry = "1s"
      | ^^^^ did you mean `every`?
    "#);
    assert_snapshot!(told(&format!("[staleness]\nevery = \"often\"\n{PING}")), @r#"
    error: `staleness.every`: 'often' is no length of time: write one like 250ms, 10s or 1m30s
     --> test.toml:2:9
      |
    2 | every = "often"
      |         ^^^^^^^
    "#);
}
