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
    let begun = json!({ "data": { "first_step": started["data"] } });
    assert_eq!(
        Scene::default().take("run.started.v1", &begun),
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
        [faint("  ✗ delegate TASK_FAILED: no such file")]
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
        [Shown::TurnEnded(Ending::Failed(
            "the turn failed: LIMIT: too many steps".into()
        ))]
    );
}

#[test]
fn a_model_that_refuses_is_told_once_in_the_providers_words() {
    let mut scene = Scene::default();
    let refused = "provider `p` refused the call of model `m` with status 401";
    let report = format!("{refused}: No such key; check the key of `providers.p`");
    let reason = format!("the model could not be asked: {refused} (model-refused)");
    let notice = format!("The turn failed: {reason}");
    let stepped = json!({ "data": {
        "decision": "fail",
        "settled": [{ "operation_id": "m", "outcome": "failed", "attempts": [{ "error": "before" }, { "error": report }] }],
        "messages": [{ "id": 2, "role": "notice", "text": notice }],
    } });
    assert_eq!(scene.take("run.stepped.v1", &stepped), []);
    let ended = json!({ "data": { "end": "failed", "code": "agent-failed", "reason": reason } });
    let reported = format!(
        "the turn failed: agent-failed: the model could not be asked: {report} (model-refused)"
    );
    assert_eq!(
        scene.take("run.ended.v1", &ended),
        [Shown::TurnEnded(Ending::Failed(reported))]
    );
    // Another turn has its own reasons.
    let ended = json!({ "data": { "end": "failed", "reason": reason } });
    assert_eq!(
        scene.take("run.ended.v1", &ended),
        [Shown::TurnEnded(Ending::Failed(format!(
            "the turn failed: {reason}"
        )))]
    );
}

#[test]
fn a_step_that_failed_is_told_with_what_is_known_of_it() {
    for (data, reported) in [
        (
            json!({ "outcome": "out-of-memory", "detail": "" }),
            "(a step failed: out-of-memory)",
        ),
        (
            json!({ "outcome": "trapped", "detail": "at\nmain" }),
            "(a step failed: trapped, at main)",
        ),
    ] {
        assert_eq!(
            Scene::default().take("run.step_failed.v1", &json!({ "data": data })),
            [faint(reported)]
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
    let begun = json!({ "data": { "first_step": started["data"] } });
    let deeper = below(begun, "/local/agent/assistant/sub/0/sub/2", 2);
    assert_eq!(
        scene.take("run.stepped.v1", &below(started, path, 1)),
        [faint("    sub/0  → read_file {\"path\":\"a\"}")]
    );
    assert_eq!(
        scene.take("run.started.v1", &deeper),
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
    let reported = "Round 1: searching for\nthe tides";
    assert_eq!(
        scene.take("run.stepped.v1", &step("wait", "agent", reported)),
        [
            found.clone(),
            faint("    sub/0  · Round 1: searching for the tides"),
            fetches.clone(),
        ]
    );
    for (decision, origin) in [("wait", "model:m"), ("reply", "agent")] {
        assert_eq!(
            scene.take("run.stepped.v1", &step(decision, origin, reported)),
            [found.clone(), fetches.clone()],
            "{decision} {origin}"
        );
    }
}

#[test]
fn what_an_agent_below_asks_is_answered_to_it() {
    let asked = json!({ "data": { "client_actions": [{ "tool_call_id": "c", "widget_type": "w", "props": { "prompt": "Really?" } }] } });
    let shown = Scene::default().take(
        "run.stepped.v1",
        &below(asked.clone(), "/local/agent/assistant/sub/0", 1),
    );
    let [Shown::Question(question)] = shown.as_slice() else {
        panic!("{shown:?}")
    };
    assert_eq!(
        (question.tool_call_id.as_str(), question.agent.as_deref()),
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
    for (stop, reported) in [
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
                format!("(the reply is not whole: {reported})")
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

/// The frame with the result of a call.
fn result(name: &str, words: &str) -> Value {
    json!({ "data": { "messages": [{
        "id": 5, "role": "tool", "text": words, "answers": { "name": name, "failed": false },
    }] } })
}

#[test]
fn a_delegation_is_shown_by_its_operation_and_its_outcome() {
    let mut scene = Scene::default();
    for (data, line) in [
        (
            json!({ "status": "completed", "value": 42, "stdout": "" }),
            "  ✓ delegate coder.execute_code 42",
        ),
        (
            json!({
                "status": "timed-out", "stdout": "x".repeat(200),
                "error": { "name": "Stopped", "message": "it ran for longer than it may" },
            }),
            "  ✗ delegate coder.execute_code timed-out: Stopped: it ran for longer than it may",
        ),
    ] {
        let metadata = json!({ "target": "coder", "operation": "execute_code" });
        let words = json!({ "success": true, "data": data, "metadata": metadata }).to_string();
        assert_eq!(
            scene.take("run.stepped.v1", &result("delegate", &words)),
            [faint(line)]
        );
        // Another tool may use these fields for something else.
        let shown = scene.take("run.stepped.v1", &result("mine", &words));
        assert!(
            matches!(&shown[..], [Shown::Line(_, line)] if line.starts_with("  ✓ mine {")),
            "{shown:?}"
        );
    }
}

#[test]
fn the_reason_of_a_task_that_failed_is_shown_once_in_a_turn() {
    let mut scene = Scene::default();
    let path = "/local/agent/assistant/sub/0";
    let started = json!({ "data": { "started": [{ "operation_id": "t", "kind": "tool", "tool": "read_file", "arguments": {} }] } });
    let gone = json!({ "data": { "settled": [{ "operation_id": "t", "outcome": "failed", "failure": { "message": "there is no such file" } }] } });
    let reported = "there is no such file (not-found)";
    let notice = format!("The turn failed: {reported}");
    let ended = json!({ "data": { "end": "failed", "code": "agent-failed", "reason": reported, "messages": [
        { "id": 3, "role": "notice", "text": notice },
    ] } });
    let metadata = json!({ "target": "worker", "operation": "read_file" });
    let failed = json!({ "success": false, "error": { "code": "TASK_FAILED", "message": reported }, "metadata": metadata });
    let failed = result("delegate", &failed.to_string());
    for _ in 0..2 {
        scene.take("run.stepped.v1", &below(started.clone(), path, 1));
        let mut shown = scene.take("run.settled.v1", &below(gone.clone(), path, 1));
        shown.extend(scene.take("run.ended.v1", &below(ended.clone(), path, 1)));
        shown.extend(scene.take("run.stepped.v1", &failed));
        assert_eq!(
            shown,
            [
                faint("    sub/0  ✗ read_file there is no such file"),
                faint("    sub/0  ! The turn failed: (as above)"),
                faint("  ✗ delegate worker.read_file TASK_FAILED: (as above)"),
            ]
        );
        // The agent gives up over it. The next turn tells its own reasons.
        let end = format!("the turn failed: agent-failed: {reported}");
        assert_eq!(
            scene.take("run.ended.v1", &ended),
            [Shown::TurnEnded(Ending::Failed(end))]
        );
    }
}

#[test]
fn what_an_agent_replies_is_shown_as_it_is_whatever_was_told_before() {
    let mut scene = Scene::default();
    let words =
        r#"{"success":false,"error":{"code":"TASK_FAILED","message":"there is no such file"}}"#;
    scene.take("run.stepped.v1", &result("delegate", words));
    let reply = json!({ "data": { "messages": [{ "id": 6, "role": "assistant", "text": "there is no such file" }] } });
    assert_eq!(
        scene.take("run.stepped.v1", &reply),
        [Shown::Said("there is no such file".into())]
    );
}

#[test]
fn a_compaction_is_a_quiet_line_at_its_end() {
    let mut scene = Scene::default();
    let of_run = |mut frame: Value| {
        frame["run_id"] = json!("c");
        frame
    };
    let first_step = json!({ "messages": [{ "id": 8, "role": "assistant", "text": "So far" }] });
    let started =
        of_run(json!({ "data": { "compacts": { "through": "x" }, "first_step": first_step } }));
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

#[test]
fn the_summary_of_another_conversation_is_shown_and_so_is_the_reason_for_none() {
    let begun = json!({
        "run_id": "r", "data": { "compacts": { "returns": { "agent": "worker" } } },
    });
    let ended = |end: &str| json!({ "run_id": "r", "data": { "end": end, "reason": "no model" } });
    let mut scene = Scene::default();
    assert!(scene.take("run.started.v1", &begun).is_empty());
    let stepped = json!({ "run_id": "r", "data": {
        "messages": [{ "id": 5, "role": "notice", "text": "All is done." }],
    } });
    assert_eq!(
        scene.take("run.stepped.v1", &stepped),
        [Shown::Said("All is done.".into())]
    );
    assert_eq!(
        scene.take("run.ended.v1", &ended("replied")),
        [Shown::TurnEnded(Ending::Compacted)]
    );
    scene.take("run.started.v1", &begun);
    assert_eq!(
        scene.take("run.ended.v1", &ended("failed")),
        [
            faint("(no summary came back: no model)"),
            Shown::TurnEnded(Ending::Compacted)
        ]
    );
}
