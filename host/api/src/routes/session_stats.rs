//! A session in numbers: its messages, turns, tokens, cost and times.

use super::usage::UsageSums;
use crate::caller::Caller;
use crate::codes::{self, Refused};
use crate::input::{SessionInPath, TargetSession};
use crate::state::Api;
use crate::wire::Time;
use axum::extract::State;
use broker::{SessionNumbers, WindowFill};
use domain::id::SessionId;
use serde::Serialize;
use std::collections::BTreeMap;

/// A session in numbers. Everything is of the turns that were made in it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = SessionStats)]
pub(super) struct SessionStatsView {
    /// The session.
    session_id: SessionId,
    /// Messages of its turns.
    messages: MessageCounts,
    /// Turns, compactions included.
    turns: TurnCounts,
    /// Inputs that wait.
    waiting: u64,
    /// Calls, tokens, cost, and the time in which models and tools were at work. Work that was
    /// handed over to other agents counts in their sessions.
    usage: UsageSums,
    /// Tokens of prompts and replies together.
    total_tokens: u64,
    /// The part of its model's window that is filled; none before a model was asked.
    context: Option<ContextView>,
    /// Milliseconds from the beginning of each ended turn to its end, waiting included.
    turns_ms: u64,
    /// Time at which it began.
    started_at: Time,
    /// Time at which a turn last took up an input, or ended.
    last_activity_at: Time,
    /// Time at which it was completed or terminated; none while it is open.
    ended_at: Option<Time>,
}

/// The part of a model's window that a session fills.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = ContextFill)]
pub(super) struct ContextView {
    /// Tokens of the prompt and the reply of the newest call of a model; after a compaction, those
    /// of the thread as it is then, estimated.
    tokens: u64,
    /// Tokens that the model holds, or as many as the definition allows (`contextWindowSize`).
    window: u64,
    /// The part of the window that is filled, in percent, rounded down. From 90 on the thread is
    /// compacted.
    percent: u64,
}

impl From<WindowFill> for ContextView {
    fn from(WindowFill { tokens, window }: WindowFill) -> Self {
        Self {
            tokens,
            window,
            percent: tokens.saturating_mul(100) / window.max(1),
        }
    }
}

/// Numbers of messages by role.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct MessageCounts {
    /// All of them.
    total: u64,
    /// Messages of users, and of agents that hand work over.
    user: u64,
    /// Messages of the agent and its models.
    assistant: u64,
    /// Results of calls.
    tool: u64,
    /// Messages of the host.
    notice: u64,
}

/// Numbers of turns by their end.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct TurnCounts {
    /// All of them.
    total: u64,
    /// In progress, or waiting for somebody.
    open: u64,
    /// Ended with a reply.
    replied: u64,
    /// Ended with their structured session.
    completed: u64,
    /// Failed.
    failed: u64,
    /// Stopped from outside.
    aborted: u64,
}

/// Counts the messages, turns, calls, tokens, cost and times of a session.
#[utoipa::path(
    get, path = "/api/agents/{id}/sessions/{sid}/stats", tag = "sessions",
    operation_id = "getSessionStats",
    security(("token" = ["read"])),
    params(SessionInPath),
    responses((status = 200, description = "The numbers.", body = SessionStatsView)),
)]
pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
) -> Result<axum::Json<SessionStatsView>, Refused<codes::SessionOfAgent>> {
    let numbers = caller
        .reading(&api)?
        .sessions()
        .numbers(&caller.user, &target, session)
        .await?;
    Ok(axum::Json(view(numbers)))
}

fn view(numbers: SessionNumbers) -> SessionStatsView {
    let SessionNumbers {
        row,
        counts,
        usage,
        fill,
    } = numbers;
    let of = |counts: &BTreeMap<String, u64>, word| counts.get(word).copied().unwrap_or_default();
    let messages = &counts.messages;
    let turns = &counts.turns;
    SessionStatsView {
        session_id: row.id,
        messages: MessageCounts {
            total: messages.values().sum(),
            user: of(messages, "user"),
            assistant: of(messages, "assistant"),
            tool: of(messages, "tool"),
            notice: of(messages, "notice"),
        },
        turns: TurnCounts {
            total: turns
                .values()
                .sum::<u64>()
                .saturating_add(counts.open_turns),
            open: counts.open_turns,
            replied: of(turns, "replied"),
            completed: of(turns, "completed"),
            failed: of(turns, "failed"),
            aborted: of(turns, "aborted"),
        },
        waiting: row.waiting,
        usage: usage.into(),
        total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
        context: fill.map(ContextView::from),
        turns_ms: counts.turns_ms,
        started_at: Time(row.created_at),
        last_activity_at: Time(row.updated_at),
        ended_at: row.ended_at.map(Time),
    }
}
