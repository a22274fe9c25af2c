//! Places of granted folders, and the rule against folders inside the part that a guest can write.
//!
//! A path is a chain of names. A program with write access to one of the folders on it decides
//! where the path leads the next time. So a granted folder, or a file of the host's, is never
//! reached through a folder that a component may write. Folders are compared by identity and not by
//! name: another mount of a folder, and a link to it, are the same folder.

use super::Access;
use super::owned::{Meeting, Segment, meeting};
use std::collections::BTreeSet;

/// A folder or file of this machine, by identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The device that it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// The folders through which a path leads to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FolderChain {
    /// Every folder in which a name of the path, or of a link on it, is looked up. All folders that
    /// contain the end are among them.
    pub through: BTreeSet<FileId>,
    /// The end; none while it does not exist.
    pub end: Option<FileId>,
}

/// A granted folder and the path to it.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    /// Access to the folder.
    pub access: Access,
    /// The path to it, or to the base of the owners' folders.
    pub chain: &'a FolderChain,
    /// The names of each owner below the base; empty without placeholders.
    pub below: &'a [Segment],
}

/// Two granted folders, by their places in a list, that may not both be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nested {
    /// The folder whose path others can redirect, or that can be an owner's folder of the other.
    pub inner: usize,
    /// The folder in which they are nested.
    pub outer: usize,
    /// The kind of nesting of the two.
    pub how: Nesting,
}

/// The kind of nesting of two granted folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nesting {
    /// The inner one is reached through the outer one, which may be written.
    Through,
    /// The inner one is at a place of owners' folders, and can be one of them.
    Owned,
}

impl FolderChain {
    /// Returns whether it leads through a folder, whose content then decides where it ends.
    #[must_use]
    pub fn passes(&self, folder: FileId) -> bool {
        self.through.contains(&folder)
    }

    /// Returns whether it leads to a folder or through it.
    #[must_use]
    pub fn meets(&self, folder: FileId) -> bool {
        self.end == Some(folder) || self.passes(folder)
    }

    /// Returns whether the ends of two chains are one folder, or one is reached through the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.end.is_some_and(|end| other.meets(end)) || other.end.is_some_and(|end| self.meets(end))
    }
}

/// The folders that are reached through a writable one, and those that can be an owner's folder of
/// another grant, across all components. Equal folders are not nested: no name that a guest can
/// change leads to them.
#[must_use]
pub fn nested(granted: &[Placed<'_>]) -> Vec<Nested> {
    let mut found = Vec::new();
    for (inner, placed) in granted.iter().enumerate() {
        let mut others = granted.iter().enumerate();
        found.extend(others.find_map(|(outer, other)| {
            let how = (inner != outer).then(|| placed.nesting(other))??;
            // Two that can each be the other's are reported once.
            let is_reported = inner < outer && other.nesting(placed) == Some(how);
            (!is_reported).then_some(Nested { inner, outer, how })
        }));
    }
    found
}

impl Placed<'_> {
    /// Returns how it is nested within another folder; none if it is not.
    fn nesting(&self, outer: &Self) -> Option<Nesting> {
        let end = outer.chain.end?;
        let is_written = outer.access == Access::ReadWrite;
        let is_there = self.chain.end == Some(end);
        if outer.below.is_empty() {
            let is_within = self.chain.passes(end) || (is_there && !self.below.is_empty());
            return (is_written && is_within).then_some(Nesting::Through);
        }
        // Any name below the base can be an owner's.
        if self.chain.passes(end) {
            return Some(Nesting::Owned);
        }
        if !is_there || self.below.is_empty() {
            return None;
        }
        match meeting(self.below, outer.below) {
            Meeting::Unclear => Some(Nesting::Owned),
            Meeting::Inside if is_written => Some(Nesting::Through),
            Meeting::Inside | Meeting::Apart | Meeting::Same | Meeting::Around => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::grant::FolderPattern;

    fn id(inode: u64) -> FileId {
        FileId { device: 1, inode }
    }

    /// A chain through these folders to the last of them.
    fn chain(way: &[u64]) -> FolderChain {
        let (end, through) = way.split_last().unwrap();
        FolderChain {
            through: through.iter().copied().map(id).collect(),
            end: Some(id(*end)),
        }
    }

    #[test]
    fn a_folder_below_a_writable_one_is_nested_whoever_has_either() {
        let read = Access::ReadOnly;
        let write = Access::ReadWrite;
        let how = Nesting::Through;
        let pair = |inner, outer| vec![Nested { inner, outer, how }];
        for (one, other, expected) in [
            ((write, &[0, 1][..]), (read, &[0, 1, 2][..]), pair(1, 0)),
            ((write, &[0, 1]), (write, &[0, 1, 2, 3]), pair(1, 0)),
            ((read, &[0, 1, 2]), (write, &[0, 1]), pair(0, 1)),
            // No path can be changed within a folder that is only read.
            ((read, &[0, 1]), (write, &[0, 1, 2]), vec![]),
            ((read, &[0, 1]), (read, &[0, 1, 2]), vec![]),
            // The same folder twice, and by another mount.
            ((write, &[0, 1]), (write, &[0, 1]), vec![]),
            ((write, &[0, 1]), (read, &[0, 7, 1]), vec![]),
            // By a link that lies in what may be written, and leads out of it.
            ((write, &[0, 1]), (read, &[0, 1, 5, 6]), pair(1, 0)),
            ((write, &[0, 1]), (write, &[0, 2]), vec![]),
        ] {
            let chains = [chain(one.1), chain(other.1)];
            let [one_chain, other_chain] = &chains;
            let placed = [
                Placed {
                    access: one.0,
                    chain: one_chain,
                    below: &[],
                },
                Placed {
                    access: other.0,
                    chain: other_chain,
                    below: &[],
                },
            ];
            assert_eq!(nested(&placed), expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_folder_that_can_be_an_owners_is_nested_in_what_owners_have() {
        let read = Access::ReadOnly;
        let write = Access::ReadWrite;
        let base = &[0, 1][..];
        for (one, other, expected) in [
            // Different owners of the same folder: a user can be named like a session.
            (
                (read, base, "{user}"),
                (read, base, "{session}"),
                Some(Nesting::Owned),
            ),
            (
                (read, base, "{user}/a"),
                (write, base, "{agent}/b"),
                Some(Nesting::Owned),
            ),
            ((read, base, "{user}"), (write, base, "{user}"), None),
            ((read, base, "{user}/a"), (write, base, "{user}/b"), None),
            ((read, base, "{user}/a"), (read, base, "{user}"), None),
            (
                (read, base, "{user}/a"),
                (write, base, "{user}"),
                Some(Nesting::Through),
            ),
            // A folder below the base has a name that an owner can have.
            (
                (read, &[0, 1, 2], ""),
                (read, base, "{user}"),
                Some(Nesting::Owned),
            ),
            (
                (read, &[0, 1, 2], "{user}"),
                (read, base, "{user}"),
                Some(Nesting::Owned),
            ),
            // The base itself, or what holds it.
            (
                (read, base, "{user}"),
                (write, base, ""),
                Some(Nesting::Through),
            ),
            ((write, base, "{user}"), (read, base, ""), None),
            (
                (read, base, "{user}"),
                (write, &[0], ""),
                Some(Nesting::Through),
            ),
            (
                (read, &[0, 1], "{user}"),
                (write, &[0, 2], "{session}"),
                None,
            ),
        ] {
            let chains = [chain(one.1), chain(other.1)];
            let below = [one.2, other.2].map(|below| {
                let path = format!("/w/{below}");
                FolderPattern::parse(path.as_ref()).unwrap().below
            });
            let [one_chain, other_chain] = &chains;
            let [one_below, other_below] = &below;
            let placed = [
                Placed {
                    access: one.0,
                    chain: one_chain,
                    below: one_below,
                },
                Placed {
                    access: other.0,
                    chain: other_chain,
                    below: other_below,
                },
            ];
            let [first, second] = placed;
            assert_eq!(first.nesting(&second), expected, "{one:?} {other:?}");
            assert_eq!(
                nested(&placed).is_empty(),
                expected.is_none(),
                "{one:?} {other:?}"
            );
        }
    }

    #[test]
    fn folders_overlap_if_one_holds_the_other_or_both_are_one() {
        for (one, other, expected) in [
            (&[0, 1][..], &[0, 1, 2][..], true),
            (&[0, 1, 2], &[0, 1], true),
            (&[0, 1], &[0, 3, 1], true),
            (&[0, 1], &[0, 2], false),
        ] {
            assert_eq!(
                chain(one).overlaps(&chain(other)),
                expected,
                "{one:?} {other:?}"
            );
        }
        let nowhere = FolderChain {
            end: None,
            ..chain(&[0, 1, 2])
        };
        assert!(
            nowhere.overlaps(&chain(&[0, 1])),
            "what is not there yet would be made in it"
        );
        assert!(!nowhere.overlaps(&chain(&[0, 3])) && !nowhere.overlaps(&nowhere.clone()));
    }
}
