use std::collections::BTreeMap;

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::plan::{ConcurrencyLimit, LimitLaw, Plan, Signal};
use crate::results::testing::{self, snapshot};
use crate::snapshot::{
    ClientState, ErrorClass, ErrorCount, ErrorLevel, Event, FlowState, PoolCounts, ServerFacts, ServerStats,
    Snapshot,
};
use crate::stats::OpStats;
use crate::tui::keys::Action;

const SECOND: u64 = 1_000_000_000;

/// What is drawn, as text.
fn picture(view: &View<'_>, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(view, frame.area(), frame.buffer_mut())).unwrap();
    lines(terminal.backend().buffer())
}

/// One panel alone, as text.
fn panel(panel: fn(&View<'_>, Rect, &mut Buffer), model: &Model, width: u16, height: u16) -> String {
    let (app, theme) = (App::default(), Theme::new(false, false));
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let view = View { model, app: &app, theme: &theme, now_ns: model.end_ns() };
    panel(&view, buffer.area, &mut buffer);
    lines(&buffer)
}

fn lines(buffer: &Buffer) -> String {
    let rows = buffer.content.chunks(usize::from(buffer.area.width));
    let mut text: Vec<String> = Vec::new();
    for row in rows {
        let mut line = String::new();
        let mut hidden = 0;
        for cell in row {
            if hidden == 0 {
                line.push_str(cell.symbol());
                hidden = usize::from(super::text::width(cell.symbol())).saturating_sub(1);
            } else {
                hidden -= 1;
            }
        }
        text.push(line.trim_end().to_owned());
    }
    text.join("\n")
}

fn shown(model: &Model, width: u16, height: u16) -> String {
    let (app, theme) = (App::default(), Theme::new(true, false));
    picture(&View { model, app: &app, theme: &theme, now_ns: model.end_ns() }, width, height)
}

fn empty() -> Model {
    Model::new(testing::facts(testing::overload_plan()))
}

/// Operations that took this many retries: how many succeeded and after how long, and how many gave up.
fn retried(stats: &mut OpStats, retries: u32, ok: u64, us: u64, gave_up: u64) {
    for i in 0..ok {
        // Spread evenly between the time and twice that.
        let ns = (us + us * i / ok) * 1000;
        stats.with_retries(retries).latency.record_ns(ns);
        stats.latency.record_ns(ns);
        stats.service.record_ns(ns * 9 / 10);
        stats.lag.record_ns(60_000);
    }
    let bucket = stats.with_retries(retries);
    bucket.ok += ok;
    bucket.failed += gave_up;
    bucket.gave_up += gave_up;
    stats.offered += ok + gave_up;
    stats.outcomes.ok += ok;
    stats.outcomes.failed += gave_up;
    stats.gave_up += gave_up;
    stats.calls += ok + gave_up;
    stats.commands += ok + gave_up;
    stats.retries += u64::from(retries) * (ok + gave_up);
    stats.attempts += u64::from(retries + 1) * (ok + gave_up);
    stats.rejected += u64::from(retries) * ok + u64::from(retries + 1) * gave_up;
}

fn server(address: &str, attempts: u64, rejected: u64) -> ServerStats {
    let mut server = ServerStats {
        address: address.to_owned(),
        attempts,
        rejected,
        retargeted: rejected / 10,
        pool: PoolCounts { created: 1, ..PoolCounts::default() },
        connections_open: 12,
        ..ServerStats::default()
    };
    (0..attempts).for_each(|i| server.checkout.record_ns(20_000 + i * 100));
    server
}

fn error(level: ErrorLevel, count: u64, last_s: u64) -> ErrorCount {
    let labels = ["RetryableError", "SystemOverloadedError"].map(str::to_owned).to_vec();
    let code_name = "IngressRequestRateLimitExceeded".to_owned();
    ErrorCount {
        segment: 2,
        operation: 0,
        level,
        class: ErrorClass { kind: "command".to_owned(), code: Some(462), code_name, labels },
        count,
        first_ns: 5 * SECOND,
        last_ns: last_s * SECOND,
        example: "too much".to_owned(),
    }
}

fn event(at_s: i64, kind: &str, subject: &str, detail: &str) -> Event {
    let text = |text: &str| text.to_owned();
    Event { at_ns: at_s * 1_000_000_000, kind: text(kind), subject: text(subject), detail: text(detail) }
}

/// One second in which nothing goes wrong.
fn calm(second: u64, segment: usize) -> Snapshot {
    let (mut reads, mut scans) = (OpStats::default(), OpStats::default());
    retried(&mut reads, 0, 75, 800, 0);
    retried(&mut scans, 0, 25, 3_000, 0);
    let mut calm = snapshot(second, segment, [((segment, 0), reads), ((segment, 1), scans)], [0; 3]);
    calm.servers = vec![server("n1:27017", 60, 0), server("n2:27017", 40, 0)];
    calm
}

/// One second in which every second attempt is rejected.
fn pushed(second: u64) -> Snapshot {
    let (mut reads, mut scans) = (OpStats::default(), OpStats::default());
    retried(&mut reads, 0, 40, 900, 0);
    retried(&mut reads, 1, 20, 60_000, 0);
    retried(&mut reads, 2, 9, 150_000, 6);
    retried(&mut scans, 0, 25, 3_000, 0);
    let mut pushed = snapshot(second, 2, [((2, 0), reads), ((2, 1), scans)], [2, 1, 0]);
    pushed.servers = vec![server("n1:27017", 110, 56), server("n2:27017", 40, 0)];
    pushed.errors =
        vec![error(ErrorLevel::Attempt, 56, second + 1), error(ErrorLevel::Operation, 6, second + 1)];
    pushed.generator.in_flight = 37;
    pushed.generator.behind_ns = 1_500_000;
    pushed
}

/// Eight seconds: warm-up, before, and all of the overload.
fn busy() -> Model {
    let mut model = empty();
    model.note("data: 10 of 10 documents stored".to_owned());
    for second in 0..5 {
        model.add(&calm(second, if second < 2 { 0 } else { 1 }));
    }
    model.event(event(5, "overload_on", "shed", "n1:27017"));
    for second in 5..7 {
        model.add(&pushed(second));
    }
    let facts = |address: &str, role: &str| ServerFacts {
        staleness: None,
        address: address.to_owned(),
        role: role.to_owned(),
        counters: BTreeMap::new(),
    };
    model.servers(vec![
        facts("n1:27017", "primary"),
        facts("n2:27017", "secondary"),
        facts("n3:27017", "unreachable"),
    ]);
    model
}

/// How a client stands that has this limit.
fn limit_of(limit: Option<u32>) -> ClientState {
    ClientState { flow: FlowState { limit, ..FlowState::default() }, ..ClientState::default() }
}

/// The same with a limit that the overload halves down to its floor.
fn limited() -> Model {
    let mut plan = testing::overload_plan();
    plan.flow.limit = Some(ConcurrencyLimit {
        signal: Signal::Operation,
        initial: 10,
        floor: 2,
        ceiling: 40,
        law: LimitLaw::AIMD,
    });
    let mut model = Model::new(testing::facts(plan));
    for (second, limit) in (0..).zip([10, 11, 12, 13, 14, 3, 2]) {
        let segment = [0, 0, 1, 1, 1][usize::try_from(second).unwrap().min(4)];
        let mut interval = if second < 5 { calm(second, segment) } else { pushed(second) };
        interval.flow.limit = Some(limit);
        model.add(&interval);
    }
    model
}

#[test]
fn whole_screens() {
    for (width, height) in [(60, 16), (80, 24), (120, 40), (200, 60)] {
        insta::assert_snapshot!(format!("busy_{width}x{height}"), shown(&busy(), width, height));
        insta::assert_snapshot!(format!("empty_{width}x{height}"), shown(&empty(), width, height));
    }
}

#[test]
fn one_operation() {
    let mut plan = testing::overload_plan();
    plan.operations.truncate(1);
    let mut model = Model::new(testing::facts(plan));
    let mut reads = OpStats::default();
    retried(&mut reads, 0, 2000, 900, 0);
    model.add(&snapshot(0, 1, [((1, 0), reads)], [0; 3]));
    insta::assert_snapshot!("one_operation", shown(&model, 80, 24));
}

#[test]
fn everything_fails() {
    let mut model = empty();
    for second in 0..6 {
        let mut reads = OpStats::default();
        retried(&mut reads, 2, 0, 1, 100);
        let segment = [0, 0, 1, 1, 1, 2][usize::try_from(second).unwrap()];
        let mut failing = snapshot(second, segment, [((segment, 0), reads)], [0; 3]);
        failing.errors = vec![error(ErrorLevel::Operation, 100, second + 1)];
        model.add(&failing);
    }
    model.event(event(6, "generator_saturated", "", "it uses 97 % of this machine's processors"));
    insta::assert_snapshot!("everything_fails", shown(&model, 100, 30));
}

/// A plan whose names come from everywhere.
fn foreign() -> Plan {
    let mut plan = testing::overload_plan();
    plan.profile = "負荷テスト-with-a-name-that-goes-on-and-on-and-on-until-nobody-can-read-it".to_owned();
    plan.operations[0].name = "найти_документ_по_ключу_и_обновить_его".to_owned();
    plan.operations[1].name = "検索\u{1b}[31m🚀".to_owned();
    plan.overloads[0].name = "überlast".to_owned();
    plan
}

#[test]
fn long_names_and_wide_characters() {
    let mut model = Model::new(testing::facts(foreign()));
    model.add(&pushed(0));
    model.event(event(1, "overload_on", "überlast", "n1:27017"));
    insta::assert_snapshot!("foreign_80x24", shown(&model, 80, 24));
    let (app, theme) = (App::default(), Theme::new(true, true));
    let view = View { model: &model, app: &app, theme: &theme, now_ns: SECOND };
    let text = picture(&view, 80, 24);
    assert!(text.is_ascii(), "{text}");
    insta::assert_snapshot!("foreign_ascii_80x24", text);
}

#[test]
fn every_panel() {
    let model = busy();
    insta::assert_snapshot!("panel_header", panel(header::draw, &model, 76, 3));
    insta::assert_snapshot!("panel_figures", panel(|v, a, b| figures::draw(v, a, 3, b), &model, 120, 4));
    insta::assert_snapshot!("panel_history", panel(history::draw, &model, 60, 12));
    insta::assert_snapshot!("panel_retries", panel(retries::draw, &model, 76, 7));
    insta::assert_snapshot!("panel_latency", panel(latency::draw, &model, 76, 10));
    insta::assert_snapshot!("panel_operations", panel(operations::draw, &model, 90, 5));
    insta::assert_snapshot!("panel_servers", panel(servers::draw, &model, 90, 5));
    insta::assert_snapshot!("panel_errors", panel(errors::draw, &model, 110, 4));
    insta::assert_snapshot!("panel_events", panel(events::draw, &model, 76, 4));
    insta::assert_snapshot!("panel_generator", panel(generator::draw, &model, 76, 3));
    insta::assert_snapshot!("panel_limit", panel(limit::draw, &limited(), 60, 7));
    insta::assert_snapshot!("limited_120x40", shown(&limited(), 120, 40));
    insta::assert_snapshot!("panel_help", panel(help::draw, &model, 76, 10));
}

#[test]
fn the_help_and_the_readme_list_every_key() {
    let help = panel(help::draw, &empty(), 76, 16);
    let readme = include_str!("../../../README.md");
    let mut decoder = crate::tui::keys::Decoder::default();
    for byte in 0..=u8::MAX {
        let Some(action) = decoder.actions(&[byte]).pop() else { continue };
        let binding = crate::tui::BINDINGS.iter().find(|b| b.action == action).unwrap();
        assert_eq!(binding.byte, byte);
        assert!(help.contains(binding.help) && help.contains(binding.name), "{}: {help}", binding.name);
        assert!(readme.contains(&format!("| `{}` |", binding.name)), "{} is not in README.md", binding.name);
    }
}

#[test]
fn a_picked_operation_is_everywhere() {
    let model = busy();
    let mut app = App::default();
    app.act(Action::NextOperation, &model);
    let theme = Theme::new(false, false);
    let text = picture(&View { model: &model, app: &app, theme: &theme, now_ns: model.end_ns() }, 120, 40);
    for part in [">read", "per operation: read", "(successful): read", "rates: read", "errors so far: read"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn each_of_several_clients_has_a_row() {
    let mut model = Model::new(testing::facts(testing::groups_plan()));
    let (mut critical, mut batch) = (OpStats::default(), OpStats::default());
    retried(&mut critical, 0, 30, 800, 0);
    retried(&mut batch, 1, 20, 3_000, 10);
    let mut second = snapshot(0, 1, [((1, 0), critical), ((1, 2), batch)], [0; 3]);
    second.clients = vec![limit_of(None), limit_of(Some(8))];
    model.add(&second);
    insta::assert_snapshot!(panel(operations::draw, &model, 90, 9), @r"
    ─ operations, measure ────────────────────────────────────────────────────────────────────
    operation            goodput  errors  retries/op     p50    p99  offered  amplified    p90
     critical/read        30.0/s    0.0%        0.00  1.17ms      -   30.0/s       1.00      -
     critical/scan         0.0/s       -           -       -      -    0.0/s          -      -
     critical/all         30.0/s    0.0%        0.00  1.17ms      -   30.0/s       1.00      -
     batch/read           20.0/s   33.3%        1.00  4.35ms      -        -       2.00      -
     batch/all            20.0/s   33.3%        1.00  4.35ms      -        -       2.00      -
    >all                  50.0/s   16.7%        0.50  1.44ms      -        -       1.50      -
    ");
    assert!(panel(generator::draw, &model, 76, 3).contains("batch:  limit 8"));
    // Tab goes through them in their order.
    let mut app = App::default();
    let names = (0..6).map(|_| {
        app.act(Action::NextOperation, &model);
        model.name(app.whose)
    });
    let names: Vec<String> = names.collect();
    assert_eq!(names, ["critical/read", "critical/scan", "critical/all", "batch/read", "batch/all", "all"]);
}

#[test]
fn the_limit_of_one_of_several_clients_is_shown() {
    let mut plan = testing::groups_plan();
    let limited = limited().facts.plan.flow.limit;
    plan.clients[1].flow.limit = limited;
    let model = |plan: &Plan| {
        let mut model = Model::new(testing::facts(plan.clone()));
        let mut second = snapshot(0, 1, [], [0; 3]);
        second.clients = [None, Some(8)].map(limit_of).into();
        model.add(&second);
        model
    };
    let shown_at = |model: &Model, app: &App| {
        let theme = Theme::new(false, false);
        picture(&View { model, app, theme: &theme, now_ns: model.end_ns() }, 120, 40)
    };
    assert!(shown_at(&model(&plan), &App::default()).contains("batch: operations at once: 8"));
    // Where each has one it is that of the client that is picked.
    plan.clients[0].flow.limit = limited;
    let model = model(&plan);
    assert!(!shown_at(&model, &App::default()).contains("operations at once"));
    let mut app = App::default();
    // After the reads and scans of critical, critical, and the reads of batch.
    (0..5).for_each(|_| app.act(Action::NextOperation, &model));
    assert_eq!(model.name(app.whose), "batch/all");
    assert!(shown_at(&model, &app).contains("batch: operations at once: 8"));
}

#[test]
fn a_frozen_display_says_so() {
    let model = busy();
    let mut app = App::default();
    app.act(Action::Freeze, &model);
    let theme = Theme::new(false, false);
    let view = View { model: app.shown(&model), app: &app, theme: &theme, now_ns: 9 * SECOND };
    assert!(picture(&view, 120, 40).contains("FROZEN at 7 s"));
}

#[test]
fn no_size_is_too_small_or_too_large() {
    let models = [empty(), busy(), Model::new(testing::facts(foreign()))];
    let (mut app, theme) = (App::default(), Theme::new(true, false));
    for help in [false, true] {
        app.help = help;
        for model in &models {
            for (width, height) in (0..45).flat_map(|i| [(i, 3 * i), (5 * i, i), (250, 2 * i), (i, 1)]) {
                let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
                let view = View { model, app: &app, theme: &theme, now_ns: model.end_ns() };
                draw(&view, buffer.area, &mut buffer);
            }
        }
    }
}

#[test]
fn what_found_no_room_is_named() {
    let text = shown(&busy(), 60, 16);
    for name in ["rates", "latency"] {
        assert!(text.contains(name), "{name} in\n{text}");
    }
    assert!(!shown(&busy(), 200, 60).contains("no room"));
}

#[test]
fn without_colours_there_are_none() {
    let (model, app, theme) = (busy(), App::default(), Theme::new(false, false));
    let mut buffer = Buffer::empty(Rect::new(0, 0, 120, 40));
    draw(&View { model: &model, app: &app, theme: &theme, now_ns: 0 }, buffer.area, &mut buffer);
    let plain = |cell: &ratatui::buffer::Cell| {
        cell.fg == ratatui::style::Color::Reset && cell.bg == ratatui::style::Color::Reset
    };
    assert!(buffer.content.iter().all(plain));
}
