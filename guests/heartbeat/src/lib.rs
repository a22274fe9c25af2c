//! The trigger that has an agent look at its checklist from time to time.

use agent_host_sdk::{
    FireContext, Trigger, TriggerDescription, TriggerError, TriggerEvent, TriggerEventKind,
    TriggerRun, TriggerState, export_trigger,
};

/// The words of a heartbeat where the operator has none.
const WORDS: &str = "This is a heartbeat. Look at the checklist, if there is one, and do what is \
                     due. Do not repeat what is done. If nothing needs attention, reply with \
                     HEARTBEAT_OK and nothing else.";

/// The trigger.
#[derive(Debug, Clone, Copy)]
pub struct Heartbeats;

impl Trigger for Heartbeats {
    fn describe(&self) -> TriggerDescription {
        TriggerDescription::new(
            "heartbeat",
            "Has an agent look at its checklist from time to time.",
            [TriggerEventKind::Heartbeat],
        )
    }

    fn fire(
        &self,
        context: &FireContext,
        _: Option<&TriggerState>,
        trigger_event: &TriggerEvent,
    ) -> Result<TriggerRun, TriggerError> {
        let TriggerEvent::Heartbeat(heartbeat) = trigger_event else {
            let other = trigger_event.kind().as_str();
            return Err(TriggerError::Rejected(format!(
                "a heartbeat is no trigger event of the kind `{other}`"
            )));
        };
        let words = context.message.as_deref().unwrap_or(WORDS);
        Ok(TriggerRun::message(match &heartbeat.checklist {
            Some(checklist) => format!("{words}\n\nThe checklist:\n\n{}", checklist.trim()),
            None => words.to_owned(),
        }))
    }
}

export_trigger!(Heartbeats);

#[cfg(test)]
mod tests {
    use super::*;
    use agent_host_sdk::Heartbeat;
    use agent_host_sdk::harness::TriggerRuns;

    fn heartbeat(checklist: Option<&str>) -> TriggerEvent {
        TriggerEvent::Heartbeat(Heartbeat {
            due_ms: 1_800_000_000_000,
            checklist: checklist.map(str::to_owned),
        })
    }

    fn said(trigger_run: &TriggerRun) -> &str {
        let [message] = &trigger_run.messages[..] else {
            panic!("{trigger_run:?}")
        };
        &message.text
    }

    #[test]
    fn a_heartbeat_shows_the_checklist_and_how_to_say_that_nothing_is_due() {
        let trigger_run = TriggerRuns::of(Heartbeats)
            .fire(&heartbeat(Some("- water the plants\n")))
            .unwrap();
        assert!(
            said(&trigger_run).contains("HEARTBEAT_OK"),
            "{trigger_run:?}"
        );
        assert!(
            said(&trigger_run).ends_with("- water the plants"),
            "{trigger_run:?}"
        );
    }

    #[test]
    fn the_operators_words_stand_in_place_of_the_usual_ones() {
        let trigger_run = TriggerRuns::of(Heartbeats)
            .saying("Anything new?")
            .fire(&heartbeat(None))
            .unwrap();
        assert_eq!(said(&trigger_run), "Anything new?");
    }
}
