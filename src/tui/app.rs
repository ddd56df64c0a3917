//! What the user has chosen to see. Data and one transition; drawing is elsewhere.

use super::keys::Action;
use super::model::Model;
use crate::results::scope::Scope;

/// What is shown of what is known.
#[derive(Debug, Default)]
pub struct App {
    /// Whose numbers are shown: an operation's, one of several clients', or everybody's.
    pub whose: Scope,
    /// Whether the help lies over the panels.
    pub help: bool,
    /// What was known when the display was frozen.
    frozen: Option<Box<Model>>,
}

impl App {
    /// What a key changes here. Those that are about the run change nothing.
    pub fn act(&mut self, action: Action, model: &Model) {
        match action {
            Action::Freeze => {
                self.frozen = if self.is_frozen() { None } else { Some(Box::new(model.clone())) };
            }
            Action::NextOperation => self.whose = next(self.whose, model),
            Action::Help => self.help = !self.help,
            Action::Knob(_) | Action::Stop | Action::Leave | Action::Interrupt | Action::Suspend => {}
        }
    }

    /// Whether the display stands still.
    pub const fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// What is to be shown: what is known now, or was when the display was frozen.
    pub fn shown<'a>(&'a self, model: &'a Model) -> &'a Model {
        self.frozen.as_deref().unwrap_or(model)
    }
}

/// All, then each row of the table of operations, then all again.
fn next(whose: Scope, model: &Model) -> Scope {
    let rows = model.rows();
    let now = rows.iter().position(|row| *row == whose);
    // All is the last.
    let next = now.filter(|now| now + 1 < rows.len()).map_or(0, |now| now + 1);
    rows.get(next).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::{self, cell, snapshot};

    #[test]
    fn tab_goes_round_the_operations_that_run() {
        let model = Model::new(testing::facts(testing::plan()));
        let mut app = App::default();
        let mut seen = Vec::new();
        for _ in 0..4 {
            app.act(Action::NextOperation, &model);
            seen.push(model.name(app.whose));
        }
        assert_eq!(seen, ["read", "scan", "all", "read"]);
    }

    #[test]
    fn a_frozen_display_stands_still_while_the_run_goes_on() {
        let mut model = Model::new(testing::facts(testing::plan()));
        let mut app = App::default();
        app.act(Action::Freeze, &model);
        model.add(&snapshot(0, 1, [((1, 0), cell(5, 5, 5, 0))], [0; 3]));
        assert_eq!((app.is_frozen(), app.shown(&model).end_ns()), (true, 0));
        app.act(Action::Freeze, &model);
        assert_eq!((app.is_frozen(), app.shown(&model).end_ns()), (false, 1_000_000_000));
    }
}
