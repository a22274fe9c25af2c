//! Every range with an address in it and the ones beside it; what a grant may open.

use super::*;
use proptest::prelude::*;

fn reach(text: &str) -> Reach {
    classify(text.parse().unwrap())
}

#[test]
fn every_address_that_is_not_public_is_known_by_its_kind() {
    for (kind, addresses) in [
        (Reach::Loopback, "127.0.0.1 127.255.255.254 ::1"),
        (
            Reach::Private,
            "10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255 fc00::1 \
             fd12:3456::1 fec0::1",
        ),
        (Reach::Shared, "100.64.0.1 100.127.255.255"),
        (
            Reach::Metadata,
            "169.254.169.254 169.254.170.2 169.254.170.23 100.100.100.200 168.63.129.16 \
             192.0.0.192 169.254.42.42 169.254.0.23 \
             fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42",
        ),
        (
            Reach::LinkLocal,
            "169.254.0.1 169.254.169.255 fe80::1 febf::1",
        ),
        (Reach::Unspecified, "0.0.0.0 0.1.2.3 ::"),
        (
            Reach::Multicast,
            "224.0.0.1 239.255.255.255 ff02::1 ff0e::1",
        ),
        (Reach::Broadcast, "255.255.255.255"),
        (
            Reach::Reserved,
            "240.0.0.1 255.255.255.254 100::1 100:0:0:1::1 3ffe::1 4000::1 1000::1 e000::1 400::1",
        ),
        (
            Reach::Documentation,
            "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1",
        ),
        (Reach::Benchmarking, "198.18.0.1 198.19.255.255 2001:2::1"),
        (
            Reach::Protocol,
            "192.0.0.1 192.31.196.1 192.52.193.1 192.175.48.1 2001:10::1 2001:20::1 2001:1ff::1 \
             2620:4f:8000::1 5f00::1",
        ),
        (
            Reach::Mapped,
            "::ffff:169.254.169.254 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::10.0.0.1 ::2",
        ),
        (
            Reach::Translated,
            "64:ff9b::a9fe:a9fe 64:ff9b::808:808 64:ff9b:1::1 64:ff9b:1:ffff::1 2002:a9fe:a9fe:: \
             2002:7f00:1::1 2001::1 \
             2001:0:4136:e378:8000:63bf:3fff:fdd2 ::ffff:0:127.0.0.1 192.88.99.1",
        ),
        (
            Reach::Public,
            "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.0.0.1 128.0.0.1 \
             168.63.129.17 169.253.255.255 169.255.0.1 \
             172.15.255.255 172.32.0.1 192.0.1.1 192.167.1.1 192.169.0.1 198.17.1.1 198.20.0.1 \
             223.255.255.255 \
             2606:4700::1111 2001:4860:4860::8888 2003::1 2a00::1",
        ),
    ] {
        for address in addresses.split_whitespace() {
            assert_eq!(reach(address), kind, "{address}");
        }
    }
}

#[test]
fn both_ends_of_every_range_are_in_it_and_every_range_names_its_document() {
    for (range, _, source) in special_ranges() {
        assert!(source.starts_with("RFC "), "{range}");
        let last: IpAddr = match range.address {
            IpAddr::V4(v4) => Ipv4Addr::from_bits(
                v4.to_bits() | u32::MAX.checked_shr(range.prefix.into()).unwrap_or(0),
            )
            .into(),
            IpAddr::V6(v6) => Ipv6Addr::from_bits(
                v6.to_bits() | u128::MAX.checked_shr(range.prefix.into()).unwrap_or(0),
            )
            .into(),
        };
        for address in [range.address, last] {
            assert!(range.contains(address), "{address} in {range}");
            assert_ne!(classify(address), Reach::Public, "{address} in {range}");
        }
    }
}

#[test]
fn an_ipv4_address_is_found_wherever_it_hides() {
    for (address, inside) in [
        ("::ffff:169.254.169.254", Some("169.254.169.254")),
        ("::10.0.0.1", Some("10.0.0.1")),
        ("64:ff9b::a9fe:a9fe", Some("169.254.169.254")),
        ("2002:a9fe:a9fe::", Some("169.254.169.254")),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", Some("192.0.2.45")),
        ("::1", None),
        ("::", None),
        ("64:ff9b:1::a9fe:a9fe", None),
        ("2606:4700::1111", None),
    ] {
        let expected: Option<Ipv4Addr> = inside.map(|text| text.parse().unwrap());
        assert_eq!(embedded_v4(address.parse().unwrap()), expected, "{address}");
    }
}

#[test]
fn a_grant_opens_one_private_range_in_its_canonical_form() {
    for text in [
        "127.0.0.1",
        "10.0.0.0/8",
        "10.1.0.0/16",
        "192.168.1.7",
        "::1",
        "fd00::/8",
        "fc00::/7",
        "64:ff9b::/96",
        "169.254.169.254",
        "168.63.129.16",
    ] {
        assert_eq!(
            AddressRange::parse(text).unwrap().to_string(),
            text,
            "{text}"
        );
    }
}

#[test]
fn a_grant_opens_nothing_public_too_wide_or_oddly_written() {
    use AddressRangeError::{HostBits, Malformed, NeverDialled, NotSpecial};
    let kind = |text: &str| match AddressRange::parse(text).unwrap_err() {
        Malformed { .. } => "malformed",
        HostBits { .. } => "host bits",
        NotSpecial { .. } => "not special",
        NeverDialled { .. } => "never dialled",
    };
    for (text, expected) in [
        ("", "malformed"),
        ("localhost", "malformed"),
        ("127.1", "malformed"),
        ("127.0.0.01", "malformed"),
        ("10.0.0.0/", "malformed"),
        ("10.0.0.0/08", "malformed"),
        ("10.0.0.0/33", "malformed"),
        ("10.0.0.0/-1", "malformed"),
        ("10.0.0.0/+8", "malformed"),
        ("[::1]", "malformed"),
        ("FD00::/8", "malformed"),
        ("fe80::1%eth0", "malformed"),
        ("10.0.0.1/8", "host bits"),
        ("fd00::1/8", "host bits"),
        ("0.0.0.0/0", "not special"),
        ("::/0", "not special"),
        ("10.0.0.0/7", "not special"),
        ("8.8.8.8", "not special"),
        ("2606:4700::/32", "not special"),
        ("192.0.0.0/8", "not special"),
        ("0.0.0.0", "never dialled"),
        ("224.0.0.1", "never dialled"),
        ("255.255.255.255", "never dialled"),
        ("ff02::1", "never dialled"),
        ("::", "never dialled"),
    ] {
        assert_eq!(kind(text), expected, "{text}");
    }
}

#[test]
fn a_range_of_the_one_family_contains_nothing_of_the_other() {
    let range = AddressRange::parse("127.0.0.0/8").unwrap();
    assert!(range.contains("127.9.9.9".parse().unwrap()));
    assert!(!range.contains("::ffff:127.0.0.1".parse().unwrap()));
    assert!(!range.contains("::1".parse().unwrap()));
}

proptest! {
    #[test]
    fn what_carries_an_ipv4_address_is_never_public(bits: u32) {
        let v4 = Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = v4.octets();
        let high = u16::from_be_bytes([a, b]);
        let low = u16::from_be_bytes([c, d]);
        for v6 in [v4.to_ipv6_mapped(), v4.to_ipv6_compatible(), Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low), Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1)] {
            prop_assert_ne!(classify(v6.into()), Reach::Public);
        }
    }

    #[test]
    fn std_agrees_on_what_is_private(bits: u32) {
        let v4 = Ipv4Addr::from_bits(bits);
        let special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified();
        prop_assert!(!special || classify(v4.into()) != Reach::Public);
    }
}
