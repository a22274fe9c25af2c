//! The call audit of one call: the decisions of the boundary and the requests that go out while it
//! runs. The caller keeps it, so that it is there also when the call is cut off.

use crate::host::audit_recorder::AuditRecorder;
use crate::outcome::Decided;
use domain::egress::{Hop, Traffic};
use domain::event::BoundaryVerdict;
use domain::grant::capability;
use domain::ruling::{Rule, Ruling};
use egress::{Cause, Record, Records};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Milliseconds that the end of a call waits for requests that it cut off to be put on record.
const CUT_OFF_MS_MAX: u64 = 1_000;

/// The decisions of the boundary about one call, and the hops of its requests. All clones are the
/// same call audit.
#[derive(Debug, Clone, Default)]
pub struct CallAudit {
    recorder: AuditRecorder,
    traffic: Arc<Mutex<Traffic>>,
    /// Closed once no request can be put on record any more; none while nothing could be sent.
    requests: Arc<Mutex<Option<watch::Receiver<()>>>>,
}

/// The destination of egress's records of one call.
#[derive(Debug)]
struct Ledger {
    traffic: Arc<Mutex<Traffic>>,
    recorder: AuditRecorder,
    _over: watch::Sender<()>,
}

impl CallAudit {
    /// Notes a decision about the call that was made outside its host functions.
    pub fn decided(&self, capability: &str, verdict: BoundaryVerdict, rule: Rule, detail: &str) {
        self.recorder.decided(capability, verdict, rule, detail);
    }

    /// Returns the destination for the records of the call's requests.
    #[must_use]
    pub fn records(&self) -> Arc<dyn Records> {
        let (over, requests) = watch::channel(());
        *locked(&self.requests) = Some(requests);
        Arc::new(Ledger {
            traffic: self.traffic.clone(),
            recorder: self.recorder.clone(),
            _over: over,
        })
    }

    /// Returns true if nothing more may be sent, because there would be no room for its record.
    pub(crate) fn is_full(&self) -> bool {
        locked(&self.traffic).is_full()
    }

    /// Waits until every request of the call that has ended is on record. What does not go in time
    /// is not waited for: its record is lost, and nothing else.
    pub async fn closed(&self) {
        let requests = locked(&self.requests).clone();
        if let Some(mut requests) = requests {
            // Nobody ever sends: this ends with the sender.
            let _ = timeout(Duration::from_millis(CUT_OFF_MS_MAX), requests.changed()).await;
        }
    }

    /// Takes everything out that was recorded so far.
    #[must_use]
    pub fn take(&self) -> (Decided, Traffic) {
        (
            self.recorder.take(),
            std::mem::take(&mut *locked(&self.traffic)),
        )
    }

    /// The audit record of a call that nothing but its component's grant binds.
    pub(crate) fn unbound_recorder(&self) -> AuditRecorder {
        self.recorder.clone()
    }

    /// The audit record of a call that was bound by these rulings.
    pub(crate) fn recorder(&self, rulings: Vec<Ruling>) -> AuditRecorder {
        self.recorder.bind(rulings);
        self.recorder.clone()
    }
}

impl Records for Ledger {
    fn put(&self, record: Record) {
        let Record {
            method,
            scheme,
            host,
            port,
            path,
            status,
            outcome,
            cause,
            detail,
            bytes_in,
            bytes_out,
            ms,
            ..
        } = record;
        let asked = || {
            format!(
                "{method} {}{}",
                host.as_deref().unwrap_or_default(),
                path.as_deref().unwrap_or_default()
            )
        };
        match verdict(cause) {
            BoundaryVerdict::Granted => self.recorder.granted(capability::NET_HTTP, asked),
            BoundaryVerdict::Refused => self
                .recorder
                .refused_request(&asked(), &detail.unwrap_or_default()),
            BoundaryVerdict::Limited => self
                .recorder
                .limited(capability::NET_HTTP, || format!("{}: {outcome}", asked())),
        }
        let hop = Hop {
            method,
            scheme,
            host,
            port,
            path,
            status,
            verdict: outcome.to_owned(),
            bytes_in,
            bytes_out,
            ms,
            times: 1,
        };
        locked(&self.traffic).add(hop);
    }
}

/// Returns the boundary's verdict for a hop's outcome. A hop that failed outside of the host was
/// granted.
fn verdict(cause: Option<Cause>) -> BoundaryVerdict {
    match cause {
        Some(Cause::Rule) => BoundaryVerdict::Refused,
        Some(Cause::Limit) => BoundaryVerdict::Limited,
        Some(Cause::Outside) | None => BoundaryVerdict::Granted,
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nobody who holds it panics between two changes that belong together.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
