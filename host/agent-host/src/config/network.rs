//! Checks of the requests that a component is granted, one by one and beside each other.

use super::finding::{Finding, error};
use domain::egress::{EgressGrant, Host, PathPattern, Permit, Scheme, classify};
use domain::grant::GuestLimits;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Finds faulty grants of requests: entries that make no sense, repeat an earlier one or lead
/// nowhere, and a budget that admits nothing.
pub(super) fn check(
    component: &str,
    granted: &[EgressGrant],
    limits: &GuestLimits,
    findings: &mut Vec<Finding>,
) {
    for (index, grant) in granted.iter().enumerate() {
        let key = format!("components.{component}.network[{index}]");
        findings.extend(
            grant
                .check()
                .err()
                .map(|wrong| error(&key, wrong.to_string())),
        );
        let earlier = granted
            .iter()
            .take(index)
            .position(|earlier| covers(earlier, grant));
        findings.extend(earlier.map(|earlier| {
            let message = match granted.get(earlier) == Some(grant) {
                true => format!("the same stands in network[{earlier}]; take one of the two out"),
                false => format!(
                    "it never decides: the first entry that fits does, and network[{earlier}] fits \
                     all that this one does; put this one \
                     before it, or take one of the two out"
                ),
            };
            error(&key, message)
        }));
        findings.extend(
            nowhere(grant).map(|message| error(format!("{key}.privateAddresses"), message)),
        );
    }
    if !granted.is_empty() && limits.egress_bytes_max == 0 {
        let message = "with 0 no request leaves, and `network` grants some; name the bytes that a \
                       call may send and receive, or take \
                       `network` out";
        findings.push(error(
            format!("components.{component}.limits.egressBytesMax"),
            message,
        ));
    }
}

/// Returns whether the earlier entry admits every request of the later one. Patterns are not
/// compared.
fn covers(earlier: &EgressGrant, later: &EgressGrant) -> bool {
    let exactly = Host::parse(&later.host.to_string());
    let host = earlier.host == later.host || exactly.is_ok_and(|host| earlier.host.matches(&host));
    let ports = |scheme: Scheme| {
        later
            .ports
            .clone()
            .unwrap_or_else(|| vec![scheme.default_port()])
    };
    let has = |scheme: &Scheme| {
        earlier.schemes.contains(scheme)
            && ports(*scheme)
                .iter()
                .all(|port| earlier.has_port(*port, *scheme))
    };
    let path = earlier.path == later.path || earlier.path == PathPattern::default();
    host && path
        && later.schemes.iter().all(has)
        && later
            .methods
            .iter()
            .all(|method| earlier.methods.contains(method))
}

/// Returns why the one host of an entry can never be dialled under it.
pub(super) fn nowhere(grant: &EgressGrant) -> Option<String> {
    let host = Host::parse(&grant.host.to_string()).ok()?;
    let permit = Permit { grant, index: 0 };
    let barred = |address: IpAddr| permit.admits(address).is_err();
    match host {
        Host::Address(address) if barred(address) && classify(address).is_never_dialled() => {
            Some(format!(
                "`{}` is no address that anybody answers at; take the entry out",
                grant.host
            ))
        }
        Host::Address(address) if barred(address) => Some(format!(
            "`{}` is not public, so that no request goes there unless it is named: \
             privateAddresses = [\"{address}\"]",
            grant.host
        )),
        name if name.is_loopback()
            && barred(Ipv4Addr::LOCALHOST.into())
            && barred(Ipv6Addr::LOCALHOST.into()) =>
        {
            Some(format!(
                "`{}` is this machine, where no request goes unless its address is named: \
                 privateAddresses = [\"127.0.0.1\", \"::1\"]",
                grant.host
            ))
        }
        Host::Address(_) | Host::Name(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use domain::egress::EgressGrant;
    use domain::grant::GuestLimits;
    use serde_json::{Value, json};

    fn found(granted: &Value, limits: &Value) -> Vec<(String, String)> {
        let granted: Vec<EgressGrant> = serde_json::from_value(granted.clone()).unwrap();
        let limits: GuestLimits = serde_json::from_value(limits.clone()).unwrap();
        let mut findings = Vec::new();
        check("c", &granted, &limits, &mut findings);
        findings
            .into_iter()
            .map(|found| (found.key.replace("components.c.", ""), found.message))
            .collect()
    }

    #[test]
    fn an_entry_that_an_earlier_one_covers_is_refused_with_the_earlier_one() {
        for (first, second, says) in [
            (
                json!({ "host": "a.example" }),
                json!({ "host": "a.example" }),
                "the same stands in network[0]",
            ),
            (
                json!({ "host": "a.example" }),
                json!({ "host": "a.example", "responseBytesMax": 5 }),
                "it never decides",
            ),
            (
                json!({ "host": "a.example" }),
                json!({ "host": "a.example", "path": "/x", "methods": ["GET"] }),
                "it never decides",
            ),
            (
                json!({ "host": "*.example.com" }),
                json!({ "host": "a.example.com", "ports": [443] }),
                "it never decides",
            ),
        ] {
            let found = found(&json!([first, second]), &json!({}));
            let [(key, message)] = found.as_slice() else {
                panic!("{first} {second}: {found:?}")
            };
            assert!(
                key == "network[1]" && message.contains(says) && message.contains("network[0]"),
                "{message}"
            );
        }
        for (first, second) in [
            (
                json!({ "host": "a.example", "path": "/x" }),
                json!({ "host": "a.example" }),
            ),
            (
                json!({ "host": "a.example" }),
                json!({ "host": "a.example", "methods": ["POST"] }),
            ),
            (
                json!({ "host": "a.example" }),
                json!({ "host": "a.example", "ports": [8443] }),
            ),
            (
                json!({ "host": "a.example" }),
                json!({ "host": "a.example", "schemes": ["http", "https"] }),
            ),
            (
                json!({ "host": "a.example.com" }),
                json!({ "host": "*.example.com" }),
            ),
        ] {
            assert_eq!(
                found(&json!([first, second]), &json!({})),
                [],
                "{first} {second}"
            );
        }
    }

    #[test]
    fn a_host_that_can_never_be_dialled_is_refused_with_the_address_to_name() {
        for (host, fix) in [
            ("10.1.2.3", "privateAddresses = [\"10.1.2.3\"]"),
            ("[::1]", "privateAddresses = [\"::1\"]"),
            ("localhost", "privateAddresses = [\"127.0.0.1\", \"::1\"]"),
            ("0.0.0.0", "take the entry out"),
        ] {
            let found = found(&json!([{ "host": host }]), &json!({}));
            let [(key, message)] = found.as_slice() else {
                panic!("{host}: {found:?}")
            };
            assert!(
                key == "network[0].privateAddresses" && message.contains(fix),
                "{message}"
            );
        }
        for fine in [
            json!({ "host": "10.1.2.3", "privateAddresses": ["10.0.0.0/8"] }),
            json!({ "host": "localhost", "privateAddresses": ["127.0.0.1"] }),
            json!({ "host": "1.1.1.1" }),
            json!({ "host": "intra.example" }),
        ] {
            assert_eq!(found(&json!([fine]), &json!({})), [], "{fine}");
        }
    }

    #[test]
    fn requests_without_a_byte_to_send_are_refused() {
        let found = |granted: Value| found(&granted, &json!({ "egressBytesMax": 0 }));
        assert!(
            matches!(found(json!([{ "host": "a.example" }])).as_slice(), [(key, _)] if key == "limits.egressBytesMax")
        );
        assert_eq!(found(json!([])), []);
    }
}
