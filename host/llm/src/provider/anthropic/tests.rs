//! The messages API of Anthropic, request and stream.

use super::*;
use crate::delta::{Feed, NoDeltas};
use crate::sse::Event;
use domain::digest::Salt;
use domain::message::{Answers, Message, Part, Role};
use domain::model::{Prompt, Stop, Usage};
use domain::redact::Redactor;
use domain::tool::{EffectClass, ToolDefinition};

fn prompt(messages: Vec<Message>) -> Prompt {
    let system = vec!["Be brief.".to_owned(), "It is noon.".to_owned()];
    Prompt {
        model: None,
        system,
        stable_blocks: 1,
        messages,
        tools: Vec::new(),
        max_tokens: None,
        reply_schema: None,
        sampling: Sampling::default(),
    }
}

fn message(id: u64, role: Role, parts: Vec<Part>) -> Message {
    Message {
        id,
        role,
        parts,
        origin: "host".to_owned(),
        untrusted: false,
        speaker: None,
        answers: None,
        marked_elsewhere: None,
        salt: Salt::default(),
    }
}

fn request(prompt: &Prompt, model: &str) -> Value {
    let parameters = Map::new();
    Anthropic.request(
        &Ask {
            prompt,
            provider: "p",
            model,
            max_tokens: None,
            parameters: &parameters,
            agent: domain::id::AgentId(uuid::Uuid::nil()),
            context_window: 128_000,
            trail: &crate::trail::Traced,
            bare: false,
        },
        Mode::Stream,
    )
}

/// Reads a stream made of these events.
fn streamed(events: &[Value]) -> Result<Answer, Broken> {
    let prompt = prompt(Vec::new());
    let parameters = Map::new();
    let ask = Ask {
        prompt: &prompt,
        provider: "p",
        model: "m",
        max_tokens: None,
        parameters: &parameters,
        agent: domain::id::AgentId(uuid::Uuid::nil()),
        context_window: 128_000,
        trail: &crate::trail::Traced,
        bare: false,
    };
    let mut assembly = Anthropic.assembly(&ask);
    for event in events {
        assembly.take(
            &Event {
                name: String::new(),
                data: event.to_string(),
            },
            &Feed::new(&NoDeltas, 0, &Redactor::default()),
        )?;
    }
    assembly.finish(&Feed::new(&NoDeltas, 0, &Redactor::default()))
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
    let opaque = |value: Value| Part::Opaque {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        value,
    };
    let call = |id: &str, name: &str, arguments: &str| Part::Call {
        call_id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
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
    assert_eq!(
        answer.usage,
        Some(Usage {
            input_tokens: 35,
            output_tokens: 9,
            cached_tokens: 20
        })
    );
}

#[test]
fn thinking_goes_back_in_its_place_to_the_model_that_thought_and_to_no_other() {
    let answer = streamed(&thinking_then_call()).unwrap();
    let answers = |index, name: &str| Answers {
        message: 2,
        index,
        call_id: String::new(),
        name: name.to_owned(),
        failed: index == 1,
    };
    let prompt = prompt(vec![
        message(1, Role::User, vec![Part::text("look")]),
        message(2, Role::Assistant, answer.parts),
        Message {
            answers: Some(answers(0, "look")),
            ..message(3, Role::Tool, vec![Part::text("a cat")])
        },
        Message {
            answers: Some(answers(1, "wait")),
            ..message(4, Role::Tool, vec![Part::text("too long")])
        },
        message(5, Role::Notice, vec![Part::text("late")]),
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
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        arguments: json!({"type": "object"}),
        results: None,
        capabilities: Vec::new(),
        effect: EffectClass::ReadOnly,
        destructive: false,
        time_limit_ms: None,
    };
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
        roles(vec![message(1, Role::Assistant, vec![Part::text("hi")])]),
        ["user", "assistant", "user"]
    );
    let said = |id, text: &str| message(id, Role::Assistant, vec![Part::text(text)]);
    assert_eq!(
        roles(vec![
            message(1, Role::User, vec![Part::text("x")]),
            said(2, "a"),
            said(3, " "),
            said(4, "b")
        ])
        .len(),
        3
    );
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
    assert!(garbage(3, all[2].clone()), "a block that begins twice");
    assert!(garbage(7, all[6].clone()), "a block that ends twice");
    assert!(
        garbage(7, all[4].clone()),
        "a piece of a block that has ended"
    );
    assert!(
        garbage(
            1,
            delta(
                7,
                &json!({"type": "input_json_delta", "partial_json": "{}"})
            )
        ),
        "a piece of no block"
    );
    assert!(garbage(3, all[0].clone()), "a message that begins twice");
    assert!(
        garbage(
            all.len() - 1,
            start(9, &json!({"type": "text", "text": ""}))
        ),
        "a block after the end"
    );
    assert!(
        garbage(
            12,
            start(
                5,
                &json!({"type": "tool_use", "id": "t", "name": "n", "input": {}})
            )
        ),
        "a call that does not end"
    );
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
    let kept = Part::Opaque {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        value: json!({"type": "galaxy", "a": 1}),
    };
    assert_eq!(answer.parts, [kept, Part::text("hi")]);
}

fn whole(body: &Value) -> Result<Answer, Broken> {
    reply::whole(
        body,
        "p",
        "m",
        &Feed::new(&NoDeltas, 0, &Redactor::default()),
    )
}

#[test]
fn a_reply_in_one_piece_is_read_too() {
    let body = json!({
        "type": "message", "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 2},
        "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "hi"}],
    });
    let answer = whole(&body).unwrap();
    assert_eq!((answer.parts.len(), answer.stop), (2, Stop::End));
    assert_eq!(
        answer.usage,
        Some(Usage {
            input_tokens: 1,
            output_tokens: 2,
            cached_tokens: 0
        })
    );
    assert!(matches!(
        whole(&json!({"type": "error", "error": {"type": "overloaded_error"}})),
        Err(Broken::Reported(_))
    ));
    assert!(matches!(whole(&json!([])), Err(Broken::Garbage { .. })));
}

#[test]
fn a_conversation_with_calls_names_their_tools_even_when_none_may_be_called() {
    let part = Part::Call {
        call_id: "c".to_owned(),
        name: "look".to_owned(),
        arguments: "{}".to_owned(),
    };
    let said = Message {
        id: 1,
        role: Role::Assistant,
        parts: vec![part],
        origin: "model:m".to_owned(),
        untrusted: false,
        speaker: None,
        answers: None,
        marked_elsewhere: None,
        salt: Salt::default(),
    };
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
