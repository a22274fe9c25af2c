//! The decision whether a request may be sent, and whether an address may be dialled for it. Deny
//! is the default for both.

use super::address::{Reach, classify, embedded_v4};
use super::grant::{EgressGrant, RequestLimits};
use super::request_target::{Method, Target};
use std::net::IpAddr;

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
