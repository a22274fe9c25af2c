//! Conditions of commits, by subject. Each asks questions, judges the answers, and names its
//! footprint.

mod agent;
mod connector;
mod question;
mod queue;
mod run;
mod session;
mod trigger;
mod user;

pub use agent::AgentGuard;
pub(crate) use agent::{read_role, role_query};
pub use connector::ConnectorGuard;
pub(crate) use question::{Answers, Question, Questions};
pub use question::{Footprint, Resource};
pub use queue::{QueueGuard, QueueSeen};
pub use run::RunGuard;
pub(crate) use session::AcceptanceStatus;
pub use session::SessionGuard;
pub use trigger::TriggerGuard;
pub(crate) use trigger::TriggerStatus;
pub use user::{AccountGuard, ChatWith, KeyGuard, UserGuard};

use crate::sql;

/// Condition for a commit to land, checked in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// A condition on a session.
    Session(SessionGuard),
    /// A condition on the inputs of a session.
    Queue(QueueGuard),
    /// A condition on a run.
    Run(RunGuard),
    /// A condition on an agent.
    Agent(AgentGuard),
    /// A condition on the accounts of a run.
    Account(AccountGuard),
    /// A condition on a user.
    User(UserGuard),
    /// A condition on a key.
    Key(KeyGuard),
    /// A condition on triggers.
    Trigger(TriggerGuard),
    /// A condition on a connector.
    Connector(ConnectorGuard),
}

/// The three parts of a condition; see the methods of [`Guard`].
trait Condition {
    fn questions(&self) -> Questions<'_>;
    fn judge(&self, answers: &Answers) -> sql::Result<Option<String>>;
    fn footprint(&self) -> Footprint;
}

impl Guard {
    pub(crate) fn questions(&self) -> Questions<'_> {
        self.condition().questions()
    }

    /// Judges the answers to the questions. Returns a description of the actual state if the
    /// condition does not hold. Fails for an answer that is not in the expected form.
    pub(crate) fn judge(&self, answers: &Answers) -> sql::Result<Option<String>> {
        self.condition().judge(answers)
    }

    /// Returns the data that the answers depend on. A commit that changes none of it does not
    /// change the judgement.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        self.condition().footprint()
    }
}

macro_rules! conditions {
    ($($subject:ident($guard:ident))*) => {
        impl Guard {
            fn condition(&self) -> &dyn Condition {
                match self {
                    $(Self::$subject(guard) => guard,)*
                }
            }
        }

        $(impl From<$guard> for Guard {
            fn from(guard: $guard) -> Self {
                Self::$subject(guard)
            }
        })*
    };
}

conditions! {
    Session(SessionGuard)
    Queue(QueueGuard)
    Run(RunGuard)
    Agent(AgentGuard)
    Account(AccountGuard)
    User(UserGuard)
    Key(KeyGuard)
    Trigger(TriggerGuard)
    Connector(ConnectorGuard)
}

/// Returns the description of the actual state, unless the condition holds.
fn unless(holds: bool, detail: impl FnOnce() -> String) -> Option<String> {
    if holds { None } else { Some(detail()) }
}
