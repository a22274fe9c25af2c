//! The written form of a trigger: every kind is a key, and exactly one of them is present.

use super::super::{
    Deliver, EventsSpec, FilesSpec, HeartbeatSpec, ScheduleSpec, TriggerTarget, TriggerTargetName,
    WebhookSpec,
};
use super::{TriggerKind, TriggerSpec};
use crate::access::user::UserId;
use crate::work::delegate::Priority;
use crate::work::queue::QueueOverride;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A trigger: its cause, which is exactly one of `schedule`, `heartbeat`, `webhook`, `files` and
/// `events`, and the handling of its messages.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "TriggerSpec")]
pub(super) struct SpecInput {
    /// The component that makes messages of its trigger events. The default is built in for its
    /// kind: `schedule`, `heartbeat`, `webhook` or `files-watch`; `schedule` for events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    component: Option<String>,
    /// The user on whose behalf it speaks. The configuration has to name one; over the API it is
    /// the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    user: Option<UserId>,
    /// Fired by a clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schedule: Option<ScheduleSpec>,
    /// Fired at intervals, to check for work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    heartbeat: Option<HeartbeatSpec>,
    /// Fired by calls of `POST /hooks/<name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    webhook: Option<WebhookSpec>,
    /// Fired by changes in a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    files: Option<FilesSpec>,
    /// Fired by events of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    events: Option<EventsSpec>,
    /// The message, 16 KiB at most. `{{now}}`, `{{path}}`, `{{agent.id}}`, `{{trigger.id}}`,
    /// `{{headers.x}}`, `{{query.x}}` and `{{payload.a.b[0]}}` are filled in. Missing values become
    /// empty text, and objects become JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The recipient of its messages.
    target: TriggerTarget,
    /// Further targets that the component may choose by name, 32 at most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    targets: BTreeMap<TriggerTargetName, TriggerTarget>,
    /// Its configuration for the component: an object that fits the component's schema, 64 KiB at
    /// most.
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    #[schemars(with = "Map<String, Value>")]
    configuration: Value,
    /// True if each trigger run has a session of its own. The target then has to be an agent, a
    /// path or a persona.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    isolated: bool,
    /// Treatment of its messages while the agent is busy. Omitted fields are taken from the
    /// session, then from the host's configuration.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    #[schemars(with = "QueueShape")]
    queue: QueueOverride,
    /// The urgency of its messages: `low`, `normal`, `high` or `critical`; default `normal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    priority: Option<Priority>,
    /// The model of its turns: an alias of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The recipient of its turns' replies, in addition to the session. With `last`, which is the
    /// default, it is the chat in which the user last wrote to the agent; with `none`, nobody.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    deliver: Deliver,
    /// True if it may be fired; default true.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    enabled: bool,
}

/// Settings of the queue, in a trigger's definition.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TriggerQueue")]
#[expect(dead_code, reason = "describes how an override of the queue is read")]
struct QueueShape {
    /// The mode: `steer`, `followup`, `collect` or `interrupt`.
    mode: Option<String>,
    /// Quiet period before queued inputs get their turn: milliseconds, or text such as "2s".
    debounce: Option<NumberOrText>,
    /// The same as `debounce`, by its API name.
    debounce_ms: Option<NumberOrText>,
    /// The most inputs in the queue, from 1 to 1000.
    cap: Option<NumberOrText>,
    /// The policy for inputs beyond the cap: `new`, `old` or `summarize`.
    drop: Option<String>,
}

/// The allowed forms of a setting.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes how a setting of the queue is read")]
enum NumberOrText {
    /// A number.
    Number(u64),
    /// A number with a unit.
    Text(String),
}

/// The reason why an object is no trigger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a trigger has {found} of the keys schedule, heartbeat, webhook, files and events; write \
     exactly one"
)]
pub(super) struct NotOneKind {
    found: usize,
}

impl TryFrom<SpecInput> for TriggerSpec {
    type Error = NotOneKind;

    fn try_from(input: SpecInput) -> Result<Self, NotOneKind> {
        let found = [
            input.schedule.map(TriggerKind::Schedule),
            input.heartbeat.map(TriggerKind::Heartbeat),
            input.webhook.map(TriggerKind::Webhook),
            input.files.map(TriggerKind::Files),
            input.events.map(TriggerKind::Events),
        ];
        let mut found: Vec<TriggerKind> = found.into_iter().flatten().collect();
        let count = found.len();
        let on = found
            .pop()
            .filter(|_| count == 1)
            .ok_or(NotOneKind { found: count })?;
        Ok(Self {
            component: input.component,
            user: input.user,
            on,
            message: input.message,
            target: input.target,
            targets: input.targets,
            configuration: input.configuration,
            isolated: input.isolated,
            queue: input.queue,
            priority: input.priority,
            model: input.model,
            deliver: input.deliver,
            enabled: input.enabled,
        })
    }
}

impl From<TriggerSpec> for SpecInput {
    fn from(spec: TriggerSpec) -> Self {
        let mut input = Self {
            component: spec.component,
            user: spec.user,
            schedule: None,
            heartbeat: None,
            webhook: None,
            files: None,
            events: None,
            message: spec.message,
            target: spec.target,
            targets: spec.targets,
            configuration: spec.configuration,
            isolated: spec.isolated,
            queue: spec.queue,
            priority: spec.priority,
            model: spec.model,
            deliver: spec.deliver,
            enabled: spec.enabled,
        };
        match spec.on {
            TriggerKind::Schedule(spec) => input.schedule = Some(spec),
            TriggerKind::Heartbeat(spec) => input.heartbeat = Some(spec),
            TriggerKind::Webhook(spec) => input.webhook = Some(spec),
            TriggerKind::Files(spec) => input.files = Some(spec),
            TriggerKind::Events(spec) => input.events = Some(spec),
        }
        input
    }
}

fn nothing() -> Value {
    Value::Object(Map::new())
}

fn is_nothing(configuration: &Value) -> bool {
    configuration.as_object().is_some_and(Map::is_empty)
}

fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference to the field"
)]
fn is_yes(flag: &bool) -> bool {
    *flag
}
