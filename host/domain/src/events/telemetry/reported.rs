//! Telemetry of stored events.

use super::{TOOL_CHARS_MAX, TelemetryError, TelemetryEvent, TelemetryKind};
use crate::events::event::{Event, Recorded, RunEnded, RunStepped, Source, StepFailed};
use crate::events::run::end::NOT_BEGUN;
use crate::thread::turn::TurnEnd;
use crate::values::error_code::{self, ErrorCategory, TIMED_OUT};
use crate::values::id::{InputId, OperationId};
use crate::values::shown::visible;
use crate::values::time::Timestamp;
use crate::work::operation::{Continuation, Operation, Performer, Settlement};
use crate::work::step::OperationOutcome;
use std::collections::HashMap;

/// The code of a call that the agent is not allowed to make.
const DENIED: &str = "denied";
/// The code of a call, or a message, that was cancelled.
const CANCELLED: &str = "cancelled";
/// The code of a call that may or may not have happened.
const UNKNOWN: &str = "unknown";
/// The code of a message that a full queue dropped.
const DROPPED: &str = "dropped";

/// The facts about a run that its later events do not repeat: its beginning, and its tool calls.
#[derive(Debug, Clone, Default)]
pub struct RunTally {
    begun: Option<Timestamp>,
    calls: HashMap<OperationId, Call>,
}

#[derive(Debug, Clone)]
struct Call {
    tool: String,
    since: Timestamp,
}

impl RunTally {
    /// Takes up an event of the run, in stream order.
    pub fn note(&mut self, event: &Event) {
        if let Some(step) = event.step() {
            let calls = step.started.iter().filter_map(|operation| {
                let call = Call {
                    tool: tool_of(operation)?,
                    since: step.time,
                };
                Some((operation.id, call))
            });
            self.calls.extend(calls);
        }
        match event {
            Event::RunStarted(started) => self.begun = Some(started.time),
            Event::OperationContinued(Continuation {
                call: Some(made), ..
            }) => {
                let call = Call {
                    tool: visible(&made.tool, TOOL_CHARS_MAX),
                    since: made.time,
                };
                self.calls.insert(made.started.id, call);
            }
            _ => {}
        }
    }

    /// Returns the number of tool calls so far.
    #[must_use]
    pub fn tool_calls(&self) -> usize {
        self.calls.len()
    }
}

/// Returns the tool that an operation calls: the one that a model named, or that the agent's code
/// calls by itself. None for anything else. The name is cut, because a model may write any text
/// there.
fn tool_of(operation: &Operation) -> Option<String> {
    let name = match (&operation.answers, &operation.performer) {
        (Some(answers), _) => &answers.name,
        (None, Performer::Tool { tool, .. } | Performer::Lasting { tool, .. }) => tool,
        (None, _) => return None,
    };
    Some(visible(name, TOOL_CHARS_MAX))
}

/// Returns the telemetry of a stored event, in order. `tally` has taken up the run's events
/// including this one.
#[must_use]
pub fn telemetry_of(recorded: &Recorded, tally: &RunTally) -> Vec<TelemetryEvent> {
    let Some(event) = &recorded.event else {
        return Vec::new();
    };
    let teller = Teller { recorded, tally };
    match event {
        Event::AgentCreated(created) => [
            TelemetryKind::AgentInitialized,
            TelemetryKind::AgentRegistered,
            TelemetryKind::AgentReady,
        ]
        .into_iter()
        .map(|kind| {
            teller
                .event(kind)
                .with("definition", created.definition.0.as_str())
                .with("path", created.path.as_str())
        })
        .collect(),
        Event::AgentArchived(archived) => [
            TelemetryKind::AgentUnregistered,
            TelemetryKind::AgentShutdown,
        ]
        .into_iter()
        .map(|kind| teller.event(kind).with("path", archived.path.as_str()))
        .collect(),
        Event::SessionOpened(opened) => vec![
            teller
                .event(TelemetryKind::SessionCreated)
                .with("session_type", opened.session_type.as_str()),
        ],
        Event::InputAccepted(accepted) => vec![
            teller
                .message(TelemetryKind::MessageReceived, accepted.input)
                .with("source", source(&accepted.source)),
        ],
        Event::InputCancelled(it) => vec![teller.lost(it.input, CANCELLED)],
        Event::InputsDropped(it) => teller.all_lost(&it.inputs, DROPPED),
        // The end of its run reports an input that a run had claimed.
        Event::InputDead(it) if recorded.subject.run.is_none() => {
            vec![teller.lost(it.input, NOT_BEGUN)]
        }
        Event::RunStarted(started) => {
            let first_step = started.first_step.iter();
            let stepped = first_step.flat_map(|step| teller.stepped(step));
            let processing = teller.processing(&started.claimed).into_iter();
            processing.chain(stepped).collect()
        }
        Event::RunStepped(stepped) => teller.stepped(stepped),
        Event::OperationContinued(Continuation {
            call: Some(made), ..
        }) => vec![teller.begun(made.started.id, &made.tool)],
        Event::RunSettled(settled) => teller.settled(&settled.settled),
        Event::StepFailed(failed) => vec![teller.step_failed(failed)],
        Event::RunEnded(ended) => teller.ended(ended),
        _ => Vec::new(),
    }
}

fn source(source: &Source) -> &'static str {
    match source {
        Source::Api => "api",
        Source::Trigger { .. } => "trigger",
        Source::Connector { .. } => "connector",
        Source::Opening => "opening",
        Source::Dispatch { .. } => "dispatch",
        Source::LateReply { .. } => "late_reply",
        Source::Reminder { .. } => "reminder",
    }
}

/// The event that is reported.
struct Teller<'a> {
    recorded: &'a Recorded,
    tally: &'a RunTally,
}

impl Teller<'_> {
    fn event(&self, kind: TelemetryKind) -> TelemetryEvent {
        TelemetryEvent::new(kind, self.recorded.subject, self.recorded.time)
    }

    fn message(&self, kind: TelemetryKind, input: InputId) -> TelemetryEvent {
        self.event(kind).with("input_id", input.to_string())
    }

    /// A message without an answer, by the code of the reason.
    fn lost(&self, input: InputId, code: &str) -> TelemetryEvent {
        self.message(TelemetryKind::MessageFailed, input)
            .failing(TelemetryError {
                code: code.to_owned(),
                category: error_code::category_of_turn(code),
                retryable: error_code::is_retryable(code),
            })
    }

    fn all_lost(&self, inputs: &[InputId], code: &str) -> Vec<TelemetryEvent> {
        inputs.iter().map(|input| self.lost(*input, code)).collect()
    }

    fn processing(&self, inputs: &[InputId]) -> Vec<TelemetryEvent> {
        inputs
            .iter()
            .map(|input| self.message(TelemetryKind::MessageProcessing, *input))
            .collect()
    }

    fn stepped(&self, stepped: &RunStepped) -> Vec<TelemetryEvent> {
        let mut events = self.settled(&stepped.settled);
        events.extend(self.processing(&stepped.claimed));
        events.extend(stepped.started.iter().filter_map(|operation| {
            let tool = tool_of(operation)?;
            Some(self.begun(operation.id, &tool))
        }));
        events.extend(self.settled(&stepped.stopped));
        events
    }

    /// The beginning of a tool's call.
    fn begun(&self, operation: OperationId, tool: &str) -> TelemetryEvent {
        self.event(TelemetryKind::ToolCallStart)
            .with("tool", visible(tool, TOOL_CHARS_MAX))
            .with("operation_id", operation.to_string())
    }

    fn settled(&self, settlements: &[Settlement]) -> Vec<TelemetryEvent> {
        settlements
            .iter()
            .filter_map(|settlement| self.call_ended(settlement))
            .collect()
    }

    /// The end of a tool call; none for other operations.
    fn call_ended(&self, settlement: &Settlement) -> Option<TelemetryEvent> {
        let call = self.tally.calls.get(&settlement.operation)?;
        let error = call_error(settlement);
        let kind = if error.is_some() {
            TelemetryKind::ToolCallFailed
        } else {
            TelemetryKind::ToolCallComplete
        };
        let event = self
            .event(kind)
            .with("tool", call.tool.as_str())
            .with("operation_id", settlement.operation.to_string())
            .with("duration_ms", settlement.time.since_ms(call.since));
        Some(TelemetryEvent { error, ..event })
    }

    fn step_failed(&self, failed: &StepFailed) -> TelemetryEvent {
        self.event(TelemetryKind::Error)
            .with("step", failed.step)
            .with("attempt", failed.attempt)
            .failing(TelemetryError {
                code: failed.outcome.to_string(),
                category: ErrorCategory::MessageProcessingFailed,
                retryable: false,
            })
    }

    fn ended(&self, ended: &RunEnded) -> Vec<TelemetryEvent> {
        let mut events = self.settled(&ended.stopped);
        let begun = self.tally.begun.unwrap_or(ended.time);
        for input in &ended.inputs {
            let event = match ended.end {
                TurnEnd::Replied | TurnEnd::Completed => {
                    self.message(TelemetryKind::MessageProcessed, *input)
                }
                TurnEnd::Failed | TurnEnd::Aborted => {
                    self.lost(*input, ended.code.as_deref().unwrap_or_default())
                }
            };
            events.push(
                event
                    .with("duration_ms", ended.time.since_ms(begun))
                    .with("tool_call_count", self.tally.tool_calls()),
            );
        }
        events
    }
}

/// Returns the error of a tool call; none if its result is no failure.
fn call_error(settlement: &Settlement) -> Option<TelemetryError> {
    let of = |code: &str, retryable| {
        Some(TelemetryError {
            code: code.to_owned(),
            category: error_code::category_of_tool(code),
            retryable,
        })
    };
    match &settlement.outcome {
        OperationOutcome::Failed { failure } => of(&failure.code, failure.retryable),
        OperationOutcome::Denied => of(DENIED, false),
        OperationOutcome::TimedOut => of(TIMED_OUT, true),
        OperationOutcome::Cancelled => of(CANCELLED, false),
        OperationOutcome::Unknown { .. } => of(UNKNOWN, false),
        OperationOutcome::Message { .. }
        | OperationOutcome::Parts { .. }
        | OperationOutcome::Value { .. }
        | OperationOutcome::Elapsed => {
            let failure = settlement.failed_delegation()?;
            of(&failure.code, failure.retryable)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::tool::EffectClass;
    use crate::events::event::RunSettled;
    use crate::events::run::settle::{Ended, settlement};
    use crate::events::telemetry::tests::{TIME, agent, recorded, session};
    use crate::thread::message::{Answers, Part};
    use crate::values::digest::Digest;
    use crate::values::id::RunId;
    use crate::work::budget::Amount;
    use crate::work::delegate::{self, DelegateResult, Task, TaskState};
    use uuid::Uuid;

    /// A call of `delegate` by a model, which became a task.
    fn delegated(arguments: &str) -> Operation {
        Operation {
            id: OperationId(Digest([7; 32])),
            key: "d".into(),
            step: 0,
            place: 0,
            performer: Performer::Agent {
                agent: agent(2),
                session: session(2),
                input: InputId(Uuid::nil()),
                delegation: Some(arguments.into()),
                message: None,
                since: TIME,
                queued: false,
            },
            effect: EffectClass::NonIdempotent,
            time_limit_ms: None,
            deadline: None,
            answers: Some(Answers {
                message: 2,
                index: 0,
                call_id: "c".into(),
                name: "delegate".into(),
                failed: false,
            }),
            in_thread: false,
            reserved: Amount::default(),
            approval: None,
        }
    }

    /// Returns what is told of the end of a model's delegation with this result, and of its task.
    fn reported_of_delegation(
        operation: &Operation,
        result: &str,
        state: TaskState,
    ) -> TelemetryEvent {
        let tally = RunTally {
            begun: None,
            calls: HashMap::from([(
                operation.id,
                Call {
                    tool: "delegate".into(),
                    since: TIME,
                },
            )]),
        };
        let gave = Ended::Gave {
            parts: vec![Part::text(result)],
            untrusted: false,
        };
        let settled = settlement(operation, gave, TIME.plus_ms(5)).ending(state);
        let run = RunId(Uuid::nil());
        let settled = RunSettled {
            run,
            settled: vec![settled],
        };
        let event = recorded(Event::RunSettled(settled), Some(run));
        telemetry_of(&event, &tally).pop().unwrap()
    }

    #[test]
    fn a_delegation_that_failed_is_told_as_a_call_that_failed() {
        let arguments =
            r#"{"target":"worker","operation":"read_file","parameters":{"path":"a.txt"}}"#;
        let operation = delegated(arguments);
        let delegation = delegate::parse(arguments, &delegate::Target::ALL).unwrap();
        let task = Task {
            operation: operation.id,
            agent: agent(2),
            created: TIME,
            completed: TIME,
        };
        let failed = |begun| DelegateResult::failed(&delegation, &task, "words", begun).to_string();
        for (result, state, error) in [
            (
                DelegateResult::succeeded(&delegation, &task, "read").to_string(),
                TaskState::Completed,
                None,
            ),
            (
                failed(true),
                TaskState::Failed,
                Some(("TASK_FAILED", false)),
            ),
            (
                failed(false),
                TaskState::Failed,
                Some(("TASK_FAILED", true)),
            ),
            (
                DelegateResult::timed_out(&delegation, &task).to_string(),
                TaskState::Timeout,
                Some(("TASK_TIMEOUT", false)),
            ),
            (
                "a reason of which head and tail are left".to_owned(),
                TaskState::Failed,
                Some(("TASK_FAILED", false)),
            ),
        ] {
            let reported = reported_of_delegation(&operation, &result, state);
            let kind = if error.is_some() {
                "tool.call_failed"
            } else {
                "tool.call_complete"
            };
            assert_eq!(reported.kind.as_str(), kind, "{result}");
            let said = reported.error.as_ref();
            let said = said.map(|error| (error.code.as_str(), error.retryable));
            assert_eq!(said, error, "{result}");
            assert!(!format!("{reported:?}").contains("words"), "{reported:?}");
        }
    }
}
