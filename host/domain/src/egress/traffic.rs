//! What a call sent out, for the record: one entry for each hop of each request.

use super::request_target::{Method, Scheme};
use serde::{Deserialize, Serialize};

/// Hops of one call that are put on record. The others are counted.
pub const HOPS_RECORDED_MAX: usize = 32;

/// What can become of a hop: `done`, `redirected`, `dropped` before its end, or why it was refused or failed.
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

/// One hop of a request: what was asked, what became of it, and what passed. The query is not kept: it may hold what no record should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The method.
    pub method: Method,
    /// The scheme; none if the URL was not accepted, and so with host, port and path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Scheme>,
    /// The host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The path without the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// One of [`OUTCOMES`].
    pub verdict: String,
    /// Bytes received, head included.
    pub bytes_in: u64,
    /// Bytes sent, head included.
    pub bytes_out: u64,
    /// Milliseconds from its begin to its end.
    pub ms: u64,
}

/// The hops of one call, in the order of their ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Traffic {
    /// The first of them, at most [`HOPS_RECORDED_MAX`].
    pub hops: Vec<Hop>,
    /// How many more there were.
    #[serde(default)]
    pub left_out: u64,
}

impl Traffic {
    /// Puts a hop on record, or counts it when there are enough.
    pub fn add(&mut self, hop: Hop) {
        if self.hops.len() < HOPS_RECORDED_MAX {
            self.hops.push(hop);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    /// Whether nothing was sent or tried.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hops.is_empty() && self.left_out == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_above_the_limit_are_counted_and_not_kept() {
        let hop = Hop {
            method: Method::Get,
            scheme: None,
            host: None,
            port: None,
            path: None,
            status: None,
            verdict: "url-refused".to_owned(),
            bytes_in: 0,
            bytes_out: 0,
            ms: 0,
        };
        let mut traffic = Traffic::default();
        assert!(traffic.is_empty());
        (0..HOPS_RECORDED_MAX + 2).for_each(|_| traffic.add(hop.clone()));
        assert_eq!((traffic.hops.len(), traffic.left_out), (HOPS_RECORDED_MAX, 2));
    }
}
