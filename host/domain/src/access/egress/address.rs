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

// The table of addresses outside the public internet, each with its document.

/// The address of a metadata or credential service, and its owner.
type Metadata = (IpAddr, &'static str);
/// A range, its kind of network, and the document that defines it.
type Special = (AddressRange, Reach, &'static str);

const fn v4(octets: [u8; 4]) -> IpAddr {
    let [a, b, c, d] = octets;
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

const fn v6(segments: [u16; 8]) -> IpAddr {
    let [a, b, c, d, e, f, g, h] = segments;
    IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h))
}

const fn r4(octets: [u8; 4], prefix: u8, reach: Reach, source: &'static str) -> Special {
    (AddressRange::new(v4(octets), prefix), reach, source)
}

/// A range whose address begins with these segments, all others being zero.
const fn r6<const N: usize>(
    first: [u16; N],
    prefix: u8,
    reach: Reach,
    source: &'static str,
) -> Special {
    let mut segments = [0; 8];
    let (head, _) = segments.split_at_mut(N);
    head.copy_from_slice(&first);
    (AddressRange::new(v6(segments), prefix), reach, source)
}

/// Addresses where clouds return credentials to any client inside the machine.
const METADATA: &[Metadata] = &[
    (
        v4([169, 254, 169, 254]),
        "instance metadata of AWS, Google Cloud, Azure, Oracle, OpenStack and others",
    ),
    (v4([169, 254, 169, 253]), "resolver of AWS"),
    (v4([169, 254, 169, 123]), "clock of AWS"),
    (v4([169, 254, 170, 2]), "task credentials of AWS ECS"),
    (v4([169, 254, 170, 23]), "pod identity of AWS EKS"),
    (v4([169, 254, 0, 23]), "metadata of Tencent Cloud"),
    (v4([169, 254, 42, 42]), "metadata of Scaleway"),
    (v4([100, 100, 100, 200]), "metadata of Alibaba Cloud"),
    (
        v4([168, 63, 129, 16]),
        "wire server of Azure, in a public range",
    ),
    (v4([192, 0, 0, 192]), "metadata of Oracle Cloud"),
    (
        v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]),
        "instance metadata of AWS",
    ),
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x253]), "resolver of AWS"),
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x123]), "clock of AWS"),
    (
        v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23]),
        "pod identity of AWS EKS",
    ),
    (
        v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]),
        "instance metadata of Google Cloud",
    ),
    (
        v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42]),
        "metadata of Scaleway",
    ),
];

/// The registries of special-purpose addresses (RFC 6890 and its updates). The first range that
/// contains an address decides, so narrow ranges precede wide ones.
const SPECIAL: &[Special] = &[
    r4(
        [0, 0, 0, 0],
        8,
        Reach::Unspecified,
        "RFC 1122 section 3.2.1.3",
    ),
    r4([10, 0, 0, 0], 8, Reach::Private, "RFC 1918"),
    r4([100, 64, 0, 0], 10, Reach::Shared, "RFC 6598"),
    r4(
        [127, 0, 0, 0],
        8,
        Reach::Loopback,
        "RFC 1122 section 3.2.1.3",
    ),
    r4([169, 254, 0, 0], 16, Reach::LinkLocal, "RFC 3927"),
    r4([172, 16, 0, 0], 12, Reach::Private, "RFC 1918"),
    r4([192, 0, 0, 0], 24, Reach::Protocol, "RFC 6890 section 2.1"),
    r4([192, 0, 2, 0], 24, Reach::Documentation, "RFC 5737"),
    r4([192, 31, 196, 0], 24, Reach::Protocol, "RFC 7535"),
    r4([192, 52, 193, 0], 24, Reach::Protocol, "RFC 7450"),
    r4([192, 88, 99, 0], 24, Reach::Translated, "RFC 7526"),
    r4([192, 168, 0, 0], 16, Reach::Private, "RFC 1918"),
    r4([192, 175, 48, 0], 24, Reach::Protocol, "RFC 7534"),
    r4([198, 18, 0, 0], 15, Reach::Benchmarking, "RFC 2544"),
    r4([198, 51, 100, 0], 24, Reach::Documentation, "RFC 5737"),
    r4([203, 0, 113, 0], 24, Reach::Documentation, "RFC 5737"),
    r4([224, 0, 0, 0], 4, Reach::Multicast, "RFC 5771"),
    r4([255, 255, 255, 255], 32, Reach::Broadcast, "RFC 919"),
    r4([240, 0, 0, 0], 4, Reach::Reserved, "RFC 1112 section 4"),
    r6([0], 128, Reach::Unspecified, "RFC 4291 section 2.5.2"),
    r6(
        [0, 0, 0, 0, 0, 0, 0, 1],
        128,
        Reach::Loopback,
        "RFC 4291 section 2.5.3",
    ),
    r6(
        [0, 0, 0, 0, 0, 0xffff],
        96,
        Reach::Mapped,
        "RFC 4291 section 2.5.5.2",
    ),
    r6([0], 96, Reach::Mapped, "RFC 4291 section 2.5.5.1"),
    r6(
        [0, 0, 0, 0, 0xffff],
        96,
        Reach::Translated,
        "RFC 2765 section 2.1",
    ),
    r6([0x64, 0xff9b], 96, Reach::Translated, "RFC 6052"),
    r6([0x64, 0xff9b, 1], 48, Reach::Translated, "RFC 8215"),
    r6([0x100], 64, Reach::Reserved, "RFC 6666"),
    r6([0x100, 0, 0, 1], 64, Reach::Reserved, "RFC 9780"),
    r6([0x2001], 32, Reach::Translated, "RFC 4380"),
    r6([0x2001, 2], 48, Reach::Benchmarking, "RFC 5180"),
    r6([0x2001], 23, Reach::Protocol, "RFC 2928"),
    r6([0x2001, 0xdb8], 32, Reach::Documentation, "RFC 3849"),
    r6([0x2002], 16, Reach::Translated, "RFC 3056"),
    r6([0x2620, 0x4f, 0x8000], 48, Reach::Protocol, "RFC 7534"),
    r6([0x3fff], 20, Reach::Documentation, "RFC 9637"),
    r6([0x3ffe], 16, Reach::Reserved, "RFC 3701"),
    r6([0x5f00], 16, Reach::Protocol, "RFC 9602"),
    r6([0xfc00], 7, Reach::Private, "RFC 4193"),
    r6([0xfe80], 10, Reach::LinkLocal, "RFC 4291 section 2.5.6"),
    r6([0xfec0], 10, Reach::Private, "RFC 3879"),
    r6([0xff00], 8, Reach::Multicast, "RFC 4291 section 2.7"),
];

/// The addresses of metadata services, with their owners.
pub fn metadata() -> impl Iterator<Item = Metadata> {
    METADATA.iter().copied()
}

/// The ranges outside the public internet, each with its document. Narrow ones precede the wide
/// ones that contain them.
pub fn special_ranges() -> impl Iterator<Item = Special> {
    SPECIAL.iter().copied()
}

#[cfg(test)]
mod tests;
