//! Tests of the secrets that are bound to a component.

use super::*;
use crate::access::egress::HostPattern;

fn grant(host: &str, slot: SecretSlot, prefix: &str) -> SecretGrant {
    SecretGrant {
        secret: "s".to_owned(),
        host: host.to_owned(),
        port: None,
        slot,
        prefix: prefix.to_owned(),
    }
}

fn header(name: &str) -> SecretSlot {
    SecretSlot::Header(name.to_owned())
}

fn query(name: &str) -> SecretSlot {
    SecretSlot::Query(name.to_owned())
}

#[test]
fn a_grant_that_cannot_be_meant_is_refused_with_the_reason() {
    let of = |host: &str, schemes: &[Scheme]| EgressGrant {
        schemes: schemes.to_vec(),
        ..EgressGrant::of(HostPattern::parse(host).unwrap())
    };
    let network = [
        of("*.a.com", &[Scheme::Https]),
        of("b.com", &[Scheme::Https]),
        of("b.com", &[Scheme::Http]),
        of("127.0.0.1", &[Scheme::Http]),
    ];
    let auth = || header("authorization");
    let no_host = Some("is not one plain host");
    let no_header = Some("is not a header");
    for (host, slot, prefix, expected) in [
        ("api.a.com", auth(), "Bearer ", None),
        ("API.a.com.", header("X-Api-Key"), "", None),
        ("api.a.com", query("key"), "", None),
        ("127.0.0.1", auth(), "", None),
        ("*.a.com", auth(), "", no_host),
        ("https://api.a.com", auth(), "", no_host),
        ("api.a.com:443", auth(), "", no_host),
        ("a.com", auth(), "", Some("is granted no request to")),
        ("b.com", auth(), "", Some("plain `http`")),
        ("api.a.com", header("host"), "", no_header),
        ("api.a.com", header("Content-Length"), "", no_header),
        ("api.a.com", header("transfer-encoding"), "", no_header),
        ("api.a.com", header("connection"), "", no_header),
        ("api.a.com", header("proxy-authorization"), "", no_header),
        ("api.a.com", header("two words"), "", no_header),
        ("api.a.com", header(""), "", no_header),
        ("api.a.com", query("a=b"), "", Some("is not a parameter")),
        ("api.a.com", auth(), "Bearer\r\n", Some("`prefix`")),
        ("api.a.com", auth(), "{{secret.other}}", Some("`prefix`")),
    ] {
        let reported = grant(host, slot.clone(), prefix)
            .check(&network)
            .err()
            .map(|error| error.to_string());
        let fits = match (&reported, expected) {
            (None, None) => true,
            (Some(reported), Some(expected)) => reported.contains(expected),
            _ => false,
        };
        assert!(fits, "{host} {slot:?} {prefix:?}: {reported:?}");
    }
}

#[test]
fn a_secret_goes_to_one_port() {
    let at = |port| SecretGrant {
        port,
        ..grant("a.com", header("authorization"), "")
    };
    for (port, url, expected) in [
        (None, "https://a.com/", true),
        (None, "https://a.com:443/", true),
        (None, "http://a.com/", true),
        (None, "https://a.com:80/", false),
        (None, "https://a.com:8443/", false),
        (Some(8443), "https://a.com:8443/", true),
        (Some(8443), "https://a.com/", false),
        (Some(8443), "https://b.com:8443/", false),
    ] {
        assert_eq!(
            at(port).is_for(&Target::parse(url).unwrap()),
            expected,
            "{port:?} {url}"
        );
    }
    let network = |ports: Option<Vec<u16>>| {
        [EgressGrant {
            ports,
            ..EgressGrant::of(HostPattern::parse("a.com").unwrap())
        }]
    };
    for (port, ports, fits) in [
        (None, None, true),
        (None, Some(vec![8443]), false),
        (Some(8443), Some(vec![443, 8443]), true),
        (Some(8443), None, false),
    ] {
        let checked = at(port).check(&network(ports.clone()));
        assert_eq!(checked.is_ok(), fits, "{port:?} {ports:?}: {checked:?}");
    }
    for (one, other, beside) in [
        (None, None, true),
        (None, Some(443), true),
        (None, Some(8443), false),
        (Some(1), Some(2), false),
    ] {
        assert_eq!(at(one).is_beside(&at(other)), beside, "{one:?} {other:?}");
    }
}

#[test]
fn two_grants_are_beside_each_other_if_they_would_fill_the_same_slot() {
    let one = grant("a.com", header("Authorization"), "");
    for (other, expected) in [
        (grant("A.com.", header("authorization"), "Bearer "), true),
        (grant("b.com", header("authorization"), ""), false),
        (grant("a.com", header("x-key"), ""), false),
        (grant("a.com", query("Authorization"), ""), false),
    ] {
        assert_eq!(one.is_beside(&other), expected, "{other:?}");
    }
}
