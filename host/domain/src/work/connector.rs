//! Connectors: how agents talk with people at messaging services.
//!
//! - what an operator says of a connector, and the limits of all: this file; how its service
//!   proves its calls: `webhook.rs`
//! - the one whose service is the host itself: `direct.rs`
//! - what arrives: `incoming.rs`; who it is from: `sender.rs`
//! - what is sent: `outgoing.rs`, split where it is too long (`split.rs`), questions and their
//!   answers (`question.rs`)

mod direct;
mod incoming;
mod outgoing;
mod question;
mod sender;
mod split;
mod webhook;

use crate::agents::definition::DefinitionId;
use crate::agents::path::{ConnectorName, EXTERNAL_ID_BYTES_MAX};
use crate::values::backoff::Backoff;
use crate::values::text::words;
use crate::work::operation::ReplyTo;
use crate::work::queue::QueueOverride;
use crate::work::trigger::{Quiet, SpecFault, configuration_fault};
pub use direct::*;
pub use incoming::*;
pub use outgoing::*;
pub use question::*;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
pub use sender::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
pub use shapes::limits::connector::*;
pub use split::*;
use utoipa::ToSchema;
pub use webhook::*;

// Limits of connectors: inbound batches, waiting messages, and times.

/// The most quotations in one message. Further ones are left out.
pub const QUOTATIONS_MAX: usize = 10;
/// Bytes of the handle by which a component fetches a file.
pub const HANDLE_BYTES_MAX: usize = 2 << 10;
/// The prefix of a group's id in its connector key. No sender's id begins with it.
pub const GROUP_PREFIX: &str = "group:";
/// Bytes of a service's id of a group.
pub const GROUP_ID_BYTES_MAX: usize = EXTERNAL_ID_BYTES_MAX - GROUP_PREFIX.len();
/// Bytes of the body of a service's call: 3 MiB, the most that WhatsApp sends.
pub const CALL_BYTES_MAX: usize = 3 << 20;
/// Days within which a message with the same id of its service is accepted once.
pub const ONCE_DAYS: u64 = 7;
/// Milliseconds for which messages of one path are collected before a session gets them.
pub const GATHERED_MS: u64 = 100;
/// The longest pause, in milliseconds by the service's clock, between messages of one path that are
/// collected together. Some clocks count seconds. Messages that waited at a service arrive at once,
/// but were sent at different times.
pub const GATHERED_SENT_MS: u64 = 1_000;
/// Milliseconds between two polls at least.
pub const POLL_MS_MIN: u64 = 100;
/// The most milliseconds between two polls.
pub const POLL_MS_MAX: u64 = 3_600_000;
/// The most inbound messages of one connector that are not yet with a session. At this number,
/// polling of the service stops. A batch received below it is accepted whole.
pub const INBOUND_MESSAGES_WAITING_MAX: usize = 1_000;
/// Messages that wait to be sent through one connector.
pub const OUTBOUND_MESSAGES_MAX: usize = 10_000;
/// Messages that wait to be sent into one chat.
pub const CHAT_OUTBOUND_MESSAGES_MAX: usize = 1_000;
/// Bytes of one text to be sent, before it is split: 256 KiB. The rest is cut off, and the text
/// says so.
pub const OUTGOING_BYTES_MAX: usize = 256 << 10;
/// UTF-16 code units that every service accepts in one outgoing message: no component may set a
/// lower limit.
pub const TEXT_LIMIT_MIN: u32 = 200;
/// The most choices that are sent with a question.
pub const CHOICES_MAX: usize = 100;
/// UTF-16 code units of a button's label that every service displays.
pub const BUTTON_LABEL_UNITS_MAX: usize = 20;
/// Bytes of the call that an approval shows in a chat. A longer one is answered elsewhere.
pub const APPROVAL_BYTES_MAX: usize = 8 << 10;
/// Milliseconds between two edits of one message.
pub const EDIT_MS_MIN: u64 = 1_500;
/// Milliseconds between two typing notices to a service.
pub const TYPING_MS: u64 = 4_000;
/// Milliseconds for which a pairing code is valid: one hour.
pub const PAIRING_MS: u64 = 3_600_000;
/// Valid pairing codes of one sender.
pub const PAIRINGS_OF_SENDER_MAX: usize = 3;
/// Valid pairing codes of one connector.
pub const PAIRINGS_MAX: usize = 1_000;
/// Attempts to send one message.
pub const ATTEMPTS_MAX: u32 = 16;
/// Pauses between attempts, unless the service asks for more: up to one hour.
pub const RETRIES: Backoff = Backoff {
    first_ms: 1_000,
    most_ms: 3_600_000,
};
/// The longest wait that a service may request, in milliseconds: one day.
pub const RETRY_AFTER_MS_MAX: u64 = 86_400_000;
/// Bytes of a failure's reason that are stored.
pub const REASON_BYTES_MAX: usize = 1 << 10;
/// Connectors of one host.
pub const CONNECTORS_MAX: usize = 10_000;
/// Bytes of the text for unknown senders.
pub const REFUSAL_BYTES_MAX: usize = 1 << 10;

// Reply routes: the chats of messaging services that receive replies, and the recipient of a
// turn's results.

/// The chat that receives replies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyRoute {
    /// The connector.
    pub connector: ConnectorName,
    /// The chat, in the service's terms.
    pub chat: String,
}

/// A chat that receives the results of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// The chat.
    pub route: ReplyRoute,
    /// True if a person wrote from it, and waits for the result.
    pub is_awaited: bool,
    /// The rule for replies that are not sent, in a turn that only a heartbeat began.
    pub quiet: Option<Quiet>,
}

/// The recipient of a turn's results, in addition to the viewers of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Nobody: the request was sent over the API, or by another agent that does not wait.
    Nobody,
    /// The chat of the latest message to its session: the turn continues work requested there.
    Session,
    /// Another agent, which waits for it. Its questions reach the chat that this agent answers.
    Caller(ReplyTo),
    /// A chat.
    Chat(Recipient),
}

// Operators' definitions of connectors, and their check.

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
    /// The first fault, with its field and the fix.
    pub fn check(&self) -> Result<(), SpecFault> {
        self.faults().into_iter().next().map_or(Ok(()), Err)
    }

    /// Returns all faults that do not depend on its component, in the order of the fields.
    #[must_use]
    pub fn faults(&self) -> Vec<SpecFault> {
        let mut faults = Vec::new();
        if self.component.trim().is_empty() {
            let fix = "write the name of a component, such as `telegram`";
            faults.push(SpecFault::new("component", "is empty", fix));
        }
        if self.agent.0.trim().is_empty() {
            let fix = "write the id of a definition, such as `assistant`";
            faults.push(SpecFault::new("agent", "is empty", fix));
        }
        faults.extend(match (self.intake(), &self.webhook) {
            (Intake::Webhook, None) => {
                let fix = "with the intake `webhook` it says how calls of the service prove that \
                           they are its own, such as `{ telegram = { secret = \"<name>\" } }`";
                Some(SpecFault::new("webhook", "is missing", fix))
            }
            (Intake::Polling, Some(_)) => {
                let message =
                    "has no meaning with the intake `polling`: the service makes no calls";
                Some(SpecFault::new("webhook", message, "leave it out"))
            }
            (Intake::Webhook, Some(check)) => check.fault().map(|fault| fault.within("webhook")),
            (Intake::Polling, None) => None,
        });
        if let Some(words) = &self.refusal {
            if self.unknown != UnknownSender::Refuse {
                let message = format!("is told to nobody while `unknown` is `{}`", self.unknown);
                faults.push(SpecFault::new("refusal", message, "set that to `refuse`"));
            }
            if words.trim().is_empty() || words.len() > REFUSAL_BYTES_MAX {
                let message = format!("has {} bytes", words.len());
                let fix = format!("write 1 to {REFUSAL_BYTES_MAX}");
                faults.push(SpecFault::new("refusal", message, fix));
            }
        }
        faults.extend(
            configuration_fault(&self.configuration)
                .or_else(|| DirectSpec::of(self).and_then(Result::err)),
        );
        faults
    }

    /// Checks that its component supports the intake.
    ///
    /// # Errors
    /// The component does not support the intake.
    pub fn check_abilities(&self, abilities: &Abilities) -> Result<(), SpecFault> {
        let asked = self.intake();
        let offered = &abilities.intake;
        if offered.contains(&asked) {
            return Ok(());
        }
        let words: Vec<String> = offered.iter().map(|way| format!("`{way}`")).collect();
        let (list, fix) = match offered.first() {
            Some(way) => (words.join(" and "), format!("write intake = \"{way}\"")),
            None => ("no way in".to_owned(), "name another component".to_owned()),
        };
        let message = format!("is `{asked}`, and the component has {list}");
        Err(SpecFault::new("intake", message, fix))
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
mod spec_tests {
    use super::*;
    use serde_json::json;

    fn read(changes: &Value) -> Result<ConnectorSpec, serde_json::Error> {
        let mut spec = json!({ "component": "telegram", "agent": "assistant" });
        let fields = spec.as_object_mut().unwrap();
        fields.extend(changes.as_object().unwrap().clone());
        serde_json::from_value(spec)
    }

    fn fault(changes: &Value) -> String {
        read(changes).unwrap().check().unwrap_err().to_string()
    }

    #[test]
    fn a_connector_needs_a_component_and_an_agent_alone() {
        let spec = read(&json!({})).unwrap();
        assert_eq!(spec.check(), Ok(()));
        assert_eq!(spec.intake(), Intake::Polling);
        assert_eq!(spec.unknown, UnknownSender::Ignore);
        assert_eq!(spec.groups, Groups::Ignore);
        assert!(spec.enabled && spec.typing && !spec.stream && !spec.untrusted);
        let json = serde_json::to_value(&spec).unwrap();
        assert_eq!(serde_json::from_value::<ConnectorSpec>(json).unwrap(), spec);
    }

    #[test]
    fn unknown_keys_are_refused() {
        for wrong in [
            json!({ "agnet": "a" }),
            json!({ "webhook": { "telegram": { "secret": "a", "token": "b" } } }),
            json!({ "webhook": { "discord": { "secret": "a" } } }),
            json!({ "unknown": "welcome" }),
            json!({ "queue": { "mdoe": "steer" } }),
        ] {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn calls_of_a_service_have_to_prove_themselves() {
        let proven = json!({ "webhook": { "telegram": { "secret": "hook" } } });
        let spec = read(&proven).unwrap();
        assert_eq!((spec.intake(), spec.check()), (Intake::Webhook, Ok(())));
        assert!(fault(&json!({ "intake": "webhook" })).starts_with("`webhook` "));
        let unused = json!({ "intake": "polling", "webhook": { "slack": { "secret": "a" } } });
        assert!(fault(&unused).starts_with("`webhook` "));
        let empty = json!({ "webhook": { "meta": { "secret": "a", "verifyToken": "" } } });
        assert!(fault(&empty).starts_with("`webhook.meta.verifyToken` "));
    }

    #[test]
    fn a_fault_names_its_field() {
        let long = "a".repeat(64 << 10);
        for (changes, field) in [
            (json!({ "component": " " }), "`component` "),
            (json!({ "agent": "" }), "`agent` "),
            (json!({ "refusal": "No." }), "`refusal` "),
            (json!({ "unknown": "refuse", "refusal": " " }), "`refusal` "),
            (json!({ "configuration": [] }), "`configuration` "),
            (
                json!({ "configuration": { "a": long } }),
                "`configuration` ",
            ),
        ] {
            let fault = fault(&changes);
            assert!(fault.starts_with(field), "{fault}");
        }
    }

    #[test]
    fn a_component_has_to_have_the_way_in() {
        let abilities = Abilities {
            intake: vec![Intake::Webhook],
            text_limit: 4_096,
            buttons_max: 3,
            edits: true,
            typing: true,
            idempotent: false,
        };
        let polling = read(&json!({})).unwrap();
        let error = polling.check_abilities(&abilities).unwrap_err().to_string();
        let expected =
            "`intake` is `polling`, and the component has `webhook`; write intake = \"webhook\"";
        assert_eq!(error, expected);
        let webhook = read(&json!({ "webhook": { "slack": { "secret": "a" } } })).unwrap();
        assert_eq!(webhook.check_abilities(&abilities), Ok(()));
    }
}
