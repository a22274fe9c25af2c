//! Switching: a user continues with another agent, and returns with a summary.

use super::driver_answer::answered;
use super::labels::while_idle;
use super::once::{Once, Plan};
use super::quarantine::driven;
use super::route::{Answered, Routing};
use super::switch_origin::{Leaving, SWITCHED_FROM, SwitchOrigin};
use super::{
    Address, By, Error, InputReceipt, NewSession, PostOutcome, PostRouted, Request, Routed,
    Switches, Target,
};
use crate::boxed::boxed;
use crate::come_back::{ComeBack, Returned};
use crate::refusals::{
    agent_not_found, changing, not_switched, run_open, run_open_there, session_closed,
    session_structured,
};
use crate::shared::error::invalid;
use crate::shared::guards::in_session;
use crate::signal::Signal;
use domain::event::{Event, SessionAttributed};
use domain::id::{AgentId, SessionId};
use domain::message::Part;
use domain::message_labels::MessageLabels;
use domain::queue::QueueOverride;
use domain::session::CHAT;
use domain::time::Timestamp;
use domain::user::UserId;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::{Commit, SessionGuard, SessionRow, SessionStatus};
use tokio::sync::oneshot;

/// A switch to another agent.
#[derive(Debug, Clone)]
pub struct Switch {
    /// The agent: the user's latest chat with it, or a new one.
    pub agent: Target,
    /// The message with which the user switches; none to switch without one.
    pub content: Option<Vec<Part>>,
}

/// The session that a user has switched to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switched {
    /// Its agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
    /// True if it was opened for this.
    pub is_new: bool,
    /// The message, if there was one.
    pub said: Option<InputReceipt>,
}

/// The remembered answer to a switch.
#[derive(Deserialize)]
#[serde(untagged)]
enum SwitchedBefore {
    /// Without a message, to a session that was opened for it.
    Opened(SessionId),
    /// Without words, to a session that was there.
    Went { went_to: SessionId },
    /// With words.
    Said(Answered),
}

impl Switches<'_> {
    /// Takes a user from a chat to their latest chat with another agent, or to a new one, with a
    /// message.
    ///
    /// All of it is one commit, with the idempotency key: a repetition neither sends the message
    /// again nor changes the way back.
    ///
    /// # Errors
    /// The session or agent does not exist; the session is no open chat, or is the destination
    /// itself; without a message, a turn is in progress there; the user has no right to it; those
    /// of posting a message.
    #[boxed]
    pub async fn to<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
        switch: Switch,
    ) -> Result<Switched, Error> {
        let asked = json!({
            "switch": session,
            "target": target.named(),
            "to": switch.agent.named(),
            "content": switch.content,
        });
        let request = Request::of(by, &asked)?;
        let act = async {
            let from = self
                .sessions()
                .for_command(by.user, target, session)
                .await?;
            require_chat(&from, "only chats are switched from")?;
            let leaving = Leaving {
                session: from.id,
                agent: from.agent,
            };
            match switch.content {
                Some(content) => {
                    self.say_there(by.user, leaving, switch.agent, content, request.as_ref())
                        .await
                }
                None => {
                    self.go_there(by.user, leaving, switch.agent, request.as_ref())
                        .await
                }
            }
        };
        match self.requests().once(request.as_ref(), act).await? {
            Once::Now(switched) => Ok(switched),
            Once::Before(before) => self.switched_before(before).await,
        }
    }

    /// Answers a repeated switch like the first time, wherever the user is since.
    async fn switched_before(&self, before: SwitchedBefore) -> Result<Switched, Error> {
        let (session, is_new) = match before {
            SwitchedBefore::Opened(session) => (session, true),
            SwitchedBefore::Went { went_to } => (went_to, false),
            SwitchedBefore::Said(answered) => {
                return switched_with(self.messages().routed_before(answered).await?);
            }
        };
        Ok(Switched {
            agent: self.sessions().row(session).await?.agent,
            session,
            is_new,
            said: None,
        })
    }

    /// Takes a user to another agent with words.
    async fn say_there(
        &self,
        user: &UserId,
        leaving: Leaving,
        agent: Target,
        content: Vec<Part>,
        request: Option<&Request>,
    ) -> Result<Switched, Error> {
        let command = PostRouted {
            to: Address::Agent(agent),
            content,
            model: None,
            queue: QueueOverride::default(),
            priority: None,
            labels: MessageLabels::default(),
            user: user.clone(),
            idempotency_key: None,
        };
        if self.messages().checked(&command)?.is_some() {
            let reported = "a directive of the queue is no message to an agent: send it when you are \
                        there";
            return Err(invalid(reported, "/content"));
        }
        let routing = Routing {
            directive: None,
            request,
            leaving: Some(leaving),
            arriving: None,
        };
        switched_with(self.messages().route(command, routing).await?)
    }

    /// Switches a user to another agent without a message.
    async fn go_there(
        &self,
        user: &UserId,
        leaving: Leaving,
        agent: Target,
        request: Option<&Request>,
    ) -> Result<Switched, Error> {
        let to = Address::Agent(agent.clone());
        let Some((there, _)) = self.messages().where_to(user, &to, "").await? else {
            return self.open_there(user, leaving, agent, request).await;
        };
        let agent = self.sessions().row(there).await?.agent;
        let remembered = json!({ "went_to": there });
        let plan = || async {
            let target = Target::Agent(agent);
            let row = self.sessions().for_command(user, &target, there).await?;
            let now = self.core.now();
            let commit = match leaving.to(&row, None, now)? {
                None => Commit::new(),
                // Later messages could not be told apart from those of the turn in progress.
                Some(_) if self.is_at_work(&row, now).await? => return Err(run_open_there().into()),
                Some(noted) => while_idle(&row, noted, user, now),
            };
            let commit = commit.guards(self.access().may_store(user));
            Ok(Plan::new(commit, remembered.clone()).keyed(request))
        };
        self.requests().attempt("the session", plan).await?;
        Ok(Switched {
            agent,
            session: there,
            is_new: false,
            said: None,
        })
    }

    async fn open_there(
        &self,
        user: &UserId,
        leaving: Leaving,
        agent: Target,
        request: Option<&Request>,
    ) -> Result<Switched, Error> {
        let command = NewSession {
            session_type: Some(CHAT.to_owned()),
            ..NewSession::of(agent, user.clone())
        };
        let (agent, session) = self
            .sessions()
            .open_now(&command, request, Some(leaving))
            .await?;
        Ok(Switched {
            agent,
            session,
            is_new: true,
            said: None,
        })
    }

    /// Returns whether a turn of a session is in the making, or about to begin. A reminder that is
    /// not due yet does not count.
    async fn is_at_work(&self, row: &SessionRow, now: Timestamp) -> Result<bool, Error> {
        let waiting = self.store().waiting_inputs(row.id, now, 1).await?;
        Ok(row.open_run.is_some() || !waiting.is_empty())
    }

    /// Takes a user back to the session that they came from, with a summary of the messages since
    /// as a notice, by the model of the role `memory`.
    ///
    /// # Errors
    /// The session does not exist, or the user did not switch to it; a turn is in progress in one
    /// of the two; the session that they came from is no longer an open chat; the user has no right
    /// to it.
    #[boxed]
    pub async fn back<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
    ) -> Result<Returned, Error> {
        let request = Request::of(by, &json!({ "return": session, "target": target.named() }))?;
        let act = async {
            let row = self
                .sessions()
                .for_command(by.user, target, session)
                .await?;
            let outcome = SwitchOrigin::of(&row).ok_or_else(not_switched)?;
            let back_at = Target::Agent(outcome.agent_id);
            let origin = self
                .sessions()
                .for_command(by.user, &back_at, outcome.session_id)
                .await?;
            require_chat(&origin, "only chats are returned to")?;
            driven(self.core, origin.id)?;
            if self.is_at_work(&row, self.core.now()).await? {
                return Err(run_open().into());
            }
            let first_message = self.first_since(row.id, &outcome).await?;
            let said = row.head.filter(|_| row.head_message >= first_message);
            let Some(head) = said else {
                return self
                    .return_with_nothing(by, &row, &origin, request.as_ref())
                    .await;
            };
            let agent = self.store().agent(row.agent).await?;
            let agent = agent.ok_or_else(|| agent_not_found(&row.agent.to_string()))?;
            let back = ComeBack {
                by: by.user.clone(),
                session: row.id,
                agent: row.agent,
                definition: agent.agent.definition.0.clone(),
                head,
                last_message: row.head_message,
                first_message,
                attribute: SWITCHED_FROM,
            };
            let (done, begun) = oneshot::channel();
            let signal = Signal::BringBack {
                back: Box::new(back),
                with_key: store::api_key_here(),
                request: request.clone(),
                done,
            };
            self.core.signal(origin.id, signal).await;
            answered(self.core, begun).await
        };
        Ok(self.requests().once(request.as_ref(), act).await?.either())
    }

    /// Takes a user back who said nothing meanwhile: there is nothing to be summarised.
    async fn return_with_nothing(
        &self,
        by: By<'_>,
        row: &SessionRow,
        origin: &SessionRow,
        request: Option<&Request>,
    ) -> Result<Returned, Error> {
        let plan = || async {
            let target = Target::Agent(row.agent);
            let row = self
                .sessions()
                .for_command(by.user, &target, row.id)
                .await?;
            let now = self.core.now();
            let left = Event::SessionAttributed(SessionAttributed {
                session: row.id,
                attributes: Map::from_iter([(SWITCHED_FROM.to_owned(), Value::Null)]),
                time: now,
            });
            let returned = Returned {
                agent: origin.agent,
                session: origin.id,
                run: None,
            };
            let commit = in_session(&row, by.user, now, [left])
                .guard(SessionGuard::Exists(row.id))
                .guards(self.access().may_store(by.user));
            Ok(Plan::new(commit, returned).keyed(request))
        };
        self.requests().attempt("the session", plan).await
    }
}

/// Returns the session that a user has switched to with a message.
fn switched_with(routed: Routed) -> Result<Switched, Error> {
    let Routed::Accepted(receipt) = routed else {
        return Err(changing("the agent").into());
    };
    Ok(Switched {
        agent: receipt.agent,
        session: receipt.session,
        is_new: receipt.is_new,
        said: match receipt.said {
            PostOutcome::Accepted(said) => Some(said),
            PostOutcome::Configured(_) => None,
        },
    })
}

/// Refuses a session that is no open chat.
fn require_chat(row: &SessionRow, only: &str) -> Result<(), Error> {
    if row.status != SessionStatus::Open {
        return Err(session_closed().into());
    }
    if row.session_type != CHAT {
        return Err(session_structured(only).into());
    }
    Ok(())
}
