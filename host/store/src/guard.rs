//! Conditions of commits, by subject. Each asks questions, judges the answers, and names its
//! footprint.

mod account;
mod agent;
mod footprint;
mod key;
mod question;
mod queue;
mod run;
mod session;
mod standing;
mod user;

pub use account::AccountGuard;
pub use agent::AgentGuard;
pub(crate) use agent::{read_role, role_query};
pub use footprint::{Footprint, Resource};
pub use key::KeyGuard;
pub(crate) use question::{Answers, Question, Questions};
pub use queue::{QueueGuard, QueueSeen};
pub use run::RunGuard;
pub use session::SessionGuard;
pub(crate) use standing::Standing;
pub use user::{ChatWith, UserGuard};

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
}

impl Guard {
    /// Returns the questions that the guard asks.
    pub(crate) fn questions(&self) -> Questions<'_> {
        match self {
            Self::Session(guard) => guard.questions(),
            Self::Queue(guard) => guard.questions(),
            Self::Run(guard) => guard.questions(),
            Self::Agent(guard) => guard.questions(),
            Self::Account(guard) => guard.questions(),
            Self::User(guard) => guard.questions(),
            Self::Key(guard) => guard.questions(),
        }
    }

    /// Judges the answers to the questions, and describes what is there instead when the condition
    /// does not hold. Fails for an answer that does not read as what it should be.
    pub(crate) fn judge(&self, answers: &Answers) -> rusqlite::Result<Option<String>> {
        match self {
            Self::Session(guard) => guard.judge(answers),
            Self::Queue(guard) => guard.judge(answers),
            Self::Run(guard) => guard.judge(answers),
            Self::Agent(guard) => guard.judge(answers),
            Self::Account(guard) => guard.judge(answers),
            Self::User(guard) => guard.judge(answers),
            Self::Key(guard) => guard.judge(answers),
        }
    }

    /// Returns what the answers rest on: a commit that changes none of it leaves the judgement as
    /// it is.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        match self {
            Self::Session(guard) => guard.footprint(),
            Self::Queue(guard) => guard.footprint(),
            Self::Run(guard) => guard.footprint(),
            Self::Agent(guard) => guard.footprint(),
            Self::Account(guard) => guard.footprint(),
            Self::User(guard) => guard.footprint(),
            Self::Key(guard) => guard.footprint(),
        }
    }
}

impl From<SessionGuard> for Guard {
    fn from(guard: SessionGuard) -> Self {
        Self::Session(guard)
    }
}

impl From<QueueGuard> for Guard {
    fn from(guard: QueueGuard) -> Self {
        Self::Queue(guard)
    }
}

impl From<RunGuard> for Guard {
    fn from(guard: RunGuard) -> Self {
        Self::Run(guard)
    }
}

impl From<AgentGuard> for Guard {
    fn from(guard: AgentGuard) -> Self {
        Self::Agent(guard)
    }
}

impl From<AccountGuard> for Guard {
    fn from(guard: AccountGuard) -> Self {
        Self::Account(guard)
    }
}

impl From<UserGuard> for Guard {
    fn from(guard: UserGuard) -> Self {
        Self::User(guard)
    }
}

impl From<KeyGuard> for Guard {
    fn from(guard: KeyGuard) -> Self {
        Self::Key(guard)
    }
}

/// Returns the description of what is there instead, unless the condition holds.
fn unless(holds: bool, detail: impl FnOnce() -> String) -> Option<String> {
    if holds { None } else { Some(detail()) }
}
