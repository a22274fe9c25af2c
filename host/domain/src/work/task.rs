//! Tasks: pieces of work that one agent handed to another, as people see them.
//!
//! A task is the operation that hands the work over, together with the input that carries it and
//! the turn that claims the input. A task has no stored data of its own. This module derives its
//! state, its public fields, and the counts of tasks.

use crate::thread::turn::TurnEnd;
use crate::values::text::words;
use crate::work::delegate::{self, Priority, TaskState};
use crate::work::operation::{Operation, Performer};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The most bytes of a task's parameters that are stored to be shown.
pub const PARAMETERS_BYTES_MAX: usize = 1_024;

/// The most targets and operations in a summary.
pub const SUMS_MAX: usize = 1_000;
/// Leading bits of a duration that are kept: it is rounded up by 0.2 % at most.
const DURATION_BITS: u32 = 10;

/// The state of a task. `PENDING`, `QUEUED`, `RUNNING` and `PAUSED` are open states, the others are
/// final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(as = TaskState)]
pub enum TaskStatus {
    /// It was handed over, and its turn begins soon.
    Pending,
    /// It waits for other work of its turn or tree to end, because the limits are reached.
    Queued,
    /// Its turn is in progress.
    Running,
    /// Its turn waits for a person's answer or approval.
    Paused,
    /// It has a result.
    Completed,
    /// It has an error.
    Failed,
    /// It was stopped, or its caller no longer waits.
    Cancelled,
    /// Its deadline passed and it was stopped.
    Timeout,
}

words!(TaskStatus {
    Pending = "PENDING",
    Queued = "QUEUED",
    Running = "RUNNING",
    Paused = "PAUSED",
    Completed = "COMPLETED",
    Failed = "FAILED",
    Cancelled = "CANCELLED",
    Timeout = "TIMEOUT",
});

impl TaskStatus {
    /// Returns whether it is an end.
    #[must_use]
    pub fn is_end(self) -> bool {
        match self {
            Self::Pending | Self::Queued | Self::Running | Self::Paused => false,
            Self::Completed | Self::Failed | Self::Cancelled | Self::Timeout => true,
        }
    }
}

impl From<TaskState> for TaskStatus {
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::Completed => Self::Completed,
            TaskState::Failed => Self::Failed,
            TaskState::Cancelled => Self::Cancelled,
            TaskState::Timeout => Self::Timeout,
        }
    }
}

/// The state of the input that carries a task's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// It waits for its turn; `queued` while limits hold it back.
    Waiting {
        /// True while limits hold it back.
        queued: bool,
    },
    /// An open turn has claimed it.
    Claimed,
    /// The turn that claimed it has ended.
    Consumed,
    /// It is a dead letter.
    Dead,
    /// It was withdrawn, or purged.
    Gone,
}

/// The facts from which a task's state follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskFacts {
    /// The end of the operation; none while it is open, and none if no caller waits for the work.
    pub settled: Option<TaskState>,
    /// The input with its work.
    pub carrier: Carrier,
    /// The end of the turn that claimed it.
    pub end: Option<TurnEnd>,
    /// True if that turn waits for a person.
    pub asks: bool,
}

impl TaskFacts {
    /// Returns the state of the task. The report to its caller takes precedence over the fate of
    /// its turn.
    #[must_use]
    pub fn status(self) -> TaskStatus {
        if let Some(settled) = self.settled {
            return settled.into();
        }
        match (self.carrier, self.end) {
            (_, Some(TurnEnd::Replied | TurnEnd::Completed)) => TaskStatus::Completed,
            (_, Some(TurnEnd::Failed)) | (Carrier::Dead, None) => TaskStatus::Failed,
            (_, Some(TurnEnd::Aborted)) | (Carrier::Gone, None) => TaskStatus::Cancelled,
            (Carrier::Waiting { queued: true }, None) => TaskStatus::Queued,
            (Carrier::Waiting { queued: false }, None) => TaskStatus::Pending,
            (Carrier::Claimed, None) if self.asks => TaskStatus::Paused,
            (Carrier::Claimed | Carrier::Consumed, None) => TaskStatus::Running,
        }
    }
}

/// The kind of hand-over of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// By a call of `delegate`.
    Delegate,
    /// By a message to another agent.
    Message,
    /// By an operation of the agent's own, or a call of `dispatch_to_agent`.
    Dispatch,
}

words!(TaskKind { Delegate = "delegate", Message = "message", Dispatch = "dispatch" });

/// The visible content of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskContent {
    /// The kind of its hand-over.
    pub kind: TaskKind,
    /// The target of a delegation.
    pub target: Option<String>,
    /// The operation of a delegation.
    pub operation: Option<String>,
    /// The parameters of a delegation as JSON text, cut off after [`PARAMETERS_BYTES_MAX`] bytes.
    pub parameters: Option<String>,
    /// True if it waits until the limits leave room for it.
    pub queued: bool,
    /// True if no caller waits for its result.
    pub detached: bool,
}

/// Returns the content of an operation's task; none for an operation that is no task.
#[must_use]
pub fn content(operation: &Operation) -> Option<TaskContent> {
    let bare = |kind, detached| TaskContent {
        kind,
        target: None,
        operation: None,
        parameters: None,
        queued: false,
        detached,
    };
    match &operation.performer {
        Performer::Agent {
            delegation: Some(arguments),
            queued,
            ..
        } => {
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            let text = |name: &str| Some(arguments.get(name)?.as_str()?.to_owned());
            Some(TaskContent {
                target: text("target"),
                operation: text("operation"),
                parameters: arguments
                    .get("parameters")
                    .map(|parameters| shortened(parameters.to_string())),
                queued: *queued,
                ..bare(TaskKind::Delegate, false)
            })
        }
        Performer::Agent {
            message: Some(_), ..
        } => Some(bare(TaskKind::Message, false)),
        Performer::Agent { .. } => Some(bare(TaskKind::Dispatch, false)),
        Performer::Detached { .. } => Some(bare(TaskKind::Dispatch, true)),
        _ => None,
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > PARAMETERS_BYTES_MAX {
        let end = (0..=PARAMETERS_BYTES_MAX)
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Returns the priority of a delegation, by its arguments.
#[must_use]
pub fn priority(arguments: &str) -> Priority {
    delegate::parse(arguments, &delegate::Target::ALL)
        .map(|delegation| delegation.priority)
        .unwrap_or_default()
}

/// A task as statistics have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSample {
    /// The target: that of a delegation, or the definition of the agent that did it.
    pub target: String,
    /// The operation of a delegation.
    pub operation: Option<String>,
    /// Its state.
    pub status: TaskStatus,
    /// Milliseconds from its start to its end; none while it is open.
    pub duration_ms: Option<u64>,
    /// Tokens that it used.
    pub tokens: u64,
    /// Cost in millionths.
    pub cost_micros: u64,
}

/// Sums over the tasks of one target and operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSum {
    /// The target.
    pub target: String,
    /// The operation, if the work names one.
    pub operation: Option<String>,
    /// Number of tasks by their state.
    pub states: BTreeMap<TaskStatus, u64>,
    /// The median duration of the ended ones, in milliseconds, to within 0.2 %.
    pub p50_ms: Option<u64>,
    /// The 95th percentile (95 of 100) of the durations of the ended ones, in milliseconds, to
    /// within 0.2 %.
    pub p95_ms: Option<u64>,
    /// Tokens of all.
    pub tokens: u64,
    /// Cost of all in millionths.
    pub cost_micros: u64,
}

impl TaskSum {
    /// Returns the number of tasks.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.states.values().sum()
    }

    /// Returns the number of tasks that ended without a result.
    #[must_use]
    pub fn failures(&self) -> u64 {
        let count = |status| self.states.get(&status).copied().unwrap_or_default();
        count(TaskStatus::Failed) + count(TaskStatus::Timeout)
    }
}

/// Sums of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskStats {
    /// The sums, ordered by target and operation.
    pub sums: Vec<TaskSum>,
    /// True if there are more than [`SUMS_MAX`] and some are left out.
    pub is_cut_off: bool,
}

/// A running count of tasks. Its size grows with their differences and not with their number.
#[derive(Debug, Default)]
pub struct TaskTally {
    sums: BTreeMap<(String, Option<String>), (TaskSum, Durations)>,
    is_cut_off: bool,
}

impl TaskTally {
    /// Counts a task.
    pub fn add(&mut self, sample: TaskSample) {
        let has_room = self.sums.len() < SUMS_MAX;
        let key = (sample.target, sample.operation);
        if !has_room && !self.sums.contains_key(&key) {
            self.is_cut_off = true;
            return;
        }
        let (target, operation) = key.clone();
        let (sum, durations) = self.sums.entry(key).or_insert_with(|| {
            let sum = TaskSum {
                target,
                operation,
                states: BTreeMap::new(),
                p50_ms: None,
                p95_ms: None,
                tokens: 0,
                cost_micros: 0,
            };
            (sum, Durations::default())
        });
        *sum.states.entry(sample.status).or_default() += 1;
        sum.tokens = sum.tokens.saturating_add(sample.tokens);
        sum.cost_micros = sum.cost_micros.saturating_add(sample.cost_micros);
        if let Some(ms) = sample.duration_ms {
            durations.add(ms);
        }
    }

    /// Returns the sums, ordered by target and operation.
    #[must_use]
    pub fn stats(self) -> TaskStats {
        let sums = self.sums.into_values().map(|(sum, durations)| TaskSum {
            p50_ms: durations.percentile(50),
            p95_ms: durations.percentile(95),
            ..sum
        });
        TaskStats {
            sums: sums.collect(),
            is_cut_off: self.is_cut_off,
        }
    }
}

/// Numbers of tasks by their durations in milliseconds. Only the leading bits of a duration are
/// kept.
#[derive(Debug, Default)]
struct Durations {
    counts: BTreeMap<u64, u64>,
}

impl Durations {
    fn add(&mut self, ms: u64) {
        let bits = u64::BITS - ms.leading_zeros();
        let step = 1_u64 << bits.saturating_sub(DURATION_BITS);
        let kept = ms.checked_next_multiple_of(step).unwrap_or(ms);
        *self.counts.entry(kept).or_default() += 1;
    }

    /// Returns the smallest duration that this many of a hundred do not exceed.
    fn percentile(&self, of_hundred: u64) -> Option<u64> {
        let all: u64 = self.counts.values().sum();
        let place = all.saturating_mul(of_hundred).div_ceil(100);
        let mut passed = 0;
        self.counts.iter().find_map(|(ms, count)| {
            passed += count;
            (passed >= place).then_some(*ms)
        })
    }
}

#[cfg(test)]
mod tests;
