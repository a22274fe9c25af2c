//! The messages API of Anthropic, request and stream.

use super::*;
use crate::tests::{ask, call, event, feed, message, opaque, result, said, tool, usage};
use domain::message::{Message, Part, Role};
use domain::model::{Prompt, Stop};

fn prompt(messages: Vec<Message>) -> Prompt {
    Prompt {
        system: vec!["Be brief.".to_owned(), "It is noon.".to_owned()],
        ..crate::tests::prompt(messages)
    }
}

fn request(prompt: &Prompt, model: &str) -> Value {
    Anthropic.request(&ask(prompt, model, &Map::new()), Mode::Stream)
}

/// Reads a stream made of these events.
fn streamed(events: &[Value]) -> Result<Answer, Broken> {
    let prompt = prompt(Vec::new());
    let parameters = Map::new();
    let mut assembly = Anthropic.assembly(&ask(&prompt, "m", &parameters));
    for data in events {
        assembly.take(&event(&data.to_string()), &feed())?;
    }
    assembly.finish(&feed())
}

fn start(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
}

fn thinking_then_call() -> Vec<Value> {
    let usage = json!({"input_tokens": 5, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 20, "output_tokens": 1});
    let mut events = vec![
        json!({"type": "message_start", "message": {"usage": usage}}),
        json!({"type": "ping"}),
        start(
            0,
            &json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, &json!({"type": "thinking_delta", "thinking": "let me"})),
        delta(0, &json!({"type": "thinking_delta", "thinking": " see"})),
        delta(0, &json!({"type": "signature_delta", "signature": "SIG=="})),
        stop(0),
        start(1, &json!({"type": "redacted_thinking", "data": "xyz"})),
        stop(1),
        start(2, &json!({"type": "text", "text": ""})),
        delta(2, &json!({"type": "text_delta", "text": "Looking."})),
        stop(2),
        start(
            3,
            &json!({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}),
        ),
        delta(
            3,
            &json!({"type": "input_json_delta", "partial_json": "{\"at\""}),
        ),
        delta(
            3,
            &json!({"type": "input_json_delta", "partial_json": ":1}"}),
        ),
        stop(3),
        start(
            4,
            &json!({"type": "tool_use", "id": "toolu_2", "name": "wait", "input": {}}),
        ),
        stop(4),
    ];
    events.extend(end("tool_use"));
    events
}

#[test]
fn a_stream_becomes_parts_in_order_and_usage() {
    let answer = streamed(&thinking_then_call()).unwrap();
    assert_eq!(
        answer.parts,
        [
            opaque(json!({"type": "thinking", "thinking": "let me see", "signature": "SIG=="})),
            opaque(json!({"type": "redacted_thinking", "data": "xyz"})),
            Part::text("Looking."),
            call("toolu_1", "look", "{\"at\":1}"),
            call("toolu_2", "wait", "{}"),
        ]
    );
    assert_eq!(answer.stop, Stop::ToolCalls);
    assert_eq!(answer.usage, usage(35, 9, 20));
}

#[test]
fn thinking_goes_back_in_its_place_to_the_model_that_thought_and_to_no_other() {
    let answer = streamed(&thinking_then_call()).unwrap();
    let mut failed = result(4, 2, 1, "wait", "too long");
    failed.answers.as_mut().unwrap().failed = true;
    let prompt = prompt(vec![
        said(1, Role::User, "look"),
        message(2, Role::Assistant, answer.parts),
        result(3, 2, 0, "look", "a cat"),
        failed,
        said(5, Role::Notice, "late"),
    ]);
    let text = json!({"type": "text", "text": "Looking."});
    let calls = [
        json!({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": 1}}),
        json!({"type": "tool_use", "id": "toolu_2", "name": "wait", "input": {}}),
    ];
    let body = request(&prompt, "m");
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "look"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "let me see", "signature": "SIG=="},
                {"type": "redacted_thinking", "data": "xyz"},
                text, calls[0], calls[1],
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a cat", "is_error": false},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "too long", "is_error": true},
                {"type": "text", "text": "<notice>\nlate\n</notice>"},
            ]},
        ])
    );
    assert_eq!(
        request(&prompt, "other")["messages"][1]["content"],
        json!([text, calls[0], calls[1]])
    );
}

#[test]
fn the_cache_ends_with_the_last_stable_block_and_the_last_tool() {
    let prompt = Prompt {
        tools: vec![tool("a"), tool("b")],
        ..prompt(Vec::new())
    };
    let body = request(&prompt, "m");
    let cached = |list: &Value| {
        list.as_array()
            .unwrap()
            .iter()
            .map(|item| item.get("cache_control").is_some())
            .collect::<Vec<_>>()
    };
    assert_eq!(cached(&body["system"]), [true, false]);
    assert_eq!(cached(&body["tools"]), [false, true]);
    assert_eq!(body["max_tokens"], 8_192);
    for (blocks, stable_blocks, expected) in [
        (vec!["Be brief."], 1, vec![true]),
        (vec!["Be brief.", "Tools: a, b."], 2, vec![false, true]),
        (
            vec!["Be brief.", "Tools: a, b.", "Items: 1."],
            2,
            vec![false, true, false],
        ),
        // A blank block is not sent, and so it carries no mark.
        (vec!["Be brief.", " ", "Items: 1."], 2, vec![true, false]),
        (vec!["Items: 1."], 0, vec![false]),
    ] {
        let prompt = Prompt {
            system: blocks.into_iter().map(str::to_owned).collect(),
            stable_blocks,
            ..prompt.clone()
        };
        assert_eq!(cached(&request(&prompt, "m")["system"]), expected);
    }
}

#[test]
fn the_user_begins_and_ends_whatever_the_thread_does() {
    let roles = |messages: Vec<Message>| {
        let body = request(&prompt(messages), "m");
        body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["role"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(roles(Vec::new()), ["user"]);
    assert_eq!(
        roles(vec![said(1, Role::Assistant, "hi")]),
        ["user", "assistant", "user"]
    );
    let thread = vec![
        said(1, Role::User, "x"),
        said(2, Role::Assistant, "a"),
        said(3, Role::Assistant, " "),
        said(4, Role::Assistant, "b"),
    ];
    assert_eq!(roles(thread).len(), 3);
}

#[test]
fn a_stream_without_its_end_is_cut_short_and_one_that_makes_no_sense_is_garbage() {
    let all = thinking_then_call();
    for length in 0..all.len() - 1 {
        assert_eq!(
            streamed(&all[..length]),
            Err(Broken::CutShort),
            "after {length} events"
        );
    }
    let garbage = |at: usize, event: Value| {
        let mut events = all.clone();
        events.insert(at, event);
        matches!(streamed(&events), Err(Broken::Garbage { .. }))
    };
    let chunk = delta(
        7,
        &json!({"type": "input_json_delta", "partial_json": "{}"}),
    );
    let call = json!({"type": "tool_use", "id": "t", "name": "n", "input": {}});
    let last = all.len() - 1;
    for (at, event, problem) in [
        (3, all[2].clone(), "a block that begins twice"),
        (7, all[6].clone(), "a block that ends twice"),
        (7, all[4].clone(), "a piece of a block that has ended"),
        (1, chunk, "a piece of no block"),
        (3, all[0].clone(), "a message that begins twice"),
        (
            last,
            start(9, &json!({"type": "text", "text": ""})),
            "a block after the end",
        ),
        (12, start(5, &call), "a call that does not end"),
    ] {
        assert!(garbage(at, event), "{problem}");
    }
}

#[test]
fn events_without_an_index_are_about_the_last_block_or_the_next() {
    let mut events = vec![json!({"type": "message_start", "message": {}})];
    for text in ["a", "b"] {
        events.extend([
            json!({"type": "content_block_start", "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}),
            json!({"type": "content_block_stop"}),
        ]);
    }
    events.extend(end("end_turn"));
    let answer = streamed(&events).unwrap();
    assert_eq!(answer.parts, [Part::text("a"), Part::text("b")]);
}

#[test]
fn unknown_kinds_of_events_and_pieces_do_no_harm() {
    let mut events = vec![
        json!({"type": "message_start", "message": {}}),
        json!({"type": "galaxy"}),
        start(0, &json!({"type": "galaxy", "a": 1})),
        stop(0),
        start(1, &json!({"type": "galaxy", "a": 1})),
        delta(1, &json!({"type": "galaxy_delta", "b": 1})),
        stop(1),
        start(2, &json!({"type": "text", "text": "hi"})),
        delta(2, &json!({"type": "citations_delta", "citation": {}})),
        stop(2),
    ];
    events.extend(end("galaxy_reached"));
    let answer = streamed(&events).unwrap();
    assert_eq!(answer.stop, Stop::Other("galaxy_reached".to_owned()));
    let kept = opaque(json!({"type": "galaxy", "a": 1}));
    assert_eq!(answer.parts, [kept, Part::text("hi")]);
}

fn whole(body: &Value) -> Result<Answer, Broken> {
    reply::whole(body, "p", "m", &feed())
}

#[test]
fn a_reply_in_one_piece_is_read_too() {
    let body = json!({
        "type": "message", "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 2},
        "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "hi"}],
    });
    let answer = whole(&body).unwrap();
    assert_eq!((answer.parts.len(), answer.stop), (2, Stop::End));
    assert_eq!(answer.usage, usage(1, 2, 0));
    assert!(matches!(
        whole(&json!({"type": "error", "error": {"type": "overloaded_error"}})),
        Err(Broken::Reported(_))
    ));
    assert!(matches!(whole(&json!([])), Err(Broken::Garbage { .. })));
}

#[test]
fn a_conversation_with_calls_names_their_tools_even_when_none_may_be_called() {
    let said = message(1, Role::Assistant, vec![call("c", "look", "{}")]);
    let body = request(&prompt(vec![said]), "m");
    assert_eq!(
        (&body["tools"][0]["name"], &body["tool_choice"]["type"]),
        (&json!("look"), &json!("none"))
    );
    assert_eq!(request(&prompt(Vec::new()), "m").get("tools"), None);
}

#[test]
fn a_request_is_sent_with_temperature_stop_sequences_and_effort() {
    let body = request(&prompt(Vec::new()), "m");
    for field in ["temperature", "stop_sequences", "output_config"] {
        assert_eq!(body.get(field), None);
    }
    let sampling = Sampling {
        temperature: Some(0.25),
        stop: vec!["END".to_owned()],
        reasoning_effort: Some(ReasoningEffort::High),
    };
    let set = Prompt {
        sampling,
        ..prompt(Vec::new())
    };
    let body = request(&set, "m");
    assert_eq!(body["temperature"], 0.25);
    assert_eq!(body["stop_sequences"], json!(["END"]));
    assert_eq!(body["output_config"], json!({"effort": "high"}));
    assert_eq!(Anthropic.unfit(&set.sampling), None);
    for (sampling, field) in [
        (json!({"temperature": 1.1}), "temperature"),
        (json!({"stop": [" "]}), "stop"),
        (json!({"reasoning_effort": "minimal"}), "reasoningEffort"),
    ] {
        let sampling: Sampling = serde_json::from_value(sampling).unwrap();
        assert_eq!(Anthropic.unfit(&sampling).unwrap().0, field);
    }
}
