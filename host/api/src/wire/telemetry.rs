//! Telemetry in public form. Its names are written as the designs write them.

use super::CodedSchema;
use domain::telemetry::{TelemetryError, TelemetryEvent};
use serde_json::{Map, Value, json};

/// The name of the frame that tells of loss.
pub(crate) const LAG: &str = "lag";

/// Returns an event in public form.
pub(crate) fn telemetry_event(event: &TelemetryEvent) -> Value {
    let subject = event.subject;
    let ids = [
        ("agentId", subject.agent.map(|id| id.to_string())),
        ("sessionId", subject.session.map(|id| id.to_string())),
        ("runId", subject.run.map(|id| id.to_string())),
        ("content", event.content.as_deref().map(str::to_owned)),
    ];
    let mut data: Map<String, Value> = ids
        .into_iter()
        .filter_map(|(name, id)| Some((name.to_owned(), id?.into())))
        .collect();
    data.extend(event.data.clone());
    let mut shown = json!({
        "type": event.kind.as_str(),
        "timestamp": event.time.to_string(),
    });
    if let Some(fields) = shown.as_object_mut() {
        if !data.is_empty() {
            fields.insert("data".to_owned(), data.into());
        }
        if let Some(error) = &event.error {
            fields.insert("error".to_owned(), telemetry_error(error));
        }
    }
    shown
}

fn telemetry_error(error: &TelemetryError) -> Value {
    json!({
        "code": error.code,
        "category": error.category.as_str(),
        "retryable": error.retryable,
    })
}

/// The description of what the stream of telemetry has.
pub(crate) mod described {
    #![expect(dead_code, reason = "describes what frames have")]

    use serde_json::Value;

    /// Something that happened on the host. The `event` of its frame is its `type`.
    #[derive(utoipa::ToSchema)]
    pub(crate) struct TelemetryEvent {
        /// The type of what happened, such as `message.received`.
        r#type: String,
        /// The time at which it happened, ISO 8601.
        timestamp: String,
        /// Ids (`agentId`, `sessionId`, `runId`, `messageId`, `operationId`), numbers
        /// (`durationMs`, `toolCallCount`, `inputTokens`, `outputTokens`, …) and names (`tool`,
        /// `model`, `provider`).
        data: Option<Value>,
        /// The error, of events that tell of one.
        error: Option<TelemetryError>,
    }

    /// The error that an event tells of. What was said about it is not told.
    #[derive(utoipa::ToSchema)]
    pub(crate) struct TelemetryError {
        /// A stable code, or one that an agent or a tool chose.
        code: String,
        /// The stage at which it went wrong.
        category: String,
        /// True if the same may succeed later.
        retryable: bool,
    }

    /// Events were lost to this client, because it did not read in time. They are not sent again.
    #[derive(utoipa::ToSchema)]
    pub(crate) struct TelemetryLag {
        /// The number of lost events since the last such frame.
        dropped: u64,
    }
}

/// Returns the description of each frame.
pub(crate) fn telemetry_schemas() -> Vec<CodedSchema> {
    vec![
        CodedSchema::new::<described::TelemetryEvent>("*", "TelemetryEvent".to_owned()),
        CodedSchema::new::<described::TelemetryLag>(LAG, "TelemetryLag".to_owned()),
    ]
}
