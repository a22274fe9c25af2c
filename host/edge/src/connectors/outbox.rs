//! Outbound messages as work items: of a chat one is sent after the other, and of many chats some
//! at a time.
//!
//! A message whose attempt a crash cut off comes first: it is unknown whether it was sent.

use super::{Shared, calls, sending};
use crate::core::Core;
use crate::worker::{Desk, Next, WorkItemKind};
use domain::connector::ReplyRoute;
use domain::path::ConnectorName;
use domain::time::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::{OutboundMessageRow, ReadError};
use tokio::sync::watch;

/// Messages of one connector that are sent at a time.
const OF_CONNECTOR_MAX: usize = 8;
/// Milliseconds between two checks for due messages, while much is stored.
const POLL_MS: u64 = 20;

/// The messages to people outside.
#[derive(Clone)]
pub(super) struct Outbox {
    shared: Arc<Shared>,
    /// A counter of what is stored, which may be a message to send.
    stored: watch::Receiver<u64>,
}

impl Outbox {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let stored = shared.core.store().durable();
        Self { shared, stored }
    }

    /// Returns the connectors through which nothing is sent now.
    fn without(&self, now: Timestamp, desk: &Desk<ReplyRoute>) -> BTreeSet<ConnectorName> {
        let mut without = self.shared.served.passed_over();
        let served = self.shared.served.all().into_iter();
        let deferred = served.filter(|it| it.lasting.health().deferred(now).is_some());
        without.extend(deferred.map(|it| it.name.clone()));
        let busy = desk.at_work().map(|chat| &chat.connector);
        without.extend(busy.filter(|name| is_busy(name, desk)).cloned());
        without
    }
}

impl WorkItemKind for Outbox {
    type Source = ReplyRoute;
    type Item = OutboundMessageRow;

    const NAME: &'static str = "outbound messages";
    const AT_ONCE: usize = calls::SENDINGS_MAX;
    const SLEEP_MS_MAX: u64 = 10_000;

    fn core(&self) -> &Core {
        &self.shared.core
    }

    fn source(row: &OutboundMessageRow) -> ReplyRoute {
        ReplyRoute {
            connector: row.connector.clone(),
            chat: row.chat.clone(),
        }
    }

    async fn due(
        &self,
        now: Timestamp,
        room: usize,
        desk: &Desk<ReplyRoute>,
    ) -> Result<Vec<OutboundMessageRow>, ReadError> {
        let limit = room + desk.not_now().count();
        let store = self.core().store();
        loop {
            let without = self.without(now, desk);
            let mut rows = store.started_outbound_messages(limit, &without).await?;
            rows.extend(store.due_outbound_messages(now, limit, &without).await?);
            // However many wait for these, the others have their turn.
            let connectors = rows.iter().map(|row| &row.connector);
            if !self.shared.served.pass_over(connectors) {
                return Ok(rows);
            }
        }
    }

    async fn next_after(&self, now: Timestamp) -> Result<Option<Timestamp>, ReadError> {
        let due = self.core().store().next_outbound_message_after(now).await?;
        let served = self.shared.served.all().into_iter();
        let deferred = served.filter_map(|it| it.lasting.health().deferred(now));
        Ok(due.into_iter().chain(deferred).min())
    }

    fn has_place(&self, chat: &ReplyRoute, desk: &Desk<ReplyRoute>) -> bool {
        !is_busy(&chat.connector, desk)
    }

    async fn process(&self, row: OutboundMessageRow, _: u32) -> Next {
        match self.shared.served.at_work(&row.connector) {
            Some(served) => sending::deliver(&self.shared, &served, row).await,
            None => Next::GoOn,
        }
    }

    async fn woken(&mut self) {
        tokio::select! {
            () = something_stored(&mut self.stored) => {}
            () = self.shared.outbox.notified() => {}
        }
    }
}

/// Returns whether as many messages are sent through a connector as may be at a time.
fn is_busy(connector: &ConnectorName, desk: &Desk<ReplyRoute>) -> bool {
    let sending = desk.at_work().filter(|chat| chat.connector == *connector);
    sending.count() >= OF_CONNECTOR_MAX
}

/// Waits until events were stored, which may include a message to send. Several within a moment are
/// reported once.
async fn something_stored(stored: &mut watch::Receiver<u64>) {
    if stored.changed().await.is_err() {
        // The store is closed, and the edge is about to stop.
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_connector_does_not_take_all_places() {
        let mut desk = Desk::new();
        let [telegram, slack] = ["telegram", "slack"].map(|name| name.parse().unwrap());
        for number in 0..OF_CONNECTOR_MAX {
            assert!(!is_busy(&telegram, &desk));
            desk.begin(ReplyRoute {
                connector: telegram.clone(),
                chat: number.to_string(),
            });
        }
        assert!(is_busy(&telegram, &desk));
        assert!(!is_busy(&slack, &desk));
    }
}
