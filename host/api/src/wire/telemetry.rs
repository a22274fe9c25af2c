//! Telemetry in public form. Its names are those of the API.

use super::CodedSchema;
use super::values::Time;
use domain::error_code::ErrorCategory;
use domain::telemetry::{TelemetryEvent, TelemetryKind};
use serde::Serialize;
use serde_json::{Map, Value};

/// The name of the frame that tells of loss.
pub(crate) const LAG: &str = "lag";

/// Something that happened on the host. The `event` of its frame is its `type`.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = TelemetryEvent)]
pub(crate) struct TelemetryEventView<'a> {
    /// The type of what happened, such as `message.received`.
    #[serde(rename = "type")]
    kind: TelemetryKind,
    /// The time at which it happened, ISO 8601.
    timestamp: Time,
    /// Ids (`agent_id`, `session_id`, `run_id`, `input_id`, `operation_id`), numbers
    /// (`duration_ms`, `tool_call_count`, `input_tokens`, `output_tokens`, …) and names (`tool`,
    /// `model`, `provider`).
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Option<Value>)]
    data: Map<String, Value>,
    /// The error, of events that tell of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TelemetryErrorView<'a>>,
}

/// The error that an event tells of. What was said about it is not told.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = TelemetryError)]
struct TelemetryErrorView<'a> {
    /// A stable code, or one that an agent or a tool chose.
    code: &'a str,
    /// The stage at which it went wrong.
    category: ErrorCategory,
    /// True if the same may succeed later.
    retryable: bool,
}

/// Events were lost to this client, because it did not read in time. They are not sent again.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct TelemetryLag {
    /// The number of lost events since the last such frame.
    pub(crate) dropped: u64,
}

/// Returns an event in public form.
pub(crate) fn telemetry_event(event: &TelemetryEvent) -> TelemetryEventView<'_> {
    let subject = event.subject;
    let ids = [
        ("agent_id", subject.agent.map(|id| id.to_string())),
        ("session_id", subject.session.map(|id| id.to_string())),
        ("run_id", subject.run.map(|id| id.to_string())),
        ("content", event.content.as_deref().map(str::to_owned)),
    ];
    let mut data: Map<String, Value> = ids
        .into_iter()
        .filter_map(|(name, id)| Some((name.to_owned(), id?.into())))
        .collect();
    data.extend(event.data.clone());
    TelemetryEventView {
        kind: event.kind,
        timestamp: Time(event.time),
        data,
        error: event.error.as_ref().map(|error| TelemetryErrorView {
            code: &error.code,
            category: error.category,
            retryable: error.retryable,
        }),
    }
}

/// Returns the description of each frame.
pub(crate) fn telemetry_schemas() -> Vec<CodedSchema> {
    vec![
        CodedSchema::new::<TelemetryEventView<'_>>("*", "TelemetryEvent"),
        CodedSchema::new::<TelemetryLag>(LAG, "TelemetryLag"),
    ]
}
