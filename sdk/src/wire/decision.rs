//! Decisions, operations and effects, on their way to the host.

use crate::bindings::agent_plugin::exports::agent_host::plugin::agent as wire;
use crate::operation::{Call, ModelRequest, Operation, Work};
use crate::step::{Decision, Effect, Item, Step, Wait};
use crate::wire::content::action_to_host;

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
