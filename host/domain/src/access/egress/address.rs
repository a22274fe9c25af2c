//! Addresses: which of them lead to the public internet, which lead elsewhere, and the documents
//! that define this.
//!
//! A name can be registered by anyone and point anywhere, so the address decides and not the name.
//! An address is public only if none of the ranges below contains it. An IPv6 address that embeds
//! an IPv4 address is as dangerous as the embedded address.

use super::host::canonical_ip;
use crate::values::text::serde_as_text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

mod ranges;

pub use ranges::{metadata, special_ranges};

/// The kind of network that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// The public internet.
    Public,
    /// The metadata or credentials of the machine in its cloud.
    Metadata,
    /// This machine.
    Loopback,
    /// This network, or no address at all.
    Unspecified,
    /// A private network.
    Private,
    /// The shared space of a provider's address translation.
    Shared,
    /// This link only.
    LinkLocal,
    /// Many hosts at once.
    Multicast,
    /// All hosts on a link.
    Broadcast,
    /// Documents, not networks.
    Documentation,
    /// Measurements of networks.
    Benchmarking,
    /// Protocols, not hosts.
    Protocol,
    /// Not assigned.
    Reserved,
    /// An IPv4 address in the form of an IPv6 address.
    Mapped,
    /// An IPv4 address behind a translator or a tunnel.
    Translated,
}

impl Reach {
    /// Returns whether no grant can open it, because no HTTP server can be there.
    #[must_use]
    pub fn is_never_dialled(self) -> bool {
        matches!(self, Self::Unspecified | Self::Multicast | Self::Broadcast)
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Metadata => "cloud metadata",
            Self::Loopback => "loopback",
            Self::Unspecified => "unspecified",
            Self::Private => "private",
            Self::Shared => "shared (carrier-grade NAT)",
            Self::LinkLocal => "link-local",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Documentation => "documentation",
            Self::Benchmarking => "benchmarking",
            Self::Protocol => "protocol assignment",
            Self::Reserved => "reserved",
            Self::Mapped => "IPv4 in IPv6",
            Self::Translated => "translated IPv4",
        })
    }
}

/// Classifies an address. Metadata services are checked first, since their addresses are inside
/// wider ranges and one of them looks public.
#[must_use]
pub fn classify(address: IpAddr) -> Reach {
    if metadata().any(|(of_cloud, _)| of_cloud == address) {
        return Reach::Metadata;
    }
    special_ranges()
        .find(|(range, ..)| range.contains(address))
        .map_or_else(|| outside(address), |(_, reach, _)| reach)
}

/// Classifies an address outside all ranges of the table. For IPv6 only 2000::/3 is assigned to
/// hosts of the internet (RFC 4291, section 2.4).
fn outside(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(_) => Reach::Public,
        IpAddr::V6(v6) if v6.segments()[0] & 0xe000 == 0x2000 => Reach::Public,
        IpAddr::V6(_) => Reach::Reserved,
    }
}

/// The IPv4 address that an IPv6 address embeds, if its form shows it: mapped and compatible (RFC
/// 4291), the well-known prefix of translators (RFC 6052), 6to4 (RFC 3056) and the client of Teredo
/// (RFC 4380). Translators with their own prefix cannot be recognised.
#[must_use]
pub fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let joined =
        |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match (a, b) {
        (0, 0) if [c, d, e] == [0; 3] && (f == 0xffff || f == 0) && (f, g, h) > (0, 0, 1) => {
            joined(g, h)
        }
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => joined(g, h),
        (0x2002, _) => joined(b, c),
        (0x2001, 0) => joined(!g, !h),
        _ => None,
    }
}

/// A network or a single address, as the operator writes it: `10.0.0.0/8`, `127.0.0.1`, `fd00::/8`.
///
/// A grant opens it in spite of the default denial. It is written in its canonical form without
/// host bits and is inside one special range, which can be dialled at all. Public addresses need no
/// opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, schemars::JsonSchema)]
#[schemars(with = "String")]
pub struct AddressRange {
    address: IpAddr,
    prefix: u8,
}

/// Text that is not a range that a grant may open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressRangeError {
    /// It is no address and no network.
    #[error("`{text}` is not an address such as `127.0.0.1` or a network such as `10.0.0.0/8`")]
    Malformed {
        /// The text as it was written.
        text: String,
    },
    /// The address has bits after the prefix.
    #[error("`{text}` has bits after its prefix; the network is `{network}`")]
    HostBits {
        /// The text as it was written.
        text: String,
        /// The network that it may mean.
        network: String,
    },
    /// It is public, or extends from one special range into another or into the public internet.
    #[error(
        "`{text}` is not inside one private range: public addresses need no opening, and a \
             wider network would open what nobody named"
    )]
    NotSpecial {
        /// The text as it was written.
        text: String,
    },
    /// No host can answer there.
    #[error("`{text}` is {reach}: it is never dialled")]
    NeverDialled {
        /// The text as it was written.
        text: String,
        /// The kind of network that it belongs to.
        reach: Reach,
    },
}

impl AddressRange {
    const fn new(address: IpAddr, prefix: u8) -> Self {
        Self { address, prefix }
    }

    /// Returns whether it contains the address. An IPv4 range contains no IPv6 address, even if
    /// that embeds an IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                masked_v4(address, self.prefix) == network
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                masked_v6(address, self.prefix) == network
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// Returns whether it is exactly this address.
    #[must_use]
    pub fn is_exactly(&self, address: IpAddr) -> bool {
        self.address == address && self.prefix == bits(address)
    }

    fn is_inside(&self, wider: &Self) -> bool {
        self.prefix >= wider.prefix && wider.contains(self.address)
    }

    /// Reads an operator's text for a grant.
    ///
    /// # Errors
    /// It is malformed, or a range that no grant may open.
    pub fn parse(text: &str) -> Result<Self, AddressRangeError> {
        let malformed = || AddressRangeError::Malformed {
            text: text.to_owned(),
        };
        let (address, prefix) = match text.split_once('/') {
            None => (text, None),
            Some((address, prefix)) => (address, Some(prefix)),
        };
        let address = canonical_ip(address).ok_or_else(malformed)?;
        let prefix = match prefix {
            None => bits(address),
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|n: &u8| *n <= bits(address) && n.to_string() == digits)
                .ok_or_else(malformed)?,
        };
        let network = match address {
            IpAddr::V4(v4) => IpAddr::V4(masked_v4(v4, prefix)),
            IpAddr::V6(v6) => IpAddr::V6(masked_v6(v6, prefix)),
        };
        let range = Self {
            address: network,
            prefix,
        };
        if network != address {
            return Err(AddressRangeError::HostBits {
                text: text.to_owned(),
                network: range.to_string(),
            });
        }
        if metadata().any(|(of_cloud, _)| range.is_exactly(of_cloud)) {
            return Ok(range);
        }
        match special_ranges().find(|(wider, ..)| range.is_inside(wider)) {
            None => Err(AddressRangeError::NotSpecial {
                text: text.to_owned(),
            }),
            Some((_, reach, _)) if reach.is_never_dialled() => {
                Err(AddressRangeError::NeverDialled {
                    text: text.to_owned(),
                    reach,
                })
            }
            Some(_) => Ok(range),
        }
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked_v4(address: Ipv4Addr, prefix: u8) -> Ipv4Addr {
    let mask = u32::MAX
        .checked_shl(32_u32.saturating_sub(prefix.into()))
        .unwrap_or(0);
    Ipv4Addr::from_bits(address.to_bits() & mask)
}

fn masked_v6(address: Ipv6Addr, prefix: u8) -> Ipv6Addr {
    let mask = u128::MAX
        .checked_shl(128_u32.saturating_sub(prefix.into()))
        .unwrap_or(0);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.prefix == bits(self.address) {
            write!(f, "{}", self.address)
        } else {
            write!(f, "{}/{}", self.address, self.prefix)
        }
    }
}

serde_as_text!(AddressRange::parse);

#[cfg(test)]
mod tests;
