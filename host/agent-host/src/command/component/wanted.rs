//! The manifest of a component for people, and the lines of a configuration that grant what it
//! would like.

#[cfg(test)]
mod tests;

use super::lines::{
    APART, Line, Missing, bucket, bucket_with, directory, folder_with, private_addresses, requests,
    shared_by,
};
use crate::answer::serialized;
use crate::config::ComponentConfig;
use domain::egress::{AddressRange, EgressGrant, Host, HostPattern, Method};
use domain::grant::{BucketGrant, BucketScope, DirectoryGrant, Grant, SecretGrant, SecretSlot};
use domain::manifest::{Manifest, WantedFolder, WantedSecret, Wants};
use runtime::{Component, Described};
use serde_json::{Value, json};

/// Returns the lines on a component's manifest; nothing when it has none.
pub(crate) fn describe(component: &Component) -> Vec<String> {
    match component.manifest() {
        None => Vec::new(),
        Some(Err(fault)) => vec![format!("  manifest not read: {fault}")],
        Some(Ok(manifest)) => about(manifest),
    }
}

fn about(manifest: &Manifest) -> Vec<String> {
    let Manifest {
        layout: _,
        version,
        authors,
        licence,
        homepage,
        wants,
    } = manifest;
    let by = authors.join(", ");
    let facts = [
        ("version", version),
        ("author", &by),
        ("licence", licence),
        ("homepage", homepage),
    ];
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty());
    let facts = facts.map(|(key, value)| format!("  {key:<8} {value}"));
    let wanted = reasons(wants).into_iter();
    facts
        .chain(wanted.map(|wanted| format!("  would like {wanted}")))
        .collect()
}

fn reasons(wants: &Wants) -> Vec<String> {
    let hosts = wants.hosts.iter().map(|want| {
        let methods: Vec<&str> = want.methods.iter().map(|method| method.as_str()).collect();
        let methods = if methods.is_empty() {
            "GET, HEAD".to_owned()
        } else {
            methods.join(", ")
        };
        format!("requests to {} ({methods}): {}", want.host, want.reason)
    });
    let folders = wants.folders.iter().map(|want| {
        format!(
            "a folder at {} ({}{}): {}",
            want.at,
            serialized(&want.access),
            whose(want.scope),
            want.reason
        )
    });
    let buckets = wants.buckets.iter().map(|want| {
        format!(
            "the bucket {} ({}{}): {}",
            want.bucket,
            serialized(&want.access),
            whose(want.scope),
            want.reason
        )
    });
    let secrets = wants.secrets.iter().map(|want| {
        format!(
            "a secret for {} ({}): {}",
            want.host, want.header, want.reason
        )
    });
    hosts.chain(folders).chain(buckets).chain(secrets).collect()
}

/// Returns which calls share what is wanted, where the component says so.
fn whose(scope: Option<BucketScope>) -> String {
    let reported = scope.map(|scope| match scope {
        BucketScope::Component => ", one for all".to_owned(),
        scope => format!(", one for each {}", serialized(&scope)),
    });
    reported.unwrap_or_default()
}

/// Returns the lines that grant a component what it would like, beside what it is granted.
pub(crate) fn lines(component: &Component, config: &ComponentConfig) -> Vec<Line> {
    wants(component).map_or_else(Vec::new, |wants| of_wants(&wants, config))
}

/// Returns the wants of a component; none when its manifest cannot be read. In the folders of a
/// trigger or a connector the host works for no user, so that all share them.
fn wants(component: &Component) -> Option<Wants> {
    let mut wants = component.manifest()?.ok()?.wants.clone();
    if !matches!(component.describes(), Described::Tools(_)) {
        for folder in &mut wants.folders {
            folder.scope = Some(BucketScope::Component);
        }
    }
    Some(wants)
}

/// Returns the part of a configuration that a grant came from.
pub(crate) fn as_config(grant: &Grant) -> ComponentConfig {
    ComponentConfig {
        directories: grant.directories.clone(),
        network: grant.network.clone(),
        key_value: grant.key_value.clone(),
        secrets: grant.secrets.clone(),
        ..ComponentConfig::default()
    }
}

/// Returns the lines that grant a component what it would like and what it lacks: one for each key.
pub(crate) fn lines_with(
    component: &Component,
    config: &ComponentConfig,
    missing: &Missing,
) -> Vec<Line> {
    match wants(component) {
        Some(wants) => merged(&wants, config, missing),
        None => missing.lines(config),
    }
}

fn merged(wants: &Wants, config: &ComponentConfig, missing: &Missing) -> Vec<Line> {
    let mut all = of_wants(wants, config);
    for line in missing.lines(&with(wants, config)) {
        match all.iter_mut().find(|there| there.key == line.key) {
            None => all.push(line),
            // The manifest names hosts and slots, of which the other line has an example.
            Some(_) if matches!(line.key, "network" | "secrets") => {}
            Some(there) if there.value == line.value => {}
            Some(there) => there.widen(line),
        }
    }
    all.sort_by_key(|line| line.key);
    all
}

/// Returns a configuration with what is wanted beside what is granted.
fn with(wants: &Wants, config: &ComponentConfig) -> ComponentConfig {
    ComponentConfig {
        directories: folders(&wants.folders, &config.directories),
        network: hosts(wants, &config.network),
        key_value: buckets(wants, &config.key_value),
        secrets: secrets(&wants.secrets, &config.secrets),
        ..config.clone()
    }
}

fn of_wants(wants: &Wants, config: &ComponentConfig) -> Vec<Line> {
    let directories = Key {
        name: "directories",
        choose: Some("choose the folder"),
        written: directory,
    };
    let network = Key {
        name: "network",
        choose: None,
        written: requests,
    };
    let key_value = Key {
        name: "keyValue",
        choose: None,
        written: bucket,
    };
    let secret = Key {
        name: "secrets",
        choose: Some("name one of `secrets`"),
        written: |grant: &SecretGrant| json!(grant),
    };
    let all = with(wants, config);
    let lines = [
        directories.line(&config.directories, &all.directories),
        network.line(&config.network, &all.network),
        key_value.line(&config.key_value, &all.key_value),
        secret.line(&config.secrets, &all.secrets),
    ];
    lines.into_iter().flatten().collect()
}

/// A key of a component's configuration whose value is a list.
struct Key<T> {
    name: &'static str,
    /// The part of the value that is left to the operator.
    choose: Option<&'static str>,
    written: fn(&T) -> Value,
}

impl<T: PartialEq> Key<T> {
    /// The line of the key, unless all of it is granted already.
    fn line(&self, granted: &[T], all: &[T]) -> Option<Line> {
        (all != granted).then(|| {
            let value = all.iter().map(self.written).collect();
            Line::new(self.name, value, !granted.is_empty(), self.choose)
        })
    }
}

/// The folders that are granted, and those that are wanted. Where users share one, and its
/// component does not say that they should, none of them gets more of it: see [`folder_with`].
fn folders(wanted: &[WantedFolder], granted: &[DirectoryGrant]) -> Vec<DirectoryGrant> {
    let mut all = granted.to_vec();
    for want in wanted {
        match all.iter_mut().find(|folder| folder.at == want.at) {
            Some(there) if want.scope == Some(BucketScope::Component) => {
                there.access = there.access.max(want.access);
            }
            Some(there) => *there = folder_with(there, there.access.max(want.access)),
            None => {
                let name = want.at.rsplit('/').next().unwrap_or_default();
                let scope = want.scope.unwrap_or(APART);
                all.push(shared_by(scope, name, &want.at, want.access));
            }
        }
    }
    all
}

fn hosts(wants: &Wants, granted: &[EgressGrant]) -> Vec<EgressGrant> {
    let mut all = granted.to_vec();
    for want in &wants.hosts {
        let Ok(host) = HostPattern::parse(&want.host) else {
            continue;
        };
        let mut wanted = EgressGrant::of(host);
        wanted.private_addresses = addresses(&want.host);
        if !want.methods.is_empty() {
            wanted.methods.clone_from(&want.methods);
        }
        // A host may have several grants, each for another path.
        let is_granted = |method: &Method| {
            let mut of_host = all.iter().filter(|grant| grant.host == wanted.host);
            of_host.any(|grant| grant.methods.contains(method))
        };
        let lacking: Vec<Method> = wanted
            .methods
            .iter()
            .copied()
            .filter(|method| !is_granted(method))
            .collect();
        match all.iter_mut().find(|grant| grant.host == wanted.host) {
            Some(there) => {
                there.methods.extend(lacking);
                // Without one, the host does not start.
                if there.private_addresses.is_empty() {
                    there.private_addresses = wanted.private_addresses;
                }
            }
            None => all.push(wanted),
        }
    }
    all
}

/// Returns the addresses that a grant of requests to a host has to name.
fn addresses(host: &str) -> Vec<AddressRange> {
    let host = Host::parse(host).ok();
    let named = host
        .map(|host| private_addresses(&host))
        .unwrap_or_default();
    let ranges = named
        .iter()
        .map(|address| AddressRange::parse(&address.to_string()));
    ranges.filter_map(Result::ok).collect()
}

fn buckets(wants: &Wants, granted: &[BucketGrant]) -> Vec<BucketGrant> {
    let mut all = granted.to_vec();
    for want in &wants.buckets {
        match all.iter_mut().find(|bucket| bucket.bucket == want.bucket) {
            Some(there) if want.scope == Some(BucketScope::Component) => {
                there.access = there.access.max(want.access);
            }
            Some(there) => *there = bucket_with(there, there.access.max(want.access)),
            None => all.push(BucketGrant {
                scope: want.scope.unwrap_or(APART),
                ..BucketGrant::new(&want.bucket, want.access)
            }),
        }
    }
    all
}

fn secrets(wanted: &[WantedSecret], granted: &[SecretGrant]) -> Vec<SecretGrant> {
    let mut all = granted.to_vec();
    for want in wanted {
        // Whatever the port and the name of the secret: both are the operator's.
        let is_there = |grant: &SecretGrant| match &grant.slot {
            SecretSlot::Header(name) => {
                grant.host == want.host && name.eq_ignore_ascii_case(&want.header)
            }
            SecretSlot::Query(_) | SecretSlot::Path(_) => false,
        };
        if !all.iter().any(is_there) {
            all.push(SecretGrant {
                secret: want.secret.clone(),
                host: want.host.clone(),
                port: None,
                slot: SecretSlot::Header(want.header.clone()),
                prefix: want.prefix.clone(),
            });
        }
    }
    all
}
