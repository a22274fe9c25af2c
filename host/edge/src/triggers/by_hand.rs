//! Trigger events requested by hand of triggers that are not active now: each has one attempt all
//! the same, also after a restart. If that fails, it waits with the others.

use super::Shared;
use super::dispatch;
use crate::worker::Next;
use domain::id::TriggerEventId;
use domain::time::Timestamp;
use domain::trigger::{PENDING_MAX, TriggerName};
use futures::StreamExt;
use std::sync::Arc;
use store::{TriggerEventRow, TriggerRow};

/// Triggers whose trigger events are processed at a time after a restart.
const TRIGGERS_AT_ONCE: usize = 4;

/// Returns whether a trigger is not active now: it is paused, disabled or rests.
pub(super) fn is_blocked(row: &TriggerRow, now: Timestamp) -> bool {
    let rests = row.failures.open_until.is_some_and(|until| until > now);
    row.paused.is_some() || !row.spec.enabled || rests
}

/// Has a trigger event processed that was requested just now.
pub(super) fn begin(shared: &Arc<Shared>, trigger_event: TriggerEventId) {
    let core = shared.core.clone();
    let shared = shared.clone();
    core.spawn(async move { deal_with(&shared, trigger_event).await });
}

/// Has those events of triggers processed that were requested before the host ended.
pub(super) fn go_on(shared: &Arc<Shared>, blocked: Vec<TriggerName>) {
    if blocked.is_empty() {
        return;
    }
    let core = shared.core.clone();
    let shared = shared.clone();
    core.spawn(async move {
        let of_each = futures::stream::iter(blocked);
        of_each
            .for_each_concurrent(TRIGGERS_AT_ONCE, |name| {
                let shared = shared.clone();
                async move { go_on_with(&shared, &name).await }
            })
            .await;
    });
}

async fn go_on_with(shared: &Shared, name: &TriggerName) {
    // There are not more of one trigger.
    let max = usize::try_from(PENDING_MAX).unwrap_or(usize::MAX);
    let open = match shared.core.store().open_trigger_events_of(name, max).await {
        Ok(open) => open,
        Err(error) => {
            tracing::warn!(
                trigger.name = %name,
                error = &error as &dyn std::error::Error,
                "it cannot be read what was asked for by hand of a trigger; it waits"
            );
            return;
        }
    };
    for trigger_event in open.into_iter().filter(is_untried) {
        if shared.core.stopping.is_cancelled() {
            return;
        }
        deal_with(shared, trigger_event.trigger_event).await;
    }
}

/// Returns whether a trigger event that was asked for by hand has not failed so far.
fn is_untried(trigger_event: &TriggerEventRow) -> bool {
    trigger_event.run_by.is_some() && trigger_event.state.is_open() && trigger_event.attempts == 0
}

/// Processes a trigger event until it has an outcome. If its component or its session was too busy,
/// that does not count as an attempt.
async fn deal_with(shared: &Shared, id: TriggerEventId) {
    loop {
        let trigger_event = match shared.core.store().trigger_event(id).await {
            Ok(Some(trigger_event)) if is_untried(&trigger_event) => trigger_event,
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(
                    trigger_event.id = %id,
                    error = &error as &dyn std::error::Error,
                    "a trigger event that was asked for by hand cannot be read; it waits"
                );
                return;
            }
        };
        match dispatch::deal_with(shared, trigger_event).await {
            Next::GoOn => return,
            Next::Again { ms } => {
                if !shared.core.sleep_ms(ms).await {
                    return;
                }
            }
        }
    }
}
