//! The trigger that has an agent look at its checklist from time to time.

use agent_host_sdk::{
    FireContext, Firing, Occasion, OccasionKind, Trigger, TriggerDescription, TriggerError,
    TriggerState, export_trigger,
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
            [OccasionKind::Heartbeat],
        )
    }

    fn fire(
        &self,
        context: &FireContext,
        _: Option<&TriggerState>,
        occasion: &Occasion,
    ) -> Result<Firing, TriggerError> {
        let Occasion::Heartbeat(heartbeat) = occasion else {
            let other = occasion.kind().as_str();
            return Err(TriggerError::Rejected(format!(
                "a heartbeat is no occasion of the kind `{other}`"
            )));
        };
        let words = context.message.as_deref().unwrap_or(WORDS);
        Ok(Firing::message(match &heartbeat.checklist {
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
    use agent_host_sdk::harness::Firings;

    fn heartbeat(checklist: Option<&str>) -> Occasion {
        Occasion::Heartbeat(Heartbeat {
            due_ms: 1_800_000_000_000,
            checklist: checklist.map(str::to_owned),
        })
    }

    fn said(firing: &Firing) -> &str {
        let [message] = &firing.messages[..] else {
            panic!("{firing:?}")
        };
        &message.text
    }

    #[test]
    fn a_heartbeat_shows_the_checklist_and_how_to_say_that_nothing_is_due() {
        let firing = Firings::of(Heartbeats)
            .fire(&heartbeat(Some("- water the plants\n")))
            .unwrap();
        assert!(said(&firing).contains("HEARTBEAT_OK"), "{firing:?}");
        assert!(said(&firing).ends_with("- water the plants"), "{firing:?}");
    }

    #[test]
    fn the_operators_words_stand_in_place_of_the_usual_ones() {
        let firing = Firings::of(Heartbeats)
            .saying("Anything new?")
            .fire(&heartbeat(None))
            .unwrap();
        assert_eq!(said(&firing), "Anything new?");
    }
}
