//! Content that a configuration leaves behind: keys and files that no grant leads to any more.
//!
//! A bucket goes by its component, its name and its scope, and a folder by its path. Where one of
//! them changes, the tool begins with nothing, and what it kept stays where it was. Nothing is
//! lost, and nobody finds it.

use super::document::Loaded;
use super::finding::{Finding, warning};
use crate::invocation::quoted;
use domain::grant::{BucketGrant, DirectoryGrant, FolderPattern, Grant};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use store::KeptBucket;

/// Entries of a folder that are counted.
const ENTRIES_MAX: usize = 1_000;

/// Grants by their components.
pub(crate) type Grants = BTreeMap<String, Grant>;

/// Finds the content that was reached by the grants before and is not by a configuration. Of a host
/// that is stopped the grants before are not known: all that is kept counts.
pub(crate) fn left_behind(
    before: Option<&Grants>,
    after: &Loaded,
    kept: &[KeptBucket],
) -> Vec<Finding> {
    let granted = |component: &str| after.config.components.get(component);
    let was_reached = |it: &&KeptBucket| {
        let Some(before) = before else { return true };
        let grant = before.get(&it.component);
        grant.is_some_and(|grant| grant.key_value.iter().any(|bucket| is_of(it, bucket)))
    };
    let buckets = kept.iter().filter(was_reached).filter_map(|it| {
        let now = granted(&it.component).map(|component| component.key_value.as_slice());
        let why = unreached(it, now)?;
        let message = format!(
            "{} of the bucket `{}` of scope `{}` stay behind: {why}. No command moves them: grant \
             them as before, or have the tool write them again",
            count(it.keys, "key"),
            it.bucket,
            it.scope.as_str(),
        );
        Some(warning(
            format!("components.{}.keyValue", it.component),
            message,
        ))
    });
    let folders = match before {
        Some(before) => folders_left(before, after),
        None => folders_of_nobody(after),
    };
    buckets.chain(folders).collect()
}

/// Reads the buckets that a running host says are kept.
pub(crate) fn kept_of(pending: &Value) -> Vec<KeptBucket> {
    let entries = pending.get("kept").and_then(Value::as_array);
    let kept = entries.into_iter().flatten().filter_map(|it| {
        Some(KeptBucket {
            component: it.get("component")?.as_str()?.to_owned(),
            bucket: it.get("bucket")?.as_str()?.to_owned(),
            scope: serde_json::from_value(it.get("scope")?.clone()).ok()?,
            keys: it.get("keys")?.as_u64()?,
        })
    });
    kept.collect()
}

fn is_of(kept: &KeptBucket, grant: &BucketGrant) -> bool {
    kept.bucket == grant.bucket && kept.scope == grant.scope
}

/// Returns the reason why grants do not lead to a bucket; none if they do.
fn unreached(kept: &KeptBucket, now: Option<&[BucketGrant]>) -> Option<String> {
    let component = &kept.component;
    let Some(now) = now else {
        return Some(format!(
            "content goes by the name of its component, and no entry of `components` is called \
             `{component}`"
        ));
    };
    if now.iter().any(|grant| is_of(kept, grant)) {
        return None;
    }
    let other = now.iter().find(|grant| grant.bucket == kept.bucket);
    Some(match other {
        Some(other) => format!(
            "the grant has the scope `{}`, under which the bucket begins empty",
            other.scope.as_str()
        ),
        None => format!("`{component}` is granted no bucket of that name"),
    })
}

/// Returns what folders that were granted before leave behind. Where another grant leads to a
/// folder, of whichever component, nothing of it does.
fn folders_left(before: &Grants, after: &Loaded) -> Vec<Finding> {
    let components = &after.config.components;
    let granted = components
        .iter()
        .map(|(name, component)| (name.as_str(), component.grant(name, after.folder())));
    let granted: BTreeMap<&str, Grant> = granted.collect();
    let is_led_to = |was: &DirectoryGrant| {
        let mut folders = granted.values().flat_map(|grant| &grant.directories);
        folders.any(|folder| folder.path == was.path)
    };
    let before = before.iter().flat_map(|(component, grant)| {
        let folders = grant.directories.iter();
        folders.map(move |was| (component, was))
    });
    let left = before.filter_map(|(component, was)| {
        let now = granted.get(component.as_str());
        let instead = now.and_then(|now| now.directories.iter().find(|it| it.at == was.at));
        // What a tool sees at the place is something else, even if the folder is elsewhere too.
        let is_found = match instead {
            Some(instead) => instead.path == was.path,
            None => is_led_to(was),
        };
        let pattern = FolderPattern::parse(&was.path).ok()?;
        let number = entries(&pattern.base, |_| true);
        if is_found || number == 0 {
            return None;
        }
        let why = match (instead, now) {
            (Some(instead), _) => format!(
                "what a tool sees at `{}` is `{}` from now on; move what is to be found there",
                was.at,
                instead.path.display()
            ),
            (None, Some(_)) => format!(
                "`{component}` is granted no folder at `{}` any more; grant it as before, or move \
                 what is to be found elsewhere",
                was.at
            ),
            (None, None) => format!(
                "no entry of `components` is called `{component}`; grant the folder to another, or \
                 move what is to be found elsewhere"
            ),
        };
        let message = format!(
            "{} of `{}` stay behind: {why}",
            count(number, "entry"),
            was.path.display()
        );
        let key = format!("components.{component}.directories");
        Some(warning(key, message))
    });
    left.collect()
}

/// Returns the files of a configuration's folders that lie where each user has one.
fn folders_of_nobody(after: &Loaded) -> Vec<Finding> {
    let components = after.config.components.iter();
    let found = components.flat_map(|(name, component)| {
        let grant = component.grant(name, after.folder());
        let files = grant.directories.iter().filter_map(files_of_nobody);
        let key = format!("components.{name}.directories");
        files
            .map(|message| warning(key.clone(), message))
            .collect::<Vec<_>>()
    });
    found.collect()
}

/// Returns the files that lie where each user has a folder, and so belong to nobody.
fn files_of_nobody(folder: &DirectoryGrant) -> Option<String> {
    let pattern = FolderPattern::parse(&folder.path).ok()?;
    if !pattern.is_owned() {
        return None;
    }
    let files = entries(&pattern.base, |path| path.is_file());
    (files > 0).then(|| {
        format!(
            "{} in `{}` are found by nobody: each {} has a folder of its own in it; move them \
             into those, such as: mv FILE {}",
            count(files, "file"),
            pattern.base.display(),
            pattern.owners_text(),
            quoted(&pattern.base.join("NAME")),
        )
    })
}

/// Counts the entries of a folder for which something holds.
fn entries(folder: &Path, holds: impl Fn(&Path) -> bool) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = entries
        .take(ENTRIES_MAX)
        .filter(|entry| holds(&entry.path()));
    entries.count() as u64
}

fn count(number: u64, what: &str) -> String {
    match (number, what) {
        (1, what) => format!("1 {what}"),
        (number, "entry") => format!("{number} entries"),
        (number, what) => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Grants, left_behind};
    use crate::config::{Loaded, load};
    use domain::grant::BucketScope;
    use serde_json::json;
    use std::path::Path;
    use store::KeptBucket;

    fn loaded(folder: &Path, components: &str) -> Loaded {
        let file = folder.join("c.toml");
        std::fs::write(&file, components).unwrap();
        load(&file, []).unwrap()
    }

    fn grants(loaded: &Loaded) -> Grants {
        let components = loaded.config.components.iter();
        components
            .map(|(name, component)| (name.clone(), component.grant(name, loaded.folder())))
            .collect()
    }

    fn keys(component: &str, bucket: &str, scope: BucketScope, keys: u64) -> KeptBucket {
        KeptBucket {
            component: component.to_owned(),
            bucket: bucket.to_owned(),
            scope,
            keys,
        }
    }

    const BEFORE: &str = "[components.lists]\nkeyValue = [{ bucket = \"lists\", access = \
                          \"read-write\" }]\n";

    #[test]
    fn keys_that_another_scope_bucket_or_component_leaves_behind_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let before = grants(&loaded(dir.path(), BEFORE));
        let kept = [
            keys("lists", "lists", BucketScope::Agent, 12),
            // Nothing led to it before either.
            keys("lists", "old", BucketScope::Agent, 3),
        ];
        for (after, told) in [
            (BEFORE.to_owned(), None),
            (
                BEFORE.replace("access", "scope = \"user\", access"),
                Some("12 keys of the bucket `lists` of scope `agent` stay behind: the grant has"),
            ),
            (
                BEFORE.replace("\"lists\"", "\"other\""),
                Some("`lists` is granted no bucket of that name"),
            ),
            (
                BEFORE.replace("components.lists", "components.files"),
                Some("no entry of `components` is called `lists`"),
            ),
            (
                "[components.lists]\n".to_owned(),
                Some("granted no bucket of that name"),
            ),
        ] {
            let after = loaded(dir.path(), &after);
            let found = left_behind(Some(&before), &after, &kept);
            assert_eq!(found.len(), usize::from(told.is_some()), "{found:?}");
            let told = told.unwrap_or_default();
            assert!(
                found.iter().all(|it| it.message.contains(told)),
                "{found:?}"
            );
        }
        // Of a stopped host nobody knows what was granted.
        let after = loaded(dir.path(), BEFORE);
        assert_eq!(left_behind(None, &after, &kept).len(), 1);
    }

    #[test]
    fn files_that_another_path_or_no_grant_any_more_leaves_behind_are_told() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("exports/bob")).unwrap();
        let granted = |path: &str| {
            let folder = json!({ "path": path, "at": "/exports", "access": "read-write" });
            let file = dir.path().join("c.json");
            let config = json!({ "components": { "files": { "directories": [folder] } } });
            std::fs::write(&file, config.to_string()).unwrap();
            load(&file, []).unwrap()
        };
        let before = grants(&granted("exports"));
        let owned = granted("exports/{user}");
        assert!(left_behind(None, &owned, &[]).is_empty());
        std::fs::write(dir.path().join("exports/all.csv"), "x").unwrap();
        for after in ["exports/{user}", "elsewhere"] {
            let found = left_behind(Some(&before), &granted(after), &[]);
            assert!(
                found.len() == 1 && found[0].message.starts_with("2 entries of `"),
                "{found:?}"
            );
        }
        assert!(left_behind(Some(&before), &granted("exports"), &[]).is_empty());
        for (after, told) in [
            (
                json!({ "files": {} }),
                Some("no folder at `/exports` any more"),
            ),
            (
                json!({}),
                Some("no entry of `components` is called `files`"),
            ),
            (
                json!({ "files": { "directories": [
                    { "path": "elsewhere", "at": "/other", "access": "read-only" },
                ] } }),
                Some("no folder at `/exports` any more"),
            ),
            // The same folder at another place, and for a component of another name.
            (
                json!({ "files": { "directories": [
                    { "path": "exports", "at": "/other", "access": "read-only" },
                ] } }),
                None,
            ),
            (
                json!({ "documents": { "path": "d.wasm", "directories": [
                    { "path": "exports", "at": "/exports", "access": "read-only" },
                ] } }),
                None,
            ),
        ] {
            let file = dir.path().join("c.json");
            std::fs::write(&file, json!({ "components": after }).to_string()).unwrap();
            let found = left_behind(Some(&before), &load(&file, []).unwrap(), &[]);
            assert_eq!(
                found.len(),
                usize::from(told.is_some()),
                "{after}: {found:?}"
            );
            let told = told.unwrap_or_default();
            assert!(
                found.iter().all(|it| it.message.contains(told)),
                "{found:?}"
            );
        }
        let found = left_behind(None, &owned, &[]);
        assert!(found[0].message.contains("1 file in"), "{found:?}");
    }
}
