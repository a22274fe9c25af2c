//! The table of addresses outside the public internet, each with its document.

use super::{AddressRange, Reach};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
