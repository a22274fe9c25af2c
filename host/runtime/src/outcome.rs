//! How a call of a guest ended: the outcomes that the broker has to tell apart, each with what the call used.

use crate::log::LogLine;
use crate::view::Hold;
use domain::bucket::WrittenEntry;
use domain::digest::Digest;
use domain::egress::Traffic;
use domain::event::Decision;
use domain::grant::BucketGrant;
use domain::operation::CallUsage;
use domain::step::StepResult;
use domain::tool::{Progress, ToolError};

/// How a call of a guest ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<T> {
    /// It returned something acceptable.
    Returned(T),
    /// It returned something that is not acceptable: text that is not JSON, more than a limit allows. The same again would come of it.
    Refused {
        /// Which field, and what is wrong with it.
        detail: String,
    },
    /// It stopped itself: a bug in the guest.
    Trapped {
        /// What wasmtime says of it.
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
    /// Nothing of it ran: too many calls were under way or waiting.
    Busy,
    /// Nothing of it ran: its component was called as often within this minute as it may be.
    TooOften {
        /// Milliseconds until it may be called again.
        wait_ms: u64,
    },
    /// The host could not do its part: the view could not be read, a granted folder is not there, the process is out of memory.
    /// Never the guest's doing. Part of the call may have run.
    Faulted {
        /// What the host could not do.
        detail: String,
    },
}

impl<T> Outcome<T> {
    /// The same outcome with what was returned turned into something else, or refused.
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
            Self::Faulted { detail } => Outcome::Faulted { detail },
        }
    }
}

/// What the boundary decided during a call, for the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decided {
    /// One entry for each capability, verdict and rule.
    pub decisions: Vec<Decision>,
    /// How many more there were.
    pub left_out: u64,
}

/// What a call has written to buckets: to be committed with what came of the call, or not at all.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// The buckets, and what each key of them holds from now on.
    pub buckets: Vec<(BucketGrant, Vec<WrittenEntry>)>,
    /// Keeps others from these buckets. To be dropped once it is committed, or given up.
    pub holds: Vec<Hold>,
}

/// What came of a step.
#[derive(Debug, Clone)]
pub struct Stepped {
    /// How it ended.
    pub outcome: Outcome<StepResult>,
    /// What it used.
    pub usage: CallUsage,
    /// A running hash over every question that the guest asked of its view and every answer that it got.
    pub answers: Digest,
    /// What it logged, stdout and stderr included.
    pub logs: Vec<LogLine>,
    /// What the boundary decided meanwhile.
    pub decided: Decided,
}

/// What came of a tool call, beside what is in its dossier.
#[derive(Debug, Clone)]
pub struct Ran {
    /// How it ended. An error of the tool's own is `Returned(Err(_))`.
    pub outcome: Outcome<Result<Progress, ToolError>>,
    /// What it used.
    pub usage: CallUsage,
    /// What it logged, stdout and stderr included.
    pub logs: Vec<LogLine>,
    /// What it has written to buckets; nothing unless it returned, and no error.
    pub written: Written,
}

/// What came of a tool call that was made at once with its dossier.
#[derive(Debug, Clone)]
pub struct Called {
    /// How it ended. An error of the tool's own is `Returned(Err(_))`.
    pub outcome: Outcome<Result<Progress, ToolError>>,
    /// What it used.
    pub usage: CallUsage,
    /// What it logged, stdout and stderr included.
    pub logs: Vec<LogLine>,
    /// What the boundary decided meanwhile.
    pub decided: Decided,
    /// What it sent out over HTTP, and what it tried to.
    pub egress: Traffic,
    /// What it has written to buckets; nothing unless it returned, and no error.
    pub written: Written,
}
