//! The telemetry of one call of a model. Without a listener it costs one read of a number for each
//! chunk of the reply.

use crate::core::Core;
use domain::error_code::{self, ErrorCategory};
use domain::event::{RunStarted, Subject};
use domain::message::Part;
use domain::operation::{Attempt, Operation};
use domain::shown::visible;
use domain::telemetry::{TOOL_CHARS_MAX, TelemetryError, TelemetryEvent, TelemetryKind};
use egress::awake::Instant;
use llm::{Completion, Delta, Failure, Reason, ResolvedModel};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The telemetry of one call.
pub(super) struct Telling<'a> {
    core: &'a Core,
    started: &'a RunStarted,
    operation: &'a Operation,
    /// True if the text of its replies is for the user, and not for the agent alone.
    is_shown: bool,
    /// True while chunks of a reply arrive.
    streams: AtomicBool,
}

/// A call whose start was sent, until its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallUnderWay<'a> {
    /// The name of the model, as the agent gave it.
    model: Option<&'a str>,
    /// The time from which on its duration counts, with all pauses between attempts.
    at: Instant,
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
    pub(super) fn asked<'m>(&self, attempt: u32, model: Option<&'m str>) -> CallUnderWay<'m> {
        self.tell(TelemetryKind::LlmRequestStart, |event| {
            let event = event.with("attempt", attempt);
            match self.resolved(model) {
                Some(model) => event
                    .with("provider", model.provider)
                    .with("model", model.alias),
                None => event,
            }
        });
        CallUnderWay {
            model,
            at: Instant::now(),
        }
    }

    /// Reports a chunk of a reply.
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
                Delta::CallStarted { name, .. } | Delta::OwnCall { name, .. } => {
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

    /// Reports the end of the call.
    pub(super) fn answered(&self, asked: CallUnderWay<'_>, completion: &Completion) {
        let elapsed = asked.at.elapsed();
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
                spent(event, attempts, elapsed)
                    .with("provider", reply.provider.as_str())
                    .with("model", reply.model.as_str())
                    .with("tool_calls", reply.parts.iter().filter(is_call).count())
            }),
            // The failure is that of the model that was asked for, also after its fallbacks.
            Err(failure) => self.tell(TelemetryKind::LlmError, |event| {
                let mut event = spent(event, attempts, elapsed);
                if let Some(model) = self.resolved(asked.model) {
                    event = event
                        .with("provider", model.provider)
                        .with("model", model.model);
                }
                if !completion.also_failed.is_empty() {
                    event = event.with("also_failed", completion.also_failed.as_slice());
                }
                event.failing(error(failure))
            }),
        }
    }

    /// Returns the model of a name; none if it is no longer configured.
    fn resolved(&self, model: Option<&str>) -> Option<ResolvedModel> {
        let gateway = self.core.serving.gateway_of_run(self.started, model);
        gateway.resolve(model).ok()
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
            fill(event.with("operation_id", self.operation.id.to_string()))
        };
        core.telemetry
            .tell(|| *core.store.durable().borrow(), event);
    }
}

/// Adds the usage of the attempts at a reply.
fn spent(event: TelemetryEvent, attempts: &[Attempt], elapsed: Duration) -> TelemetryEvent {
    let reported = || attempts.iter().filter_map(|attempt| attempt.usage);
    let input: u64 = reported().map(|usage| usage.input_tokens).sum();
    let output: u64 = reported().map(|usage| usage.output_tokens).sum();
    let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let event = event
        .with("attempts", attempts.len())
        .with("duration_ms", elapsed_ms)
        .with("input_tokens", input)
        .with("output_tokens", output);
    let costs: Vec<u64> = attempts
        .iter()
        .filter_map(|attempt| attempt.cost_micros)
        .collect();
    if costs.is_empty() {
        event
    } else {
        event.with("cost_micros", costs.iter().sum::<u64>())
    }
}

/// Returns the error with which a call ended, without the provider's text.
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

#[cfg(test)]
mod tests {
    use super::*;
    use domain::time::Timestamp;
    use serde_json::json;

    #[test]
    fn the_duration_of_a_call_has_the_pauses_between_its_attempts() {
        let attempt = |wall_ms: u64| Attempt {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            usage: None,
            cost_micros: None,
            wall_ms,
            error: Some("no connection".to_owned()),
            reserved: None,
        };
        let subject = Subject::default();
        let event = TelemetryEvent::new(TelemetryKind::LlmError, subject, Timestamp(0));
        let elapsed = Duration::from_millis(560);
        let event = spent(event, &[attempt(0), attempt(1)], elapsed);
        assert_eq!(event.data["duration_ms"], json!(560));
        assert_eq!(event.data["attempts"], json!(2));
    }
}
