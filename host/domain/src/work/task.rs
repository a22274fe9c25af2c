//! Tasks: pieces of work that one agent handed to another, as people look at them.
//!
//! A task is the operation that hands the work over, together with the input that carries it and
//! the turn that takes that up. Nothing is stored for it but what these have; this says what state
//! follows from them, what of a task is shown, and how many tasks are summed up.

use crate::thread::turn::TurnEnd;
use crate::values::text::words;
use crate::work::delegate::{self, Priority, TaskState};
use crate::work::operation::{Operation, Performer};
use serde_json::Value;
use std::collections::BTreeMap;

/// Bytes of a task's parameters that are kept to be shown, at most.
pub const PARAMETERS_BYTES_MAX: usize = 1_024;

/// The state of a task. `PENDING`, `QUEUED`, `RUNNING` and `PAUSED` go on, the others are ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskStatus {
    /// It was handed over, and its turn is about to begin.
    Pending,
    /// It waits for others of its turn or tree to end: there are as many as the limits allow.
    Queued,
    /// Its turn is under way.
    Running,
    /// Its turn waits for a person's answer or approval.
    Paused,
    /// It has a result.
    Completed,
    /// It has an error.
    Failed,
    /// It was stopped, or nobody waits for it any more.
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
    /// A turn that goes on has it.
    Claimed,
    /// The turn that had it has ended.
    Consumed,
    /// It is a dead letter.
    Dead,
    /// It was taken back, or purged.
    Gone,
}

/// The facts from which a task's state follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskFacts {
    /// The end of the operation; none while it is open, and of work that nobody waits for.
    pub settled: Option<TaskState>,
    /// The input with its work.
    pub carrier: Carrier,
    /// The end of the turn that took it up.
    pub end: Option<TurnEnd>,
    /// True if that turn waits for a person.
    pub asks: bool,
}

impl TaskFacts {
    /// Returns the state of the task. What its caller was told counts before what became of its
    /// turn.
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

/// The way in which a task was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// By a call of `delegate`.
    Delegate,
    /// By a message to another agent.
    Message,
    /// By an operation of the agent's own, or a call of `dispatch_to_agent`.
    Dispatch,
}

words!(TaskKind { Delegate = "delegate", Message = "message", Dispatch = "dispatch" });

/// The content of a task, as far as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskContent {
    /// The way in which it was handed over.
    pub kind: TaskKind,
    /// The target of a delegation.
    pub target: Option<String>,
    /// The operation of a delegation.
    pub operation: Option<String>,
    /// The parameters of a delegation as JSON text, cut off after [`PARAMETERS_BYTES_MAX`] bytes.
    pub parameters: Option<String>,
    /// True if it waits until the limits leave room for it.
    pub queued: bool,
    /// True if nobody waits for its result.
    pub detached: bool,
}

/// Returns the content of the task that an operation is; none of any other operation.
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
        Performer::Model { .. }
        | Performer::Tool { .. }
        | Performer::Client { .. }
        | Performer::External { .. }
        | Performer::Recall { .. }
        | Performer::Memory { .. }
        | Performer::Timer { .. }
        | Performer::Refused { .. }
        | Performer::Reply { .. } => None,
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
    /// Milliseconds from when it was handed over to its end; none while it goes on.
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
    /// The operation; none of work that names none.
    pub operation: Option<String>,
    /// Number of tasks by their state.
    pub states: BTreeMap<TaskStatus, u64>,
    /// The median duration of those that have ended, in milliseconds.
    pub p50_ms: Option<u64>,
    /// The duration that 95 of 100 of those that have ended did not exceed, in milliseconds.
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

/// Sums tasks up by target and operation, in the order of these.
#[must_use]
pub fn sum_up(samples: impl IntoIterator<Item = TaskSample>) -> Vec<TaskSum> {
    let mut groups: BTreeMap<(String, Option<String>), (TaskSum, Vec<u64>)> = BTreeMap::new();
    for sample in samples {
        let key = (sample.target.clone(), sample.operation.clone());
        let (sum, durations) = groups.entry(key).or_insert_with(|| {
            let sum = TaskSum {
                target: sample.target,
                operation: sample.operation,
                states: BTreeMap::new(),
                p50_ms: None,
                p95_ms: None,
                tokens: 0,
                cost_micros: 0,
            };
            (sum, Vec::new())
        });
        *sum.states.entry(sample.status).or_default() += 1;
        sum.tokens = sum.tokens.saturating_add(sample.tokens);
        sum.cost_micros = sum.cost_micros.saturating_add(sample.cost_micros);
        durations.extend(sample.duration_ms);
    }
    groups
        .into_values()
        .map(|(sum, mut durations)| {
            durations.sort_unstable();
            TaskSum {
                p50_ms: percentile(&durations, 50),
                p95_ms: percentile(&durations, 95),
                ..sum
            }
        })
        .collect()
}

/// Returns the smallest of some ordered numbers that so many of a hundred do not exceed.
fn percentile(ordered: &[u64], of_hundred: usize) -> Option<u64> {
    let place = (ordered.len() * of_hundred).div_ceil(100);
    ordered.get(place.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests;
