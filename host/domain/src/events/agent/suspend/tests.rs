//! Tests of questions to the client.

use super::super::tests::{T, agent, execution, question, with_session};
use super::*;

#[test]
fn a_suspended_session_waits_with_its_question_and_where_to_go_on() {
    let agent = with_session();
    let after = agent.after(
        &agent
            .suspend_execution(execution(), question(1), Timestamp(5_000))
            .unwrap(),
    );
    assert!(after.is_suspended() && !agent.is_suspended());
    let Phase::AwaitingClientAction {
        pending,
        further,
        execution: kept,
    } = after.active_session.unwrap().phase
    else {
        panic!()
    };
    assert_eq!(
        (*pending, further, kept),
        (question(1), vec![], execution())
    );
    assert_eq!(
        (after.updated_at, after.total_interactions),
        (Timestamp(5_000), 0)
    );
}

#[test]
fn further_questions_wait_behind_the_first() {
    let agent = with_session();
    assert_eq!(
        agent
            .request_client_action(question(2), T)
            .unwrap_err()
            .message,
        "Cannot request action: no execution state"
    );
    let agent = agent.after(
        &agent
            .suspend_execution(execution(), question(1), T)
            .unwrap(),
    );
    let agent = agent.after(&agent.request_client_action(question(2), T).unwrap());
    let session = agent.active_session.unwrap();
    assert_eq!(
        session.phase.pending().cloned().collect::<Vec<_>>(),
        [question(1), question(2)]
    );
}

#[test]
fn without_a_session_nothing_is_asked() {
    let refused = agent()
        .suspend_execution(execution(), question(1), T)
        .unwrap_err();
    assert_eq!(
        (refused.code.as_str(), refused.message.as_str()),
        ("NO_ACTIVE_SESSION", "Cannot suspend: no active session")
    );
    let refused = agent().request_client_action(question(1), T).unwrap_err();
    assert_eq!(
        (refused.code.as_str(), refused.message.as_str()),
        (
            "NO_ACTIVE_SESSION",
            "Cannot request action: no active session"
        )
    );
}

#[test]
fn an_execution_reads_as_it_was_written() {
    let text = serde_json::to_string(&execution()).unwrap();
    assert_eq!(
        serde_json::from_str::<Execution>(&text).unwrap(),
        execution()
    );
}
