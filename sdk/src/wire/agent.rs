//! The exports of the `agent-plugin` world, for any agent.

use crate::agent::Agent;
use crate::bindings::agent_plugin::exports::agent_host::plugin::agent as wire;
use crate::log;
use crate::news::{News, Outcome, Settlement};
use crate::operation::{Call, ModelRequest, Operation, Work};
use crate::step::{Decision, Effect, Item, Step, Wait};
use crate::turn::Turn;
use crate::wire::content::action_to_host;
use crate::wire::{WireView, json_of_host};

/// The result of `describe`.
pub type WireDescription = wire::Description;
/// The news that `step` takes.
pub type WireNewsList = Vec<wire::News>;
/// The result of `step`.
pub type WireStep = wire::StepResult;

/// The export `describe`.
pub fn describe_agent(agent: &impl Agent) -> WireDescription {
    log::send_panics_to_the_host();
    agent.describe()
}

/// The export `step`.
pub fn step_agent(agent: &impl Agent, view: &WireView, news: WireNewsList) -> WireStep {
    log::send_panics_to_the_host();
    let news: Vec<News> = news.into_iter().map(news_from_host).collect();
    step_to_host(agent.step(Turn::new(view), &news))
}

fn news_from_host(news: wire::News) -> News {
    match news {
        wire::News::Opened => News::Opened,
        wire::News::Said(messages) => News::Said(messages),
        wire::News::Settled(wire::Settlement { key, outcome }) => News::Settled(Settlement {
            key,
            outcome: outcome_from_host(outcome),
        }),
    }
}

fn outcome_from_host(outcome: wire::Outcome) -> Outcome {
    match outcome {
        wire::Outcome::Message(id) => Outcome::Message(id),
        wire::Outcome::Parts(parts) => Outcome::Parts(parts),
        wire::Outcome::Value(value) => Outcome::Value(json_of_host(&value)),
        wire::Outcome::Elapsed => Outcome::Elapsed,
        wire::Outcome::Failed(failure) => Outcome::Failed(failure),
        wire::Outcome::Denied => Outcome::Denied,
        wire::Outcome::TimedOut => Outcome::TimedOut,
        wire::Outcome::Cancelled => Outcome::Cancelled,
        wire::Outcome::Unknown => Outcome::Unknown,
    }
}

pub(super) fn step_to_host(step: Step) -> wire::StepResult {
    let Step {
        decision,
        effects,
        memo,
    } = step;
    wire::StepResult {
        decision: decision_to_host(decision),
        effects: effects.into_iter().map(effect_to_host).collect(),
        memo,
    }
}

fn decision_to_host(decision: Decision) -> wire::Decision {
    match decision {
        Decision::Wait(Wait {
            start,
            cancel,
            until,
            hear,
        }) => wire::Decision::Wait(wire::Wait {
            start: start.into_iter().map(operation_to_host).collect(),
            cancel,
            until,
            hear,
        }),
        Decision::Reply(parts) => wire::Decision::Reply(parts),
        Decision::Complete(summary) => wire::Decision::Complete(summary.to_string()),
        Decision::Fail(reason) => wire::Decision::Fail(reason),
    }
}

fn operation_to_host(operation: Operation) -> wire::Operation {
    let Operation { key, work } = operation;
    let work = match work {
        Work::Model(request) => wire::Work::Model(request_to_host(request)),
        Work::Tool(Call::OfModel { message, index }) => {
            wire::Work::Tool(wire::Call::OfModel(wire::ModelCallPlace { message, index }))
        }
        Work::Tool(Call::Own { name, arguments }) => {
            wire::Work::Tool(wire::Call::Own(wire::OwnCall {
                name,
                arguments: arguments.to_string(),
            }))
        }
        Work::Client(action) => wire::Work::Client(action_to_host(action)),
        Work::Agent(dispatch) => wire::Work::Agent(dispatch),
        Work::Recall { query, limit } => wire::Work::Recall(wire::Recall { query, limit }),
        Work::TimerMs(ms) => wire::Work::TimerMs(ms),
    };
    wire::Operation { key, work }
}

fn request_to_host(request: ModelRequest) -> wire::ModelRequest {
    let ModelRequest {
        system,
        context,
        also,
        tools,
        model,
        max_tokens,
        reply_schema,
        audience,
    } = request;
    wire::ModelRequest {
        system,
        context,
        also,
        tools,
        model,
        max_tokens,
        reply_schema: reply_schema.map(|schema| schema.to_string()),
        audience,
    }
}

fn effect_to_host(effect: Effect) -> wire::Effect {
    match effect {
        Effect::Say(parts) => wire::Effect::Say(parts),
        Effect::Prefer(preferences) => wire::Effect::Prefer(preferences.to_string()),
        Effect::PreferForUser(preferences) => wire::Effect::PreferForUser(preferences.to_string()),
        Effect::RecordItem(Item {
            prompt,
            response,
            evaluation,
            asked,
        }) => wire::Effect::RecordItem(wire::Item {
            prompt: prompt.to_string(),
            response: response.to_string(),
            evaluation: evaluation.map(|evaluation| evaluation.to_string()),
            asked,
        }),
        Effect::SessionState(state) => wire::Effect::SessionState(state.to_string()),
        Effect::Remember(note) => wire::Effect::Remember(note),
        Effect::Emit { name, data } => wire::Effect::Emit(wire::OwnEvent {
            name,
            data: data.to_string(),
        }),
        Effect::Schedule { after_ms, content } => {
            wire::Effect::Schedule(wire::Reminder { after_ms, content })
        }
    }
}
