//! The two webhooks for words of programs, `/hooks/wake` and `/hooks/agent`: two triggers that
//! follow from one key of the configuration.

use domain::definition::DefinitionId;
use domain::queue::QueueOverride;
use domain::trigger::{
    Deliver, TriggerKind, TriggerName, TriggerSpec, TriggerTarget, TriggerTargetName,
    WebhookAnswer, WebhookAuth, WebhookSpec,
};
use domain::user::UserId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The names of the two triggers, which no other trigger of the configuration has.
pub(super) const NAMES: [&str; 2] = [WAKE, AGENT];

const WAKE: &str = "wake";
const AGENT: &str = "agent";
/// The field of a call by which it names its agent.
const AGENT_FIELD: &str = "agentId";

/// The webhooks `/hooks/wake`, which says a text to an agent, and `/hooks/agent`, which begins a
/// session of its own for a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct HooksConfig {
    /// The secret of `secrets` that callers send, as `Authorization: Bearer …` or in
    /// `X-AgentHost-Token`.
    pub(crate) token: String,
    /// The user on whose behalf both speak.
    #[schemars(with = "String")]
    pub(crate) user: UserId,
    /// The agent that both speak to, unless a call of `/hooks/agent` names another one as
    /// `agentId`.
    pub(crate) agent: DefinitionId,
    /// The agents that a call of `/hooks/agent` may name; none besides the one above without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) agents: Vec<DefinitionId>,
}

impl HooksConfig {
    /// The component of both triggers.
    pub(crate) const COMPONENT: &'static str = "webhook";

    /// Returns the triggers that it stands for.
    pub(crate) fn triggers(&self) -> impl Iterator<Item = (TriggerName, TriggerSpec)> {
        let wake = TriggerSpec {
            on: webhook(&self.token, WebhookAnswer::Now),
            message: Some("{{payload.text}}".to_owned()),
            ..self.trigger()
        };
        let named = std::iter::once(&self.agent).chain(&self.agents);
        let named = named.filter_map(|agent| {
            let name = agent.0.parse::<TriggerTargetName>().ok()?;
            Some((name, target(agent)))
        });
        let agent = TriggerSpec {
            message: Some("{{payload.message}}".to_owned()),
            targets: named.collect(),
            configuration: json!({ "targetFrom": AGENT_FIELD }),
            isolated: true,
            ..self.trigger()
        };
        // Both are names.
        [(WAKE, wake), (AGENT, agent)]
            .into_iter()
            .filter_map(|(name, spec)| Some((name.parse().ok()?, spec)))
    }

    /// Returns what both triggers have in common.
    fn trigger(&self) -> TriggerSpec {
        TriggerSpec {
            component: Some(Self::COMPONENT.to_owned()),
            user: Some(self.user.clone()),
            on: webhook(&self.token, WebhookAnswer::Accepted),
            message: None,
            target: target(&self.agent),
            targets: [].into(),
            configuration: Value::Object(serde_json::Map::new()),
            isolated: false,
            queue: QueueOverride::default(),
            priority: None,
            model: None,
            deliver: Deliver::Last,
            enabled: true,
        }
    }
}

fn target(agent: &DefinitionId) -> TriggerTarget {
    TriggerTarget::Agent {
        agent: agent.0.clone(),
    }
}

fn webhook(token: &str, answer: WebhookAnswer) -> TriggerKind {
    TriggerKind::Webhook(WebhookSpec {
        auth: WebhookAuth::Token {
            secret: token.to_owned(),
        },
        call_id: None,
        answer,
        bytes_max: None,
    })
}

#[cfg(test)]
mod tests {
    use super::HooksConfig;
    use domain::trigger::{TriggerTarget, WebhookAnswer};
    use serde_json::{Value, json};

    fn hooks(agents: &Value) -> HooksConfig {
        let hooks =
            json!({ "token": "hook", "user": "ada", "agent": "assistant", "agents": agents });
        serde_json::from_value(hooks).unwrap()
    }

    #[test]
    fn the_two_hooks_are_triggers_that_an_operator_could_have_written() {
        let triggers: Vec<_> = hooks(&json!(["tutor"])).triggers().collect();
        let names: Vec<&str> = triggers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["wake", "agent"]);
        for (name, spec) in &triggers {
            assert_eq!(spec.check_configured(), Ok(()), "{name}");
            let written = json!(spec);
            assert_eq!(
                written["webhook"]["auth"],
                json!({ "token": { "secret": "hook" } })
            );
            assert_eq!(written["target"], json!({ "agent": "assistant" }));
        }
        let (_, wake) = &triggers[0];
        assert_eq!(json!(wake)["webhook"]["answer"], json!(WebhookAnswer::Now));
        assert!(wake.targets.is_empty() && !wake.isolated);
        let (_, agent) = &triggers[1];
        let tutor = TriggerTarget::Agent {
            agent: "tutor".to_owned(),
        };
        let picked = |name: &str| agent.picked(Some(&name.parse().unwrap()));
        assert_eq!(picked("tutor"), Some(&tutor));
        assert!(picked("assistant").is_some() && picked("other").is_none());
        assert!(agent.isolated);
    }
}
