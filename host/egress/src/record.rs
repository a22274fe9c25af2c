//! The record of one hop: what was asked, what was decided and by which rule, and what passed.

use crate::error::{Cause, EgressError};
use crate::limits::{RECORDED_ADDRESSES_MAX, RECORDED_PATH_BYTES_MAX};
use crate::request::Caller;
use crate::wire::Tally;
use domain::egress::{Method, Permit, Scheme, Target};
use domain::redact::Redactor;
use serde::Serialize;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::time::Instant;

/// The record of one hop of a request. For the ledger; nothing of it is for a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The component on whose behalf it was sent.
    pub component: String,
    /// Redirects that led here.
    pub hop: u8,
    /// The method.
    pub method: Method,
    /// The scheme; none if the URL was not accepted, and so with host, port and path.
    pub scheme: Option<Scheme>,
    /// The host.
    pub host: Option<String>,
    /// The port.
    pub port: Option<u16>,
    /// The path without the query, at most 512 bytes of it.
    pub path: Option<String>,
    /// The addresses of the answer of the lookup, at most 16.
    pub addresses: Vec<IpAddr>,
    /// The address that was dialled last.
    pub dialled: Option<IpAddr>,
    /// The place of the grant that allowed it.
    pub grant: Option<usize>,
    /// `done`, also when the caller had all that it wanted of the answer, `redirected`, `dropped`
    /// by the caller before its end, or an error's [code](EgressError::code).
    pub outcome: &'static str,
    /// The origin of the error; none if there is none.
    #[serde(skip)]
    pub cause: Option<Cause>,
    /// The rule, address or cause behind an error.
    pub detail: Option<String>,
    /// The status of the answer.
    pub status: Option<u16>,
    /// Bytes sent, head included, without TLS.
    pub bytes_out: u64,
    /// Bytes received, head included, without TLS and before decompression.
    pub bytes_in: u64,
    /// Milliseconds from its begin to its end.
    pub ms: u64,
}

/// A sink for records. Each hop is put exactly once, when it ends, in whatever way: also when its
/// caller no longer waits.
pub trait Records: Send + Sync + fmt::Debug {
    /// Takes a record. It must neither block nor wait.
    fn put(&self, record: Record);
}

/// A record in the making. It is put when this goes.
#[derive(Debug)]
pub(crate) struct Trace {
    record: Record,
    records: Arc<dyn Records>,
    redactor: Redactor,
    tally: Arc<Tally>,
    begun: Instant,
}

impl Trace {
    pub(crate) fn begin(caller: &Caller, hop: u8, method: Method) -> Self {
        let record = Record {
            component: caller.component.clone(),
            hop,
            method,
            scheme: None,
            host: None,
            port: None,
            path: None,
            addresses: Vec::new(),
            dialled: None,
            grant: None,
            outcome: "dropped",
            cause: None,
            detail: None,
            status: None,
            bytes_out: 0,
            bytes_in: 0,
            ms: 0,
        };
        Self {
            record,
            records: Arc::clone(&caller.records),
            redactor: caller.redactor.clone(),
            tally: Arc::default(),
            begun: Instant::now(),
        }
    }

    pub(crate) fn target(&mut self, target: &Target) {
        self.record.scheme = Some(target.scheme());
        self.record.host = Some(target.host().to_string());
        self.record.port = Some(target.port());
        // Before it is cut, or half of a secret might stay.
        let path = self.redactor.text(target.path());
        self.record.path = Some(
            path.get(..RECORDED_PATH_BYTES_MAX)
                .unwrap_or(&path)
                .to_owned(),
        );
    }

    pub(crate) fn permit(&mut self, permit: &Permit<'_>) {
        self.record.grant = Some(permit.index);
    }

    pub(crate) fn addresses(&mut self, addresses: &[IpAddr]) {
        self.record.addresses = addresses
            .iter()
            .take(RECORDED_ADDRESSES_MAX)
            .copied()
            .collect();
    }

    pub(crate) fn dialled(&mut self, address: IpAddr) {
        self.record.dialled = Some(address);
    }

    pub(crate) fn status(&mut self, status: u16) {
        self.record.status = Some(status);
    }

    /// Returns the count of what passes on this hop.
    pub(crate) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    pub(crate) fn end(&mut self, outcome: &'static str) {
        self.record.outcome = outcome;
    }

    pub(crate) fn fail(&mut self, error: &EgressError) {
        self.record.outcome = error.code();
        self.record.cause = Some(error.cause());
        self.record.detail = Some(error.detail());
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let mut record = self.record.clone();
        (record.bytes_out, record.bytes_in) = (self.tally.bytes_out(), self.tally.bytes_in());
        for text in [&mut record.host, &mut record.path, &mut record.detail]
            .into_iter()
            .flatten()
        {
            // What a server puts into a redirect is on record too.
            *text = self.redactor.text(text).into_owned();
        }
        record.ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.records.put(record);
    }
}
