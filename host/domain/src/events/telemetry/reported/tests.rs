//! Tests of the telemetry of calls of tools.

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
fn reported_of_delegation(operation: &Operation, result: &str, state: TaskState) -> TelemetryEvent {
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
    let arguments = r#"{"target":"worker","operation":"read_file","parameters":{"path":"a.txt"}}"#;
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
