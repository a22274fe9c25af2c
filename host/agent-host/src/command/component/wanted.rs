//! The manifest of a component for people, and the lines of a configuration that grant what it
//! would like.

use super::lines::{Line, bucket, directory, requests};
use crate::config::ComponentConfig;
use domain::egress::{EgressGrant, HostPattern};
use domain::grant::{Access, BucketGrant, DirectoryGrant, Grant, SecretGrant, SecretSlot};
use domain::manifest::{Manifest, WantedFolder, WantedSecret, Wants};
use runtime::Component;
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
            "a folder at {} ({}): {}",
            want.at,
            written(want.access),
            want.reason
        )
    });
    let buckets = wants.buckets.iter().map(|want| {
        format!(
            "the bucket {} ({}): {}",
            want.bucket,
            written(want.access),
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

/// Returns an access as it is written.
fn written(access: Access) -> String {
    json!(access).as_str().unwrap_or_default().to_owned()
}

/// Returns the lines that grant a component what it would like, beside what it is granted.
pub(crate) fn lines(component: &Component, config: &ComponentConfig) -> Vec<Line> {
    match component.manifest() {
        Some(Ok(manifest)) => of_wants(&manifest.wants, config),
        Some(Err(_)) | None => Vec::new(),
    }
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

/// Returns one line for each key: that of a manifest where there is one, because it names hosts,
/// folders and slots.
pub(crate) fn merged(wanted: Vec<Line>, other: Vec<Line>) -> Vec<Line> {
    let others: Vec<Line> = other
        .into_iter()
        .filter(|line| !wanted.iter().any(|there| there.key == line.key))
        .collect();
    let mut all = [wanted, others].concat();
    all.sort_by_key(|line| line.key);
    all
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
    let lines = [
        directories.line(
            &config.directories,
            &folders(&wants.folders, &config.directories),
        ),
        network.line(&config.network, &hosts(wants, &config.network)),
        key_value.line(&config.key_value, &buckets(wants, &config.key_value)),
        secret.line(&config.secrets, &secrets(&wants.secrets, &config.secrets)),
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

fn folders(wanted: &[WantedFolder], granted: &[DirectoryGrant]) -> Vec<DirectoryGrant> {
    let mut all = granted.to_vec();
    for want in wanted {
        match all.iter_mut().find(|folder| folder.at == want.at) {
            Some(there) => there.access = there.access.max(want.access),
            None => {
                let name = want.at.rsplit('/').next().unwrap_or_default();
                all.push(DirectoryGrant::whole(name, &want.at, want.access));
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
        if !all.iter().any(|grant| grant.host == host) {
            let mut grant = EgressGrant::of(host);
            if !want.methods.is_empty() {
                grant.methods.clone_from(&want.methods);
            }
            all.push(grant);
        }
    }
    all
}

fn buckets(wants: &Wants, granted: &[BucketGrant]) -> Vec<BucketGrant> {
    let mut all = granted.to_vec();
    for want in &wants.buckets {
        match all.iter_mut().find(|bucket| bucket.bucket == want.bucket) {
            Some(there) => there.access = there.access.max(want.access),
            None => all.push(BucketGrant::new(&want.bucket, want.access)),
        }
    }
    all
}

fn secrets(wanted: &[WantedSecret], granted: &[SecretGrant]) -> Vec<SecretGrant> {
    let mut all = granted.to_vec();
    for want in wanted {
        if !all.iter().any(|grant| grant.host == want.host) {
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

#[cfg(test)]
mod tests {
    use super::{about, as_config, merged, of_wants};
    use crate::command::component::lines::Missing;
    use crate::config::ComponentConfig;
    use domain::grant::Grant;
    use domain::manifest::Manifest;
    use serde_json::json;

    fn manifest() -> Manifest {
        let document = json!({
            "manifest": 1, "version": "0.2.0", "authors": ["Ann", "Bo"], "licence": "MIT",
            "wants": {
                "hosts": [
                    { "host": "api.example.com", "reason": "reads" },
                    { "host": "b.example.com", "methods": ["POST"], "reason": "writes" }
                ],
                "folders": [{ "at": "/data/in", "access": "read-write", "reason": "keeps" }],
                "buckets": [{ "bucket": "plans", "access": "read-only", "reason": "looks" }],
                "secrets": [{
                    "secret": "key", "host": "api.example.com", "header": "x-key",
                    "reason": "signs in"
                }]
            }
        });
        Manifest::parse(document.to_string().as_bytes()).unwrap()
    }

    fn texts(lines: &[super::Line]) -> Vec<String> {
        lines.iter().map(|line| line.text(true)).collect()
    }

    #[test]
    fn a_manifest_is_shown_with_every_want_and_its_reason() {
        assert_eq!(
            about(&manifest()),
            [
                "  version  0.2.0",
                "  author   Ann, Bo",
                "  licence  MIT",
                "  would like requests to api.example.com (GET, HEAD): reads",
                "  would like requests to b.example.com (POST): writes",
                "  would like a folder at /data/in (read-write): keeps",
                "  would like the bucket plans (read-only): looks",
                "  would like a secret for api.example.com (x-key): signs in",
            ]
        );
    }

    #[test]
    fn what_a_manifest_wants_becomes_the_exact_lines_of_a_grant() {
        let lines = of_wants(&manifest().wants, &ComponentConfig::default());
        let told = texts(&lines);
        assert_eq!(
            told,
            [
                "directories = [{ path = \"in\", at = \"/data/in\", access = \"read-write\" }]  \
                 # choose the folder",
                "network = [{ host = \"api.example.com\" }, { host = \"b.example.com\", methods = \
                 [\"POST\"] }]",
                "keyValue = [{ bucket = \"plans\", access = \"read-only\" }]",
                "secrets = [{ secret = \"key\", host = \"api.example.com\", slot = { header = \
                 \"x-key\" } }]  # name one of `secrets`",
            ]
        );
        let table: String = told.iter().map(|line| format!("{line}\n")).collect();
        assert!(toml::from_str::<ComponentConfig>(&table).is_ok(), "{table}");
    }

    #[test]
    fn what_is_granted_already_stays_and_is_not_wanted_again() {
        let grant: Grant = serde_json::from_value(json!({
            "directories": [{ "path": "/srv", "at": "/data/in", "access": "read-write" }],
            "network": [{ "host": "api.example.com" }, { "host": "b.example.com" }],
            "keyValue": [{ "bucket": "plans", "access": "read-write" }],
            "secrets": [{
                "secret": "mine", "host": "api.example.com", "slot": { "header": "x-key" }
            }],
        }))
        .unwrap();
        let lines = of_wants(&manifest().wants, &as_config(&grant));
        assert_eq!(texts(&lines), Vec::<String>::new());
    }

    #[test]
    fn a_line_of_a_manifest_stands_in_the_place_of_one_that_only_guesses() {
        let config = ComponentConfig::default();
        let guessed = Missing::of(["net.http", "env.read"]).lines(&config);
        let lines = merged(of_wants(&manifest().wants, &config), guessed);
        let keys: Vec<&str> = lines.iter().map(|line| line.key).collect();
        assert_eq!(
            keys,
            [
                "directories",
                "environment",
                "keyValue",
                "network",
                "secrets"
            ]
        );
        assert!(lines[3].text(true).contains("api.example.com"));
    }
}
