//! The files that a configuration names, the code in them, and granted folders in whose places
//! others are.

use super::{Refused, Reloading};
use crate::config::{ComponentConfig, Loaded};
use crate::guests;
use crate::serve::{folders_of, open_folders};
use broker::{Catalogue, Entry};
use domain::digest::Digest;
use domain::grant::{Access, FolderPattern};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Returns the files of the components.
pub(super) fn products(loaded: &Loaded) -> Vec<PathBuf> {
    guests::wanted(loaded)
        .iter()
        .filter_map(|(name, config)| guests::locate(loaded, name, config).ok())
        .collect()
}

/// Returns the rule files of scripted providers, by their keys.
pub(super) fn scripts(loaded: &Loaded) -> BTreeMap<String, PathBuf> {
    let providers = loaded.config.providers.iter();
    providers
        .filter_map(|(name, provider)| {
            let script = loaded.resolve(provider.script.as_ref()?);
            Some((format!("providers.{name}.script"), script))
        })
        .collect()
}

/// Returns the digests of files; none of one that cannot be read.
pub(super) async fn digests(files: BTreeMap<String, PathBuf>) -> BTreeMap<String, Option<Digest>> {
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
pub(crate) fn no_sources(loaded: &Loaded) -> Vec<PathBuf> {
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

impl Reloading {
    /// Loads the components. For an author, one that cannot be loaded keeps its code, if it has any
    /// that may run.
    pub(super) async fn entries(
        &mut self,
        next: &Loaded,
        hold_code: bool,
    ) -> Result<Vec<Entry>, Refused> {
        let before = self.host.broker.catalogue();
        let mut entries = Vec::new();
        for (name, config) in guests::served(next) {
            let kept = before
                .entry(&name)
                .and_then(|present| kept(present, next, &config));
            let is_retained = hold_code && self.has_path_of(&name, &config);
            if let Some(kept) = kept.clone().filter(|_| is_retained) {
                entries.push(kept);
                continue;
            }
            let loaded = guests::load_one(next, &self.host.runtime, name.clone(), &config).await;
            match (loaded, kept) {
                (Ok(entry), _) => {
                    self.reported.remove(&name);
                    entries.push(entry);
                }
                (Err(failure), Some(kept)) if self.is_for_author => {
                    self.tell(&name, &failure, "the code that was served goes on");
                    entries.push(kept);
                }
                (Err(failure), _) => return Err(Refused::for_good(failure)),
            }
        }
        Ok(entries)
    }

    /// Returns the components that keep their code though other code is in their files, with that:
    /// a start takes it. An author of plugins has it served as soon as it is right.
    pub(super) async fn other_code(
        &self,
        next: &Loaded,
        hold_code: bool,
    ) -> Result<Vec<Entry>, Refused> {
        let mut other = Vec::new();
        if self.is_for_author || !hold_code {
            return Ok(other);
        }
        let before = self.host.broker.catalogue();
        for (name, config) in guests::served(next) {
            let retained = before
                .entry(&name)
                .filter(|present| kept(present, next, &config).is_some())
                .filter(|_| self.has_path_of(&name, &config));
            let Some(retained) = retained else { continue };
            let in_file = guests::load_one(next, &self.host.runtime, name, &config).await;
            let in_file = in_file.map_err(Refused::for_now)?;
            if in_file.component.digest() != retained.component.digest() {
                other.push(in_file);
            }
        }
        Ok(other)
    }

    /// Returns whether a component is served from the file that is configured for it.
    fn has_path_of(&self, name: &str, config: &ComponentConfig) -> bool {
        let served = guests::served(&self.host.loaded);
        served.get(name).map(|served| &served.path) == Some(&config.path)
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

/// Returns the keys of components that are other code in their files.
pub(super) fn paths_of(other_code: &[Entry]) -> impl Iterator<Item = String> {
    other_code
        .iter()
        .map(|entry| format!("components.{}.path", entry.name))
}

/// Returns whether components are the ones that are served, by their code.
pub(super) fn has_code_of(entries: &[Entry], served: &Catalogue) -> bool {
    entries.len() == served.entries().count()
        && entries.iter().all(|entry| {
            served
                .entry(&entry.name)
                .is_some_and(|served| served.component.digest() == entry.component.digest())
        })
}

impl Reloading {
    /// Opens the granted folders again if others are in the places of some. Returns those.
    pub(super) async fn open_what_moved(&self, entries: &[Entry]) -> Result<Vec<String>, Refused> {
        let moved = self.moved_folders().await;
        if !moved.is_empty() {
            let data = self.host.loaded.data_dir();
            open_folders(&self.host.runtime, folders_of(entries), &data)
                .await
                .map_err(Refused::for_now)?;
            tracing::info!(
                folders = moved.join(", "),
                "granted folders were opened anew"
            );
        }
        Ok(moved)
    }

    /// Returns the granted folders in whose places others are now.
    pub(super) async fn moved_folders(&self) -> Vec<String> {
        let runtime = self.host.runtime.clone();
        let moved = tokio::task::spawn_blocking(move || runtime.moved_folders()).await;
        let moved = moved.unwrap_or_default().into_iter();
        moved.map(|path| path.display().to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{digests, no_sources, scripts};
    use crate::config::Loaded;
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
            written: "".into(),
            data: None,
            trusts_address: false,
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
}
