//! Tests of answers, and of questions that are withdrawn.

use super::super::tests::{T, agent, call, execution, question, with_session};
use super::*;
use serde_json::json;

fn value() -> Kept {
    Kept::Value(json!({ "index": 1 }))
}

fn waiting() -> Agent {
    let agent = with_session();
    agent.after(
        &agent
            .suspend_execution(execution(), question(1), T)
            .unwrap(),
    )
}

#[test]
fn the_answer_to_the_only_question_resumes_and_counts_once() {
    let agent = waiting();
    let event = agent.answered(call(1), value(), Timestamp(9)).unwrap();
    assert!(matches!(event, Event::ExecutionResumed(_)));
    let after = agent.after(&event);
    assert!(!after.is_suspended());
    assert_eq!(
        (after.total_interactions, after.last_interaction_at),
        (1, Some(Timestamp(9)))
    );
    assert_eq!(after.active_session.as_ref().unwrap().interactions, 1);
    let again = after.answered(call(1), value(), T).unwrap_err();
    assert_eq!(
        (again.code.as_str(), again.message.as_str()),
        ("NOT_SUSPENDED", "Cannot resume: agent is not suspended")
    );
}

#[test]
fn the_answer_to_one_of_several_leaves_the_others_waiting() {
    let agent = waiting();
    let agent = agent.after(&agent.request_client_action(question(2), T).unwrap());
    let event = agent.answered(call(1), value(), T).unwrap();
    assert!(matches!(event, Event::ResponseReceived(_)));
    let after = agent.after(&event);
    assert_eq!(
        after
            .active_session
            .as_ref()
            .unwrap()
            .phase
            .pending()
            .count(),
        1
    );
    let done = after.after(&after.answered(call(2), value(), T).unwrap());
    assert_eq!((done.is_suspended(), done.total_interactions), (false, 2));
}

#[test]
fn an_answer_to_something_else_is_refused_in_the_designs_words() {
    for refused in [
        waiting().resume_execution(call(7), value(), T),
        waiting().receive_client_response(call(7), value(), T),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code.as_str(), "INVALID_TOOL_CALL_ID");
        assert_eq!(
            refused.message,
            format!(
                "Response tool_call_id {} doesn't match pending {}",
                call(7),
                call(1)
            )
        );
    }
}

#[test]
fn an_answer_to_nothing_is_refused_in_the_designs_words() {
    let refused = agent()
        .receive_client_response(call(1), value(), T)
        .unwrap_err();
    assert_eq!(
        refused.message,
        "Cannot receive response: no active session"
    );
    let refused = with_session()
        .receive_client_response(call(1), value(), T)
        .unwrap_err();
    assert_eq!(
        refused.message,
        "Cannot receive response: no pending action"
    );
    assert_eq!(
        agent()
            .resume_execution(call(1), value(), T)
            .unwrap_err()
            .message,
        "Cannot resume: agent is not suspended"
    );
}

#[test]
fn a_withdrawn_question_is_no_interaction() {
    let agent = waiting();
    let after = agent.after(
        &agent
            .withdraw_action(call(1), Withdrawal::TimedOut, T)
            .unwrap(),
    );
    assert_eq!((after.is_suspended(), after.total_interactions), (false, 0));
    assert_eq!(
        after.withdraw_action(call(1), Withdrawal::Cancelled, T),
        None
    );
}
