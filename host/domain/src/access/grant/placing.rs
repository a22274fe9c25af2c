//! Places of granted folders, and what may not be within the part that a guest can write.
//!
//! A path is a chain of names. A program that may write in one of the folders in which a name is
//! looked up decides where the path leads the next time. So a granted folder, or anything of the
//! host's, is never reached through a folder that a component may write. Folders are told apart by
//! what they are and not by their names: another mount of a folder, and a link to it, are the same
//! folder.

use super::Access;
use std::collections::BTreeSet;

/// A folder or file of this machine, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The device that it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// The way by which a path leads to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FolderChain {
    /// Every folder in which a name of the path, or of a link on it, is looked up. All folders that
    /// hold the end are among them.
    pub through: BTreeSet<FileId>,
    /// The end; none while nothing is there.
    pub end: Option<FileId>,
}

/// A granted folder and the way to it.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    /// Access to the folder.
    pub access: Access,
    /// The way to it.
    pub chain: &'a FolderChain,
}

/// Two of a list of granted folders, by their places in the list. The inner one is reached through
/// the outer one, which may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nested {
    /// The folder whose path others can turn elsewhere.
    pub inner: usize,
    /// The folder in which they can.
    pub outer: usize,
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

/// The folders that are reached through one that may be written, whichever components they are
/// granted to. Equal folders are not nested: no name that a guest can change leads to them.
#[must_use]
pub fn nested(granted: &[Placed<'_>]) -> Vec<Nested> {
    let mut found = Vec::new();
    for (inner, placed) in granted.iter().enumerate() {
        let writable = |other: &Placed<'_>| {
            (other.access == Access::ReadWrite)
                .then_some(other.chain.end)
                .flatten()
        };
        let outer = granted
            .iter()
            .position(|other| writable(other).is_some_and(|end| placed.chain.passes(end)));
        found.extend(outer.map(|outer| Nested { inner, outer }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let pair = |inner, outer| vec![Nested { inner, outer }];
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
                },
                Placed {
                    access: other.0,
                    chain: other_chain,
                },
            ];
            assert_eq!(nested(&placed), expected, "{one:?} {other:?}");
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
