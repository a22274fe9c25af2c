//! The calls that agents make of each other, by tables.

use super::{
    INVALID_ARGUMENTS, Messaged, Mode, RESPONSE_BYTES_MAX, Reachable, Which, Whom, definitions,
    dispatch, message, reply,
};
use crate::agents::definition::DefinitionId;
use crate::values::id::{InputId, SessionId};
use crate::values::limits::INPUT_BYTES_MAX;
use crate::work::budget::Budget;
use serde_json::{Map, Value, json};
use uuid::Uuid;

const ID: &str = "00000000-0000-4000-8000-000000000001";

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else {
        panic!("{value} is no object")
    };
    map
}

fn definition(id: &str) -> Whom {
    Whom::Definition(DefinitionId(id.to_owned()))
}

#[test]
fn a_dispatch_names_a_kind_of_agent_a_path_or_an_id_and_waits_only_when_it_says_so() {
    for (arguments, target, wait, timeout_ms, budget) in [
        (
            json!({ "target": "worker", "content": "x" }),
            definition("worker"),
            false,
            None,
            Budget::default(),
        ),
        (
            json!({ "target": "/ada/agent/a", "content": "x", "wait": true }),
            Whom::Path("/ada/agent/a".into()),
            true,
            None,
            Budget::default(),
        ),
        (
            json!({ "target": ID, "content": "x", "wait": null }),
            Whom::Agent(ID.parse().unwrap()),
            false,
            None,
            Budget::default(),
        ),
        (
            json!({ "target": "w", "content": "x", "timeout": 2.9 }),
            definition("w"),
            false,
            Some(2_000),
            Budget::default(),
        ),
        (
            json!({ "target": "w", "content": "x", "timeout": 60, "budget": { "tokens": 5, "calls": 0, "cost_micros": 8, "wall_s": 9 } }),
            definition("w"),
            false,
            Some(9_000),
            Budget {
                tokens: Some(5),
                calls: Some(0),
                cost_micros: Some(8),
            },
        ),
    ] {
        let call = dispatch(object(arguments.clone()))
            .unwrap_or_else(|error| panic!("{arguments}: {error}"));
        assert_eq!(
            (call.target, call.wait, call.timeout_ms, call.budget),
            (target, wait, timeout_ms, budget),
            "{arguments}"
        );
    }
}

/// A message goes to the latest session or a new one and waits five minutes unless it says
/// otherwise.
#[test]
fn a_message_goes_to_the_latest_session_or_a_new_one_and_waits_five_minutes() {
    for (arguments, session, mode, timeout_s) in [
        (
            json!({ "agentId": "a", "content": "x" }),
            Which::LatestOrCreate,
            Mode::Sync,
            300,
        ),
        (
            json!({ "agentId": "a", "content": "x", "session": "latest" }),
            Which::Latest,
            Mode::Sync,
            300,
        ),
        (
            json!({ "agentId": "a", "content": "x", "session": "create", "mode": "async" }),
            Which::Create,
            Mode::Async,
            300,
        ),
        (
            json!({ "agentId": "a", "content": "x", "session": "latest-or-create", "timeout": 1.5 }),
            Which::LatestOrCreate,
            Mode::Sync,
            1,
        ),
        (
            json!({ "agentId": "a", "content": "x", "session": ID, "mode": "sync", "timeout": 7 }),
            Which::Id(ID.parse().unwrap()),
            Mode::Sync,
            7,
        ),
    ] {
        let call = message(object(arguments.clone()))
            .unwrap_or_else(|error| panic!("{arguments}: {error}"));
        assert_eq!(
            (call.session, call.mode, call.timeout_s),
            (session, mode, timeout_s),
            "{arguments}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_call_is_named_with_what_would_be_right() {
    let long = "x".repeat(INPUT_BYTES_MAX + 1);
    for (arguments, told) in [
        (json!({}), "`target` is missing"),
        (json!({ "target": 1 }), "`target` must be text"),
        (
            json!({ "target": " ", "content": "x" }),
            "`target` must not be empty",
        ),
        (json!({ "target": "w" }), "`content` is missing"),
        (
            json!({ "target": "w", "content": "" }),
            "`content` must not be empty",
        ),
        (json!({ "target": "w", "content": long }), "longer than"),
        (
            json!({ "target": "w", "content": "x", "wait": "yes" }),
            "`wait` must be true or false",
        ),
        (
            json!({ "target": "w", "content": "x", "timeout": 0 }),
            "seconds from 1 to 86400",
        ),
        (
            json!({ "target": "w", "content": "x", "timeout": 86_401 }),
            "seconds from 1 to 86400",
        ),
        (
            json!({ "target": "w", "content": "x", "timeout": -1 }),
            "seconds from 1 to 86400",
        ),
        (
            json!({ "target": "w", "content": "x", "timeout": 1e300 }),
            "seconds from 1 to 86400",
        ),
        (
            json!({ "target": "w", "content": "x", "budget": 5 }),
            "`budget` must be an object",
        ),
        (
            json!({ "target": "w", "content": "x", "budget": { "tokens": 0 } }),
            "`tokens` must be a whole number from 1",
        ),
        (
            json!({ "target": "w", "content": "x", "budget": { "money": 1 } }),
            "`money` is not an argument of a budget",
        ),
        (
            json!({ "target": "w", "content": "x", "to": "y" }),
            "`to` is not an argument of dispatch_to_agent",
        ),
    ] {
        let refused = dispatch(object(arguments.clone())).unwrap_err();
        assert!(
            refused.to_string().contains(told) && refused.code() == INVALID_ARGUMENTS,
            "{told}: {refused}"
        );
    }
    for (arguments, told) in [
        (json!({ "content": "x" }), "`agentId` is missing"),
        (
            json!({ "agentId": "", "content": "x" }),
            "`agentId` must not be empty",
        ),
        (
            json!({ "agentId": "a", "content": "x", "session": "" }),
            "`session` must be",
        ),
        (
            json!({ "agentId": "a", "content": "x", "session": "newest" }),
            "`session` must be",
        ),
        (
            json!({ "agentId": "a", "content": "x", "mode": "later" }),
            "`mode` must be `sync` or `async`",
        ),
        (
            json!({ "agentId": "a", "content": "x", "timeout": 0.5 }),
            "seconds from 1",
        ),
        (
            json!({ "agentId": "a", "content": "x", "target": "y" }),
            "`target` is not an argument of agents_message",
        ),
    ] {
        let refused = message(object(arguments.clone())).unwrap_err();
        assert!(refused.to_string().contains(told), "{told}: {refused}");
    }
    assert!(reply(object(json!({ "content": "done" }))).is_ok());
    assert!(
        reply(object(json!({ "content": "done", "to": "x" })))
            .unwrap_err()
            .to_string()
            .contains("not an argument of reply_to_caller")
    );
}

/// The tools are shown to whoever reaches somebody and the reply to whoever may be called.
#[test]
fn the_tools_are_shown_to_callers_and_the_reply_to_those_who_may_be_called() {
    let names = |reachable: &[Reachable<'_>], called| {
        definitions(reachable, called)
            .into_iter()
            .map(|tool| tool.name)
            .collect::<Vec<_>>()
    };
    let other = [Reachable {
        id: "other",
        description: Some("does the rest"),
    }];
    assert_eq!(
        names(&other, true),
        ["agents_message", "dispatch_to_agent", "reply_to_caller"]
    );
    assert_eq!(
        names(&other, false),
        ["agents_message", "dispatch_to_agent"]
    );
    assert_eq!(names(&[], true), ["reply_to_caller"]);
    assert!(names(&[], false).is_empty());
    assert!(
        definitions(&other, false)
            .iter()
            .all(|tool| tool.description.ends_with("\nother: does the rest"))
    );
}

#[test]
fn a_result_is_written_as_the_design_writes_it() {
    let messaged = Messaged {
        definition: DefinitionId("a".into()),
        session_name: "Plans".into(),
        created: true,
        timeout_s: 5,
    };
    let session = SessionId(Uuid::from_bytes([1; 16]));
    let input = InputId(Uuid::from_bytes([2; 16]));
    let base = |mode: &str, status: &str| json!({ "mode": mode, "status": status, "agentId": "a", "sessionId": session, "sessionName": "Plans", "created": true, "responseId": input });
    let shown = |result: String| serde_json::from_str::<Value>(&result).unwrap();
    assert_eq!(
        shown(messaged.started(session, input).to_string()),
        base("async", "started")
    );
    let complete = shown(messaged.complete(session, input, "yes", 12, 3).to_string());
    let mut expected = base("sync", "complete");
    (
        expected["response"],
        expected["durationMs"],
        expected["toolCallCount"],
    ) = (json!("yes"), json!(12), json!(3));
    assert_eq!(complete, expected);
    let timeout = shown(messaged.timeout(session, input).to_string());
    assert_eq!(
        (&timeout["status"], &timeout["timeoutSeconds"]),
        (&json!("timeout"), &json!(5))
    );
    let long = "ä".repeat(RESPONSE_BYTES_MAX);
    let cut = shown(messaged.complete(session, input, &long, 1, 0).to_string());
    assert_eq!(cut["truncated"], json!(true));
    assert_eq!(cut["response"].as_str().unwrap().len(), RESPONSE_BYTES_MAX);
}
