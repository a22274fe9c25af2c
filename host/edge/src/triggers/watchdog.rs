//! The watch over turns that triggers began: a turn that does not end is reported to the operator,
//! once.

use super::{Shared, recording};
use crate::journal::Context;
use broker::Error;
use domain::event::TriggerTrouble;
use domain::time::Timestamp;
use domain::trigger::WATCHDOG_MS;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::Commit;

/// Milliseconds between two polls.
const POLL_MS: u64 = 60_000;
/// Turns that are read at a time.
const PAGE: usize = 1_000;

/// Watches until the edge stops.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        let now = shared.core.now();
        if let Err(error) = inspect(&shared, now).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "it cannot be seen whether turns of triggers are stuck"
            );
        }
        if !shared.core.sleep_ms(POLL_MS).await {
            return;
        }
    }
}

async fn inspect(shared: &Shared, now: Timestamp) -> Result<(), Error> {
    let core = &shared.core;
    let before = Timestamp(now.0.saturating_sub(WATCHDOG_MS));
    let turns = core.store().open_trigger_turns(before, PAGE).await?;
    let stuck: BTreeMap<_, _> = turns
        .into_iter()
        .map(|turn| (turn.trigger_event, turn.trigger))
        .collect();
    if stuck.is_empty() {
        return Ok(());
    }
    let context = Context::new("clock", now);
    let mut commit = Commit::new();
    for (trigger_event, name) in stuck {
        tracing::warn!(
            trigger.name = %name,
            trigger_event.id = %trigger_event,
            "a turn that a trigger began does not come to an end"
        );
        let stuck = recording::troubled(&name, TriggerTrouble::Stuck { trigger_event }, now);
        commit = recording::append(commit, &name, &context, [stuck]);
    }
    core.store().commit(commit).await?;
    Ok(())
}
