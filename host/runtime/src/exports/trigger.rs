//! The functions of triggers.

use super::{Exported, Version, call};
use crate::bindings::trigger::exports::agent_host::plugin::trigger;
use crate::bindings::trigger_0_1::exports::agent_host::plugin::trigger as trigger_0_1;
use crate::call::CallState;
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, InstancePre};

type Fired = Result<trigger::TriggerRun, trigger::TriggerError>;
type Fired01 = Result<trigger_0_1::Firing, trigger_0_1::TriggerError>;

/// The arguments of `fire`.
type Arguments<'a> = (
    &'a trigger::Context,
    Option<&'a trigger::State>,
    &'a trigger::TriggerEvent,
);
/// The arguments of `fire` in version 0.1.0.
type Arguments01<'a> = (
    &'a str,
    Option<&'a trigger_0_1::State>,
    u64,
    &'a trigger_0_1::Occasion,
);

/// The functions of a trigger.
pub(crate) struct TriggerExports {
    version: Version,
    pre: InstancePre<CallState>,
    describe: ComponentExportIndex,
    fire: ComponentExportIndex,
}

impl TriggerExports {
    pub(super) fn new(found: &Exported<'_>, version: Version) -> wasmtime::Result<Self> {
        let (describe, fire) = match version {
            Version::V0_1 => (
                found.function::<(), trigger_0_1::Description>("describe")?,
                found.function::<Arguments01<'_>, Fired01>("fire")?,
            ),
            Version::V0_2 => (
                found.function::<(), trigger::Description>("describe")?,
                found.function::<Arguments<'_>, Fired>("fire")?,
            ),
        };
        Ok(Self {
            version,
            pre: found.pre.clone(),
            describe,
            fire,
        })
    }

    /// Asks what it is.
    pub(crate) async fn describe(
        &self,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<trigger::Description> {
        match self.version {
            Version::V0_1 => {
                let description = call(&self.pre, store, &self.describe, ()).await?;
                Ok(described(description))
            }
            Version::V0_2 => call(&self.pre, store, &self.describe, ()).await,
        }
    }

    /// Asks for the messages that a trigger event makes.
    pub(crate) async fn fire(
        &self,
        store: &mut Store<CallState>,
        context: &trigger::Context,
        state: Option<&trigger::State>,
        trigger_event: &trigger::TriggerEvent,
    ) -> wasmtime::Result<Fired> {
        if self.version == Version::V0_2 {
            return call(
                &self.pre,
                store,
                &self.fire,
                (context, state, trigger_event),
            )
            .await;
        }
        let trigger_event = match older_event(trigger_event) {
            Ok(trigger_event) => trigger_event,
            Err(unknown) => return Ok(Err(unknown)),
        };
        let state = state.map(older_state);
        let configuration = context.configuration.as_str();
        let arguments = (
            configuration,
            state.as_ref(),
            context.now_ms,
            &trigger_event,
        );
        Ok(fired(call(&self.pre, store, &self.fire, arguments).await?))
    }
}

/// The kinds of trigger events that version 0.1.0 has.
const TRIGGER_EVENTS: [&str; 3] = ["clock", "webhook", "files"];

/// Returns its description. It can deal with every trigger event that its version has.
fn described(description: trigger_0_1::Description) -> trigger::Description {
    let trigger_0_1::Description {
        id,
        summary,
        configuration,
        state_formats,
    } = description;
    trigger::Description {
        id,
        summary,
        configuration,
        trigger_events: TRIGGER_EVENTS.map(str::to_owned).to_vec(),
        state_formats,
    }
}

/// Returns a trigger event as it hears it.
///
/// # Errors
/// Its version has no such trigger event.
fn older_event(
    trigger_event: &trigger::TriggerEvent,
) -> Result<trigger_0_1::Occasion, trigger::TriggerError> {
    let unknown = |kind: &str| {
        let reason = format!(
            "the component is built for version 0.1.0 of the interface, which has no trigger events of \
             the kind `{kind}`"
        );
        Err(trigger::TriggerError::Rejected(reason))
    };
    match trigger_event {
        trigger::TriggerEvent::Due(due) => Ok(trigger_0_1::Occasion::Due(due.due_ms)),
        trigger::TriggerEvent::Webhook(webhook) => {
            Ok(trigger_0_1::Occasion::Webhook(trigger_0_1::Webhook {
                path: webhook.path.clone(),
                headers: webhook.headers.clone(),
                query: webhook.query.clone(),
                payload: webhook.payload.clone(),
            }))
        }
        trigger::TriggerEvent::Files(files) => Ok(trigger_0_1::Occasion::Changed(
            files
                .changes
                .iter()
                .map(|change| change.path.clone())
                .collect(),
        )),
        trigger::TriggerEvent::Heartbeat(_) => unknown("heartbeat"),
        trigger::TriggerEvent::Event(_) => unknown("events"),
    }
}

/// Returns a state as it reads it.
fn older_state(state: &trigger::State) -> trigger_0_1::State {
    trigger_0_1::State {
        format: state.format,
        bytes: state.bytes.clone(),
    }
}

/// Returns what it returned.
fn fired(
    fired: Result<trigger_0_1::Firing, trigger_0_1::TriggerError>,
) -> Result<trigger::TriggerRun, trigger::TriggerError> {
    match fired {
        Ok(trigger_0_1::Firing { messages, state }) => Ok(trigger::TriggerRun {
            messages: messages.into_iter().map(message).collect(),
            state: state
                .map(|trigger_0_1::State { format, bytes }| trigger::State { format, bytes }),
            done: false,
        }),
        Err(trigger_0_1::TriggerError::Rejected(reason)) => {
            Err(trigger::TriggerError::Rejected(reason))
        }
        Err(trigger_0_1::TriggerError::RetryLater(ms)) => {
            Err(trigger::TriggerError::RetryLater(ms))
        }
    }
}

fn message(message: trigger_0_1::Message) -> trigger::Message {
    let trigger_0_1::Message {
        target,
        content,
        idempotency_key,
    } = message;
    trigger::Message {
        target,
        content,
        idempotency_key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_trigger_hears_what_its_version_can_express() {
        let due = trigger::TriggerEvent::Due(trigger::Due {
            due_ms: 7,
            missed: 3,
        });
        assert!(matches!(
            older_event(&due),
            Ok(trigger_0_1::Occasion::Due(7))
        ));
        let change = |path: &str| trigger::FileChange {
            kind: trigger::ChangeKind::Created,
            path: path.into(),
            was: None,
            size: None,
        };
        let files = trigger::TriggerEvent::Files(trigger::Files {
            folder: "inbox".into(),
            changes: vec![change("a"), change("b/c")],
            more: 0,
        });
        let Ok(trigger_0_1::Occasion::Changed(paths)) = older_event(&files) else {
            panic!("files are what it knows");
        };
        assert_eq!(paths, ["a", "b/c"]);
        let heartbeat = trigger::TriggerEvent::Heartbeat(trigger::Heartbeat {
            due_ms: 7,
            checklist: None,
        });
        let Err(trigger::TriggerError::Rejected(reason)) = older_event(&heartbeat) else {
            panic!("heartbeats are what it does not know");
        };
        assert!(reason.contains("the kind `heartbeat`"), "{reason}");
    }
}
