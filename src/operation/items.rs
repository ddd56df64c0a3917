//! The items of a bulk, each with a fate of its own: what was rejected may go again, what was written may not, and what no
//! server will ever take is to be kept for people.

use std::collections::BTreeMap;
use std::error::Error as _;

use mongodb::error::{Error, ErrorKind};

use super::Statement;
use crate::client::errors;
use crate::plan::gate::RATE_LIMIT_EXCEEDED;

/// Which items of an operation are still to be written. Those of an operation that is no bulk are one whole.
#[derive(Clone, Debug, Default)]
pub struct Items {
    /// Positions among all items, in their order; `None` for all.
    left: Option<Vec<usize>>,
}

/// An item that no server takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hopeless {
    /// Its position among the operation's items.
    pub item: usize,
    /// What the server said of it; `None` when it was not tried because one before it is hopeless.
    pub error: Option<ItemError>,
}

/// What a server said of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemError {
    /// The server's code.
    pub code: i32,
    /// Its name; may be empty.
    pub name: String,
    /// What it said.
    pub message: String,
}

impl ItemError {
    /// Whether the item may be written later. Items have no labels, so it is the code alone that tells a rejection.
    const fn may_pass(&self) -> bool {
        self.code == RATE_LIMIT_EXCEEDED || errors::passes(self.code)
    }
}

/// How a bulk is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bulk {
    /// How many items it has.
    pub count: usize,
    /// Whether the first failure ends it.
    pub ordered: bool,
}

impl Statement {
    /// What it is as a bulk; `None` for what has no items.
    pub fn bulk(&self) -> Option<Bulk> {
        match self {
            Self::InsertMany { count, ordered, .. } => {
                Some(Bulk { count: usize::try_from(*count).ok()?, ordered: *ordered })
            }
            Self::BulkWrite(writes, ordered) => Some(Bulk { count: writes.len(), ordered: *ordered }),
            _ => None,
        }
    }
}

impl Items {
    /// Those of a rendered bulk that are still to be written.
    pub fn pick<T>(&self, all: Vec<T>) -> Vec<T> {
        let Some(left) = &self.left else { return all };
        let mut left = left.iter().peekable();
        let is_left = |(item, it)| left.next_if(|&&next| next == item).map(|_| it);
        all.into_iter().enumerate().filter_map(is_left).collect()
    }

    /// Whether any is.
    pub fn any(&self) -> bool {
        self.left.as_ref().is_none_or(|left| !left.is_empty())
    }

    /// Strikes out what a call has written and what will never be, the latter of which is returned, in its order. `None`
    /// when the error says nothing of single items: all of them have to go again then.
    ///
    /// A hopeless item of an ordered bulk takes those behind it with it, as they were meant to come after it.
    pub fn settle(&mut self, bulk: Bulk, error: &Error) -> Option<Vec<Hopeless>> {
        let told = Told::by(error)?;
        let sent = self.left.take().unwrap_or_else(|| (0..bulk.count).collect());
        let first = told.errors.keys().next().copied();
        let (mut left, mut hopeless, mut untried) = (Vec::new(), Vec::new(), Vec::new());
        for (position, item) in sent.into_iter().enumerate() {
            match told.errors.get(&position) {
                Some(error) if error.may_pass() => left.push(item),
                Some(error) => hopeless.push(Hopeless { item, error: Some(error.clone()) }),
                None if bulk.ordered && first.is_some_and(|first| position > first) => untried.push(item),
                None if told.rest_untried => untried.push(item),
                // Written, or nobody knows: what may be there already is not sent again.
                None => {}
            }
        }
        if bulk.ordered && !hopeless.is_empty() {
            hopeless.extend(untried.into_iter().map(|item| Hopeless { item, error: None }));
        } else {
            left.extend(untried);
            left.sort_unstable();
        }
        self.left = Some(left);
        Some(hopeless)
    }
}

/// What an error says of single items.
struct Told {
    /// By position among those that were sent.
    errors: BTreeMap<usize, ItemError>,
    /// Whether something else befell the call before anything was written, so that items of which nothing is said were not
    /// tried.
    rest_untried: bool,
}

impl Told {
    fn by(error: &Error) -> Option<Self> {
        let item = |code, name: &Option<String>, message: &String| {
            let name = name.clone().unwrap_or_else(|| errors::name_of(code).to_owned());
            ItemError { code, name, message: message.clone() }
        };
        match error.kind.as_ref() {
            ErrorKind::InsertMany(many) => {
                let each = many.write_errors.iter().flatten();
                let errors = each.map(|e| (e.index, item(e.code, &e.code_name, &e.message))).collect();
                Some(Self { errors, rest_untried: false })
            }
            ErrorKind::BulkWrite(many) => {
                let each = many.write_errors.iter();
                let errors = each.map(|(&at, e)| (at, item(e.code, &e.code_name, &e.message))).collect();
                let rest_untried = error.source().is_some() && many.partial_result.is_none();
                Some(Self { errors, rest_untried })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;
    use mongodb::error::{BulkWriteError, InsertManyError, WriteError};

    use super::*;

    const ORDERED: Bulk = Bulk { count: 5, ordered: true };
    const UNORDERED: Bulk = Bulk { count: 5, ordered: false };

    /// Duplicate keys and conflicts at these places among those that were sent.
    fn error(at: &[(i32, i32)]) -> Error {
        let each: Vec<_> = at
            .iter()
            .map(|(index, code)| doc! { "index": index, "code": code, "errmsg": format!("no {index}") })
            .collect();
        let many: InsertManyError = bson::deserialize_from_document(doc! { "writeErrors": each }).unwrap();
        ErrorKind::InsertMany(many).into()
    }

    fn left(items: &Items) -> Vec<usize> {
        items.pick((0..5).collect())
    }

    fn hopeless(found: Option<Vec<Hopeless>>) -> Vec<(usize, Option<i32>)> {
        found.unwrap().into_iter().map(|it| (it.item, it.error.map(|error| error.code))).collect()
    }

    #[test]
    fn what_was_rejected_goes_again_and_what_is_hopeless_does_not() {
        let mut items = Items::default();
        assert_eq!(left(&items), [0, 1, 2, 3, 4]);
        assert_eq!(
            hopeless(items.settle(UNORDERED, &error(&[(1, 11000), (2, 112), (4, 462)]))),
            [(1, Some(11000))]
        );
        assert_eq!(left(&items), [2, 4]);
        // Places are those among the two that were sent.
        assert_eq!(hopeless(items.settle(UNORDERED, &error(&[(0, 112), (1, 121)]))), [(4, Some(121))]);
        assert_eq!(left(&items), [2]);
        assert!(items.any());
        assert_eq!(hopeless(items.settle(UNORDERED, &error(&[(0, 11000)]))), [(2, Some(11000))]);
        assert!(!items.any());
    }

    #[test]
    fn an_ordered_bulk_goes_on_where_it_was_rejected_and_ends_where_it_is_hopeless() {
        let mut items = Items::default();
        assert_eq!(hopeless(items.settle(ORDERED, &error(&[(2, 112)]))), []);
        assert_eq!(left(&items), [2, 3, 4]);
        assert_eq!(hopeless(items.settle(ORDERED, &error(&[(1, 11000)]))), [(3, Some(11000)), (4, None)]);
        assert!(!items.any());
    }

    #[test]
    fn an_error_of_the_whole_says_nothing_of_items() {
        let mut items = Items::default();
        assert_eq!(items.settle(UNORDERED, &Error::custom("no server")), None);
        assert_eq!(left(&items), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn all_were_written_when_the_write_concern_alone_failed() {
        let mut items = Items::default();
        assert_eq!(hopeless(items.settle(UNORDERED, &error(&[]))), []);
        assert!(!items.any());
    }

    #[test]
    fn bulk_writes_are_settled_alike() {
        let duplicate: WriteError =
            bson::deserialize_from_document(doc! { "code": 11000, "errmsg": "twice" }).unwrap();
        let mut many = BulkWriteError::default();
        many.write_errors.insert(3, duplicate);
        let error: Error = ErrorKind::BulkWrite(many).into();
        let mut items = Items::default();
        assert_eq!(hopeless(items.settle(UNORDERED, &error)), [(3, Some(11000))]);
        assert!(!items.any());
        assert_eq!(hopeless(Items::default().settle(ORDERED, &error)), [(3, Some(11000)), (4, None)]);
    }
}
