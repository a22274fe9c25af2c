//! The phases of a session's driver, and the transitions from one to the next.
//!
//! A phase has only the data that exist in it. Everything dropped with a phase is in the store, or
//! is decided again.

use super::driving::{Driving, Owed};
use crate::resolved_config::Sealed;
use crate::shared::DriverError;
use domain::event::InputAccepted;
use domain::time::Timestamp;
use store::{AgentRow, Expected, Guard, QueueGuard, SessionGuard, SessionRow};

/// The phase of a session's driver.
#[derive(Default)]
pub(super) enum Phase {
    /// Nothing is known about the session's run. The store has to be read.
    #[default]
    Unknown,
    /// No run is open. Contains the session at the time of that check.
    Idle(Box<SessionRow>),
    /// A run begins, and its start is not stored.
    Starting(Box<Starting>),
    /// A stored run is open.
    Running(Box<Running>),
}

/// A run that begins. It is dropped when its session may have changed.
pub(super) struct Starting {
    pub(super) driving: Driving,
    /// The inputs that it claims.
    pub(super) inputs: Vec<InputAccepted>,
    /// Its agent as it was just read, for the first step.
    pub(super) agent: Option<AgentRow>,
    /// The prompt and settings that are its agent's, its session's or its persona's own.
    pub(super) overrides: Option<Sealed>,
    /// The sections of its prompts.
    pub(super) sections: Option<Sealed>,
    /// Guards for its start, besides those that hold for every run.
    pub(super) begins_under: Vec<Guard>,
}

/// A run whose start is stored.
pub(super) struct Running {
    pub(super) driving: Driving,
    /// The version of its stream.
    pub(super) version: u64,
}

impl Starting {
    /// Returns the guards for the run's start.
    pub(super) fn guards(&self) -> Vec<Guard> {
        let started = &self.driving.run.started;
        let session = started.session;
        let mut guards = vec![
            Guard::Session(SessionGuard::Open(session)),
            Guard::Session(SessionGuard::NoOpenRun(session)),
            Guard::Session(SessionGuard::Head {
                session,
                head: started.base,
                revision: started.revision,
            }),
        ];
        guards.extend(
            self.inputs
                .iter()
                .map(|input| Guard::Queue(QueueGuard::InputWaiting(input.input))),
        );
        // The next turn reports inputs that are dropped meanwhile, together with these.
        guards.extend(self.begins_under.iter().cloned());
        guards.extend(started.overflow.iter().map(|notice| {
            Guard::Queue(QueueGuard::Unreported {
                session,
                notice: Some(notice.clone()),
            })
        }));
        guards
    }
}

impl Phase {
    /// Creates the phase of a session without an open run; unknown for a session that is not there.
    pub(super) fn without_run(session: Option<SessionRow>) -> Self {
        session.map_or(Self::Unknown, |session| Self::Idle(Box::new(session)))
    }

    /// Creates the phase of a run whose start is not stored yet.
    pub(super) fn starting(starting: Starting) -> Self {
        Self::Starting(Box::new(starting))
    }

    /// Creates the phase of a stored run.
    pub(super) fn running(driving: Driving, version: u64) -> Self {
        Self::Running(Box::new(Running { driving, version }))
    }

    /// Goes on with the run as stored up to a version of its stream. A run that starts is running
    /// from here on.
    pub(super) fn stored(&mut self, version: u64) {
        *self = match std::mem::take(self) {
            Self::Starting(starting) => Self::running(starting.driving, version),
            Self::Running(running) => Self::running(running.driving, version),
            phase @ (Self::Unknown | Self::Idle(_)) => phase,
        };
    }

    /// Takes the session's row out of the idle phase. The next phase is unknown.
    pub(super) fn take_idle(&mut self) -> Option<SessionRow> {
        match std::mem::take(self) {
            Self::Idle(session) => Some(*session),
            phase @ (Self::Unknown | Self::Starting(_) | Self::Running(_)) => {
                *self = phase;
                None
            }
        }
    }

    /// Takes the open run out. The next phase is unknown.
    pub(super) fn take_run(&mut self) -> Option<Driving> {
        match std::mem::take(self) {
            Self::Starting(starting) => Some(starting.driving),
            Self::Running(running) => Some(running.driving),
            phase @ (Self::Unknown | Self::Idle(_)) => {
                *self = phase;
                None
            }
        }
    }

    /// Stops all work of the open run, and returns the ledger's entries that are not recorded yet.
    pub(super) async fn into_ledger(self, now: Timestamp) -> Option<Owed> {
        let (driving, version) = match self {
            Self::Unknown | Self::Idle(_) => return None,
            // Nothing of it is known to be stored.
            Self::Starting(starting) => (starting.driving, 0),
            Self::Running(running) => (running.driving, running.version),
        };
        Some(driving.into_ledger(version, now).await)
    }

    /// Returns the session as it was when it had no open run.
    pub(super) fn idle(&self) -> Option<&SessionRow> {
        match self {
            Self::Idle(session) => Some(session),
            Self::Unknown | Self::Starting(_) | Self::Running(_) => None,
        }
    }

    /// Returns the open run, whether its start is stored or not.
    pub(super) fn driving(&self) -> Option<&Driving> {
        match self {
            Self::Starting(starting) => Some(&starting.driving),
            Self::Running(running) => Some(&running.driving),
            Self::Unknown | Self::Idle(_) => None,
        }
    }

    /// Returns the open run of a step.
    pub(super) fn open(&self) -> Result<&Driving, DriverError> {
        self.driving()
            .ok_or_else(|| DriverError::Missing("an open run".to_owned()))
    }

    /// Returns the open run, to be changed.
    pub(super) fn driving_mut(&mut self) -> Option<&mut Driving> {
        match self {
            Self::Starting(starting) => Some(&mut starting.driving),
            Self::Running(running) => Some(&mut running.driving),
            Self::Unknown | Self::Idle(_) => None,
        }
    }

    /// Returns the run whose start is not stored yet; none in any other phase.
    pub(super) fn beginning(&self) -> Option<&Starting> {
        match self {
            Self::Starting(starting) => Some(starting),
            Self::Unknown | Self::Idle(_) | Self::Running(_) => None,
        }
    }

    /// Takes the agent's row with which the run was begun, for its first step.
    pub(super) fn take_agent(&mut self) -> Option<AgentRow> {
        match self {
            Self::Starting(starting) => starting.agent.take(),
            Self::Unknown | Self::Idle(_) | Self::Running(_) => None,
        }
    }

    /// Returns the expected version of the run's stream: new for a run that is not stored yet.
    pub(super) fn expected(&self) -> Expected {
        match self {
            Self::Running(running) => Expected::Version(running.version),
            Self::Unknown | Self::Idle(_) | Self::Starting(_) => Expected::New,
        }
    }
}
