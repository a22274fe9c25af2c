//! Requests to read the configuration again. The host's own loop carries them out, one at a time.

use crate::problem::Problem;
use domain::difference::Difference;
use domain::digest::Digest;
use domain::error_code::ErrorCode;
use domain::user::UserId;
use serde_json::Value;
use std::sync::{Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Number of requests that wait for those before them. Further ones are refused.
const RELOADS_WAITING_MAX: usize = 16;

/// A request to read the configuration again.
#[derive(Debug)]
pub enum ReloadRequest {
    /// It is to be put in force.
    Apply {
        /// The user who asks.
        user: UserId,
        /// The place for the answer.
        reply: oneshot::Sender<Result<ReloadReport, ReloadRefused>>,
    },
    /// It is to be compared with the one in force, which stays.
    Compare {
        /// The place for the answer.
        reply: oneshot::Sender<PendingConfig>,
    },
}

/// The content of the configuration file now, beside what is in force.
#[derive(Debug, Default)]
pub struct PendingConfig {
    /// The file.
    pub file: String,
    /// True if a changed file is put in force by itself.
    pub is_taken_up: bool,
    /// The reason why the file would be refused as a whole, without secrets.
    pub refused: Option<String>,
    /// The findings of a check in the environment of the host.
    pub findings: Vec<PendingFinding>,
    /// Findings on what it would leave behind or open to others.
    pub left_behind: Vec<PendingFinding>,
    /// The keys at which it differs from what is in force, with their values.
    pub changes: Vec<PendingChange>,
    /// The keys among them that are read at a start only.
    pub needs_restart: Vec<String>,
    /// Granted folders in whose places others are now.
    pub moved_folders: Vec<String>,
    /// The configuration in force, in which agents and personas have their names for keys.
    pub in_force: Value,
}

/// A finding of a check.
#[derive(Debug, PartialEq, Eq)]
pub struct PendingFinding {
    /// True if no host starts with it.
    pub is_error: bool,
    /// The key.
    pub key: String,
    /// The fault and its fix.
    pub message: String,
}

/// A key with another value.
#[derive(Debug)]
pub struct PendingChange {
    /// The key.
    pub key: String,
    /// The value in force, as JSON; none for one that is new.
    pub before: Option<String>,
    /// The value in the file, as JSON; none for one that is gone.
    pub after: Option<String>,
    /// The agents that get it, for a tool that is new.
    pub agents: Vec<String>,
    /// True if only a restart brings it.
    pub needs_restart: bool,
}

/// The result of reading the configuration again.
#[derive(Debug)]
pub struct ReloadReport {
    /// The configuration that is in force, as events name it.
    pub configuration: Digest,
    /// The one before; the same if nothing has changed.
    pub replaces: Digest,
    /// The keys at which they differ.
    pub differences: Vec<Difference>,
    /// The keys that were changed since the start and are read at a start only.
    pub needs_restart: Vec<String>,
    /// Granted folders that were opened anew, because others are in their places.
    pub folders_opened: Vec<String>,
    /// Content that no grant leads to any more, in sentences.
    pub left_behind: Vec<String>,
    /// Number of users' definitions that fit no template any more.
    pub definitions_left_out: usize,
}

/// A refusal of a configuration as a whole: what was in force is in force.
#[derive(Debug)]
pub enum ReloadRefused {
    /// Something in it is wrong.
    Configuration {
        /// The reason, without secrets.
        reason: String,
    },
    /// Nothing in it is wrong: the broker did not take it, such as for want of room on the disk.
    Unrecorded(broker::Error),
}

impl From<ReloadRefused> for Problem {
    fn from(refused: ReloadRefused) -> Self {
        match refused {
            ReloadRefused::Configuration { reason } => Self::new(ErrorCode::ConfigRefused, reason),
            ReloadRefused::Unrecorded(error) => error.into(),
        }
    }
}

/// The way to whoever reads the configuration again; none until somebody does.
#[derive(Debug, Default)]
pub(crate) struct Reloads(Mutex<Option<mpsc::Sender<ReloadRequest>>>);

impl Reloads {
    /// Begins to take requests, which come out of what is returned.
    pub(crate) fn begin(&self) -> mpsc::Receiver<ReloadRequest> {
        let (sender, receiver) = mpsc::channel(RELOADS_WAITING_MAX);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    /// Passes a request on.
    ///
    /// # Errors
    /// 429: too many wait. 503: nobody takes them yet, or any more.
    pub(crate) fn ask(&self, request: ReloadRequest) -> Result<(), Problem> {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = sender.as_ref() else {
            return Err(Problem::starting());
        };
        sender.try_send(request).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => {
                let detail = "too many requests to read the configuration again are waiting; try \
                              again in a moment";
                Problem::new(ErrorCode::Busy, detail)
            }
            mpsc::error::TrySendError::Closed(_) => Problem::shutting_down(),
        })
    }
}
