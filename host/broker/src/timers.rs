//! Durable timers: one task that wakes sessions whose time has come.
//!
//! When is an event's doing and stored; this only looks at the clock. A timer fires late after a long stop and never early.

use crate::core::Core;
use crate::panics::{caught, end_process};
use domain::id::SessionId;
use domain::time::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Sessions that are woken at a time. Large, so that sessions that stay due for a while do not keep others from being woken.
const BATCH_MAX: usize = 10_000;
/// The longest sleep, in milliseconds, so that a clock that was set is noticed.
const SLEEP_MS_MAX: u64 = 10_000;
/// The pause after a round, in milliseconds, in which drivers settle what was due. It doubles while the same sessions stay due, as they do
/// when a reminder waits for a turn to end.
const ROUND_MS: u64 = 20;
/// The longest such pause.
const ROUND_MS_MAX: u64 = 2_000;
/// The pause after the store could not be read or a round panicked, in milliseconds.
const TROUBLE_MS: u64 = 1_000;
/// Panics in a row after which the process ends: a host without timers only seems to work.
const PANICS_MAX: u32 = 3;

/// Watches until the broker stops. After a panic it begins anew: all that it knows is in the store.
pub(crate) async fn watch(core: Arc<Core>) {
    let panics = AtomicU32::new(0);
    while let Err(panic) = caught(rounds(&core, &panics)).await {
        let count = panics.fetch_add(1, Ordering::Relaxed) + 1;
        if count >= PANICS_MAX {
            end_process("the watch over timers", &panic);
        }
        tracing::error!(panic, count, "the watch over timers panicked; it begins anew");
        tokio::select! {
            () = core.stopping.cancelled() => return,
            () = tokio::time::sleep(Duration::from_millis(TROUBLE_MS)) => {}
        }
    }
}

/// One round after the other. `panics` in a row are over when one has come to its end.
async fn rounds(core: &Arc<Core>, panics: &AtomicU32) {
    let mut last = Vec::new();
    let mut repeated = ROUND_MS;
    loop {
        let now = core.now();
        let came_to = round(core, now).await;
        panics.store(0, Ordering::Relaxed);
        let pause = match came_to {
            Ok(Round::Due(due)) => {
                repeated = if due == last { (repeated * 2).min(ROUND_MS_MAX) } else { ROUND_MS };
                last = due;
                repeated
            }
            Ok(Round::Sleep(ms)) => ms,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "timers could not be read");
                TROUBLE_MS
            }
        };
        tokio::select! {
            () = core.stopping.cancelled() => return,
            () = tokio::time::sleep(Duration::from_millis(pause)) => {}
            () = core.timers.notified() => {}
        }
    }
}

enum Round {
    Due(Vec<SessionId>),
    Sleep(u64),
}

async fn round(core: &Arc<Core>, now: Timestamp) -> Result<Round, store::ReadError> {
    let due = core.store.due_wakes(now, BATCH_MAX).await?;
    if due.is_empty() {
        let next = core.store.next_wake().await?;
        return Ok(Round::Sleep(next.map_or(SLEEP_MS_MAX, |time| time.since_ms(now).clamp(1, SLEEP_MS_MAX))));
    }
    store::point("broker.timer.due");
    for session in &due {
        core.wake(*session).await;
    }
    store::point("broker.timer.fired");
    Ok(Round::Due(due))
}
