//! Content that a configuration leaves behind: keys and files that no grant leads to any more,
//! people whom no connector knows, and agents without a definition.
//!
//! A bucket goes by its component, its name and its scope, a folder by its path, and people and
//! agents by the names of their connector and their definition. Where one of them changes, the tool
//! begins with nothing, and what it kept stays where it was. Nothing is lost, and nobody finds it.

#[cfg(test)]
mod tests;

use super::document::Loaded;
use super::finding::{Finding, warning};
use super::shared;
use crate::answer::{list, number, text};
use crate::terminal::quoted;
use domain::grant::{BucketGrant, DirectoryGrant, FolderPattern, Grant, Segment};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use store::{Kept, KeptBucket, KeptConnector, KeptDefinition};

/// Entries of a folder that are counted.
const ENTRIES_MAX: usize = 1_000;

/// Grants by their components.
pub(crate) type Grants = BTreeMap<String, Grant>;

/// Names and grants that are in force while another configuration is looked at.
#[derive(Debug, Default)]
pub(crate) struct InForce {
    pub(crate) grants: Grants,
    /// The names of the connectors.
    pub(crate) connectors: BTreeSet<String>,
    /// The ids of the definitions.
    pub(crate) definitions: BTreeSet<String>,
}

/// Findings on what a configuration leaves behind, or shows to others than before.
#[derive(Debug, Default)]
pub(crate) struct LeftBehind {
    /// Effects of the change to it.
    pub(crate) by_change: Vec<Finding>,
    /// Facts that hold whether it changes anything or not.
    pub(crate) anyway: Vec<Finding>,
}

impl LeftBehind {
    pub(crate) fn all(self) -> Vec<Finding> {
        [self.by_change, self.anyway].concat()
    }
}

/// Finds the content that was reached by what is in force and is not by a configuration. Of a host
/// that is stopped it is not known what was in force: all that is kept counts.
pub(crate) fn left_behind(before: Option<&InForce>, after: &Loaded, kept: &Kept) -> LeftBehind {
    let mut left = LeftBehind::default();
    for bucket in &kept.buckets {
        let was_reached = before.is_none_or(|before| {
            let grant = before.grants.get(&bucket.component);
            grant.is_some_and(|grant| grant.key_value.iter().any(|it| is_of(bucket, it)))
        });
        left.tell(was_reached, unreached(bucket, after));
    }
    for connector in &kept.connectors {
        let was_there = before.is_none_or(|before| before.connectors.contains(&connector.name));
        left.tell(was_there, unheard(connector, after));
    }
    for definition in &kept.definitions {
        let is_lost = match before {
            Some(before) => before.definitions.contains(&definition.name),
            // It may have gone long ago. What is open says that it has not.
            None => definition.open_turns > 0,
        };
        if is_lost {
            left.by_change.extend(undefined(definition, after));
        }
    }
    match before {
        Some(before) => {
            let components = after.config.components.iter();
            let granted: Grants = components
                .map(|(name, component)| (name.clone(), component.grant(name, after.folder())))
                .collect();
            let opened = shared::opened(&before.grants, &granted);
            left.by_change.extend(opened);
            left.by_change
                .extend(folders_left(&before.grants, &granted));
        }
        None => left.by_change.extend(folders_of_nobody(after)),
    }
    left.anyway.extend(shared::by_users(after, kept.users));
    left
}

/// Reads what a running host says is kept.
pub(crate) fn kept_of(pending: &Value) -> Kept {
    let buckets = list(pending, "/kept/buckets").iter().filter_map(|it| {
        Some(KeptBucket {
            component: text(it, "/component").to_owned(),
            bucket: text(it, "/bucket").to_owned(),
            scope: serde_json::from_value(it.get("scope")?.clone()).ok()?,
            keys: number(it, "/keys"),
        })
    });
    let connectors = list(pending, "/kept/connectors").iter();
    let definitions = list(pending, "/kept/definitions").iter();
    Kept {
        buckets: buckets.collect(),
        connectors: connectors
            .map(|it| KeptConnector {
                name: text(it, "/name").to_owned(),
                keys: number(it, "/keys"),
            })
            .collect(),
        definitions: definitions
            .map(|it| KeptDefinition {
                name: text(it, "/name").to_owned(),
                agents: number(it, "/agents"),
                open_sessions: number(it, "/open_sessions"),
                open_turns: number(it, "/open_turns"),
            })
            .collect(),
        users: number(pending, "/kept/users"),
    }
}

impl LeftBehind {
    fn tell(&mut self, is_by_change: bool, finding: Option<Finding>) {
        match is_by_change {
            true => self.by_change.extend(finding),
            false => self.anyway.extend(finding),
        }
    }
}

fn is_of(kept: &KeptBucket, grant: &BucketGrant) -> bool {
    kept.bucket == grant.bucket && kept.scope == grant.scope
}

/// Finds a bucket to which no grant leads.
fn unreached(kept: &KeptBucket, after: &Loaded) -> Option<Finding> {
    let component = &kept.component;
    let why = match after.config.components.get(component) {
        None => format!(
            "content goes by the name of its component, and no entry of `components` is called \
             `{component}`"
        ),
        Some(now) if now.key_value.iter().any(|grant| is_of(kept, grant)) => return None,
        Some(now) => match now.key_value.iter().find(|it| it.bucket == kept.bucket) {
            Some(other) => format!(
                "the grant has the scope `{}`, under which the bucket begins empty",
                other.scope.as_str()
            ),
            None => format!("`{component}` is granted no bucket of that name"),
        },
    };
    let message = format!(
        "{} of the bucket `{}` of scope `{}` {}: {why}. No command moves {them}: grant {them} as \
         before, or have the tool write {them} again",
        count(kept.keys, "key"),
        kept.bucket,
        kept.scope.as_str(),
        either(kept.keys, "stays behind", "stay behind"),
        them = either(kept.keys, "it", "them"),
    );
    Some(warning(format!("components.{component}.keyValue"), message))
}

/// Finds people who are known by a connector that is not there.
fn unheard(kept: &KeptConnector, after: &Loaded) -> Option<Finding> {
    let KeptConnector { name, keys } = kept;
    let mut connectors = after.config.connectors.keys();
    if *keys == 0 || connectors.any(|it| it.as_str() == name) {
        return None;
    }
    let message = format!(
        "{} as `{name}:ID`, and no entry of `connectors` is called `{name}`: nobody hears them, \
         and by another name they are strangers. Keep the name, or bind each person anew with: \
         agent-host connector bind USER NAME:ID",
        either_with(*keys, "person is known", "people are known"),
    );
    Some(warning(format!("connectors.{name}"), message))
}

/// Finds agents whose definition is not there.
fn undefined(kept: &KeptDefinition, after: &Loaded) -> Option<Finding> {
    let KeptDefinition {
        name,
        agents,
        open_sessions,
        open_turns,
    } = kept;
    let mut definitions = after.config.agents.iter();
    if definitions.any(|it| it.agent_id.0 == *name) {
        return None;
    }
    let message = format!(
        "{} of this definition, with {} and {}, and no entry of `agents` has the `agentId` \
         `{name}`: they can be looked at and take no words (409 DEFINITION_GONE), and open turns \
         fail. Keep the `agentId`, or let the turns end before",
        either_with(*agents, "agent is", "agents are"),
        count(*open_sessions, "open session"),
        count(*open_turns, "open turn"),
    );
    Some(warning(format!("agents.{name}"), message))
}

/// Returns what folders that were granted before leave behind. Where another grant leads to a
/// folder, of whichever component, nothing of it does.
fn folders_left(before: &Grants, granted: &Grants) -> Vec<Finding> {
    let before = before.iter().flat_map(|(component, grant)| {
        let folders = grant.directories.iter();
        folders.map(move |was| (component, was))
    });
    let left = before.filter_map(|(component, was)| {
        let now = granted.get(component);
        let instead = now.and_then(|now| now.directories.iter().find(|it| it.at == was.at));
        // What a tool sees at the place is something else, even if the folder is elsewhere too.
        let leading: Vec<&DirectoryGrant> = match instead {
            Some(instead) => vec![instead],
            None => granted.values().flat_map(|it| &it.directories).collect(),
        };
        if leading.iter().any(|now| now.path == was.path) {
            return None;
        }
        let pattern = FolderPattern::parse(&was.path).ok()?;
        let patterns = leading.iter().map(|now| FolderPattern::parse(&now.path));
        let leading: Vec<FolderPattern> = patterns.filter_map(Result::ok).collect();
        let stays = |entry: &Path| !leading.iter().any(|now| finds(now, &pattern, entry));
        let number = entries(&pattern.base, stays);
        if number == 0 {
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
            "{} of `{}` {}: {why}",
            count(number, "entry"),
            was.path.display(),
            either(number, "stays behind", "stay behind"),
        );
        let key = format!("components.{component}.directories");
        Some(warning(key, message))
    });
    left.collect()
}

/// Returns whether an entry in the base of a folder that was granted is found by another grant: in
/// a folder around it, as the folder itself, or as that of an owner.
fn finds(now: &FolderPattern, was: &FolderPattern, entry: &Path) -> bool {
    let is_around = !now.is_owned() && was.is_owned() && was.base.starts_with(&now.base);
    let is_owners = match now.below.as_slice() {
        [Segment::Of(owner)] if !was.is_owned() && now.base == was.base => {
            let name = entry.file_name().and_then(|name| name.to_str());
            entry.is_dir() && name.is_some_and(|name| owner.can_own(name))
        }
        _ => false,
    };
    is_around || is_owners || now.base.starts_with(entry)
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
            "{} in `{}` {} found by nobody: each {} has a folder of its own in it; move {} into \
             those, such as: mv FILE {}",
            count(files, "file"),
            pattern.base.display(),
            either(files, "is", "are"),
            pattern.owners_text(),
            either(files, "it", "them"),
            quoted(&pattern.base.join("NAME")),
        )
    })
}

/// Counts the entries of a folder for which something holds.
pub(super) fn entries(folder: &Path, holds: impl Fn(&Path) -> bool) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = entries
        .take(ENTRIES_MAX)
        .filter(|entry| holds(&entry.path()));
    entries.count() as u64
}

/// Returns a number with what it counts.
pub(super) fn count(number: u64, what: &str) -> String {
    match (number, what) {
        (1, what) => format!("1 {what}"),
        (number, "entry") => format!("{number} entries"),
        (number, what) => format!("{number} {what}s"),
    }
}

/// Returns the words that go with one thing, or with several.
pub(super) fn either<'a>(number: u64, one: &'a str, several: &'a str) -> &'a str {
    match number {
        1 => one,
        _ => several,
    }
}

fn either_with(number: u64, one: &str, several: &str) -> String {
    format!("{number} {}", either(number, one, several))
}
