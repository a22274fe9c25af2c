//! Sessions that were begun by other sessions.

use crate::sql::{self, Sql, args};
use domain::event::InputAccepted;
use domain::id::RunId;

/// Records that a run handed work to a session. The session was begun for it by the run's session
/// if an agent opened it and this is its first input.
pub(super) fn handed_over(
    sql: &Sql<'_>,
    accepted: &InputAccepted,
    by_run: RunId,
) -> sql::Result<()> {
    sql.write(
        "INSERT INTO spawned (session, by_session) SELECT sessions.id, runs.session FROM sessions, \
         runs WHERE sessions.id = ?1 AND runs.id = ?2 AND sessions.started_by LIKE 'agent:%' AND \
         sessions.first_input IS NULL ON CONFLICT DO NOTHING",
        args![accepted.session, by_run],
    )
}
