//! The places of calls: requests that were let out, are granted or were only ever refused, and
//! folders.

use super::super::lines::{private_addresses, requests};
use super::at_port;
use crate::answer::serialized;
use domain::egress::{EgressGrant, Hop, Host, HostPattern, PathPattern, Scheme};
use domain::event::{BoundaryDecision, NOTHING_OPENED};
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
            scheme: serialized(&scheme),
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

/// The place of a folder when nothing tells of another.
pub(super) const USUAL: &str = "/workspace";
/// Paths that are told one by one.
const PLACES_MAX: usize = 8;

/// The places of a component's folders, and what was opened elsewhere.
#[derive(Debug, Default)]
pub(super) struct Places {
    granted: BTreeSet<String>,
    /// Paths that are in none of the folders.
    elsewhere: BTreeSet<String>,
    /// True if a path was opened that is in one of the folders.
    found: bool,
    /// True if a call that failed opened nothing in the folders that it had.
    missed: bool,
}

impl Places {
    pub(super) fn new(granted: impl IntoIterator<Item = String>) -> Self {
        Self {
            granted: granted.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Forgets what was opened elsewhere.
    pub(super) fn forget(&mut self) {
        *self = Self::new(std::mem::take(&mut self.granted));
    }

    /// Adds a decision about files. Its detail is a path, or says why there was none.
    pub(super) fn take(&mut self, decision: &BoundaryDecision) {
        let detail = &decision.detail;
        if !detail.starts_with('/') {
            self.missed |= detail.starts_with(NOTHING_OPENED) && !self.granted.is_empty();
        } else if self.granted.iter().any(|at| is_within(detail, at)) {
            self.found = true;
        } else if (!self.granted.is_empty() || !is_within(detail, USUAL))
            && self.elsewhere.len() < PLACES_MAX
        {
            self.elsewhere.insert(detail.clone());
        }
    }

    /// The paths that are in none of the folders. The root is one of them only if nothing below it
    /// is: libraries open it on the way.
    fn opened(&self) -> impl Iterator<Item = &str> {
        let is_alone = self.elsewhere.len() == 1;
        let paths = self.elsewhere.iter().map(String::as_str);
        paths.filter(move |path| is_alone || *path != "/")
    }

    /// Returns the places at which a folder is missing.
    pub(super) fn missing(&self) -> Vec<String> {
        let places: BTreeSet<String> = self.opened().map(place_of).collect();
        places.into_iter().collect()
    }

    /// Returns the place at which the only folder should be, if all that was opened is at one other
    /// place. Of the root nobody knows whether it was meant.
    pub(super) fn moved(&self) -> Option<String> {
        let [place]: [String; 1] = self.missing().try_into().ok()?;
        let is_only = self.granted.len() == 1 && !self.found;
        Some(place).filter(|place| is_only && place != "/")
    }

    /// Returns what an operator should know about the places.
    pub(super) fn notes(&self) -> Vec<String> {
        let granted = self.granted.iter().cloned().collect::<Vec<_>>().join(", ");
        let none = if granted.is_empty() {
            "no folder is granted".to_owned()
        } else {
            format!("folders are only granted at {granted}")
        };
        let opened = self.opened().map(|path| {
            format!(
                "a call opened {path}, and {none}: the `at` of a folder is the beginning of the paths \
                 that the tool opens"
            )
        });
        let missed = (self.missed && self.elsewhere.is_empty()).then(|| {
            format!(
                "a call failed and opened nothing in its folders at {granted}: if it looked for a \
                 file elsewhere, grant a folder `at` the beginning of that path"
            )
        });
        opened.chain(missed).collect()
    }
}

fn is_within(path: &str, place: &str) -> bool {
    place == "/"
        || path
            .strip_prefix(place)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the place of a folder in which a path would be: its first segment, or the root if that
/// is a file by its name.
fn place_of(path: &str) -> String {
    let mut segments = path.trim_start_matches('/').split('/');
    match (segments.next(), segments.next()) {
        (Some(first), None) if first.is_empty() || first.contains('.') => "/".to_owned(),
        (Some(first), _) => format!("/{first}"),
        (None, _) => "/".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{BoundaryDecision, Places, place_of};
    use domain::event::BoundaryVerdict;
    use domain::ruling::Rule;

    fn decision(verdict: BoundaryVerdict, detail: &str) -> BoundaryDecision {
        BoundaryDecision {
            capability: "files.read".to_owned(),
            verdict,
            rule: Rule::Granted,
            times: 1,
            detail: detail.to_owned(),
        }
    }

    #[test]
    fn a_path_outside_of_the_folders_is_told_with_the_place_that_is_missing() {
        let mut places = Places::new(["/workspace".to_owned()]);
        for path in ["/workspace/a", "/workspaces/b", "/data/in/c.txt"] {
            places.take(&decision(BoundaryVerdict::Granted, path));
        }
        assert_eq!(places.missing(), ["/data", "/workspaces"]);
        let notes = places.notes();
        assert!(
            notes.len() == 2
                && notes[0].contains("/data/in/c.txt, and folders are only granted at /workspace"),
            "{notes:?}"
        );
        let mut none = Places::default();
        none.take(&decision(BoundaryVerdict::Granted, "/workspace/a"));
        assert!(none.missing().is_empty() && none.notes().is_empty());
    }

    #[test]
    fn a_call_that_opened_nothing_is_told_with_the_places_that_it_had() {
        let mut places = Places::new(["/workspace".to_owned()]);
        let detail = "nothing was opened in /workspace; a path elsewhere is in no granted folder";
        places.take(&decision(BoundaryVerdict::Granted, detail));
        let notes = places.notes();
        assert!(
            notes.len() == 1 && notes[0].contains("nothing in its folders at /workspace"),
            "{notes:?}"
        );
        let mut none = Places::default();
        none.take(&decision(BoundaryVerdict::Refused, "no folder is granted"));
        assert!(none.notes().is_empty());
    }

    #[test]
    fn the_root_is_no_place_that_is_missing_when_something_below_it_is() {
        let mut places = Places::default();
        places.take(&decision(BoundaryVerdict::Granted, "/"));
        assert_eq!(places.missing(), ["/"]);
        places.take(&decision(BoundaryVerdict::Granted, "/data/log"));
        assert_eq!(places.missing(), ["/data"]);
        assert_eq!(places.notes().len(), 1);
    }

    #[test]
    fn the_place_of_a_path_is_its_first_folder() {
        for (path, place) in [
            ("/data/x", "/data"),
            ("/data", "/data"),
            ("/x.txt", "/"),
            ("/", "/"),
        ] {
            assert_eq!(place_of(path), place);
        }
    }
}
