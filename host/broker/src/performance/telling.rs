//! The telemetry of one call of a model. It costs one read of a number a piece of the reply while
//! nobody listens.

use crate::core::Core;
use domain::error_code::{self, ErrorCategory};
use domain::event::{RunStarted, Subject};
use domain::message::Part;
use domain::operation::{Attempt, Operation};
use domain::shown::visible;
use domain::telemetry::{TOOL_CHARS_MAX, TelemetryError, TelemetryEvent, TelemetryKind};
use llm::{Completion, Delta, Failure, Reason};
use std::sync::atomic::{AtomicBool, Ordering};

/// The telemetry of one call.
pub(super) struct Telling<'a> {
    core: &'a Core,
    started: &'a RunStarted,
    operation: &'a Operation,
    /// True if the text of its replies is for the user, and not for the agent alone.
    is_shown: bool,
    /// True while pieces of a reply come.
    streams: AtomicBool,
}

impl<'a> Telling<'a> {
    /// Tells of a call of a run. `is_shown` is true if its replies are for the user.
    pub(super) fn new(
        core: &'a Core,
        started: &'a RunStarted,
        operation: &'a Operation,
        is_shown: bool,
    ) -> Self {
        Self {
            core,
            started,
            operation,
            is_shown,
            streams: AtomicBool::new(false),
        }
    }

    /// A model is about to be asked, by the name that the agent gave.
    pub(super) fn asked(&self, attempt: u32, model: Option<&str>) {
        self.tell(TelemetryKind::LlmRequestStart, |event| {
            event
                .with("attempt", attempt)
                .with("model", model.unwrap_or("default"))
        });
    }

    /// A piece of a reply came.
    pub(super) fn said(&self, attempt: u32, seq: u64, delta: &Delta) {
        if seq == 0 {
            self.streams.store(true, Ordering::Relaxed);
            self.tell(TelemetryKind::LlmStreamStart, |event| {
                event.with("attempt", attempt)
            });
        }
        self.tell(TelemetryKind::LlmStreamChunk, |event| {
            let event = event.with("attempt", attempt).with("seq", seq);
            let (kind, text) = match delta {
                Delta::Text(text) => ("text", Some(text)),
                Delta::Thinking(text) => ("thinking", Some(text)),
                Delta::CallStarted { name, .. } => {
                    return event
                        .with("kind", "call_started")
                        .with("tool", visible(name, TOOL_CHARS_MAX));
                }
            };
            let bytes = text.map_or(0, String::len);
            let content = text
                .filter(|_| self.is_shown && self.core.telemetry.is_content_wanted())
                .map(|text| text.as_str().into());
            TelemetryEvent {
                content,
                ..event.with("kind", kind).with("bytes", bytes)
            }
        });
    }

    /// All that an attempt said is void.
    pub(super) fn discarded(&self, attempt: u32) {
        if self.streams.swap(false, Ordering::Relaxed) {
            self.tell(TelemetryKind::LlmStreamEnd, |event| {
                event.with("attempt", attempt).with("discarded", true)
            });
        }
    }

    /// The call came to its end.
    pub(super) fn answered(&self, completion: &Completion) {
        let had_begun = self.streams.swap(false, Ordering::Relaxed);
        if had_begun {
            self.tell(TelemetryKind::LlmStreamEnd, |event| {
                event.with("discarded", completion.result.is_err())
            });
        }
        let attempts = &completion.attempts;
        match &completion.result {
            Ok(reply) => self.tell(TelemetryKind::LlmRequestComplete, |event| {
                let is_call = |part: &&Part| matches!(part, Part::Call { .. });
                spent(event, attempts)
                    .with("provider", reply.provider.as_str())
                    .with("model", reply.model.as_str())
                    .with("toolCalls", reply.parts.iter().filter(is_call).count())
            }),
            Err(failure) => self.tell(TelemetryKind::LlmError, |event| {
                spent(event, attempts).failing(error(failure))
            }),
        }
    }

    fn tell(&self, kind: TelemetryKind, fill: impl FnOnce(TelemetryEvent) -> TelemetryEvent) {
        let core = self.core;
        let event = || {
            let subject = Subject {
                agent: Some(self.started.agent),
                session: Some(self.started.session),
                run: Some(self.started.run),
            };
            let event = TelemetryEvent::new(kind, subject, core.now());
            fill(event.with("operationId", self.operation.id.to_string()))
        };
        core.telemetry
            .tell(|| *core.store.durable().borrow(), event);
    }
}

/// Adds what the attempts at a reply took.
fn spent(event: TelemetryEvent, attempts: &[Attempt]) -> TelemetryEvent {
    let reported = || attempts.iter().filter_map(|attempt| attempt.usage);
    let input: u64 = reported().map(|usage| usage.input_tokens).sum();
    let output: u64 = reported().map(|usage| usage.output_tokens).sum();
    let wall_ms: u64 = attempts.iter().map(|attempt| attempt.wall_ms).sum();
    let event = event
        .with("attempts", attempts.len())
        .with("durationMs", wall_ms)
        .with("inputTokens", input)
        .with("outputTokens", output);
    let costs: Vec<u64> = attempts
        .iter()
        .filter_map(|attempt| attempt.cost_micros)
        .collect();
    if costs.is_empty() {
        event
    } else {
        event.with("costMicros", costs.iter().sum::<u64>())
    }
}

/// Returns the error that a call ended with. What the provider said of it is not told.
fn error(failure: &Failure) -> TelemetryError {
    let broke_off = matches!(
        failure,
        Failure::Unavailable {
            reason: Reason::CutShort | Reason::Idle,
            ..
        }
    );
    let category = match error_code::category(failure.code()) {
        Some(ErrorCategory::LlmStreamFailed) => ErrorCategory::LlmStreamFailed,
        _ if broke_off => ErrorCategory::LlmStreamFailed,
        _ => ErrorCategory::LlmRequestFailed,
    };
    TelemetryError {
        code: failure.code().to_owned(),
        category,
        retryable: failure.retryable(),
    }
}
