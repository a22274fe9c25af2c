//! Trigger events as work items: a few are processed at a time, and of each trigger the oldest
//! first, one after the other.

use super::{Shared, failing, trigger_run};
use crate::core::{Core, panic_text};
use crate::worker::{Desk, Next, WorkItemKind};
use domain::id::TriggerEventId;
use domain::time::Timestamp;
use domain::trigger::TriggerName;
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use store::{ReadError, TriggerEventRow};

/// Milliseconds until a trigger event is processed again after the store did not accept its
/// outcome.
const AGAIN_MS: u64 = 1_000;

/// The trigger events that are not done with.
#[derive(Clone)]
pub(super) struct Dispatch(pub(super) Arc<Shared>);

impl WorkItemKind for Dispatch {
    type Source = TriggerName;
    type Item = TriggerEventRow;

    const NAME: &'static str = "trigger events";
    /// Enough of the machine is left to the rest of the host.
    const AT_ONCE: usize = 4;
    const SLEEP_MS_MAX: u64 = 1_000;

    fn core(&self) -> &Core {
        &self.0.core
    }

    fn source(trigger_event: &TriggerEventRow) -> TriggerName {
        trigger_event.trigger.clone()
    }

    async fn due(
        &self,
        now: Timestamp,
        room: usize,
        desk: &Desk<TriggerName>,
    ) -> Result<Vec<TriggerEventRow>, ReadError> {
        let not_now: Vec<&TriggerName> = desk.not_now().collect();
        let store = self.core().store();
        store.open_trigger_events(now, room, &not_now).await
    }

    async fn next_after(&self, now: Timestamp) -> Result<Option<Timestamp>, ReadError> {
        self.core().store().next_trigger_event_after(now).await
    }

    async fn process(&self, trigger_event: TriggerEventRow, _: u32) -> Next {
        deal_with(&self.0, trigger_event).await
    }

    async fn woken(&mut self) {
        self.0.open.notified().await;
    }
}

/// Processes a trigger event. A panic counts as a failure.
pub(super) async fn deal_with(shared: &Shared, trigger_event: TriggerEventRow) -> Next {
    let id = trigger_event.trigger_event;
    let name = trigger_event.trigger.clone();
    let dealt = AssertUnwindSafe(trigger_run::deal_with(shared, &trigger_event)).catch_unwind();
    match dealt.await {
        Ok(Ok(next)) => next,
        Ok(Err(error)) => {
            tracing::warn!(
                trigger.name = %name,
                trigger_event.id = %id,
                error = &error as &dyn std::error::Error,
                "what became of a trigger event cannot be recorded now; it is dealt with again"
            );
            Next::Again { ms: AGAIN_MS }
        }
        Err(panic) => {
            let panic = panic_text(panic.as_ref());
            tracing::error!(trigger.name = %name, trigger_event.id = %id, panic, "a trigger event panicked");
            failed_by_panic(shared, &trigger_event, id).await
        }
    }
}

async fn failed_by_panic(
    shared: &Shared,
    trigger_event: &TriggerEventRow,
    id: TriggerEventId,
) -> Next {
    let failure = failing::Failure::of("the host failed over it; its log says more");
    match failing::failed(shared, trigger_event, failure).await {
        Ok(next) => next,
        Err(error) => {
            tracing::warn!(
                trigger_event.id = %id,
                error = &error as &dyn std::error::Error,
                "a failed trigger event cannot be recorded"
            );
            Next::Again { ms: AGAIN_MS }
        }
    }
}
