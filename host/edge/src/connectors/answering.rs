//! Answers: a person's text or button press in a chat with an open question.

use super::Shared;
use super::before::key_of;
use super::queueing::hosts_words;
use super::sender::Sender;
use super::served::Served;
use super::settlement::Settlement;
use broker::{Error, Respond, Target};
use domain::connector::{ButtonValue, Said, kept_reason, open_approval, read};
use domain::error_code::ErrorKind;
use domain::event::{InboundMessageOutcome, NewEvent};
use domain::id::{AgentId, OperationId, SessionId};
use domain::tool::ClientAction;
use domain::user::UserId;
use serde_json::Value;
use store::InboundMessageRow;

/// Maximum number of questions of a chat that are searched for an open one.
const QUESTIONS_MAX: usize = 8;
/// The words for a button whose question has its answer, or is asked no longer.
const OVER: &str = "That was answered already, or is asked no longer.";
/// The words for a button that is none of the host's.
const UNKNOWN: &str = "That button does nothing here.";

/// A question that waits for its answer.
pub(super) struct Question {
    id: OperationId,
    action: ClientAction,
    session: SessionId,
    agent: AgentId,
}

impl Shared {
    /// Processes an inbound message as the answer to a question. None if it is no answer, and so a
    /// message for the agent.
    pub(super) async fn answer(
        &self,
        served: &Served,
        sender: &Sender,
        first: &InboundMessageRow,
    ) -> Result<Option<Settlement>, Error> {
        let said = &first.message.said;
        let is_none = match said {
            // Files are no answer, and go to the agent with the words. Nothing is none either.
            Said::Text { text } => text.trim().is_empty() || !first.message.attachments.is_empty(),
            Said::Aside { .. } => true,
            Said::Button { .. } => false,
        };
        if is_none {
            return Ok(None);
        }
        let Some(question) = self.question(served, sender, first).await? else {
            return Ok(match said {
                Said::Text { .. } | Said::Aside { .. } => None,
                Said::Button { value } => {
                    let words = ButtonValue::parse(value).map_or(UNKNOWN, |_| OVER);
                    Some(self.no_answer(served, first, words))
                }
            });
        };
        let in_group = first.message.group.is_some();
        let answer = match read(question.id, &question.action, said, in_group) {
            Ok(answer) => answer,
            Err(no_answer) => {
                return Ok(match said {
                    Said::Text { .. } | Said::Aside { .. } => None,
                    Said::Button { .. } => {
                        Some(self.no_answer(served, first, &no_answer.to_string()))
                    }
                });
            }
        };
        let key = key_of(&served.name, &first.message.id);
        let responded = self.respond(sender, &question, answer, key).await;
        store::point("edge.answered.after");
        match responded {
            Ok(()) => Ok(Some(Settlement::new(
                1,
                InboundMessageOutcome::Answered {
                    user: sender.user.clone(),
                    operation: question.id,
                },
            ))),
            // It no longer fits, or the question was answered at this moment.
            Err(Error::Refused(refusal)) if refusal.kind() != ErrorKind::Busy => Ok(match said {
                Said::Text { .. } | Said::Aside { .. } => None,
                Said::Button { .. } => Some(self.no_answer(served, first, OVER)),
            }),
            Err(error) => Err(error),
        }
    }

    /// Returns a reminder for a person who writes to the agent while an approval of theirs is open
    /// in the chat, and who may believe to have answered it.
    pub(super) async fn reminder(
        &self,
        served: &Served,
        sender: &Sender,
        first: &InboundMessageRow,
    ) -> Result<Option<NewEvent>, Error> {
        // In a group approvals are not accepted, and an edit or a reaction is never mistaken for
        // one.
        if first.message.group.is_some() || matches!(first.message.said, Said::Aside { .. }) {
            return Ok(None);
        }
        let question = self.question(served, sender, first).await?;
        let words = question.and_then(|it| open_approval(it.id, &it.action));
        let now = self.core.now();
        Ok(words.map(|words| hosts_words(served, first, &words, now)))
    }

    /// Returns the question that an inbound message may answer: that of its button, or the latest
    /// of its chat.
    async fn question(
        &self,
        served: &Served,
        sender: &Sender,
        first: &InboundMessageRow,
    ) -> Result<Option<Question>, Error> {
        let store = self.core.store();
        if let Said::Button { value } = &first.message.said {
            let Some(button) = ButtonValue::parse(value) else {
                return Ok(None);
            };
            return Ok(match store.open_question(button.question).await? {
                Some(asked) => {
                    let user = &sender.user;
                    self.open_question(user, asked.session, asked.operation)
                        .await?
                }
                None => None,
            });
        }
        let chat = served.chat(&first.message.chat);
        for asked in store.open_questions_in(&chat, QUESTIONS_MAX).await? {
            let found = self
                .open_question(&sender.user, asked.session, asked.operation)
                .await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns a question of a session that waits; none if it waits no longer, or is not the
    /// user's.
    pub(super) async fn open_question(
        &self,
        user: &UserId,
        session: SessionId,
        id: OperationId,
    ) -> Result<Option<Question>, Error> {
        let Some(row) = self.core.store().session(session).await? else {
            return Ok(None);
        };
        let agent = row.agent;
        // No messages of its thread are asked for.
        let none = Some((1, 0));
        let view = match self
            .core
            .broker
            .sessions()
            .get(user, &Target::Agent(agent), session, none)
            .await
        {
            Ok(view) => view,
            Err(Error::Refused(refusal)) if refusal.kind() != ErrorKind::Busy => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut asking = view.asking.into_iter();
        Ok(asking
            .find(|asked| asked.tool_call_id == id)
            .map(|asked| Question {
                id,
                session,
                agent,
                action: asked.action,
            }))
    }

    async fn respond(
        &self,
        sender: &Sender,
        question: &Question,
        response: Value,
        key: String,
    ) -> Result<(), Error> {
        let command = Respond {
            target: Target::Agent(question.agent),
            call: question.id,
            session: Some(question.session),
            response,
            user: sender.user.clone(),
            idempotency_key: Some(key),
        };
        self.core.broker.runs().respond(command).await.map(drop)
    }

    /// Returns the settlement of a button that answers nothing, with words that say so.
    fn no_answer(&self, served: &Served, first: &InboundMessageRow, words: &str) -> Settlement {
        let now = self.core.now();
        Settlement {
            count: 1,
            outcome: InboundMessageOutcome::Refused {
                reason: kept_reason(words),
            },
            also: vec![hosts_words(served, first, words, now)],
        }
    }
}
