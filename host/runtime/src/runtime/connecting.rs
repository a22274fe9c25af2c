//! Runs of triggers, which are pure, and calls of connectors: each on a fresh instance with the
//! requests, the secrets and the variables that its component is granted.

use crate::call::{CONNECTOR_CALL, CallScope, CallState, CallTime, Purpose, TRIGGER_FIRE};
use crate::component::{Component, Described, TriggerDescription};
use crate::config::HOSTCALL_BYTES_MAX;
use crate::convert::Unacceptable;
use crate::convert::connector::{
    Connected, ConnectorCall, VerifiedCall, batch, fetched, guest_incoming_call, guest_outgoing,
    sent,
};
use crate::convert::trigger::{
    FireCall, Fired, TriggerError, TriggerRun, guest_context, guest_state, guest_trigger_event,
    trigger_run,
};
use crate::exports::{ConnectorExports, World};
use crate::guest_semaphore::GuestPermit;
use crate::host::audit_recorder::AuditRecorder;
use crate::host::clock_and_randomness::ClockAndRandomness;
use crate::host::filesystem::folders::Folders;
use crate::host::http::{EgressScope, Sender};
use crate::host::secrets::BoundSecrets;
use crate::outcome::Outcome;
use crate::redacted::{self, Redact};
use crate::run;
use crate::runtime::Runtime;
use crate::runtime::calling::{EndedCall, accepted, record_offence};
use domain::connector::{ATTACHMENT_BYTES_MAX, Batch, ConnectorFailure, Outgoing};
use domain::grant::GuestLimits;
use domain::redact::Redactor;
use egress::awake::TooLate;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::Store;

/// The end of a guest's call, before anything of it is read.
type Ended<T> = Result<wasmtime::Result<T>, TooLate>;
/// The acceptable part of what a connector returned.
type Answer<T> = Result<Result<T, ConnectorFailure>, Unacceptable>;

/// A call that was let in and has its means.
struct OpenCall<'a> {
    exports: &'a ConnectorExports,
    configuration: String,
    store: Store<CallState>,
    time: Arc<CallTime>,
    wall_max: Duration,
    redactor: Redactor,
    _permit: GuestPermit,
}

impl Runtime {
    /// Has a connector read a call of its service.
    pub async fn receive(
        &self,
        call: ConnectorCall<'_>,
        service: VerifiedCall,
    ) -> Connected<Batch> {
        let mut open = match self.open(&call).await {
            Ok(open) => open,
            Err(ended) => return connected(*ended),
        };
        let incoming_call = guest_incoming_call(service);
        let guest = open
            .exports
            .receive(&mut open.store, &open.configuration, &incoming_call);
        let ended = run::drive(&open.time, open.wall_max, guest).await;
        self.close(&call, open, ended, batch).await
    }

    /// Has a connector ask its service for news.
    pub async fn poll(&self, call: ConnectorCall<'_>, cursor: Option<&str>) -> Connected<Batch> {
        let mut open = match self.open(&call).await {
            Ok(open) => open,
            Err(ended) => return connected(*ended),
        };
        let guest = open
            .exports
            .poll(&mut open.store, &open.configuration, cursor);
        let ended = run::drive(&open.time, open.wall_max, guest).await;
        self.close(&call, open, ended, batch).await
    }

    /// Has a connector deliver a message. Returns the service's id of it, which is empty where
    /// there is none.
    pub async fn send(&self, call: ConnectorCall<'_>, message: &Outgoing) -> Connected<String> {
        let mut open = match self.open(&call).await {
            Ok(open) => open,
            Err(ended) => return connected(*ended),
        };
        let message = guest_outgoing(message);
        let guest = open
            .exports
            .send(&mut open.store, &open.configuration, &message);
        let ended = run::drive(&open.time, open.wall_max, guest).await;
        self.close(&call, open, ended, sent).await
    }

    /// Has a connector get the bytes of a file that came with a message.
    pub async fn fetch(&self, call: ConnectorCall<'_>, handle: &str) -> Connected<Vec<u8>> {
        let mut open = match self.open(&call).await {
            Ok(open) => open,
            Err(ended) => return connected(*ended),
        };
        // A file is larger than anything else that a guest hands over at once.
        let file_bytes = usize::try_from(ATTACHMENT_BYTES_MAX).unwrap_or(usize::MAX);
        let bytes_max = file_bytes.saturating_add(HOSTCALL_BYTES_MAX);
        open.store.set_hostcall_fuel(bytes_max);
        let guest = open
            .exports
            .fetch(&mut open.store, &open.configuration, handle);
        let ended = run::drive(&open.time, open.wall_max, guest).await;
        self.close(&call, open, ended, fetched).await
    }

    /// Lets a call in and gives it its means.
    async fn open<'a, T>(
        &self,
        call: &ConnectorCall<'a>,
    ) -> Result<OpenCall<'a>, Box<EndedCall<Result<T, ConnectorFailure>>>> {
        let ConnectorCall {
            component,
            grant,
            configuration,
            deadline_ms,
            audit,
        } = *call;
        let limits = &grant.limits;
        let recorder = audit.unbound_recorder();
        let World::Connector(exports) = &*component.world else {
            let detail = format!("component {} is not a connector", component.digest);
            return Err(Box::new(self.not_run(Outcome::not_begun(detail))));
        };
        let permit = match self.0.guests.admit(&component.gate, limits).await {
            Ok(permit) => permit,
            Err(refusal) => {
                let ended = self.turned_away(&refusal, CONNECTOR_CALL, &recorder);
                return Err(Box::new(ended));
            }
        };
        let secrets = BoundSecrets::new(&grant.secrets, self.0.config.secrets.clone());
        let redactor = secrets.redactor();
        recorder.redact(&redactor);
        let sender = Sender {
            component: component.name.clone(),
            network: &grant.network,
            bytes_max: limits.egress_bytes_max,
            secrets,
            recorder: recorder.clone(),
            audit,
        };
        let call_scope = CallScope {
            purpose: Purpose::Connect(grant.environment.clone()),
            clock_and_randomness: ClockAndRandomness::live(),
            folders: Folders::default(),
            egress_scope: EgressScope::open(self.0.config.egress.clone(), sender),
            recorder,
        };
        let store = self.store(call_scope, limits);
        let wall_ms = limits.wall_ms_max.min(u64::from(deadline_ms));
        Ok(OpenCall {
            exports,
            configuration: configuration.to_string(),
            time: store.data().time(),
            store,
            wall_max: Duration::from_millis(wall_ms),
            redactor,
            _permit: permit,
        })
    }

    /// Ends a call: reads what it returned, and accounts for it.
    async fn close<R, T: Redact>(
        &self,
        call: &ConnectorCall<'_>,
        open: OpenCall<'_>,
        ended: Ended<R>,
        read: impl FnOnce(R) -> Answer<T>,
    ) -> Connected<T> {
        let OpenCall {
            mut store,
            time,
            redactor,
            _permit,
            ..
        } = open;
        let mut ended = self.finish(&mut store, |state, logs| {
            run::outcome(ended, state, &time, logs).and_then(|returned| accepted(read(returned)))
        });
        // With it go the call's connections.
        drop(store);
        call.audit.closed().await;
        record_offence(call.component, &ended.outcome);
        redacted::logs(&redactor, &mut ended.logs);
        ended.outcome = redacted::outcome(&redactor, ended.outcome);
        connected(ended)
    }
}

fn connected<T>(ended: EndedCall<Result<T, ConnectorFailure>>) -> Connected<T> {
    Connected {
        outcome: ended.outcome,
        usage: ended.usage,
        logs: ended.logs,
    }
}

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
