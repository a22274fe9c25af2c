//! The requests of calls: those that were let out or are granted, and those that were only ever
//! refused.

use super::super::lines::{private_addresses, requests};
use super::at_port;
use domain::egress::{EgressGrant, Hop, Host, HostPattern, PathPattern, Scheme};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

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

/// The origin that requests went to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Origin {
    host: String,
    scheme: String,
    port: u16,
}

/// One request, as far as a grant tells it from others. Its path may not be known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    origin: Origin,
    path: Option<String>,
    method: String,
}

/// The methods of the requests to one origin, by their paths.
type Paths<'a> = BTreeMap<Option<&'a str>, BTreeSet<&'a str>>;

/// The requests so far.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Each of them, and whether it was let out at least once.
    asked: BTreeMap<Request, bool>,
    /// Origins whose address turned out not to be public.
    barred: BTreeSet<Origin>,
}

impl Requests {
    pub(super) fn take(&mut self, hop: &Hop) {
        let (Some(scheme), Some(host), Some(port)) = (hop.scheme, &hop.host, hop.port) else {
            return;
        };
        let origin = Origin {
            host: host.clone(),
            scheme: json!(scheme).as_str().unwrap_or_default().to_owned(),
            port,
        };
        if hop.verdict == ADDRESS_BARRED {
            self.barred.insert(origin.clone());
        }
        let request = Request {
            origin,
            path: hop.path.clone(),
            method: hop.method.as_str().to_owned(),
        };
        let is_let_out = self.asked.entry(request).or_default();
        *is_let_out |= !NOT_LET_OUT.contains(&hop.verdict.as_str());
    }

    /// Returns the entries of the least grant: one for each path, or one for all paths of an origin
    /// if there are many or some are not known.
    pub(super) fn least(&self, granted: &[EgressGrant]) -> Vec<Value> {
        let open = self.by_origin(granted, true);
        let entries = open.into_iter().flat_map(|(origin, paths)| {
            let there = origin.grant(granted);
            let paths = together(paths, there);
            let entry = |(path, methods): (Option<String>, BTreeSet<&str>)| {
                origin.entry(path.as_deref(), &methods, there)
            };
            paths.into_iter().map(entry).collect::<Vec<_>>()
        });
        entries.collect()
    }

    /// Returns an entry for each path that was only ever refused.
    pub(super) fn refused(&self, granted: &[EgressGrant]) -> Vec<Value> {
        let refused = self.by_origin(granted, false).into_iter();
        let entries = refused.flat_map(|(origin, paths)| {
            let there = origin.grant(granted);
            let entry = |(path, methods): (Option<&str>, BTreeSet<&str>)| {
                origin.entry(path, &methods, there)
            };
            paths.into_iter().map(entry).collect::<Vec<_>>()
        });
        entries.collect()
    }

    /// Returns what was only ever refused, for people.
    pub(super) fn only_refused(&self, granted: &[EgressGrant]) -> Vec<String> {
        let asked = self.asked.iter();
        let refused = asked.filter(|(request, let_out)| !self.is_open(request, **let_out, granted));
        refused.map(|(request, _)| request.describe()).collect()
    }

    /// Returns the hosts of the requests that are in the least grant, or of those that are not.
    pub(super) fn hosts(&self, granted: &[EgressGrant], open: bool) -> BTreeSet<&str> {
        let origins = self.by_origin(granted, open).into_keys();
        origins.map(|origin| origin.host.as_str()).collect()
    }

    /// Returns whether one of these hosts has addresses that only the operator knows.
    pub(super) fn are_addresses_unnamed(&self, granted: &[EgressGrant], open: bool) -> bool {
        let mut origins = self.by_origin(granted, open).into_keys();
        origins.any(|origin| self.barred.contains(origin) && addresses(&origin.host).is_empty())
    }

    fn by_origin(&self, granted: &[EgressGrant], open: bool) -> BTreeMap<&Origin, Paths<'_>> {
        let mut all: BTreeMap<&Origin, Paths<'_>> = BTreeMap::new();
        for (request, let_out) in &self.asked {
            if self.is_open(request, *let_out, granted) == open {
                let paths = all.entry(&request.origin).or_default();
                let methods = paths.entry(request.path.as_deref()).or_default();
                methods.insert(request.method.as_str());
            }
        }
        all
    }

    /// Returns whether a request was let out, or would be. Calls that are repeated reach no
    /// network, whatever is granted.
    fn is_open(&self, request: &Request, let_out: bool, granted: &[EgressGrant]) -> bool {
        let is_barred = self.barred.contains(&request.origin);
        let_out || (!is_barred && granted.iter().any(|grant| request.is_in(grant)))
    }
}

impl Request {
    fn is_in(&self, grant: &EgressGrant) -> bool {
        let path = match &self.path {
            Some(path) => grant.path.matches(path),
            None => grant.path == PathPattern::default(),
        };
        let mut methods = grant.methods.iter();
        path && self.origin.is_in(grant) && methods.any(|method| method.as_str() == self.method)
    }

    fn describe(&self) -> String {
        let Origin { host, scheme, port } = &self.origin;
        let path = self.path.as_deref().unwrap_or_default();
        format!("{} {scheme}://{host}:{port}{path}", self.method)
    }
}

impl Origin {
    fn is_https(&self) -> bool {
        self.scheme == "https"
    }

    fn is_in(&self, grant: &EgressGrant) -> bool {
        let scheme = if self.is_https() {
            Scheme::Https
        } else {
            Scheme::Http
        };
        Host::parse(&self.host).is_ok_and(|host| grant.host.matches(&host))
            && grant.schemes.contains(&scheme)
            && grant.has_port(self.port, scheme)
    }

    /// Returns the grant of such requests; none without.
    fn grant<'a>(&self, granted: &'a [EgressGrant]) -> Option<&'a EgressGrant> {
        granted.iter().find(|grant| self.is_in(grant))
    }

    /// Returns one entry, with the limits that such requests are granted already.
    fn entry(
        &self,
        path: Option<&str>,
        methods: &BTreeSet<&str>,
        there: Option<&EgressGrant>,
    ) -> Value {
        let Self { host, scheme, port } = self;
        let default_port = if self.is_https() { 443 } else { 80 };
        let mut entry = Map::new();
        entry.insert("host".to_owned(), json!(host));
        if !self.is_https() {
            entry.insert("schemes".to_owned(), json!([scheme]));
        }
        if *port != default_port {
            entry.insert("ports".to_owned(), json!([port]));
        }
        if !methods
            .iter()
            .all(|method| matches!(*method, "GET" | "HEAD"))
        {
            entry.insert("methods".to_owned(), json!(methods));
        }
        if let Some(path) = path {
            entry.insert("path".to_owned(), json!(path));
        }
        let addresses = addresses(host);
        if !addresses.is_empty() {
            entry.insert("privateAddresses".to_owned(), json!(addresses));
        }
        let kept = there.and_then(|grant| self.limits(grant));
        entry.extend(kept.unwrap_or_default());
        Value::Object(entry)
    }

    /// Returns what a grant says of requests beside which they are.
    fn limits(&self, grant: &EgressGrant) -> Option<Map<String, Value>> {
        let like = EgressGrant {
            redirects: grant.redirects,
            private_addresses: grant.private_addresses.clone(),
            request_bytes_max: grant.request_bytes_max,
            response_bytes_max: grant.response_bytes_max,
            total_ms_max: grant.total_ms_max,
            ..EgressGrant::of(HostPattern::parse(&self.host).ok()?)
        };
        requests(&like).as_object().cloned()
    }
}

/// Returns the addresses of a host that is not public, as far as its name gives them.
fn addresses(host: &str) -> Vec<String> {
    let host = Host::parse(host).ok();
    let named = host.map(|host| private_addresses(&host));
    let named = named.unwrap_or_default().into_iter();
    named.map(|address| address.to_string()).collect()
}

/// Returns the paths of one origin with their methods. Many become the path that is granted, and
/// all of them become every path if one is not known.
fn together<'a>(
    paths: Paths<'a>,
    there: Option<&EgressGrant>,
) -> Vec<(Option<String>, BTreeSet<&'a str>)> {
    let is_unknown = paths.contains_key(&None);
    if !is_unknown && paths.len() <= PATHS_MAX {
        let each = paths.into_iter();
        return each
            .map(|(path, methods)| (path.map(str::to_owned), methods))
            .collect();
    }
    let granted = there.map(|grant| &grant.path);
    let granted = granted.filter(|path| !is_unknown && **path != PathPattern::default());
    let methods = paths.into_values().flatten().collect();
    vec![(granted.map(PathPattern::to_string), methods)]
}

/// Returns the entry for requests to a host that is known by a placeholder for a secret alone, as
/// it is written with its port. A secret goes over https, and in the clear to this machine alone.
pub(super) fn request_to(written: &str) -> Value {
    let (host, port) = at_port(written);
    let is_here = Host::parse(host).is_ok_and(|host| host.is_loopback());
    let (scheme, usual) = if is_here {
        ("http", 80)
    } else {
        ("https", 443)
    };
    let origin = Origin {
        host: host.to_owned(),
        scheme: scheme.to_owned(),
        port: port.unwrap_or(usual),
    };
    origin.entry(None, &BTreeSet::new(), None)
}

/// Returns the first grant of requests to a host; none without.
pub(super) fn grant_of<'a>(host: &str, granted: &'a [EgressGrant]) -> Option<&'a EgressGrant> {
    let host = Host::parse(host).ok()?;
    granted.iter().find(|grant| grant.host.matches(&host))
}
