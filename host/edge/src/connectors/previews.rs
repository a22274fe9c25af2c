//! Messages in which replies grow before they are final, if a service allows edits and the operator
//! enables it.
//!
//! They are shown and edited outside of the outbox, and only their ids are stored. The final text
//! goes through the outbox like any other: as the last edit of that message if its id is known, and
//! otherwise as a message of its own. Either way nothing is lost and nothing is doubled:
//!
//! - A reply begins to grow when no message waits to be sent into its chat, so it appears below the
//!   earlier replies. Nothing grows while the service has requested a pause.
//! - A growing text is never the final one: it always ends in an ellipsis. So a leftover message is
//!   recognised as incomplete, and the whole reply follows. This happens when the answer to the
//!   first showing was lost, or its id was not stored before a crash: the id is then unknown.
//! - The growing ends before the final edit begins, and an edit under way is waited for. An edit
//!   whose answer was lost could still be made after the final one. Then the final one is made once
//!   more a while later.
//! - The final edit can safely be made twice. If it is unknown whether it was made, it is made
//!   again, after a crash too: the id is stored with each attempt. If it is then refused, the
//!   message may still be the reply: it is unknown whether the reply was sent, and it is not sent
//!   again.

mod stored;

use super::Shared;
use super::served::Served;
use domain::connector::{Body, ConnectorFailure, Outgoing, ReplyRoute, TEXT_LIMIT_MIN, prefix};
use domain::id::RunId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
pub(super) use stored::Stored;
use tokio::sync::Mutex as AsyncMutex;

/// Replies that grow at the same time. Further ones are sent when they are final.
const GROWING_MAX: usize = 256;
/// The end of a reply that grows.
const ELLIPSIS: &str = " …";

/// The message in which a reply grew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Preview {
    /// The service's id of it.
    pub(super) id: String,
    /// True if the answer to an edit was lost: it may still be made.
    pub(super) is_unclear: bool,
    /// True if the message may be the whole reply: the last edit was begun, and it is unknown
    /// whether it was made.
    pub(super) may_be_whole: bool,
}

impl Preview {
    /// Returns the message with a stored id: the last edit before the crash is unknown.
    pub(super) fn stored(id: String) -> Self {
        Self {
            id,
            is_unclear: true,
            may_be_whole: false,
        }
    }
}

/// A reply that grows.
#[derive(Debug, Default)]
enum Growing {
    /// No part of it was shown.
    #[default]
    Unshown,
    /// It grows in this message.
    Shown(Preview),
    /// It no longer grows.
    Over,
}

/// A growing reply, shared by the task that lets it grow and the one that sends the final text.
pub(super) type Slot = Arc<GrowingReply>;

/// See [`Slot`]. It is locked while the service is called.
#[derive(Debug, Default)]
pub(super) struct GrowingReply(AsyncMutex<Growing>);

/// The place of a reply: its run, and the chat into which it goes.
type Place = (RunId, ReplyRoute);

/// All replies that grow, by their places.
#[derive(Debug, Default)]
pub(super) struct Previews(Mutex<HashMap<Place, Slot>>);

/// More of a reply that grows.
pub(super) struct More<'a> {
    pub(super) run: RunId,
    pub(super) chat: &'a str,
    /// The whole text so far.
    pub(super) text: &'a str,
    /// Number of this update of it, from 0.
    pub(super) number: u32,
}

impl Previews {
    /// Lets a reply grow. None if too many do.
    pub(super) fn begin(&self, run: RunId, chat: &ReplyRoute) -> Option<Slot> {
        let mut growing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        make_room(&mut growing);
        if growing.len() >= GROWING_MAX {
            return None;
        }
        Some(growing.entry((run, chat.clone())).or_default().clone())
    }

    /// Has a reply grow no longer, and returns the message in which it grew, if its id is known.
    pub(super) async fn close(&self, run: RunId, chat: &ReplyRoute) -> Option<Preview> {
        let slot = {
            let mut growing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            growing.remove(&(run, chat.clone()))
        };
        let slot = slot?;
        let mut growing = slot.0.lock().await;
        match std::mem::replace(&mut *growing, Growing::Over) {
            Growing::Shown(preview) => Some(preview),
            Growing::Unshown | Growing::Over => None,
        }
    }

    /// Keeps the message in which a reply grew for another try to send it.
    pub(super) fn keep(&self, run: RunId, chat: &ReplyRoute, preview: Preview) {
        let slot = Arc::new(GrowingReply(AsyncMutex::new(Growing::Shown(preview))));
        let mut growing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        make_room(&mut growing);
        if growing.len() < GROWING_MAX {
            growing.insert((run, chat.clone()), slot);
        }
    }

    /// Drops a reply that is not sent within the time for which it is kept.
    pub(super) fn forget(&self, run: RunId, chat: &ReplyRoute) {
        let mut growing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        growing.remove(&(run, chat.clone()));
    }
}

impl Shared {
    /// Lets the reply of a run continue in the message in which it grew before the host was killed.
    pub(super) async fn resume(&self, served: &Served, slot: &Slot, run: RunId) {
        let stored = match self.stored_preview(served, run, None).await {
            Ok(stored) => stored,
            Err(error) => {
                tracing::warn!(
                    connector.name = %served.name,
                    error = &error as &dyn std::error::Error,
                    "it cannot be read in which message a reply grew"
                );
                return;
            }
        };
        let mut growing = slot.0.lock().await;
        if matches!(*growing, Growing::Unshown)
            && let Some(id) = stored
        {
            *growing = Growing::Shown(Preview::stored(id));
        }
    }

    /// Returns whether more of a reply may be shown now. Its service must not have requested a
    /// pause. For the first part, no message may wait to be sent into the chat before it.
    async fn may_grow(&self, served: &Served, chat: &str, is_first: bool) -> bool {
        let deferred = served.lasting.health().deferred(self.core.now());
        if deferred.is_some() || !is_first {
            return deferred.is_none();
        }
        let route = served.chat(chat);
        let waits = self.core.store().waits_for_chat(&route).await;
        waits.is_ok_and(|waits| !waits)
    }

    /// Shows more of a reply. Returns false when it grows no longer.
    pub(super) async fn grow(&self, served: &Served, slot: &Slot, more: More<'_>) -> bool {
        let mut growing = slot.0.lock().await;
        let shown = match &*growing {
            Growing::Over => return false,
            Growing::Unshown => None,
            Growing::Shown(preview) => Some(preview.clone()),
        };
        if !self.may_grow(served, more.chat, shown.is_none()).await {
            return true;
        }
        let text = growing_text(more.text, served.abilities().text_limit);
        let body = match &shown {
            None => Body::Text(text),
            Some(preview) => Body::Edit {
                id: preview.id.clone(),
                text,
            },
        };
        let message = Outgoing {
            chat: more.chat.to_owned(),
            body,
            idempotency_key: format!("growing-{}-{}", more.run, more.number),
        };
        match (self.show(served, &message, more.run).await, shown) {
            // There is no place for it now.
            (None, _) => true,
            (Some(Ok(id)), None) if !id.is_empty() => {
                self.store_preview(served, more.run, &id).await;
                *growing = Growing::Shown(Preview {
                    id,
                    is_unclear: false,
                    may_be_whole: false,
                });
                true
            }
            (Some(Ok(_)), Some(_)) => true,
            // The message cannot be edited without an id, or is not there.
            (Some(Ok(_) | Err(_)), None) => {
                *growing = Growing::Over;
                false
            }
            // Nothing is under way: the final edit may follow.
            (
                Some(Err(
                    ConnectorFailure::Rejected(_)
                    | ConnectorFailure::Unauthorised(_)
                    | ConnectorFailure::RetryLater { .. }
                    | ConnectorFailure::Moved { .. },
                )),
                Some(_),
            ) => false,
            (Some(Err(ConnectorFailure::Unknown(_))), Some(preview)) => {
                *growing = Growing::Shown(Preview {
                    is_unclear: true,
                    ..preview
                });
                false
            }
        }
    }
}

/// Drops replies that no task lets grow any more, if there are too many.
fn make_room(growing: &mut HashMap<Place, Slot>) {
    if growing.len() >= GROWING_MAX {
        growing.retain(|_, slot| Arc::strong_count(slot) > 1);
    }
}

/// Returns the text of a reply while it grows.
fn growing_text(text: &str, limit_utf16: u32) -> String {
    let limit = usize::try_from(limit_utf16.max(TEXT_LIMIT_MIN)).unwrap_or(usize::MAX);
    let room = limit.saturating_sub(ELLIPSIS.len());
    format!("{}{ELLIPSIS}", prefix(text.trim(), room).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn run(number: u128) -> RunId {
        RunId(Uuid::from_u128(number))
    }

    fn chat() -> ReplyRoute {
        ReplyRoute {
            connector: "telegram".parse().unwrap(),
            chat: "7".to_owned(),
        }
    }

    fn preview(id: &str) -> Preview {
        Preview {
            id: id.to_owned(),
            is_unclear: false,
            may_be_whole: false,
        }
    }

    #[tokio::test]
    async fn a_reply_grows_no_longer_once_it_is_sent() {
        let previews = Previews::default();
        let slot = previews.begin(run(1), &chat()).unwrap();
        *slot.0.lock().await = Growing::Shown(preview("7"));
        assert_eq!(previews.close(run(1), &chat()).await, Some(preview("7")));
        assert!(matches!(*slot.0.lock().await, Growing::Over));
        assert_eq!(previews.close(run(1), &chat()).await, None);
    }

    #[tokio::test]
    async fn a_reply_is_sent_after_the_edit_under_way() {
        let previews = Previews::default();
        let slot = previews.begin(run(1), &chat()).unwrap();
        let mut under_way = slot.0.lock().await;
        let chat = chat();
        let close = previews.close(run(1), &chat);
        tokio::pin!(close);
        let still = tokio::time::timeout(std::time::Duration::from_millis(20), &mut close).await;
        assert!(still.is_err());
        *under_way = Growing::Shown(preview("7"));
        drop(under_way);
        assert_eq!(close.await, Some(preview("7")));
    }

    #[tokio::test]
    async fn a_message_is_kept_for_another_try() {
        let previews = Previews::default();
        previews.keep(run(1), &chat(), preview("7"));
        assert_eq!(previews.close(run(1), &chat()).await, Some(preview("7")));
        previews.keep(run(1), &chat(), preview("7"));
        previews.forget(run(1), &chat());
        assert_eq!(previews.close(run(1), &chat()).await, None);
    }

    #[test]
    fn so_many_replies_grow_at_a_time() {
        let previews = Previews::default();
        let begun: Vec<Slot> = (0..300)
            .filter_map(|it| previews.begin(run(it), &chat()))
            .collect();
        assert_eq!(begun.len(), GROWING_MAX);
        drop(begun);
        assert!(previews.begin(run(300), &chat()).is_some());
    }

    #[test]
    fn what_grows_is_seen_to_be_no_reply_and_fits() {
        assert_eq!(growing_text("Well, ", 4_096), "Well, …");
        let long = growing_text(&"x".repeat(1_000), 200);
        assert!(long.ends_with('…') && long.chars().count() <= 200);
    }
}
