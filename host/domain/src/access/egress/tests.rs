//! Tests of the decision about a request.

use super::*;
use crate::access::egress::{AddressRange, Host, HostPattern, PathPattern, Scheme};
use proptest::prelude::*;

fn of(host: &str) -> EgressGrant {
    EgressGrant::of(HostPattern::parse(host).unwrap())
}

fn target(url: &str) -> Target {
    Target::parse(url).unwrap()
}

#[test]
fn nothing_is_allowed_that_no_grant_names() {
    let denied = permit(&target("https://a.com/b?secret"), Method::Get, &[]).unwrap_err();
    assert_eq!(
        denied.to_string(),
        "GET https://a.com/b is not allowed: no `network` is granted"
    );
}

#[test]
fn scheme_host_port_method_and_path_must_all_fit() {
    let narrow = [EgressGrant {
        path: PathPattern::parse("/v1/**").unwrap(),
        ..of("*.a.com")
    }];
    let misfit = |method, url: &str| match permit(&target(url), method, &narrow) {
        Ok(_) => None,
        Err(Denied::NoGrantFits { mismatch, .. }) => Some(mismatch),
        Err(Denied::NothingGranted { .. }) => unreachable!("there is a grant"),
    };
    for (expected, urls) in [
        (
            None,
            "https://www.a.com/v1/x https://www.a.com./v1/x https://WWW.A.COM:443/v1/x",
        ),
        (
            Some(Mismatch::Host),
            "https://a.com/v1/x https://evila.com/v1/x https://www.a.com.evil.com/v1/x \
             https://192.0.2.1/v1/x",
        ),
        (
            Some(Mismatch::Scheme),
            "http://www.a.com/v1/x http://www.a.com:443/v1/x",
        ),
        (
            Some(Mismatch::Port),
            "https://www.a.com:80/v1/x https://www.a.com:8443/v1/x",
        ),
        (
            Some(Mismatch::Path),
            "https://www.a.com/v2/x https://www.a.com/v1/../v2 https://www.a.com/v1/%2e%2e/v2 \
             https://www.a.com/v1/..%2Fv2 https://www.a.com/v1/..;/v2",
        ),
    ] {
        for url in urls.split_whitespace() {
            assert_eq!(misfit(Method::Get, url), expected, "{url}");
        }
    }
    assert_eq!(misfit(Method::Head, "https://x.y.a.com/v1"), None);
    for method in [Method::Post, Method::Options] {
        let found = misfit(method, "https://www.a.com/v1/x");
        assert_eq!(found, Some(Mismatch::Method), "{method}");
    }
}

#[test]
fn the_permit_says_which_grant_decided_and_the_denial_which_came_nearest() {
    let grants = [
        of("b.com"),
        EgressGrant {
            methods: vec![Method::Post],
            ..of("a.com")
        },
        of("a.com"),
    ];
    assert_eq!(
        permit(&target("https://a.com/"), Method::Get, &grants)
            .unwrap()
            .index,
        2
    );
    let denied = permit(&target("https://a.com/x?y"), Method::Delete, &grants).unwrap_err();
    assert_eq!(
        denied.to_string(),
        "DELETE https://a.com/x is not allowed: the nearest grant, network[1], has another `methods`"
    );
}

#[test]
fn a_listed_port_replaces_the_schemes_own_and_an_empty_list_is_nothing() {
    let listed = [EgressGrant {
        ports: Some(vec![8443]),
        ..of("a.com")
    }];
    assert!(permit(&target("https://a.com:8443/"), Method::Get, &listed).is_ok());
    assert!(permit(&target("https://a.com/"), Method::Get, &listed).is_err());
    for empty in [
        EgressGrant {
            ports: Some(vec![]),
            ..of("a.com")
        },
        EgressGrant {
            methods: vec![],
            ..of("a.com")
        },
        EgressGrant {
            schemes: vec![],
            ..of("a.com")
        },
    ] {
        assert!(permit(&target("https://a.com/"), Method::Get, &[empty]).is_err());
    }
}

#[test]
fn any_host_must_be_said_twice() {
    for host in ["*", "*.com"] {
        assert!(
            permit(&target("https://a.com/"), Method::Get, &[of(host)]).is_err(),
            "{host}"
        );
        assert!(
            permit(
                &target("https://a.com/"),
                Method::Get,
                &[EgressGrant {
                    any_host: true,
                    ..of(host)
                }]
            )
            .is_ok(),
            "{host}"
        );
    }
}

fn admits(open: &[&str], address: &str) -> bool {
    let private_addresses = open
        .iter()
        .map(|text| AddressRange::parse(text).unwrap())
        .collect();
    let grant = EgressGrant {
        private_addresses,
        ..of("a.com")
    };
    Permit {
        grant: &grant,
        index: 0,
    }
    .admits(address.parse().unwrap())
    .is_ok()
}

#[test]
fn every_address_of_the_attack_list_is_barred_by_default() {
    for address in [
        "127.0.0.1",
        "127.8.8.8",
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fc00::1",
        "fd00::1",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
        "2001::1",
    ] {
        assert!(!admits(&[], address), "{address}");
    }
    for address in ["1.1.1.1", "2606:4700::1111"] {
        assert!(admits(&[], address), "{address}");
    }
}

#[test]
fn a_grant_opens_the_addresses_that_it_names_and_metadata_only_by_its_very_address() {
    for (open, address, expected) in [
        ("127.0.0.1", "127.0.0.1", true),
        ("127.0.0.1", "127.0.0.2", false),
        ("127.0.0.1", "::1", false),
        ("127.0.0.1", "::ffff:127.0.0.1", false),
        ("10.0.0.0/8", "10.9.9.9", true),
        ("169.254.0.0/16", "169.254.1.1", true),
        ("169.254.0.0/16", "169.254.169.254", false),
        ("169.254.169.254", "169.254.169.254", true),
        ("100.64.0.0/10", "100.100.100.200", false),
        ("fc00::/7", "fd00:ec2::254", false),
        ("fc00::/7", "fd12::1", true),
        ("64:ff9b::/96", "64:ff9b::808:808", true),
        ("64:ff9b::/96", "64:ff9b::a9fe:a9fe", false),
        ("64:ff9b::/96", "64:ff9b::7f00:1", false),
        ("64:ff9b:1::/48", "64:ff9b:1::a9fe:a9fe", false),
        ("2002::/16", "2002:a9fe:a9fe::", false),
        ("::ffff:0:0/96", "::ffff:169.254.169.254", false),
    ] {
        let open_it = if open == "::ffff:0:0/96" {
            "::ffff:0.0.0.0/96"
        } else {
            open
        };
        assert_eq!(
            admits(&[open_it], address),
            expected,
            "{open} for {address}"
        );
    }
    assert!(admits(&["64:ff9b::/96", "10.0.0.0/8"], "64:ff9b::a00:1"));
}

#[test]
fn the_operator_is_told_the_address_and_its_kind() {
    let grant = of("a.com");
    let barred = Permit {
        grant: &grant,
        index: 0,
    }
    .admits("10.0.0.1".parse().unwrap())
    .unwrap_err();
    assert_eq!(
        barred.to_string(),
        "10.0.0.1 is private and not in `privateAddresses`"
    );
}

proptest! {
    /// A pattern lets through only names that end like it, at a dot.
    #[test]
    fn a_star_covers_only_what_ends_with_a_dot_and_the_name(host in "[a-c.]{1,12}") {
        let grants = [of("*.a.b")];
        if let Ok(target) = Target::parse(&format!("https://{host}/")) {
            let Host::Name(name) = target.host() else { unreachable!("letters make no address") };
            prop_assert_eq!(permit(&target, Method::Get, &grants).is_ok(), name.ends_with(".a.b") && name.len() > 4);
        }
    }

    /// Taking anything away from a grant never allows more.
    #[test]
    fn a_narrower_grant_allows_no_more(post: bool, http: bool, port in 1_u16..4, deep: bool) {
        let wide = EgressGrant {
            schemes: vec![Scheme::Http, Scheme::Https], methods: vec![Method::Get, Method::Post], ports: Some(vec![1, 2, 3]), ..of("a.com")
        };
        let narrow = EgressGrant { ports: Some(vec![2]), methods: vec![Method::Get], path: PathPattern::parse("/v1/*").unwrap(), ..wide.clone() };
        let url = format!("{}://a.com:{port}/v1/x{}", if http { "http" } else { "https" }, if deep { "/y" } else { "" });
        let method = if post { Method::Post } else { Method::Get };
        let allowed = |grant: EgressGrant| permit(&target(&url), method, &[grant]).is_ok();
        prop_assert!(!allowed(narrow) || allowed(wide));
    }
}
