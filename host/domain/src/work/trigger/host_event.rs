//! Events of the host as trigger events: the few kinds that an operator may subscribe a trigger to.

use super::TriggerName;
use crate::access::grant::PatternList;
use crate::agents::definition::DefinitionId;
use crate::values::text::words;
use crate::values::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kinds of host events that a trigger may receive.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum HostEventKind {
    /// A structured session was completed.
    #[serde(rename = "session.completed")]
    SessionCompleted,
    /// A message was given up: it is a dead letter.
    #[serde(rename = "input.dead")]
    InputDead,
    /// A budget is spent up to 80 %.
    #[serde(rename = "budget.80")]
    Budget80,
    /// A message to people outside was given up.
    #[serde(rename = "outbound.dead")]
    OutboundMessageDead,
    /// It is unknown whether a message reached people outside.
    #[serde(rename = "outbound.unknown")]
    OutboundMessageUnknown,
    /// A trigger failed several times in a row.
    #[serde(rename = "trigger.failing")]
    TriggerFailing,
    /// A provider of models is unusable.
    #[serde(rename = "provider.down")]
    ProviderDown,
    /// It can be used again.
    #[serde(rename = "provider.up")]
    ProviderUp,
    /// The service of a connector is unusable.
    #[serde(rename = "connector.down")]
    ConnectorDown,
    /// It can be used again.
    #[serde(rename = "connector.up")]
    ConnectorUp,
}

words!(HostEventKind {
    SessionCompleted = "session.completed",
    InputDead = "input.dead",
    Budget80 = "budget.80",
    OutboundMessageDead = "outbound.dead",
    OutboundMessageUnknown = "outbound.unknown",
    TriggerFailing = "trigger.failing",
    ProviderDown = "provider.down",
    ProviderUp = "provider.up",
    ConnectorDown = "connector.down",
    ConnectorUp = "connector.up",
});

/// A host event that a trigger may receive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEvent {
    /// Its kind.
    pub name: HostEventKind,
    /// Its id, the same in every report.
    pub id: String,
    /// Time at which it happened.
    pub time: Timestamp,
    /// Its content.
    pub data: Value,
    /// Events that led to it, each through a trigger that received the event before. Beyond
    /// [`super::CHAIN_MAX`] no trigger receives it.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub chain: u32,
}

/// The host events that a trigger receives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventsSpec {
    /// Their kinds, at least one: `session.completed`, `input.dead`, `budget.80`, `outbound.dead`,
    /// `outbound.unknown`, `trigger.failing`, `provider.down`, `provider.up`, `connector.down` and
    /// `connector.up`. A trigger never receives events about itself, nor about work that follows
    /// from it. If several triggers cause each other's events, no trigger receives the fifth.
    pub on: Vec<HostEventKind>,
    /// Only events of agents of these definitions; `*` stands for any run of characters. Without
    /// it, events of all agents. Events without an agent are always received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<PatternList>,
}

/// The facts that decide which triggers receive an event.
#[derive(Debug, Clone, Copy)]
pub struct Heard<'a> {
    /// The kind of the event.
    pub kind: HostEventKind,
    /// The definition of the event's agent; none for an event without an agent.
    pub agent: Option<&'a DefinitionId>,
    /// The trigger that the event is about, or from whose trigger run it follows, if any.
    pub trigger: Option<&'a TriggerName>,
}

impl EventsSpec {
    /// Returns whether the trigger with this name receives an event. It does not receive events
    /// that it caused itself, which would never end.
    #[must_use]
    pub fn hears(&self, own: &TriggerName, event: &Heard<'_>) -> bool {
        let agents = self.agents.as_ref();
        let is_of_agents = event
            .agent
            .is_none_or(|agent| agents.is_none_or(|patterns| patterns.matches(&agent.0)));
        self.on.contains(&event.kind) && is_of_agents && event.trigger != Some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_trigger_hears_the_kinds_and_agents_that_it_names() {
        let spec: EventsSpec = serde_json::from_value(
            json!({ "on": ["session.completed", "trigger.failing"], "agents": ["read*"] }),
        )
        .unwrap();
        let own: TriggerName = "own".parse().unwrap();
        let other: TriggerName = "other".parse().unwrap();
        let reading = DefinitionId("reading-list".to_owned());
        let tutor = DefinitionId("tutor".to_owned());
        for (kind, agent, trigger, expected) in [
            (HostEventKind::SessionCompleted, Some(&reading), None, true),
            (HostEventKind::SessionCompleted, Some(&tutor), None, false),
            (HostEventKind::InputDead, Some(&reading), None, false),
            (HostEventKind::TriggerFailing, None, Some(&other), true),
            (HostEventKind::TriggerFailing, None, Some(&own), false),
            (
                HostEventKind::SessionCompleted,
                Some(&reading),
                Some(&own),
                false,
            ),
        ] {
            let event = Heard {
                kind,
                agent,
                trigger,
            };
            assert_eq!(spec.hears(&own, &event), expected, "{event:?}");
        }
    }

    #[test]
    fn the_words_of_kinds_are_those_on_the_wire() {
        for kind in HostEventKind::ALL {
            assert_eq!(json!(kind), json!(kind.as_str()));
        }
        assert!(serde_json::from_value::<EventsSpec>(json!({ "on": ["run.ended"] })).is_err());
    }
}
