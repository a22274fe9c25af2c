//! Granted folders with a separate folder for each user, agent or session.
//!
//! A placeholder in the path of a granted folder stands for the id of its owner. The path before
//! the first placeholder, the *base*, is one folder, which the operator makes. The rest is made for
//! each owner at the first call that uses it.

use crate::values::digest::Digest;
use crate::values::id::{AgentId, SessionId};
use crate::values::text::words;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// Bytes of a folder's name that is derived from an id. The names of longer ids are digests.
pub const OWNER_NAME_BYTES_MAX: usize = 200;

/// The kind of owner that a placeholder denotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The user for whom the turn acts.
    User,
    /// The agent that calls.
    Agent,
    /// Its session.
    Session,
}

words!(Owner {
    User = "user",
    Agent = "agent",
    Session = "session",
});

/// The user, the agent and the session of one call, by their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owners<'a> {
    /// The user; empty for a call without a user.
    pub user: &'a str,
    /// The agent.
    pub agent: &'a str,
    /// The session.
    pub session: &'a str,
}

/// One name in the path of a granted folder, from its first placeholder on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A folder of this name.
    Name(String),
    /// The folder of an owner.
    Of(Owner),
}

/// The path of a granted folder: the folder that exists when the host starts, and the names below
/// it that are made for each owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderPattern {
    /// The path before the first placeholder.
    pub base: PathBuf,
    /// The first placeholder and all names after it; empty in a path without placeholders.
    pub below: Vec<Segment>,
}

/// Reason why a path with placeholders is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// A word in braces that is no placeholder.
    #[error("`{{{0}}}` stands for nothing; known are {known}", known = known())]
    Unknown(String),
    /// A placeholder that is part of a name.
    #[error(
        "`{0}` is a placeholder within a name; a placeholder is a whole name in the path, such as \
         `work/{{user}}/notes`"
    )]
    Within(String),
    /// A placeholder that is there twice.
    #[error("`{{{0}}}` is there twice; name it once")]
    Twice(Owner),
    /// A placeholder without one of its braces.
    #[error("`{0}` lacks a brace; write `{{{1}}}`")]
    Unclosed(String, Owner),
    /// A step up behind a placeholder.
    #[error("`..` may not stand behind a placeholder; write the path without it")]
    Up,
}

/// A call without an owner of a kind that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the call has no {0}, and so no folder of one")]
pub struct Ownerless(pub Owner);

/// The relation of two folders below the same base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meeting {
    /// They are different folders for all owners.
    Apart,
    /// They are the same folder of the same owner.
    Same,
    /// The first is below the second.
    Inside,
    /// The second is below the first.
    Around,
    /// For different owners, they may be the same folder, or one may be inside the other.
    Unclear,
}

/// An owner's folder that a call used: the granted path, and the actual folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedFolder {
    /// The path at which the component sees it.
    pub at: String,
    /// The path as it is granted, with its placeholders.
    pub granted: String,
    /// The path of the folder.
    pub folder: String,
}

fn known() -> String {
    Owner::ALL.map(|owner| format!("`{{{owner}}}`")).join(", ")
}

impl Owner {
    /// Returns whether a folder of this name can be that of an owner: whether it is a result of
    /// [`owner_name`].
    #[must_use]
    pub fn can_own(self, name: &str) -> bool {
        if let Some(digest) = name.strip_prefix("%sha256-") {
            return Digest::from_hex(digest).is_some();
        }
        let Some(id) = id_of(name) else {
            return false;
        };
        let is_id = match self {
            Self::User => true,
            Self::Agent => id.parse::<AgentId>().is_ok(),
            Self::Session => id.parse::<SessionId>().is_ok(),
        };
        is_id && owner_name(&id).as_deref() == Some(name)
    }
}

impl Owners<'_> {
    fn id(&self, owner: Owner) -> &str {
        match owner {
            Owner::User => self.user,
            Owner::Agent => self.agent,
            Owner::Session => self.session,
        }
    }
}

impl FolderPattern {
    /// Reads the path of a granted folder.
    ///
    /// # Errors
    /// A word in braces is unknown, part of a name, repeated or incomplete, or is followed by a
    /// step up.
    pub fn parse(path: &Path) -> Result<Self, BadPattern> {
        let mut pattern = Self {
            base: PathBuf::new(),
            below: Vec::new(),
        };
        for component in path.components() {
            let owner = match component.as_os_str().to_str() {
                Some(name) => placeholder(name)?,
                None => None,
            };
            match (owner, component) {
                (Some(owner), _) => {
                    if pattern.below.contains(&Segment::Of(owner)) {
                        return Err(BadPattern::Twice(owner));
                    }
                    pattern.below.push(Segment::Of(owner));
                }
                (None, component) if pattern.below.is_empty() => pattern.base.push(component),
                (None, Component::ParentDir) => return Err(BadPattern::Up),
                (None, Component::CurDir) => {}
                (None, name) => {
                    let name = name.as_os_str().to_string_lossy().into_owned();
                    pattern.below.push(Segment::Name(name));
                }
            }
        }
        Ok(pattern)
    }

    /// Returns whether it has a separate folder for each owner.
    #[must_use]
    pub fn is_owned(&self) -> bool {
        !self.below.is_empty()
    }

    /// The names of these owners' folders below the base, from the outermost on.
    ///
    /// # Errors
    /// An owner of a kind that the path names is missing.
    pub fn names(&self, owners: Owners<'_>) -> Result<Vec<String>, Ownerless> {
        let name = |segment: &Segment| match segment {
            Segment::Name(name) => Ok(name.clone()),
            Segment::Of(owner) => owner_name(owners.id(*owner)).ok_or(Ownerless(*owner)),
        };
        self.below.iter().map(name).collect()
    }

    /// The kinds of owners that the path names, in order.
    pub fn owners(&self) -> impl Iterator<Item = Owner> {
        self.below.iter().filter_map(|segment| match segment {
            Segment::Of(owner) => Some(*owner),
            Segment::Name(_) => None,
        })
    }

    /// The owners of one folder for people: `user and session`. Empty without placeholders.
    #[must_use]
    pub fn owners_text(&self) -> String {
        let owners: Vec<&str> = self.owners().map(Owner::as_str).collect();
        owners.join(" and ")
    }
}

/// Reads one name of a path. None for a name without a word in braces.
fn placeholder(name: &str) -> Result<Option<Owner>, BadPattern> {
    let halves = [name.strip_prefix('{'), name.strip_suffix('}')];
    if let Some(owner) = halves.into_iter().flatten().find_map(Owner::from_word) {
        return Err(BadPattern::Unclosed(name.to_owned(), owner));
    }
    let Some((before, rest)) = name.split_once('{') else {
        return Ok(None);
    };
    let Some((word, after)) = rest.split_once('}') else {
        return Ok(None);
    };
    match Owner::from_word(word) {
        None => Err(BadPattern::Unknown(word.to_owned())),
        Some(_) if !before.is_empty() || !after.is_empty() => {
            Err(BadPattern::Within(name.to_owned()))
        }
        owner => Ok(owner),
    }
}

/// The name of an owner's folder. Different ids have different names, even on disks that ignore
/// case. No name is `.`, `..`, hidden or a path. None for an empty id.
///
/// The letters `a` to `z`, digits, `-`, `_`, `@`, and `.` between others stand for themselves. Each
/// other byte is a `%` and two hexadecimal digits. If that is longer than [`OWNER_NAME_BYTES_MAX`],
/// the name is `%sha256-` and the digest of the id, which is never the name of another id.
#[must_use]
pub fn owner_name(id: &str) -> Option<String> {
    let last = id.len().checked_sub(1)?;
    let mut name = String::new();
    for (at, byte) in id.bytes().enumerate() {
        let is_plain = match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'@' => true,
            b'.' => at > 0 && at < last,
            _ => false,
        };
        if is_plain {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    if name.len() > OWNER_NAME_BYTES_MAX {
        name = format!("%sha256-{}", Digest::of(id.as_bytes()).hex());
    }
    Some(name)
}

/// Reads an id from the name that [`owner_name`] made of it. None for any other name.
fn id_of(name: &str) -> Option<String> {
    let mut parts = name.split('%');
    let mut id = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (byte, rest) = part.split_at_checked(2)?;
        id.push(u8::from_str_radix(byte, 16).ok()?);
        id.extend(rest.as_bytes());
    }
    String::from_utf8(id).ok()
}

/// Returns the relation of two folders below the same base. Names that differ only in letter case
/// may be one folder.
#[must_use]
pub fn meeting(one: &[Segment], other: &[Segment]) -> Meeting {
    for pair in one.iter().zip(other) {
        match pair {
            (one, other) if one == other => {}
            (Segment::Name(one), Segment::Name(other)) if !one.eq_ignore_ascii_case(other) => {
                return Meeting::Apart;
            }
            _ => return Meeting::Unclear,
        }
    }
    match one.len().cmp(&other.len()) {
        std::cmp::Ordering::Equal => Meeting::Same,
        std::cmp::Ordering::Greater => Meeting::Inside,
        std::cmp::Ordering::Less => Meeting::Around,
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Of(owner) => write!(f, "{{{owner}}}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn parsed(path: &str) -> FolderPattern {
        FolderPattern::parse(Path::new(path)).unwrap()
    }

    fn reported(path: &str) -> String {
        FolderPattern::parse(Path::new(path))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_path_is_a_base_and_what_each_owner_has_below_it() {
        let plain = parsed("/srv/work/../notes");
        assert_eq!(plain.base, Path::new("/srv/work/../notes"));
        assert!(!plain.is_owned());
        let owned = parsed("/srv/work/{user}/./notes/{session}");
        assert_eq!(owned.base, Path::new("/srv/work"));
        let below: Vec<String> = owned.below.iter().map(ToString::to_string).collect();
        assert_eq!(below, ["{user}", "notes", "{session}"]);
        assert_eq!(owned.owners_text(), "user and session");
        let owners = Owners {
            user: "Ann",
            agent: "a",
            session: "s-1",
        };
        assert_eq!(owned.names(owners).unwrap(), ["%41nn", "notes", "s-1"]);
        let nobody = Owners { user: "", ..owners };
        assert_eq!(owned.names(nobody), Err(Ownerless(Owner::User)));
        // A brace that is not closed is a letter like others.
        assert!(!parsed("/srv/{work").is_owned() && !parsed("/srv/work}").is_owned());
    }

    #[test]
    fn a_word_in_braces_that_is_no_placeholder_is_refused_with_the_known_ones() {
        for (path, expected) in [
            ("/w/{usr}", "`{usr}` stands for nothing"),
            ("/w/{User}", "known are `{user}`, `{agent}`, `{session}`"),
            ("/w/{}", "`{}` stands for nothing"),
            ("/w/a-{user}", "`a-{user}` is a placeholder within a name"),
            ("/w/{user}{agent}", "is a placeholder within a name"),
            ("/w/{user}/{user}", "`{user}` is there twice"),
            ("/w/{user", "`{user` lacks a brace; write `{user}`"),
            ("/w/agent}/x", "`agent}` lacks a brace; write `{agent}`"),
            ("/w/{user}/../x", "`..` may not stand behind a placeholder"),
        ] {
            let reported = reported(path);
            assert!(reported.contains(expected), "{path}: {reported}");
        }
    }

    #[test]
    fn a_folder_is_an_owners_if_an_id_has_its_name() {
        let agent = "0b2c7c1e-7d3a-4a5e-9d3e-2f3a1c4b5d6e";
        for (owner, name, is_owned) in [
            (Owner::User, "bob", true),
            (Owner::User, "%41nn", true),
            (Owner::User, "a.b@c-d_9", true),
            (Owner::User, "Bob", false),
            (Owner::User, ".git", false),
            (Owner::User, "%61nn", false),
            (Owner::User, "%4", false),
            (Owner::User, "two words", false),
            (Owner::User, "", false),
            (Owner::Agent, agent, true),
            (Owner::Session, agent, true),
            (Owner::Agent, "archive", false),
        ] {
            assert_eq!(owner.can_own(name), is_owned, "{owner} {name}");
        }
        let long = owner_name(&"x".repeat(OWNER_NAME_BYTES_MAX + 1)).unwrap();
        assert!(Owner::User.can_own(&long) && !Owner::User.can_own("%sha256-1"));
    }

    #[test]
    fn names_of_ids_neither_escape_nor_collide_nor_hide() {
        for (id, name) in [
            ("local", "local"),
            ("a.b@c-d_9", "a.b@c-d_9"),
            (".", "%2e"),
            ("..", "%2e%2e"),
            (".ssh", "%2essh"),
            ("a.", "a%2e"),
            ("a/../b", "a%2f..%2fb"),
            ("Alice", "%41lice"),
            ("%41lice", "%2541lice"),
            ("ä", "%c3%a4"),
            ("a\0b", "a%00b"),
            ("a b\n", "a%20b%0a"),
        ] {
            assert_eq!(owner_name(id).unwrap(), name, "{id:?}");
        }
        assert_eq!(owner_name(""), None);
        let long = owner_name(&"x".repeat(OWNER_NAME_BYTES_MAX + 1)).unwrap();
        assert!(long.starts_with("%sha256-") && long.len() == 72, "{long}");
        assert_ne!(owner_name(&long).unwrap(), long);
        assert_eq!(
            owner_name(&"x".repeat(OWNER_NAME_BYTES_MAX)).unwrap().len(),
            OWNER_NAME_BYTES_MAX
        );
    }

    proptest! {
        #[test]
        fn any_ids_get_names_of_their_own_that_are_single_names(ids in prop::collection::btree_set(".{1,80}|[a-cA-C.%/]{1,6}", 1..20)) {
            let names: BTreeSet<String> = ids
                .iter()
                .map(|id| owner_name(id).unwrap().to_ascii_uppercase())
                .collect();
            prop_assert_eq!(names.len(), ids.len(), "letters of both cases are one here");
            for name in names {
                prop_assert!(!name.starts_with('.') && !name.contains('/') && !name.contains('\0'));
                prop_assert!(name.is_ascii() && (1..=OWNER_NAME_BYTES_MAX).contains(&name.len()));
            }
        }
    }

    #[test]
    fn two_folders_below_one_base_are_apart_alike_or_unclear() {
        for (one, other, expected) in [
            ("{user}", "{user}", Meeting::Same),
            ("{user}/a", "{user}/b", Meeting::Apart),
            ("{user}/a", "{user}/A", Meeting::Unclear),
            ("{user}/a", "{user}", Meeting::Inside),
            ("{user}", "{user}/a", Meeting::Around),
            ("{user}", "{agent}", Meeting::Unclear),
            ("{user}/{session}", "{user}/notes", Meeting::Unclear),
            ("{user}/a", "{session}/b", Meeting::Unclear),
        ] {
            let [one, other] = [one, other].map(|below| parsed(&format!("/w/{below}")).below);
            assert_eq!(meeting(&one, &other), expected, "{one:?} {other:?}");
        }
    }
}
