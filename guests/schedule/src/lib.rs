//! The trigger that says the operator's words when a time has come or an event has happened.

use agent_host_sdk::{
    FireContext, HostEvent, Trigger, TriggerDescription, TriggerError, TriggerEvent,
    TriggerEventKind, TriggerRun, TriggerState, export_trigger,
};

/// The trigger.
#[derive(Debug, Clone, Copy)]
pub struct Schedule;

impl Trigger for Schedule {
    fn describe(&self) -> TriggerDescription {
        TriggerDescription::new(
            "schedule",
            "Says a configured message when a time has come or an event of the host has happened.",
            [TriggerEventKind::Clock, TriggerEventKind::Events],
        )
    }

    fn fire(
        &self,
        context: &FireContext,
        _: Option<&TriggerState>,
        trigger_event: &TriggerEvent,
    ) -> Result<TriggerRun, TriggerError> {
        if let Some(message) = &context.message {
            return Ok(TriggerRun::message(message));
        }
        match trigger_event {
            TriggerEvent::Event(event) => Ok(TriggerRun::message(reported(event))),
            TriggerEvent::Due(_)
            | TriggerEvent::Heartbeat(_)
            | TriggerEvent::Webhook(_)
            | TriggerEvent::Files(_) => Err(TriggerError::Rejected(
                "there is nothing to say: set `message` of the trigger".to_owned(),
            )),
        }
    }
}

/// An event in words, for a trigger without a message.
fn reported(event: &HostEvent) -> String {
    format!(
        "`{}` happened on the host:\n\n```json\n{:#}\n```",
        event.name, event.data
    )
}

export_trigger!(Schedule);

#[cfg(test)]
mod tests {
    use super::*;
    use agent_host_sdk::Due;
    use agent_host_sdk::harness::TriggerRuns;
    use serde_json::json;

    const DUE: TriggerEvent = TriggerEvent::Due(Due {
        due_ms: 1_800_000_000_000,
        missed: 2,
    });

    #[test]
    fn a_time_that_has_come_says_the_operators_words() {
        let trigger_run = TriggerRuns::of(Schedule)
            .saying("Good morning.")
            .fire(&DUE)
            .unwrap();
        assert_eq!(trigger_run, TriggerRun::message("Good morning."));
    }

    #[test]
    fn a_time_without_words_is_rejected_with_what_is_missing() {
        let error = TriggerRuns::of(Schedule).fire(&DUE).unwrap_err();
        assert!(error.to_string().contains("`message`"), "{error}");
    }

    #[test]
    fn an_event_is_told_where_there_are_no_words_for_it() {
        let event = TriggerEvent::Event(HostEvent {
            name: "session.completed".to_owned(),
            id: "1".to_owned(),
            time_ms: 0,
            data: json!({ "agent": "tutor" }),
        });
        let trigger_run = TriggerRuns::of(Schedule).fire(&event).unwrap();
        let [message] = &trigger_run.messages[..] else {
            panic!("{trigger_run:?}")
        };
        assert!(message.text.contains("session.completed"), "{message:?}");
        assert!(message.text.contains("\"agent\": \"tutor\""), "{message:?}");
    }
}
