//! The calls that agents make of each other, by tables.

use super::{
    Answered, CALLS_REPORTED_MAX, Messaged, Mode, Reachable, THINKING_BYTES_MAX, ToolCall, Which,
    Whom, definitions, dispatch, message, reply,
};
use crate::agents::definition::DefinitionId;
use crate::agents::external::ExternalName;
use crate::thread::message::{Part, text_of};
use crate::values::digest::Digest;
use crate::values::error_code::INVALID_ARGUMENTS;
use crate::values::id::{InputId, SessionId};
use crate::values::limits::{INLINE_TEXT_BYTES_MAX, INPUT_BYTES_MAX};
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

/// The arguments of a call with some of them changed.
fn with(mut arguments: Value, changes: &Value) -> Map<String, Value> {
    let changes = changes.as_object().unwrap().clone();
    arguments.as_object_mut().unwrap().extend(changes);
    object(arguments)
}

fn dispatched(changes: &Value) -> Map<String, Value> {
    with(json!({ "target": "w", "content": "x" }), changes)
}

fn messaged_with(changes: &Value) -> Map<String, Value> {
    with(json!({ "agentId": "a", "content": "x" }), changes)
}

fn definition(id: &str) -> Whom {
    Whom::Definition(DefinitionId(id.to_owned()))
}

#[test]
fn a_dispatch_names_a_kind_of_agent_a_path_or_an_id_and_waits_only_when_it_says_so() {
    let path = Whom::Path("/ada/agent/a".into());
    for (changes, target, wait, timeout_ms) in [
        (json!({}), definition("w"), false, None),
        (
            json!({ "target": "/ada/agent/a", "wait": true }),
            path,
            true,
            None,
        ),
        (
            json!({ "target": ID, "wait": null }),
            Whom::Agent(ID.parse().unwrap()),
            false,
            None,
        ),
        (
            json!({ "timeout": 2.9 }),
            definition("w"),
            false,
            Some(2_000),
        ),
    ] {
        let call = dispatch(dispatched(&changes)).unwrap_or_else(|error| panic!("{error}"));
        let found = (call.target, call.wait, call.timeout_ms, call.budget);
        assert_eq!(
            found,
            (target, wait, timeout_ms, Budget::default()),
            "{changes}"
        );
    }
    let limited = json!({ "tokens": 5, "calls": 0, "cost_micros": 8, "wall_s": 9 });
    let call = dispatch(dispatched(&json!({ "timeout": 60, "budget": limited }))).unwrap();
    let budget = Budget {
        tokens: Some(5),
        calls: Some(0),
        cost_micros: Some(8),
    };
    assert_eq!((call.timeout_ms, call.budget), (Some(9_000), budget));
}

/// A message goes to the latest session or a new one and waits five minutes unless it says
/// otherwise.
#[test]
fn a_message_goes_to_the_latest_session_or_a_new_one_and_waits_five_minutes() {
    let named = "w-1".parse::<ExternalName>().unwrap().session();
    for (session, expected) in [
        (Value::Null, Which::LatestOrCreate),
        (json!("latest"), Which::Latest),
        (json!("create"), Which::Create),
        (json!("latest-or-create"), Which::LatestOrCreate),
        (json!(ID), Which::Id(ID.parse().unwrap())),
        (json!("w-1"), Which::Id(named)),
    ] {
        let call = message(messaged_with(&json!({ "session": session }))).unwrap();
        let found = (call.session, call.mode, call.timeout_s);
        assert_eq!(found, (expected, Mode::Sync, 300), "{session}");
    }
    for (changes, mode, timeout_s) in [
        (json!({ "mode": "async" }), Mode::Async, 300),
        (json!({ "mode": "sync", "timeout": 7 }), Mode::Sync, 7),
        (json!({ "timeout": 1.5 }), Mode::Sync, 1),
    ] {
        let call = message(messaged_with(&changes)).unwrap();
        assert_eq!((call.mode, call.timeout_s), (mode, timeout_s), "{changes}");
    }
}

#[test]
fn what_is_wrong_with_a_call_is_named_with_what_would_be_right() {
    let long = "x".repeat(INPUT_BYTES_MAX + 1);
    let refused = |arguments| {
        let refused = dispatch(arguments).unwrap_err();
        assert_eq!(refused.code(), INVALID_ARGUMENTS, "{refused}");
        refused.to_string()
    };
    assert!(refused(Map::new()).contains("`target` is missing"));
    assert!(refused(object(json!({ "target": "w" }))).contains("`content` is missing"));
    let money = "`money` is not an argument of a budget";
    for (name, value, reported) in [
        ("target", json!(1), "`target` must be text"),
        ("target", json!(" "), "`target` must not be empty"),
        ("content", json!(""), "`content` must not be empty"),
        ("content", json!(long), "longer than"),
        ("wait", json!("yes"), "`wait` must be true or false"),
        ("timeout", json!(0), "seconds from 1 to 86400"),
        ("timeout", json!(86_401), "seconds from 1 to 86400"),
        ("timeout", json!(-1), "seconds from 1 to 86400"),
        ("timeout", json!(1e300), "seconds from 1 to 86400"),
        ("budget", json!(5), "`budget` must be an object"),
        ("budget", json!({ "tokens": 0 }), "`tokens` must be a whole"),
        ("budget", json!({ "money": 1 }), money),
        ("to", json!("y"), "not an argument of dispatch_to_agent"),
    ] {
        let refused = refused(dispatched(&json!({ name: value })));
        assert!(refused.contains(reported), "{reported}: {refused}");
    }
    let refused = |arguments| message(arguments).unwrap_err().to_string();
    assert!(refused(object(json!({ "content": "x" }))).contains("`agentId` is missing"));
    for (name, value, reported) in [
        ("agentId", json!(""), "`agentId` must not be empty"),
        ("session", json!(""), "`session` must be"),
        ("session", json!("the newest"), "`session` must be"),
        ("mode", json!("later"), "`mode` must be `sync` or `async`"),
        ("timeout", json!(0.5), "seconds from 1"),
        ("target", json!("y"), "not an argument of agents_message"),
    ] {
        let refused = refused(messaged_with(&json!({ name: value })));
        assert!(refused.contains(reported), "{reported}: {refused}");
    }
    assert!(reply(object(json!({ "content": "done" }))).is_ok());
    let refused = reply(object(json!({ "content": "done", "to": "x" }))).unwrap_err();
    let expected = "not an argument of reply_to_caller";
    assert!(refused.to_string().contains(expected), "{refused}");
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

fn messaged() -> Messaged {
    Messaged {
        definition: DefinitionId("a".into()),
        session_name: "Plans".into(),
        created: true,
        timeout_s: 5,
    }
}

const SESSION: SessionId = SessionId(Uuid::from_bytes([1; 16]));
const INPUT: InputId = InputId(Uuid::from_bytes([2; 16]));

/// Returns a result with its mode and status, and the fields that stand in every one.
fn base(mode: &str, status: &str) -> Value {
    json!({
        "mode": mode, "status": status, "agentId": "a", "sessionId": SESSION,
        "sessionName": "Plans", "created": true, "responseId": INPUT,
    })
}

fn call_of(name: &str, duration_ms: u64) -> ToolCall {
    ToolCall {
        name: name.to_owned(),
        duration_ms,
    }
}

#[test]
fn a_result_is_written_as_the_design_writes_it() {
    let shown = |result: String| serde_json::from_str::<Value>(&result).unwrap();
    assert_eq!(
        shown(messaged().started(SESSION, INPUT).to_string()),
        base("async", "started")
    );
    let answered = Answered {
        parts: vec![Part::text("yes")],
        thinking: "hm".into(),
        calls: vec![call_of("read_file", 7), call_of("put", 0)],
        call_count: 3,
        duration_ms: 12,
    };
    let (parts, blob) = messaged().complete(SESSION, INPUT, answered);
    let mut expected = base("sync", "complete");
    for (name, value) in [
        ("response", json!("yes")),
        ("durationMs", json!(12)),
        ("toolCallCount", json!(3)),
        (
            "toolCalls",
            json!([{ "name": "read_file", "durationMs": 7 }, { "name": "put", "durationMs": 0 }]),
        ),
        ("thinkingText", json!("hm")),
    ] {
        expected[name] = value;
    }
    assert_eq!((shown(text_of(&parts)), blob), (expected, None));
    // What there is nothing of is left out.
    let plain = Answered {
        parts: vec![Part::text("yes")],
        ..Answered::default()
    };
    let (parts, _) = messaged().complete(SESSION, INPUT, plain);
    let plain = shown(text_of(&parts));
    for absent in ["toolCalls", "thinkingText", "truncated", "blob"] {
        assert!(plain.get(absent).is_none(), "{absent}: {plain}");
    }
    let mut expected = base("sync", "timeout");
    expected["timeoutSeconds"] = json!(5);
    let mut timeout = shown(messaged().timeout(SESSION, INPUT).to_string());
    let reported = timeout.as_object_mut().unwrap().remove("message").unwrap();
    assert!(
        reported.as_str().unwrap().contains("still at work"),
        "{reported}"
    );
    assert_eq!(timeout, expected);
}

#[test]
fn a_result_of_a_message_is_json_within_the_limit_however_long_the_answer_is() {
    let file = Part::Blob {
        digest: Digest::of(b"file"),
        media_type: "image/png".into(),
        size: 4,
    };
    let fits = "x".repeat(INLINE_TEXT_BYTES_MAX / 2);
    let long = format!("begin{}end", "ä".repeat(60_000));
    let list = json!(["begin", "x".repeat(40_000)]).to_string();
    let escaped = "\u{1}".repeat(30_000);
    for (text, is_cut) in [
        ("short", false),
        (fits.as_str(), false),
        (long.as_str(), true),
        (list.as_str(), true),
        (escaped.as_str(), true),
    ] {
        let answered = Answered {
            parts: vec![Part::text(text), file.clone()],
            thinking: "\u{2}".repeat(THINKING_BYTES_MAX),
            calls: (0..100).map(|at| call_of("some_tool", at)).collect(),
            call_count: 100,
            duration_ms: 1,
        };
        let (parts, bytes) = messaged().complete(SESSION, INPUT, answered);
        let reported = text_of(&parts);
        assert!(
            reported.len() <= INLINE_TEXT_BYTES_MAX,
            "{}",
            reported.len()
        );
        let result: Value = serde_json::from_str(&reported).unwrap();
        assert_eq!(result["toolCallCount"], 100);
        assert_eq!(
            result["toolCalls"].as_array().map(Vec::len),
            Some(CALLS_REPORTED_MAX)
        );
        assert!(
            result["thinkingText"].as_str().unwrap().ends_with('…'),
            "it says that it goes on"
        );
        assert_eq!(parts.last(), Some(&file), "the answer's own blobs stay");
        let response = result["response"].as_str().unwrap();
        if !is_cut {
            assert_eq!((response, bytes, parts.len()), (text, None, 2));
            assert!(result.get("truncated").is_none());
            continue;
        }
        assert_eq!(result["truncated"], true);
        let digest = Digest::of(text.as_bytes());
        assert_eq!(
            result["blob"],
            json!({ "digest": digest.reference(), "bytes": text.len() })
        );
        assert_eq!(bytes.as_deref(), Some(text.as_bytes()), "it is kept whole");
        assert!(
            matches!(&parts[1], Part::Blob { digest: of, .. } if *of == digest),
            "{parts:?}"
        );
        assert!(
            response.starts_with(&text[..5]) && response.ends_with(&text[text.len() - 3..]),
            "{response}"
        );
    }
}
