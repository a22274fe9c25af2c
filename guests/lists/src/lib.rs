//! Two lists that a user keeps: things to read and things to do.
//!
//! All of it lives in one bucket, `lists`, an entry under a key: `reading/<id>` and `todo/<id>`.
//! Ids count up from 1 in each list and are never used again. A change is stored with the
//! idempotency key of the call that made it, so that the same call again finds it done.

mod fields;
mod reading;
mod shelf;
mod todo;

use crate::reading::Reading;
use crate::shelf::Shelf;
use crate::todo::Task;
use agent_host_sdk::{CallContext, Json, Tool, ToolError, Tools, export_tools};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The capability that the operator grants, and that an agent must be allowed to use.
const READ: &str = "lists.read";
/// The same for changes.
const WRITE: &str = "lists.write";

/// The tools.
#[derive(Debug, Clone, Copy)]
pub struct Lists {
    clock: fn() -> Timestamp,
}

impl Lists {
    /// The tools with the time of the host.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "a guest has no other clock than the one that the host lends it"
    )]
    pub fn new() -> Self {
        Self {
            clock: Timestamp::now,
        }
    }

    /// The tools with another time, for a test.
    #[must_use]
    pub fn at(clock: fn() -> Timestamp) -> Self {
        Self { clock }
    }

    fn read<A, R, E>(
        self,
        name: &str,
        description: &str,
        run: fn(&Shelf<E>, &A) -> Result<R, ToolError>,
    ) -> Tool
    where
        A: DeserializeOwned + JsonSchema + 'static,
        R: Serialize + JsonSchema + 'static,
        E: shelf::Entry + 'static,
    {
        let run = move |_: &CallContext, arguments: A| run(&Shelf::open()?, &arguments).map(Json);
        Tool::new(name, description, run).read_only().needs(READ)
    }

    /// A tool that changes something.
    fn change<A, R, E>(
        self,
        name: &str,
        description: &str,
        run: fn(&Shelf<E>, &Change<'_>, &A) -> Result<R, ToolError>,
    ) -> Tool
    where
        A: DeserializeOwned + JsonSchema + 'static,
        R: Serialize + JsonSchema + 'static,
        E: shelf::Entry + 'static,
    {
        let run = move |context: &CallContext, arguments: A| {
            let change = Change {
                key: &context.idempotency_key,
                now: to_the_second((self.clock)()),
            };
            run(&Shelf::open()?, &change, &arguments).map(Json)
        };
        Tool::new(name, description, run).needs(READ).needs(WRITE)
    }

    // To delete again what is gone is another outcome, so the deleting tools run at most once.
    fn reading_list_tools(self) -> [Tool; 8] {
        [
            self.read(
                "reading_list_items",
                "Names everything that is on the reading list, with its id.",
                shelf::items::<Reading>,
            )
            .lists_artifacts(),
            self.change(
                "reading_list_add",
                "Adds an article, a paper or a link to the reading list.",
                reading::add,
            )
            .idempotent(),
            self.read(
                "reading_list_list",
                "Lists what is on the reading list, the most urgent and then the oldest first.",
                reading::list,
            ),
            self.read(
                "reading_list_search",
                "Finds entries of the reading list by words in their title, URL, notes or tags.",
                reading::search,
            ),
            self.read(
                "reading_list_get",
                "Shows one entry of the reading list with all its notes.",
                shelf::get::<Reading>,
            ),
            self.change(
                "reading_list_update",
                "Changes an entry of the reading list; what is not given stays.",
                reading::update,
            )
            .idempotent(),
            self.change(
                "reading_list_mark_read",
                "Marks an entry of the reading list as read.",
                reading::mark_read,
            )
            .idempotent(),
            self.change(
                "reading_list_delete",
                "Deletes an entry of the reading list for good.",
                shelf::delete::<Reading>,
            )
            .destructive(),
        ]
    }

    fn todo_tools(self) -> [Tool; 9] {
        [
            self.read(
                "todo_items",
                "Names every task, with its id.",
                shelf::items::<Task>,
            )
            .lists_artifacts(),
            self.change("todo_add", "Adds a task to the todo list.", todo::add)
                .idempotent(),
            self.read(
                "todo_list",
                "Lists tasks, those due first and then the most urgent; open ones unless told \
                 otherwise.",
                todo::list,
            ),
            self.read(
                "todo_search",
                "Finds tasks by words in their title, notes or tags.",
                todo::search,
            ),
            self.read(
                "todo_get",
                "Shows one task with all its notes.",
                shelf::get::<Task>,
            ),
            self.change(
                "todo_update",
                "Changes a task; what is not given stays.",
                todo::update,
            )
            .idempotent(),
            self.change("todo_complete", "Marks a task as done.", todo::complete)
                .idempotent(),
            self.change(
                "todo_reopen",
                "Marks a task as not done after all.",
                todo::reopen,
            )
            .idempotent(),
            self.change(
                "todo_delete",
                "Deletes a task for good; one that is done is better completed.",
                shelf::delete::<Task>,
            )
            .destructive(),
        ]
    }
}

impl Default for Lists {
    fn default() -> Self {
        Self::new()
    }
}

/// The call that makes a change, and its time.
#[derive(Debug, Clone, Copy)]
struct Change<'a> {
    /// The same for every attempt of a call.
    key: &'a str,
    now: Timestamp,
}

/// The time without fractions of a second, which no reader needs.
fn to_the_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Names one entry.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Id {
    /// The entry's id, such as 12.
    id: u64,
}

/// Names all of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Everything {}

/// Says what was removed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Deleted {
    /// Its id, which is not used again.
    id: u64,
    /// Its title.
    title: String,
}

impl Tools for Lists {
    fn tools(&self) -> Vec<Tool> {
        self.reading_list_tools()
            .into_iter()
            .chain(self.todo_tools())
            .collect()
    }
}

export_tools!(Lists::new(), wants: [
    bucket_to_write("lists", "keeps the reading list and the list of things to do"),
]);

#[cfg(test)]
mod tests;
