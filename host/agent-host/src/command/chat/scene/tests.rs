//! Tests of the parts of a conversation that are shown, and of their form.

use super::{Ending, Scene, Shown, faint};
use crate::command::chat::question::Question;
use crate::terminal::Shade;
use serde_json::{Value, json};

fn delta(operation: &str, text: &str) -> Value {
    json!({ "ephemeral": true, "operation_id": operation, "kind": "text", "text": text })
}

#[test]
fn a_reply_that_streamed_in_is_not_shown_again_when_it_is_committed() {
    let mut scene = Scene::default();
    assert_eq!(
        scene.take("delta", &delta("a", "Hel")),
        [Shown::Text("Hel".into())]
    );
    assert_eq!(
        scene.take("delta", &delta("a", "lo")),
        [Shown::Text("lo".into())]
    );
    let stepped = json!({ "data": {
        "messages": [{ "id": 2, "role": "assistant", "text": "Hello" }, { "id": 3, "role": "assistant", "text": "And more." }],
    } });
    assert_eq!(
        scene.take("run.stepped.v1", &stepped),
        [Shown::Said("And more.".into())]
    );
}

#[test]
fn after_a_discarded_attempt_the_committed_text_is_shown() {
    let mut scene = Scene::default();
    scene.take("delta", &delta("a", "Hel"));
    assert_eq!(
        scene
            .take("attempt-discarded", &json!({ "operation_id": "a" }))
            .len(),
        1
    );
    let stepped = json!({ "data": {
        "messages": [{ "id": 2, "role": "assistant", "text": "Hello" }],
    } });
    assert_eq!(
        scene.take("run.stepped.v1", &stepped),
        [Shown::Said("Hello".into())]
    );
}

#[test]
fn tools_are_shown_when_they_begin_and_when_they_end() {
    let mut scene = Scene::default();
    let started = json!({ "data": { "started": [{ "operation_id": "t", "kind": "tool", "tool": "read_file", "arguments": { "path": "a" } }] } });
    assert_eq!(
        scene.take("run.stepped.v1", &started),
        [faint("  → read_file {\"path\":\"a\"}")]
    );
    let done = json!({ "data": { "messages": [{ "id": 4, "role": "tool", "text": "one\ntwo", "answers": { "name": "read_file", "failed": false } }] } });
    assert_eq!(
        scene.take("run.stepped.v1", &done),
        [faint("  ✓ read_file one two")]
    );
    let result = r#"{"success":false,"error":{"code":"TASK_FAILED","message":"no such file"}}"#;
    let delegate = json!({ "data": { "messages": [{ "id": 5, "role": "tool", "text": result, "answers": { "name": "delegate", "failed": false } }] } });
    assert_eq!(
        scene.take("run.stepped.v1", &delegate),
        [faint("  ✗ delegate no such file")]
    );
    let failed = json!({ "data": { "settled": [{ "operation_id": "t", "outcome": "failed", "failure": { "message": "gone" } }] } });
    assert_eq!(
        scene.take("run.settled.v1", &failed),
        [faint("  ✗ read_file gone")]
    );
}

#[test]
fn the_end_of_a_turn_says_why_it_failed() {
    let ended = json!({ "data": { "end": "failed", "code": "LIMIT", "reason": "too many steps" } });
    let shown = Scene::default().take("run.ended.v1", &ended);
    assert_eq!(
        shown,
        [
            Shown::Line(Shade::Bold, "the turn failed: LIMIT: too many steps".into()),
            Shown::TurnEnded(Ending::Failed(
                "the turn failed: LIMIT: too many steps".into()
            ))
        ]
    );
}

#[test]
fn a_step_that_failed_is_told_with_what_is_known_of_it() {
    for (data, told) in [
        (
            json!({ "outcome": "out_of_memory", "detail": "" }),
            "(a step failed: out_of_memory)",
        ),
        (
            json!({ "outcome": "trapped", "detail": "at\nmain" }),
            "(a step failed: trapped, at main)",
        ),
    ] {
        assert_eq!(
            Scene::default().take("run.step_failed.v1", &json!({ "data": data })),
            [faint(told)]
        );
    }
}

#[test]
fn a_cut_of_a_turns_prompts_is_a_quiet_line() {
    let data = json!({ "operation_id": "o", "tokens_before": 900, "tokens_after": 500 });
    assert_eq!(
        Scene::default().take("run.cut.v1", &json!({ "data": data })),
        [faint(
            "(the model is shown older results in short from here on)"
        )]
    );
}

/// The same frame as it comes from an agent below.
fn below(mut frame: Value, path: &str, depth: u64) -> Value {
    frame["agent_id"] = json!("worker");
    frame["spawned"] = json!({ "agent_path": path, "by_session_id": "s", "depth": depth });
    frame
}

#[test]
fn what_agents_below_do_is_shown_further_to_the_right() {
    let mut scene = Scene::default();
    let path = "/local/agent/assistant/sub/0";
    let started = json!({ "data": { "started": [{ "operation_id": "t", "kind": "tool", "tool": "read_file", "arguments": { "path": "a" } }] } });
    let deeper = below(started.clone(), "/local/agent/assistant/sub/0/sub/2", 2);
    assert_eq!(
        scene.take("run.stepped.v1", &below(started, path, 1)),
        [faint("    sub/0  → read_file {\"path\":\"a\"}")]
    );
    assert_eq!(
        scene.take("run.stepped.v1", &deeper),
        [faint("        sub/0/sub/2  → read_file {\"path\":\"a\"}")]
    );
    let note = json!({ "kind": "note", "operation_id": "t", "text": "half of it" });
    assert_eq!(
        scene.take("delta", &below(note, path, 1)),
        [faint("    sub/0  · half of it")]
    );
    let done = json!({ "data": { "messages": [
        { "id": 2, "role": "tool", "text": "one", "answers": { "name": "read_file", "failed": false } },
        { "id": 3, "role": "assistant", "text": "It says one." },
    ] } });
    assert_eq!(
        scene.take("run.stepped.v1", &below(done, path, 1)),
        [faint("    sub/0  ✓ read_file one")]
    );
    // Its words and its turns are not the conversation's.
    assert_eq!(
        scene.take("delta", &below(delta("w", "It says"), path, 1)),
        []
    );
    assert_eq!(
        scene.take(
            "run.ended.v1",
            &below(
                json!({ "data": { "end": "replied", "messages": [] } }),
                path,
                1
            )
        ),
        []
    );
    assert_eq!(
        scene.take("delta", &delta("a", "One.")),
        [Shown::Text("One.".into())]
    );
}

#[test]
fn a_reason_that_an_agent_below_failed_for_is_told_once() {
    let mut scene = Scene::default();
    let path = "/local/agent/assistant/sub/0";
    let started = json!({ "data": { "started": [{ "operation_id": "t", "kind": "tool", "tool": "read_file", "arguments": {} }] } });
    scene.take("run.stepped.v1", &below(started, path, 1));
    let reason = "there is no `a` (not-found)";
    let failed = json!({ "data": {
        "decision": "fail", "reason": reason,
        "messages": [{ "id": 2, "role": "notice", "text": format!("The turn failed: {reason}") }],
        "settled": [{ "operation_id": "t", "outcome": "failed", "failure": { "message": "there is no `a`" } }],
    } });
    assert_eq!(
        scene.take("run.stepped.v1", &below(failed, path, 1)),
        [
            faint("    sub/0  ! The turn failed: there is no `a` (not-found)"),
            faint("    sub/0  ✗ read_file"),
        ]
    );
    let result = |reason: &str| {
        let result = json!({ "success": false, "error": { "message": reason } }).to_string();
        json!({ "data": { "messages": [{ "id": 5, "role": "tool", "text": result, "answers": { "name": "delegate", "failed": false } }] } })
    };
    assert_eq!(
        scene.take("run.stepped.v1", &result("it was stopped")),
        [faint("  ✗ delegate it was stopped")]
    );
    assert_eq!(
        scene.take("run.stepped.v1", &result(reason)),
        [faint("  ✗ delegate")]
    );
    // The next turn has told nothing yet.
    let ended = json!({ "data": { "end": "replied", "messages": [] } });
    scene.take("run.ended.v1", &ended);
    assert_eq!(
        scene.take("run.stepped.v1", &result(reason)),
        [faint("  ✗ delegate there is no `a` (not-found)")]
    );
}

#[test]
fn progress_that_an_agent_below_tells_is_a_quiet_line_and_its_reply_is_not_shown() {
    let mut scene = Scene::default();
    let step = |decision: &str, origin: &str, text: &str| {
        let data = json!({
            "decision": decision,
            "messages": [
                { "id": 2, "role": "tool", "text": "one", "answers": { "name": "web_search", "failed": false } },
                { "id": 3, "role": "assistant", "origin": origin, "text": text },
            ],
            "started": [{ "operation_id": "t", "kind": "tool", "tool": "web_fetch", "arguments": {} }],
        });
        below(json!({ "data": data }), "/local/agent/assistant/sub/0", 1)
    };
    let found = faint("    sub/0  ✓ web_search one");
    let fetches = faint("    sub/0  → web_fetch {}");
    let told = "Round 1: searching for\nthe tides";
    assert_eq!(
        scene.take("run.stepped.v1", &step("wait", "agent", told)),
        [
            found.clone(),
            faint("    sub/0  · Round 1: searching for the tides"),
            fetches.clone(),
        ]
    );
    for (decision, origin) in [("wait", "model:m"), ("reply", "agent")] {
        assert_eq!(
            scene.take("run.stepped.v1", &step(decision, origin, told)),
            [found.clone(), fetches.clone()],
            "{decision} {origin}"
        );
    }
}

#[test]
fn what_an_agent_below_asks_is_answered_to_it() {
    let asked = json!({ "data": { "client_actions": [{ "call_id": "c", "widget": "w", "props": { "prompt": "Really?" } }] } });
    let shown = Scene::default().take(
        "run.stepped.v1",
        &below(asked.clone(), "/local/agent/assistant/sub/0", 1),
    );
    let [Shown::Question(question)] = shown.as_slice() else {
        panic!("{shown:?}")
    };
    assert_eq!(
        (question.call_id.as_str(), question.agent.as_deref()),
        ("c", Some("worker"))
    );
    let own = Scene::default().take("run.stepped.v1", &asked);
    assert!(
        matches!(
            own.as_slice(),
            [Shown::Question(Question { agent: None, .. })]
        ),
        "{own:?}"
    );
}

#[test]
fn a_reply_that_is_not_whole_says_why() {
    for (stop, told) in [
        ("length", "it reached the limit of its length"),
        ("content_filter", "the provider withheld the rest"),
        ("refusal", "the model declined to answer"),
        ("other", "other"),
    ] {
        let mut scene = Scene::default();
        scene.take("delta", &delta("a", "Hel"));
        let stepped = json!({ "data": { "messages": [
            { "id": 2, "role": "assistant", "text": "Hel", "stop": stop },
        ] } });
        assert_eq!(
            scene.take("run.stepped.v1", &stepped),
            [Shown::Line(
                Shade::Bold,
                format!("(the reply is not whole: {told})")
            )]
        );
    }
}

#[test]
fn what_was_said_so_far_is_shown_as_far_as_it_is_not_yet() {
    let mut scene = Scene::default();
    let so_far = |text: &str| json!({ "kind": "so_far", "operation_id": "a", "text": text });
    assert_eq!(
        scene.take("delta", &so_far("Hel")),
        [Shown::Text("Hel".into())]
    );
    scene.take("delta", &delta("a", "lo"));
    assert_eq!(
        scene.take("delta", &so_far("Hello, you")),
        [Shown::Text(", you".into())]
    );
    let stepped = json!({ "data": {
        "messages": [{ "id": 2, "role": "assistant", "text": "Hello, you" }],
    } });
    assert_eq!(scene.take("run.stepped.v1", &stepped), []);
}

#[test]
fn a_failed_call_is_shown_once_and_where_its_message_stands() {
    let mut scene = Scene::default();
    let started = json!({ "data": { "started": [
        { "operation_id": "t", "kind": "tool", "tool": "read_file", "arguments": {} },
        { "operation_id": "u", "kind": "refused", "tool": "rm", "outcome": "denied" },
    ] } });
    assert_eq!(
        scene.take("run.stepped.v1", &started),
        [faint("  → read_file {}")]
    );
    let settled = json!({ "data": { "settled": [
        { "operation_id": "t", "outcome": "failed", "failure": { "message": "gone" },
          "message": null, "tool": "read_file", "failed": true },
    ] } });
    assert_eq!(scene.take("run.settled.v1", &settled), []);
    let heard = json!({ "data": {
        "messages": [
            { "id": 4, "role": "tool", "text": "it is gone",
              "answers": { "name": "read_file", "failed": true } },
            { "id": 5, "role": "tool", "text": "rm may not be called",
              "answers": { "name": "rm", "failed": true } },
            { "id": 6, "role": "assistant", "text": "Sorry." },
        ],
        "settled": [{ "operation_id": "u", "outcome": "denied", "message": 5 }],
    } });
    assert_eq!(
        scene.take("run.stepped.v1", &heard),
        [
            faint("  ✗ read_file it is gone"),
            faint("  ✗ rm rm may not be called"),
            Shown::Said("Sorry.".into()),
        ]
    );
}

#[test]
fn a_compaction_is_a_quiet_line_at_its_end() {
    let mut scene = Scene::default();
    let of_run = |mut frame: Value| {
        frame["run_id"] = json!("c");
        frame
    };
    let started = of_run(json!({ "data": { "compacts": { "through": "x" } } }));
    assert_eq!(scene.take("run.started.v1", &started), []);
    assert_eq!(scene.take("delta", &of_run(delta("s", "Summary"))), []);
    let summary = json!([{ "id": 9, "role": "notice", "text": "Summary",
        "compaction": { "tokens_before": 9_000, "tokens_after": 700 } }]);
    let ended = of_run(json!({ "data": { "end": "replied", "messages": summary } }));
    assert_eq!(
        scene.take("run.ended.v1", &ended),
        [
            faint("(the conversation was compacted: 9000 tokens before, about 700 now)"),
            Shown::TurnEnded(Ending::Compacted)
        ]
    );
    let failed = of_run(json!({ "data": { "end": "failed", "code": "MODEL", "reason": "away" } }));
    scene.take("run.started.v1", &started);
    assert_eq!(
        scene.take("run.ended.v1", &failed),
        [
            faint("(the conversation could not be compacted: MODEL: away)"),
            Shown::TurnEnded(Ending::Compacted)
        ]
    );
}

#[test]
fn what_was_recalled_is_not_shown_again_by_the_stream() {
    let mut scene = Scene::default();
    let messages = json!([
        { "id": 1, "role": "user", "text": "Hi" },
        { "id": 2, "role": "assistant", "text": "Hello" },
    ]);
    assert_eq!(
        scene.recall(messages.as_array().unwrap()),
        [
            Shown::Line(Shade::Plain, "> Hi".into()),
            Shown::Said("Hello".into())
        ]
    );
    let stepped = json!({ "data": { "messages": [
        { "id": 2, "role": "assistant", "text": "Hello" },
        { "id": 3, "role": "assistant", "text": "And more." },
    ] } });
    assert_eq!(
        scene.take("run.stepped.v1", &stepped),
        [Shown::Said("And more.".into())]
    );
}
