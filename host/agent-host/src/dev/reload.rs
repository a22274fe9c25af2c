//! Reading the configuration and the components again, and serving what they say by now.
//!
//! All of it is served, or nothing: a configuration that is refused leaves what was served as it
//! was. Only a component that cannot be loaded keeps its code and lets the rest go on, where its
//! pin permits that.

use super::report;
use super::watch::Look;
use crate::config::{self, ComponentConfig, Config, Finding, Loaded, Severity};
use crate::failure::{Exit, Failure};
use crate::guests;
use crate::serve::{folders_of, open_folders, refuse_errors, warnings, way_out};
use crate::terminal::Terminal;
use broker::{Broker, Catalogue, Entry};
use domain::digest::Digest;
use domain::grant::{Access, FolderPattern};
use runtime::Runtime;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The parts of the configuration that are read again, as keys of the file.
const READ_AGAIN: [&str; 4] = ["agents", "components", "personas", "requirePins"];

/// A host that is serving.
pub(crate) struct Host {
    pub(crate) broker: Broker,
    pub(crate) runtime: Runtime,
    /// The configuration that it serves, with the options of the command line.
    pub(crate) loaded: Loaded,
    pub(crate) terminal: Terminal,
}

/// The state of reading again.
pub(super) struct Reloading {
    host: Host,
    /// The configuration as its file had it when the host started.
    started_with: Config,
    /// The configuration that was read last, served or not.
    wanted: Loaded,
    /// The last error about each subject, so that it is told once.
    told: BTreeMap<String, String>,
    /// The warnings that were told.
    warned: BTreeSet<String>,
    /// The keys of which was told that they need a restart.
    needing_restart: Vec<String>,
    /// The rule files of scripted providers as they were when the host started, by their keys.
    scripts: BTreeMap<String, Option<Digest>>,
}

/// The subject of errors about the configuration as a whole.
const CONFIGURATION: &str = "configuration";

impl Reloading {
    pub(super) async fn new(host: Host, started_with: Config) -> Self {
        let warned = warnings(&host.loaded, &host.broker.catalogue());
        Self {
            scripts: digests(scripts(&host.loaded)).await,
            wanted: host.loaded.clone(),
            started_with,
            told: BTreeMap::new(),
            warned: warned.iter().map(written).collect(),
            needing_restart: Vec::new(),
            host,
        }
    }

    /// Returns the files and folders that are no sources by now.
    pub(super) fn no_sources(&self) -> Vec<PathBuf> {
        no_sources(&self.wanted)
    }

    /// Looks at the files that a change of would have to be served: the configuration, the
    /// components and the rules of scripted providers.
    pub(super) async fn look(&self) -> Look {
        let mut files = products(&self.wanted);
        files.push(self.wanted.file.clone());
        files.extend(scripts(&self.wanted).into_values());
        // A look at a few files does not panic.
        tokio::task::spawn_blocking(move || Look::at(files))
            .await
            .unwrap_or_default()
    }

    /// Serves what configuration and components say by now. With `hold_code` the code of components
    /// stays. Returns true if that was refused for something that may come without a file that is
    /// looked at.
    pub(super) async fn reload(&mut self, hold_code: bool) -> bool {
        match self.try_reload(hold_code).await {
            Ok(()) => {
                self.told.remove(CONFIGURATION);
                false
            }
            Err(Refused {
                failure,
                may_change,
            }) => {
                self.tell(
                    CONFIGURATION,
                    &failure,
                    "nothing of it is served; what was served goes on",
                );
                may_change
            }
        }
    }

    async fn try_reload(&mut self, hold_code: bool) -> Result<(), Refused> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let read = config::load(&self.host.loaded.file, variables)
            .map_err(|error| Refused::for_good(Failure::new(Exit::Usage, error)))?;
        self.name_what_needs_a_restart(&read.config).await;
        let next = self.beside_the_rest(read);
        self.wanted = next.clone();
        refuse_errors(&config::check(&next)).map_err(Refused::for_now)?;
        way_out(&next).map_err(Refused::for_good)?;
        let entries = self.entries(&next, hold_code).await?;
        let before = self.host.broker.catalogue();
        if next.config == self.host.loaded.config && has_code_of(&entries, &before) {
            return Ok(());
        }
        let folders = folders_of(&entries);
        let catalogue = self.catalogue(&next, entries).await?;
        let Host {
            broker, runtime, ..
        } = &self.host;
        let data = next.data_dir();
        open_folders(runtime, folders, &data)
            .await
            .map_err(Refused::for_now)?;
        if let Err(error) = broker.replace_catalogue(catalogue).await {
            // What is still served finds its folders, also after the next attempt.
            let entries: Vec<Entry> = before.entries().map(|entry| Entry::clone(entry)).collect();
            let _ = open_folders(runtime, folders_of(&entries), &data).await;
            return Err(Refused::for_now(error.into()));
        }
        self.host.loaded = next;
        self.report(&before);
        Ok(())
    }

    /// Returns the served configuration with the parts of another one that are read again.
    fn beside_the_rest(&self, read: Loaded) -> Loaded {
        let Config {
            agents,
            components,
            personas,
            require_pins,
            ..
        } = read.config;
        let mut next = self.host.loaded.clone();
        next.overlaid = read.overlaid;
        next.config = Config {
            agents,
            components,
            personas,
            require_pins,
            ..next.config
        };
        next
    }

    /// Loads the components. One that cannot be loaded keeps its code, if it has any that may run.
    async fn entries(&mut self, next: &Loaded, hold_code: bool) -> Result<Vec<Entry>, Refused> {
        let before = self.host.broker.catalogue();
        let mut entries = Vec::new();
        for (name, config) in guests::wanted(next) {
            let kept = before
                .entry(&name)
                .and_then(|present| kept(present, next, &config));
            let is_held = hold_code && self.has_path_of(&name, &config);
            if let Some(kept) = kept.clone().filter(|_| is_held) {
                entries.push(kept);
                continue;
            }
            let loaded = guests::load_one(next, &self.host.runtime, name.clone(), &config).await;
            match (loaded, kept) {
                (Ok(entry), _) => {
                    self.told.remove(&name);
                    entries.push(entry);
                }
                (Err(failure), Some(kept)) => {
                    self.tell(&name, &failure, "the code that was served goes on");
                    entries.push(kept);
                }
                (Err(failure), None) => return Err(Refused::for_good(failure)),
            }
        }
        Ok(entries)
    }

    /// Returns whether a component is served from the file that is configured for it.
    fn has_path_of(&self, name: &str, config: &ComponentConfig) -> bool {
        let served = &self.host.loaded.config.components;
        served.get(name).map(|served| &served.path) == Some(&config.path)
    }

    async fn catalogue(&self, next: &Loaded, entries: Vec<Entry>) -> Result<Catalogue, Refused> {
        let before = self.host.broker.catalogue();
        let definitions = next.config.definitions();
        let personas = next.config.personas.clone();
        // Schemas are compiled, which is waited for.
        let put_together = tokio::task::spawn_blocking(move || {
            before
                .successor(definitions, entries)
                .and_then(|catalogue| catalogue.with_personas(personas))
        });
        put_together
            .await
            .map_err(|error| Refused::for_good(error.into()))?
            .map_err(|misfit| Refused::for_good(Failure::new(Exit::Usage, misfit)))
    }

    /// Names the changed keys that are read at a start only. That of a rule file stands for what is
    /// in it.
    async fn name_what_needs_a_restart(&mut self, read: &Config) {
        let mut changed = changed_keys(&json!(self.started_with), &json!(read));
        let scripts = digests(scripts(&self.host.loaded)).await;
        let other = scripts
            .into_iter()
            .filter(|(key, digest)| self.scripts.get(key) != Some(digest));
        changed.extend(other.map(|(key, _)| key));
        if changed == self.needing_restart {
            return;
        }
        self.needing_restart.clone_from(&changed);
        if changed.is_empty() {
            return;
        }
        let document = json!({ "event": "needs_restart", "keys": changed });
        self.host.terminal.result(&document, || {
            vec![format!(
                "changed, and served after a restart only: {}",
                changed.join(", ")
            )]
        });
    }

    /// Tells that sources cannot be looked at.
    pub(super) fn tell_of_sources(&mut self, failure: &Failure) {
        self.tell("sources", failure, "nothing is built");
    }

    /// Tells of an error, unless it was the last one about its subject.
    fn tell(&mut self, subject: &str, failure: &Failure, follows: &str) {
        let message = failure.lines().join("\n");
        if self.told.get(subject) == Some(&message) {
            return;
        }
        let terminal = self.host.terminal;
        if terminal.is_json() {
            let mut document = failure.document();
            if let Some(fields) = document.as_object_mut() {
                fields.insert("event".to_owned(), "refused".into());
                fields.insert("subject".to_owned(), subject.into());
            }
            terminal.line(&document.to_string());
        } else {
            terminal.problem(&format!("{message}\n  so: {follows}"));
        }
        self.told.insert(subject.to_owned(), message);
    }

    /// Tells what is served by now and was not before.
    fn report(&mut self, before: &Catalogue) {
        let Host {
            broker,
            loaded,
            terminal,
            ..
        } = &self.host;
        let after = broker.catalogue();
        let wanted = guests::wanted(loaded);
        let mut reports: Vec<report::Report> = after
            .entries()
            .filter_map(|entry| {
                let config = wanted.get(&entry.name)?;
                let before = before.entry(&entry.name);
                report::component(
                    before.map(|before| &**before),
                    entry,
                    config,
                    loaded.is_toml(),
                )
            })
            .collect();
        let gone = before
            .entries()
            .filter(|entry| after.entry(&entry.name).is_none());
        reports.extend(gone.map(|entry| report::removed(&entry.name)));
        reports.extend(report::agents(before, &after));
        for report in reports {
            terminal.result(&report.document, || report.lines);
        }
        let findings = warnings(loaded, &after);
        for finding in &findings {
            if self.warned.insert(written(finding)) {
                terminal.notice(&written(finding));
            }
        }
        // What was mended is told again when it comes back.
        let now: BTreeSet<String> = findings.iter().map(written).collect();
        self.warned.retain(|warning| now.contains(warning));
    }
}

/// Returns the files of the components.
fn products(loaded: &Loaded) -> Vec<PathBuf> {
    guests::wanted(loaded)
        .iter()
        .filter_map(|(name, config)| guests::locate(loaded, name, config).ok())
        .collect()
}

/// Returns the rule files of scripted providers, by their keys.
fn scripts(loaded: &Loaded) -> BTreeMap<String, PathBuf> {
    let providers = loaded.config.providers.iter();
    providers
        .filter_map(|(name, provider)| {
            let script = loaded.resolve(provider.script.as_ref()?);
            Some((format!("providers.{name}.script"), script))
        })
        .collect()
}

/// Returns the digests of files; none of one that cannot be read.
async fn digests(files: BTreeMap<String, PathBuf>) -> BTreeMap<String, Option<Digest>> {
    let digest = |file: PathBuf| Some(Digest::of(&std::fs::read(file).ok()?));
    // Reading a few files does not panic.
    tokio::task::spawn_blocking(move || {
        let files = files.into_iter();
        files.map(|(key, file)| (key, digest(file))).collect()
    })
    .await
    .unwrap_or_default()
}

/// Returns the files and folders that are no sources, wherever they are: those that the host reads
/// and keeps itself, and folders that tools write to.
pub(super) fn no_sources(loaded: &Loaded) -> Vec<PathBuf> {
    let components = guests::wanted(loaded);
    let written = components
        .values()
        .flat_map(|config| &config.directories)
        .filter(|granted| granted.access == Access::ReadWrite)
        .filter_map(|granted| {
            Some(loaded.resolve(&FolderPattern::parse(&granted.path).ok()?.base))
        });
    let mut left_out: Vec<PathBuf> = written.collect();
    left_out.extend(products(loaded));
    left_out.extend(scripts(loaded).into_values());
    left_out.push(loaded.data_dir());
    left_out.push(loaded.file.clone());
    left_out
}

/// A refusal of a configuration as a whole.
struct Refused {
    failure: Failure,
    /// True if it may be accepted without a change of a file that is looked at.
    may_change: bool,
}

impl Refused {
    fn for_good(failure: Failure) -> Self {
        Self {
            failure,
            may_change: false,
        }
    }

    fn for_now(failure: Failure) -> Self {
        Self {
            failure,
            may_change: true,
        }
    }
}

/// Returns the present code of a component under its next grant; none if another one is pinned.
fn kept(present: &Entry, next: &Loaded, config: &ComponentConfig) -> Option<Entry> {
    let may_run = config
        .sha256
        .is_none_or(|pinned| pinned == present.component.digest());
    may_run.then(|| Entry {
        name: present.name.clone(),
        component: present.component.clone(),
        grant: config.grant(&present.name, next.folder()),
        is_pinned: config.sha256.is_some(),
    })
}

/// Returns whether components are the ones that are served, by their code.
fn has_code_of(entries: &[Entry], served: &Catalogue) -> bool {
    entries.len() == served.entries().count()
        && entries.iter().all(|entry| {
            served
                .entry(&entry.name)
                .is_some_and(|served| served.component.digest() == entry.component.digest())
        })
}

/// Returns the keys with other values that are read at a start only: those of the server one by
/// one, others by their tables.
fn changed_keys(before: &Value, after: &Value) -> Vec<String> {
    let keys = |value: &Value| -> BTreeSet<String> {
        value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key.clone())
            .collect()
    };
    let differing = |before: &Value, after: &Value| -> Vec<String> {
        keys(before)
            .union(&keys(after))
            .filter(|key| before.get(key) != after.get(key))
            .cloned()
            .collect()
    };
    differing(before, after)
        .into_iter()
        .filter(|key| !READ_AGAIN.contains(&key.as_str()))
        .flat_map(|key| match key.as_str() {
            "server" => differing(&before[&key], &after[&key])
                .into_iter()
                .map(|inner| format!("server.{inner}"))
                .collect(),
            _ => vec![key],
        })
        .collect()
}

fn written(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    format!("{severity}: {}: {}", finding.key, finding.message)
}

#[cfg(test)]
mod tests {
    use super::{READ_AGAIN, changed_keys, digests, no_sources, scripts};
    use crate::config::{Config, Loaded};
    use serde_json::json;
    use std::path::Path;

    fn loaded(folder: &Path) -> Loaded {
        let config = json!({
            "server": { "dataDir": "kept" },
            "providers": {
                "rules": { "kind": "scripted", "script": "script.toml" },
                "real": { "kind": "anthropic" },
            },
            "components": { "tools": { "path": "tools.wasm", "directories": [
                { "path": "drafts", "at": "/drafts", "access": "read-write" },
                { "path": "homes/{user}/x", "at": "/home", "access": "read-write" },
                { "path": "src", "at": "/src", "access": "read-only" },
            ] } },
        });
        Loaded {
            config: serde_json::from_value(config).unwrap(),
            file: folder.join("agent-host.json"),
            data: None,
            overlaid: Vec::new(),
        }
    }

    #[test]
    fn what_tools_write_and_the_host_reads_is_no_source_and_what_tools_read_is() {
        let folder = Path::new("/project");
        let left_out = no_sources(&loaded(folder));
        for name in ["drafts", "homes", "kept", "script.toml", "agent-host.json"] {
            assert!(
                left_out.contains(&folder.join(name)),
                "{name}: {left_out:?}"
            );
        }
        assert!(!left_out.contains(&folder.join("src")), "{left_out:?}");
    }

    #[tokio::test]
    async fn the_rules_of_a_scripted_provider_are_known_by_what_is_in_them() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(folder.path().join("script.toml"), text).unwrap();
        let loaded = loaded(folder.path());
        let missing = digests(scripts(&loaded)).await;
        write("one");
        let one = digests(scripts(&loaded)).await;
        assert!(one.keys().eq(["providers.rules.script"]), "{one:?}");
        assert_ne!(one, missing);
        write("two");
        assert_ne!(digests(scripts(&loaded)).await, one);
        write("one");
        assert_eq!(digests(scripts(&loaded)).await, one);
    }

    #[test]
    fn keys_that_need_a_restart_are_named_and_those_that_are_read_again_are_not() {
        let before = json!(Config::default());
        let all = before.as_object().unwrap();
        for key in READ_AGAIN {
            assert!(all.contains_key(key), "{key} is a key of the configuration");
        }
        let mut after = before.clone();
        after["server"]["listen"] = json!("127.0.0.1:1");
        after["server"]["dataDir"] = json!("elsewhere");
        after["models"] = json!({ "m": {} });
        after["components"] = json!({ "c": {} });
        after["agents"] = json!([{}]);
        assert_eq!(
            changed_keys(&before, &after),
            ["models", "server.dataDir", "server.listen"]
        );
        assert!(changed_keys(&before, &before).is_empty());
    }
}
