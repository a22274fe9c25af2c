//! Triggers of version 0.1.0.

use crate::bindings::trigger::exports::agent_host::plugin::trigger as newer;
use crate::bindings::trigger_0_1::exports::agent_host::plugin::trigger as older;

/// The kinds of trigger events that version 0.1.0 has.
const TRIGGER_EVENTS: [&str; 3] = ["clock", "webhook", "files"];

/// Returns its description. It can deal with every trigger event that its version has.
pub(in crate::exports) fn description(description: older::Description) -> newer::Description {
    let older::Description {
        id,
        summary,
        configuration,
        state_formats,
    } = description;
    newer::Description {
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
pub(in crate::exports) fn trigger_event(
    trigger_event: &newer::TriggerEvent,
) -> Result<older::Occasion, newer::TriggerError> {
    let unknown = |kind: &str| {
        let reason = format!(
            "the component is built for version 0.1.0 of the interface, which has no trigger events of \
             the kind `{kind}`"
        );
        Err(newer::TriggerError::Rejected(reason))
    };
    match trigger_event {
        newer::TriggerEvent::Due(due) => Ok(older::Occasion::Due(due.due_ms)),
        newer::TriggerEvent::Webhook(webhook) => Ok(older::Occasion::Webhook(older::Webhook {
            path: webhook.path.clone(),
            headers: webhook.headers.clone(),
            query: webhook.query.clone(),
            payload: webhook.payload.clone(),
        })),
        newer::TriggerEvent::Files(files) => Ok(older::Occasion::Changed(
            files
                .changes
                .iter()
                .map(|change| change.path.clone())
                .collect(),
        )),
        newer::TriggerEvent::Heartbeat(_) => unknown("heartbeat"),
        newer::TriggerEvent::Event(_) => unknown("events"),
    }
}

/// Returns a state as it reads it.
pub(in crate::exports) fn state(state: &newer::State) -> older::State {
    older::State {
        format: state.format,
        bytes: state.bytes.clone(),
    }
}

/// Returns what it returned.
pub(in crate::exports) fn fired(
    fired: Result<older::Firing, older::TriggerError>,
) -> Result<newer::TriggerRun, newer::TriggerError> {
    match fired {
        Ok(older::Firing { messages, state }) => Ok(newer::TriggerRun {
            messages: messages.into_iter().map(message).collect(),
            state: state.map(|older::State { format, bytes }| newer::State { format, bytes }),
            done: false,
        }),
        Err(older::TriggerError::Rejected(reason)) => Err(newer::TriggerError::Rejected(reason)),
        Err(older::TriggerError::RetryLater(ms)) => Err(newer::TriggerError::RetryLater(ms)),
    }
}

fn message(message: older::Message) -> newer::Message {
    let older::Message {
        target,
        content,
        idempotency_key,
    } = message;
    newer::Message {
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
        let due = newer::TriggerEvent::Due(newer::Due {
            due_ms: 7,
            missed: 3,
        });
        assert!(matches!(trigger_event(&due), Ok(older::Occasion::Due(7))));
        let change = |path: &str| newer::FileChange {
            kind: newer::ChangeKind::Created,
            path: path.into(),
            was: None,
            size: None,
        };
        let files = newer::TriggerEvent::Files(newer::Files {
            folder: "inbox".into(),
            changes: vec![change("a"), change("b/c")],
            more: 0,
        });
        let Ok(older::Occasion::Changed(paths)) = trigger_event(&files) else {
            panic!("files are what it knows");
        };
        assert_eq!(paths, ["a", "b/c"]);
        let heartbeat = newer::TriggerEvent::Heartbeat(newer::Heartbeat {
            due_ms: 7,
            checklist: None,
        });
        let Err(newer::TriggerError::Rejected(reason)) = trigger_event(&heartbeat) else {
            panic!("heartbeats are what it does not know");
        };
        assert!(reason.contains("the kind `heartbeat`"), "{reason}");
    }
}
