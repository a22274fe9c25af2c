//! Chat completions of OpenAI and of those that speak the same, request and stream.

use super::*;
use crate::tests::{event, feed, message, usage};
use domain::message::{Message, Part, Role};
use domain::model::{Prompt, Stop};
use domain::sampling::ReasoningEffort;

fn prompt(messages: Vec<Message>) -> Prompt {
    Prompt {
        max_tokens: Some(9),
        ..crate::tests::prompt(messages)
    }
}

fn ask<'a>(prompt: &'a Prompt, model: &'a str, parameters: &'a Map<String, Value>) -> Ask<'a> {
    Ask {
        max_tokens: Some(100),
        ..crate::tests::ask(prompt, model, parameters)
    }
}

/// Reads a stream made of these chunks.
fn streamed(chunks: &[Value]) -> Result<Answer, Broken> {
    let prompt = prompt(Vec::new());
    let parameters = Map::new();
    let mut assembly = OpenAi::Native.assembly(&ask(&prompt, "m", &parameters));
    let chunks = chunks.iter().map(Value::to_string);
    for chunk in chunks.chain(["[DONE]".to_owned()]) {
        assembly.take(&event(&chunk), &feed())?;
    }
    assert!(assembly.ended());
    assembly.finish(&feed())
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn call(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    delta(
        &json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]}),
    )
}

fn calls(answer: &Answer) -> Vec<(&str, &str, &str)> {
    answer
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Call {
                call_id,
                name,
                arguments,
            } => Some((call_id.as_str(), name.as_str(), arguments.as_str())),
            Part::Text { .. } | Part::Blob { .. } | Part::Opaque { .. } => None,
        })
        .collect()
}

#[test]
fn a_request_says_what_the_prompt_says() {
    let mut prompt = prompt(vec![
        message(1, Role::User, vec![Part::text("hi")]),
        message(2, Role::Notice, vec![Part::text("late")]),
    ]);
    prompt.reply_schema = Some(json!({"type": "object"}));
    let parameters = Map::from_iter([("temperature".to_owned(), json!(0))]);
    let body = OpenAi::Native.request(&ask(&prompt, "m", &parameters), Mode::Stream);
    assert_eq!(
        body,
        json!({
            "temperature": 0,
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hi\n\n<notice>\nlate\n</notice>"},
            ],
            "max_completion_tokens": 9,
            "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"type": "object", "properties": {}}}},
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
    let body = OpenAi::Compatible.request(&ask(&prompt, "m", &Map::new()), Mode::Whole);
    assert_eq!((&body["max_tokens"], body.get("stream")), (&json!(9), None));
}

#[test]
fn calls_that_come_in_pieces_and_out_of_order_are_put_in_order() {
    let answer = streamed(&[
        call(1, "b", "second", "{\"x\""),
        call(0, "a", "first", ""),
        delta(&json!({"tool_calls": [{"index": 1, "function": {"arguments": ":1}"}}]})),
        delta(&json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})),
        finish("tool_calls"),
    ])
    .unwrap();
    assert_eq!(
        calls(&answer),
        [("a", "first", "{}"), ("b", "second", "{\"x\":1}")]
    );
    assert_eq!(answer.stop, Stop::ToolCalls);
}

#[test]
fn calls_under_one_index_are_told_apart_by_id_and_a_repeated_one_counts_once() {
    let twice = call(0, "a", "first", "{\"x\":1}");
    let answer = streamed(&[
        twice.clone(),
        twice,
        call(0, "b", "second", "{}"),
        finish("stop"),
    ])
    .unwrap();
    assert_eq!(
        calls(&answer),
        [("a", "first", "{\"x\":1}"), ("b", "second", "{}")]
    );
    assert_eq!(answer.stop, Stop::ToolCalls);
}

#[test]
fn calls_without_index_or_id_are_taken_too() {
    let chunk = |id: &str, name: &str| {
        delta(
            &json!({"tool_calls": [{"id": id, "function": {"name": name, "arguments": {"x": 1}}}]}),
        )
    };
    let answer = streamed(&[
        chunk("a", "first"),
        chunk("b", "second"),
        finish("tool_calls"),
    ])
    .unwrap();
    assert_eq!(
        calls(&answer),
        [("a", "first", "{\"x\":1}"), ("b", "second", "{\"x\":1}")]
    );
    let answer = streamed(&[
        call(0, "", "first", "{}"),
        call(1, "", "second", "{}"),
        finish("tool_calls"),
    ])
    .unwrap();
    assert_eq!(
        calls(&answer),
        [("call_0", "first", "{}"), ("call_1", "second", "{}")]
    );
}

#[test]
fn truncated_arguments_are_kept_as_they_are() {
    let answer = streamed(&[call(0, "a", "first", "{\"x\": \"unfini"), finish("length")]).unwrap();
    assert_eq!(calls(&answer), [("a", "first", "{\"x\": \"unfini")]);
    assert_eq!(answer.stop, Stop::Length);
}

#[test]
fn unknown_fields_of_a_message_come_back_in_the_same_places() {
    let chunk = json!({"tool_calls": [{
        "index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "s1"}},
    }]});
    let answer = streamed(&[
        delta(&json!({"role": "assistant", "content": "", "reasoning_content": "hm", "reasoning_details": [{"n": 1}]})),
        delta(&json!({"reasoning_content": " hm", "reasoning_details": [{"n": 2}]})),
        delta(&chunk),
        finish("tool_calls"),
    ])
    .unwrap();
    let prompt = prompt(vec![message(1, Role::Assistant, answer.parts)]);
    let parameters = Map::new();
    let sent = |model: &str| {
        OpenAi::Native.request(&ask(&prompt, model, &parameters), Mode::Whole)["messages"][2]
            .clone()
    };
    assert_eq!(
        sent("m"),
        json!({
            "role": "assistant",
            "content": null,
            "tool_calls": [{
                "id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"},
                "extra_content": {"google": {"thought_signature": "s1"}},
            }],
            "reasoning_content": "hm hm",
            "reasoning_details": [{"n": 1}, {"n": 2}],
        })
    );
    assert!(
        !sent("other").to_string().contains("reasoning")
            && !sent("other").to_string().contains("thought_signature")
    );
}

#[test]
fn usage_and_reasons_to_stop_are_read() {
    let reported = json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3}}});
    let answer = streamed(&[delta(&json!({"content": "hi"})), finish("stop"), reported]).unwrap();
    assert_eq!(answer.usage, usage(5, 7, 3));
    assert_eq!(answer.stop, Stop::End);
    let stop = |reason: &str| {
        streamed(&[delta(&json!({"content": "hi"})), finish(reason)])
            .unwrap()
            .stop
    };
    assert_eq!(
        [stop("length"), stop("content_filter")],
        [Stop::Length, Stop::Filtered]
    );
    assert_eq!(stop("galaxy\u{7}"), Stop::Other("galaxy".to_owned()));
    let refused = streamed(&[delta(&json!({"refusal": "No."})), finish("stop")]).unwrap();
    assert_eq!(
        (refused.stop, refused.parts),
        (Stop::Refused, vec![Part::text("No.")])
    );
}

#[test]
fn a_stream_that_makes_no_sense_is_refused() {
    let garbage = |chunks: &[Value]| matches!(streamed(chunks), Err(Broken::Garbage { .. }));
    assert!(garbage(&[json!({"hello": 1})]));
    assert!(garbage(&[
        delta(&json!({"content": "some"})),
        finish("stop"),
        delta(&json!({"content": "more"}))
    ]));
    assert!(
        garbage(&[call(0, "a", "", "{}"), finish("tool_calls")]),
        "a call without a name"
    );
    let many: Vec<Value> = (0..129)
        .map(|index| call(index, &format!("c{index}"), "look", "{}"))
        .collect();
    assert!(garbage(&many));
    let chunk = "x".repeat(600 << 10);
    assert!(garbage(&[
        call(0, "a", "look", &chunk),
        call(0, "a", "look", &chunk)
    ]));
    for half in [delta(&json!({})), call(0, "a", "look", "{\"x\": ")] {
        assert_eq!(streamed(&[half]), Err(Broken::CutShort));
    }
    assert!(matches!(
        streamed(&[json!({"error": {"message": "no"}})]),
        Err(Broken::Reported(_))
    ));
}

#[test]
fn a_reply_in_one_piece_says_the_same_as_a_stream() {
    let body = json!({
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "hi", "reasoning": "hm",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        }}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    });
    let prompt = prompt(Vec::new());
    let parameters = Map::new();
    let whole = OpenAi::Native
        .whole(&ask(&prompt, "m", &parameters), &body, &feed())
        .unwrap();
    let same = streamed(&[
        delta(&json!({"role": "assistant", "content": "h", "reasoning": "h"})),
        delta(&json!({"content": "i", "reasoning": "m"})),
        call(0, "a", "look", "{}"),
        finish("tool_calls"),
        json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
    ]);
    assert_eq!(whole, same.unwrap());
}

#[test]
fn a_request_is_sent_with_temperature_stop_sequences_and_effort() {
    let parameters = json!({"temperature": 0.9, "seed": 5});
    let parameters = parameters.as_object().unwrap();
    let bare = prompt(Vec::new());
    let body = OpenAi::Compatible.request(&ask(&bare, "m", parameters), Mode::Whole);
    assert_eq!(
        (&body["temperature"], body.get("stop")),
        (&json!(0.9), None)
    );
    let sampling = Sampling {
        temperature: Some(0.25),
        stop: vec!["END".to_owned()],
        reasoning_effort: Some(ReasoningEffort::Low),
    };
    let set = Prompt {
        sampling,
        ..prompt(Vec::new())
    };
    for kind in [OpenAi::Native, OpenAi::Compatible] {
        let body = kind.request(&ask(&set, "m", parameters), Mode::Stream);
        assert_eq!(body["temperature"], 0.25, "it replaces the operator's");
        assert_eq!(body["stop"], json!(["END"]));
        assert_eq!(body["reasoning_effort"], "low");
        assert_eq!(body["seed"], 5);
    }
    let many = Sampling {
        stop: vec!["x".to_owned(); 5],
        ..Sampling::default()
    };
    assert_eq!(OpenAi::Native.unfit(&set.sampling), None);
    assert_eq!(OpenAi::Native.unfit(&many).unwrap().0, "stop");
}
