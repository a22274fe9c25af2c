//! The needs of calls at the boundary, and the least grant that satisfies them.

use super::lines::{Line, a_folder, bucket, bucket_of, directory, plain, requests};
use crate::config::ComponentConfig;
use domain::egress::{EgressGrant, Hop, Host, HostPattern, Reach, Scheme, Traffic, classify};
use domain::event::{BoundaryDecision, BoundaryVerdict};
use domain::grant::{Access, BucketGrant, DirectoryGrant, SecretGrant, SecretSlot, capability};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The outcome that egress records for a request to an address that is not public.
const ADDRESS_BARRED: &str = "address-barred";

/// The requests to one host: their methods and their paths, none for a path that is not known.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    methods: BTreeSet<String>,
    paths: BTreeSet<Option<String>>,
    /// True if its address turned out not to be public.
    barred: bool,
}

/// The origin that requests went to.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Origin {
    host: String,
    scheme: String,
    port: u16,
}

/// The needs of the calls so far.
#[derive(Debug, Default)]
pub(super) struct Needs {
    files: Option<Access>,
    /// The requests, by host, scheme and port.
    requests: BTreeMap<Origin, Asked>,
    buckets: BTreeMap<String, Access>,
    environment: bool,
    /// The slots in which placeholders stood, by host: whether it is a header, and its name. None
    /// where a placeholder stood elsewhere.
    secrets: BTreeSet<Option<(String, bool, String)>>,
}

impl Needs {
    /// Adds what a call did, and what it would have done. Returns true if it needs a bucket that
    /// was not known before.
    pub(super) fn take(&mut self, decisions: &[BoundaryDecision], traffic: &Traffic) -> bool {
        let before = self.buckets.clone();
        for decision in decisions
            .iter()
            .filter(|decision| decision.verdict != BoundaryVerdict::Limited)
        {
            match decision.capability.as_str() {
                capability::FILES_READ => self.files = self.files.max(Some(Access::ReadOnly)),
                capability::FILES_WRITE => self.files = Some(Access::ReadWrite),
                capability::ENV_READ => self.environment = true,
                capability::SECRETS_USE => {
                    self.secrets.insert(slot(&decision.detail));
                }
                // The hops say more.
                capability::NET_HTTP => {}
                other => self.bucket(other),
            }
        }
        traffic.hops.iter().for_each(|hop| self.request(hop));
        self.buckets != before
    }

    fn bucket(&mut self, capability: &str) {
        let Some((bucket, access)) = bucket_of(capability) else {
            return;
        };
        let known = self.buckets.entry(bucket.to_owned()).or_insert(access);
        *known = (*known).max(access);
    }

    fn request(&mut self, hop: &Hop) {
        let (Some(scheme), Some(host), Some(port)) = (hop.scheme, &hop.host, hop.port) else {
            return;
        };
        let scheme = json!(scheme).as_str().unwrap_or_default().to_owned();
        let asked = self
            .requests
            .entry(Origin {
                host: host.clone(),
                scheme,
                port,
            })
            .or_default();
        asked.methods.insert(hop.method.as_str().to_owned());
        asked.paths.insert(hop.path.clone());
        asked.barred |= hop.verdict == ADDRESS_BARRED;
    }

    /// The names of the buckets.
    pub(super) fn buckets(&self) -> impl Iterator<Item = &str> {
        self.buckets.keys().map(String::as_str)
    }

    /// The least grant, key by key, with the places, scopes and quotas that are granted already.
    pub(super) fn lines(&self, config: &ComponentConfig) -> Vec<Line> {
        let mut lines = Vec::new();
        lines.extend(
            self.files
                .map(|access| folders(&config.directories, access)),
        );
        lines.extend(self.network(&config.network));
        if !self.buckets.is_empty() {
            let least = self.buckets.iter().map(|(name, access)| {
                let there = config
                    .key_value
                    .iter()
                    .find(|bucket| bucket.bucket == *name);
                bucket(&BucketGrant {
                    access: *access,
                    ..there
                        .cloned()
                        .unwrap_or_else(|| BucketGrant::new(name, *access))
                })
            });
            lines.push(Line::new(
                "keyValue",
                least.collect(),
                !config.key_value.is_empty(),
                None,
            ));
        }
        lines.extend(self.environment.then(|| plain("environment", config)));
        lines.extend((!self.secrets.is_empty()).then(|| self.secrets(config)));
        lines
    }

    fn network(&self, granted: &[EgressGrant]) -> Option<Line> {
        let mut all: Vec<Value> = self
            .requests
            .iter()
            .flat_map(|(target, asked)| least(target, asked, granted))
            .collect();
        // A request whose placeholder goes nowhere is not sent, and leaves no hop.
        let slots = self.secrets.iter().flatten();
        let hosts: BTreeSet<&str> = slots
            .map(|(host, ..)| at_port(host).0)
            .filter(|host| !self.requests.keys().any(|to| to.host == *host))
            .collect();
        all.extend(hosts.iter().map(|host| {
            let parsed = Host::parse(host).ok();
            let there =
                parsed.and_then(|host| granted.iter().find(|grant| grant.host.matches(&host)));
            there.map_or_else(|| json!({ "host": host }), requests)
        }));
        if all.is_empty() && !self.secrets.is_empty() {
            all.push(json!({ "host": "api.example.com" }));
        }
        let unnamed = self
            .requests
            .iter()
            .any(|(to, asked)| asked.barred && private_addresses(&to.host, asked).is_none());
        let choose = match (
            unnamed,
            hosts.is_empty() && self.requests.is_empty(),
            hosts.is_empty(),
        ) {
            (true, _, _) => Some("name the addresses that are not public in privateAddresses"),
            (false, true, _) => Some("choose the hosts"),
            (false, false, false) => {
                Some("add the methods and the paths that the requests with secrets need")
            }
            (false, false, true) => None,
        };
        (!all.is_empty()).then(|| Line::new("network", all.into(), !granted.is_empty(), choose))
    }

    fn secrets(&self, config: &ComponentConfig) -> Line {
        let slots: Vec<SecretGrant> = self
            .secrets
            .iter()
            .flatten()
            .map(|(host, header, name)| {
                let slot = if *header {
                    SecretSlot::Header(name.clone())
                } else {
                    SecretSlot::Query(name.clone())
                };
                let (host, port) = at_port(host);
                SecretGrant {
                    secret: "name".to_owned(),
                    host: host.to_owned(),
                    port,
                    slot,
                    prefix: String::new(),
                }
            })
            .filter(|wanted| !config.secrets.iter().any(|there| there.is_beside(wanted)))
            .collect();
        if slots.is_empty() && config.secrets.is_empty() {
            return plain("secrets", config);
        }
        let choose =
            (!slots.is_empty()).then_some("choose one of `secrets`, and its prefix if it has one");
        let all: Vec<&SecretGrant> = config.secrets.iter().chain(&slots).collect();
        Line::new("secrets", json!(all), !config.secrets.is_empty(), choose)
    }
}

/// A host, and the port if one is written behind it.
fn at_port(written: &str) -> (&str, Option<u16>) {
    let parts = written
        .rsplit_once(':')
        .filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    parts
        .and_then(|(host, port)| Some((host, Some(port.parse().ok()?))))
        .unwrap_or((written, None))
}

/// Reads host and slot of a placeholder from the detail in the ledger: its place, or the place that
/// the secret went to.
fn slot(detail: &str) -> Option<(String, bool, String)> {
    if let Some((_, went)) = detail.split_once(" -> ") {
        let [host, kind, name] = went.split(' ').collect::<Vec<_>>().try_into().ok()?;
        return Some((host.to_owned(), kind == "header", name.to_owned()));
    }
    let header = detail.contains(" in the header ");
    let mut quoted = detail.split('`').skip(1).step_by(2);
    let name = quoted.next()?;
    let host = quoted.next()?;
    Some((host.to_owned(), header, name.to_owned()))
}

/// The folders that are granted, with no more access than was needed.
fn folders(granted: &[DirectoryGrant], access: Access) -> Line {
    let writable = granted
        .iter()
        .any(|folder| folder.access == Access::ReadWrite);
    let least = granted.iter().enumerate().map(|(index, folder)| {
        let access = match access {
            Access::ReadWrite if writable => folder.access,
            Access::ReadWrite if index > 0 => Access::ReadOnly,
            access => access,
        };
        directory(&DirectoryGrant {
            access,
            ..folder.clone()
        })
    });
    match granted {
        [] => a_folder(access),
        [_] => Line::new("directories", least.collect(), true, None),
        _ => Line::new(
            "directories",
            least.collect(),
            true,
            Some("leave out the folders that the calls do not use"),
        ),
    }
}

/// Returns the addresses of a host that is not public, as far as its name gives them.
fn private_addresses(host: &str, asked: &Asked) -> Option<Vec<IpAddr>> {
    match Host::parse(host).ok()? {
        Host::Address(address) => (classify(address) != Reach::Public).then(|| vec![address]),
        name if name.is_loopback() && asked.barred => Some(vec![
            [127, 0, 0, 1].into(),
            std::net::Ipv6Addr::LOCALHOST.into(),
        ]),
        Host::Name(_) => None,
    }
}

/// Returns one grant for each requested path, or one for all if some paths are not known. Each has
/// the limits that such requests are granted already.
fn least(origin: &Origin, asked: &Asked, granted: &[EgressGrant]) -> Vec<Value> {
    let Origin { host, scheme, port } = origin;
    let is_https = scheme == "https";
    let default_port = if is_https { 443 } else { 80 };
    let reads = asked
        .methods
        .iter()
        .all(|method| method == "GET" || method == "HEAD");
    let scheme_there = if is_https {
        Scheme::Https
    } else {
        Scheme::Http
    };
    let there = Host::parse(host).ok().and_then(|host| {
        granted.iter().find(|grant| {
            grant.host.matches(&host)
                && grant.schemes.contains(&scheme_there)
                && grant.has_port(*port, scheme_there)
        })
    });
    let kept = there.and_then(|grant| {
        let like = EgressGrant {
            redirects: grant.redirects,
            private_addresses: grant.private_addresses.clone(),
            request_bytes_max: grant.request_bytes_max,
            response_bytes_max: grant.response_bytes_max,
            total_ms_max: grant.total_ms_max,
            ..EgressGrant::of(HostPattern::parse(host).ok()?)
        };
        requests(&like).as_object().cloned()
    });
    let everywhere = asked.paths.contains(&None);
    let grants = asked
        .paths
        .iter()
        .filter(|path| path.is_none() == everywhere)
        .map(|path| {
            let mut grant = serde_json::Map::new();
            grant.insert("host".to_owned(), json!(host));
            if !is_https {
                grant.insert("schemes".to_owned(), json!([scheme]));
            }
            if *port != default_port {
                grant.insert("ports".to_owned(), json!([port]));
            }
            if !reads {
                grant.insert("methods".to_owned(), json!(asked.methods));
            }
            if let Some(path) = path {
                grant.insert("path".to_owned(), json!(path));
            }
            if let Some(addresses) = private_addresses(host, asked) {
                grant.insert("privateAddresses".to_owned(), json!(addresses));
            }
            grant.extend(kept.clone().unwrap_or_default());
            Value::Object(grant)
        });
    grants.collect()
}

#[cfg(test)]
mod tests {
    use super::Needs;
    use crate::command::component::lines::tests::{parsed, pasted};
    use crate::config::ComponentConfig;
    use domain::egress::{Hop, Method, Scheme, Traffic};
    use domain::event::{BoundaryDecision, BoundaryVerdict};
    use domain::ruling::Rule;

    fn decision(capability: &str, verdict: BoundaryVerdict) -> BoundaryDecision {
        BoundaryDecision {
            capability: capability.to_owned(),
            verdict,
            rule: Rule::Granted,
            times: 1,
            detail: String::new(),
        }
    }

    fn hop(method: Method, scheme: Scheme, port: u16, path: &str) -> Hop {
        Hop {
            method,
            scheme: Some(scheme),
            host: Some("example.com".to_owned()),
            port: Some(port),
            path: Some(path.to_owned()),
            status: None,
            verdict: "not-granted".to_owned(),
            bytes_in: 0,
            bytes_out: 0,
            ms: 0,
            times: 1,
        }
    }

    #[test]
    fn the_least_grant_has_what_was_done_and_what_was_refused_and_no_more() {
        let mut needs = Needs::default();
        let first = [
            decision("files.read", BoundaryVerdict::Granted),
            decision("lists.read", BoundaryVerdict::Refused),
            decision("tools.call", BoundaryVerdict::Limited),
        ];
        let hops = vec![
            hop(Method::Get, Scheme::Https, 443, "/a"),
            hop(Method::Post, Scheme::Http, 8080, "/b"),
        ];
        assert!(needs.take(&first, &Traffic { hops, left_out: 0 }));
        assert!(!needs.take(
            &[decision("lists.read", BoundaryVerdict::Granted)],
            &Traffic::default()
        ));
        assert!(needs.take(
            &[decision("lists.write", BoundaryVerdict::Granted)],
            &Traffic::default()
        ));
        let lines = needs.lines(&ComponentConfig::default());
        assert_eq!(
            lines.iter().map(|line| line.text(true)).collect::<Vec<_>>(),
            [
                r#"directories = [{ path = "workspace", at = "/workspace", access = "read-only" }]  # choose a folder"#,
                r#"network = [{ host = "example.com", schemes = ["http"], ports = [8080], methods = ["POST"], path = "/b" }, { host = "example.com", path = "/a" }]"#,
                r#"keyValue = [{ bucket = "lists", access = "read-write" }]"#,
            ]
        );
        pasted(&[], &lines);
    }

    #[test]
    fn what_is_granted_already_keeps_its_place_its_scope_and_its_limits() {
        let keys = [
            r#"directories = [{ path = "notes", at = "/n", access = "read-write", filesMax = 9 }]"#,
            r#"keyValue = [{ bucket = "lists", scope = "user", access = "read-write" }, { bucket = "b", access = "read-only" }]"#,
            r#"network = [{ host = "*.com", schemes = ["http"], ports = [8080], redirects = 2, anyHost = true }]"#,
        ];
        let mut needs = Needs::default();
        let hops = vec![hop(Method::Get, Scheme::Http, 8080, "/b")];
        needs.take(
            &[
                decision("files.read", BoundaryVerdict::Granted),
                decision("lists.read", BoundaryVerdict::Granted),
            ],
            &Traffic { hops, left_out: 0 },
        );
        let expected = [
            r#"directories = [{ path = "notes", at = "/n", access = "read-only", filesMax = 9 }]"#,
            r#"keyValue = [{ bucket = "lists", scope = "user", access = "read-only" }]"#,
            r#"network = [{ host = "example.com", schemes = ["http"], ports = [8080], path = "/b", redirects = 2 }]"#,
        ];
        assert_eq!(
            pasted(&keys, &needs.lines(&parsed(&keys.join("\n")))),
            parsed(&expected.join("\n"))
        );
    }

    #[test]
    fn requests_to_an_address_that_is_not_public_name_it() {
        let to = |host: &str, verdict: &str| Hop {
            host: Some(host.to_owned()),
            verdict: verdict.to_owned(),
            ..hop(Method::Get, Scheme::Http, 80, "/")
        };
        for (hop, expected) in [
            (
                to("10.1.2.3", "not-granted"),
                r#"[{ host = "10.1.2.3", schemes = ["http"], path = "/", privateAddresses = ["10.1.2.3"] }]"#,
            ),
            (
                to("localhost", "address-barred"),
                r#"[{ host = "localhost", schemes = ["http"], path = "/", privateAddresses = ["127.0.0.1", "::1"] }]"#,
            ),
            (
                to("intra.example", "address-barred"),
                r#"[{ host = "intra.example", schemes = ["http"], path = "/" }]  # name the addresses that are not public in privateAddresses"#,
            ),
            (
                to("1.1.1.1", "not-granted"),
                r#"[{ host = "1.1.1.1", schemes = ["http"], path = "/" }]"#,
            ),
        ] {
            let mut needs = Needs::default();
            needs.take(
                &[],
                &Traffic {
                    hops: vec![hop],
                    left_out: 0,
                },
            );
            let lines = needs.lines(&ComponentConfig::default());
            assert_eq!(lines[0].text(true), format!("network = {expected}"));
            pasted(&[], &lines);
        }
    }

    #[test]
    fn a_placeholder_needs_a_secret_and_the_request_that_it_goes_into() {
        let refused = "a placeholder stands in the header `authorization`, where no such secret is bound for \
             `api.github.com`";
        let needing = |detail: &str| {
            let mut needs = Needs::default();
            needs.take(
                &[BoundaryDecision {
                    detail: detail.to_owned(),
                    ..decision("secrets.use", BoundaryVerdict::Refused)
                }],
                &Traffic::default(),
            );
            needs
        };
        for detail in [refused, "key -> api.github.com header authorization"] {
            let config = pasted(&[], &needing(detail).lines(&ComponentConfig::default()));
            assert_eq!(
                (
                    config.secrets[0].host.as_str(),
                    config.network[0].host.to_string().as_str()
                ),
                ("api.github.com", "api.github.com")
            );
            assert!(
                config.secrets[0].check(&config.network).is_ok(),
                "{config:?}"
            );
            assert!(config.directories.is_empty());
        }
        let elsewhere = pasted(
            &[],
            &needing("a placeholder stands in the path").lines(&ComponentConfig::default()),
        );
        for (written, expected) in [
            ("a.com", ("a.com", None)),
            ("a.com:8443", ("a.com", Some(8443))),
            ("[::1]:80", ("[::1]", Some(80))),
        ] {
            assert_eq!(super::at_port(written), expected);
        }
        assert!(elsewhere.secrets.len() == 1 && elsewhere.network.len() == 1);
        let keys = [
            r#"secrets = [{ secret = "mine", host = "api.github.com", slot = { header = "Authorization" }, prefix = "Bearer " }]"#,
        ];
        let kept = pasted(&keys, &needing(refused).lines(&parsed(keys[0])));
        assert_eq!(kept.secrets, parsed(keys[0]).secrets);
    }

    #[test]
    fn who_needs_nothing_is_granted_nothing() {
        assert!(
            Needs::default()
                .lines(&ComponentConfig::default())
                .is_empty()
        );
    }
}
