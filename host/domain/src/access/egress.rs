//! Egress: the permitted destinations of a component's HTTP requests, and the addresses that are
//! never dialled.
//!
//! The steps are, in this order: [`Target::parse`] turns a URL into the value that is checked and
//! dialled, and [`permit`] finds the grant that allows it. The name is resolved once, outside this
//! module, and [`Permit::admits`] judges each resolved address. The header rules decide which
//! headers the request may have. All later steps use the [`Target`] and never the original text.

mod address;
mod grant;
mod header;
mod host;
mod path;
mod placeholder;
mod request_target;

pub use address::{
    AddressRange, AddressRangeError, Reach, classify, embedded_v4, metadata, special_ranges,
};
pub use grant::{EgressGrant, GrantError, RequestLimits, ceiling};
pub use header::{
    CREDENTIALS, RequestHeader, crosses_origins, divides_echo, request_header, response_header,
    shows_ascii, trailer,
};
pub use host::{Host, HostError, HostPattern, HostPatternError};
pub use path::{PathPattern, PathPatternError};
pub(crate) use placeholder::DECODINGS_MAX;
pub use placeholder::{Misplaced, placements};
pub use request_target::{Method, NotAMethod, Scheme, Target, TargetError, URL_BYTES_MAX};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

// The traffic of a call, for the record: one entry for each hop of each request.

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
mod traffic_tests {
    use super::*;

    fn hop(host: &str, path: &str, verdict: &str) -> Hop {
        Hop {
            method: Method::Get,
            scheme: Some(Scheme::Https),
            host: Some(host.to_owned()),
            port: Some(443),
            path: Some(path.to_owned()),
            status: None,
            verdict: verdict.to_owned(),
            bytes_in: 1,
            bytes_out: 2,
            ms: 3,
            times: 1,
        }
    }

    #[test]
    fn a_request_after_any_number_of_decoys_is_on_record() {
        let mut traffic = Traffic::default();
        assert!(traffic.is_empty());
        (0..HOPS_RECORDED_MAX).for_each(|_| traffic.add(hop("decoy", "/", "not-granted")));
        (0..1_000).for_each(|n| traffic.add(hop("decoy", &format!("/{n}"), "not-granted")));
        traffic.add(Hop {
            status: Some(200),
            ..hop("target", "/secret", "done")
        });
        traffic.add(Hop {
            status: Some(200),
            ..hop("target", "/secret", "done")
        });
        assert_eq!(
            (traffic.hops.len(), traffic.is_full()),
            (HOPS_RECORDED_MAX + 2, false)
        );
        let [decoys, target] = &traffic.hops[HOPS_RECORDED_MAX..] else {
            panic!("{traffic:?}")
        };
        assert_eq!(
            (decoys.times, decoys.bytes_out, decoys.ms, &decoys.path),
            (1_000, 2_000, 3_000, &None)
        );
        assert_eq!(
            (target.times, target.status, target.path.as_deref()),
            (2, Some(200), Some("/secret"))
        );
    }

    #[test]
    fn a_record_that_is_full_says_so_and_loses_nothing() {
        let mut traffic = Traffic::default();
        (0..HOP_KINDS_MAX)
            .for_each(|n| traffic.add(hop(&format!("h{n}"), &"/x".repeat(400), "done")));
        assert!(traffic.is_full());
        assert!(
            traffic
                .hops
                .iter()
                .skip(HOPS_RECORDED_MAX)
                .all(|hop| hop.path.is_none())
        );
        traffic.add(hop("one-more", "/", "done"));
        assert_eq!(
            traffic.hops.last().unwrap().host.as_deref(),
            Some("one-more")
        );
    }
}

// The decision whether a request may be sent, and whether an address may be dialled for it. Deny
// is the default for both.

/// An allowed request, and the grant that allows it.
#[derive(Debug, Clone, Copy)]
pub struct Permit<'a> {
    /// The first grant of the list that allows it.
    pub grant: &'a EgressGrant,
    /// Its place in the list, from 0.
    pub index: usize,
}

/// The first part of a grant that did not match, in the order of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mismatch {
    /// The host.
    Host,
    /// The scheme.
    Scheme,
    /// The port.
    Port,
    /// The method.
    Method,
    /// The path.
    Path,
}

impl Mismatch {
    /// The key of the grant that would have to allow it.
    #[must_use]
    pub fn field(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Scheme => "schemes",
            Self::Port => "ports",
            Self::Method => "methods",
            Self::Path => "path",
        }
    }
}

/// No grant allows the request. For the operator; the guest learns only that it was denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The component has no grants.
    #[error("{asked} is not allowed: no `network` is granted")]
    NothingGranted {
        /// Method and URL without its query.
        asked: String,
    },
    /// The component has grants, and none fits.
    #[error("{asked} is not allowed: the nearest grant, network[{index}], has another `{}`", mismatch.field())]
    NoGrantFits {
        /// Method and URL without its query.
        asked: String,
        /// The index of the closest grant, from 0.
        index: usize,
        /// The first part that does not match.
        mismatch: Mismatch,
    },
}

/// An address that the permit does not open. For the operator; the guest learns only that it was
/// denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{address} is {reach} and not in `privateAddresses`")]
pub struct Barred {
    /// The address.
    pub address: IpAddr,
    /// The kind of network that it belongs to.
    pub reach: Reach,
}

/// Finds the first grant that allows the request.
///
/// # Errors
/// No grant allows it; the error says which was closest.
pub fn permit<'a>(
    target: &Target,
    method: Method,
    grants: &'a [EgressGrant],
) -> Result<Permit<'a>, Denied> {
    let asked = || format!("{method} {target}");
    let mut nearest = None;
    for (index, grant) in grants.iter().enumerate() {
        match mismatch(target, method, grant) {
            None => return Ok(Permit { grant, index }),
            Some(mismatch) if nearest.is_none_or(|(_, furthest)| mismatch > furthest) => {
                nearest = Some((index, mismatch))
            }
            Some(_) => {}
        }
    }
    Err(match nearest {
        None => Denied::NothingGranted { asked: asked() },
        Some((index, mismatch)) => Denied::NoGrantFits {
            asked: asked(),
            index,
            mismatch,
        },
    })
}

fn mismatch(target: &Target, method: Method, grant: &EgressGrant) -> Option<Mismatch> {
    let host = grant.host.matches(target.host()) && (grant.any_host || !grant.host.is_boundless());
    [
        (Mismatch::Host, host),
        (Mismatch::Scheme, grant.schemes.contains(&target.scheme())),
        (
            Mismatch::Port,
            grant.has_port(target.port(), target.scheme()),
        ),
        (Mismatch::Method, grant.methods.contains(&method)),
        (Mismatch::Path, grant.path.matches(target.path())),
    ]
    .into_iter()
    .find_map(|(mismatch, fits)| (!fits).then_some(mismatch))
}

impl Permit<'_> {
    /// The sizes and times of the request.
    #[must_use]
    pub fn limits(&self) -> RequestLimits {
        self.grant.limits()
    }

    /// Judges one address of the host. The caller that resolves a name checks every resolved
    /// address. It dials none of them if one is barred: a mixed result is an attack or a mistake.
    ///
    /// Public addresses are open. A range of the grant opens special addresses in it, with two
    /// exceptions. Metadata addresses must be named themselves. For an IPv6 address that embeds an
    /// IPv4 address, the embedded one must be open too, or the address must be named itself.
    ///
    /// # Errors
    /// It is not open.
    pub fn admits(&self, address: IpAddr) -> Result<(), Barred> {
        let reach = classify(address);
        let named = || {
            self.grant
                .private_addresses
                .iter()
                .any(|range| range.is_exactly(address))
        };
        let listed = || {
            self.grant
                .private_addresses
                .iter()
                .any(|range| range.contains(address))
        };
        let open = match reach {
            Reach::Public => true,
            Reach::Unspecified | Reach::Multicast | Reach::Broadcast => false,
            Reach::Metadata => named(),
            Reach::Mapped | Reach::Translated => {
                named() || (listed() && self.admits_contained(address))
            }
            Reach::Loopback
            | Reach::Private
            | Reach::Shared
            | Reach::LinkLocal
            | Reach::Documentation
            | Reach::Benchmarking
            | Reach::Protocol
            | Reach::Reserved => listed(),
        };
        if open {
            Ok(())
        } else {
            Err(Barred { address, reach })
        }
    }

    fn admits_contained(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(_) => false,
            IpAddr::V6(v6) => embedded_v4(v6).is_some_and(|v4| self.admits(v4.into()).is_ok()),
        }
    }
}

#[cfg(test)]
mod tests;
