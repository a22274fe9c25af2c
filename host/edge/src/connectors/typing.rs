//! The watch over one run that people in a chat wait for: they see that the agent is typing and, if
//! that is enabled, the growing reply.

use super::Shared;
use super::previews::{More, Slot};
use super::served::Served;
use domain::connector::{Body, EDIT_MS_MIN, Outgoing, ReplyRoute, TYPING_MS};
use domain::id::{OperationId, RunId};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

/// The longest watch over one run, in milliseconds: one hour.
const WATCH_MS_MAX: u64 = 3_600_000;
/// Milliseconds for which a growing reply is kept after its run has ended, until it is sent.
const KEPT_MS: u64 = 60_000;
/// Bytes of a reply that is kept while it grows. A longer one grows no further.
const REPLY_BYTES_MAX: usize = 64 << 10;

/// Something that is heard of a run.
pub(super) enum RunNotice {
    /// Text of a reply in the making.
    Text {
        operation: OperationId,
        attempt: u32,
        seq: u64,
        text: String,
    },
    /// Anything else: it is working.
    Other,
}

/// The part of a reply in progress that was received without a gap.
#[derive(Debug, Default)]
struct Reply {
    /// The call and the attempt that make it.
    made_by: Option<(OperationId, u32)>,
    /// The place of its next chunk.
    next: u64,
    text: String,
    /// True if a part of it was missed, or it is too long.
    is_broken: bool,
    /// True if it has grown since it was shown.
    is_news: bool,
}

impl Reply {
    fn hear(&mut self, notice: RunNotice) {
        let RunNotice::Text {
            operation,
            attempt,
            seq,
            text,
        } = notice
        else {
            return;
        };
        if self.made_by != Some((operation, attempt)) {
            *self = Self {
                made_by: Some((operation, attempt)),
                ..Self::default()
            };
        }
        self.is_broken |= seq != self.next || self.text.len() + text.len() > REPLY_BYTES_MAX;
        self.next = seq.saturating_add(1);
        if !self.is_broken {
            self.text.push_str(&text);
            self.is_news = true;
        }
    }

    /// Returns the text to show, if there is more than was shown.
    fn take_news(&mut self) -> Option<&str> {
        let is_news = std::mem::take(&mut self.is_news);
        let has_words = !self.is_broken && !self.text.trim().is_empty();
        (is_news && has_words).then_some(self.text.as_str())
    }
}

/// A run that people in a chat wait for.
struct Watch {
    shared: Arc<Shared>,
    served: Arc<Served>,
    chat: ReplyRoute,
    run: RunId,
    /// The reply that grows; none where none does.
    slot: Option<Slot>,
    reply: Reply,
    /// Number of times that it was shown.
    shown: u32,
}

/// Watches a run until it ends, if people in a chat wait for it.
pub(super) async fn watch(shared: Arc<Shared>, run: RunId, notices: mpsc::Receiver<RunNotice>) {
    let Ok(Some(chat)) = shared.core.store().reply_route_of_run(run).await else {
        return;
    };
    let Some(served) = shared.served.at_work(&chat.connector) else {
        return;
    };
    let abilities = served.abilities();
    let grows = served.spec.stream && abilities.edits;
    let slot = if grows {
        shared.previews.begin(run, &chat)
    } else {
        None
    };
    let types = served.spec.typing && abilities.typing;
    if slot.is_none() && !types {
        return;
    }
    if let Some(slot) = &slot {
        shared.resume(&served, slot, run).await;
    }
    let watch = Watch {
        slot,
        shared: shared.clone(),
        served: served.clone(),
        chat: chat.clone(),
        run,
        reply: Reply::default(),
        shown: 0,
    };
    let longest = Duration::from_millis(WATCH_MS_MAX);
    // A run that takes longer is not watched to its end.
    let _ = timeout(longest, watch.go_on(types, notices)).await;
    if grows && shared.core.sleep_ms(KEPT_MS).await {
        shared.previews.forget(run, &chat);
        shared.drop_preview(&served, run).await;
    }
}

impl Watch {
    async fn go_on(mut self, types: bool, mut notices: mpsc::Receiver<RunNotice>) {
        let begin = Instant::now();
        let mut next_typing = begin;
        let mut next_edit = begin + Duration::from_millis(EDIT_MS_MIN);
        let mut has_feed = true;
        loop {
            let stopping = &self.shared.core.stopping;
            tokio::select! {
                () = stopping.cancelled() => return,
                notice = notices.recv(), if has_feed => match notice {
                    Some(notice) => self.reply.hear(notice),
                    None => has_feed = false,
                },
                () = tokio::time::sleep_until(next_typing) => {
                    if !self.is_open().await {
                        return;
                    }
                    if types && !self.is_asking().await {
                        self.type_now().await;
                    }
                    next_typing = Instant::now() + Duration::from_millis(TYPING_MS);
                }
                () = tokio::time::sleep_until(next_edit), if self.slot.is_some() => {
                    self.grow().await;
                    next_edit = Instant::now() + Duration::from_millis(EDIT_MS_MIN);
                }
            }
        }
    }

    /// Returns whether the run is still open.
    async fn is_open(&self) -> bool {
        let run = self.shared.core.store().run(self.run).await;
        run.is_ok_and(|row| row.is_some_and(|row| row.end.is_none()))
    }

    /// Returns whether the agent waits for an answer in the chat, so that it is not the one typing.
    async fn is_asking(&self) -> bool {
        let asked = self
            .shared
            .core
            .store()
            .open_questions_in(&self.chat, 1)
            .await;
        !asked.is_ok_and(|asked| asked.is_empty())
    }

    async fn type_now(&self) {
        let message = Outgoing {
            chat: self.chat.chat.clone(),
            body: Body::Typing,
            idempotency_key: format!("typing-{}", self.run),
        };
        // Lost without harm: the next one follows.
        let _ = self.shared.show(&self.served, &message, self.run).await;
    }

    async fn grow(&mut self) {
        let (Some(slot), Some(text)) = (&self.slot, self.reply.take_news()) else {
            return;
        };
        let more = More {
            run: self.run,
            chat: &self.chat.chat,
            text,
            number: self.shown,
        };
        self.shown = self.shown.saturating_add(1);
        if !self.shared.grow(&self.served, slot, more).await {
            self.slot = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::digest::Digest;

    fn notice(operation: u8, seq: u64, text: &str) -> RunNotice {
        RunNotice::Text {
            operation: OperationId(Digest([operation; 32])),
            attempt: 0,
            seq,
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_reply_is_shown_as_far_as_it_was_heard() {
        let mut reply = Reply::default();
        reply.hear(notice(1, 0, "Well"));
        reply.hear(notice(1, 1, ", yes"));
        assert_eq!(reply.take_news(), Some("Well, yes"));
        assert_eq!(reply.take_news(), None);
        reply.hear(notice(1, 3, "gap"));
        assert_eq!(reply.take_news(), None);
        reply.hear(notice(1, 4, "and on"));
        assert_eq!(reply.take_news(), None);
    }

    #[test]
    fn another_call_of_the_model_begins_another_reply() {
        let mut reply = Reply::default();
        reply.hear(notice(1, 0, "first"));
        reply.hear(notice(2, 0, "second"));
        reply.hear(RunNotice::Other);
        assert_eq!(reply.take_news(), Some("second"));
    }

    #[test]
    fn a_reply_that_is_too_long_grows_no_further() {
        let mut reply = Reply::default();
        reply.hear(notice(1, 0, &"x".repeat(REPLY_BYTES_MAX)));
        assert!(reply.take_news().is_some());
        reply.hear(notice(1, 1, "more"));
        assert_eq!(reply.take_news(), None);
    }
}
