//! The trigger that says the operator's words when a time has come or an event has happened.

use agent_host_sdk::{
    FireContext, Firing, HostEvent, Occasion, OccasionKind, Trigger, TriggerDescription,
    TriggerError, TriggerState, export_trigger,
};

/// The trigger.
#[derive(Debug, Clone, Copy)]
pub struct Schedule;

impl Trigger for Schedule {
    fn describe(&self) -> TriggerDescription {
        TriggerDescription::new(
            "schedule",
            "Says a configured message when a time has come or an event of the host has happened.",
            [OccasionKind::Clock, OccasionKind::Events],
        )
    }

    fn fire(
        &self,
        context: &FireContext,
        _: Option<&TriggerState>,
        occasion: &Occasion,
    ) -> Result<Firing, TriggerError> {
        if let Some(message) = &context.message {
            return Ok(Firing::message(message));
        }
        match occasion {
            Occasion::Event(event) => Ok(Firing::message(told(event))),
            Occasion::Due(_)
            | Occasion::Heartbeat(_)
            | Occasion::Webhook(_)
            | Occasion::Files(_) => Err(TriggerError::Rejected(
                "there is nothing to say: set `message` of the trigger".to_owned(),
            )),
        }
    }
}

/// An event in words, for a trigger without a message.
fn told(event: &HostEvent) -> String {
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
    use agent_host_sdk::harness::Firings;
    use serde_json::json;

    const DUE: Occasion = Occasion::Due(Due {
        due_ms: 1_800_000_000_000,
        missed: 2,
    });

    #[test]
    fn a_time_that_has_come_says_the_operators_words() {
        let firing = Firings::of(Schedule)
            .saying("Good morning.")
            .fire(&DUE)
            .unwrap();
        assert_eq!(firing, Firing::message("Good morning."));
    }

    #[test]
    fn a_time_without_words_is_rejected_with_what_is_missing() {
        let error = Firings::of(Schedule).fire(&DUE).unwrap_err();
        assert!(error.to_string().contains("`message`"), "{error}");
    }

    #[test]
    fn an_event_is_told_where_there_are_no_words_for_it() {
        let event = Occasion::Event(HostEvent {
            name: "session.completed".to_owned(),
            id: "1".to_owned(),
            time_ms: 0,
            data: json!({ "agent": "tutor" }),
        });
        let firing = Firings::of(Schedule).fire(&event).unwrap();
        let [message] = &firing.messages[..] else {
            panic!("{firing:?}")
        };
        assert!(message.text.contains("session.completed"), "{message:?}");
        assert!(message.text.contains("\"agent\": \"tutor\""), "{message:?}");
    }
}
