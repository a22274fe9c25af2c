//! Lines of the config that grant what is missing: one for each key, with everything that the key
//! has already.

#[cfg(test)]
pub(super) mod tests;

use crate::config::ComponentConfig;
use domain::egress::{EgressGrant, Host, Reach, classify};
use domain::grant::{Access, BucketGrant, DirectoryGrant, capability};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The capability by which every agent component asks for models.
pub(crate) const MODELS: &str = "models";
/// The capability by which every agent component asks for agents.
pub(crate) const AGENTS: &str = "agents";

/// One key of a component's configuration, with its new value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) key: &'static str,
    /// All of its value.
    pub(crate) value: Value,
    /// True if the key exists already, with another value.
    replaces: bool,
    /// The part of the value that is an example, for the operator to choose.
    choose: Option<&'static str>,
}

impl Line {
    pub(crate) fn new(
        key: &'static str,
        value: Value,
        replaces: bool,
        choose: Option<&'static str>,
    ) -> Self {
        Self {
            key,
            value,
            replaces,
            choose,
        }
    }

    /// Takes the value of a line of the same key that grants all that this one does, and more.
    pub(super) fn widen(&mut self, wider: Self) {
        self.value = wider.value;
        self.choose = wider.choose.or(self.choose);
    }

    /// Returns the line as the configuration writes it.
    pub(crate) fn text(&self, is_toml: bool) -> String {
        let Self {
            key, value, choose, ..
        } = self;
        match (is_toml, choose) {
            (true, Some(choose)) => format!("{key} = {}  # {choose}", toml(value)),
            (true, None) => format!("{key} = {}", toml(value)),
            (false, _) => format!("{}: {value}", json!(key)),
        }
    }

    /// Returns where the line goes, and the line itself.
    pub(crate) fn describe(&self, component: &str, is_toml: bool) -> [String; 2] {
        // JSON has no comments.
        let choose = self
            .choose
            .filter(|_| !is_toml)
            .map(|choose| format!(" ({choose})"))
            .unwrap_or_default();
        let target = match self.replaces {
            true => format!("replace `{}` in components.{component}{choose}:", self.key),
            false => format!("add to components.{component}{choose}:"),
        };
        [target, format!("  {}", self.text(is_toml))]
    }

    /// Returns the document for programs.
    pub(crate) fn document(&self, is_toml: bool) -> Value {
        let change = if self.replaces { "replace" } else { "add" };
        json!({ "key": self.key, "change": change, "line": self.text(is_toml), "value": self.value, "choose": self.choose })
    }
}

/// An entry of a key's list that would allow what was only ever refused. It is no part of a line:
/// the operator puts it there if it is meant.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RefusedEntry {
    key: &'static str,
    value: Value,
    /// The part of the value that is left to the operator.
    choose: Option<&'static str>,
}

impl RefusedEntry {
    pub(super) fn new(key: &'static str, value: Value, choose: Option<&'static str>) -> Self {
        Self { key, value, choose }
    }

    /// Returns the key, the entry as the configuration writes it, and what is left to choose.
    pub(super) fn text(&self, is_toml: bool) -> String {
        let entry = if is_toml {
            toml(&self.value)
        } else {
            self.value.to_string()
        };
        let choose = self.choose.map(|choose| format!("  # {choose}"));
        format!("{}: {entry}{}", self.key, choose.unwrap_or_default())
    }

    /// Returns the document for programs.
    pub(super) fn document(&self) -> Value {
        json!({ "key": self.key, "value": self.value, "choose": self.choose })
    }
}

/// The grants that a component lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    files: Option<Access>,
    buckets: BTreeMap<String, Access>,
    plain: Vec<&'static str>,
}

/// The key that grants a capability; none when this host knows no such capability.
pub(crate) fn key_of(capability: &str) -> Option<&'static str> {
    match capability {
        capability::FILES_READ | capability::FILES_WRITE => Some("directories"),
        capability::NET_HTTP => Some("network"),
        capability::ENV_READ => Some("environment"),
        capability::SECRETS_USE => Some("secrets"),
        MODELS => Some(MODELS),
        AGENTS => Some(AGENTS),
        other => capability::bucket(other).map(|_| "keyValue"),
    }
}

impl Missing {
    /// Collects the grants that these capabilities need. Capabilities that this host does not know
    /// are left out.
    pub(crate) fn of<'a>(capabilities: impl IntoIterator<Item = &'a str>) -> Self {
        let mut missing = Self::default();
        for capability in capabilities {
            match (capability, key_of(capability)) {
                (capability::FILES_READ, _) => {
                    missing.files = missing.files.max(Some(Access::ReadOnly))
                }
                (capability::FILES_WRITE, _) => missing.files = Some(Access::ReadWrite),
                (_, Some("keyValue")) => {
                    let Some((bucket, access)) = capability::bucket(capability) else {
                        continue;
                    };
                    let known = missing.buckets.entry(bucket.to_owned()).or_insert(access);
                    *known = (*known).max(access);
                }
                (_, Some(key)) => missing.plain.push(key),
                (_, None) => {}
            }
        }
        missing
    }

    /// The lines that grant it beside what is granted.
    pub(crate) fn lines(&self, config: &ComponentConfig) -> Vec<Line> {
        let mut lines = Vec::new();
        lines.extend(
            self.files
                .map(|access| folders(&config.directories, access)),
        );
        if !self.buckets.is_empty() {
            lines.push(buckets(&config.key_value, &self.buckets));
        }
        lines.extend(self.plain.iter().map(|key| plain(key, config)));
        lines.sort_by_key(|line| line.key);
        lines.dedup_by_key(|line| line.key);
        lines
    }
}

/// The folders that are granted, one of them with at least this access.
fn folders(granted: &[DirectoryGrant], access: Access) -> Line {
    if granted.is_empty() {
        let value = json!([a_folder_at("/workspace", access)]);
        return Line::new("directories", value, false, Some("choose a folder"));
    }
    let enough = granted.iter().any(|folder| folder.access >= access);
    let raised = |(index, folder): (usize, &DirectoryGrant)| match index == 0 && !enough {
        true => directory(&DirectoryGrant {
            access,
            ..folder.clone()
        }),
        false => directory(folder),
    };
    let choose = (granted.len() > 1).then_some("choose which of the folders may be written");
    Line::new(
        "directories",
        granted.iter().enumerate().map(raised).collect(),
        true,
        choose,
    )
}

/// Any folder, at a place.
pub(super) fn a_folder_at(at: &str, access: Access) -> Value {
    let name = at.trim_matches('/').replace('/', "-");
    let path = if name.is_empty() { "workspace" } else { &name };
    json!({ "path": path, "at": at, "access": access })
}

/// The buckets that are granted, and these, each with the more of the two accesses.
fn buckets(granted: &[BucketGrant], missing: &BTreeMap<String, Access>) -> Line {
    let mut all: Vec<BucketGrant> = granted.to_vec();
    for (name, access) in missing {
        match all.iter_mut().find(|bucket| bucket.bucket == *name) {
            Some(there) => there.access = there.access.max(*access),
            None => all.push(BucketGrant::new(name, *access)),
        }
    }
    Line::new(
        "keyValue",
        all.iter().map(bucket).collect(),
        !granted.is_empty(),
        None,
    )
}

/// A key whose value only the operator knows.
pub(super) fn plain(key: &'static str, config: &ComponentConfig) -> Line {
    let (value, replaces, choose) = match key {
        "environment" if !config.environment.is_empty() => (
            json!(config.environment),
            true,
            "set these variables in the host's environment",
        ),
        "environment" => (json!({ "NAME": "value" }), false, "choose the variables"),
        "network" => (
            json!([{ "host": "example.com" }]),
            false,
            "choose the hosts",
        ),
        "secrets" => {
            let slot = json!({ "header": "authorization" });
            let secret = json!([{ "secret": "name", "host": "api.example.com", "slot": slot, "prefix": "Bearer " }]);
            (
                secret,
                false,
                "choose one of `secrets`, a host of `network` and the slot",
            )
        }
        MODELS => (json!(["*"]), config.models.is_some(), "choose the models"),
        _ => (json!(["*"]), config.agents.is_some(), "choose the agents"),
    };
    Line::new(key, value, replaces, Some(choose))
}

/// A folder as it is written.
pub(super) fn directory(grant: &DirectoryGrant) -> Value {
    written(
        grant,
        &DirectoryGrant::whole("", "", Access::ReadOnly),
        &["path", "at", "access"],
    )
}

/// A bucket as it is written.
pub(super) fn bucket(grant: &BucketGrant) -> Value {
    written(
        grant,
        &BucketGrant::new("", Access::ReadOnly),
        &["bucket", "access"],
    )
}

/// Requests as they are written.
pub(super) fn requests(grant: &EgressGrant) -> Value {
    written(grant, &EgressGrant::of(grant.host.clone()), &["host"])
}

/// Returns the addresses that a grant of requests to a host has to name: its own if it is not
/// public, and those of this machine for its name. One at which nobody answers is never named.
pub(super) fn private_addresses(host: &Host) -> Vec<IpAddr> {
    match host {
        Host::Address(address) => {
            let reach = classify(*address);
            let is_named = reach != Reach::Public && !reach.is_never_dialled();
            is_named.then_some(*address).into_iter().collect()
        }
        name if name.is_loopback() => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        Host::Name(_) => Vec::new(),
    }
}

/// An entry without what is as when it is not written, but for these keys.
fn written<T: Serialize>(entry: &T, unwritten: &T, always: &[&str]) -> Value {
    let entry = json!(entry);
    let unwritten = json!(unwritten);
    let keys = entry.as_object().into_iter().flatten();
    let said = keys.filter(|(key, value)| {
        always.contains(&key.as_str()) || unwritten.get(key.as_str()) != Some(value)
    });
    said.map(|(key, value)| (key.clone(), value.clone()))
        .collect::<Map<String, Value>>()
        .into()
}

/// A value as TOML writes it on one line.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(entries) => format!(
            "[{}]",
            entries.iter().map(toml).collect::<Vec<_>>().join(", ")
        ),
        Value::Object(keys) => {
            let bare = |key: &str| {
                !key.is_empty()
                    && key
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            };
            let named = |key: &String| {
                if bare(key) {
                    key.clone()
                } else {
                    toml(&json!(key))
                }
            };
            let keys: Vec<String> = keys
                .iter()
                .map(|(key, value)| format!("{} = {}", named(key), toml(value)))
                .collect();
            format!("{{ {} }}", keys.join(", "))
        }
        // The one character that TOML wants escaped and JSON does not.
        plain => plain.to_string().replace('\u{7f}', "\\u007F"),
    }
}
