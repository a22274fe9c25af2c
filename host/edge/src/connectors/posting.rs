//! Inbound messages that become an input: the agent is found or made, their files are handed over,
//! and the words go through the broker.

use super::Shared;
use super::attachments::Place;
use super::before::key_of;
use super::gathering::{is_directive, joined_text, of_one_input};
use super::queueing::hosts_words;
use super::sender::Sender;
use super::served::Served;
use super::settlement::Settlement;
use broker::{
    Address, Arriving, CreateAgent, Error, PostOutcome, PostRouted, Routed, RoutedReceipt, Target,
    Template,
};
use domain::error_code::{ErrorCode, ErrorKind};
use domain::event::{InboundMessageOutcome, Source};
use domain::id::{AgentId, InputId, SessionId};
use domain::message::Part;
use domain::message_labels::MessageLabels;
use domain::queue::{Mode, QueueOverride};
use domain::refusal::Refusal;
use domain::speaker::Speaker;
use std::collections::HashSet;
use store::InboundMessageRow;

/// Number of attempts to find an agent while others make the same one.
const TRIES_MAX: u32 = 3;

/// The words for files that became a part of an input before.
const AGAIN: &str = "[files]";

impl Shared {
    /// Makes an input of inbound messages, or of those of them that became one before.
    pub(super) async fn post(
        &self,
        served: &Served,
        sender: &Sender,
        batch: &[InboundMessageRow],
    ) -> Result<Settlement, Error> {
        let Some(first) = batch.first() else {
            return Ok(Settlement::new(0, InboundMessageOutcome::Ignored));
        };
        let agent = self.agent(served, sender).await?;
        let mut to = Address::Agent(Target::Agent(agent));
        let session = self.session_there(sender, &to).await?;
        let is_posted = self.is_posted(served, first).await?;
        // An input that was made before contains the messages it was made of.
        let batch = match is_posted {
            true => batch,
            false => of_one_input(batch, self.mode_there(served, session).await?),
        };
        let mut files = Vec::new();
        if has_files(batch) && is_posted {
            // Its files exist already, and it is not accepted again, whatever its text is.
            files.push(AGAIN.to_owned());
        } else if has_files(batch) {
            let key = key_of(&served.name, &first.message.id);
            let session = match session {
                Some(session) => session,
                None => self.begin_session(sender, agent, &key).await?,
            };
            to = Address::Session(session);
            let place = Place {
                sender,
                agent,
                session,
            };
            files = self.hand_over_files(served, &place, batch).await?;
        }
        let text = joined_text(batch, &files);
        if text.trim().is_empty() {
            let reason = "it says nothing".to_owned();
            let refused = InboundMessageOutcome::Refused { reason };
            return Ok(Settlement::new(batch.len(), refused));
        }
        let queue = if is_directive(&first.message) {
            QueueOverride::default()
        } else {
            self.queue_of(served, session).await?
        };
        let command = PostRouted {
            to,
            content: vec![Part::text(text)],
            model: None,
            queue,
            priority: None,
            labels: MessageLabels::default(),
            user: sender.user.clone(),
            idempotency_key: Some(key_of(&served.name, &first.message.id)),
        };
        let arriving = arriving(served, sender, batch);
        let broker = &self.core.broker;
        let routed = broker.messages().post_inbound(command, arriving).await?;
        store::point("edge.handed.after");
        match routed {
            Routed::Accepted(receipt) => self.accepted(served, sender, batch, receipt).await,
            // No such address leads to several threads.
            Routed::Unclear(_) => {
                let reason = "several conversations may be meant";
                Err(Refusal::new(ErrorCode::NoThreadFound, reason).into())
            }
        }
    }

    /// Returns the settlement of inbound messages that were taken: of those that the input has,
    /// which may have become one before a crash.
    async fn accepted(
        &self,
        served: &Served,
        sender: &Sender,
        batch: &[InboundMessageRow],
        receipt: RoutedReceipt,
    ) -> Result<Settlement, Error> {
        let RoutedReceipt {
            said,
            agent,
            session,
            ..
        } = receipt;
        let accepted = match said {
            PostOutcome::Accepted(accepted) => accepted,
            PostOutcome::Configured(queue) => {
                let words = queue.holds.in_words();
                let now = self.core.now();
                let first = batch.first();
                return Ok(Settlement {
                    count: 1,
                    outcome: InboundMessageOutcome::Configured {
                        user: sender.user.clone(),
                        session,
                    },
                    also: first
                        .map(|first| hosts_words(served, first, &words, now))
                        .into_iter()
                        .collect(),
                });
            }
        };
        let count = if accepted.replayed {
            self.messages_of(accepted.input, batch).await?
        } else {
            batch.len()
        };
        Ok(Settlement::new(
            count,
            InboundMessageOutcome::Accepted {
                user: sender.user.clone(),
                input: accepted.input,
                session,
                agent,
            },
        ))
    }

    /// Returns the number of inbound messages, from the first, that an input was made of.
    async fn messages_of(
        &self,
        input: InputId,
        batch: &[InboundMessageRow],
    ) -> Result<usize, Error> {
        let found = self.core.store().input(input).await?;
        let Some(Source::Connector { messages, .. }) = found.map(|(accepted, _)| accepted.source)
        else {
            // It was erased since: the first message was in it.
            return Ok(1);
        };
        let made_of: HashSet<&str> = messages.iter().map(String::as_str).collect();
        let count = batch
            .iter()
            .take_while(|inbound_message| made_of.contains(inbound_message.message.id.as_str()))
            .count();
        Ok(count.max(1))
    }

    /// Returns the agent that a sender talks with, which is made if it does not exist.
    async fn agent(&self, served: &Served, sender: &Sender) -> Result<AgentId, Error> {
        let broker = &self.core.broker;
        let mut refused: Option<Refusal> = None;
        for _ in 0..TRIES_MAX {
            match broker.agents().id(&sender.user, &sender.target()).await {
                Err(Error::Refused(refusal)) if refusal.kind() == ErrorKind::NotFound => {}
                found => return found,
            }
            if let Some(refusal) = refused.take() {
                return Err(refusal.into());
            }
            let template = Template::Definition(served.spec.agent.clone());
            let command = CreateAgent {
                path: Some(sender.path.to_string()),
                ..CreateAgent::of(template, sender.user.clone())
            };
            match broker.agents().create(command).await {
                Ok(view) => return Ok(view.row.agent.id),
                // Another task made it meanwhile, or it belongs to another user.
                Err(Error::Refused(refusal)) if refusal.kind() == ErrorKind::Conflict => {
                    refused = Some(refusal);
                }
                Err(error) => return Err(error),
            }
        }
        let reported = "the agent is being made at this moment";
        Err(Refusal::new(ErrorCode::Busy, reported).into())
    }

    /// Returns the session for words to an address; none if a new one is begun for them.
    async fn session_there(
        &self,
        sender: &Sender,
        to: &Address,
    ) -> Result<Option<SessionId>, Error> {
        let found = self
            .core
            .broker
            .messages()
            .where_to(&sender.user, to, "")
            .await?;
        Ok(found.map(|(session, _)| session))
    }

    /// Returns the mode of the queue for words of a connector.
    async fn mode_there(&self, served: &Served, session: Option<SessionId>) -> Result<Mode, Error> {
        let of_session = self.queue_of_session(session).await?;
        let of_connector = beneath(served.spec.queue, of_session);
        let settings = self
            .core
            .broker
            .messages()
            .queue_settings(of_connector, of_session);
        Ok(settings.mode)
    }

    /// Returns the settings of the queue for words of a connector. Those of their session take
    /// precedence over the connector's.
    async fn queue_of(
        &self,
        served: &Served,
        session: Option<SessionId>,
    ) -> Result<QueueOverride, Error> {
        let of_connector = served.spec.queue;
        if of_connector == QueueOverride::default() {
            return Ok(of_connector);
        }
        let of_session = self.queue_of_session(session).await?;
        Ok(beneath(of_connector, of_session))
    }

    async fn queue_of_session(&self, session: Option<SessionId>) -> Result<QueueOverride, Error> {
        let row = match session {
            Some(session) => self.core.store().session(session).await?,
            None => None,
        };
        Ok(row.map_or_else(QueueOverride::default, |row| row.queue))
    }
}

fn has_files(batch: &[InboundMessageRow]) -> bool {
    batch
        .iter()
        .any(|inbound_message| !inbound_message.message.attachments.is_empty())
}

/// Returns the provenance of words.
fn arriving(served: &Served, sender: &Sender, batch: &[InboundMessageRow]) -> Arriving {
    let chat = batch.first().map_or("", |first| &first.message.chat);
    let chat = served.chat(chat);
    let speaker = if sender.own_words {
        Speaker::User {
            user_id: sender.user.clone(),
        }
    } else {
        Speaker::Connector {
            connector: served.name.to_string(),
            chat: chat.chat.clone(),
        }
    };
    Arriving {
        source: Source::Connector {
            reply_to: chat,
            messages: batch
                .iter()
                .map(|inbound_message| inbound_message.message.id.clone())
                .collect(),
        },
        origin: served.origin(),
        untrusted: !sender.own_words
            || batch
                .iter()
                .any(|inbound_message| inbound_message.message.quotes_others()),
        speaker: Some(speaker),
        unheard: false,
        isolated: None,
    }
}

/// Returns settings that count where a session has none of its own.
fn beneath(of_connector: QueueOverride, of_session: QueueOverride) -> QueueOverride {
    QueueOverride {
        mode: of_connector.mode.filter(|_| of_session.mode.is_none()),
        debounce_ms: of_connector
            .debounce_ms
            .filter(|_| of_session.debounce_ms.is_none()),
        cap: of_connector.cap.filter(|_| of_session.cap.is_none()),
        drop: of_connector.drop.filter(|_| of_session.drop.is_none()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_session_go_before_those_of_its_connector() {
        let of_connector = QueueOverride {
            mode: Some(Mode::Collect),
            cap: Some("5".parse().unwrap()),
            ..QueueOverride::default()
        };
        let of_session = QueueOverride {
            mode: Some(Mode::Interrupt),
            ..QueueOverride::default()
        };
        let deferred = beneath(of_connector, of_session);
        assert_eq!((deferred.mode, deferred.cap), (None, of_connector.cap));
        assert_eq!(
            beneath(of_connector, QueueOverride::default()),
            of_connector
        );
    }
}
