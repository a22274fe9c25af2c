//! The definition of a trigger, as an operator writes it: the same in the configuration and over
//! the API.

use super::{
    BytesMax, CONFIGURATION_BYTES_MAX, Deliver, EventsSpec, FILES_DEBOUNCE_MS_MAX,
    FILES_DEBOUNCE_MS_MIN, FilesSpec, HeartbeatSpec, PATTERNS_MAX, Schedule, ScheduleError,
    ScheduleSpec, SpecFault, TARGET_NAME_BYTES_MAX, TARGETS_MAX, TargetFault, TriggerTarget,
    TriggerTargetName, WebhookSpec, check_line, check_template, note,
};
use crate::access::user::UserId;
use crate::values::json::{DEPTH_MAX, is_deeper};
use crate::work::delegate::Priority;
use crate::work::queue::QueueOverride;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::openapi::RefOr;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType};
use utoipa::{PartialSchema, ToSchema};

/// A trigger, as an operator defines it under its name.
///
/// In JSON it has exactly one of the keys `schedule`, `heartbeat`, `webhook`, `files` and `events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SpecInput", rename_all = "camelCase")]
pub struct TriggerSpec {
    /// The component that makes messages of its trigger events; without it, the component of its
    /// kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// The user on whose behalf it speaks; none over the API, where it is the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// The kind of its trigger events.
    #[serde(flatten)]
    pub on: TriggerKind,
    /// The message, as a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The recipient of its messages.
    pub target: TriggerTarget,
    /// Further targets that the component may pick.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<TriggerTargetName, TriggerTarget>,
    /// Its configuration for the component: an object.
    #[serde(skip_serializing_if = "is_nothing")]
    pub configuration: Value,
    /// True if each trigger run has a session of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub isolated: bool,
    /// Treatment of its messages while the agent is busy.
    #[serde(skip_serializing_if = "crate::values::json::is_default")]
    pub queue: QueueOverride,
    /// The urgency of its messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// The model of its turns: an alias of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The recipient of its turns' replies, in addition to the session.
    #[serde(skip_serializing_if = "crate::values::json::is_default")]
    pub deliver: Deliver,
    /// True if it may be fired.
    #[serde(skip_serializing_if = "is_yes")]
    pub enabled: bool,
}

/// The kind of a trigger, by its trigger events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TriggerKind {
    /// A clock.
    Schedule(ScheduleSpec),
    /// A heartbeat.
    Heartbeat(HeartbeatSpec),
    /// Calls of a webhook.
    Webhook(WebhookSpec),
    /// Changes of files.
    Files(FilesSpec),
    /// Events of the host.
    Events(EventsSpec),
}

impl TriggerKind {
    /// Returns its key in the definition.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Schedule(_) => "schedule",
            Self::Heartbeat(_) => "heartbeat",
            Self::Webhook(_) => "webhook",
            Self::Files(_) => "files",
            Self::Events(_) => "events",
        }
    }

    /// Returns the name of its trigger events, as components name them.
    #[must_use]
    pub fn trigger_events(&self) -> &'static str {
        match self {
            Self::Schedule(_) => "clock",
            Self::Heartbeat(_) => "heartbeat",
            Self::Webhook(_) => "webhook",
            Self::Files(_) => "files",
            Self::Events(_) => "events",
        }
    }
}

impl TriggerSpec {
    /// Returns the name of the component that makes messages of its trigger events.
    #[must_use]
    pub fn component(&self) -> &str {
        let of_kind = match &self.on {
            TriggerKind::Schedule(_) | TriggerKind::Events(_) => "schedule",
            TriggerKind::Heartbeat(_) => "heartbeat",
            TriggerKind::Webhook(_) => "webhook",
            TriggerKind::Files(_) => "files-watch",
        };
        self.component.as_deref().unwrap_or(of_kind)
    }

    /// Returns its schedule; none for other triggers, and for a heartbeat that is off.
    ///
    /// # Errors
    /// The schedule cannot be read; the error names the field and the fix.
    pub fn schedule(&self) -> Result<Option<Schedule>, ScheduleError> {
        let schedule = match &self.on {
            TriggerKind::Schedule(spec) => Schedule::parse(spec).map(Some),
            TriggerKind::Heartbeat(spec) => Schedule::of_heartbeat(spec),
            _ => Ok(None),
        };
        schedule.map_err(|error| match error {
            ScheduleError::Spec(fault) => fault.within(self.on.key()).into(),
            ScheduleError::Calendar(_) | ScheduleError::Search(_) => error,
        })
    }

    /// Returns whether each trigger run has a session of its own.
    #[must_use]
    pub fn is_isolated(&self) -> bool {
        self.isolated || matches!(&self.on, TriggerKind::Heartbeat(spec) if spec.light)
    }

    /// Returns the target that a component chose, or the configured one; none if the chosen one is
    /// not granted.
    #[must_use]
    pub fn picked(&self, name: Option<&TriggerTargetName>) -> Option<&TriggerTarget> {
        match name {
            Some(name) => self.targets.get(name),
            None => Some(&self.target),
        }
    }

    /// Checks it, as far as that needs no other data of the host.
    ///
    /// # Errors
    /// The first fault, with its field and the fix.
    pub fn check(&self) -> Result<(), SpecFault> {
        self.faults().into_iter().next().map_or(Ok(()), Err)
    }

    /// Checks it as a trigger of the configuration, which also has to name the user on whose behalf
    /// it speaks.
    ///
    /// # Errors
    /// The first fault, with its field and the fix.
    pub fn check_configured(&self) -> Result<(), SpecFault> {
        if self.user.is_none() {
            let message = "is missing: a trigger speaks on behalf of a user";
            return Err(SpecFault::new("user", message, "write the user's id"));
        }
        self.check()
    }

    /// Returns all its faults, in the order of the fields.
    #[must_use]
    pub fn faults(&self) -> Vec<SpecFault> {
        let mut faults = Vec::new();
        let line = |field: &str, text: Option<&str>| match text {
            Some(text) => check_line(field, text, BytesMax(TARGET_NAME_BYTES_MAX)),
            None => Ok(()),
        };
        note(&mut faults, line("component", self.component.as_deref()));
        faults.extend(self.kind_faults());
        if let Some(message) = &self.message {
            note(&mut faults, check_template("message", message));
        }
        self.note_targets(&mut faults);
        faults.extend(configuration_fault(&self.configuration));
        note(&mut faults, line("model", self.model.as_deref()));
        faults
    }

    fn kind_faults(&self) -> Vec<SpecFault> {
        let mut faults: Vec<SpecFault> = match &self.on {
            TriggerKind::Schedule(_) => Vec::new(),
            TriggerKind::Heartbeat(spec) => spec.faults(),
            TriggerKind::Webhook(spec) => spec.faults(),
            TriggerKind::Files(spec) => files_faults(spec),
            TriggerKind::Events(spec) => events_faults(spec),
        };
        let key = self.on.key();
        faults = faults.into_iter().map(|fault| fault.within(key)).collect();
        if let Err(ScheduleError::Spec(fault)) = self.schedule() {
            faults.insert(0, fault);
        }
        faults
    }

    fn note_targets(&self, faults: &mut Vec<SpecFault>) {
        let further = self.targets.iter();
        let further = further.map(|(name, target)| (format!("targets.{name}"), target));
        let all = std::iter::once(("target".to_owned(), &self.target)).chain(further);
        for (field, target) in all {
            if let Some(TargetFault { key, message, fix }) = target.fault() {
                faults.push(SpecFault::new(format!("{field}.{key}"), message, fix));
            }
            if self.is_isolated() && !target.may_be_isolated() {
                let why = if self.isolated {
                    "isolated"
                } else {
                    "heartbeat.light"
                };
                let message = format!("is a {}, and `{why}` asks for new sessions", target.key());
                let fix = format!("write an agent, a path or a persona, or leave `{why}` out");
                faults.push(SpecFault::new(field, message, fix));
            }
        }
        if self.targets.len() > TARGETS_MAX {
            let message = format!("has {} targets", self.targets.len());
            let fix = format!("write at most {TARGETS_MAX}");
            faults.push(SpecFault::new("targets", message, fix));
        }
    }
}

/// Returns the fault in a configuration for a component, if any.
pub(in crate::work) fn configuration_fault(configuration: &Value) -> Option<SpecFault> {
    let (message, fix) = if !configuration.is_object() {
        ("is no object".to_owned(), "write an object".to_owned())
    } else if is_deeper(configuration, DEPTH_MAX) {
        let fix = format!("write at most {DEPTH_MAX} levels");
        ("is nested too deep".to_owned(), fix)
    } else {
        let bytes = configuration.to_string().len();
        if bytes <= CONFIGURATION_BYTES_MAX {
            return None;
        }
        let fix = format!("write at most {CONFIGURATION_BYTES_MAX}");
        (format!("has {bytes} bytes"), fix)
    };
    Some(SpecFault::new("configuration", message, fix))
}

fn files_faults(spec: &FilesSpec) -> Vec<SpecFault> {
    let mut faults = Vec::new();
    let folder = check_line("folder", &spec.folder, BytesMax(TARGET_NAME_BYTES_MAX));
    note(&mut faults, folder);
    if spec.patterns.len() > PATTERNS_MAX {
        let message = format!("has {} patterns", spec.patterns.len());
        faults.push(SpecFault::new(
            "patterns",
            message,
            format!("write at most {PATTERNS_MAX}"),
        ));
    }
    if !(FILES_DEBOUNCE_MS_MIN..=FILES_DEBOUNCE_MS_MAX).contains(&spec.debounce.ms()) {
        let message = format!("is `{}`", spec.debounce);
        faults.push(SpecFault::new(
            "debounce",
            message,
            "write one from `100ms` to `1h`",
        ));
    }
    faults
}

fn events_faults(spec: &EventsSpec) -> Vec<SpecFault> {
    let mut faults = Vec::new();
    if spec.on.is_empty() {
        let fix = "write the kinds to hear, such as \"session.completed\"";
        faults.push(SpecFault::new("on", "is empty", fix));
    }
    let is_nobody = |patterns: &crate::access::grant::PatternList| patterns.is_empty();
    if spec.agents.as_ref().is_some_and(is_nobody) {
        let fix = "write patterns of definitions, or leave it out for all agents";
        faults.push(SpecFault::new("agents", "is empty", fix));
    }
    faults
}

impl JsonSchema for TriggerSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        SpecInput::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        SpecInput::json_schema(generator)
    }
}

/// The complete schema of the configuration's file.
impl PartialSchema for TriggerSpec {
    fn schema() -> RefOr<Schema> {
        let mut settings = SchemaSettings::draft2020_12();
        settings.meta_schema = None;
        settings.inline_subschemas = true;
        let schema = settings.into_generator().into_root_schema_for::<Self>();
        let keys: Extensions = schema.as_object().cloned().into_iter().flatten().collect();
        // It has keys without a builder; an untyped object contains them unchanged.
        ObjectBuilder::new()
            .schema_type(SchemaType::AnyValue)
            .extensions(Some(keys))
            .into()
    }
}

impl ToSchema for TriggerSpec {}

// The written form of a trigger: every kind is a key, and exactly one of them is present.

/// A trigger: its cause, which is exactly one of `schedule`, `heartbeat`, `webhook`, `files` and
/// `events`, and the handling of its messages.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "TriggerSpec")]
struct SpecInput {
    /// The component that makes messages of its trigger events. The default is built in for its
    /// kind: `schedule`, `heartbeat`, `webhook` or `files-watch`; `schedule` for events.
    component: Option<String>,
    /// The user on whose behalf it speaks. The configuration has to name one; over the API it is
    /// the caller.
    #[schemars(with = "Option<String>")]
    user: Option<UserId>,
    /// Fired by a clock.
    schedule: Option<ScheduleSpec>,
    /// Fired at intervals, to check for work.
    heartbeat: Option<HeartbeatSpec>,
    /// Fired by calls of `POST /hooks/<name>`.
    webhook: Option<WebhookSpec>,
    /// Fired by changes in a folder.
    files: Option<FilesSpec>,
    /// Fired by events of the host.
    events: Option<EventsSpec>,
    /// The message, 16 KiB at most. `{{now}}`, `{{path}}`, `{{agent.id}}`, `{{trigger.id}}`,
    /// `{{headers.x}}`, `{{query.x}}` and `{{payload.a.b[0]}}` are filled in. Missing values become
    /// empty text, and objects become JSON.
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
    #[schemars(with = "Option<String>")]
    priority: Option<Priority>,
    /// The model of its turns: an alias of the configuration.
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
struct NotOneKind {
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

#[cfg(test)]
mod tests;
