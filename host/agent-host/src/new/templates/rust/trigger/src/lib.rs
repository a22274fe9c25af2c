//! A trigger: says the next message of a list each time it is due.

use agent_host_sdk::{
    FireContext, Trigger, TriggerDescription, TriggerError, TriggerEvent, TriggerEventKind,
    TriggerRun, TriggerState, export_trigger,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The version of the state's layout: the place of the next message, in decimal digits.
const FORMAT: u32 = 1;

/// The trigger. It has the log, and nothing else: the host knows when it is due, keeps its state,
/// and delivers its messages.
#[derive(Debug)]
pub struct Plugin;

/// The things that the operator writes below `configuration`. The host checks it against this type.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Configuration {
    /// The messages, which take turns.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1)))]
    messages: Vec<String>,
}

impl Trigger for Plugin {
    fn describe(&self) -> TriggerDescription {
        TriggerDescription::new(
            "{{name}}",
            "Says the next message of a list each time it is due.",
            [TriggerEventKind::Clock],
        )
        .configured_by::<Configuration>()
        .reads_state(FORMAT)
    }

    fn fire(
        &self,
        context: &FireContext,
        state: Option<&TriggerState>,
        _: &TriggerEvent,
    ) -> Result<TriggerRun, TriggerError> {
        let Configuration { messages } = context.configured()?;
        // The operator may have changed the list since the last time.
        let place = place(state)?.checked_rem(messages.len()).unwrap_or(0);
        let Some(next) = messages.get(place) else {
            return Err(TriggerError::Rejected("`messages` is empty".to_owned()));
        };
        let text = match &context.message {
            Some(message) => format!("{message} {next}"),
            None => next.clone(),
        };
        // The host stores the state and the message in one commit.
        Ok(TriggerRun::message(text).keep(FORMAT, (place + 1).to_string()))
    }
}

/// Returns the place that the last trigger run kept.
fn place(state: Option<&TriggerState>) -> Result<usize, TriggerError> {
    let Some(state) = state else { return Ok(0) };
    std::str::from_utf8(&state.bytes)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| TriggerError::Rejected("the state is no place in the list".to_owned()))
}

export_trigger!(Plugin);

#[cfg(test)]
mod tests {
    use super::Plugin;
    use agent_host_sdk::harness::TriggerRuns;
    use agent_host_sdk::{Due, TriggerEvent};
    use serde_json::json;

    const DUE: TriggerEvent = TriggerEvent::Due(Due {
        due_ms: 1_800_000_000_000,
        missed: 0,
    });

    fn next(trigger_runs: &mut TriggerRuns<Plugin>) -> String {
        trigger_runs.fire(&DUE).unwrap().messages[0].text.clone()
    }

    #[test]
    fn the_messages_take_turns() {
        let mut trigger_runs =
            TriggerRuns::of(Plugin).configured(json!({ "messages": ["one", "two"] }));
        for expected in ["one", "two", "one"] {
            assert_eq!(next(&mut trigger_runs), expected);
        }
    }

    #[test]
    fn the_operators_own_words_come_first() {
        let trigger_runs = TriggerRuns::of(Plugin).configured(json!({ "messages": ["one"] }));
        assert_eq!(next(&mut trigger_runs.saying("Say:")), "Say: one");
    }

    #[test]
    fn a_list_that_is_shorter_now_goes_on_from_its_beginning() {
        let mut trigger_runs =
            TriggerRuns::of(Plugin).configured(json!({ "messages": ["one", "two"] }));
        assert_eq!(next(&mut trigger_runs), "one");
        let mut trigger_runs = trigger_runs.configured(json!({ "messages": ["alone"] }));
        assert_eq!(next(&mut trigger_runs), "alone");
    }
}
