//! The todo list: tasks, when they are due, and whether they are done.

use crate::fields::{self, Listing, Priority, has_all, listing};
use crate::shelf::{Entry, Numbered, Shelf};
use crate::{Change, Id};
use agent_host_sdk::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    /// The work to be done.
    title: String,
    /// The user's notes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    notes: String,
    /// The last day for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_date: Option<String>,
    priority: Priority,
    /// Labels of what it belongs to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    done: bool,
    /// Time at which it was added.
    added_at: String,
    /// Time at which it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    done_at: Option<String>,
}

impl Entry for Task {
    const LIST: &'static str = "todo";
    const NAME: &'static str = "task";

    fn title(&self) -> &str {
        &self.title
    }

    fn notes(&mut self) -> &mut String {
        &mut self.notes
    }
}

/// The tasks to return.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Show {
    #[default]
    Open,
    Done,
    All,
}

impl Show {
    fn wants(self, task: &Task) -> bool {
        match self {
            Self::Open => !task.done,
            Self::Done => task.done,
            Self::All => true,
        }
    }
}

/// The arguments of `todo_add`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Add {
    /// The work to be done.
    #[schemars(length(min = 1, max = 300))]
    title: String,
    /// Notes to keep in mind about it.
    #[schemars(length(max = 4000))]
    notes: Option<String>,
    /// The last day for it, such as `2028-02-29`.
    due_date: Option<String>,
    /// `normal` if omitted.
    priority: Option<Priority>,
    /// Labels of what it belongs to, in single words.
    #[schemars(length(max = 20))]
    tags: Option<Vec<String>>,
}

/// The arguments of `todo_list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct List {
    /// `open` if omitted.
    show: Option<Show>,
    /// Only those with this tag.
    tag: Option<String>,
    /// Only those that are due on this day or before, such as `2028-02-29`.
    due_by: Option<String>,
    /// Number of tasks to return; 20 if omitted, 100 at most.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// Number of tasks to skip.
    offset: Option<u32>,
}

/// The arguments of `todo_search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Search {
    /// Words; all of them have to occur, in any case.
    #[schemars(length(min = 1, max = 200))]
    query: String,
    /// `all` if omitted.
    show: Option<Show>,
    /// Number of tasks to return; 20 if omitted, 100 at most.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// Number of tasks to skip.
    offset: Option<u32>,
}

/// The arguments of `todo_update`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Update {
    /// The task's id.
    id: u64,
    /// The new title.
    #[schemars(length(min = 1, max = 300))]
    title: Option<String>,
    /// The new notes; empty ones take them away.
    #[schemars(length(max = 4000))]
    notes: Option<String>,
    /// The new last day, such as `2028-02-29`; an empty one takes it away.
    due_date: Option<String>,
    priority: Option<Priority>,
    /// All tags that it is to have.
    #[schemars(length(max = 20))]
    tags: Option<Vec<String>>,
}

pub(crate) fn add(
    shelf: &Shelf<Task>,
    change: &Change<'_>,
    arguments: &Add,
) -> Result<Numbered<Task>, ToolError> {
    let task = Task {
        title: fields::title(&arguments.title)?,
        notes: fields::notes(arguments.notes.as_deref().unwrap_or_default())?,
        due_date: fields::due_date(arguments.due_date.as_deref().unwrap_or_default())?,
        priority: arguments.priority.unwrap_or_default(),
        tags: fields::tags(arguments.tags.as_deref().unwrap_or_default())?,
        done: false,
        added_at: change.now.to_string(),
        done_at: None,
    };
    // Two tasks may be called the same.
    shelf.add(change, task, |_| Ok(()))
}

pub(crate) fn list(shelf: &Shelf<Task>, arguments: &List) -> Result<Listing<Task>, ToolError> {
    let show = arguments.show.unwrap_or_default();
    let tag = arguments.tag.as_deref().map(fields::tag).transpose()?;
    let due_by = arguments.due_by.as_deref();
    let due_by = due_by.map(|text| fields::day("dueBy", text)).transpose()?;
    let mut found = shelf.all()?;
    found.retain(|Numbered { entry, .. }| {
        show.wants(entry)
            && tag.as_ref().is_none_or(|tag| entry.tags.contains(tag))
            && due_by
                .as_ref()
                .is_none_or(|by| entry.due_date.as_ref().is_some_and(|due| due <= by))
    });
    shown(found, arguments.offset, arguments.limit)
}

pub(crate) fn search(shelf: &Shelf<Task>, arguments: &Search) -> Result<Listing<Task>, ToolError> {
    let words = fields::search_words(&arguments.query)?;
    let show = arguments.show.unwrap_or(Show::All);
    let mut found = shelf.all()?;
    found.retain(|Numbered { entry, .. }| {
        let tags = entry.tags.join(" ");
        show.wants(entry) && has_all(&words, &[&entry.title, &entry.notes, &tags])
    });
    shown(found, arguments.offset, arguments.limit)
}

/// Open ones first; of these what is due soonest, then the most urgent, then the oldest.
fn shown(
    mut found: Vec<Numbered<Task>>,
    offset: Option<u32>,
    limit: Option<u32>,
) -> Result<Listing<Task>, ToolError> {
    found.sort_by_cached_key(|Numbered { id, entry }| {
        (
            entry.done,
            entry.due_date.is_none(),
            entry.due_date.clone(),
            Reverse(entry.priority),
            *id,
        )
    });
    listing(found, offset, limit)
}

pub(crate) fn update(
    shelf: &Shelf<Task>,
    change: &Change<'_>,
    arguments: &Update,
) -> Result<Numbered<Task>, ToolError> {
    let Update {
        id,
        title,
        notes,
        due_date,
        priority,
        tags,
    } = arguments;
    let title = title.as_deref().map(fields::title).transpose()?;
    let notes = notes.as_deref().map(fields::notes).transpose()?;
    let due_date = due_date.as_deref().map(fields::due_date).transpose()?;
    let tags = tags.as_deref().map(fields::tags).transpose()?;
    if title.is_none()
        && notes.is_none()
        && due_date.is_none()
        && tags.is_none()
        && priority.is_none()
    {
        return Err(fields::no_change());
    }
    shelf.change(change, *id, |task| {
        task.title = title.unwrap_or_else(|| std::mem::take(&mut task.title));
        task.notes = notes.unwrap_or_else(|| std::mem::take(&mut task.notes));
        task.due_date = due_date.unwrap_or_else(|| task.due_date.take());
        task.priority = priority.unwrap_or(task.priority);
        task.tags = tags.unwrap_or_else(|| std::mem::take(&mut task.tags));
    })
}

pub(crate) fn complete(
    shelf: &Shelf<Task>,
    change: &Change<'_>,
    id: &Id,
) -> Result<Numbered<Task>, ToolError> {
    shelf.change(change, id.id, |task| {
        // What was done stays done when it was.
        if !task.done {
            task.done = true;
            task.done_at = Some(change.now.to_string());
        }
    })
}

pub(crate) fn reopen(
    shelf: &Shelf<Task>,
    change: &Change<'_>,
    id: &Id,
) -> Result<Numbered<Task>, ToolError> {
    shelf.change(change, id.id, |task| {
        task.done = false;
        task.done_at = None;
    })
}
