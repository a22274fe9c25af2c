//! Lines of the config that grant what is missing: one for each key, with everything that the key
//! has already.

#[cfg(test)]
pub(super) mod tests;

use crate::config::{ComponentConfig, Config, Loaded};
use crate::terminal::quoted;
use domain::egress::{EgressGrant, Host, Reach, classify};
use domain::grant::{
    Access, BucketGrant, BucketScope, DirectoryGrant, FolderPattern, Owner, capability,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// The capability by which every agent component asks for models.
pub(crate) const MODELS: &str = "models";
/// The capability by which every agent component asks for agents.
pub(crate) const AGENTS: &str = "agents";
/// The key of the secrets that a component is granted.
const SECRETS: &str = "secrets";
/// The calls that share what a line grants, where its component says nothing of that: those for one
/// user, so that nobody meets what another user keeps.
pub(super) const APART: BucketScope = BucketScope::User;
/// The comment on a folder that is an example.
pub(super) const CHOOSE_A_FOLDER: &str = "choose the folder; `{user}` keeps users apart";

/// The comment on what users share and read, of which each has one of their own to write in.
pub(super) const NOW_APART: &str = "users write apart; what they share now stays behind";

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

    /// Returns whether it names a secret that is not among these, so that no host starts with it.
    fn lacks_a_secret(&self, secrets: &BTreeSet<String>) -> bool {
        let entries = self.value.as_array().into_iter().flatten();
        let mut names = entries.filter_map(|entry| entry.get("secret")?.as_str());
        self.key == SECRETS && names.any(|name| !secrets.contains(name))
    }

    /// Returns the document for programs.
    pub(crate) fn document(&self, is_toml: bool) -> Value {
        let change = if self.replaces { "replace" } else { "add" };
        json!({ "key": self.key, "change": change, "line": self.text(is_toml), "value": self.value, "choose": self.choose })
    }
}

/// The place in a configuration that lines are for.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The component's name there.
    component: String,
    /// True if the configuration has an entry of that name.
    has_entry: bool,
    /// The file that a new entry names; none for a built-in component.
    path: Option<PathBuf>,
    /// The folder of the configuration, where it is known.
    folder: Option<PathBuf>,
    /// The names of the configuration's secrets.
    secrets: BTreeSet<String>,
    is_toml: bool,
}

impl Place {
    /// The place of a component of a configuration, which may be a built-in one without an entry.
    pub(crate) fn in_config(loaded: &Loaded, component: &str) -> Self {
        let Config {
            components,
            secrets,
            ..
        } = &loaded.config;
        Self {
            component: component.to_owned(),
            has_entry: components.contains_key(component),
            path: None,
            folder: Some(loaded.folder().to_owned()),
            secrets: secrets.keys().cloned().collect(),
            is_toml: loaded.is_toml(),
        }
    }

    /// The place that a file could have in any configuration. It goes by the file's name, with the
    /// dashes that the package of a Rust crate has.
    pub(crate) fn of_file(file: &Path) -> Self {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            component: name.replace('_', "-"),
            has_entry: false,
            // Wherever the configuration is that the line is pasted into.
            path: Some(std::path::absolute(file).unwrap_or_else(|_| file.to_owned())),
            folder: None,
            secrets: BTreeSet::new(),
            is_toml: true,
        }
    }

    /// The place of a component with an entry in a configuration without secrets.
    #[cfg(test)]
    pub(crate) fn in_toml(component: &str) -> Self {
        Self {
            component: component.to_owned(),
            has_entry: true,
            path: None,
            folder: Some(PathBuf::new()),
            secrets: BTreeSet::new(),
            is_toml: true,
        }
    }

    /// Returns true if the configuration is written as TOML, and not as JSON.
    pub(crate) fn is_toml(&self) -> bool {
        self.is_toml
    }

    /// Returns what is to be done first, and the lines as blocks, each of which is pasted as a
    /// whole: one that a host starts with, and one that waits until the configuration has a secret.
    pub(crate) fn describe(&self, lines: &[Line]) -> Vec<String> {
        let (later, now): (Vec<&Line>, Vec<&Line>) = lines
            .iter()
            .partition(|line| line.lacks_a_secret(&self.secrets));
        let mut reported = self.folders_to_make(lines);
        reported.extend(self.block(&now, self.has_entry, ""));
        let has_entry = self.has_entry || self.path.is_some() || !now.is_empty();
        let when = "once `secrets` of the configuration has the name, ";
        reported.extend(self.block(&later, has_entry, when));
        reported
    }

    /// Returns the commands that make the folders of the lines.
    fn folders_to_make(&self, lines: &[Line]) -> Vec<String> {
        let entries = lines.iter().filter(|line| line.key == "directories");
        let entries = entries.filter_map(|line| line.value.as_array()).flatten();
        let bases = entries.filter_map(|entry| {
            let path = Path::new(entry.get("path")?.as_str()?);
            Some(FolderPattern::parse(path).ok()?.base)
        });
        let missing = bases.filter_map(|base| match &self.folder {
            Some(folder) => Some(folder.join(base)).filter(|base| !base.is_dir()),
            None => Some(base),
        });
        let place = match self.folder {
            Some(_) => "",
            None => " beside the configuration",
        };
        missing
            .map(|base| format!("make the folder first{place}: mkdir -p {}", quoted(&base)))
            .collect()
    }

    /// Returns one block behind the sentence that says where it goes.
    fn block(&self, lines: &[&Line], has_entry: bool, when: &str) -> Vec<String> {
        // A component that wants nothing still needs an entry with its file.
        if lines.is_empty() && (has_entry || self.path.is_none()) {
            return Vec::new();
        }
        let head = self.head(lines, has_entry);
        let texts = lines.iter().map(|line| line.text(self.is_toml));
        let component = &self.component;
        let rows: Vec<String> = match (has_entry, self.is_toml) {
            (true, true) => texts.collect(),
            (true, false) => with_commas(texts.collect()),
            (false, true) => {
                let path = self.path.as_ref();
                let path = path.map(|path| format!("path = {}", toml(&json!(path))));
                let table = format!("[components.{}]", toml_key(component));
                std::iter::once(table).chain(path).chain(texts).collect()
            }
            (false, false) => {
                let keys = with_commas(texts.collect()).into_iter();
                let keys = keys.map(|key| format!("  {key}"));
                let opening = format!("{}: {{", json!(component));
                std::iter::once(opening)
                    .chain(keys)
                    .chain(["}".to_owned()])
                    .collect()
            }
        };
        std::iter::once(format!("{when}{head}"))
            .chain(rows.into_iter().map(|row| format!("  {row}")))
            .collect()
    }

    /// Returns the sentence that says where a block goes.
    fn head(&self, lines: &[&Line], has_entry: bool) -> String {
        // JSON has no comments.
        let choices = lines.iter().filter_map(|line| line.choose);
        let choices: Vec<&str> = choices.filter(|_| !self.is_toml).collect();
        let choose = match choices.as_slice() {
            [] => String::new(),
            choices => format!(" ({})", choices.join("; ")),
        };
        let replaced = lines.iter().filter(|line| line.replaces);
        let replaced: Vec<String> = replaced.map(|line| format!("`{}`", line.key)).collect();
        let component = &self.component;
        match (has_entry, replaced.as_slice()) {
            (false, _) if self.is_toml => format!("add to the configuration{choose}:"),
            (false, _) => format!("add to `components`{choose}:"),
            (true, []) => format!("add to components.{component}{choose}:"),
            (true, keys) => {
                let keys = keys.join(" and ");
                format!("put into components.{component} in place of {keys}{choose}:")
            }
        }
    }
}

/// Puts a comma behind each entry but the last.
fn with_commas(mut entries: Vec<String>) -> Vec<String> {
    if let Some((_, others)) = entries.split_last_mut() {
        others.iter_mut().for_each(|entry| entry.push(','));
    }
    entries
}

/// An entry of a key's list that would allow what was only ever refused. It is no part of a line:
/// the operator puts it there if it is meant.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
        return Line::new("directories", value, false, Some(CHOOSE_A_FOLDER));
    }
    let mut all = granted.to_vec();
    if !granted.iter().any(|folder| folder.access >= access) {
        raise_one(&mut all, access);
    }
    let choose = (granted.len() > 1).then_some("choose which of the folders may be written");
    Line::new(
        "directories",
        all.iter().map(directory).collect(),
        true,
        stays_behind(granted, &all).or(choose),
    )
}

/// Gives one of the folders this access: one that a user has alone, if there is one.
pub(super) fn raise_one(folders: &mut [DirectoryGrant], access: Access) {
    let own = folders.iter().position(is_of_one_user);
    if let Some(folder) = folders.get_mut(own.unwrap_or_default()) {
        *folder = folder_with(folder, access);
    }
}

/// Returns a folder with this access. Where users share it, and more is to be done in it than
/// before, each gets one of their own in it: no line lets all of them write what all of them read.
pub(super) fn folder_with(folder: &DirectoryGrant, access: Access) -> DirectoryGrant {
    let is_apart = access <= folder.access || is_of_one_user(folder);
    DirectoryGrant {
        access,
        path: match is_apart {
            true => folder.path.clone(),
            false => folder.path.join("{user}"),
        },
        ..folder.clone()
    }
}

fn is_of_one_user(folder: &DirectoryGrant) -> bool {
    let pattern = FolderPattern::parse(&folder.path);
    pattern.is_ok_and(|pattern| {
        let mut owners = pattern.owners();
        owners.any(|owner| matches!(owner, Owner::User | Owner::Session))
    })
}

/// Returns a bucket with this access, for each user if they shared it and more is to be done in it
/// than before.
pub(super) fn bucket_with(bucket: &BucketGrant, access: Access) -> BucketGrant {
    let is_apart =
        access <= bucket.access || matches!(bucket.scope, BucketScope::User | BucketScope::Session);
    BucketGrant {
        access,
        scope: if is_apart { bucket.scope } else { APART },
        ..bucket.clone()
    }
}

/// Returns the comment on folders of which one is no longer what it was.
pub(super) fn stays_behind(
    before: &[DirectoryGrant],
    now: &[DirectoryGrant],
) -> Option<&'static str> {
    let mut pairs = before.iter().zip(now);
    pairs
        .any(|(before, now)| before.path != now.path)
        .then_some(NOW_APART)
}

/// Any folder at a place, in which each user has one.
pub(super) fn a_folder_at(at: &str, access: Access) -> Value {
    let name = at.trim_matches('/').replace('/', "-");
    let name = if name.is_empty() { "workspace" } else { &name };
    directory(&shared_by(APART, name, at, access))
}

/// A folder of this name in the configuration's folder, with one in it for each owner of a scope.
pub(super) fn shared_by(
    scope: BucketScope,
    name: &str,
    at: &str,
    access: Access,
) -> DirectoryGrant {
    let owner = match scope {
        BucketScope::Component => "",
        BucketScope::User => "{user}",
        BucketScope::Agent => "{agent}",
        BucketScope::Session => "{session}",
    };
    let path = match owner {
        "" => name.to_owned(),
        owner => format!("{name}/{owner}"),
    };
    DirectoryGrant::whole(path, at, access)
}

/// A bucket of which each user has one.
pub(super) fn a_bucket(name: &str, access: Access) -> BucketGrant {
    BucketGrant {
        scope: APART,
        ..BucketGrant::new(name, access)
    }
}

/// The buckets that are granted, and these, each with the more of the two accesses.
fn buckets(granted: &[BucketGrant], missing: &BTreeMap<String, Access>) -> Line {
    let mut all: Vec<BucketGrant> = granted.to_vec();
    let mut choose = None;
    for (name, access) in missing {
        match all.iter_mut().find(|bucket| bucket.bucket == *name) {
            Some(there) => {
                let raised = bucket_with(there, there.access.max(*access));
                choose = choose.or((raised.scope != there.scope).then_some(NOW_APART));
                *there = raised;
            }
            None => all.push(a_bucket(name, *access)),
        }
    }
    Line::new(
        "keyValue",
        all.iter().map(bucket).collect(),
        !granted.is_empty(),
        choose,
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
        &["bucket", "scope", "access"],
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
            let keys: Vec<String> = keys
                .iter()
                .map(|(key, value)| format!("{} = {}", toml_key(key), toml(value)))
                .collect();
            format!("{{ {} }}", keys.join(", "))
        }
        // The one character that TOML wants escaped and JSON does not.
        plain => plain.to_string().replace('\u{7f}', "\\u007F"),
    }
}

/// A key as TOML writes it.
fn toml_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !key.is_empty() && key.chars().all(is_bare) {
        key.to_owned()
    } else {
        toml(&json!(key))
    }
}
