//! Entries of the ledger for trigger runs. A trigger has no access to anything, so there is an
//! entry only if it requested a right that it does not have, or met a limit.

use broker::Entry;
use domain::definition::DefinitionId;
use domain::digest::Digest;
use domain::egress::Traffic;
use domain::event::{BoundaryDecided, Event};
use domain::time::Timestamp;
use runtime::Decided;
use store::TriggerRow;

/// The purpose of the call, as the ledger names it.
const FIRE: &str = "trigger.fire";

/// Returns the entry of a trigger run; none if no decision was made at the boundary. It has no run.
pub(super) fn entry(
    row: &TriggerRow,
    entry: &Entry,
    decided: Decided,
    now: Timestamp,
) -> Option<Event> {
    if decided.decisions.is_empty() && decided.left_out == 0 {
        return None;
    }
    // Serialising a grant cannot fail.
    let grant = serde_json::to_vec(&entry.grant).unwrap_or_default();
    Some(Event::BoundaryDecided(Box::new(BoundaryDecided {
        run: None,
        operation: None,
        segment: 0,
        definition: DefinitionId(format!("trigger:{}", row.name)),
        user_id: row.user.clone(),
        tool: Some(FIRE.to_owned()),
        component: Some(entry.name.clone()),
        code: Some(entry.component.digest()),
        version: entry.component.version().map(str::to_owned),
        grant: Some(Digest::of(&grant)),
        decisions: decided.decisions,
        left_out: decided.left_out,
        folders: decided.folders,
        egress: Traffic::default(),
        time: now,
    })))
}
