//! Requests to read the configuration again. The host's own loop carries them out, one at a time.

use crate::problem::Problem;
use domain::difference::Difference;
use domain::digest::Digest;
use domain::user::UserId;
use http::StatusCode;
use std::sync::{Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Number of requests that wait for those before them. Further ones are refused.
const RELOADS_WAITING_MAX: usize = 16;
/// Seconds after which a refused request may find room.
const RETRY_AFTER_S: u64 = 1;

/// A request to read the configuration again.
#[derive(Debug)]
pub struct ReloadRequest {
    /// The user who asks.
    pub user: UserId,
    /// The place for the answer.
    pub reply: oneshot::Sender<Result<ReloadReport, ReloadRefused>>,
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
            ReloadRefused::Configuration { reason } => {
                let status = StatusCode::UNPROCESSABLE_ENTITY;
                Self::new(status, "CONFIG_REFUSED", reason)
            }
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
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "BUSY", detail)
                    .retry_after(RETRY_AFTER_S)
            }
            mpsc::error::TrySendError::Closed(_) => Problem::shutting_down(),
        })
    }
}
