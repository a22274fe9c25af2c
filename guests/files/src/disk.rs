//! The entries of a folder in which a name is no text, and the number of names of a file: the
//! standard library says neither.

use std::io;
use std::path::Path;

/// Something in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    File,
    Link,
    /// A pipe, say.
    Other,
}

#[cfg(target_os = "wasi")]
pub(crate) use sandboxed::{entries, names};

#[cfg(not(target_os = "wasi"))]
pub(crate) use native::{entries, names};

#[cfg(target_os = "wasi")]
mod sandboxed {
    use super::{Entry, Kind, Path, io};
    use wasip2::filesystem::preopens::get_directories;
    use wasip2::filesystem::types::{
        Descriptor, DescriptorFlags, DescriptorType, ErrorCode, OpenFlags, PathFlags,
    };

    /// Shows the entries of a folder to a visitor until it returns false, in the disk's order. Of a
    /// name that is no text there is none.
    pub(crate) fn entries(
        folder: &Path,
        mut visit: impl FnMut(Option<Entry>) -> bool,
    ) -> io::Result<()> {
        // Says what is wrong in the words of the standard library, which itself fails to read a
        // folder with a name that is no text.
        if !std::fs::metadata(folder)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let (root, path) = granted(folder)?;
        let folder = root
            .open_at(
                PathFlags::SYMLINK_FOLLOW,
                &path,
                OpenFlags::DIRECTORY,
                DescriptorFlags::READ,
            )
            .map_err(failed)?;
        let listing = folder.read_directory().map_err(failed)?;
        loop {
            let entry = match listing.read_directory_entry() {
                Ok(None) => return Ok(()),
                Ok(Some(entry)) => Some(Entry {
                    name: entry.name,
                    kind: match entry.type_ {
                        DescriptorType::Directory => Kind::Folder,
                        DescriptorType::RegularFile => Kind::File,
                        DescriptorType::SymbolicLink => Kind::Link,
                        _ => Kind::Other,
                    },
                }),
                // It went while the folder was read.
                Err(ErrorCode::NoEntry) => continue,
                // Nothing more is known of this one; the others follow.
                Err(_) => None,
            };
            if !visit(entry) {
                return Ok(());
            }
        }
    }

    /// Returns the number of names that a file has.
    pub(crate) fn names(file: &Path) -> io::Result<u64> {
        let (root, path) = granted(file)?;
        let stat = root.stat_at(PathFlags::empty(), &path).map_err(failed)?;
        Ok(stat.link_count)
    }

    /// The granted folder of a path, and the path in it.
    fn granted(path: &Path) -> io::Result<(Descriptor, String)> {
        for (root, at) in get_directories() {
            if let Ok(inside) = path.strip_prefix(&at) {
                let inside = inside.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
                let inside = if inside.is_empty() { "." } else { inside };
                return Ok((root, inside.to_owned()));
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    fn failed(error: ErrorCode) -> io::Error {
        io::Error::other(error.name().to_owned())
    }
}

#[cfg(not(target_os = "wasi"))]
mod native {
    use super::{Entry, Kind, Path, io};
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    pub(crate) fn entries(
        folder: &Path,
        mut visit: impl FnMut(Option<Entry>) -> bool,
    ) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = match entry.file_type()? {
                kind if kind.is_dir() => Kind::Folder,
                kind if kind.is_file() => Kind::File,
                kind if kind.is_symlink() => Kind::Link,
                _ => Kind::Other,
            };
            let entry = entry.file_name().into_string().ok();
            if !visit(entry.map(|name| Entry { name, kind })) {
                return Ok(());
            }
        }
        Ok(())
    }

    pub(crate) fn names(file: &Path) -> io::Result<u64> {
        Ok(fs::symlink_metadata(file)?.nlink())
    }
}
