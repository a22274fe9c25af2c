//! Events of an agent's stream about its structured sessions. The agent's row and the session's row
//! follow from them.

use super::sessions::{self, Closing};
use super::{agents, wakes};
use crate::sql::{self, Sql};
use domain::event::Event;

/// Records a change of the session that holds an agent's slot, or of an imported one.
pub(super) fn changed(sql: &Sql<'_>, event: &Event) -> sql::Result<()> {
    match event {
        Event::SessionImported(it) => {
            agents::changed(sql, it.agent, event)?;
            sessions::closed(sql, it.session.session_id, &Closing::imported(&it.session))?;
            sessions::interacted(sql, it.session.session_id, it.session.interactions)?;
        }
        Event::SlotTaken(it) => {
            agents::changed(sql, it.agent, event)?;
            sessions::expires(sql, it.session_id, it.expires_at)?;
            wakes::set(sql, &it.session_id, "expiry", it.session_id, it.expires_at)?;
        }
        Event::ExecutionSuspended(it) => agents::changed(sql, it.agent, event)?,
        Event::ActionRequested(it) => agents::changed(sql, it.agent, event)?,
        Event::ExecutionResumed(it) => {
            agents::changed(sql, it.agent, event)?;
            sessions::answered(sql, it.session_id, it.tool_call_id)?;
        }
        Event::ResponseReceived(it) => {
            agents::changed(sql, it.agent, event)?;
            sessions::answered(sql, it.session_id, it.tool_call_id)?;
        }
        Event::ActionWithdrawn(it) => {
            agents::changed(sql, it.agent, event)?;
            sessions::unsaved(sql, it.session_id, it.tool_call_id)?;
        }
        Event::SlotCompleted(it) => {
            agents::changed(sql, it.agent, event)?;
            sessions::closed(sql, it.session_id, &Closing::completed(it))?;
            wakes::remove(sql, &it.session_id)?;
        }
        Event::SlotTerminated(it) => {
            agents::changed(sql, it.agent, event)?;
            sessions::closed(sql, it.session_id, &Closing::terminated(it))?;
            wakes::remove(sql, &it.session_id)?;
        }
        // The others have projections of their own.
        _ => {}
    }
    Ok(())
}
