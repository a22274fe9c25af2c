//! Changes of a session as a label: rename, pin, note attributes, clear, delete.

use super::once::Plan;
use super::{By, Error, Request, Sessions, Target};
use crate::boxed::boxed;
use crate::journal::Context;
use crate::refusals::{inputs_wait, run_open, session_active, session_closed, session_structured};
use crate::shared::guards::{has_right, in_session};
use crate::shared::outbound_messages::tell_of_dead;
use domain::event::{Event, InputAccepted, InputDead, SessionCleared, SessionDeleted, Source};
use domain::id::{SessionId, Stream};
use domain::role::Right;
use domain::session::CHAT;
use domain::session_label::{Changes, Label, merge};
use domain::time::Timestamp;
use domain::user::UserId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::{Commit, Expected, Guard, QueueGuard, SessionGuard, SessionRow, SessionStatus};

/// The reason of a dead letter whose session was deleted while the input waited.
const DELETED: &str = "its session was deleted";
/// A time later than any reminder is due.
const FOR_EVER: Timestamp = Timestamp(u64::MAX >> 1);

/// A session's label as a command has left it.
#[derive(Debug, Serialize, Deserialize)]
struct LabelAsItWas {
    name: Option<String>,
    pinned_at: Option<Timestamp>,
    attributes: Map<String, Value>,
    updated_at: Timestamp,
}

impl Sessions<'_> {
    /// Renames a session, pins it or not, and merges keys into its attributes: all or nothing.
    ///
    /// Returns the session afterwards.
    ///
    /// # Errors
    /// The session does not exist; the user has no right to it; the name is invalid for a session;
    /// there would be too many attributes.
    #[boxed]
    pub async fn relabel<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
        changes: Changes,
    ) -> Result<SessionRow, Error> {
        let asked = json!({
            "relabel": session,
            "target": target.named(),
            "name": changes.name,
            "pinned": changes.pinned,
            "attributes": changes.attributes,
        });
        let request = Request::of(by, &asked)?.map(|request| request.about(session));
        let plan = || self.planned_label(by.user, target, session, &changes);
        let label = self
            .requests()
            .carry_out(request.as_ref(), "the session", plan)
            .await?;
        Ok(SessionRow {
            name: label.name,
            pinned_at: label.pinned_at,
            attributes: label.attributes,
            updated_at: label.updated_at,
            ..self.row(session).await?
        })
    }

    async fn planned_label(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        changes: &Changes,
    ) -> Result<Plan<LabelAsItWas>, Error> {
        let row = self.for_command(user, target, session).await?;
        let now = self.core.now();
        let label = Label {
            session,
            name: row.name.as_deref(),
            pinned: row.pinned_at.is_some(),
            attributes: &row.attributes,
        };
        let events = label.change(changes.clone(), now)?;
        let mut after = LabelAsItWas {
            name: row.name.clone(),
            pinned_at: row.pinned_at,
            attributes: row.attributes.clone(),
            updated_at: if events.is_empty() {
                row.updated_at
            } else {
                now
            },
        };
        for event in &events {
            match event {
                Event::SessionRenamed(it) => after.name.clone_from(&it.name),
                Event::SessionPinned(it) => after.pinned_at = it.pinned.then_some(now),
                Event::SessionAttributed(it) => {
                    after.attributes = merge(std::mem::take(&mut after.attributes), &it.attributes)
                }
                _ => {}
            }
        }
        let commit = if events.is_empty() {
            Commit::new()
        } else {
            in_session(&row, user, now, events).guard(SessionGuard::Exists(session))
        };
        Ok(Plan::new(
            commit.guards(self.access().may_store(user)),
            after,
        ))
    }

    /// Clears a chat: it points to an empty thread again. Returns its new revision. Its turns stay
    /// where they are.
    ///
    /// # Errors
    /// The session does not exist or is no open chat; a turn is in progress or inputs wait; the
    /// user has no right to it.
    #[boxed]
    pub async fn clear<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
    ) -> Result<u64, Error> {
        let request = Request::of(by, &json!({ "clear": session, "target": target.named() }))?;
        let plan = || async {
            let now = self.core.now();
            let row = self.clearable(by.user, target, session, now).await?;
            Ok(Plan::new(clearing(&row, by.user, now), row.revision + 1))
        };
        self.requests()
            .carry_out(request.as_ref(), "the session", plan)
            .await
    }

    /// Returns a session that may be cleared now.
    async fn clearable(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        now: Timestamp,
    ) -> Result<SessionRow, Error> {
        let row = self.disposable(user, target, session).await?;
        if row.status != SessionStatus::Open {
            return Err(session_closed().into());
        }
        if row.session_type != CHAT {
            return Err(session_structured("only chats are cleared").into());
        }
        if row.open_run.is_some() {
            return Err(run_open().into());
        }
        // A reminder that is not due yet wakes the session later, whatever its thread is then.
        let waiting = self.store().waiting_inputs(session, now, 1).await?;
        if !waiting.is_empty() {
            return Err(inputs_wait(
                "words wait in this session; let them be dealt with or cancel them first",
            )
            .into());
        }
        Ok(row)
    }

    /// Returns a session that a user may clear or delete: it is theirs, or they are a primary.
    async fn disposable(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
    ) -> Result<SessionRow, Error> {
        let row = self.for_command(user, target, session).await?;
        let (_, role) = self.agents().find(user, target).await?;
        role.permits(disposing(&row, user))?;
        Ok(row)
    }

    /// Deletes a session: no user finds it any more. A structured session that has ended stays in
    /// the history for those who see all sessions.
    ///
    /// Inputs that wait in it become dead letters. Its turns stay where others point to them.
    ///
    /// # Errors
    /// The session does not exist; a turn is in progress; it holds its agent's slot; another agent
    /// waits for its work; the user has no right to it.
    #[boxed]
    pub async fn delete<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
    ) -> Result<(), Error> {
        let request = Request::of(by, &json!({ "delete": session, "target": target.named() }))?;
        let plan = || async {
            let row = self.disposable(by.user, target, session).await?;
            if row.session_type != CHAT && row.status == SessionStatus::Open {
                return Err(session_active(row.agent).into());
            }
            if row.open_run.is_some() {
                return Err(run_open().into());
            }
            // All of them, however many: the commit lands only if it puts aside each that waits.
            let waiting = self
                .store()
                .waiting_inputs(session, FOR_EVER, usize::MAX)
                .await?;
            if waiting.iter().any(is_waited_for) {
                return Err(inputs_wait(
                    "another agent waits for what this session is to do; let it be done or cancel \
                     it first",
                )
                .into());
            }
            let commit = deleting(&row, &waiting, by.user, self.core.now());
            Ok(Plan::new(commit, ()))
        };
        self.requests()
            .carry_out(request.as_ref(), "the session", plan)
            .await
    }

    /// Checks whether a user may still begin a session with an agent. Used to find the reason after
    /// a commit did not land.
    pub(super) async fn may_begin(&self, user: &UserId, target: &Target) -> Result<(), Error> {
        self.agents()
            .find_for(user, target, Right::Interact)
            .await
            .map(drop)
    }
}

/// Returns the right that it takes to clear or delete a session.
fn disposing(row: &SessionRow, user: &UserId) -> Right {
    if row.user_id == *user {
        Right::Interact
    } else {
        Right::DisposeOfOthers
    }
}

/// Returns the commit that clears a chat, if it is unchanged since it was read and no input waits
/// in it.
fn clearing(row: &SessionRow, user: &UserId, now: Timestamp) -> Commit {
    let cleared = Event::SessionCleared(SessionCleared {
        session: row.id,
        revision: row.revision + 1,
        time: now,
    });
    while_idle(row, cleared, user, now).guard(has_right(row.agent, user, disposing(row, user)))
}

/// Returns the commit of an event of an idle session without waiting inputs, if it is unchanged
/// since it was read.
pub(super) fn while_idle(row: &SessionRow, event: Event, user: &UserId, now: Timestamp) -> Commit {
    let session = row.id;
    in_session(row, user, now, [event])
        .guard(SessionGuard::Open(session))
        .guard(SessionGuard::NoOpenRun(session))
        .guard(QueueGuard::NothingWaiting {
            session,
            user: None,
            now,
            except: Vec::new(),
        })
        .guard(SessionGuard::Head {
            session,
            head: row.head,
            revision: row.revision,
        })
}

/// Returns the commit that deletes a session and puts its waiting inputs aside, if exactly these
/// wait.
fn deleting(row: &SessionRow, waiting: &[InputAccepted], user: &UserId, now: Timestamp) -> Commit {
    let session = row.id;
    let dead = |input: &InputAccepted| {
        Event::InputDead(InputDead {
            input: input.input,
            session,
            reason: DELETED.to_owned(),
            time: now,
        })
    };
    let mut events: Vec<Event> = waiting.iter().map(dead).collect();
    events.push(Event::SessionDeleted(SessionDeleted {
        session,
        deleted_by: user.clone(),
        time: now,
    }));
    let context = Context::by(user, now).about(row.agent, Some(session), None);
    let mut commit = Commit::new()
        .guard(SessionGuard::Exists(session))
        .guard(has_right(row.agent, user, disposing(row, user)))
        .guard(SessionGuard::NoOpenRun(session))
        // Together with the guards below: exactly these inputs wait.
        .guard(QueueGuard::WaitingAtMost {
            session,
            max: waiting.len() as u64,
        })
        .append(
            Stream::Session(session),
            Expected::Any,
            context.events(events),
        );
    commit.guards.extend(
        waiting
            .iter()
            .map(|input| Guard::Queue(QueueGuard::InputWaiting(input.input))),
    );
    // A person who wrote from a chat must not wait for ever.
    tell_of_dead(&mut commit, waiting, &context);
    commit
}

/// Returns whether an operation of another agent settles with the result of an input.
fn is_waited_for(input: &InputAccepted) -> bool {
    matches!(
        &input.source,
        Source::Dispatch {
            reply_to: Some(_),
            ..
        }
    )
}
