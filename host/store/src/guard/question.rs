//! Questions that guards ask the store, as data, and the answers.

use crate::query::{Query, Rows, Value};
use domain::id::{AgentId, SessionId};
use domain::key::KeyId;
use domain::trigger::TriggerName;
use domain::user::UserId;

/// Number of questions that one guard asks, at most.
const QUESTIONS_MAX: usize = 2;

/// The questions of one guard. They do not depend on each other's answers, so that a batch can ask
/// all of its questions at once.
pub(crate) type Questions<'g> = [Option<Question<'g>>; QUESTIONS_MAX];

/// The rows that answer the questions of one guard, question by question.
pub(crate) type Answers = [Rows; QUESTIONS_MAX];

/// A question of a guard. The questions of every acceptance are named, because a writer may know
/// their answers without a query.
#[derive(Debug)]
pub(crate) enum Question<'g> {
    /// The status of a session; see [`super::AcceptanceStatus`].
    AcceptanceStatus(SessionId),
    /// The role of a user with an agent.
    Role {
        /// The agent.
        agent: AgentId,
        /// The user.
        user: &'g UserId,
    },
    /// The number of bytes that a user has brought and that are still there.
    StoredBytes(&'g UserId),
    /// The number of those bytes that were stored under an API key.
    StoredBytesWith(&'g KeyId),
    /// The status of a trigger; see [`super::TriggerStatus`].
    TriggerStatus(&'g TriggerName),
    /// Any other query.
    Other(Query<'g>),
}

pub(super) fn ask<'g, const N: usize>(
    text: &'static str,
    parameters: [Value<'g>; N],
) -> Questions<'g> {
    [Some(Question::Other(Query::new(text, parameters))), None]
}
