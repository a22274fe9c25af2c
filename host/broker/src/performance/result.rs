//! The result of a piece of work, and the resulting state of its operation.

use domain::event::Event;
use domain::id::OperationId;
use domain::limits::{SEGMENTS_BYTES_MAX, SEGMENTS_MAX};
use domain::message::{Message, MessageId};
use domain::operation::{Attempt, CallUsage, Continuation, Pause, Settlement};
use domain::run::Open;
use domain::run::recover::lost;
use domain::run::settle::{Ended, settlement};
use domain::step::Failure;
use domain::time::Timestamp;
use domain::tool::ClientAction;
use runtime::Hold;

/// The outcome of an operation whose work panicked, for people.
const HOST_FAILED: &str = "the host failed while it worked on this, and has no result; whoever runs \
                           it finds the reason in its log";

/// Messages of a thread before a run, from one on.
pub(crate) struct Thread {
    pub(crate) first: MessageId,
    pub(crate) messages: Vec<Message>,
}

/// The companions of an outcome in its commit.
#[derive(Clone, Default)]
pub(crate) struct CommitExtras {
    /// Blobs that it mentions.
    pub(crate) blobs: Vec<Vec<u8>>,
    /// Further events of the run's stream, which its fold passes over: decisions of the boundary,
    /// and writes to buckets.
    pub(crate) events: Vec<Event>,
    /// The buckets that were written. They are released when the last clone of this is dropped:
    /// after the commit, or when it is given up.
    pub(crate) holds: Vec<Hold>,
}

impl CommitExtras {
    /// Removes the writes to buckets, for work that failed after all.
    pub(crate) fn unwritten(mut self) -> Self {
        self.events
            .retain(|event| !matches!(event, Event::KeyValueWritten(_)));
        self.holds.clear();
        self
    }
}

/// The result of a piece of work.
pub(crate) struct Performed {
    pub(crate) work_outcome: WorkOutcome,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) usage: Option<CallUsage>,
    pub(crate) extras: CommitExtras,
}

impl Performed {
    pub(crate) fn ended(ended: Ended) -> Self {
        Self::finished(WorkOutcome::End(ended))
    }

    pub(crate) fn finished(work_outcome: WorkOutcome) -> Self {
        Self {
            work_outcome,
            attempts: Vec::new(),
            usage: None,
            extras: CommitExtras::default(),
        }
    }
}

/// The way in which work ended: an end, a loss by panic, or another segment to follow.
pub(crate) enum WorkOutcome {
    End(Ended),
    Lost,
    Later {
        after_ms: u64,
        state: Vec<u8>,
    },
    Ask {
        action: ClientAction,
        state: Vec<u8>,
    },
    /// A command line needs the result of a call.
    Call(shell::Wanted),
}

/// The state in which a segment leaves its operation, with the other parts of its commit.
pub(crate) enum SegmentOutcome {
    /// The operation has its outcome.
    Settled(Box<Settlement>, CommitExtras),
    /// Another segment follows.
    Continues(Box<Continuation>, CommitExtras),
    /// Another segment follows after a call, which has to be resolved first.
    Calls(WantedCall, CommitExtras),
}

/// A call that a command line needs.
#[derive(Clone)]
pub(crate) struct WantedCall {
    pub(crate) line: OperationId,
    /// The segment of the line that follows the call.
    pub(crate) segment: u32,
    pub(crate) wanted: shell::Wanted,
}

impl Performed {
    /// Applies the result to the operation that was worked on. The calls of its run have left so
    /// many bytes between their segments. A question that it asks waits until `asking_until`, if
    /// there is such a time.
    pub(crate) fn arrive(
        self,
        open: &Open,
        left_bytes: u64,
        now: Timestamp,
        asking_until: impl FnOnce() -> Option<Timestamp>,
    ) -> SegmentOutcome {
        let segment = open.segment + 1;
        let (pause, state) = match self.work_outcome {
            WorkOutcome::End(ended) => {
                let mut settlement = settlement(&open.operation, ended, now)
                    .costing(open.attempts_with(self.attempts));
                settlement.usage = self.usage;
                return SegmentOutcome::Settled(Box::new(settlement), self.extras);
            }
            WorkOutcome::Lost => {
                let failure = Failure::lasting("host-failed", HOST_FAILED);
                return SegmentOutcome::Settled(Box::new(lost(open, failure, now)), self.extras);
            }
            WorkOutcome::Later { .. } | WorkOutcome::Ask { .. } if segment >= SEGMENTS_MAX => {
                let why = format!("the call was continued {SEGMENTS_MAX} times");
                return exceeded(why, open, now, self.extras);
            }
            WorkOutcome::Later { after_ms, state } => {
                let due = now.plus_ms(after_ms);
                (Pause::Until { due }, state)
            }
            WorkOutcome::Call(wanted) => {
                let call = WantedCall {
                    line: open.operation.id,
                    segment,
                    wanted,
                };
                return SegmentOutcome::Calls(call, self.extras);
            }
            WorkOutcome::Ask { action, state } => {
                let until = asking_until();
                let since = now;
                (
                    Pause::Asking {
                        tool: open.operation.asker().to_owned(),
                        action: Box::new(action),
                        until,
                        since,
                    },
                    state,
                )
            }
        };
        let continuation = Continuation {
            operation: open.operation.id,
            segment,
            state,
            pause,
            active_ms: 0,
            call: None,
        };
        if left_bytes + continuation.left_bytes() > SEGMENTS_BYTES_MAX {
            let why = format!(
                "the calls of this turn left more than {SEGMENTS_BYTES_MAX} bytes between their \
                 segments"
            );
            return exceeded(why, open, now, self.extras);
        }
        SegmentOutcome::Continues(Box::new(continuation), self.extras)
    }
}

/// Returns the end of a call that reached the limit of its segments. The writes of the last one are
/// dropped.
fn exceeded(why: String, open: &Open, now: Timestamp, extras: CommitExtras) -> SegmentOutcome {
    let failure = Failure::lasting("limit-reached", why);
    let settlement = settlement(&open.operation, Ended::Failed(failure), now);
    SegmentOutcome::Settled(Box::new(settlement), extras.unwritten())
}
