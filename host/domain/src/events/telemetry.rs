//! Telemetry: events on the host in the terms of the designs, for observers.
//!
//! Telemetry is separate from the stored events: it is not stored or read back, and nothing depends
//! on it. Most of it is derived from stored events ([`telemetry_of`]); model calls are reported as
//! they are made. It contains ids, numbers, names of tools and models, and codes, and no text of
//! users, models or tools.

mod reported;

use crate::events::event::Subject;
use crate::values::error_code::ErrorCategory;
use crate::values::id::{AgentId, SessionId};
use crate::values::text::words;
use crate::values::time::Timestamp;
use agent_host_glob::name_matches;
pub use reported::{RunTally, telemetry_of};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The most characters of a tool's name. A model may write a longer one.
pub const TOOL_CHARS_MAX: usize = 80;

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TelemetryKind {
    /// An agent was made from its definition.
    AgentInitialized,
    /// An agent has its address.
    AgentRegistered,
    /// An agent accepts messages.
    AgentReady,
    /// An agent gave up its address.
    AgentUnregistered,
    /// An agent stopped accepting events.
    AgentShutdown,
    /// A message was accepted.
    MessageReceived,
    /// A turn claimed a message.
    MessageProcessing,
    /// A turn answered a message.
    MessageProcessed,
    /// A message will never have an answer.
    MessageFailed,
    /// A model is about to be called.
    LlmRequestStart,
    /// The first chunk of a reply was received.
    LlmStreamStart,
    /// A chunk of a reply was received.
    LlmStreamChunk,
    /// The last chunk of a reply was received.
    LlmStreamEnd,
    /// A model replied.
    LlmRequestComplete,
    /// No model gave a reply.
    LlmError,
    /// A tool's call was decided.
    ToolCallStart,
    /// A tool's call has a result.
    ToolCallComplete,
    /// A tool's call has no result.
    ToolCallFailed,
    /// A session was opened.
    SessionCreated,
    /// A step of an agent's code failed.
    Error,
}

words!(TelemetryKind {
    AgentInitialized = "agent.initialized",
    AgentRegistered = "agent.registered",
    AgentReady = "agent.ready",
    AgentUnregistered = "agent.unregistered",
    AgentShutdown = "agent.shutdown",
    MessageReceived = "message.received",
    MessageProcessing = "message.processing",
    MessageProcessed = "message.processed",
    MessageFailed = "message.failed",
    LlmRequestStart = "llm.request_start",
    LlmStreamStart = "llm.stream_start",
    LlmStreamChunk = "llm.stream_chunk",
    LlmStreamEnd = "llm.stream_end",
    LlmRequestComplete = "llm.request_complete",
    LlmError = "llm.error",
    ToolCallStart = "tool.call_start",
    ToolCallComplete = "tool.call_complete",
    ToolCallFailed = "tool.call_failed",
    SessionCreated = "session.created",
    Error = "error",
});

impl Serialize for TelemetryKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl PartialSchema for TelemetryKind {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(Self::ALL.map(Self::as_str)))
            .description(Some("The type of an event of telemetry."))
            .into()
    }
}

impl ToSchema for TelemetryKind {
    fn name() -> Cow<'static, str> {
        "TelemetryType".into()
    }
}

/// The error that an event reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryError {
    /// A stable code, or one that an agent or a tool chose.
    pub code: String,
    /// The stage of the failure.
    pub category: ErrorCategory,
    /// True if a retry may succeed.
    pub retryable: bool,
}

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryEvent {
    /// Its kind.
    pub kind: TelemetryKind,
    /// Time at which it happened.
    pub time: Timestamp,
    /// The agent, session and run of the event.
    pub subject: Subject,
    /// Further ids and numbers by name.
    pub data: Map<String, Value>,
    /// The error that the event reports, if any.
    pub error: Option<TelemetryError>,
    /// The text of a chunk of a reply. Shown only to an operator who asked for it, and whose
    /// reading is recorded.
    pub content: Option<Arc<str>>,
}

impl TelemetryEvent {
    /// An event without further data.
    #[must_use]
    pub fn new(kind: TelemetryKind, subject: Subject, time: Timestamp) -> Self {
        Self {
            kind,
            time,
            subject,
            data: Map::new(),
            error: None,
            content: None,
        }
    }

    /// The same, with an id, a number or a name.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data.insert(name.to_owned(), value.into());
        self
    }

    /// The same, with the error that it reports.
    #[must_use]
    pub fn failing(mut self, error: TelemetryError) -> Self {
        self.error = Some(error);
        self
    }
}

// The selection of telemetry by agent, session and kind.

/// The most kinds, or patterns of kinds, in a filter.
pub const KINDS_ASKED_MAX: usize = 40;

/// A selection of events. Each part narrows it; without any, everything is selected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TelemetryFilter {
    /// About this agent.
    pub agent: Option<AgentId>,
    /// About this session.
    pub session: Option<SessionId>,
    /// The kinds to select; empty for all kinds.
    pub kinds: Vec<TelemetryKind>,
}

impl TelemetryFilter {
    /// Returns whether an event is selected. An event about the whole host is about every agent.
    #[must_use]
    pub fn selects(&self, event: &TelemetryEvent) -> bool {
        let subject = event.subject;
        let is_of_host = subject.agent.is_none() && subject.session.is_none();
        let is_about = |wanted: bool| wanted || is_of_host;
        (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && is_about(self.agent.is_none_or(|agent| subject.agent == Some(agent)))
            && is_about(
                self.session
                    .is_none_or(|session| subject.session == Some(session)),
            )
    }
}

/// Returns the kinds that match a pattern: a kind, or a text with `*` for any characters.
///
/// # Errors
/// No kind matches. The error lists the kinds.
pub fn kinds_matching(pattern: &str) -> Result<Vec<TelemetryKind>, String> {
    let matches = |kind: &TelemetryKind| name_matches(pattern, kind.as_str());
    let kinds: Vec<TelemetryKind> = TelemetryKind::ALL.into_iter().filter(matches).collect();
    if kinds.is_empty() {
        let known = TelemetryKind::ALL.map(TelemetryKind::as_str).join(", ");
        return Err(format!(
            "`{pattern}` matches no type of event; there are: {known}, and `*` stands for any \
             characters"
        ));
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::event::{
        AgentArchived, Event, InputDead, InputsDropped, Recorded, RunEnded, StepFailed, StepFault,
    };
    use crate::thread::turn::TurnEnd;
    use crate::values::digest::Digest;
    use crate::values::error_code::find;
    use crate::values::id::{AgentId, EventId, InputId, RunId, SessionId};
    use crate::values::time::Timestamp;
    use crate::work::operation::CallUsage;
    use crate::work::queue::Overflow;
    use serde_json::json;
    use uuid::Uuid;

    pub(super) const TIME: Timestamp = Timestamp(1_700_000_000_000);

    pub(super) fn agent(number: u128) -> AgentId {
        AgentId(Uuid::from_u128(number))
    }

    pub(super) fn session(number: u128) -> SessionId {
        SessionId(Uuid::from_u128(number))
    }

    pub(super) fn recorded(event: Event, run: Option<RunId>) -> Recorded {
        Recorded {
            position: 1,
            stream: "run/x".into(),
            version: 1,
            id: EventId(Uuid::nil()),
            kind: "x".into(),
            event: Some(event),
            subject: Subject {
                agent: Some(agent(1)),
                session: Some(session(1)),
                run,
            },
            actor: "host".into(),
            causation: None,
            correlation: None,
            time: TIME,
            hash: Digest([0; 32]),
        }
    }

    fn run_ended(end: TurnEnd, code: Option<&str>) -> Event {
        Event::RunEnded(RunEnded {
            run: RunId(Uuid::nil()),
            session: session(1),
            end,
            code: code.map(str::to_owned),
            reason: Some("what the agent said of it".into()),
            turn: None,
            stopped: Vec::new(),
            said: Vec::new(),
            inputs: vec![InputId(Uuid::nil())],
            compacts: false,
            time: TIME.plus_ms(40),
        })
    }

    fn kinds(events: &[TelemetryEvent]) -> Vec<&'static str> {
        events.iter().map(|event| event.kind.as_str()).collect()
    }

    #[test]
    fn the_end_of_a_turn_tells_of_each_message_how_it_went() {
        let tally = RunTally::default();
        for (end, code, kind, error) in [
            (TurnEnd::Replied, None, "message.processed", None),
            (TurnEnd::Completed, None, "message.processed", None),
            (
                TurnEnd::Failed,
                Some("model-unavailable"),
                "message.failed",
                Some((ErrorCategory::LlmRequestFailed, true)),
            ),
            (
                TurnEnd::Failed,
                Some("out of ideas"),
                "message.failed",
                Some((ErrorCategory::MessageProcessingFailed, false)),
            ),
            (
                TurnEnd::Aborted,
                Some("aborted"),
                "message.failed",
                Some((ErrorCategory::MessageProcessingFailed, false)),
            ),
        ] {
            let events = telemetry_of(
                &recorded(run_ended(end, code), Some(RunId(Uuid::nil()))),
                &tally,
            );
            assert_eq!(kinds(&events), [kind], "{code:?}");
            let event = &events[0];
            assert_eq!(event.data["input_id"], json!(Uuid::nil().to_string()));
            assert_eq!(event.data["tool_call_count"], json!(0));
            assert!(event.data["duration_ms"].is_u64(), "{event:?}");
            let said = event.error.as_ref();
            assert_eq!(
                said.map(|error| (error.category, error.retryable)),
                error,
                "{code:?}"
            );
            assert!(!format!("{event:?}").contains("what the agent said"));
        }
    }

    #[test]
    fn a_message_that_no_turn_answers_is_told_of_once() {
        let tally = RunTally::default();
        let dead = || {
            Event::InputDead(InputDead {
                input: InputId(Uuid::nil()),
                session: session(1),
                reason: "words of a user".into(),
                time: TIME,
            })
        };
        assert_eq!(
            kinds(&telemetry_of(&recorded(dead(), None), &tally)),
            ["message.failed"]
        );
        // The end of the run that had claimed it tells of it.
        assert!(telemetry_of(&recorded(dead(), Some(RunId(Uuid::nil()))), &tally).is_empty());
        let dropped = Event::InputsDropped(InputsDropped {
            session: session(1),
            inputs: vec![InputId(Uuid::from_u128(1)), InputId(Uuid::from_u128(2))],
            overflow: Overflow::default(),
            time: TIME,
        });
        assert_eq!(
            kinds(&telemetry_of(&recorded(dropped, None), &tally)),
            ["message.failed", "message.failed"]
        );
    }

    #[test]
    fn a_step_that_fails_and_an_agent_that_goes_are_told_of() {
        let tally = RunTally::default();
        let failed = Event::StepFailed(StepFailed {
            run: RunId(Uuid::nil()),
            step: 2,
            attempt: 1,
            outcome: StepFault::Trapped,
            detail: "words of the guest".into(),
            usage: CallUsage::default(),
            time: TIME,
        });
        let events = telemetry_of(&recorded(failed, Some(RunId(Uuid::nil()))), &tally);
        assert_eq!(kinds(&events), ["error"]);
        assert_eq!(events[0].error.as_ref().unwrap().code, "trapped");
        for fault in StepFault::ALL {
            assert!(find(fault.as_str()).is_some(), "`{fault}` is an error code");
        }
        assert!(!format!("{events:?}").contains("words of the guest"));
        let archived = Event::AgentArchived(AgentArchived {
            agent: agent(1),
            path: "/ada/agent/old".parse().unwrap(),
            reason: "old".into(),
            archived_at: TIME,
        });
        let gone = telemetry_of(&recorded(archived, None), &tally);
        assert_eq!(kinds(&gone), ["agent.unregistered", "agent.shutdown"]);
        assert!(gone.iter().all(|it| it.data["path"] == "/ada/agent/old"));
        let mut erased = recorded(run_ended(TurnEnd::Replied, None), None);
        erased.event = None;
        assert!(telemetry_of(&erased, &tally).is_empty());
    }

    #[test]
    fn a_pattern_selects_the_kinds_that_it_matches() {
        for (pattern, found) in [
            ("llm.*", 6),
            ("*", TelemetryKind::ALL.len()),
            ("*.failed", 1),
            ("tool.call_*", 3),
            ("error", 1),
            ("agent.*ed", 3),
        ] {
            assert_eq!(kinds_matching(pattern).unwrap().len(), found, "{pattern}");
        }
        for pattern in ["", "llm", "LLM.*", "nothing.*"] {
            let reported = kinds_matching(pattern).unwrap_err();
            assert!(reported.contains("llm.stream_chunk"), "{reported}");
        }
    }

    #[test]
    fn a_filter_selects_by_agent_session_and_kind_together() {
        let event = |subject| TelemetryEvent::new(TelemetryKind::LlmError, subject, TIME);
        let own = Subject {
            agent: Some(agent(1)),
            session: Some(session(1)),
            run: None,
        };
        let of_host = Subject::default();
        for (agent_asked, session_asked, kinds, subject, is_selected) in [
            (None, None, vec![], own, true),
            (Some(agent(1)), None, vec![], own, true),
            (Some(agent(2)), None, vec![], own, false),
            (None, Some(session(2)), vec![], own, false),
            (Some(agent(1)), Some(session(1)), vec![], own, true),
            (None, None, vec![TelemetryKind::LlmError], own, true),
            (None, None, vec![TelemetryKind::Error], own, false),
            // The whole host includes what was asked for.
            (Some(agent(2)), None, vec![], of_host, true),
            (
                Some(agent(2)),
                None,
                vec![TelemetryKind::Error],
                of_host,
                false,
            ),
        ] {
            let filter = TelemetryFilter {
                agent: agent_asked,
                session: session_asked,
                kinds,
            };
            assert_eq!(filter.selects(&event(subject)), is_selected, "{filter:?}");
        }
    }
}
