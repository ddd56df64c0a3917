//! Progress on a screen. Drawing may wait for a terminal that was stopped, so it has a thread of its own, and so have the
//! keys: whoever brings news leaves it and goes on.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Signal, getpid, kill_current_process_group, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use super::app::App;
use super::keys::{Action, Decoder};
use super::model::Model;
use super::news::{Inbox, News};
use super::theme::Theme;
use super::view::{self, View};
use super::{Keyboard, Tty};
use crate::cluster::Cluster;
use crate::interrupts::Interrupts;
use crate::knobs::Hand;
use crate::plan::Plan;
use crate::plan::timeline::nanos;
use crate::progress::{Lines, Progress};
use crate::results::TrialFacts;
use crate::snapshot::{Event, Preparing, ServerFacts, Snapshot};
use crate::stderr;

/// The shortest time between two pictures.
const FRAME: Duration = Duration::from_millis(100);

/// The longest: the clock goes on, and the window may have another size.
const TICK: Duration = Duration::from_millis(250);

/// How long a key may wait for the end.
const KEYS: Duration = Duration::from_millis(50);

/// Why a knob does nothing.
const NO_KNOBS: &str =
    "knobs are for a run of one trial against real servers: this one is not changed by hand";

/// How long the end waits for the terminal to be given back; longer than that itself waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// Lines until the load starts, the screen while it runs, lines again should the terminal go away.
pub struct Screen {
    lines: Lines,
    theme: Theme,
    /// Whether time is what is told, and not that of a clock.
    is_virtual: bool,
    interrupts: Interrupts,
    /// Whoever turns the knobs; nobody, where a run is not changed by hand.
    hand: Option<Hand>,
    /// Where whoever watches for signals finds the screen that is on.
    on: Arc<Mutex<Weak<Inbox>>>,
    running: Option<Running>,
}

/// The screen that is on.
struct Running {
    inbox: Arc<Inbox>,
    /// Whoever types and whoever draws, until they end.
    threads: [Receiver<()>; 2],
}

impl Screen {
    /// Nothing is shown yet. Keys ask for an end through `interrupts`, and turn knobs through `hand`.
    ///
    /// # Errors
    /// When the system gives no signal handlers.
    pub fn new(theme: Theme, interrupts: Interrupts, hand: Option<Hand>) -> anyhow::Result<Self> {
        let on = Arc::default();
        watch_suspension(Arc::clone(&on))?;
        Ok(Self { lines: Lines::default(), theme, is_virtual: false, interrupts, hand, on, running: None })
    }

    /// Likewise of a simulation: its time goes on with its news, and there are no knobs.
    ///
    /// # Errors
    /// When the system gives no signal handlers.
    pub fn simulated(theme: Theme, interrupts: Interrupts) -> anyhow::Result<Self> {
        Ok(Self { is_virtual: true, ..Self::new(theme, interrupts, None)? })
    }

    /// Where news goes while the screen is on.
    fn inbox(&self) -> Option<&Inbox> {
        self.running.as_ref().map(|running| &*running.inbox).filter(|inbox| !inbox.is_closed())
    }

    fn start(&self, facts: TrialFacts) -> anyhow::Result<Running> {
        let inbox = Arc::new(Inbox::default());
        let (told, until) = (Arc::clone(&inbox), Arc::clone(&inbox));
        stderr::hold(move |text| told.post(News::Note(text.to_owned())));
        let held = Held(Arc::clone(&inbox));
        let mut tty = Tty::open(move || until.is_closed()).context("no terminal")?;
        let keys = tty.keyboard()?;
        tty.take().context("the terminal cannot be set")?;
        let (drawing, drawn) = sync_channel(0);
        let (typing, typed) = sync_channel(0);
        *self.on.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&inbox);
        // From here on whatever fails ends both threads.
        let running = Running { inbox: Arc::clone(&inbox), threads: [drawn, typed] };
        let (theme, model) = (self.theme, Model::new(facts));
        let go = (!self.is_virtual).then(Instant::now);
        let painter = Painter { tty, model, app: App::default(), theme, go, suspended: false };
        let news = Arc::clone(&inbox);
        thread::Builder::new().name("screen".to_owned()).spawn(move || {
            let _until_the_end: (Held, SyncSender<()>) = (held, drawing);
            // Dropped before those, so that the terminal is given back before anyone else talks on it.
            let mut painter = painter;
            // Without a terminal there is nobody to be told.
            let _ = painter.paint(&news);
        })?;
        let (news, interrupts, hand) = (inbox, self.interrupts.clone(), self.hand.clone());
        thread::Builder::new().name("keys".to_owned()).spawn(move || {
            let _until_the_end: SyncSender<()> = typing;
            listen(keys, &news, &interrupts, hand.as_ref());
        })?;
        Ok(running)
    }
}

/// What is said is held back as long as this lives; then the terminal is free, or gone.
struct Held(Arc<Inbox>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.close();
        stderr::release();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.inbox.close();
        for end in &self.threads {
            let _ = end.recv_timeout(PATIENCE);
        }
        stderr::release();
    }
}

impl Progress for Screen {
    fn note(&mut self, text: &str) {
        // While the screen is on it hears this from there.
        stderr::tell(text);
    }

    fn found(&mut self, cluster: &Cluster) {
        self.lines.found(cluster);
    }

    fn preparing(&mut self, data: Preparing) {
        self.lines.preparing(data);
    }

    fn started(&mut self, facts: &TrialFacts, directory: &Path) {
        self.lines.started(facts, directory);
        self.running = None;
        match self.start(facts.clone()) {
            Ok(running) => self.running = Some(running),
            Err(error) => stderr::tell(&format!("no screen, but lines: {error:#}")),
        }
    }

    fn taken_over(&mut self, facts: &TrialFacts, since_go: Duration) {
        self.lines.taken_over(facts, since_go);
        if let Some(inbox) = self.inbox() {
            inbox.post(News::TakenOver(Box::new(facts.clone()), since_go));
        }
    }

    fn snapshot(&mut self, plan: &Plan, snapshot: &Snapshot) {
        match self.inbox() {
            Some(inbox) => inbox.post(News::Snapshot(Box::new(snapshot.clone()))),
            None => self.lines.snapshot(plan, snapshot),
        }
    }

    fn servers(&mut self, facts: &[ServerFacts]) {
        if let Some(inbox) = self.inbox() {
            inbox.post(News::Servers(facts.to_vec()));
        }
    }

    fn event(&mut self, event: &Event) {
        match self.inbox() {
            Some(inbox) => inbox.post(News::Event(event.clone())),
            None => self.lines.event(event),
        }
    }
}

/// Draws until the end.
struct Painter {
    tty: Tty,
    model: Model,
    app: App,
    theme: Theme,
    /// When the clock began; `None` where the time is that of the last news.
    go: Option<Instant>,
    /// From the request to suspend until the program is told to go on: a stop takes its time to reach every thread.
    suspended: bool,
}

impl Painter {
    fn paint(&mut self, inbox: &Inbox) -> std::io::Result<()> {
        loop {
            let began = Instant::now();
            self.picture()?;
            let Some(news) = inbox.collect(TICK) else { return Ok(()) };
            for news in news {
                self.hear(news)?;
            }
            thread::sleep(FRAME.saturating_sub(began.elapsed()));
        }
    }

    fn hear(&mut self, news: News) -> std::io::Result<()> {
        match news {
            News::Snapshot(snapshot) => self.model.add(&snapshot),
            News::Servers(facts) => self.model.servers(facts),
            News::TakenOver(facts, since_go) => self.model.take_over(*facts, since_go),
            News::Event(event) => self.model.event(event),
            News::Note(text) => self.model.note(text),
            News::Key(action) => self.app.act(action, &self.model),
            News::Suspend => {
                self.tty.give_back();
                self.suspended = true;
                stop_here();
            }
            News::Resumed => {
                self.suspended = false;
                if self.tty.is_taken() && self.tty.is_in_front() {
                    self.tty.take()?;
                }
            }
        }
        Ok(())
    }

    /// Draws, if the terminal is ours.
    fn picture(&mut self) -> std::io::Result<()> {
        match (self.tty.is_in_front() && !self.suspended, self.tty.is_taken()) {
            (true, false) => self.tty.take()?,
            (false, true) => self.tty.give_back(),
            _ => {}
        }
        if !self.tty.is_taken() {
            return Ok(());
        }
        let view = View {
            model: self.app.shown(&self.model),
            app: &self.app,
            theme: &self.theme,
            now_ns: self.go.map_or(self.model.end_ns(), |go| nanos(go.elapsed())),
        };
        self.tty.draw(|area, buffer| view::draw(&view, area, buffer))
    }
}

/// Reads keys until the end. Those that are about the run work even while drawing waits for the terminal.
fn listen(mut keyboard: Keyboard, inbox: &Inbox, interrupts: &Interrupts, hand: Option<&Hand>) {
    let mut decoder = Decoder::default();
    while !inbox.is_closed() {
        let Ok(bytes) = keyboard.read(KEYS) else { return };
        for action in decoder.actions(&bytes) {
            match action {
                Action::Stop => interrupts.ask_up_to(1),
                Action::Leave => interrupts.ask_up_to(2),
                Action::Interrupt => interrupts.ask(),
                // The signal, so that whoever runs in the same job is suspended, too.
                Action::Suspend => drop(kill_current_process_group(Signal::TSTP)),
                // Who has nobody to turn them for any more needs no answer.
                Action::Knob(turn) => match hand {
                    Some(hand) => drop(hand.send(turn)),
                    None => inbox.post(News::Note(NO_KNOBS.to_owned())),
                },
                Action::Freeze | Action::NextOperation | Action::Help => inbox.post(News::Key(action)),
            }
        }
    }
}

/// From here on a request to suspend waits until the terminal has been given back.
fn watch_suspension(on: Arc<Mutex<Weak<Inbox>>>) -> anyhow::Result<()> {
    let listen =
        |kind: Signal| signal(SignalKind::from_raw(kind.as_raw())).context("cannot listen for signals");
    let (mut suspend, mut resumed) = (listen(Signal::TSTP)?, listen(Signal::CONT)?);
    tokio::spawn(async move {
        loop {
            let news = tokio::select! {
                _ = suspend.recv() => News::Suspend,
                _ = resumed.recv() => News::Resumed,
            };
            let screen = on.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
            match (screen.filter(|inbox| !inbox.is_closed()), news) {
                (Some(inbox), news) => inbox.post(news),
                // The signal no longer does by itself what it is for.
                (None, News::Suspend) => stop_here(),
                (None, _) => {}
            }
        }
    });
    Ok(())
}

/// Stops this program until its shell lets it go on.
fn stop_here() {
    let _ = kill_process(getpid(), Signal::STOP);
}
