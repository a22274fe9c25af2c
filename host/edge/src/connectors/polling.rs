//! Polls: one task for each connector whose service is asked for news over and over.
//!
//! The more connectors there are, the less often an idle one is polled, so that all idle ones
//! together take only a small part of the machine. Between two polls its task has nothing but its
//! name.

use super::Shared;
use super::calls::CallFailure;
use super::intake::{Brought, TakenIn};
use super::served::{LastingState, Served};
use crate::core::panic_text;
use domain::connector::{ConnectorFailure, POLL_MS_MAX, POLL_MS_MIN};
use domain::digest::Digest;
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::watch;

/// Polls within a second of all connectors that hear nothing.
const IDLE_POLLS_PER_S: u64 = 16;
/// Milliseconds after a message within which a connector is polled as often as its component says.
const ACTIVE_MS: u64 = 120_000;
/// Milliseconds until the next poll while too much waits to be handed over.
const CROWDED_MS: u64 = 1_000;
/// Milliseconds until the next poll after the store did not accept the messages, or another host
/// polled.
const TROUBLE_MS: u64 = 5_000;

/// Polls until another configuration takes the connector's place or the edge stops.
pub(super) async fn run(shared: Arc<Shared>, served: Arc<Served>) {
    let mut pause_ms = first_ms(served.name.as_str(), idle_ms(shared.served.polling()));
    let mut configured = shared.core.replacements();
    loop {
        let is_over = tokio::select! {
            () = served.replaced.cancelled() => true,
            () = other_credentials(&served.lasting, &mut configured) => false,
            slept = shared.core.sleep_ms(pause_ms) => !slept,
        };
        if is_over {
            return;
        }
        configured.mark_unchanged();
        // On the heap, so that the wait for the next poll needs little memory.
        let round = AssertUnwindSafe(round(&shared, &served)).catch_unwind();
        pause_ms = match Box::pin(round).await {
            Ok(pause_ms) => pause_ms,
            Err(panic) => {
                let panic = panic_text(panic.as_ref());
                tracing::error!(connector.name = %served.name, panic, "a poll panicked");
                let failure = ConnectorFailure::Unknown("the host failed over a poll".to_owned());
                let failure = CallFailure::Failed(failure);
                shared.note_intake_failure(&served, failure).await
            }
        };
    }
}

/// Waits for another configuration, where the credentials do not count: it may have others.
async fn other_credentials(lasting: &LastingState, configured: &mut watch::Receiver<u64>) {
    let is_unauthorised = lasting.health().is_unauthorised();
    // The settings are replaced for as long as there is an edge.
    if !is_unauthorised || configured.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Polls once. Returns the milliseconds until the next poll.
async fn round(shared: &Shared, served: &Served) -> u64 {
    let found = match shared.room(served).await {
        Ok(0) => return CROWDED_MS,
        Ok(_) => shared.core.store().connector(&served.name).await,
        Err(error) => Err(error),
    };
    let cursor = match found {
        Ok(row) => row.and_then(|row| row.cursor),
        Err(error) => {
            tracing::warn!(
                connector.name = %served.name,
                error = &error as &dyn std::error::Error,
                "it cannot be read where a connector's next poll goes on"
            );
            return TROUBLE_MS;
        }
    };
    let polled = shared.poll(served, cursor.as_deref()).await;
    let batch = match polled.result {
        Ok(batch) => batch,
        Err(failure) => {
            shared.note(served, polled.entry).await;
            return shared.note_intake_failure(served, failure).await;
        }
    };
    shared.note_success(served).await;
    let next_ms = u64::from(batch.next_ms).clamp(POLL_MS_MIN, POLL_MS_MAX);
    let brought = Brought {
        messages: batch.messages,
        cursor: batch.cursor,
        polled_from: Some(cursor),
        entry: polled.entry,
        key: None,
        acknowledgements: batch.acknowledgements,
        overheard: batch.overheard,
        replies: batch.replies,
        moved: batch.moved,
        undelivered: batch.undelivered,
    };
    match shared.take_in(served, brought).await {
        Ok(TakenIn::New(_)) => {
            let quiet_ms = served.lasting.quiet_ms();
            pause_ms(next_ms, quiet_ms, shared.served.polling())
        }
        Ok(TakenIn::Crowded) => CROWDED_MS,
        // A poll under the connector's previous configuration may have been under way.
        Ok(TakenIn::Overtaken) if served.replaced.is_cancelled() => TROUBLE_MS,
        Ok(TakenIn::Overtaken) => {
            tracing::warn!(
                connector.name = %served.name,
                "another host polls the same connector; one of them has to stop"
            );
            TROUBLE_MS
        }
        Err(error) => {
            tracing::warn!(
                connector.name = %served.name,
                error = &error as &dyn std::error::Error,
                "what a poll brought cannot be stored now; it is polled again"
            );
            TROUBLE_MS
        }
    }
}

/// Returns the milliseconds until the next poll, by those that the component asks for, those since
/// a message arrived, and the number of connectors that are polled.
fn pause_ms(next_ms: u64, quiet_ms: Option<u64>, polling: usize) -> u64 {
    if quiet_ms.is_some_and(|quiet_ms| quiet_ms < ACTIVE_MS) {
        next_ms
    } else {
        next_ms.max(idle_ms(polling))
    }
}

/// Returns the milliseconds between two polls of a connector that hears nothing.
fn idle_ms(polling: usize) -> u64 {
    let polling = u64::try_from(polling).unwrap_or(u64::MAX);
    polling.saturating_mul(1_000) / IDLE_POLLS_PER_S
}

/// Returns the milliseconds until a connector's first poll. The first polls of many connectors are
/// spread.
fn first_ms(name: &str, idle_ms: u64) -> u64 {
    let digest = Digest::of(name.as_bytes());
    let spread = digest.0.first_chunk::<8>().copied().unwrap_or_default();
    u64::from_be_bytes(spread) % idle_ms.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn another_configuration_is_waited_for_where_credentials_do_not_count() {
        let lasting = LastingState::default();
        let (replaced, mut configured) = watch::channel(0);
        let wakes = |configured: &mut watch::Receiver<u64>| {
            let waited = other_credentials(&lasting, configured);
            waited.now_or_never().is_some()
        };
        let fail = |failure: ConnectorFailure| {
            lasting.health().note_intake_failure(&failure);
        };
        replaced.send_modify(|count| *count += 1);
        assert!(!wakes(&mut configured), "all is well");
        fail(ConnectorFailure::Unknown("no answer".to_owned()));
        assert!(!wakes(&mut configured), "it is no matter of credentials");
        configured.mark_unchanged();
        fail(ConnectorFailure::Unauthorised("revoked".to_owned()));
        assert!(!wakes(&mut configured), "nothing is configured anew");
        replaced.send_modify(|count| *count += 1);
        assert!(wakes(&mut configured));
        assert!(!wakes(&mut configured), "it is tried once");
    }

    #[test]
    fn a_few_connectors_are_polled_as_often_as_their_components_say() {
        assert_eq!(pause_ms(1_000, None, 10), 1_000);
        assert_eq!(pause_ms(1_000, Some(1), 1_000), 1_000);
    }

    #[test]
    fn many_connectors_that_hear_nothing_share_few_polls() {
        let pause = pause_ms(1_000, Some(ACTIVE_MS), 1_000);
        assert_eq!(pause, 1_000 * 1_000 / IDLE_POLLS_PER_S);
        assert_eq!(pause_ms(100_000, None, 1_000), 100_000);
    }

    #[test]
    fn the_first_polls_of_many_connectors_are_spread() {
        let idle = idle_ms(1_000);
        let early = (0..1_000)
            .filter(|number| first_ms(&format!("c{number}"), idle) < idle / 2)
            .count();
        assert!((400..600).contains(&early), "{early}");
        assert_eq!(first_ms("telegram", 0), 0);
    }
}
