//! Triggers that keep the host's rules, and triggers that break one.

use super::*;
use crate::trigger::{Due, TriggerEventKind, TriggerMessage};

const DUE: TriggerEvent = TriggerEvent::Due(Due {
    due_ms: 1,
    missed: 0,
});

/// A trigger that is one function.
struct Fires<F>(F);

impl<F: Fn(Option<&TriggerState>) -> TriggerRun> Trigger for Fires<F> {
    fn describe(&self) -> TriggerDescription {
        TriggerDescription::new("fires", "Fires.", [TriggerEventKind::Clock]).reads_state(1)
    }

    fn fire(
        &self,
        _: &FireContext,
        state: Option<&TriggerState>,
        _: &TriggerEvent,
    ) -> Result<TriggerRun, TriggerError> {
        Ok((self.0)(state))
    }
}

#[test]
fn a_triggers_state_is_there_at_its_next_trigger_run() {
    let count = |state: Option<&TriggerState>| state.map_or(0, |state| state.bytes.len());
    let mut trigger_runs = TriggerRuns::of(Fires(move |state: Option<&TriggerState>| {
        let trigger_run = TriggerRun::message(format!("{}", count(state)));
        trigger_run.keep(1, vec![0; count(state) + 1])
    }));
    trigger_runs.fire(&DUE).unwrap();
    let second = trigger_runs.fire(&DUE).unwrap();
    assert_eq!(second.messages, TriggerRun::message("1").messages);
}

#[test]
#[should_panic(expected = "100 messages at most")]
fn a_trigger_with_too_many_messages_breaks_a_rule() {
    let many = || {
        (0..101).fold(TriggerRun::nothing(), |all, _| {
            all.and(TriggerMessage::new("x"))
        })
    };
    let _ = TriggerRuns::of(Fires(move |_: Option<&TriggerState>| many())).fire(&DUE);
}

#[test]
#[should_panic(expected = "the target `boss` is not granted")]
fn a_trigger_that_picks_a_target_it_has_not_breaks_a_rule() {
    let to = || TriggerRun::nothing().and(TriggerMessage::new("x").to("boss"));
    let _ = TriggerRuns::of(Fires(move |_: Option<&TriggerState>| to())).fire(&DUE);
}

#[test]
#[should_panic(expected = "format 2 is not among those")]
fn a_state_in_an_unlisted_format_breaks_a_rule() {
    let keep = || TriggerRun::nothing().keep(2, *b"x");
    let _ = TriggerRuns::of(Fires(move |_: Option<&TriggerState>| keep())).fire(&DUE);
}
