//! The files that a configuration names.

use crate::config::Loaded;
use crate::guests;
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
