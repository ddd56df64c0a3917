//! What the items of a bulk would write, spelt as people give it to the shell's `bulkWrite`.

use bson::{Document, doc};
use mongodb::error::{Error, Result};

use super::{Statement, Update};
use crate::document::Draw;

impl Statement {
    /// Each item of a bulk, in its order; nothing of what has no items.
    ///
    /// # Errors
    /// When a template renders to something else than its place takes.
    pub fn written(&self, draw: &mut Draw) -> Result<Vec<Document>> {
        let insert = |document: Document| doc! { "insertOne": { "document": document } };
        Ok(match self {
            Self::InsertMany { count, document, .. } => {
                document.render_many(*count, draw).into_iter().map(insert).collect()
            }
            Self::BulkWrite(writes, _) => {
                let each = writes.iter().map(|write| {
                    Ok(match write {
                        Self::InsertOne(document) => insert(document.render(draw)),
                        Self::UpdateOne(update) => doc! { "updateOne": changed(update, "update", draw)? },
                        Self::UpdateMany(update) => doc! { "updateMany": changed(update, "update", draw)? },
                        Self::ReplaceOne(update) => {
                            doc! { "replaceOne": changed(update, "replacement", draw)? }
                        }
                        Self::DeleteOne(filter) => doc! { "deleteOne": { "filter": filter.document(draw) } },
                        Self::DeleteMany(filter) => {
                            doc! { "deleteMany": { "filter": filter.document(draw) } }
                        }
                        // Plans have no others in a bulk.
                        _ => Document::new(),
                    })
                });
                each.collect::<Result<_>>()?
            }
            _ => Vec::new(),
        })
    }
}

fn changed(update: &Update, change: &str, draw: &mut Draw) -> Result<Document> {
    let (filter, to) = update.render(draw)?;
    let to = bson::serialize_to_bson(&to).map_err(|error| Error::custom(error.to_string()))?;
    Ok(doc! { "filter": filter, change: to, "upsert": update.upsert })
}
