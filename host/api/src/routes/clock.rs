//! The host's time and the machine's wall clock.

use crate::problem::Problem;
use crate::state::Api;
use crate::wire::Time;
use axum::extract::State;
use broker::ClockState;
use domain::clock::Lead;
use serde::Serialize;

/// The host's time, and how far the wall clock is from it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ClockView {
    /// The time by which the host goes.
    now: Time,
    /// Time shown by the machine's wall clock.
    wall: Time,
    /// Milliseconds by which the wall clock is ahead; negative when it is behind.
    wall_ahead_ms: i64,
    /// The wall clock jumped ahead, and the host does not follow: nothing expires by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    jump: Option<Doubted>,
    /// Nothing was stored for some time before the start: downtime, or a jump. What is due is due,
    /// and idempotency keys are kept that much longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<Doubted>,
    /// The time by which credentials end. It is set after an operator has confirmed a wall clock
    /// that was behind the host's time, until the two agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<Time>,
}

/// Time of which nobody knows yet whether it has passed.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Doubted {
    /// Its milliseconds.
    ms: u64,
    /// Milliseconds until it counts as passed, if the wall clock stays as it is and nobody confirms
    /// it before.
    left_ms: u64,
}

impl From<Lead> for Doubted {
    fn from(lead: Lead) -> Self {
        Self {
            ms: lead.ms,
            left_ms: lead.left_ms,
        }
    }
}

impl From<ClockState> for ClockView {
    fn from(state: ClockState) -> Self {
        let ms = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        Self {
            now: Time(state.now),
            wall: Time(state.wall),
            wall_ahead_ms: ms(state.wall.0).saturating_sub(ms(state.now.0)),
            jump: state.jump.map(Doubted::from),
            gap: state.gap.map(Doubted::from),
            credentials: state.credentials.map(Time),
        }
    }
}

/// Tells the host's time and how far the wall clock is from it.
#[utoipa::path(
    get, path = "/api/clock", tag = "operator",
    operation_id = "getClock",
    security(("token" = ["admin"])),
    responses((status = 200, description = "At this moment.", body = ClockView)),
)]
pub(super) async fn show(State(api): State<Api>) -> Result<axum::Json<ClockView>, Problem> {
    Ok(axum::Json(api.broker()?.clock().state().into()))
}

/// Confirms that the wall clock is right: the host's time follows it ahead at once, and what is due
/// by it is due.
///
/// The host's time never goes back. When the wall clock is behind it, credentials end by the wall
/// clock from then on, also after a restart.
#[utoipa::path(
    post, path = "/api/clock/confirm", tag = "operator",
    operation_id = "confirmClock",
    security(("token" = ["admin"])),
    responses((status = 200, description = "From now on.", body = ClockView)),
)]
pub(super) async fn confirm(State(api): State<Api>) -> Result<axum::Json<ClockView>, Problem> {
    Ok(axum::Json(api.command()?.confirm_clock().await.into()))
}
