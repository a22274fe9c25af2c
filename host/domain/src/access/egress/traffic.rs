//! The traffic of a call, for the record: one entry for each hop of each request.

use super::request_target::{Method, Scheme};
use serde::{Deserialize, Serialize};

/// Hops of one call that are recorded individually. Later ones are combined with similar ones.
pub const HOPS_RECORDED_MAX: usize = 32;
/// Entries of one call's record. At this number the call sends nothing more: no hop is unrecorded.
pub const HOP_KINDS_MAX: usize = 256;

/// Bytes of the path of an entry for several hops.
const PATH_BYTES_MAX: usize = 256;

/// The outcomes of a hop: `done`, `redirected`, `dropped` before its end, or the reason why
/// it was refused or failed.
pub const OUTCOMES: [&str; 17] = [
    "done",
    "redirected",
    "dropped",
    "url-refused",
    "header-refused",
    "not-granted",
    "address-barred",
    "redirect-refused",
    "busy",
    "budget-spent",
    "unresolved",
    "unreachable",
    "tls-failed",
    "timed-out",
    "request-too-large",
    "response-too-large",
    "broken",
];

/// One hop of a request, or several similar ones: the request, its outcome, and the traffic. The
/// query is not stored, because it may contain data that must not be recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The method.
    pub method: Method,
    /// The scheme; none if the URL was not accepted. The same applies to host, port and path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Scheme>,
    /// The host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The path without the query; none if several hops had different ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The status of the response; none if several hops had different ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The outcome, from [`OUTCOMES`].
    pub verdict: String,
    /// Bytes received, head included.
    pub bytes_in: u64,
    /// Bytes sent, head included.
    pub bytes_out: u64,
    /// Milliseconds from its begin to its end.
    pub ms: u64,
    /// Number of hops in this entry. Bytes and time are their sums.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u64,
}

fn once() -> u64 {
    1
}

fn is_once(times: &u64) -> bool {
    *times == 1
}

impl Hop {
    /// Returns whether both had the same destination, method and outcome.
    fn is_like(&self, other: &Self) -> bool {
        (
            self.method,
            self.scheme,
            &self.host,
            self.port,
            &self.verdict,
        ) == (
            other.method,
            other.scheme,
            &other.host,
            other.port,
            &other.verdict,
        )
    }

    /// Adds another similar hop.
    fn join(&mut self, other: &Self) {
        self.path = self
            .path
            .take()
            .filter(|path| other.path.as_ref() == Some(path));
        self.status = self.status.filter(|status| other.status == Some(*status));
        self.bytes_in = self.bytes_in.saturating_add(other.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(other.bytes_out);
        self.ms = self.ms.saturating_add(other.ms);
        self.times = self.times.saturating_add(other.times);
    }
}

/// The hops of one call, in the order of their ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Traffic {
    /// The first [`HOPS_RECORDED_MAX`] individually, then one entry for each group of similar ones.
    pub hops: Vec<Hop>,
}

impl Traffic {
    /// Records a hop. None is left out.
    pub fn add(&mut self, hop: Hop) {
        if self.hops.len() < HOPS_RECORDED_MAX {
            return self.hops.push(hop);
        }
        match self
            .hops
            .iter_mut()
            .skip(HOPS_RECORDED_MAX)
            .find(|known| known.is_like(&hop))
        {
            Some(known) => known.join(&hop),
            None => self.hops.push(Hop {
                path: hop.path.filter(|path| path.len() <= PATH_BYTES_MAX),
                ..hop
            }),
        }
    }

    /// Returns whether there is no room for more entries. A sender checks first; a hop that has
    /// begun by then is recorded all the same.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.hops.len() >= HOP_KINDS_MAX
    }

    /// Returns whether no request was sent or tried.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hops.is_empty()
    }
}

#[cfg(test)]
mod tests;
