//! The needs of calls at the boundary, and the least grant that satisfies them.

mod places;
#[cfg(test)]
mod tests;

use super::lines::{Line, a_folder_at, bucket, directory, plain, requests};
use crate::config::ComponentConfig;
use domain::authority::Asked as AskedBy;
use domain::egress::{
    EgressGrant, Hop, Host, HostPattern, PathPattern, Reach, Scheme, Traffic, classify,
};
use domain::event::{BoundaryDecision, BoundaryVerdict, NOTHING_OPENED};
use domain::grant::{Access, BucketGrant, DirectoryGrant, SecretGrant, SecretSlot, capability};
use domain::ruling::Rule;
use domain::tool::ToolDefinition;
use places::Places;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The outcome that egress records for a request to an address that is not public.
const ADDRESS_BARRED: &str = "address-barred";
/// Outcomes of requests that no grant let out.
const NOT_LET_OUT: [&str; 4] = [
    "url-refused",
    "header-refused",
    "not-granted",
    ADDRESS_BARRED,
];
/// Paths of one host and port that get an entry each. More are put together.
const PATHS_MAX: usize = 8;

/// The requests to one host: their methods and their paths, none for a path that is not known.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    methods: BTreeSet<String>,
    paths: BTreeSet<Option<String>>,
    /// True if its address turned out not to be public.
    barred: bool,
}

/// The origin that requests went to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Origin {
    host: String,
    scheme: String,
    port: u16,
}

/// One of the needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Files,
    Requests(Origin),
    Bucket(String),
    Environment,
    Secrets,
}

/// The needs of the calls so far.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// Needs that were met at least once.
    met: BTreeSet<Need>,
    /// The places of the component's folders, and what was opened elsewhere.
    places: Places,
    /// Capabilities that a tool used and does not declare, by the tool.
    undeclared: BTreeSet<(String, String)>,
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
    /// Makes the needs of a component with folders at these places.
    pub(super) fn with_folders_at(places: impl IntoIterator<Item = String>) -> Self {
        Self {
            places: Places::new(places),
            ..Self::default()
        }
    }

    /// Adds what a call of a tool did, and what it would have done. What the tool does not declare
    /// is kept apart: no grant opens it. Returns true if it needs a bucket that was not known
    /// before.
    pub(super) fn take_of(
        &mut self,
        tool: &ToolDefinition,
        decisions: &[BoundaryDecision],
        traffic: &Traffic,
    ) -> bool {
        let declared = AskedBy::from(tool).capabilities_needed();
        let is_declared = |name: &str| declared.iter().any(|known| known == name);
        let is_of_no_use = |decision: &&BoundaryDecision| {
            capability::is_capability(&decision.capability)
                && (decision.rule == Rule::NotAsked || !is_declared(&decision.capability))
        };
        // Many programs look at their environment before they do anything.
        let undeclared = decisions
            .iter()
            .filter(is_of_no_use)
            .filter(|decision| decision.capability != capability::ENV_READ);
        self.undeclared
            .extend(undeclared.map(|decision| (tool.name.clone(), decision.capability.clone())));
        let rest: Vec<BoundaryDecision> = decisions
            .iter()
            .filter(|decision| !is_of_no_use(decision))
            .cloned()
            .collect();
        if is_declared(capability::NET_HTTP) {
            return self.take(&rest, traffic);
        }
        let requests = !traffic.hops.is_empty();
        let undeclared = requests.then(|| (tool.name.clone(), capability::NET_HTTP.to_owned()));
        self.undeclared.extend(undeclared);
        self.take(&rest, &Traffic::default())
    }

    /// Adds what a call did, and what it would have done. Returns true if it needs a bucket that
    /// was not known before.
    fn take(&mut self, decisions: &[BoundaryDecision], traffic: &Traffic) -> bool {
        let before = self.buckets.clone();
        for decision in decisions
            .iter()
            .filter(|decision| decision.verdict != BoundaryVerdict::Limited)
        {
            let need = match decision.capability.as_str() {
                // The call failed, maybe for want of a folder, and used none.
                capability::FILES_READ if decision.detail.starts_with(NOTHING_OPENED) => {
                    self.places.take(decision);
                    None
                }
                capability::FILES_READ => {
                    self.files = self.files.max(Some(Access::ReadOnly));
                    self.places.take(decision);
                    Some(Need::Files)
                }
                capability::FILES_WRITE => {
                    self.files = Some(Access::ReadWrite);
                    self.places.take(decision);
                    Some(Need::Files)
                }
                capability::ENV_READ => {
                    self.environment = true;
                    Some(Need::Environment)
                }
                capability::SECRETS_USE => {
                    self.secrets.insert(slot(&decision.detail));
                    Some(Need::Secrets)
                }
                // The hops say more.
                capability::NET_HTTP => None,
                other => self.bucket(other),
            };
            let is_met = decision.verdict == BoundaryVerdict::Granted;
            self.met.extend(need.filter(|_| is_met));
        }
        traffic.hops.iter().for_each(|hop| self.request(hop));
        self.buckets != before
    }

    fn bucket(&mut self, name: &str) -> Option<Need> {
        let (bucket, access) = capability::bucket(name)?;
        let known = self.buckets.entry(bucket.to_owned()).or_insert(access);
        *known = (*known).max(access);
        Some(Need::Bucket(bucket.to_owned()))
    }

    /// Returns what was only ever refused, here and by the host whose records were read.
    pub(super) fn only_refused(&self) -> Vec<String> {
        let requests = self.requests.keys().cloned().map(Need::Requests);
        let buckets = self.buckets.keys().cloned().map(Need::Bucket);
        let all = [
            self.files.map(|_| Need::Files),
            self.environment.then_some(Need::Environment),
            (!self.secrets.is_empty()).then_some(Need::Secrets),
        ];
        all.into_iter()
            .flatten()
            .chain(requests)
            .chain(buckets)
            .filter(|need| !self.met.contains(need))
            .map(|need| need.describe())
            .collect()
    }

    /// Returns what the lines alone do not mend.
    pub(super) fn notes(&self) -> Vec<String> {
        let undeclared = self.undeclared.iter().map(|(tool, capability)| {
            format!(
                "{tool} uses {capability} and does not declare it: no grant opens it; its author has \
                 to name it in the tool's `capabilities`"
            )
        });
        undeclared.chain(self.places.notes()).collect()
    }

    fn request(&mut self, hop: &Hop) {
        let (Some(scheme), Some(host), Some(port)) = (hop.scheme, &hop.host, hop.port) else {
            return;
        };
        let scheme = json!(scheme).as_str().unwrap_or_default().to_owned();
        let origin = Origin {
            host: host.clone(),
            scheme,
            port,
        };
        if !NOT_LET_OUT.contains(&hop.verdict.as_str()) {
            self.met.insert(Need::Requests(origin.clone()));
        }
        let asked = self.requests.entry(origin).or_default();
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
                .map(|access| self.folders(&config.directories, access)),
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

    /// The folders that are granted, with no more access than was needed, and one for each place
    /// where none is.
    fn folders(&self, granted: &[DirectoryGrant], access: Access) -> Line {
        let new = self.places.missing();
        let is_writable = granted
            .iter()
            .any(|folder| folder.access == Access::ReadWrite);
        let least = granted.iter().enumerate().map(|(index, folder)| {
            let access = match access {
                Access::ReadWrite if is_writable => folder.access,
                Access::ReadWrite if index > 0 => Access::ReadOnly,
                access => access,
            };
            directory(&DirectoryGrant {
                access,
                ..folder.clone()
            })
        });
        let added = new.iter().map(|at| a_folder_at(at, access));
        match (granted, new.as_slice()) {
            ([], []) => Line::new(
                "directories",
                json!([a_folder_at(places::USUAL, access)]),
                false,
                Some("choose a folder"),
            ),
            ([], _) => Line::new(
                "directories",
                added.collect(),
                false,
                Some("choose a folder"),
            ),
            ([_], []) => Line::new("directories", least.collect(), true, None),
            (_, []) => Line::new(
                "directories",
                least.collect(),
                true,
                Some("leave out the folders that the calls do not use"),
            ),
            (_, _) => Line::new(
                "directories",
                least.chain(added).collect(),
                true,
                Some("choose a folder for each new place, or change an `at` instead"),
            ),
        }
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

impl Need {
    fn describe(&self) -> String {
        match self {
            Self::Files => "files".to_owned(),
            Self::Requests(Origin { host, scheme, port }) => {
                format!("requests to {scheme}://{host}:{port}")
            }
            Self::Bucket(bucket) => format!("the bucket {bucket}"),
            Self::Environment => "environment variables".to_owned(),
            Self::Secrets => "secrets".to_owned(),
        }
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
    let granted_path = there
        .map(|grant| &grant.path)
        .filter(|path| **path != PathPattern::default());
    let many = BTreeSet::from([granted_path.map(PathPattern::to_string)]);
    let paths = if asked.paths.len() > PATHS_MAX {
        &many
    } else {
        &asked.paths
    };
    let grants = paths
        .iter()
        .filter(|path| paths.len() == 1 || path.is_none() == everywhere)
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
