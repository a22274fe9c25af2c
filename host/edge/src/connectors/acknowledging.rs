//! Acknowledgements: some services wait for an acknowledgement of a message, as Telegram does for a
//! pressed button. They get it from the components that requested it.
//!
//! It follows the commit that stores the message, at most once, and independently of all other
//! work: no poll, no answer to a service's call and no outbound message waits for it. Nothing of it
//! is stored and nothing depends on it. It is skipped if the host ends in between, if too many
//! wait, or if its turn comes too late.

use super::Shared;
use super::intake::Brought;
use super::served::Served;
use domain::connector::{Body, Outgoing};
use domain::id::TriggerEventId;
use domain::path::ConnectorName;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Messages that may wait to be acknowledged, of all connectors: more than one poll brings. Further
/// ones are not.
const WAITING_MAX: usize = 128;
/// Messages that are acknowledged at a time, of all connectors.
pub(super) const AT_A_TIME: usize = 4;
/// Milliseconds that a message waits for its turn. After that it is not acknowledged.
const WAIT_MS_MAX: u64 = 5_000;

/// A stored message that its service waits to have acknowledged.
struct Due {
    connector: ConnectorName,
    message: Outgoing,
    /// Time after which it is skipped.
    until: Instant,
}

/// All stored messages that their services wait to have acknowledged.
pub(super) struct Acknowledgements {
    due: mpsc::Sender<Due>,
    waiting: AsyncMutex<mpsc::Receiver<Due>>,
}

impl Default for Acknowledgements {
    fn default() -> Self {
        let (due, waiting) = mpsc::channel(WAITING_MAX);
        Self {
            due,
            waiting: AsyncMutex::new(waiting),
        }
    }
}

impl Acknowledgements {
    /// Queues a message to be acknowledged. Returns false if too many wait.
    fn put(&self, due: Due) -> bool {
        self.due.try_send(due).is_ok()
    }

    /// Waits for the next message to be acknowledged.
    async fn next(&self) -> Option<Due> {
        self.waiting.lock().await.recv().await
    }
}

/// Acknowledges messages, one at a time, until the edge stops.
pub(super) async fn run(shared: Arc<Shared>) {
    while let Some(due) = shared.acknowledgements.next().await {
        shared.tell_service(due).await;
    }
}

impl Shared {
    /// Queues the acknowledgements of messages stored just now, if their service waits for them.
    /// Never waits.
    pub(super) fn acknowledge_stored(
        &self,
        served: &Served,
        brought: &Brought,
        ids: &[TriggerEventId],
    ) {
        let until = Instant::now() + Duration::from_millis(WAIT_MS_MAX);
        for (id, message) in ids.iter().zip(&brought.messages) {
            let mut requests = brought.acknowledgements.iter();
            let Some(request) = requests.find(|request| request.message == message.id) else {
                continue;
            };
            let due = Due {
                connector: served.name.clone(),
                message: Outgoing {
                    chat: message.chat.clone(),
                    body: Body::Acknowledgement(request.handle.clone()),
                    idempotency_key: format!("acknowledgement-{id}"),
                },
                until,
            };
            if !self.acknowledgements.put(due) {
                tracing::debug!(
                    connector.name = %served.name,
                    "a message is not acknowledged: too many wait for it"
                );
            }
        }
    }

    /// Acknowledges a message, if it is not too late and its connector is working.
    async fn tell_service(&self, due: Due) {
        if Instant::now() >= due.until {
            return;
        }
        let Some(served) = self.served.at_work(&due.connector) else {
            return;
        };
        if let Err(failure) = self.acknowledge(&served, &due.message).await {
            tracing::debug!(
                connector.name = %served.name,
                error = &failure as &dyn std::error::Error,
                "a message was not acknowledged"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(chat: usize) -> Due {
        Due {
            connector: "telegram".parse().unwrap(),
            message: Outgoing {
                chat: chat.to_string(),
                body: Body::Acknowledgement("h".to_owned()),
                idempotency_key: "key".to_owned(),
            },
            until: Instant::now(),
        }
    }

    #[tokio::test]
    async fn so_many_messages_wait_to_be_acknowledged_and_further_ones_do_not() {
        let acknowledgements = Acknowledgements::default();
        let taken = (0..WAITING_MAX + 10).filter(|chat| acknowledgements.put(due(*chat)));
        assert_eq!(taken.count(), WAITING_MAX);
        let first = acknowledgements.next().await.unwrap();
        assert_eq!(first.message.chat, "0");
        assert!(acknowledgements.put(due(0)), "there is room again");
    }
}
