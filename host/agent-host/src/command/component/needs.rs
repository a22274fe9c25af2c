//! What calls have needed of the boundary, and the least grant that gives it.

use super::check::toml;
use domain::egress::{Hop, Traffic};
use domain::event::{Decision, Verdict};
use domain::grant::{Access, capability};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What one host was asked for: its methods and its paths.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    methods: BTreeSet<String>,
    paths: BTreeSet<String>,
}

/// What calls have needed so far.
#[derive(Debug, Default)]
pub(super) struct Needs {
    files: Option<Access>,
    /// By host, scheme and port.
    requests: BTreeMap<(String, String, u16), Asked>,
    buckets: BTreeMap<String, Access>,
    environment: bool,
}

impl Needs {
    /// Takes what a call did, and what it would have done. True when a bucket is among it that was not known of yet.
    pub(super) fn take(&mut self, decisions: &[Decision], traffic: &Traffic) -> bool {
        let before = self.buckets.clone();
        for decision in decisions.iter().filter(|decision| decision.verdict != Verdict::Limited) {
            match decision.capability.as_str() {
                capability::FILES_READ => self.files = self.files.max(Some(Access::ReadOnly)),
                capability::FILES_WRITE => self.files = Some(Access::ReadWrite),
                capability::ENV_READ => self.environment = true,
                // The hops say more.
                capability::NET_HTTP => {}
                other => self.bucket(other),
            }
        }
        traffic.hops.iter().for_each(|hop| self.request(hop));
        self.buckets != before
    }

    fn bucket(&mut self, capability: &str) {
        let (bucket, access) = match capability.rsplit_once('.') {
            Some((bucket, "read")) => (bucket, Access::ReadOnly),
            Some((bucket, "write")) => (bucket, Access::ReadWrite),
            _ => return,
        };
        let known = self.buckets.entry(bucket.to_owned()).or_insert(access);
        *known = (*known).max(access);
    }

    fn request(&mut self, hop: &Hop) {
        let (Some(scheme), Some(host), Some(port)) = (hop.scheme, &hop.host, hop.port) else { return };
        let scheme = json!(scheme).as_str().unwrap_or_default().to_owned();
        let asked = self.requests.entry((host.clone(), scheme, port)).or_default();
        asked.methods.insert(hop.method.as_str().to_owned());
        asked.paths.extend(hop.path.clone());
    }

    /// The names of the buckets.
    pub(super) fn buckets(&self) -> impl Iterator<Item = &str> {
        self.buckets.keys().map(String::as_str)
    }

    /// The least grant, key by key, as the config writes it.
    pub(super) fn grant(&self) -> Vec<(&'static str, Value)> {
        let mut keys = Vec::new();
        if let Some(access) = self.files {
            keys.push(("directories", json!([{ "path": "workspace", "at": "/workspace", "access": access }])));
        }
        if !self.requests.is_empty() {
            let requests: Vec<Value> = self.requests.iter().flat_map(|(target, asked)| requests(target, asked)).collect();
            keys.push(("network", json!(requests)));
        }
        if !self.buckets.is_empty() {
            let buckets: Vec<Value> = self.buckets.iter().map(|(bucket, access)| json!({ "bucket": bucket, "access": access })).collect();
            keys.push(("keyValue", json!(buckets)));
        }
        if self.environment {
            keys.push(("environment", json!({ "NAME": "value" })));
        }
        keys
    }

    /// The same as lines.
    pub(super) fn lines(&self, is_toml: bool) -> Vec<String> {
        let line =
            |(key, value): (&str, Value)| if is_toml { format!("{key} = {}", toml(&value)) } else { format!("{}: {value}", json!(key)) };
        self.grant().into_iter().map(line).collect()
    }
}

/// One grant for each path that was asked for. What is as when it is not written is not written.
fn requests((host, scheme, port): &(String, String, u16), asked: &Asked) -> Vec<Value> {
    let default_port = if scheme == "https" { 443 } else { 80 };
    let reads = asked.methods.iter().all(|method| method == "GET" || method == "HEAD");
    let grants = asked.paths.iter().map(|path| {
        let mut grant = serde_json::Map::new();
        grant.insert("host".to_owned(), json!(host));
        if scheme != "https" {
            grant.insert("schemes".to_owned(), json!([scheme]));
        }
        if *port != default_port {
            grant.insert("ports".to_owned(), json!([port]));
        }
        if !reads {
            grant.insert("methods".to_owned(), json!(asked.methods));
        }
        grant.insert("path".to_owned(), json!(path));
        Value::Object(grant)
    });
    grants.collect()
}

#[cfg(test)]
mod tests {
    use super::Needs;
    use domain::authority::Rule;
    use domain::egress::{Hop, Method, Scheme, Traffic};
    use domain::event::{Decision, Verdict};

    fn decision(capability: &str, verdict: Verdict) -> Decision {
        Decision { capability: capability.to_owned(), verdict, rule: Rule::Granted, times: 1, detail: String::new() }
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
        }
    }

    #[test]
    fn the_least_grant_has_what_was_done_and_what_was_refused_and_no_more() {
        let mut needs = Needs::default();
        let first =
            [decision("files.read", Verdict::Granted), decision("lists.read", Verdict::Refused), decision("tools.call", Verdict::Limited)];
        let hops = vec![hop(Method::Get, Scheme::Https, 443, "/a"), hop(Method::Post, Scheme::Http, 8080, "/b")];
        assert!(needs.take(&first, &Traffic { hops, left_out: 0 }));
        assert!(!needs.take(&[decision("lists.read", Verdict::Granted)], &Traffic::default()));
        assert!(needs.take(&[decision("lists.write", Verdict::Granted)], &Traffic::default()));
        assert_eq!(
            needs.lines(true),
            [
                r#"directories = [{ path = "workspace", at = "/workspace", access = "read-only" }]"#,
                r#"network = [{ host = "example.com", schemes = ["http"], ports = [8080], methods = ["POST"], path = "/b" }, { host = "example.com", path = "/a" }]"#,
                r#"keyValue = [{ bucket = "lists", access = "read-write" }]"#,
            ]
        );
    }

    #[test]
    fn who_needs_nothing_is_granted_nothing() {
        assert!(Needs::default().lines(true).is_empty());
    }
}
