//! The definitions that users made.

use crate::sql::{self, Sql, insert, to_json};
use domain::event::{DefinitionMade, DefinitionRemoved, Event};

/// A user made a definition, or it was removed.
pub(super) fn changed(sql: &Sql<'_>, event: &Event) -> sql::Result<()> {
    match event {
        Event::DefinitionMade(it) => made(sql, it),
        Event::DefinitionRemoved(it) => removed(sql, it),
        // The others have projections of their own.
        _ => Ok(()),
    }
}

fn made(sql: &Sql<'_>, it: &DefinitionMade) -> sql::Result<()> {
    insert!(
        sql,
        made_definitions {
            id: it.definition.0,
            user_id: it.user_id,
            template: it.template.0,
            own: to_json(&it.own)?,
            made_at: it.time
        }
    )
}

fn removed(sql: &Sql<'_>, it: &DefinitionRemoved) -> sql::Result<()> {
    sql.write(
        "DELETE FROM made_definitions WHERE id = ?1",
        [it.definition.0.as_str()],
    )
}
