//! The way in: the messages of a poll or of a service's call are compared with earlier ones. New
//! ones are stored, with the cursor of the next poll, in one commit.
//!
//! Words that no agent receives are left out before that, and stored nowhere: those of groups that
//! the connector ignores, and of unknown senders.

use super::Shared;
use super::ledger::ledger_event;
use super::served::{ConnectorLink, Served};
use crate::journal::{Context, trigger_event};
use broker::Error;
use domain::connector::{
    Acknowledgement, Incoming, Moved, ONCE_DAYS, Reception, Reply, Said, Undelivered, key_of,
    receive,
};
use domain::error_code::ErrorCode;
use domain::event::{ConnectorReceived, Event, InboundMessage, NewEvent, Received};
use domain::id::TriggerEventId;
use domain::refusal::Refusal;
use domain::time::Timestamp;
use std::collections::HashSet;
use store::{Clash, Commit, CommitError, Conflict, ConnectorGuard, Expected, Guard, Key};

/// Number of attempts while others store messages of the same connector.
const TRIES_MAX: u32 = 8;
/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;
/// The words in the place of a message that can never be stored.
const UNSTORABLE: &str = "[A message came that cannot be stored.]";

/// The result of a poll, or of reading a call of a service.
#[derive(Default)]
pub(super) struct Brought {
    /// The messages, in the service's order.
    pub(super) messages: Vec<Incoming>,
    /// The cursor of the next poll; none to leave it unchanged.
    pub(super) cursor: Option<String>,
    /// The cursor of this poll; none for messages from a call.
    pub(super) polled_from: Option<Option<String>>,
    /// The entry of the call in the ledger.
    pub(super) entry: Option<Event>,
    /// The key under which the one message that was brought is found again; none for others.
    pub(super) key: Option<Key>,
    /// The messages that the service waits to have acknowledged.
    pub(super) acknowledgements: Vec<Acknowledgement>,
    /// The ids of messages that are heard only where an agent takes part.
    pub(super) overheard: Vec<String>,
    /// The messages that reply to others.
    pub(super) replies: Vec<Reply>,
    /// People and groups that have other ids now.
    pub(super) moved: Vec<Moved>,
    /// Messages that were sent and not delivered after all.
    pub(super) undelivered: Vec<Undelivered>,
}

/// The outcome of storing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TakenIn {
    /// These are new, and stored.
    New(Vec<TriggerEventId>),
    /// None of them was accepted: too many wait to be handed over.
    Crowded,
    /// None of them was accepted: another host polls the same connector.
    Overtaken,
}

impl Shared {
    /// Stores the new messages. When this returns, they are durable and will be processed.
    pub(super) async fn take_in(
        &self,
        served: &Served,
        mut brought: Brought,
    ) -> Result<TakenIn, Error> {
        let mut seen = HashSet::new();
        brought
            .messages
            .retain(|message| seen.insert(message.id.clone()));
        let undelivered = std::mem::take(&mut brought.undelivered);
        self.give_up_undelivered(served, &undelivered).await?;
        // One after the other: with many at once, each would have to compare again for every other
        // one.
        let _in_turn = served.lasting.intake.lock().await;
        for moved in std::mem::take(&mut brought.moved) {
            self.follow(served, &moved).await?;
        }
        for _ in 0..TRIES_MAX {
            let now = self.core.now();
            self.leave_out_known(served, &mut brought, now).await?;
            self.leave_out_unheard(served, &mut brought).await?;
            if brought.messages.is_empty() && !brought.moves() {
                self.note(served, brought.entry.take()).await;
                return Ok(TakenIn::New(Vec::new()));
            }
            // A batch is taken whole, or a large one might never find enough room.
            if !brought.messages.is_empty() && self.room(served).await? == 0 {
                return Ok(TakenIn::Crowded);
            }
            match self.store_inbound_messages(served, &brought, now).await {
                Ok(taken) => return Ok(TakenIn::New(taken)),
                Err(CommitError::Conflict(conflict)) if is_overtaken(&conflict) => {
                    return Ok(TakenIn::Overtaken);
                }
                // The next attempt leaves out messages that were stored meanwhile.
                Err(CommitError::Conflict(_)) => {}
                Err(CommitError::Replayed { .. }) => return Ok(TakenIn::New(Vec::new())),
                Err(CommitError::Unstorable { source }) => {
                    tracing::warn!(
                        connector.name = %served.name,
                        error = &*source as &dyn std::error::Error,
                        "a message that arrived can never be stored; its place is kept"
                    );
                    return self.store_one_by_one(served, brought).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let reported = "messages arrive through this connector at this moment; try again shortly";
        Err(Refusal::new(ErrorCode::Busy, reported).into())
    }

    async fn leave_out_known(
        &self,
        served: &Served,
        brought: &mut Brought,
        now: Timestamp,
    ) -> Result<(), Error> {
        let ids: Vec<String> = brought.messages.iter().map(|it| it.id.clone()).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let known = self
            .core
            .store()
            .arrived_before(&served.name, &ids, once_since(now))
            .await?;
        brought
            .messages
            .retain(|message| !known.contains(&message.id));
        Ok(())
    }

    /// Leaves out messages that are ignored, and the words of unknown senders.
    async fn leave_out_unheard(&self, served: &Served, brought: &mut Brought) -> Result<(), Error> {
        if matches!(served.link, ConnectorLink::Direct) {
            // A visitor has shown that they are known.
            return Ok(());
        }
        let mut heard = Vec::with_capacity(brought.messages.len());
        for mut message in std::mem::take(&mut brought.messages) {
            let mut overheard = brought.overheard.iter();
            if let Some(place) = overheard.position(|id| *id == message.id) {
                let mut replies = brought.replies.iter();
                let about = replies.find(|reply| reply.message == message.id);
                let about = about.map(|reply| reply.to.as_str());
                if !self.is_heard(served, &mut message, about).await? {
                    continue;
                }
                // Asked once, also where another inspection is needed.
                brought.overheard.swap_remove(place);
            }
            let Ok(key) = key_of(&served.name, &message) else {
                // It is settled with the fault of its component.
                heard.push(message.without_words());
                continue;
            };
            let bound = self.core.store().connector_key(&key).await?;
            let user = bound.as_ref().map(|row| &row.user);
            let reception = receive(&served.spec, &served.name, &message, user);
            let is_heard = matches!(reception, Reception::Accept { .. });
            let Some(mut kept) = reception.kept(message) else {
                continue;
            };
            let replies = &mut brought.replies;
            let place = replies.iter().position(|reply| reply.message == kept.id);
            // Done once, also where another inspection is needed.
            if let Some(reply) = place.map(|place| replies.swap_remove(place))
                && is_heard
            {
                self.quote(served, &mut kept, &reply.to).await?;
            }
            heard.push(kept);
        }
        brought.messages = heard;
        Ok(())
    }

    /// Stores the messages in one commit.
    async fn store_inbound_messages(
        &self,
        served: &Served,
        brought: &Brought,
        now: Timestamp,
    ) -> Result<Vec<TriggerEventId>, CommitError> {
        let ids: Vec<TriggerEventId> = brought.messages.iter().map(|_| trigger_event()).collect();
        let mut commit = Commit::new().append(
            served.stream(),
            Expected::Any,
            received(served, brought, &ids, now),
        );
        commit.guards.extend(brought.guards(served, now));
        commit.key = brought.key_for(&ids);
        store::point("edge.received.before");
        self.core.store().commit(commit).await?;
        store::point("edge.received.after");
        if !ids.is_empty() {
            served.lasting.opened(ids.len());
            self.arrived.notify_one();
            self.acknowledge_stored(served, brought, &ids);
        }
        Ok(ids)
    }

    /// Stores messages of which one cannot be stored, each in a commit of its own. That one is
    /// stored with other words.
    async fn store_one_by_one(&self, served: &Served, brought: Brought) -> Result<TakenIn, Error> {
        let Brought {
            messages,
            cursor,
            polled_from,
            entry,
            key,
            acknowledgements,
            overheard: _,
            replies: _,
            moved: _,
            undelivered: _,
        } = brought;
        let mut taken = Vec::new();
        for message in messages {
            let mut alone = Brought {
                messages: vec![message],
                key: key.clone(),
                acknowledgements: acknowledgements.clone(),
                ..Brought::default()
            };
            let now = self.core.now();
            let stored = match self.store_inbound_messages(served, &alone, now).await {
                Err(CommitError::Unstorable { .. }) => {
                    alone.messages.iter_mut().for_each(make_storable);
                    self.store_inbound_messages(served, &alone, now).await
                }
                stored => stored,
            };
            match stored {
                Ok(ids) => taken.extend(ids),
                // It was stored meanwhile.
                Err(CommitError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let rest = Brought {
            messages: Vec::new(),
            cursor,
            polled_from,
            entry,
            ..Brought::default()
        };
        if rest.moves() {
            self.store_inbound_messages(served, &rest, self.core.now())
                .await?;
        }
        Ok(TakenIn::New(taken))
    }
}

impl Brought {
    /// Returns whether the cursor changes.
    fn moves(&self) -> bool {
        let before = self.polled_from.as_ref().and_then(Option::as_ref);
        self.cursor.is_some() && self.cursor.as_ref() != before
    }

    /// Returns the key of the message that was brought, with its inbound message as the reply.
    fn key_for(&self, ids: &[TriggerEventId]) -> Option<Key> {
        let key = self.key.clone()?;
        let reply = ids.first()?.to_string().into_bytes();
        Some(Key { reply, ..key })
    }

    /// Returns the conditions for storing it: none of its messages exists yet, and no other poll
    /// was stored meanwhile.
    fn guards(&self, served: &Served, now: Timestamp) -> Vec<Guard> {
        let is_new = self.messages.iter().map(|message| {
            Guard::from(ConnectorGuard::NotArrived {
                connector: served.name.clone(),
                message: message.id.clone(),
                since: once_since(now),
            })
        });
        let is_there = self.polled_from.iter().map(|cursor| {
            Guard::from(ConnectorGuard::CursorIs {
                connector: served.name.clone(),
                cursor: cursor.clone(),
            })
        });
        is_new.chain(is_there).collect()
    }
}

/// Returns the events of the messages. The last has the cursor of the next poll.
fn received(
    served: &Served,
    brought: &Brought,
    ids: &[TriggerEventId],
    now: Timestamp,
) -> Vec<NewEvent> {
    let context = Context::new(served.origin(), now);
    let received = |what| {
        context.event(Event::ConnectorReceived(ConnectorReceived {
            connector: served.name.clone(),
            what,
            time: now,
        }))
    };
    let messages = ids.iter().zip(&brought.messages).map(|(id, message)| {
        Received::InboundMessage(Box::new(InboundMessage {
            id: *id,
            message: message.clone(),
        }))
    });
    let cursor = brought.cursor.clone().filter(|_| brought.moves());
    let cursor = cursor.map(Received::Cursor);
    let mut events: Vec<NewEvent> = messages.chain(cursor).map(received).collect();
    let entry = brought.entry.clone();
    events.extend(entry.map(|entry| ledger_event(served, entry, now)));
    events
}

/// Replaces content that cannot be stored.
fn make_storable(message: &mut Incoming) {
    message.said = Said::Text {
        text: UNSTORABLE.to_owned(),
    };
    message.attachments.clear();
    message.sender_name = None;
}

/// Returns the time since when a message is taken once.
pub(super) fn once_since(now: Timestamp) -> Timestamp {
    Timestamp(now.0.saturating_sub(ONCE_DAYS * DAY_MS))
}

fn is_overtaken(conflict: &Conflict) -> bool {
    matches!(
        &conflict.clash,
        Clash::Guard(Guard::Connector(ConnectorGuard::CursorIs { .. }))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polled(from: Option<&str>, to: Option<&str>) -> Brought {
        Brought {
            cursor: to.map(str::to_owned),
            polled_from: Some(from.map(str::to_owned)),
            ..Brought::default()
        }
    }

    #[test]
    fn a_poll_moves_on_only_where_its_cursor_is_another_one() {
        assert!(polled(None, Some("1")).moves());
        assert!(polled(Some("1"), Some("2")).moves());
        assert!(!polled(Some("1"), Some("1")).moves());
        assert!(!polled(Some("1"), None).moves());
        assert!(!Brought::default().moves());
    }

    #[test]
    fn a_message_is_taken_once_within_seven_days() {
        let now = Timestamp(8 * DAY_MS);
        assert_eq!(once_since(now), Timestamp(DAY_MS));
        assert_eq!(once_since(Timestamp(5)), Timestamp(0));
    }
}
