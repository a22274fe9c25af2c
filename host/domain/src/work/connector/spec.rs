//! Operators' definitions of connectors, and their check.

use super::direct::{DirectSpec, DirectSpecError};
use super::limits::{CONFIGURATION_BYTES_MAX, REFUSAL_BYTES_MAX};
use super::webhook::{WebhookCheck, WebhookCheckError};
use crate::agents::definition::DefinitionId;
use crate::values::text::words;
use crate::work::queue::QueueOverride;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A connector, as the operator defines it under its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConnectorSpec {
    /// The name of the component for the service, such as `telegram`.
    pub component: String,
    /// The definition of its agents. Each user has one of their own, at `/<user>/<connector>`.
    pub agent: DefinitionId,
    /// The intake of messages; defaults to `webhook` if that is set and to `polling` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intake: Option<Intake>,
    /// The authentication of the service's calls. The intake `webhook` needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookCheck>,
    /// The treatment of senders without a connector key; default `ignore`.
    #[serde(default)]
    pub unknown: UnknownSender,
    /// The text for a refused sender; a polite sentence by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1_024))]
    pub refusal: Option<String>,
    /// The treatment of messages in groups; default `ignore`.
    #[serde(default)]
    pub groups: Groups,
    /// True to mark all messages as content from outside, whoever sends them. This suits services
    /// that do not verify senders, such as mail; default false.
    #[serde(default)]
    pub untrusted: bool,
    /// The queue's settings for its messages, which override those of the host.
    #[serde(default)]
    #[schemars(schema_with = "queue_schema")]
    pub queue: QueueOverride,
    /// True to show people that the agent is typing, if the service supports it; default true.
    #[serde(default = "yes")]
    pub typing: bool,
    /// True to stream a reply by edits, if the service supports edits; default false.
    #[serde(default)]
    pub stream: bool,
    /// The component's configuration: an object that fits its schema. Secrets are in it as
    /// placeholders.
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    #[schemars(schema_with = "object_schema")]
    pub configuration: Value,
    /// False to stop it; default true.
    #[serde(default = "yes")]
    pub enabled: bool,
}

/// The way in which messages reach the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Intake {
    /// The host polls the service.
    Polling,
    /// The service calls the host.
    Webhook,
}

words!(Intake { Polling = "polling", Webhook = "webhook" });

/// The treatment of senders without a connector key.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema, ToSchema,
)]
#[serde(rename_all = "lowercase")]
#[schema(as = UnknownSenders)]
pub enum UnknownSender {
    /// They get no answer.
    #[default]
    Ignore,
    /// They get the answer that they are unknown.
    Refuse,
    /// They get a code with which the operator or a user says who they are.
    Pair,
}

words!(UnknownSender { Ignore = "ignore", Refuse = "refuse", Pair = "pair" });

/// The treatment of messages in groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Groups {
    /// The connector ignores them.
    #[default]
    Ignore,
    /// Groups with a connector key are read. Such a group is a user of its own.
    Bound,
}

words!(Groups { Ignore = "ignore", Bound = "bound" });

/// The abilities of a service, as its component describes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// The supported intakes.
    pub intake: Vec<Intake>,
    /// UTF-16 code units of one message's text.
    pub text_limit: u32,
    /// Buttons of one question.
    pub buttons_max: u32,
    /// True if a sent message can be edited.
    pub edits: bool,
    /// True if it supports typing notices.
    pub typing: bool,
    /// True if it supports an idempotency key.
    pub idempotent: bool,
}

/// The fault in an operator's configuration of a connector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectorSpecError {
    /// It names no component.
    #[error("component: it is empty; write the name of a component, such as `telegram`")]
    Component,
    /// It names no definition.
    #[error("agent: it is empty; write the id of a definition, such as `assistant`")]
    Agent,
    /// Calls of the service could be forged.
    #[error(
        "webhook: it is missing; with the intake `webhook` it says how calls of the service prove \
         that they are its own, such as `{{ telegram = {{ secret = \"<name>\" }} }}`"
    )]
    Unproven,
    /// A check of calls, although the intake makes none.
    #[error("webhook: with the intake `polling` the service makes no calls; leave it out")]
    Unused,
    /// An invalid check of calls.
    #[error("webhook.{0}")]
    Webhook(#[from] WebhookCheckError),
    /// A text for unknown senders that is never sent.
    #[error("refusal: nobody is told it while `unknown` is `{0}`; set that to `refuse`")]
    Unsaid(UnknownSender),
    /// A text that is empty or too long.
    #[error("refusal: 1 to {REFUSAL_BYTES_MAX} bytes are needed, this has {0}")]
    Refusal(usize),
    /// The configuration is no object.
    #[error("configuration: an object is needed, this is something else")]
    NotAnObject,
    /// The configuration is too large.
    #[error(
        "configuration: {CONFIGURATION_BYTES_MAX} bytes of JSON at most are allowed, these are {0}"
    )]
    Configuration(usize),
    /// It is a chat for web pages with an invalid configuration.
    #[error(transparent)]
    Direct(#[from] DirectSpecError),
    /// The component does not support it.
    #[error(
        "intake: the component has {list}, and not `{asked}`; {fix}",
        list = list(offered), fix = fix(offered)
    )]
    NotOffered {
        /// The requested intake.
        asked: Intake,
        /// The intakes that the component supports.
        offered: Vec<Intake>,
    },
}

/// Returns the fix for an intake that a component does not support.
fn fix(offered: &[Intake]) -> String {
    match offered.first() {
        Some(way) => format!("write intake = \"{way}\""),
        None => "name another component".to_owned(),
    }
}

fn list(offered: &[Intake]) -> String {
    if offered.is_empty() {
        return "no way in".to_owned();
    }
    let words: Vec<String> = offered.iter().map(|way| format!("`{way}`")).collect();
    words.join(" and ")
}

impl ConnectorSpec {
    /// Returns the intake.
    #[must_use]
    pub fn intake(&self) -> Intake {
        self.intake.unwrap_or(if self.webhook.is_some() {
            Intake::Webhook
        } else {
            Intake::Polling
        })
    }

    /// Checks everything that does not depend on its component.
    ///
    /// # Errors
    /// The first fault, with its field and what to write instead.
    pub fn check(&self) -> Result<(), ConnectorSpecError> {
        if self.component.trim().is_empty() {
            return Err(ConnectorSpecError::Component);
        }
        if self.agent.0.trim().is_empty() {
            return Err(ConnectorSpecError::Agent);
        }
        match (self.intake(), &self.webhook) {
            (Intake::Webhook, None) => return Err(ConnectorSpecError::Unproven),
            (Intake::Polling, Some(_)) => return Err(ConnectorSpecError::Unused),
            (Intake::Webhook, Some(check)) => check.check()?,
            (Intake::Polling, None) => {}
        }
        if let Some(words) = &self.refusal {
            if self.unknown != UnknownSender::Refuse {
                return Err(ConnectorSpecError::Unsaid(self.unknown));
            }
            if words.trim().is_empty() || words.len() > REFUSAL_BYTES_MAX {
                return Err(ConnectorSpecError::Refusal(words.len()));
            }
        }
        if !self.configuration.is_object() {
            return Err(ConnectorSpecError::NotAnObject);
        }
        if let Some(direct) = DirectSpec::of(self) {
            direct?;
        }
        match self.configuration.to_string().len() {
            bytes if bytes > CONFIGURATION_BYTES_MAX => {
                Err(ConnectorSpecError::Configuration(bytes))
            }
            _ => Ok(()),
        }
    }

    /// Checks that its component supports the configuration.
    ///
    /// # Errors
    /// The component does not support the intake.
    pub fn check_abilities(&self, abilities: &Abilities) -> Result<(), ConnectorSpecError> {
        let asked = self.intake();
        if abilities.intake.contains(&asked) {
            return Ok(());
        }
        Err(ConnectorSpecError::NotOffered {
            asked,
            offered: abilities.intake.clone(),
        })
    }
}

fn yes() -> bool {
    true
}

fn nothing() -> Value {
    Value::Object(Map::new())
}

fn is_nothing(configuration: &Value) -> bool {
    configuration.as_object().is_some_and(Map::is_empty)
}

fn object_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// The schema of the queue's settings.
pub(crate) fn queue_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "mode": { "type": "string" },
            "debounce_ms": { "type": ["integer", "string"] },
            "cap": { "type": ["integer", "string"] },
            "drop": { "type": "string" },
        },
    })
}

#[cfg(test)]
mod tests;
