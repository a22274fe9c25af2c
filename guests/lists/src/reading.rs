//! The reading list: what a user wants to read, is reading, or has read.

use crate::fields::{self, Listing, Priority, has_all, listing};
use crate::shelf::{Entry, Numbered, Shelf};
use crate::{Change, Id};
use agent_host_sdk::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// The reading progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    #[default]
    Unread,
    Reading,
    Read,
}

/// Something to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reading {
    /// Its title.
    title: String,
    /// Its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The user's notes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    notes: String,
    /// Its subjects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    priority: Priority,
    status: Status,
    /// Time at which it was added.
    added_at: String,
    /// Time at which it was marked as read.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_at: Option<String>,
}

impl Entry for Reading {
    const LIST: &'static str = "reading";
    const NAME: &'static str = "entry of the reading list";

    fn title(&self) -> &str {
        &self.title
    }

    fn notes(&mut self) -> &mut String {
        &mut self.notes
    }
}

impl Reading {
    fn mark(&mut self, status: Status, change: &Change<'_>) {
        match status {
            // Reading it twice does not change when it was read first.
            Status::Read if self.status == Status::Read => {}
            Status::Read => self.read_at = Some(change.now.to_string()),
            Status::Unread | Status::Reading => self.read_at = None,
        }
        self.status = status;
    }
}

/// The arguments of `reading_list_add`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Add {
    /// Its title.
    #[schemars(length(min = 1, max = 300))]
    title: String,
    /// Its web address, if it has one, such as `https://example.com/page`. Each can be listed once.
    #[schemars(length(max = 2000))]
    url: Option<String>,
    /// Notes to keep in mind about it.
    #[schemars(length(max = 4000))]
    notes: Option<String>,
    /// Its subjects, in single words.
    #[schemars(length(max = 20))]
    tags: Option<Vec<String>>,
    /// `normal` if omitted.
    priority: Option<Priority>,
}

/// The arguments of `reading_list_list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct List {
    /// Only those that have been read so far.
    status: Option<Status>,
    /// Only those with this tag.
    tag: Option<String>,
    /// Number of entries to return; 20 if omitted, 100 at most.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// Number of entries to skip.
    offset: Option<u32>,
}

/// The arguments of `reading_list_search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Search {
    /// Words; all of them have to occur, in any case.
    #[schemars(length(min = 1, max = 200))]
    query: String,
    /// Only those that have been read so far.
    status: Option<Status>,
    /// Number of entries to return; 20 if omitted, 100 at most.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// Number of entries to skip.
    offset: Option<u32>,
}

/// The arguments of `reading_list_update`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Update {
    /// The entry's id.
    id: u64,
    /// The new title.
    #[schemars(length(min = 1, max = 300))]
    title: Option<String>,
    /// The new address; an empty one takes it away.
    #[schemars(length(max = 2000))]
    url: Option<String>,
    /// The new notes; empty ones take them away.
    #[schemars(length(max = 4000))]
    notes: Option<String>,
    /// All tags that it is to have.
    #[schemars(length(max = 20))]
    tags: Option<Vec<String>>,
    priority: Option<Priority>,
    status: Option<Status>,
}

pub(crate) fn add(
    shelf: &Shelf<Reading>,
    change: &Change<'_>,
    arguments: &Add,
) -> Result<Numbered<Reading>, ToolError> {
    let reading = Reading {
        title: fields::title(&arguments.title)?,
        url: arguments.url.as_deref().map(fields::url).transpose()?,
        notes: fields::notes(arguments.notes.as_deref().unwrap_or_default())?,
        tags: fields::tags(arguments.tags.as_deref().unwrap_or_default())?,
        priority: arguments.priority.unwrap_or_default(),
        status: Status::Unread,
        added_at: change.now.to_string(),
        read_at: None,
    };
    let url = reading.url.clone();
    shelf.add(change, reading, |others| {
        url.map_or(Ok(()), |url| refuse_twice(&url, others, None))
    })
}

/// An address is on the list once.
fn refuse_twice(
    url: &str,
    others: &[Numbered<Reading>],
    but: Option<u64>,
) -> Result<(), ToolError> {
    let is_same = |Numbered { id, entry }: &&Numbered<Reading>| {
        let there = entry.url.as_ref();
        Some(*id) != but && there.is_some_and(|there| fields::is_same_page(there, url))
    };
    match others.iter().find(is_same) {
        None => Ok(()),
        Some(Numbered { id, entry }) => {
            let status = match entry.status {
                Status::Unread => "unread",
                Status::Reading => "being read",
                Status::Read => "read",
            };
            Err(ToolError::invalid(
                "url",
                format_args!(
                    "is on the list already: id {id}, \"{}\", {status}",
                    entry.title
                ),
            ))
        }
    }
}

pub(crate) fn list(
    shelf: &Shelf<Reading>,
    arguments: &List,
) -> Result<Listing<Reading>, ToolError> {
    let tag = arguments.tag.as_deref().map(fields::tag).transpose()?;
    let mut found = shelf.all()?;
    found.retain(|Numbered { entry, .. }| {
        arguments.status.is_none_or(|status| entry.status == status)
            && tag.as_ref().is_none_or(|tag| entry.tags.contains(tag))
    });
    shown(found, arguments.offset, arguments.limit)
}

pub(crate) fn search(
    shelf: &Shelf<Reading>,
    arguments: &Search,
) -> Result<Listing<Reading>, ToolError> {
    let words = fields::search_words(&arguments.query)?;
    let mut found = shelf.all()?;
    found.retain(|Numbered { entry, .. }| {
        let url = entry.url.as_deref().unwrap_or_default();
        let tags = entry.tags.join(" ");
        arguments.status.is_none_or(|status| entry.status == status)
            && has_all(&words, &[&entry.title, url, &entry.notes, &tags])
    });
    shown(found, arguments.offset, arguments.limit)
}

/// The most urgent first, and of these the oldest.
fn shown(
    mut found: Vec<Numbered<Reading>>,
    offset: Option<u32>,
    limit: Option<u32>,
) -> Result<Listing<Reading>, ToolError> {
    found.sort_by_key(|Numbered { id, entry }| (Reverse(entry.priority), *id));
    listing(found, offset, limit)
}

pub(crate) fn update(
    shelf: &Shelf<Reading>,
    change: &Change<'_>,
    arguments: &Update,
) -> Result<Numbered<Reading>, ToolError> {
    let Update {
        id,
        title,
        url,
        notes,
        tags,
        priority,
        status,
    } = arguments;
    let title = title.as_deref().map(fields::title).transpose()?;
    let url = match url.as_deref() {
        None => None,
        Some(url) if url.trim().is_empty() => Some(None),
        Some(url) => Some(Some(fields::url(url)?)),
    };
    let notes = notes.as_deref().map(fields::notes).transpose()?;
    let tags = tags.as_deref().map(fields::tags).transpose()?;
    if title.is_none()
        && url.is_none()
        && notes.is_none()
        && tags.is_none()
        && priority.is_none()
        && status.is_none()
    {
        return Err(fields::no_change());
    }
    if let Some(Some(url)) = &url {
        refuse_twice(url, &shelf.all()?, Some(*id))?;
    }
    shelf.change(change, *id, |reading| {
        reading.title = title.unwrap_or_else(|| std::mem::take(&mut reading.title));
        reading.url = url.unwrap_or_else(|| reading.url.take());
        reading.notes = notes.unwrap_or_else(|| std::mem::take(&mut reading.notes));
        reading.tags = tags.unwrap_or_else(|| std::mem::take(&mut reading.tags));
        reading.priority = priority.unwrap_or(reading.priority);
        if let Some(status) = *status {
            reading.mark(status, change);
        }
    })
}

pub(crate) fn mark_read(
    shelf: &Shelf<Reading>,
    change: &Change<'_>,
    id: &Id,
) -> Result<Numbered<Reading>, ToolError> {
    shelf.change(change, id.id, |reading| {
        reading.mark(Status::Read, change);
    })
}
