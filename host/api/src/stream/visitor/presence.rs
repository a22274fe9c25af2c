//! The goings-on with a visitor: the runs that are open in their sessions, and the questions that
//! wait.
//!
//! It is read from the store when the visitor comes, and follows from events after that.

use crate::wire;
use broker::{Broker, Target};
use domain::event::{Event, Recorded};
use domain::id::{OperationId, RunId, SessionId};
use domain::operation::Settlement;
use domain::user::UserId;
use std::collections::BTreeMap;
use store::UserSessionFilter;

/// Sessions of a visitor that are looked at, the latest.
const SESSIONS_MAX: usize = 8;
/// Questions of one call, one after the other, of which the one that waits is looked for.
const QUESTIONS_OF_CALL_MAX: u32 = 64;

/// See the module. Sessions that agents begin for their work are none of the visitor's here.
#[derive(Debug)]
pub(super) struct Presence {
    user: UserId,
    /// The visitor's sessions, each with its open run.
    sessions: BTreeMap<SessionId, Option<RunId>>,
    /// The calls that waited for an answer when it was looked, with their sessions, under the ids
    /// by which they are answered.
    waiting: BTreeMap<OperationId, SessionId>,
    /// The questions that were shown and wait, with their sessions.
    open: BTreeMap<OperationId, SessionId>,
}

impl Presence {
    /// A visitor of whom nothing is known.
    fn new(user: UserId) -> Self {
        Self {
            user,
            sessions: BTreeMap::new(),
            waiting: BTreeMap::new(),
            open: BTreeMap::new(),
        }
    }

    /// Looks at what goes on with a visitor now.
    pub(super) async fn find(broker: &Broker, user: &UserId) -> Result<Self, broker::Error> {
        let mut presence = Self::new(user.clone());
        presence.inspect(broker).await?;
        Ok(presence)
    }

    /// Looks again. Returns the questions that were shown and do not wait any more.
    pub(super) async fn inspect(
        &mut self,
        broker: &Broker,
    ) -> Result<Vec<OperationId>, broker::Error> {
        let clearance = broker.access().clearance(&self.user).await?;
        let open = UserSessionFilter {
            open: true,
            ..UserSessionFilter::default()
        };
        let store = broker.store();
        let rows = store
            .sessions_of_user(&clearance, open, SESSIONS_MAX)
            .await?;
        self.sessions = rows.iter().map(|row| (row.id, row.open_run)).collect();
        self.waiting.clear();
        for row in &rows {
            if row.open_run.is_none() {
                continue;
            }
            let target = Target::Agent(row.agent);
            let view = broker
                .sessions()
                .get(&self.user, &target, row.id, Some((1, 0)))
                .await;
            let view = match view {
                Ok(view) => view,
                // One that is not theirs to see asks them nothing.
                Err(broker::Error::Refused(_)) => continue,
                Err(error) => return Err(error),
            };
            let calls = wire::pending_actions(&view).map(|asked| asked.tool_call_id);
            self.waiting.extend(calls.map(|call| (call, row.id)));
        }
        let shown = self.open.keys().copied();
        let closed: Vec<_> = shown.filter(|shown| !self.is_waiting(*shown)).collect();
        self.open.retain(|question, _| !closed.contains(question));
        Ok(closed)
    }

    /// Returns whether a session is one of the visitor's.
    pub(super) fn has(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// Returns whether a reply is in the making: a run is open that waits for no answer.
    pub(super) fn is_typing(&self) -> bool {
        let asks = |session: &SessionId| {
            let mut asking = self.open.values().chain(self.waiting.values());
            asking.any(|asking| asking == session)
        };
        let mut sessions = self.sessions.iter();
        sessions.any(|(session, run)| run.is_some() && !asks(session))
    }

    /// Returns the calls that waited when it was looked, and the questions that were shown since.
    pub(super) fn waits(&self) -> Vec<OperationId> {
        let known = self.waiting.keys().chain(self.open.keys());
        known.copied().collect()
    }

    /// Notes that a question is shown which was asked just now.
    pub(super) fn ask(&mut self, question: OperationId, session: SessionId) {
        self.open.insert(question, session);
    }

    /// Notes that a question is shown which was asked before it was looked. Returns whether it
    /// waits.
    pub(super) fn repeat(&mut self, question: OperationId, session: SessionId) -> bool {
        let waits = self.is_waiting(question);
        if waits {
            self.open.insert(question, session);
        }
        waits
    }

    /// Follows an event, which may begin or end a run of the visitor's. Returns the questions that
    /// were shown and that it closes.
    pub(super) fn witness(&mut self, recorded: &Recorded) -> Vec<OperationId> {
        let (Some(session), Some(event)) = (recorded.subject.session, &recorded.event) else {
            return Vec::new();
        };
        if let Event::RunStarted(started) = event
            && started.user_id == self.user
            && started.reply_to.is_none()
        {
            self.sessions.insert(session, Some(started.run));
            return Vec::new();
        }
        if !self.has(session) {
            return Vec::new();
        }
        let ended = matches!(event, Event::RunEnded(_));
        if ended {
            self.sessions.insert(session, None);
        }
        let closes = |question: &OperationId, of: &SessionId| {
            *of == session && (ended || closes(event, *question))
        };
        self.waiting.retain(|call, of| !closes(call, of));
        let closed: Vec<_> = self
            .open
            .iter()
            .filter(|(question, of)| closes(question, of))
            .map(|(question, _)| *question)
            .collect();
        self.open.retain(|question, _| !closed.contains(question));
        closed
    }

    fn is_waiting(&self, question: OperationId) -> bool {
        self.waiting.keys().any(|call| answers(*call, question))
    }
}

/// Returns whether an answer under the id of a call is one to the question of an operation.
fn answers(call: OperationId, operation: OperationId) -> bool {
    call == operation.approval()
        || (1..=QUESTIONS_OF_CALL_MAX).any(|segment| call == operation.question(segment))
}

/// Returns whether an event closes the question of an operation, which may be given by the id
/// under which it is answered.
fn closes(event: &Event, question: OperationId) -> bool {
    let of = |operation: OperationId| answers(question, operation);
    let settles = |settled: &[Settlement]| settled.iter().any(|one| of(one.operation));
    match event {
        Event::OperationAnswered(answer) => of(answer.operation),
        Event::ApprovalAnswered(answer) => of(answer.operation),
        Event::RunSettled(it) => settles(&it.settled),
        // A first step settles nothing that was shown before.
        Event::RunStepped(it) => settles(&it.settled) || settles(&it.stopped),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn operation() -> OperationId {
        OperationId::mint(RunId(Uuid::nil()), 0, "a")
    }

    #[test]
    fn a_question_is_answered_under_any_id_that_follows_from_its_operation() {
        for call in [
            operation(),
            operation().approval(),
            operation().question(2),
            operation().question(QUESTIONS_OF_CALL_MAX),
        ] {
            assert!(answers(call, operation()), "{call}");
        }
        let other = OperationId::mint(RunId(Uuid::nil()), 0, "b");
        assert!(!answers(other, operation()));
    }

    #[test]
    fn a_run_that_waits_for_an_answer_is_no_reply_in_the_making() {
        let session = SessionId(Uuid::nil());
        let mut presence = Presence::new("visitor-1".parse().unwrap());
        presence.sessions.insert(session, Some(RunId(Uuid::nil())));
        assert!(presence.is_typing());
        presence.ask(operation(), session);
        assert!(!presence.is_typing());
        assert_eq!(presence.waits(), [operation()]);
        assert!(!presence.repeat(OperationId::mint(RunId(Uuid::nil()), 0, "b"), session));
    }
}
