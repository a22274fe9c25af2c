//! A trigger that counts: each time it is due it says the operator's words with a number, and after
//! as many days as configured it is done.

use agent_host_sdk::{
    FireContext, Trigger, TriggerDescription, TriggerError, TriggerEvent, TriggerEventKind,
    TriggerRun, TriggerState, export_trigger,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The version of the state's layout: the number of days, in decimal digits.
const FORMAT: u32 = 1;

/// The trigger.
#[derive(Debug)]
pub struct Streak;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Configuration {
    /// Number of days.
    #[schemars(range(min = 1, max = 1000))]
    days: u32,
}

impl Trigger for Streak {
    fn describe(&self) -> TriggerDescription {
        TriggerDescription::new(
            "streak",
            "Counts the days of a challenge and says the number.",
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
        let Configuration { days } = context.configured()?;
        let day = days_done(state)?.saturating_add(1);
        let words = context.message.as_deref().unwrap_or("Go on.");
        let trigger_run = TriggerRun::message(format!("Day {day} of {days}. {words}"))
            .keep(FORMAT, day.to_string());
        Ok(if day < days {
            trigger_run
        } else {
            trigger_run.and_done()
        })
    }
}

fn days_done(state: Option<&TriggerState>) -> Result<u32, TriggerError> {
    let Some(state) = state else { return Ok(0) };
    std::str::from_utf8(&state.bytes)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| TriggerError::Rejected("the state is no number of days".to_owned()))
}

export_trigger!(Streak);

#[cfg(test)]
mod tests {
    use super::*;
    use agent_host_sdk::Due;
    use agent_host_sdk::harness::TriggerRuns;
    use serde_json::json;

    #[test]
    fn the_days_are_counted_until_the_last_one() {
        let due = TriggerEvent::Due(Due {
            due_ms: 1_800_000_000_000,
            missed: 0,
        });
        let mut trigger_runs = TriggerRuns::of(Streak)
            .configured(json!({ "days": 2 }))
            .saying("Run a mile.");
        let first = trigger_runs.fire(&due).unwrap();
        assert_eq!(first.messages[0].text, "Day 1 of 2. Run a mile.");
        assert!(!first.done);
        let last = trigger_runs.fire(&due).unwrap();
        assert_eq!(last.messages[0].text, "Day 2 of 2. Run a mile.");
        assert!(last.done);
    }
}
