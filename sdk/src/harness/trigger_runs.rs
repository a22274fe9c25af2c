//! A trigger's runs, one after another, as the host makes them: its state is kept, its messages
//! are held to the host's rules.

use crate::trigger::{
    FireContext, Trigger, TriggerDescription, TriggerError, TriggerEvent, TriggerRun, TriggerState,
};
use agent_host_shapes::limits::trigger::{
    KEY_OF_MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX, MESSAGES_MAX, STATE_BYTES_MAX,
};
use agent_host_shapes::{NAME_BYTES_MAX, is_name};
use serde_json::{Value, json};

/// A trigger whose runs a test looks at.
#[derive(Debug)]
pub struct TriggerRuns<T> {
    trigger: T,
    configuration: Value,
    message: Option<String>,
    targets: Vec<String>,
    state: Option<TriggerState>,
    now_ms: u64,
    is_done: bool,
}

impl<T: Trigger> TriggerRuns<T> {
    /// Begins with a trigger without state, the configuration `{}` and no message.
    ///
    /// # Panics
    /// When its description is not one that the host takes.
    pub fn of(trigger: T) -> Self {
        check_description(&trigger.describe());
        Self {
            trigger,
            configuration: json!({}),
            message: None,
            targets: Vec::new(),
            state: None,
            now_ms: 1_800_000_000_000,
            is_done: false,
        }
    }

    /// Sets the operator's configuration.
    #[must_use]
    pub fn configured(mut self, configuration: Value) -> Self {
        self.configuration = configuration;
        self
    }

    /// Sets the operator's message, with its variables filled in.
    #[must_use]
    pub fn saying(mut self, message: &str) -> Self {
        self.message = Some(message.to_owned());
        self
    }

    /// Grants a target by its name.
    #[must_use]
    pub fn with_target(mut self, name: &str) -> Self {
        self.targets.push(name.to_owned());
        self
    }

    /// Sets the present time, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn at_ms(mut self, now_ms: u64) -> Self {
        self.now_ms = now_ms;
        self
    }

    /// The state that the trigger keeps now.
    pub fn state(&self) -> Option<&TriggerState> {
        self.state.as_ref()
    }

    /// Fires the trigger, and keeps its state.
    ///
    /// # Errors
    /// The error that the trigger returns.
    ///
    /// # Panics
    /// When it breaks a rule of the host, or is done already.
    pub fn fire(&mut self, trigger_event: &TriggerEvent) -> Result<TriggerRun, TriggerError> {
        assert!(!self.is_done, "a trigger that is done is not fired again");
        let described = self.trigger.describe();
        assert!(
            described.trigger_events.contains(&trigger_event.kind()),
            "the description does not list `{}` among `trigger_events`, so the host never hands it over",
            trigger_event.kind().as_str()
        );
        let context = FireContext {
            trigger: described.id.clone(),
            now_ms: self.now_ms,
            configuration: self.configuration.clone(),
            message: self.message.clone(),
        };
        let trigger_run = self
            .trigger
            .fire(&context, self.state.as_ref(), trigger_event)?;
        self.check(&described, &trigger_run);
        if let Some(state) = &trigger_run.state {
            self.state = Some(state.clone());
        }
        self.is_done = trigger_run.done;
        Ok(trigger_run)
    }

    fn check(&self, described: &TriggerDescription, trigger_run: &TriggerRun) {
        assert!(
            trigger_run.messages.len() <= MESSAGES_MAX,
            "a trigger run has {MESSAGES_MAX} messages at most, and this one has {}",
            trigger_run.messages.len()
        );
        for message in &trigger_run.messages {
            assert!(
                !message.text.trim().is_empty() && message.text.len() <= MESSAGE_BYTES_MAX,
                "a message has 1 to {MESSAGE_BYTES_MAX} bytes, and not of white space alone"
            );
            assert!(
                message.idempotency_key.len() <= KEY_OF_MESSAGE_BYTES_MAX,
                "an idempotency key has {KEY_OF_MESSAGE_BYTES_MAX} bytes at most"
            );
            if let Some(target) = &message.target {
                assert!(
                    self.targets.contains(target),
                    "the target `{target}` is not granted; grant it with `.with_target(\"{target}\")`"
                );
            }
        }
        if let Some(state) = &trigger_run.state {
            assert!(
                state.bytes.len() <= STATE_BYTES_MAX,
                "a state has {STATE_BYTES_MAX} bytes at most"
            );
            assert!(
                described.state_formats.contains(&state.format),
                "the state's format {} is not among those that the description lists: {:?}",
                state.format,
                described.state_formats
            );
        }
    }
}

fn check_description(described: &TriggerDescription) {
    check_id(&described.id);
    assert!(
        !described.trigger_events.is_empty(),
        "the description lists no `trigger_events`, so the trigger is never fired"
    );
    assert!(
        described.configuration.is_object(),
        "`configuration` is a JSON Schema, which is an object"
    );
}

/// Panics when a component's short name is none.
pub(super) fn check_id(id: &str) {
    assert!(
        is_name(id, b"-_"),
        "`id` is 1 to {NAME_BYTES_MAX} of a-z, 0-9, `-` and `_`, and `{id}` is not"
    );
}

#[cfg(test)]
mod tests;
