//! The telemetry that is told of stored events, and its selection.

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
