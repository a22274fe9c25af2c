//! The entries of one list in the bucket: added, found, changed and removed by id.

use crate::{Change, Deleted, Everything, Id};
use agent_host_sdk::keyvalue::Bucket;
use agent_host_sdk::{ArtifactItem, ArtifactItems, ToolError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// The bucket, as the operator grants it.
const BUCKET: &str = "lists";
/// Entries of one list.
pub(crate) const ENTRIES_MAX: usize = 1_000;

/// An entry of a list.
pub(crate) trait Entry: Serialize + DeserializeOwned {
    /// The first part of its keys.
    const LIST: &'static str;
    /// The name of such an entry in messages.
    const NAME: &'static str;
    fn title(&self) -> &str;
    /// The user's notes.
    fn notes(&mut self) -> &mut String;
}

/// An entry with its id, as callers see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Numbered<E> {
    /// Its id within its list.
    pub(crate) id: u64,
    #[serde(flatten)]
    pub(crate) entry: E,
}

/// A stored entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<E> {
    #[serde(flatten)]
    entry: Numbered<E>,
    /// The idempotency key of the call that added it.
    added_by: String,
    /// The idempotency key of the call that changed it last.
    changed_by: Option<String>,
}

/// A list.
#[derive(Debug)]
pub(crate) struct Shelf<E> {
    bucket: Bucket,
    entry: PhantomData<E>,
}

impl<E: Entry> Shelf<E> {
    pub(crate) fn open() -> Result<Self, ToolError> {
        Ok(Self {
            bucket: Bucket::open(BUCKET)?,
            entry: PhantomData,
        })
    }

    /// All entries, in the order in which they were added.
    pub(crate) fn all(&self) -> Result<Vec<Numbered<E>>, ToolError> {
        let records = self.records()?.into_iter();
        Ok(records.map(|record| record.entry).collect())
    }

    /// Adds an entry. The call that added one already gets that one; another gets `clash` to refuse
    /// what is there already.
    pub(crate) fn add(
        &self,
        change: &Change<'_>,
        entry: E,
        clash: impl FnOnce(&[Numbered<E>]) -> Result<(), ToolError>,
    ) -> Result<Numbered<E>, ToolError> {
        let mut entries = Vec::new();
        for record in self.records()? {
            if record.added_by == change.key {
                return Ok(record.entry);
            }
            entries.push(record.entry);
        }
        clash(&entries)?;
        if entries.len() >= ENTRIES_MAX {
            return Err(ToolError::Failed(format!(
                "the list is full: it has {ENTRIES_MAX} entries; delete some first"
            )));
        }
        let id = self.bucket.increment(&format!("counter/{}", E::LIST), 1)?;
        let record = Record {
            entry: Numbered { id, entry },
            added_by: change.key.to_owned(),
            changed_by: None,
        };
        self.bucket.set(&key::<E>(id), &record)?;
        Ok(record.entry)
    }

    /// Changes an entry. A call that changed it last gets it as it is.
    pub(crate) fn change(
        &self,
        change: &Change<'_>,
        id: u64,
        run: impl FnOnce(&mut E),
    ) -> Result<Numbered<E>, ToolError> {
        let mut record = self.record(id)?;
        if record.changed_by.as_deref() != Some(change.key) {
            run(&mut record.entry.entry);
            record.changed_by = Some(change.key.to_owned());
            self.bucket.set(&key::<E>(id), &record)?;
        }
        Ok(record.entry)
    }

    fn record(&self, id: u64) -> Result<Record<E>, ToolError> {
        let missing = || ToolError::NotFound(format!("there is no {} with the id {id}", E::NAME));
        self.bucket.get(&key::<E>(id))?.ok_or_else(missing)
    }

    fn records(&self) -> Result<Vec<Record<E>>, ToolError> {
        let mut keys = self.bucket.keys()?;
        keys.retain(|key| {
            key.strip_prefix(E::LIST)
                .is_some_and(|rest| rest.starts_with('/'))
        });
        let mut records: Vec<Record<E>> =
            self.bucket.get_many(&keys)?.into_iter().flatten().collect();
        records.sort_by_key(|record| record.entry.id);
        Ok(records)
    }
}

/// Names all entries.
pub(crate) fn items<E: Entry>(
    shelf: &Shelf<E>,
    _: &Everything,
) -> Result<ArtifactItems, ToolError> {
    let entries = shelf.all()?.into_iter();
    let items = entries.map(|Numbered { id, entry }| ArtifactItem {
        item_type: E::LIST.to_owned(),
        id: id.to_string(),
        name: entry.title().to_owned(),
    });
    Ok(ArtifactItems {
        items: items.collect(),
    })
}

/// Shows one entry.
pub(crate) fn get<E: Entry>(shelf: &Shelf<E>, id: &Id) -> Result<Numbered<E>, ToolError> {
    Ok(shelf.record(id.id)?.entry)
}

/// Removes an entry for good.
pub(crate) fn delete<E: Entry>(
    shelf: &Shelf<E>,
    _: &Change<'_>,
    id: &Id,
) -> Result<Deleted, ToolError> {
    let Numbered { id, entry } = shelf.record(id.id)?.entry;
    shelf.bucket.delete(&key::<E>(id))?;
    Ok(Deleted {
        id,
        title: entry.title().to_owned(),
    })
}

fn key<E: Entry>(id: u64) -> String {
    format!("{}/{id}", E::LIST)
}
