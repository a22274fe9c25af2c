//! The exports of the `agent-plugin` world, for any agent.

use crate::agent::Agent;
use crate::bindings::agent_plugin::exports::agent_host::plugin::agent as wire;
use crate::log;
use crate::news::{News, Outcome, Settlement};
use crate::turn::Turn;
use crate::wire::decision::step_to_host;
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
