//! The definitions that users made.

use crate::sql::{Sql, int, to_json};
use domain::event::{DefinitionMade, DefinitionRemoved, Event};
use rusqlite::params;

/// A user made a definition, or it was removed.
pub(super) fn changed(sql: &Sql<'_>, event: &Event) -> rusqlite::Result<()> {
    match event {
        Event::DefinitionMade(it) => made(sql, it),
        Event::DefinitionRemoved(it) => removed(sql, it),
        // The others have projections of their own.
        _ => Ok(()),
    }
}

fn made(sql: &Sql<'_>, it: &DefinitionMade) -> rusqlite::Result<()> {
    sql.write(
        "INSERT INTO made_definitions (id, user_id, template, own, made_at) VALUES (?1, ?2, ?3, \
         ?4, ?5)",
        params![
            it.definition.0,
            it.user_id.as_str(),
            it.template.0,
            to_json(&it.own)?,
            int(it.time.0)
        ],
    )
}

fn removed(sql: &Sql<'_>, it: &DefinitionRemoved) -> rusqlite::Result<()> {
    sql.write(
        "DELETE FROM made_definitions WHERE id = ?1",
        [it.definition.0.as_str()],
    )
}
