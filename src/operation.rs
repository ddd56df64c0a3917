//! The kinds of operation, ready to run: templates compiled, numbers of new keys known.

pub mod execute;
pub mod items;
pub mod mix;
mod written;

use mix::{Mix, Share};

use crate::document::{Compiled, Draw, seed};
use crate::plan::operation as plan;
use crate::plan::{Action, Plan, Shard, Template, Turn};

/// A plan's operations, compiled. The n-th operation is the same in every run with the same plan.
pub struct Workload {
    seed: u64,
    documents: u64,
    shard: Option<Shard>,
    turn: Option<Turn>,
    operations: Vec<Statement>,
}

/// The n-th operation: which it is, and all random choices it will make.
pub struct Instance<'a> {
    /// Its position in the plan.
    pub operation: usize,
    /// What it does.
    pub statement: &'a Statement,
    /// Its choices.
    pub draw: Draw,
}

/// What one call does, compiled from an [`Action`].
pub enum Statement {
    /// find_one
    FindOne(Find),
    /// find
    Find(Find),
    /// aggregate
    Aggregate(Vec<Compiled>, Option<u32>),
    /// count
    Count(Compiled),
    /// distinct
    Distinct(String, Compiled),
    /// insert_one: a document, or the data's own with a new key
    InsertOne(NewDocument),
    /// insert_many
    InsertMany {
        /// How many.
        count: u32,
        /// Each of them.
        document: NewDocument,
        /// Whether the first failure ends it.
        ordered: bool,
    },
    /// update_one
    UpdateOne(Update),
    /// update_many
    UpdateMany(Update),
    /// replace_one
    ReplaceOne(Update),
    /// delete_one
    DeleteOne(Compiled),
    /// delete_many
    DeleteMany(Compiled),
    /// find_one_and_update
    FindOneAndUpdate(Update),
    /// bulk_write
    BulkWrite(Vec<Self>, bool),
    /// transaction
    Transaction(Vec<Self>),
    /// create_collection, by its suffix
    CreateCollection(Compiled),
    /// drop, by its suffix
    Drop(Compiled),
    /// run_command: the command, and the database if it is not the data's
    RunCommand(Compiled, Option<String>),
}

/// A query.
pub struct Find {
    filter: Compiled,
    projection: Option<Compiled>,
    sort: Option<Compiled>,
    limit: Option<Compiled>,
    batch_size: Option<u32>,
}

/// A change: operators, pipeline stages or a whole document.
pub struct Update {
    filter: Compiled,
    change: Compiled,
    upsert: bool,
}

/// Where an inserted document comes from.
pub enum NewDocument {
    /// The operation's own template.
    Own(Compiled),
    /// The data's template, with the next new key in every place of a key.
    Data(Compiled),
}

impl Workload {
    /// Compiles a plan's operations, and lays out their order.
    pub fn new(plan: &Plan) -> (Self, Mix) {
        let data = &plan.data;
        let compiler = Compiler { plan };
        let operations = plan.operations.iter().map(|o| compiler.statement(&o.action)).collect();
        let shares: Vec<Share> = plan
            .operations
            .iter()
            .map(|o| Share { weight: o.weight, new_keys: new_keys(&o.action) })
            .collect();
        let (seed, documents) = (seed(plan), data.documents);
        (Self { seed, documents, shard: plan.shard, turn: plan.turn, operations }, Mix::new(seed, &shares))
    }

    /// The n-th operation.
    pub fn instance(&self, mix: &Mix, n: u64) -> Instance<'_> {
        let place = mix.at(n);
        let draw = Draw::operation(self.seed, n, self.documents, place.occurrence, place.new_keys);
        let draw = match (self.shard, self.turn) {
            (Some(shard), _) => draw.in_shard(shard, self.documents),
            (None, Some(turn)) => draw.in_turn(turn, self.documents),
            (None, None) => draw,
        };
        Instance { operation: place.operation, statement: &self.operations[place.operation], draw }
    }
}

struct Compiler<'a> {
    plan: &'a Plan,
}

impl Compiler<'_> {
    fn compile(&self, template: &Template) -> Compiled {
        Compiled::new(template, self.plan.data.documents)
    }

    fn statement(&self, action: &Action) -> Statement {
        match action {
            Action::FindOne(find) => Statement::FindOne(self.find(find)),
            Action::Find(find) => Statement::Find(self.find(find)),
            Action::Aggregate(a) => Statement::Aggregate(
                a.pipeline.iter().map(|stage| self.compile(stage)).collect(),
                a.batch_size,
            ),
            Action::Count(f) => Statement::Count(self.compile(&f.filter)),
            Action::Distinct(d) => Statement::Distinct(d.field.clone(), self.compile(&d.filter)),
            Action::InsertOne(i) => Statement::InsertOne(self.new_document(i.document.as_ref())),
            Action::InsertMany(i) => Statement::InsertMany {
                count: i.count,
                document: self.new_document(i.document.as_ref()),
                ordered: i.ordered,
            },
            Action::UpdateOne(u) => Statement::UpdateOne(self.update(u)),
            Action::UpdateMany(u) => Statement::UpdateMany(self.update(u)),
            Action::FindOneAndUpdate(u) => Statement::FindOneAndUpdate(self.update(u)),
            Action::ReplaceOne(r) => Statement::ReplaceOne(Update {
                filter: self.compile(&r.filter),
                change: self.compile(&r.replacement),
                upsert: r.upsert,
            }),
            Action::DeleteOne(f) => Statement::DeleteOne(self.compile(&f.filter)),
            Action::DeleteMany(f) => Statement::DeleteMany(self.compile(&f.filter)),
            Action::BulkWrite(b) => {
                Statement::BulkWrite(b.writes.iter().map(|write| self.statement(write)).collect(), b.ordered)
            }
            Action::Transaction(t) => Statement::Transaction(
                t.statements.iter().map(|statement| self.statement(statement)).collect(),
            ),
            Action::CreateCollection(c) => Statement::CreateCollection(self.compile(&c.suffix)),
            Action::Drop(c) => Statement::Drop(self.compile(&c.suffix)),
            Action::RunCommand(c) => Statement::RunCommand(self.compile(&c.command), c.database.clone()),
        }
    }

    fn find(&self, find: &plan::Find) -> Find {
        Find {
            filter: self.compile(&find.filter),
            projection: find.projection.as_ref().map(|p| self.compile(p)),
            sort: find.sort.as_ref().map(|s| self.compile(s)),
            limit: find.limit.as_ref().map(|l| self.compile(l)),
            batch_size: find.batch_size,
        }
    }

    fn update(&self, update: &plan::Update) -> Update {
        Update {
            filter: self.compile(&update.filter),
            change: self.compile(&update.update),
            upsert: update.upsert,
        }
    }

    fn new_document(&self, own: Option<&Template>) -> NewDocument {
        match own {
            Some(template) => NewDocument::Own(self.compile(template)),
            None => NewDocument::Data(self.compile(&self.plan.data.document)),
        }
    }
}

/// How many new keys one execution uses.
fn new_keys(action: &Action) -> u64 {
    let data = |own: &Option<Template>| own.as_ref().map_or(1, Template::new_keys);
    match action {
        Action::InsertOne(i) => data(&i.document),
        Action::InsertMany(i) => u64::from(i.count) * data(&i.document),
        Action::BulkWrite(b) => b.writes.iter().map(new_keys).sum(),
        Action::Transaction(t) => t.statements.iter().map(new_keys).sum(),
        _ => action.templates().into_iter().map(Template::new_keys).sum(),
    }
}
