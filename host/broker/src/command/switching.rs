//! Switching: a user goes on with another agent, and comes back with a summary.
//!
//! Where a user came from is an attribute of the session that they switched to. So it is shown with
//! the session, goes with it, and needs no record of its own.

use super::driver_answer::answered;
use super::quarantine::driven;
use super::{
    Address, Broker, By, Error, InputReceipt, NewSession, PostOutcome, PostRouted, Request, Routed,
    SessionIds, Target,
};
use crate::boxed::boxed;
use crate::catalogue::CHAT;
use crate::come_back::{ComeBack, Returned};
use crate::refusals::{
    agent_not_found, changing, not_switched, run_open, same_session, session_closed,
    session_structured,
};
use crate::signal::Signal;
use domain::id::{AgentId, SessionId};
use domain::message::{MessageId, Part};
use domain::message_labels::MessageLabels;
use domain::queue::QueueOverride;
use domain::session_label::Changes;
use domain::user::UserId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::{SessionRow, SessionStatus};
use tokio::sync::oneshot;

/// The attribute of a session that says from where its user switched to it.
const SWITCHED_FROM: &str = "switched_from";

/// The place that a user came from, as the attribute has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct CameFrom {
    /// The session.
    session_id: SessionId,
    /// Its agent.
    agent_id: AgentId,
    /// The first message of the session with the attribute that is of interest there.
    first_message: MessageId,
}

impl CameFrom {
    /// Reads the attribute; none where there is none, or somebody wrote something else into it.
    fn of(row: &SessionRow) -> Option<Self> {
        Self::deserialize(row.attributes.get(SWITCHED_FROM)?).ok()
    }
}

/// A switch to another agent.
#[derive(Debug, Clone)]
pub struct Switch {
    /// The agent: the user's latest chat with it, or a new one.
    pub agent: Target,
    /// The message with which the user comes to it; none to begin without one.
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

impl Broker {
    /// Takes a user from a chat to their latest chat with another agent, or to a new one, with a
    /// message.
    ///
    /// Under an idempotency key it is the same request as the message, or as the opening: repeated,
    /// it says nothing twice.
    ///
    /// # Errors
    /// There is no such session or agent; the session is no open chat, or the one that the user
    /// would switch to; the user may not; those of posting a message.
    #[boxed]
    pub async fn switch<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
        switch: Switch,
    ) -> Result<Switched, Error> {
        let from = self.session_for(by.user, target, session).await?;
        require_chat(&from, "only chats are switched from")?;
        let to = Address::Agent(switch.agent.clone());
        let there = match self.where_to(by.user, &to, "").await? {
            Some((there, _)) if there == session => return Err(same_session().into()),
            Some((there, _)) => Some(self.session_row(there).await?),
            None => None,
        };
        let switched = match (switch.content, &there) {
            (Some(content), _) => self.say_there(by, to, content).await?,
            (None, Some(row)) => Switched {
                agent: row.agent,
                session: row.id,
                is_new: false,
                said: None,
            },
            (None, None) => self.open_there(by, switch.agent).await?,
        };
        if switched.session == session {
            return Err(same_session().into());
        }
        let there = there.filter(|row| row.id == switched.session);
        self.note_where_from(by.user, &from, there.as_ref(), &switched)
            .await?;
        Ok(switched)
    }

    async fn say_there(
        &self,
        by: By<'_>,
        to: Address,
        content: Vec<Part>,
    ) -> Result<Switched, Error> {
        let posted = self.post_routed(PostRouted {
            to,
            content,
            model: None,
            queue: QueueOverride::default(),
            priority: None,
            labels: MessageLabels::default(),
            user: by.user.clone(),
            idempotency_key: by.key.map(str::to_owned),
        });
        let Routed::Accepted(receipt) = posted.await? else {
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

    async fn open_there(&self, by: By<'_>, agent: Target) -> Result<Switched, Error> {
        let opened = self.open_session(NewSession {
            ids: SessionIds::default(),
            target: agent,
            session_type: Some(CHAT.to_owned()),
            name: None,
            model: None,
            config: None,
            time_limit_s: None,
            idempotency_key: by.key.map(str::to_owned),
            user: by.user.clone(),
        });
        let row = opened.await?.row;
        Ok(Switched {
            agent: row.agent,
            session: row.id,
            is_new: true,
            said: None,
        })
    }

    /// Notes at a session where its user came from. Whoever comes from the same session once more
    /// before they have returned has all of it summarised.
    async fn note_where_from(
        &self,
        user: &UserId,
        from: &SessionRow,
        there: Option<&SessionRow>,
        switched: &Switched,
    ) -> Result<(), Error> {
        let before = there
            .and_then(CameFrom::of)
            .filter(|before| before.session_id == from.id);
        let last = there.map_or(0, |row| row.head_message);
        let came = before.unwrap_or(CameFrom {
            session_id: from.id,
            agent_id: from.agent,
            first_message: last.saturating_add(1),
        });
        let attributes = Map::from_iter([(SWITCHED_FROM.to_owned(), json!(came))]);
        let changes = Changes {
            attributes: Some(attributes),
            ..Changes::default()
        };
        let target = Target::Agent(switched.agent);
        self.relabel(By::from(user), &target, switched.session, changes)
            .await?;
        Ok(())
    }

    /// Takes a user back to the session that they came from, and brings a summary of what was said
    /// since as a notice, by the model of the role `memory`.
    ///
    /// # Errors
    /// There is no such session, or the user did not switch to it; a turn is in the making in one
    /// of the two; the one that they came from is no open chat any more; the user may not.
    #[boxed]
    pub async fn switch_back<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
    ) -> Result<Returned, Error> {
        let request = Request::of(by, &json!({ "return": session, "target": target.named() }))?;
        let act = self.try_switching_back(by, target, session, request.clone());
        Ok(self.once(request.as_ref(), act).await?.either())
    }

    async fn try_switching_back(
        &self,
        by: By<'_>,
        target: &Target,
        session: SessionId,
        request: Option<Request>,
    ) -> Result<Returned, Error> {
        let row = self.session_for(by.user, target, session).await?;
        let came = CameFrom::of(&row).ok_or_else(not_switched)?;
        let back_at = Target::Agent(came.agent_id);
        let origin = self.session_for(by.user, &back_at, came.session_id).await?;
        require_chat(&origin, "only chats are returned to")?;
        driven(&self.core, origin.id)?;
        if row.open_run.is_some() || row.waiting > 0 {
            return Err(run_open().into());
        }
        let said = row.head.filter(|_| row.head_message >= came.first_message);
        let Some(head) = said else {
            return self.return_with_nothing(by, &row, &origin, request).await;
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
            first_message: came.first_message,
            attribute: SWITCHED_FROM,
        };
        let (done, begun) = oneshot::channel();
        let signal = Signal::BringBack {
            back: Box::new(back),
            with_key: store::api_key_here(),
            request,
            done,
        };
        self.core.signal(origin.id, signal).await;
        answered(&self.core, begun).await
    }

    /// Takes a user back who said nothing meanwhile: there is nothing to be summarised.
    async fn return_with_nothing(
        &self,
        by: By<'_>,
        row: &SessionRow,
        origin: &SessionRow,
        request: Option<Request>,
    ) -> Result<Returned, Error> {
        let attributes = Map::from_iter([(SWITCHED_FROM.to_owned(), Value::Null)]);
        let changes = Changes {
            attributes: Some(attributes),
            ..Changes::default()
        };
        let returned = Returned {
            agent: origin.agent,
            session: origin.id,
            run: None,
        };
        self.note_for(by.user, request.as_ref(), &returned).await?;
        let target = Target::Agent(row.agent);
        self.relabel(By::from(by.user), &target, row.id, changes)
            .await?;
        Ok(returned)
    }
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

#[cfg(test)]
mod tests {
    use super::CameFrom;
    use crate::core::fresh;
    use serde::Deserialize;
    use serde_json::json;

    #[test]
    fn an_attribute_that_somebody_else_wrote_is_no_place_to_return_to() {
        let came = CameFrom {
            session_id: fresh::session(),
            agent_id: fresh::agent(),
            first_message: 7,
        };
        assert_eq!(CameFrom::deserialize(json!(came)).ok(), Some(came));
        for other in [json!(null), json!("x"), json!({ "session_id": "x" })] {
            assert_eq!(CameFrom::deserialize(&other).ok(), None, "{other}");
        }
    }
}
