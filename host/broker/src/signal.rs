//! The signals to a session's driver.

use crate::come_back::{ComeBack, Returned};
use crate::performance::attempts::{Afforded, Short, Wanted};
use crate::performance::result::Performed;
use crate::shared::DriverError;
use crate::shared::Request;
use domain::id::{OperationId, RunId};
use domain::key::KeyId;
use domain::prompt_cut::PromptCut;
use domain::user::UserId;
use domain::widget::upload::Brought;
use serde_json::Value;
use store::Commit;
use tokio::sync::oneshot;

/// A message to a driver. All other work is indicated by its wake.
pub(crate) enum Signal {
    /// The result of a segment of an operation.
    Performed {
        operation: OperationId,
        segment: u32,
        performed: Box<Performed>,
    },
    /// A question: does the budget allow another attempt at a model's call? It is repeated if no
    /// answer arrives.
    Afford {
        operation: OperationId,
        wanted: Wanted,
        done: oneshot::Sender<Result<Afforded, Short>>,
    },
    /// The cut of a call's prompt, to be recorded before it is sent. It is repeated if no answer
    /// arrives.
    Cut {
        operation: OperationId,
        cut: Box<PromptCut>,
        done: oneshot::Sender<()>,
    },
    /// The answer of a client, already checked against its schema.
    Answer {
        answer: ClientAnswer,
        request: Option<Request>,
        done: oneshot::Sender<Result<u64, DriverError>>,
    },
    /// The answer of an external agent, already known to be its own.
    External(Box<ExternalSignal>),
    /// The request to compact the thread, if no run is open.
    Compact {
        by: UserId,
        /// The API key of the request.
        with_key: Option<KeyId>,
        request: Option<Request>,
        done: oneshot::Sender<Result<RunId, DriverError>>,
    },
    /// The request to summarise a user's conversation with another agent, if no run is open.
    BringBack {
        back: Box<ComeBack>,
        /// The API key of the request.
        with_key: Option<KeyId>,
        request: Option<Request>,
        done: oneshot::Sender<Result<Returned, DriverError>>,
    },
    /// The request to end the open run, in one commit with the command's own events.
    Abort {
        reason: String,
        with: Box<Commit>,
        /// The API key of the request.
        with_key: Option<KeyId>,
        done: oneshot::Sender<Result<Aborted, DriverError>>,
    },
}

/// The result of a request to end the open run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aborted {
    /// The run has ended, and the command's events are recorded with its end.
    Ended,
    /// No run was open. Nothing is recorded.
    NoneOpen,
    /// A guard of the command did not hold: the command has to check again. Nothing is recorded.
    Outdated,
}

/// The answer of a client to a question.
#[derive(Clone)]
pub(crate) struct ClientAnswer {
    pub(crate) call: OperationId,
    pub(crate) by: UserId,
    /// The API key under which it was sent.
    pub(crate) with_key: Option<KeyId>,
    pub(crate) value: Value,
    /// The files that it brings along.
    pub(crate) files: Vec<Brought>,
}

/// The answer of an external agent to a message that was sent to it.
#[derive(Debug, Clone)]
pub(crate) struct ExternalAnswer {
    /// The outbound message that it answers; none for the longest waiting one.
    pub(crate) message: Option<OperationId>,
    pub(crate) text: String,
}

/// An answer of an external agent, with the channel for its outcome.
pub(crate) struct ExternalSignal {
    pub(crate) answer: ExternalAnswer,
    pub(crate) request: Request,
    pub(crate) done: oneshot::Sender<Result<u64, DriverError>>,
}
