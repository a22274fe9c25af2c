//! Calls of connectors: each on a fresh instance with the requests, the secrets and the variables
//! that its component is granted.

use super::Runtime;
use super::calling::{EndedCall, accepted, record_offence};
use crate::call::{CONNECTOR_CALL, CallScope, CallState, CallTime, Purpose};
use crate::config::HOSTCALL_BYTES_MAX;
use crate::connector::{Connected, ConnectorCall, VerifiedCall};
use crate::convert::Unacceptable;
use crate::convert::connector::{batch, fetched, guest_incoming_call, guest_outgoing, sent};
use crate::exports::{ConnectorExports, World};
use crate::guest_semaphore::GuestPermit;
use crate::host::clock_and_randomness::ClockAndRandomness;
use crate::host::filesystem::folders::Folders;
use crate::host::http::{EgressScope, Sender};
use crate::host::secrets::BoundSecrets;
use crate::outcome::Outcome;
use crate::redacted::{self, Redact};
use crate::run;
use domain::connector::{ATTACHMENT_BYTES_MAX, Batch, ConnectorFailure, Outgoing};
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
