//! Questions of agents and of tools, approvals, and the answers to them.

use super::*;
use crate::work::approval::{Approval, Exact};

#[test]
fn an_answer_must_name_the_question_that_waits() {
    let action = free_text();
    let ask = Request {
        key: "q".into(),
        work: Work::Client(action),
    };
    let (run, _) = first_step(wait(vec![ask], Until::Any));
    let id = run.by_key("q").unwrap().operation.id;
    let wrong = OperationId::mint(run.started.run, 9, "q");
    assert_eq!(
        answer(&run, wrong, &UserId::local(), json!(1), NOW)
            .unwrap_err()
            .code,
        "INVALID_TOOL_CALL_ID"
    );
    let (event, _, _) = answer(&run, id, &UserId::local(), json!(1), NOW).unwrap();
    let run = run.apply(&event).unwrap();
    assert_eq!(
        answer(&run, id, &UserId::local(), json!(1), NOW)
            .unwrap_err()
            .code,
        "NOT_SUSPENDED"
    );
    assert!(wakes(&run, &[], false));
}

#[test]
fn an_approved_call_that_is_not_begun_in_time_has_expired() {
    let until = NOW.plus_ms(500);
    let run = with_two_calls(EffectClass::NonIdempotent);
    let mut open = run.by_key("call-2-0").unwrap().clone();
    let Performer::Tool {
        component,
        tool,
        arguments,
        ..
    } = &open.operation.performer
    else {
        panic!("a tool's call")
    };
    let exact = Exact {
        operation: open.operation.id,
        component: *component,
        tool,
        arguments,
    };
    open.operation.approval = Some(Box::new(Approval::new(&exact, "files", "worker", until)));
    open.pause = Pause::None;
    assert_eq!(
        next(&open, NOW.plus_ms(499)),
        Next::Perform { record_first: true }
    );
    let Next::Settle(settled) = next(&open, until) else {
        panic!("it is performed")
    };
    assert!(
        matches!(settled.outcome, OperationOutcome::Failed { failure } if failure.code == "approval-expired")
    );
    // Begun in time, it goes on.
    open.segment = 1;
    assert_eq!(next(&open, until), Next::Perform { record_first: true });
}

/// A run of which a tool asks what `segment` waits with.
fn asked_by_a_tool(segment: u32, until: Option<Timestamp>) -> (Run, OperationId) {
    let action = free_text();
    let run = with_two_calls(EffectClass::Idempotent);
    let operation = run.by_key("call-2-0").unwrap().operation.id;
    let asking = continuing(
        operation,
        segment,
        Pause::Asking {
            tool: "notes_add".to_owned(),
            action: Box::new(action),
            until,
            since: NOW,
        },
    );
    (
        run.apply(&Event::OperationContinued(asking)).unwrap(),
        operation,
    )
}

#[test]
fn the_deadline_of_a_run_stands_still_from_a_question_to_its_answer() {
    let (mut run, call) = asked_by_a_tool(1, None);
    run.started.deadline = Some(NOW.plus_ms(60_000));
    assert_eq!(run.deadline(), None, "a person is asked");
    let later = NOW.plus_ms(600_000);
    let (event, ..) = answer(&run, call, &UserId::local(), json!(1), later).unwrap();
    let run = run.apply(&event).unwrap();
    assert_eq!(run.deadline(), Some(NOW.plus_ms(660_000)));
    // It is known from a snapshot too.
    let stored: Run = serde_json::from_value(json!(run)).unwrap();
    assert_eq!(stored.deadline(), run.deadline());
}

#[test]
fn an_answer_that_is_sent_twice_never_answers_what_a_tool_asks_next() {
    let (first, call) = asked_by_a_tool(1, None);
    assert!(
        answer(&first, call, &UserId::local(), json!(1), NOW).is_ok(),
        "what it asks first has the id of the call"
    );
    let (second, call) = asked_by_a_tool(2, None);
    let refused = answer(&second, call, &UserId::local(), json!(1), NOW).unwrap_err();
    let next = call.question(2);
    assert_eq!(
        (
            refused.code.as_str(),
            refused.message.contains(&next.to_string())
        ),
        ("INVALID_TOOL_CALL_ID", true)
    );
    let (event, ..) = answer(&second, next, &UserId::local(), json!(2), NOW).unwrap();
    let Event::OperationAnswered(answered) = &event else {
        panic!("{event:?}")
    };
    assert_eq!(answered.operation, call, "the answer is the call's");
}

#[test]
fn what_a_tool_asks_has_its_time_and_the_call_is_timed_out_after_it() {
    let due = NOW.plus_ms(100);
    let (run, call) = asked_by_a_tool(1, Some(due));
    let open = &run.open[&call];
    assert_eq!(next(open, NOW), Next::Wait { until: Some(due) });
    let Next::Settle(settled) = next(open, due) else {
        panic!("it waits on")
    };
    assert_eq!(settled.outcome, OperationOutcome::TimedOut);
}

#[test]
fn a_long_answer_is_kept_as_a_blob_whoever_asked() {
    let action = free_text();
    let ask = Request {
        key: "q".into(),
        work: Work::Client(action.clone()),
    };
    let (run, _) = first_step(wait(vec![ask], Until::Any));
    let essay = json!({ "essay": "x".repeat(1 << 20) });
    let (event, _, blobs) = answer(
        &run,
        run.by_key("q").unwrap().operation.id,
        &UserId::local(),
        essay.clone(),
        NOW,
    )
    .unwrap();
    assert_eq!(blobs, [essay.to_string().into_bytes()]);
    assert!(
        serde_json::to_string(&event).unwrap().len() < 16 << 10,
        "the event keeps edges and a reference"
    );
    let run = run.apply(&event).unwrap();
    assert!(
        run.shown.contains(&Digest::of(&blobs[0])),
        "the agent may read it"
    );

    let run = with_two_calls(EffectClass::Idempotent);
    let operation = run.by_key("call-2-0").unwrap().operation.id;
    let asking = continuing(
        operation,
        1,
        Pause::Asking {
            tool: "notes_add".to_owned(),
            action: Box::new(action),
            until: None,
            since: NOW,
        },
    );
    let run = run.apply(&Event::OperationContinued(asking)).unwrap();
    let (event, _, blobs) = answer(&run, operation, &UserId::local(), essay, NOW).unwrap();
    assert!(
        serde_json::to_string(&event).unwrap().len() < 1 << 10,
        "the tool gets the whole when it is called again"
    );
    let run = run.apply(&event).unwrap();
    assert_eq!(
        run.by_key("call-2-0").unwrap().answer,
        Some(Kept::Blob(Digest::of(&blobs[0])))
    );
}
