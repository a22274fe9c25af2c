//! Opening files and folders, and nothing else that has a name: opening a pipe, a socket or a
//! device may wait for ever, or do something.
//!
//! A file is looked at before it is opened, it is opened without waiting, and looked at
//! again once it is open: between the two another may have taken its name.

use super::failed::Failed;
use super::walk::Last;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::sync::Arc;
use wasmtime_wasi::filesystem::{self, Descriptor};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};
use wasmtime_wasi::{FsPerms, OpenMode};

/// The permissions of a new file before the process's mask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);

/// The way in which a file or folder is to be opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenRequest {
    pub(super) how: OpenFlags,
    pub(super) what: DescriptorFlags,
    pub(super) last: Last,
}

/// A file or a folder that was opened.
pub(super) enum Thing {
    File(File),
    Folder(File),
}

impl OpenRequest {
    /// Looks for what contradicts itself, or is not offered.
    ///
    /// # Errors
    /// There is such a thing.
    pub(super) fn check(self) -> Result<(), Failed> {
        let Self { how, what, .. } = self;
        let synchronous = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if what.intersects(synchronous) {
            return Err(Failed::Code(ErrorCode::Unsupported));
        }
        let changing = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
        if how.contains(OpenFlags::DIRECTORY) && how.intersects(changing) {
            return Err(Failed::Code(ErrorCode::Invalid));
        }
        Ok(())
    }

    /// The flags for the machine.
    fn flags(self) -> OFlags {
        let Self { how, last, .. } = self;
        let mode = self.mode();
        let mut flags = match (
            mode.contains(OpenMode::READ),
            mode.contains(OpenMode::WRITE),
        ) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (true, false) | (false, false) => OFlags::RDONLY,
        };
        flags |= OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let exclusive = how.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE);
        for (asked, flag) in [
            (how.contains(OpenFlags::CREATE), OFlags::CREATE),
            (exclusive, OFlags::EXCL),
            // What is made anew is empty.
            (
                how.contains(OpenFlags::TRUNCATE) && !exclusive,
                OFlags::TRUNC,
            ),
            (how.contains(OpenFlags::DIRECTORY), OFlags::DIRECTORY),
            (last != Last::Followed, OFlags::NOFOLLOW),
        ] {
            flags.set(flag, asked);
        }
        flags
    }

    /// The same, for cap-std.
    fn options(self) -> OpenOptions {
        let mode = self.mode();
        let mut options = OpenOptions::new();
        options
            .read(mode.contains(OpenMode::READ))
            .write(mode.contains(OpenMode::WRITE))
            .custom_flags(self.flags().bits().cast_signed());
        options
    }

    /// Returns the allowed access to what is opened: to read, when nothing is said.
    fn mode(self) -> OpenMode {
        let Self { how, what, .. } = self;
        let writes = what.contains(DescriptorFlags::WRITE);
        let mut mode = OpenMode::empty();
        mode.set(
            OpenMode::READ,
            what.contains(DescriptorFlags::READ) || !writes,
        );
        mode.set(
            OpenMode::WRITE,
            writes || how.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE),
        );
        mode
    }
}

impl Thing {
    /// As the guest has it.
    pub(super) fn into_descriptor(self, permissions: FsPerms, request: OpenRequest) -> Descriptor {
        let mode = request.mode();
        match self {
            Self::File(file) => {
                Descriptor::File(filesystem::File::new(file, permissions, mode, false))
            }
            Self::Folder(folder) => {
                Descriptor::Dir(filesystem::Dir::new(folder, permissions, mode, false))
            }
        }
    }
}

/// Opens where a path leads beneath a folder. Waits for the disk.
///
/// # Errors
/// It leads out of the folder, or to what is neither file nor folder; and whatever the machine
/// says.
pub(super) fn beneath(dir: &File, path: &str, request: OpenRequest) -> Result<Thing, Failed> {
    request.check()?;
    let dir = Dir::from_std_file(dir.try_clone()?);
    let found = match request.last {
        Last::Followed => dir.metadata(path),
        Last::Name | Last::Thing => dir.symlink_metadata(path),
    };
    match found {
        // A link is what the machine says of it when it is opened.
        Ok(found) if found.is_file() || found.is_dir() || found.is_symlink() => {}
        Ok(_) => return Err(Failed::Refused),
        Err(error) if is_missing(&error) && request.how.contains(OpenFlags::CREATE) => {}
        Err(error) => return Err(escaped(error)),
    }
    let opened = dir.open_with(path, &request.options());
    checked(opened.map_err(escaped)?.into_std())
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// A path that leads out is an error of cap-std's own, not the machine's.
fn escaped(error: io::Error) -> Failed {
    match Errno::from_io_error(&error) {
        Some(error) => refused(error),
        None if error.kind() == io::ErrorKind::PermissionDenied => Failed::Refused,
        None => error.into(),
    }
}

/// Opens what has a name in a folder, and follows no link. Waits for the disk.
///
/// # Errors
/// As for [`beneath`].
pub(super) fn named(dir: &Arc<File>, name: &str, request: OpenRequest) -> Result<Thing, Failed> {
    let flags = request.flags() | OFlags::NOFOLLOW;
    match rustix::fs::statat(&**dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => may_be_opened(FileType::from_raw_mode(found.st_mode))?,
        Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {}
        Err(error) => return Err(error.into()),
    }
    checked(
        openat(&**dir, name, flags, FILE_MODE)
            .map_err(refused)?
            .into(),
    )
}

/// A link is what the machine says of it when it is opened.
fn may_be_opened(kind: FileType) -> Result<(), Failed> {
    match kind {
        FileType::RegularFile | FileType::Directory | FileType::Symlink => Ok(()),
        _ => Err(Failed::Refused),
    }
}

fn checked(opened: File) -> Result<Thing, Failed> {
    match FileType::from_raw_mode(fstat(&opened)?.st_mode) {
        FileType::RegularFile => Ok(Thing::File(opened)),
        FileType::Directory => Ok(Thing::Folder(opened)),
        _ => Err(Failed::Refused),
    }
}

fn refused(error: Errno) -> Failed {
    match error {
        // A path that leads out; a pipe without a reader, a socket, a device that is not there.
        Errno::XDEV | Errno::NXIO | Errno::NODEV => Failed::Refused,
        error => error.into(),
    }
}
