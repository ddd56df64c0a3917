//! Whose figures a row has: one operation's, those of all of a client's operations, or everybody's.

use std::ops::Range;

use crate::plan::{Model, Plan};

/// The one client of a load that says nothing of clients.
pub(crate) const CLIENT: &str = "default";

/// The name under which all operations, or all clients, together stand.
pub(crate) const ALL: &str = "all";

/// What a row is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The operation at this position in the plan.
    Operation(usize),
    /// All operations of one of several clients.
    Client(usize),
    /// All operations that there are.
    #[default]
    All,
}

/// One operation, or all of them together.
impl From<Option<usize>> for Scope {
    fn from(operation: Option<usize>) -> Self {
        operation.map_or(Self::All, Self::Operation)
    }
}

impl Scope {
    /// Everything that a table has rows of, in their order: each client's operations and it as a whole, and all of it last.
    pub fn every(plan: &Plan) -> Vec<Self> {
        let operations = |range: Range<usize>| {
            range.filter(|&i| plan.operations[i].weight > 0).map(Self::Operation).collect::<Vec<_>>()
        };
        let mut all = match plan.clients.len() {
            0 => operations(0..plan.operations.len()),
            count => (0..count)
                .flat_map(|client| {
                    let mut own = operations(plan.clients[client].operations.clone());
                    own.push(Self::Client(client));
                    own
                })
                .collect(),
        };
        all.push(Self::All);
        all
    }

    /// The positions of its operations.
    pub fn operations(self, plan: &Plan) -> Range<usize> {
        match self {
            Self::Operation(operation) => operation..operation + 1,
            Self::Client(client) => plan.clients[client].operations.clone(),
            Self::All => 0..plan.operations.len(),
        }
    }

    /// Which of several clients it is about.
    pub fn client_index(self, plan: &Plan) -> Option<usize> {
        match self {
            Self::Operation(operation) => plan.client_of(operation),
            Self::Client(client) => Some(client),
            Self::All => None,
        }
    }

    /// What stands in the column `client`.
    pub fn client(self, plan: &Plan) -> &str {
        match (self.client_index(plan), plan.clients.is_empty()) {
            (Some(client), _) => &plan.clients[client].name,
            (None, true) => CLIENT,
            (None, false) => ALL,
        }
    }

    /// What stands in the column `op`.
    pub fn op(self, plan: &Plan) -> &str {
        match self {
            Self::Operation(operation) => plan.operations.get(operation).map_or("", |o| &o.name),
            Self::Client(_) | Self::All => ALL,
        }
    }

    /// What it is called where there are no columns.
    pub fn title(self, plan: &Plan) -> String {
        title(self.client(plan), self.op(plan))
    }

    /// The load that it is about, as far as anybody knows.
    pub fn model(self, plan: &Plan) -> &Model {
        self.client_index(plan).map_or(&plan.load.model, |client| &plan.clients[client].model)
    }

    /// Whether operations are due by the clock.
    pub fn is_open(self, plan: &Plan) -> bool {
        matches!(self.model(plan), Model::Open { .. })
    }

    /// `open`, `closed`, or `mixed` where some clients are the one and others the other.
    pub fn model_name(self, plan: &Plan) -> &'static str {
        match self.is_open(plan) {
            true => "open",
            false if self == Self::All && plan.is_mixed() => "mixed",
            false => "closed",
        }
    }

    /// The workers of a closed model.
    pub fn workers(self, plan: &Plan) -> Option<u32> {
        match self.model(plan) {
            Model::Closed { workers } if self.model_name(plan) == "closed" => Some(*workers),
            _ => None,
        }
    }

    /// Its share of its client's operations.
    pub fn share(self, plan: &Plan) -> f64 {
        let Self::Operation(operation) = self else { return 1.0 };
        let client = plan.client_of(operation).map_or(Self::All, Self::Client);
        let weights = client.operations(plan).map(|i| u64::from(plan.operations[i].weight));
        crate::stats::ratio(u64::from(plan.operations[operation].weight), weights.sum()).unwrap_or(0.0)
    }
}

/// What a row of this client and operation is called where there are no columns: the operation's name alone where there is
/// one client, `critical/read` of one of several.
pub(crate) fn title(client: &str, op: &str) -> String {
    match client {
        CLIENT | ALL | "" => op.to_owned(),
        client => format!("{client}/{op}"),
    }
}

/// Whether a title is that of all operations of one of several clients.
pub(crate) fn is_of_client(title: &str) -> bool {
    title.split_once('/').is_some_and(|(_, op)| op == ALL)
}

/// A title in a tag of `latency.hlog`, whose parts a slash keeps apart: `critical.read`.
pub(crate) fn tag(title: &str) -> String {
    title.replacen('/', ".", 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing;

    fn every(plan: &Plan) -> Vec<(String, String, String)> {
        let told = |scope: Scope| {
            (scope.client(plan).to_owned(), scope.op(plan).to_owned(), scope.model_name(plan).to_owned())
        };
        Scope::every(plan).into_iter().map(told).collect()
    }

    #[test]
    fn one_client_has_a_row_for_each_operation_that_runs_and_one_for_all() {
        let row = |op: &str| ("default".to_owned(), op.to_owned(), "open".to_owned());
        assert_eq!(every(&testing::plan()), [row("read"), row("scan"), row("all")]);
    }

    #[test]
    fn several_have_a_row_each_beside() {
        let plan = testing::groups_plan();
        let row = |client: &str, op: &str, model: &str| (client.to_owned(), op.to_owned(), model.to_owned());
        assert_eq!(
            every(&plan),
            [
                row("critical", "read", "open"),
                row("critical", "scan", "open"),
                row("critical", "all", "open"),
                row("batch", "read", "closed"),
                row("batch", "all", "closed"),
                row("all", "all", "mixed"),
            ]
        );
        let titles: Vec<String> = Scope::every(&plan).into_iter().map(|scope| scope.title(&plan)).collect();
        assert_eq!(
            titles,
            ["critical/read", "critical/scan", "critical/all", "batch/read", "batch/all", "all"]
        );
        assert_eq!((Scope::Client(1).workers(&plan), Scope::All.workers(&plan)), (Some(4), None));
        assert_eq!((Scope::Operation(0).share(&plan), Scope::Operation(2).share(&plan)), (0.75, 1.0));
    }
}
