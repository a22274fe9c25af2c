//! A turn that has ended, in the response to the message that it dealt with.

use broker::{CallReport, TurnFailure, TurnReport};
use domain::error_code::{self, ErrorCategory};
use domain::id::{RunId, TurnId};
use serde::Serialize;

/// A call of a tool in a turn that has ended.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = TurnToolCall)]
pub(in crate::routes) struct ToolCallView {
    /// The tool.
    name: String,
    /// True if it gave a result that is no failure.
    ok: bool,
    /// Milliseconds from its start to its outcome, waiting included.
    duration_ms: u64,
}

/// Tokens and cost of a turn's models.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = TurnUsage)]
pub(in crate::routes) struct TurnUsageView {
    /// Tokens of prompts, cached ones included, as the providers reported them.
    input_tokens: u64,
    /// Tokens of replies.
    output_tokens: u64,
    /// Tokens of prompts that were read from a cache.
    cached_tokens: u64,
    /// Prompts and replies together.
    total_tokens: u64,
    /// Cost in millionths of the currency of the configured prices, as far as models have one.
    cost_micros: u64,
}

/// The turn that dealt with a message.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(in crate::routes) struct TurnMetadata {
    /// The run that made it.
    run_id: RunId,
    /// The turn; none when the run came to nothing.
    turn_id: Option<TurnId>,
    /// The providers' names of the models that were asked.
    models: Vec<String>,
    /// Calls of models.
    model_calls: u64,
}

/// The reason why a turn failed or was aborted, or why a message became a dead letter without one.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = TurnError)]
pub(in crate::routes) struct TurnErrorView {
    /// A stable code. For programs.
    #[schema(example = "message-timed-out")]
    code: String,
    /// The reason in words. For people: it may change between versions.
    message: String,
    /// True if the same message may be dealt with later without a correction. It depends on `code`
    /// alone.
    retryable: bool,
    /// The stage at which it went wrong. It depends on `code` alone.
    category: ErrorCategory,
}

pub(super) fn tool_call(call: CallReport) -> ToolCallView {
    ToolCallView {
        name: call.name,
        ok: call.is_ok,
        duration_ms: call.duration_ms,
    }
}

pub(super) fn turn_usage(report: &TurnReport) -> TurnUsageView {
    let usage = report.usage;
    TurnUsageView {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_tokens: usage.cached_tokens,
        total_tokens: usage.total(),
        cost_micros: report.cost_micros,
    }
}

pub(super) fn turn_metadata(report: &TurnReport) -> TurnMetadata {
    TurnMetadata {
        run_id: report.run,
        turn_id: report.turn,
        models: report.models.clone(),
        model_calls: report.model_calls,
    }
}

pub(super) fn turn_error(failure: &TurnFailure) -> TurnErrorView {
    TurnErrorView {
        code: failure.code.clone(),
        message: failure.reason.clone(),
        retryable: error_code::is_retryable(&failure.code),
        category: error_code::category_of_turn(&failure.code),
    }
}
