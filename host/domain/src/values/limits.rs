//! The named limits of a turn and of a guest's step, with their units.

pub use shapes::limits::step::{
    EFFECTS_MAX, KEY_BYTES_MAX, MEMO_BYTES_MAX, SESSION_STATE_BYTES_MAX,
};

use serde::{Deserialize, Serialize};

/// Limits on the use of resources in one turn. The host enforces them; a guest cannot exceed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TurnLimits {
    /// Steps of the agent.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub steps_max: u32,
    /// Tool calls by the model and by the agent.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub tool_calls_max: u32,
    /// Tokens of prompts and replies together.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub tokens_max: u64,
    /// Milliseconds during which a model or a tool works. Waiting for the user, a timer or another
    /// agent does not count.
    #[schemars(range(min = 1, max = 604_800_000))]
    pub active_ms_max: u64,
    /// The most open operations.
    #[schemars(range(min = 1, max = 10_000))]
    pub open_operations_max: u32,
    /// Highest cost of its model calls, in millionths of the currency of the models' prices. The
    /// calls of agents to which it hands work count too. Without it there is no limit; with it,
    /// only models with a price can be called.
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros_max: Option<u64>,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            steps_max: 50,
            tool_calls_max: 100,
            tokens_max: 1_000_000,
            active_ms_max: 600_000,
            open_operations_max: shapes::limits::step::OPEN_OPERATIONS,
            cost_micros_max: None,
        }
    }
}

/// Unexpected ends of the host during a session's work, after which the session is under suspicion.
/// Progress in between resets the count.
pub const SUSPECTED_ENDS_MIN: u32 = 2;
/// Unexpected ends of the host with a session as the only suspect at work. At the last one its run
/// is given up.
pub const ALONE_ENDS_MAX: u32 = 3;
/// Attempts at a trapping step, before its run fails.
pub const STEP_ATTEMPTS_MAX: u32 = 3;
/// Tool calls of one run that run in parallel.
pub const PARALLEL_CALLS_MAX: usize = 8;
/// Bytes of all that one step says, starts and stores.
pub const STEP_BYTES_MAX: usize = 4 << 20;
/// Bytes of text beyond which a tool's output, a client's answer or another agent's reply is stored
/// as a blob.
pub const INLINE_TEXT_BYTES_MAX: usize = 32 << 10;
/// Bytes of head, and of tail, that are kept of text moved to a blob.
pub const SPILL_EDGE_BYTES: usize = 4 << 10;
/// Bytes of one input.
pub const INPUT_BYTES_MAX: usize = 1 << 20;
/// The most waiting inputs of one session; further ones are refused as busy.
pub const WAITING_INPUTS_MAX: usize = 1_000;
/// The most waiting inputs of one session when a late reply arrives. At this number the reply
/// becomes a dead letter, so that answering agents leave room for the users' messages.
pub const LATE_REPLIES_WAITING_MAX: u64 = 500;
/// Segments of one tool call (`later`, `ask`).
pub const SEGMENTS_MAX: u32 = 1_000;
/// Bytes of the tools' states and questions between the segments of one run's calls. Those of each
/// segment are stored with the run's events.
pub const SEGMENTS_BYTES_MAX: u64 = 8 << 20;
/// Longest timer: one year, in milliseconds.
pub const TIMER_MS_MAX: u64 = 366 * 24 * 3_600_000;
/// Hits of one recall.
pub const RECALL_HITS_MAX: u32 = 50;
/// Bytes of a model's reply as it is stored.
pub const REPLY_BYTES_MAX: usize = 8 << 20;
/// The most repairs of a reply that violates its schema.
pub const REPLY_REPAIRS_MAX: u32 = 2;
/// Milliseconds for which an idempotency key is remembered: seven days.
pub const IDEMPOTENCY_MS: u64 = 7 * 24 * 3_600_000;
