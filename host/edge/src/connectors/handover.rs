//! Inbound messages as work items: of a chat one is handed over after the other, and a few chats at
//! a time.

use super::{Shared, settling};
use crate::core::Core;
use crate::worker::{Desk, Next, WorkItemKind};
use domain::connector::{GATHERED_MS, ReplyRoute};
use domain::time::Timestamp;
use std::sync::Arc;
use store::ReadError;

/// Inbound messages of a chat that are processed before others have their turn.
const OF_CHAT_MAX: usize = 50;
/// Milliseconds until inbound messages of a chat are read again that could not be read.
const TROUBLE_MS: u64 = 1_000;

/// The chats with inbound messages that are not settled.
#[derive(Clone)]
pub(super) struct Handover(pub(super) Arc<Shared>);

impl WorkItemKind for Handover {
    type Source = ReplyRoute;
    type Item = ReplyRoute;

    const NAME: &'static str = "inbound messages";
    const AT_ONCE: usize = 32;
    const SLEEP_MS_MAX: u64 = 10_000;

    fn core(&self) -> &Core {
        &self.0.core
    }

    fn source(chat: &ReplyRoute) -> ReplyRoute {
        chat.clone()
    }

    async fn due(
        &self,
        now: Timestamp,
        room: usize,
        desk: &Desk<ReplyRoute>,
    ) -> Result<Vec<ReplyRoute>, ReadError> {
        let limit = room + desk.not_now().count();
        let store = self.core().store();
        loop {
            let without = self.0.served.passed_over();
            let open = store.open_chats(gathered(now), limit, &without).await?;
            // However many wait for these, the others have their turn.
            if !self.0.served.pass_over(open.iter().map(|it| &it.connector)) {
                let chats = open.into_iter().map(|open| ReplyRoute {
                    connector: open.connector,
                    chat: open.chat,
                });
                return Ok(chats.collect());
            }
        }
    }

    async fn next_after(&self, now: Timestamp) -> Result<Option<Timestamp>, ReadError> {
        let store = self.core().store();
        let first = store.next_open_chat_after(gathered(now)).await?;
        Ok(first.map(|first| first.plus_ms(GATHERED_MS)))
    }

    async fn process(&self, chat: ReplyRoute, failures: u32) -> Next {
        let Some(served) = self.0.served.at_work(&chat.connector) else {
            return Next::GoOn;
        };
        let store = self.core().store();
        match store.open_inbound_messages_in(&chat, OF_CHAT_MAX).await {
            Ok(messages) => settling::settle(&self.0, &served, messages, failures).await,
            Err(error) => {
                tracing::warn!(
                    connector.name = %served.name,
                    error = &error as &dyn std::error::Error,
                    "inbound messages of a chat cannot be read"
                );
                Next::Again { ms: TROUBLE_MS }
            }
        }
    }

    async fn woken(&mut self) {
        self.0.arrived.notified().await;
    }
}

/// Returns the time before which messages arrived that are handed over now: those within a moment
/// of each other are gathered.
fn gathered(now: Timestamp) -> Timestamp {
    Timestamp(now.0.saturating_sub(GATHERED_MS))
}
