//! An agent that does what the user's message says, step by step. In the end it replies with
//! everything that it learned.
//!
//! The message is JSON: `{"steps": [...]}`, each step with `start`, `cancel`, `until`, `hear`,
//! `effects`, or one of `reply`, `read` (a blob, and say how long it is), `files` (read those of
//! the last answer, and say what is in them), `show` (say what is seen of whom it is for),
//! `complete`, `fail`, `trap`. Its memo holds the script, the next step's number and the news so
//! far, one line each.

use plugin::agent::agent_host::plugin::types::ClientAction;
use plugin::agent::{
    Audience, Call, Context, Decision, Description, Dispatch, Effect, Guest, Item, Memo,
    ModelRequest, News, Operation, Outcome, OwnCall, OwnEvent, Part, Recall, Reminder, StepResult,
    Toolset, Until, View, Wait, Work, named,
};
use serde_json::{Value, json};

struct Program;

impl Guest for Program {
    fn describe() -> Description {
        Description {
            memo_formats: vec![1],
            session_types: vec!["chat".into(), "lesson".into()],
            ..named("puppet")
        }
    }

    fn step(turn: &View, news: Vec<News>) -> StepResult {
        let mut memo: Value = turn
            .memo()
            .and_then(|memo| serde_json::from_slice(&memo.bytes).ok())
            .unwrap_or_else(|| json!({ "steps": null, "next": 0, "reported": [] }));
        for one in &news {
            let line = tell(turn, one);
            if memo["steps"].is_null()
                && let Some(script) = script(turn, one)
            {
                memo["steps"] = script;
                continue;
            }
            memo["reported"]
                .as_array_mut()
                .expect("a list")
                .push(json!(line));
        }
        let next = memo["next"].as_u64().unwrap_or(0);
        let step = memo["steps"].get(next as usize).cloned();
        memo["next"] = json!(next + 1);
        let Some(step) = step else {
            let reported: Vec<&str> = memo["reported"]
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(Value::as_str)
                .collect();
            return plugin::agent::reply(reported.join("\n"));
        };
        if step.get("files").is_some() {
            return plugin::agent::reply(files(turn, &memo["reported"]));
        }
        let memo = Some(Memo {
            format: 1,
            bytes: memo.to_string().into_bytes(),
        });
        StepResult {
            decision: decision(turn, &step),
            effects: effects(&step),
            memo,
        }
    }
}

/// The script: the first message that is one, or else the one in its settings.
fn script(turn: &View, news: &News) -> Option<Value> {
    let said = match news {
        News::Said(ids) => text(turn, *ids.first()?),
        News::Opened => String::new(),
        News::Settled(_) => return None,
    };
    let steps = |text: &str| {
        serde_json::from_str::<Value>(text)
            .ok()?
            .get("steps")
            .cloned()
    };
    steps(&said).or_else(|| {
        steps(
            &serde_json::from_str::<Value>(&turn.settings()).ok()?["settings"]["script"]
                .to_string(),
        )
    })
}

fn text(turn: &View, id: u64) -> String {
    let parts = turn
        .message(id)
        .map(|message| message.parts)
        .unwrap_or_default();
    all_text(&parts)
}

fn all_text(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| {
            if let Part::Text(text) = part {
                Some(text.as_str())
            } else {
                None
            }
        })
        .collect();
    texts.join(" ")
}

fn tell(turn: &View, news: &News) -> String {
    match news {
        News::Opened => "opened".into(),
        News::Said(ids) => format!(
            "said {}",
            ids.iter()
                .map(|id| text(turn, *id))
                .collect::<Vec<_>>()
                .join(" | ")
        ),
        News::Settled(settlement) => {
            let outcome = match &settlement.outcome {
                Outcome::Message(id) => format!("message {}", text(turn, *id)),
                Outcome::Parts(parts) => {
                    let lengths = parts.iter().filter_map(|part| match part {
                        Part::Blob(blob) => Some(format!(" ({})", length(turn, &blob.handle))),
                        _ => None,
                    });
                    format!("parts {}{}", all_text(parts), lengths.collect::<String>())
                }
                Outcome::Value(value) => format!("value {value}"),
                Outcome::Elapsed => "elapsed".into(),
                Outcome::Failed(failure) => format!("failed {}: {}", failure.code, failure.message),
                Outcome::Denied => "denied".into(),
                Outcome::TimedOut => "timed-out".into(),
                Outcome::Cancelled => "cancelled".into(),
                Outcome::Unknown => "unknown".into(),
            };
            format!("{} {outcome}", settlement.key)
        }
    }
}

/// Returns the length of a blob, read chunk by chunk.
fn length(turn: &View, handle: &str) -> String {
    let mut bytes = 0;
    while let Some(chunk) = turn.read_blob(handle, bytes, u32::MAX) {
        if chunk.is_empty() {
            return format!("{bytes} bytes");
        }
        bytes += chunk.len() as u64;
    }
    "no blob".into()
}

/// The files of the last answer that it got: their descriptions, lengths, and the sums of their
/// bytes.
fn files(turn: &View, reported: &Value) -> String {
    let last = reported
        .as_array()
        .and_then(|reported| reported.last())
        .and_then(Value::as_str)
        .unwrap_or_default();
    let answer: Value = last
        .split_once(" value ")
        .and_then(|(_, answer)| serde_json::from_str(answer).ok())
        .unwrap_or_default();
    let lines = answer["files"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|file| {
            let handle = string(&file["digest"]);
            format!(
                "{} {} {} sum {}",
                string(&file["name"]),
                string(&file["media_type"]),
                length(turn, &handle),
                sum(turn, &handle)
            )
        });
    lines.collect::<Vec<_>>().join("\n")
}

/// The sum of a blob's bytes.
fn sum(turn: &View, handle: &str) -> u64 {
    let mut read = 0;
    let mut sum = 0;
    while let Some(chunk) = turn
        .read_blob(handle, read, u32::MAX)
        .filter(|chunk| !chunk.is_empty())
    {
        read += chunk.len() as u64;
        sum += chunk.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    }
    sum
}

/// Returns a step's view of the user that it is for.
fn seen(turn: &View) -> String {
    let parsed = |text: String| serde_json::from_str::<Value>(&text).unwrap_or_default();
    json!({
        "user": turn.user(), "preferences": parsed(turn.preferences()),
        "shared": parsed(turn.shared_preferences()),
        "config": parsed(turn.session_config()),
        "history": parsed(turn.history()), "settings": parsed(turn.settings()),
    })
    .to_string()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn decision(turn: &View, step: &Value) -> Decision {
    if let Some(reply) = step.get("reply") {
        return Decision::Reply(vec![Part::Text(string(reply))]);
    }
    if let Some(handle) = step.get("read") {
        return Decision::Reply(vec![Part::Text(length(turn, &string(handle)))]);
    }
    if step.get("show").is_some() {
        return Decision::Reply(vec![Part::Text(seen(turn))]);
    }
    if let Some(summary) = step.get("complete") {
        return Decision::Complete(summary.to_string());
    }
    if let Some(reason) = step.get("fail") {
        return Decision::Fail(string(reason));
    }
    if let Some(reason) = step.get("trap") {
        panic!("{reason}");
    }
    let list = |name: &str| step[name].as_array().cloned().unwrap_or_default();
    Decision::Wait(Wait {
        start: list("start")
            .iter()
            .map(|operation| Operation {
                key: string(&operation["key"]),
                work: work(turn, operation),
            })
            .collect(),
        cancel: list("cancel").iter().map(string).collect(),
        until: if step["until"] == "all" {
            Until::All
        } else {
            Until::Any
        },
        hear: step["hear"] == true,
    })
}

fn work(turn: &View, operation: &Value) -> Work {
    if let Some(ms) = operation["timer"].as_u64() {
        return Work::TimerMs(ms);
    }
    if let Some(name) = operation["tool"].as_str() {
        let arguments = operation.get("args").cloned().unwrap_or_else(|| json!({}));
        return Work::Tool(Call::Own(OwnCall {
            name: name.into(),
            arguments: arguments.to_string(),
        }));
    }
    if let Some(index) = operation["call"].as_u64() {
        let message = turn.head().unwrap_or(0);
        let place = plugin::agent::ModelCallPlace {
            message,
            index: index as u32,
        };
        return Work::Tool(Call::OfModel(place));
    }
    if let Some(system) = operation["model"].as_str() {
        return Work::Model(ModelRequest {
            system: vec![system.into()],
            context: Context::Whole,
            also: Vec::new(),
            tools: Toolset::All,
            model: None,
            max_tokens: None,
            reply_schema: operation.get("schema").map(Value::to_string),
            audience: if operation["hidden"] == true {
                Audience::Hidden
            } else {
                Audience::User
            },
        });
    }
    if let Some(query) = operation["recall"].as_str() {
        return Work::Recall(Recall {
            query: query.into(),
            limit: 5,
        });
    }
    if let Some(target) = operation["agent"].as_str() {
        return Work::Agent(Dispatch {
            target: target.into(),
            content: vec![Part::Text(string(&operation["text"]))],
            detached: operation["detached"] == true,
            timeout_ms: operation["timeout"].as_u64(),
        });
    }
    Work::Client(ClientAction {
        widget: string(&operation["client"]),
        props: operation
            .get("props")
            .cloned()
            .unwrap_or_else(|| json!({ "prompt": "well?", "options": ["yes", "no"] }))
            .to_string(),
        response_schema: operation.get("schema").map(Value::to_string),
        lock_input: operation["lock"] == true,
    })
}

fn effects(step: &Value) -> Vec<Effect> {
    step["effects"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|effect| {
            let (kind, value) = effect.as_object()?.iter().next()?;
            Some(match kind.as_str() {
                "say" => Effect::Say(vec![Part::Text(string(value))]),
                "prefer" => Effect::Prefer(value.to_string()),
                "prefer_for_user" => Effect::PreferForUser(value.to_string()),
                "item" => Effect::RecordItem(Item {
                    prompt: value["prompt"].to_string(),
                    response: value["response"].to_string(),
                    evaluation: value.get("evaluation").map(Value::to_string),
                    asked: value["asked"].as_str().map(str::to_owned),
                }),
                "state" => Effect::SessionState(value.to_string()),
                "remember" => Effect::Remember(string(value)),
                "emit" => Effect::Emit(OwnEvent {
                    name: string(value),
                    data: "{}".into(),
                }),
                "schedule" => Effect::Schedule(Reminder {
                    after_ms: value.as_u64()?,
                    content: "reminder".into(),
                }),
                _ => return None,
            })
        })
        .collect()
}

plugin::agent::export!(Program);
