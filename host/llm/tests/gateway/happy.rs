//! Replies as they should be, of both providers.

use crate::server::{Act, End, Server};
use crate::setting::{
    CANARY, FINISH, Kept, WatchedCall, Watcher, asked, asked_of, call, config, gateway, good,
    good_anthropic, message, prompt, usage, whole, words,
};
use agent_host_llm::{Delta, NoDeltas, Unbudgeted};
use domain::message::{Part, Role};
use domain::model::{Prompt, Stop};
use serde_json::json;

#[test]
fn a_call_can_be_made_on_any_thread() {
    fn shared<T: Send + Sync>(_: &T) {}
    fn sent<T: Send>(_: &T) {}
    let gateway = gateway(config("openai", &["http://127.0.0.1:1/v1"]));
    shared(&gateway);
    sent(&gateway.complete(&prompt(), &NoDeltas));
}

#[tokio::test]
async fn a_streamed_reply_comes_word_by_word_and_whole() {
    let (completion, server, watcher) = asked(vec![good(&["hi ", "the", "re"])]).await;
    let reply = completion.result.unwrap();
    assert_eq!(reply.parts, [Part::text("hi there")]);
    assert_eq!(
        (reply.stop, reply.provider.as_str(), reply.model.as_str()),
        (Stop::End, "p", "m-1")
    );
    let reported = |seq, text: &str| WatchedCall::Delta(0, seq, Delta::Text(text.to_owned()));
    assert_eq!(
        watcher.reported(),
        [reported(0, "hi "), reported(1, "the"), reported(2, "re")]
    );
    let [attempt] = completion.attempts.as_slice() else {
        panic!("one attempt")
    };
    assert_eq!(attempt.usage, usage(7, 2, 4));
    assert_eq!(attempt.error, None);
    let request = &server.requests()[0];
    assert!(
        request.head.starts_with("POST /chat/completions HTTP/1.1"),
        "{}",
        request.head
    );
    assert!(
        request
            .head
            .contains(&format!("authorization: Bearer {CANARY}"))
    );
    assert_eq!(
        request.body["messages"][1],
        json!({"role": "user", "content": "hello"})
    );
    assert_eq!(request.body.get("tool_choice"), None);
}

/// Asks a model of a server, and returns what the call left at the boundary.
async fn left(kind: &str, acts: Vec<Act>) -> Kept {
    let server = Server::start(acts).await;
    let kept = Kept::default();
    let gateway = gateway(config(kind, &[&server.url]));
    let prompt = prompt();
    let completion = gateway.complete_leaving(&prompt, &NoDeltas, &kept, &Unbudgeted);
    completion.await.result.unwrap();
    kept
}

#[tokio::test]
async fn a_call_leaves_a_trail_of_its_requests_and_of_the_keys_that_went_with_them() {
    let kept = left("openai-compatible", vec![good(&["hi"])]).await;
    assert_eq!(*kept.keys.lock().unwrap(), ["env MODEL_KEY -> 127.0.0.1"]);
    let outcomes = kept.outcomes.lock().unwrap().clone();
    assert!(
        outcomes.len() == 1 && outcomes[0].starts_with("p ") && outcomes[0].ends_with(" Some(200)"),
        "{outcomes:?}"
    );
}

/// A streamed reply is whole at its last event, whether or not the server ends the answer there.
#[tokio::test]
async fn a_streamed_call_that_ended_well_is_done_on_record_and_a_broken_one_dropped() {
    for (kind, act) in [
        ("openai-compatible", good(&["hi"])),
        ("openai-compatible", open_ended(good(&["hi"]))),
        ("anthropic", good_anthropic()),
        ("anthropic", open_ended(good_anthropic())),
    ] {
        let kept = left(kind, vec![act]).await;
        assert_eq!(*kept.outcomes.lock().unwrap(), ["p done Some(200)"]);
    }
    let odd = Act::events([r#"{"no":"choices"}"#], End::Stall);
    let kept = left("openai-compatible", vec![odd, whole("hi")]).await;
    assert_eq!(
        *kept.outcomes.lock().unwrap(),
        ["p dropped Some(200)", "p done Some(200)"]
    );
}

/// Returns a stream whose server never ends it.
fn open_ended(act: Act) -> Act {
    match act {
        Act::Stream(events, _) => Act::Stream(events, End::Stall),
        other => other,
    }
}

/// A server may cut its model's text in the middle of an emoji, which JSON writes as two escapes.
#[tokio::test]
async fn a_character_that_a_provider_cuts_in_two_is_shown_and_kept_whole() {
    let chunk =
        |text: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
    let events = [
        chunk(r"so \ud83d"),
        chunk(r"\ude00 it"),
        chunk(r" is \ud83d\ude80"),
    ];
    let events = events.iter().map(String::as_str);
    let act = Act::events(events.chain([FINISH, "[DONE]"]), End::Clean);
    let (completion, _, watcher) = asked(vec![act]).await;
    assert_eq!(
        completion.result.unwrap().parts,
        [Part::text("so 😀 it is 🚀")]
    );
    assert_eq!(watcher.text(), "so 😀 it is 🚀");
    assert_eq!(completion.attempts.len(), 1);

    let delta = |delta: &str| {
        format!(r#"data: {{"type":"content_block_delta","index":0,"delta":{{{delta}}}}}"#) + "\n\n"
    };
    let event = |event: serde_json::Value| format!("data: {event}\n\n");
    let events = [
        event(json!({"type": "message_start", "message": {}})),
        event(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "look", "input": {}}}),
        ),
        delta(r#""type":"input_json_delta","partial_json":"{\"at\":\"\uD83C""#),
        delta(r#""type":"input_json_delta","partial_json":"\uDF89\"}""#),
        event(json!({"type": "content_block_stop", "index": 0})),
        event(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})),
        event(json!({"type": "message_stop"})),
    ];
    let act = Act::Stream(
        events.into_iter().map(String::into_bytes).collect(),
        End::Clean,
    );
    let (completion, ..) = asked_of("anthropic", vec![act]).await;
    let call = call("t", "look", r#"{"at":"🎉"}"#);
    assert_eq!(completion.result.unwrap().parts, [call]);
}

/// Each provider has words of its own for why a reply is not whole.
#[tokio::test]
async fn a_reply_that_is_not_whole_says_why_in_the_words_of_each_provider() {
    let openai = |finish: &str, refusal: Option<&str>| {
        let message = json!({"role": "assistant", "content": "so", "refusal": refusal});
        json!({"choices": [{"index": 0, "message": message, "finish_reason": finish}]})
    };
    let anthropic =
        |stop: &str| json!({"content": [{"type": "text", "text": "so"}], "stop_reason": stop});
    for (kind, body, stop) in [
        ("openai", openai("length", None), Stop::Length),
        (
            "openai-compatible",
            openai("model_length", None),
            Stop::Length,
        ),
        ("openai", openai("content_filter", None), Stop::Filtered),
        ("openai", openai("stop", Some("No.")), Stop::Refused),
        ("openai", openai("stop", None), Stop::End),
        ("anthropic", anthropic("max_tokens"), Stop::Length),
        (
            "anthropic",
            anthropic("model_context_window_exceeded"),
            Stop::Length,
        ),
        ("anthropic", anthropic("refusal"), Stop::Refused),
        ("anthropic", anthropic("end_turn"), Stop::End),
    ] {
        let (completion, ..) = asked_of(kind, vec![Act::json(200, &body)]).await;
        assert_eq!(completion.result.unwrap().stop, stop, "{kind}: {body}");
    }
}

#[tokio::test]
async fn a_streamed_reply_of_anthropics_has_thinking_text_and_calls() {
    let server = Server::start(vec![good_anthropic()]).await;
    let watcher = Watcher::default();
    let gateway = gateway(config("anthropic", &[&server.url]));
    let completion = gateway.complete(&prompt(), &watcher).await;
    let reply = completion.result.unwrap();
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "SIG"});
    assert_eq!(
        reply.parts,
        [
            Part::Opaque {
                provider: "p".to_owned(),
                model: "m-1".to_owned(),
                value: thinking.clone()
            },
            Part::text("hi there"),
            call("t1", "look", "{\"at\":1}"),
        ]
    );
    assert_eq!(reply.stop, Stop::ToolCalls);
    assert_eq!(completion.attempts[0].usage, usage(7, 9, 4));
    assert_eq!(watcher.text(), "hi there");
    assert!(watcher.reported().contains(&WatchedCall::Delta(
        0,
        0,
        Delta::Thinking("hm".to_owned())
    )));
    assert!(watcher.reported().contains(&WatchedCall::Delta(
        0,
        3,
        Delta::CallStarted {
            index: 0,
            name: "look".to_owned()
        }
    )));
    let request = &server.requests()[0];
    assert!(
        request.head.starts_with("POST /v1/messages HTTP/1.1")
            && request.head.contains(&format!("x-api-key: {CANARY}"))
    );

    let messages = vec![
        message(1, Role::User, vec![Part::text("hello")]),
        message(2, Role::Assistant, reply.parts),
    ];
    gateway
        .complete(
            &Prompt {
                messages,
                ..prompt()
            },
            &NoDeltas,
        )
        .await
        .result
        .unwrap();
    assert_eq!(
        server.requests()[1].body["messages"][1]["content"][0],
        thinking,
        "it goes back as it came"
    );
}

#[tokio::test]
async fn calls_that_are_split_over_pieces_and_portions_are_put_together() {
    let chunk = |value: serde_json::Value| format!("data: {value}\n\n");
    let delta = |calls: serde_json::Value| {
        chunk(json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}))
    };
    let text = [
        delta(json!([{"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": ""}}])),
        delta(json!([{"index": 0, "function": {"arguments": "{\"at\": \"é"}}])),
        delta(json!([{"index": 1, "id": "c1", "type": "function", "function": {"name": "wait", "arguments": "{"}}])),
        delta(json!([{"index": 0, "function": {"arguments": "\"}"}}, {"index": 1, "function": {"arguments": "}"}}])),
        chunk(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    let portions = text.as_bytes().chunks(7).map(<[u8]>::to_vec).collect();
    let (completion, ..) = asked_of("openai", vec![Act::Stream(portions, End::Clean)]).await;
    let reply = completion.result.unwrap();
    assert_eq!(
        reply.parts,
        [
            call("c1", "look", "{\"at\": \"é\"}"),
            call("c1", "wait", "{}")
        ]
    );
    assert_eq!(completion.attempts[0].usage, None, "the server did not say");
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood_too() {
    let (completion, _, watcher) = asked(vec![whole("all at once")]).await;
    assert_eq!(
        completion.result.unwrap().parts,
        [Part::text("all at once")]
    );
    assert_eq!(
        (completion.attempts.len(), watcher.text().as_str()),
        (1, "all at once")
    );
}

#[tokio::test]
async fn a_stream_that_leaves_out_its_last_mark_but_ends_is_whole() {
    let mut events = words(&["hi"]);
    events.push(FINISH.to_owned());
    let (completion, ..) = asked(vec![Act::events(
        events.iter().map(String::as_str),
        End::Clean,
    )])
    .await;
    assert_eq!(
        (completion.result.unwrap().parts, completion.attempts.len()),
        (vec![Part::text("hi")], 1)
    );
}

#[tokio::test]
async fn an_unknown_reason_to_stop_is_passed_on() {
    let finish = r#"{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"galaxy"}]}"#;
    let (completion, ..) = asked(vec![Act::events([finish, "[DONE]"], End::Clean)]).await;
    assert_eq!(
        completion.result.unwrap().stop,
        Stop::Other("galaxy".to_owned())
    );
}

#[tokio::test]
async fn a_scripted_model_needs_no_key_and_no_network() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("rules.toml"),
        "[[rule]]\nwhen.user = 'hel(lo)'\nreply.text = \"$1 to you\"",
    )
    .unwrap();
    let config = json!({
        "providers": {"demo": {"kind": "scripted", "script": "rules.toml"}},
        "models": {"demo": {"provider": "demo", "model": "demo"}},
    });
    let gateway = agent_host_llm::Gateway::new(
        serde_json::from_value(config).unwrap(),
        folder.path(),
        &|_| None,
    )
    .unwrap();
    let watcher = Watcher::default();
    let completion = gateway.complete(&prompt(), &watcher).await;
    assert_eq!(completion.result.unwrap().parts, [Part::text("lo to you")]);
    assert_eq!(watcher.reported().len(), 3);
    assert_eq!(completion.attempts[0].usage, usage(3, 3, 0));
}
