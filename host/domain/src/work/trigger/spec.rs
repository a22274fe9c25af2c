//! The definition of a trigger, as an operator writes it: the same in the configuration and over
//! the API.

mod input;
#[cfg(test)]
mod tests;

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
use input::SpecInput;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::openapi::RefOr;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType};
use utoipa::{PartialSchema, ToSchema};

/// A trigger, as an operator defines it under its name.
///
/// In JSON it has exactly one of the keys `schedule`, `heartbeat`, `webhook`, `files` and `events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SpecInput", into = "SpecInput")]
pub struct TriggerSpec {
    /// The component that makes messages of its trigger events; without it, the component of its
    /// kind.
    pub component: Option<String>,
    /// The user on whose behalf it speaks; none over the API, where it is the caller.
    pub user: Option<UserId>,
    /// The kind of its trigger events.
    pub on: TriggerKind,
    /// The message, as a template.
    pub message: Option<String>,
    /// The recipient of its messages.
    pub target: TriggerTarget,
    /// Further targets that the component may pick.
    pub targets: BTreeMap<TriggerTargetName, TriggerTarget>,
    /// Its configuration for the component: an object.
    pub configuration: Value,
    /// True if each trigger run has a session of its own.
    pub isolated: bool,
    /// Treatment of its messages while the agent is busy.
    pub queue: QueueOverride,
    /// The urgency of its messages.
    pub priority: Option<Priority>,
    /// The model of its turns: an alias of the configuration.
    pub model: Option<String>,
    /// The recipient of its turns' replies, in addition to the session.
    pub deliver: Deliver,
    /// True if it may be fired.
    pub enabled: bool,
}

/// The kind of a trigger, by its trigger events.
#[derive(Debug, Clone, PartialEq, Eq)]
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
            TriggerKind::Webhook(_) | TriggerKind::Files(_) | TriggerKind::Events(_) => Ok(None),
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
        note(&mut faults, self.check_configuration());
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

    fn check_configuration(&self) -> Result<(), SpecFault> {
        let fault =
            |message: String, fix: String| Err(SpecFault::new("configuration", message, fix));
        if !self.configuration.is_object() {
            return fault("is no object".to_owned(), "write an object".to_owned());
        }
        if is_deeper(&self.configuration, DEPTH_MAX) {
            let fix = format!("write at most {DEPTH_MAX} levels");
            return fault("is nested too deep".to_owned(), fix);
        }
        let bytes = self.configuration.to_string().len();
        if bytes > CONFIGURATION_BYTES_MAX {
            let fix = format!("write at most {CONFIGURATION_BYTES_MAX}");
            return fault(format!("has {bytes} bytes"), fix);
        }
        Ok(())
    }
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
