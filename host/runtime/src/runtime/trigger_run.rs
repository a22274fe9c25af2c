//! Trigger runs: a trigger turns a trigger event into messages, as pure as a step.

use super::Runtime;
use super::calling::{EndedCall, accepted, record_offence};
use crate::call::{CallScope, Purpose, TRIGGER_FIRE};
use crate::component::{Component, Described, TriggerDescription};
use crate::convert::trigger::{guest_context, guest_state, guest_trigger_event, trigger_run};
use crate::exports::World;
use crate::host::audit_recorder::AuditRecorder;
use crate::host::clock_and_randomness::ClockAndRandomness;
use crate::host::filesystem::folders::Folders;
use crate::host::http::EgressScope;
use crate::outcome::Outcome;
use crate::run;
use crate::trigger::{FireCall, Fired, TriggerError, TriggerRun};
use domain::grant::GuestLimits;
use std::time::Duration;

impl Runtime {
    /// Has a trigger turn a trigger event into messages. It reaches nothing: its clock stands
    /// still, and its randomness follows from the seed, so that the same call has the same result.
    ///
    /// A trigger event of a kind that it cannot deal with, and a state of a format that it cannot
    /// read, are refused without asking it.
    pub async fn fire(
        &self,
        component: &Component,
        limits: &GuestLimits,
        call: FireCall<'_>,
    ) -> Fired {
        let recorder = AuditRecorder::default();
        let ended = self
            .fire_recording(component, limits, &call, &recorder)
            .await;
        record_offence(component, &ended.outcome);
        Fired {
            outcome: ended.outcome,
            usage: ended.usage,
            logs: ended.logs,
            decided: recorder.take(),
        }
    }

    async fn fire_recording(
        &self,
        component: &Component,
        limits: &GuestLimits,
        call: &FireCall<'_>,
        recorder: &AuditRecorder,
    ) -> EndedCall<Result<TriggerRun, TriggerError>> {
        let (World::Trigger(exports), Described::Trigger(description)) =
            (&*component.world, component.describes())
        else {
            let detail = format!("component {} is not a trigger", component.digest);
            return self.not_run(Outcome::not_begun(detail));
        };
        if let Some(detail) = misfit(description, call) {
            return self.not_run(Outcome::Refused { detail });
        }
        let _permit = match self.0.guests.admit(&component.gate, limits).await {
            Ok(permit) => permit,
            Err(refusal) => return self.turned_away(&refusal, TRIGGER_FIRE, recorder),
        };
        let call_scope = CallScope {
            purpose: Purpose::Fire,
            clock_and_randomness: ClockAndRandomness::frozen(call.now, call.seed),
            folders: Folders::default(),
            egress_scope: EgressScope::default(),
            recorder: recorder.clone(),
        };
        let mut store = self.store(call_scope, limits);
        let time = store.data().time();
        let context = guest_context(call);
        let state = call.state.map(guest_state);
        let trigger_event = guest_trigger_event(call.trigger_event);
        let guest = exports.fire(&mut store, &context, state.as_ref(), &trigger_event);
        let ended = run::drive(&time, Duration::from_millis(limits.wall_ms_max), guest).await;
        self.finish(&mut store, |state, logs| {
            run::outcome(ended, state, &time, logs)
                .and_then(|result| accepted(trigger_run(result, &description.state_formats)))
        })
    }
}

/// Returns the reason why a component cannot be asked about a trigger event; none if it can.
fn misfit(description: &TriggerDescription, call: &FireCall<'_>) -> Option<String> {
    let kind = call.trigger_event.kind();
    if !description.trigger_events.iter().any(|known| known == kind) {
        return Some(format!(
            "`trigger_events` of the component are `{}`, and this one is of the kind `{kind}`",
            description.trigger_events.join("`, `")
        ));
    }
    let format = call.state?.format;
    (!description.state_formats.contains(&format)).then(|| {
        format!(
            "`state-formats` of the component do not have {format}, in which the trigger's state is"
        )
    })
}
