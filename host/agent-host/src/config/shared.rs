//! Content that users share: folders and buckets that keep nobody apart, and changes that make what
//! was kept apart common.

use super::document::Loaded;
use super::finding::{Finding, warning};
use super::left_behind::{Grants, count, either, entries};
use domain::grant::{Access, BucketScope, DirectoryGrant, FolderPattern, Owner};
use std::path::Path;

/// The owners between whom a grant keeps content apart, the fewest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Apart {
    Nobody,
    Agents,
    Users,
}

impl Apart {
    fn of_scope(scope: BucketScope) -> Self {
        match scope {
            BucketScope::Component => Self::Nobody,
            BucketScope::Agent => Self::Agents,
            BucketScope::User | BucketScope::Session => Self::Users,
        }
    }

    fn of_folder(pattern: &FolderPattern) -> Self {
        let owners = pattern.owners().map(|owner| match owner {
            Owner::Agent => Self::Agents,
            Owner::User | Owner::Session => Self::Users,
        });
        owners.max().unwrap_or(Self::Nobody)
    }

    /// Returns those who have in common what was kept apart, with a grant that keeps fewer apart.
    fn in_common(self, now: Self) -> &'static str {
        match (self, now) {
            (Self::Users, Self::Agents) => "all users of an agent",
            (Self::Agents, _) => "all agents",
            (Self::Users | Self::Nobody, _) => "all users",
        }
    }
}

/// Finds what was kept apart by the grants before, and is common by those that follow.
pub(super) fn opened(before: &Grants, after: &Grants) -> Vec<Finding> {
    let opened = before.iter().flat_map(|(component, grant)| {
        let now = after.get(component).map(|now| now.key_value.as_slice());
        let buckets = grant.key_value.iter().filter_map(move |was| {
            let now = now?.iter().find(|now| now.bucket == was.bucket)?;
            let were = Apart::of_scope(was.scope);
            let are = Apart::of_scope(now.scope);
            let was = was.scope.as_str();
            (are < were).then(|| {
                let message = format!(
                    "the bucket `{}` was kept apart by {was}, and is common to {} from now on: its \
                     scope is `{}`. Keep `scope = \"{was}\"` to keep it apart",
                    now.bucket,
                    were.in_common(are),
                    now.scope.as_str(),
                );
                warning(format!("components.{component}.keyValue"), message)
            })
        });
        let folders = grant.directories.iter();
        let folders = folders.flat_map(move |was| folders_opened(component, was, before, after));
        buckets.chain(folders)
    });
    opened.collect()
}

/// Finds the folders by which one that was kept apart becomes common.
fn folders_opened(
    component: &str,
    was: &DirectoryGrant,
    before: &Grants,
    after: &Grants,
) -> Vec<Finding> {
    let Ok(pattern) = FolderPattern::parse(&was.path) else {
        return Vec::new();
    };
    let were = Apart::of_folder(&pattern);
    let folders = after.iter().flat_map(|(name, grant)| {
        let folders = grant.directories.iter();
        folders.map(move |now| (name, now))
    });
    let opened = folders.filter_map(|(name, now)| {
        let mut granted = before.get(name).into_iter().flat_map(|it| &it.directories);
        let is_new = !granted.any(|it| it.path == now.path);
        let other = FolderPattern::parse(&now.path).ok()?;
        let are = Apart::of_folder(&other);
        if !is_new || are >= were {
            return None;
        }
        let in_common = were.in_common(are);
        let owners = pattern.owners_text();
        let shown = common(&pattern, &other).map_or(0, |common| entries(common, |_| true));
        let message = if shown > 0 {
            format!(
                "{} of `{}` {} kept apart by {owners}, and {} common to {in_common} from now on: \
                 `{name}` is granted `{}`",
                count(shown, "entry"),
                was.path.display(),
                either(shown, "was", "were"),
                either(shown, "is", "are"),
                now.path.display(),
            )
        } else if name == component && now.at == was.at {
            format!(
                "what a tool keeps at `{}` was kept apart by {owners}, and is common to \
                 {in_common} from now on: the path is `{}`",
                was.at,
                now.path.display(),
            )
        } else {
            return None;
        };
        let keep = format!("Grant `{}` to keep it apart", was.path.display());
        let key = format!("components.{name}.directories");
        Some(warning(key, format!("{message}. {keep}")))
    });
    opened.collect()
}

/// Returns the folder with content of owners that one who sees another folder whole sees.
fn common<'a>(was: &'a FolderPattern, now: &'a FolderPattern) -> Option<&'a Path> {
    if now.is_owned() {
        None
    } else if was.base.starts_with(&now.base) {
        Some(&was.base)
    } else {
        now.base.starts_with(&was.base).then_some(&now.base)
    }
}

/// Finds folders and buckets that all users share and write, of a host with more than one user.
pub(super) fn by_users(loaded: &Loaded, users: u64) -> Vec<Finding> {
    if users < 2 && loaded.config.server.identity.is_empty() {
        return Vec::new();
    }
    let found = loaded.config.components.iter().flat_map(|(name, config)| {
        let folders = config.directories.iter().enumerate();
        let folders = folders.filter_map(move |(index, folder)| {
            let pattern = FolderPattern::parse(&folder.path).ok()?;
            let is_shared = folder.access != Access::ReadOnly && !pattern.is_owned();
            let path = folder.path.display();
            is_shared.then(|| {
                let message = format!(
                    "all users share `{path}`, and calls for one of them change what others find; \
                     grant `{}` unless they are to share it",
                    folder.path.join("{user}").display()
                );
                warning(format!("components.{name}.directories[{index}]"), message)
            })
        });
        let buckets = config.key_value.iter().enumerate();
        let buckets = buckets.filter_map(move |(index, bucket)| {
            let is_shared =
                bucket.access != Access::ReadOnly && bucket.scope == BucketScope::Component;
            is_shared.then(|| {
                let message = format!(
                    "all users share the bucket `{}`, and calls for one of them change what others \
                     find; grant it with `scope = \"user\"` unless they are to share it",
                    bucket.bucket
                );
                warning(format!("components.{name}.keyValue[{index}]"), message)
            })
        });
        folders.chain(buckets)
    });
    found.collect()
}
