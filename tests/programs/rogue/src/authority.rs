//! Steps that take too much, forge what is not theirs, or never come to an end.

use crate::{going_on, text};
use plugin::agent::agent_host::plugin::types::{Blob, ClientAction};
use plugin::agent::{
    Audience, Call, Context, Decision, Dispatch, Effect, Memo, ModelCallPlace, ModelRequest, News,
    Outcome, OwnEvent, Part, StepResult, Toolset, View, Work, reply,
};
use std::hint::black_box;

const MEBIBYTE: usize = 1 << 20;
/// A blob that no turn of this agent has seen.
const UNSEEN: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn with_effects(effects: Vec<Effect>) -> StepResult {
    StepResult {
        effects,
        ..reply("done")
    }
}

fn say(text: String) -> Effect {
    Effect::Say(vec![Part::Text(text)])
}

pub fn a_step_without_end_fails_the_turn_after_three_attempts(_: &View, _: &[News]) -> StepResult {
    loop {
        black_box(0);
    }
}

pub fn a_step_that_takes_all_memory_fails_the_turn(_: &View, _: &[News]) -> StepResult {
    let mut all = Vec::new();
    loop {
        all.push(vec![7_u8; MEBIBYTE]);
        black_box(&all);
    }
}

pub fn a_thousand_effects_are_refused(_: &View, _: &[News]) -> StepResult {
    with_effects(
        (0..1_000)
            .map(|n| Effect::Remember(n.to_string()))
            .collect(),
    )
}

pub fn a_memo_of_a_megabyte_is_refused(_: &View, _: &[News]) -> StepResult {
    StepResult {
        memo: Some(Memo {
            format: 1,
            bytes: vec![1; MEBIBYTE],
        }),
        ..reply("done")
    }
}

pub fn a_hundred_thousand_operations_are_refused(_: &View, _: &[News]) -> StepResult {
    going_on(
        "",
        Vec::new(),
        (0..100_000)
            .map(|n| (n.to_string(), Work::TimerMs(1)))
            .collect(),
    )
}

pub fn operations_of_the_same_key_are_refused(_: &View, _: &[News]) -> StepResult {
    going_on(
        "",
        Vec::new(),
        vec![
            ("k".into(), Work::TimerMs(1)),
            ("k".into(), Work::TimerMs(2)),
        ],
    )
}

pub fn a_key_that_is_too_long_is_refused(_: &View, _: &[News]) -> StepResult {
    going_on("", Vec::new(), vec![("k".repeat(129), Work::TimerMs(1))])
}

pub fn a_key_of_no_length_is_refused(_: &View, _: &[News]) -> StepResult {
    going_on("", Vec::new(), vec![(String::new(), Work::TimerMs(1))])
}

pub fn a_reply_of_megabytes_is_refused(_: &View, _: &[News]) -> StepResult {
    reply("x".repeat(5 * MEBIBYTE))
}

pub fn words_without_end_stop_at_the_limit_of_steps(turn: &View, _: &[News]) -> StepResult {
    let effects = (0..64)
        .map(|n| say(format!("{n} {}", "x".repeat(1_000))))
        .collect();
    let key = format!("t{}", turn.left().steps);
    going_on(
        "words_without_end_stop_at_the_limit_of_steps",
        effects,
        vec![(key, Work::TimerMs(0))],
    )
}

pub fn notes_without_end_stop_at_the_limit_of_steps(turn: &View, _: &[News]) -> StepResult {
    let left = turn.left().steps;
    let mut effects: Vec<Effect> = (0..32)
        .map(|n| Effect::Remember(format!("{left} {n} {}", "note ".repeat(200))))
        .collect();
    effects.extend((0..32).map(|n| {
        Effect::Emit(OwnEvent {
            name: format!("flood.{n}"),
            data: "{}".into(),
        })
    }));
    going_on(
        "notes_without_end_stop_at_the_limit_of_steps",
        effects,
        vec![(format!("t{left}"), Work::TimerMs(0))],
    )
}

pub fn an_event_under_a_name_of_the_hosts_is_under_the_guests_own(
    _: &View,
    _: &[News],
) -> StepResult {
    let names = [
        "session.turn.committed.v1",
        "run.ended.v1",
        "boundary.decided.v1",
        "system.shutdown",
        "plugin.other.x",
        "agents.step",
    ];
    with_effects(
        names
            .map(|name| {
                Effect::Emit(OwnEvent {
                    name: name.into(),
                    data: r#"{"session":"other","position":1}"#.into(),
                })
            })
            .into(),
    )
}

pub fn an_event_with_a_name_that_is_none_is_refused(_: &View, _: &[News]) -> StepResult {
    with_effects(vec![Effect::Emit(OwnEvent {
        name: "../session\n*#".into(),
        data: "{}".into(),
    })])
}

pub fn a_blob_that_was_never_shown_is_neither_read_nor_said(turn: &View, _: &[News]) -> StepResult {
    if turn.read_blob(UNSEEN, 0, u32::MAX).is_some()
        || turn.read_blob("sha256:../../etc/passwd", 0, 1).is_some()
    {
        return reply("read");
    }
    let blob = Blob {
        handle: UNSEEN.into(),
        media_type: "text/plain".into(),
        size: 0,
    };
    StepResult {
        decision: Decision::Reply(vec![Part::Blob(blob)]),
        effects: Vec::new(),
        memo: None,
    }
}

pub fn a_message_of_another_thread_is_not_there(turn: &View, _: &[News]) -> StepResult {
    let head = turn.head().unwrap_or(0);
    let seen = [0, head + 1, head + 1_000, u64::MAX, u64::MAX - head]
        .into_iter()
        .filter(|id| turn.message(*id).is_some())
        .count();
    reply(format!(
        "{seen} of others, {}",
        turn.message(head).is_some()
    ))
}

pub fn a_call_that_no_model_made_is_refused(turn: &View, _: &[News]) -> StepResult {
    let place = ModelCallPlace {
        message: turn.head().unwrap_or(1),
        index: 7,
    };
    going_on(
        "",
        Vec::new(),
        vec![("k".into(), Work::Tool(Call::OfModel(place)))],
    )
}

/// Returns the results of its operations, one line each.
fn reply_with_results(news: &[News]) -> StepResult {
    let lines = news.iter().filter_map(|one| match one {
        News::Settled(settlement) => Some(format!(
            "{} {}",
            settlement.key,
            match &settlement.outcome {
                Outcome::Failed(failure) => failure.code.clone(),
                Outcome::Denied => "denied".into(),
                Outcome::Parts(parts) => format!("parts {}", text(parts).unwrap_or_default()),
                _ => "something else".into(),
            }
        )),
        News::Said(_) | News::Opened => None,
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    reply(lines.join(", "))
}

pub fn a_model_is_offered_no_tool_that_the_agent_may_not_call(
    _: &View,
    news: &[News],
) -> StepResult {
    let ask = |tools, context, model: Option<&str>| {
        Work::Model(ModelRequest {
            system: vec!["s".into()],
            context,
            also: vec![Part::Text("call:look".into())],
            tools,
            model: model.map(str::to_owned),
            max_tokens: None,
            reply_schema: None,
            audience: Audience::Hidden,
        })
    };
    if !matches!(news[0], News::Said(_)) {
        return reply_with_results(news);
    }
    let start = vec![
        // A tool that there is, but not for this agent, and one that there is for nobody.
        (
            "tool".into(),
            ask(Toolset::Named(vec!["look".into()]), Context::Whole, None),
        ),
        (
            "none".into(),
            ask(Toolset::Named(vec!["attack".into()]), Context::Whole, None),
        ),
        (
            "pattern".into(),
            ask(Toolset::Named(vec!["*".into()]), Context::Whole, None),
        ),
        (
            "model".into(),
            ask(Toolset::None, Context::Whole, Some("../other")),
        ),
        (
            "since".into(),
            ask(Toolset::None, Context::Since(u64::MAX), None),
        ),
    ];
    going_on(
        "a_model_is_offered_no_tool_that_the_agent_may_not_call",
        Vec::new(),
        start,
    )
}

pub fn nobody_answers_to_a_pattern(_: &View, news: &[News]) -> StepResult {
    if !matches!(news[0], News::Said(_)) {
        return reply_with_results(news);
    }
    let targets = [
        "*",
        "#",
        "",
        "puppet",
        "rogue/../puppet",
        "PUPPET",
        "plugin.#",
    ];
    let dispatch = |target: &str| Dispatch {
        target: target.into(),
        content: vec![Part::Text("hi".into())],
        detached: false,
        timeout_ms: None,
    };
    let start = targets
        .iter()
        .enumerate()
        .map(|(n, target)| (n.to_string(), Work::Agent(dispatch(target))))
        .collect();
    going_on("nobody_answers_to_a_pattern", Vec::new(), start)
}

pub fn a_question_that_no_client_could_show_is_refused(_: &View, news: &[News]) -> StepResult {
    if !matches!(news[0], News::Said(_)) {
        return reply_with_results(news);
    }
    let action = |widget: &str, schema: &str| {
        let response_schema = Some(schema.to_owned());
        Work::Client(ClientAction {
            widget: widget.into(),
            props: "{}".into(),
            response_schema,
            lock_input: true,
        })
    };
    let start = vec![
        (
            "elsewhere".into(),
            action("own_form", r#"{"$ref":"http://169.254.169.254/"}"#),
        ),
        (
            "file".into(),
            action("own_form", r#"{"$ref":"file:///etc/passwd"}"#),
        ),
        (
            "bomb".into(),
            action(
                "own_form",
                r#"{"type":"string","pattern":"(a{1000}){1000}"}"#,
            ),
        ),
        ("widget".into(), action("", "{}")),
    ];
    going_on(
        "a_question_that_no_client_could_show_is_refused",
        Vec::new(),
        start,
    )
}

pub fn a_turn_that_could_never_end_is_refused(_: &View, _: &[News]) -> StepResult {
    going_on("", Vec::new(), Vec::new())
}
