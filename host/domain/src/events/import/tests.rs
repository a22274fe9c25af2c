//! Documents of the old system: read as they were written, or refused with the place of what is
//! wrong.

use super::*;
use crate::access::user::UserId;
use crate::agents::session::EndStatus;
use serde_json::json;

/// 2025-12-02, noon.
const NOW: Timestamp = Timestamp(1_764_676_800_000);

fn document(sessions: Vec<Value>) -> OldSessions {
    OldSessions {
        format: FORMAT.to_owned(),
        issuer: None,
        sessions,
    }
}

fn one(session: Value) -> OldSession {
    read(&document(vec![session]), NOW).unwrap().remove(0)
}

/// A session that has been completed: one item answered, one not, one answered in a widget.
fn session() -> Value {
    json!({
        "user_id": "alice", "session_id": "00000000-0000-4000-8000-000000000001",
        "conversation_id": "00000000-0000-4000-8000-000000000002", "session_type": "learning", "status": "completed",
        "items": [
            { "id": "i", "sequence": 1, "agent_prompt": "1 + 1?", "user_response": { "response": 2 }, "evaluation": { "correct": true },
              "completed_at": "2025-12-01T10:00:05+00:00" },
            { "id": "j", "sequence": 2, "agent_prompt": "2 + 2?", "user_response": null },
            { "agent_prompt": "3 + 3?", "user_response": { "index": 0 }, "response_time_ms": 42_000.0, "client_action": choice("c"),
              "completed_at": "2025-12-01T10:00:50+00:00" },
        ],
        "current_item_id": null, "pending_action": null, "ui_state": {}, "started_at": "2025-12-01T10:00:00",
        "completed_at": "2025-12-01T10:01:00+00:00", "terminated_reason": null,
    })
}

fn choice(call: &str) -> Value {
    json!({
        "tool_call_id": call, "tool_name": "ask", "widget_type": "multiple_choice", "lock_input": true,
        "props": { "prompt": "3 + 3?", "options": ["6", "7"] },
    })
}

/// The same while it waited for its client.
fn waiting() -> Value {
    let mut session = session();
    session["status"] = json!("awaiting_client_action");
    session["completed_at"] = Value::Null;
    session["pending_action"] = choice("p");
    session["ui_state"] = json!({ "chat_input_locked": true, "active_widget": choice("p"), "widget_partial_state": { "index": 1 } });
    session
}

/// A document of three sessions, of which the last is changed at a place.
fn changed(at: &str, value: &Value) -> Result<Vec<OldSession>, ImportFault> {
    let with = |n: u32| {
        let mut session = waiting();
        session["session_id"] = json!(format!("00000000-0000-4000-8000-{n:012}"));
        session
    };
    let mut last = with(3);
    let (parent, name) = at.rsplit_once('/').unwrap();
    match last.pointer_mut(parent).unwrap() {
        Value::Array(list) => list[name.parse::<usize>().unwrap()] = value.clone(),
        object => object[name] = value.clone(),
    }
    read(&document(vec![with(1), with(2), last]), NOW)
}

#[test]
fn an_old_session_is_read_as_the_old_system_wrote_it() {
    let old = one(session());
    let past = old.past("", NOW);
    assert_eq!(
        (
            past.status,
            past.terminated_reason.as_deref(),
            past.interactions
        ),
        (EndStatus::Completed, None, 2)
    );
    assert_eq!(past.completed_at.since_ms(past.started_at), 60_000);
    let [first, second, third] = old.items.as_slice() else {
        panic!("{old:?}")
    };
    let answered = first.answered.as_ref().unwrap();
    assert_eq!(
        (first.id.as_str(), &first.prompt, first.asked),
        ("i", &json!("1 + 1?"), None)
    );
    assert_eq!(
        (&answered.response, answered.time.since_ms(old.started_at)),
        (&json!(2), 5_000),
        "out of what it was wrapped in"
    );
    assert_eq!(
        (second.id.as_str(), &second.prompt, &second.answered),
        ("j", &json!("2 + 2?"), &None)
    );
    let shown = third.shown.as_ref().unwrap();
    assert_eq!(
        (
            third.id.as_str(),
            shown.action.widget.as_str(),
            &shown.action.props["options"][0]
        ),
        ("imported-3", "multiple_choice", &json!("6"))
    );
    let answered = third.answered.as_ref().unwrap();
    assert_eq!(
        (
            &answered.response,
            answered.time.since_ms(third.asked.unwrap())
        ),
        (&json!({ "index": 0 }), 42_000)
    );
}

#[test]
fn what_waited_for_its_client_stands_on_the_record_once_and_is_handed_to_the_agent() {
    let old = one(waiting());
    assert_eq!(
        old.items
            .iter()
            .map(|item| (item.id.as_str(), item.answered.is_some()))
            .collect::<Vec<_>>(),
        [
            ("i", true),
            ("j", false),
            ("imported-3", true),
            ("imported-4", false),
        ]
    );
    assert_eq!(old.items[3].prompt, json!("3 + 3?"));
    let mut handed = old.handed_over();
    let imported = handed.remove("imported").unwrap();
    assert!(handed.is_empty(), "it was opened with nothing else");
    assert_eq!(
        (
            &imported["pending_action"]["tool_call_id"],
            &imported["pending_action"]["props"]["options"]
        ),
        (&json!("p"), &json!(["6", "7"]))
    );
    assert_eq!(
        imported["ui_state"]["widget_partial_state"],
        json!({ "index": 1 })
    );
    let unanswered: Vec<&Value> = imported["unanswered"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["id"])
        .collect();
    assert_eq!(
        (unanswered, &imported["answered"]),
        (vec![&json!("j"), &json!("imported-4")], &json!(2))
    );

    // What is current, or shows the same, is what waits.
    let mut current = waiting();
    current["current_item_id"] = json!("j");
    let old = one(current);
    assert_eq!(
        (
            old.items.len(),
            &old.items[1].shown.as_ref().unwrap().action.widget
        ),
        (3, &"multiple_choice".to_owned())
    );
    let mut shown = waiting();
    shown["items"][1]["client_action"] = choice("another call");
    assert_eq!(one(shown).items.len(), 3);
}

#[test]
fn a_session_that_goes_on_has_what_is_left_of_its_own_time() {
    let limited = |status: &str, seconds: Value| {
        let mut old = waiting();
        old["status"] = json!(status);
        old["config"] = json!({ "lesson": 1, "time_limit_seconds": seconds });
        one(old)
    };
    let day = 26 * 3_600;
    for status in ["pending", "active", "awaiting_client_action"] {
        // It began 26 hours ago.
        assert_eq!(
            limited(status, json!(day + 60)).import_status(NOW),
            ImportStatus::GoesOn {
                left_ms: Some(60_000)
            }
        );
        assert_eq!(
            limited(status, json!(0)).import_status(NOW),
            ImportStatus::GoesOn { left_ms: None }
        );
        assert_eq!(
            limited(status, Value::Null).import_status(NOW),
            ImportStatus::GoesOn { left_ms: None }
        );
        let overdue = limited(status, json!(3_600));
        let since = overdue.started_at.plus_ms(3_600_000);
        assert_eq!(overdue.import_status(NOW), ImportStatus::Overdue(since));
        let past = overdue.past("", NOW);
        assert_eq!(
            (
                past.status,
                past.completed_at,
                past.terminated_reason.as_deref()
            ),
            (EndStatus::Terminated, since, Some("expired"))
        );
    }
    assert_eq!(
        limited("completed", json!(1)).import_status(NOW),
        ImportStatus::Ended
    );
    assert_eq!(
        limited("active", json!(day)).import_status(NOW),
        ImportStatus::Overdue(NOW),
        "to the second"
    );
}

#[test]
fn the_users_of_an_issuer_are_those_whom_its_tokens_mean() {
    let mut of_another = session();
    of_another["user_id"] = json!("auth0|5f7c8ec7");
    let refused = read(&document(vec![of_another.clone()]), NOW).unwrap_err();
    assert_eq!(refused.field, "/sessions/0/user_id", "it is no id here");
    for (claim, naming) in [
        ("auth0|5f7c8ec7", Naming::Plain),
        ("alice", Naming::Plain),
        ("alice", Naming::ByIssuer),
    ] {
        let issuer = "https://id.example".to_owned();
        of_another["user_id"] = json!(claim);
        let vouched_for = OldSessions {
            issuer: Some(Voucher {
                issuer: issuer.clone(),
                naming,
            }),
            ..document(vec![of_another.clone()])
        };
        assert_eq!(
            read(&vouched_for, NOW).unwrap()[0].user_id,
            UserId::of_claim(&issuer, claim, naming)
        );
    }
}

#[test]
fn whatever_cannot_be_meant_is_refused_with_its_place_and_the_fix() {
    for (at, value, says) in [
        ("/user_id", json!("a b"), "`a b` is no user id"),
        ("/user_id", Value::Null, "it is missing"),
        ("/session_id", json!("seven"), "`seven`"),
        (
            "/session_id",
            json!("00000000-0000-4000-8000-000000000001"),
            "/sessions/0 has the id",
        ),
        (
            "/conversation_id",
            json!(7),
            "a text is needed, this is a number",
        ),
        (
            "/session_type",
            json!(""),
            "a text of 1 to 64 bytes is needed, this one has 0",
        ),
        (
            "/status",
            json!("dancing"),
            "`dancing` is no status; there are: pending, active, awaiting_client_action",
        ),
        (
            "/started_at",
            json!("yesterday"),
            "`yesterday` is no time like",
        ),
        (
            "/started_at",
            json!("2025-12-02T13:00:00Z"),
            "which is after",
        ),
        (
            "/completed_at",
            json!("2025-12-01T09:59:59Z"),
            "which is before 2025-12-01T10:00:00.000Z",
        ),
        (
            "/config",
            json!({ "time_limit_seconds": -1 }),
            "a whole number from 0 to 31536000 is needed, this is -1",
        ),
        (
            "/config",
            json!({ "imported": {} }),
            "call it something else",
        ),
        (
            "/ui_state",
            json!("x"),
            "an object is needed, this is a text",
        ),
        (
            "/ui_state/chat_input_locked",
            json!("yes"),
            "true or false is needed",
        ),
        (
            "/pending_action/widget_type",
            json!("A b"),
            "1 to 64 of `a-z`",
        ),
        ("/pending_action/props/options", json!(["6"]), "2 to 100"),
        (
            "/pending_action/response_schema",
            json!(true),
            "an object is needed",
        ),
        ("/items", json!({}), "a list is needed, this is an object"),
        (
            "/items",
            json!(vec![json!({}); 1_001]),
            "at most 1000 are taken, these are 1001",
        ),
        (
            "/items/1",
            json!(7),
            "an object is needed, this is a number",
        ),
        (
            "/items/1/id",
            json!("i"),
            "item 0 of this session is called `i` too",
        ),
        ("/items/1/sequence", json!(1), "it is 1 and follows 1"),
        (
            "/items/1/started_at",
            json!("2025-12-01T09:00:00Z"),
            "which is before",
        ),
        ("/items/1/response_time_ms", json!(-5), "a number from 0"),
        (
            "/items/2/client_action",
            json!("x"),
            "an object is needed, this is a text",
        ),
        (
            "/items/2/client_action/props/prompt",
            json!(""),
            "1 to 8192",
        ),
        (
            "/items/2/client_action/props",
            json!([]),
            "an object is needed, this is a list",
        ),
        (
            "/items/0/user_response",
            json!({ "response": 2, "timestamp": "soon" }),
            "`soon` is no time",
        ),
    ] {
        let fault = changed(at, &value).unwrap_err();
        let inner = match (at, &value) {
            ("/config", Value::Object(config)) => format!("/{}", config.keys().next().unwrap()),
            ("/items/0/user_response", _) => "/timestamp".to_owned(),
            _ => String::new(),
        };
        assert_eq!(
            fault.field,
            format!("/sessions/2{at}{inner}"),
            "{value:.100}: {fault}"
        );
        assert!(fault.message.contains(says), "{at}: {fault}");
    }
    let too_large = json!({ "agent_prompt": "?", "user_response": "x".repeat(1 << 20) });
    assert_eq!(
        changed("/items/1", &too_large).unwrap_err().field,
        "/sessions/2/items/1"
    );
    let mut late = waiting();
    late["items"][0]["started_at"] = json!("2025-12-01T10:00:06Z");
    let fault = read(&document(vec![late]), NOW).unwrap_err();
    assert_eq!(
        fault.field, "/sessions/0/items/0/completed_at",
        "it was answered before it was asked"
    );
    let other = OldSessions {
        format: "x".into(),
        issuer: None,
        sessions: vec![],
    };
    assert_eq!(
        read(&other, NOW).unwrap_err().to_string(),
        "/format: it is `x` and must be `agent-host.sessions/1`"
    );
}

/// An expired or terminated session says why it ended and when something last happened in it.
#[test]
fn an_ended_session_says_why_it_ended_and_when_it_was_last_active() {
    for (status, reason) in [("expired", "expired"), ("terminated", "left")] {
        let mut old = session();
        old["status"] = json!(status);
        old["terminated_reason"] = json!("left");
        old["completed_at"] = Value::Null;
        let past = one(old).past("", NOW);
        assert_eq!(
            (
                past.terminated_reason.as_deref(),
                past.completed_at.since_ms(past.started_at)
            ),
            (Some(reason), 50_000)
        );
    }
}

#[test]
fn what_is_not_known_is_ignored_and_what_is_null_or_left_out_is_none() {
    let least = json!({
        "user_id": "alice", "id": "00000000-0000-4000-8000-000000000001", "conversation_id": "00000000-0000-4000-8000-000000000002",
        "session_type": "learning", "status": "pending", "created_at": "2025-12-01T10:00:00", "control_mode": "proactive", "items": [{}],
    });
    let old = one(least);
    assert_eq!(
        (old.items.len(), old.answered(), old.import_status(NOW)),
        (1, 0, ImportStatus::GoesOn { left_ms: None })
    );
    assert_eq!(
        (
            old.config,
            old.ui_state,
            old.pending_action,
            old.terminated_reason
        ),
        (None, None, None, None)
    );
}

#[test]
fn a_conversation_of_two_users_is_refused() {
    let with = |id: &str, user: &str| {
        let mut session = session();
        session["session_id"] = json!(id);
        session["user_id"] = json!(user);
        session
    };
    let first = "00000000-0000-4000-8000-0000000000a1";
    let second = "00000000-0000-4000-8000-0000000000a2";
    assert_eq!(
        read(
            &document(vec![with(first, "alice"), with(second, "alice")]),
            NOW
        )
        .unwrap()
        .len(),
        2
    );
    let refused = read(
        &document(vec![with(first, "alice"), with(second, "bob")]),
        NOW,
    )
    .unwrap_err();
    assert_eq!(refused.field, "/sessions/1/conversation_id");
    assert!(
        refused
            .message
            .starts_with("/sessions/0 has the conversation"),
        "{}",
        refused.message
    );
}
