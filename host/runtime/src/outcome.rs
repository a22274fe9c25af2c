//! The outcomes of a guest's call that the broker has to tell apart, each with what the call used.

use crate::log::LogLine;
use crate::view::Hold;
use domain::bucket::WrittenEntry;
use domain::digest::Digest;
use domain::egress::Traffic;
use domain::event::BoundaryDecision;
use domain::grant::{BucketGrant, OwnedFolder};
use domain::operation::{CallUsage, Progress};
use domain::step::StepResult;
use domain::tool::ToolError;

/// The outcome of a guest's call.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<T> {
    /// It returned something acceptable.
    Returned(T),
    /// It returned something that is not acceptable: text that is not JSON, more than a limit
    /// allows. The same again would come of it.
    Refused {
        /// The field, and what is wrong with it.
        detail: String,
    },
    /// It stopped itself: a bug in the guest.
    Trapped {
        /// The message of wasmtime.
        message: String,
        /// The guest's frames, innermost first; empty when there are none.
        backtrace: String,
    },
    /// It asked for more memory than its limit, and did not cope with being refused.
    OutOfMemory,
    /// It computed longer than its limit.
    OutOfCpu,
    /// It took longer than its limit, host calls included.
    TimedOut,
    /// It did not begin: too many calls were under way or waiting.
    Busy,
    /// It did not begin: its component was called as often within this minute as it may be.
    TooOften {
        /// Milliseconds until it may be called again.
        wait_ms: u64,
    },
    /// The host could not do its part: the view could not be read, a granted folder is not there,
    /// the process is out of memory. Never the guest's doing.
    Faulted {
        /// The host's failure.
        detail: String,
        /// True if part of the call may have run; false if nothing of it reached anything outside.
        began: bool,
    },
}

impl<T> Outcome<T> {
    /// The host's fault, before anything of the call ran.
    pub(crate) fn not_begun(detail: impl Into<String>) -> Self {
        Self::Faulted {
            detail: detail.into(),
            began: false,
        }
    }

    /// Converts a returned value into another outcome. Leaves other outcomes as they are.
    pub(crate) fn and_then<U>(self, convert: impl FnOnce(T) -> Outcome<U>) -> Outcome<U> {
        match self {
            Self::Returned(value) => convert(value),
            Self::Refused { detail } => Outcome::Refused { detail },
            Self::Trapped { message, backtrace } => Outcome::Trapped { message, backtrace },
            Self::OutOfMemory => Outcome::OutOfMemory,
            Self::OutOfCpu => Outcome::OutOfCpu,
            Self::TimedOut => Outcome::TimedOut,
            Self::Busy => Outcome::Busy,
            Self::TooOften { wait_ms } => Outcome::TooOften { wait_ms },
            Self::Faulted { detail, began } => Outcome::Faulted { detail, began },
        }
    }
}

/// The reason that a call was not let in. Nothing of it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAdmitted {
    /// Too many calls were under way or waiting.
    Busy,
    /// Its component was called as often within this minute as it may be.
    TooOften {
        /// Milliseconds until it may be called again.
        wait_ms: u64,
    },
}

impl<T> From<NotAdmitted> for Outcome<T> {
    fn from(why: NotAdmitted) -> Self {
        match why {
            NotAdmitted::Busy => Self::Busy,
            NotAdmitted::TooOften { wait_ms } => Self::TooOften { wait_ms },
        }
    }
}

/// A step that was not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnedAway {
    /// The reason.
    pub why: NotAdmitted,
    /// The decisions of the boundary about it.
    pub decided: Decided,
}

/// The decisions of the boundary during a call, for the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decided {
    /// One entry for each capability, verdict and rule.
    pub decisions: Vec<BoundaryDecision>,
    /// Number of further decisions that were left out.
    pub left_out: u64,
    /// The folders of its own that the call had.
    pub folders: Vec<OwnedFolder>,
}

/// The writes of a call to buckets. They are committed with the outcome of the call, or not at all.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// The buckets, and what each key of them holds from now on.
    pub buckets: Vec<(BucketGrant, Vec<WrittenEntry>)>,
    /// Keeps others from these buckets. To be dropped once it is committed, or given up.
    pub holds: Vec<Hold>,
}

/// The result of a step.
#[derive(Debug, Clone)]
pub struct Stepped {
    /// Its outcome.
    pub outcome: Outcome<StepResult>,
    /// Its usage.
    pub usage: CallUsage,
    /// A running hash over every question that the guest asked of its view and every answer that it
    /// got.
    pub answers: Digest,
    /// Its log, stdout and stderr included.
    pub logs: Vec<LogLine>,
    /// The decisions of the boundary meanwhile.
    pub decided: Decided,
}

/// The result of a tool call, beside what is in its call audit.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Its outcome. An error of the tool's own is `Returned(Err(_))`.
    pub outcome: Outcome<Result<Progress, ToolError>>,
    /// Its usage.
    pub usage: CallUsage,
    /// Its log, stdout and stderr included.
    pub logs: Vec<LogLine>,
    /// Its writes to buckets; nothing unless it returned, and no error.
    pub written: Written,
}

/// The result of a tool call that was made at once with its call audit.
#[derive(Debug, Clone)]
pub struct Called {
    /// Its outcome. An error of the tool's own is `Returned(Err(_))`.
    pub outcome: Outcome<Result<Progress, ToolError>>,
    /// Its usage.
    pub usage: CallUsage,
    /// Its log, stdout and stderr included.
    pub logs: Vec<LogLine>,
    /// The decisions of the boundary meanwhile.
    pub decided: Decided,
    /// Its HTTP traffic, attempts included.
    pub egress: Traffic,
    /// Its writes to buckets; nothing unless it returned, and no error.
    pub written: Written,
}
