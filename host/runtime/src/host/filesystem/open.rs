//! Opening files and folders, and nothing else that has a name: opening a pipe, a socket or a
//! device may wait for ever, or do something.
//!
//! A file is looked at before it is opened, it is opened without waiting, and looked at
//! again once it is open: between the two another may have taken its name.

use super::failed::Failed;
use super::walk::{Last, Start};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::fs::File;
use std::sync::Arc;
use wasmtime_wasi::filesystem::{self, Descriptor};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};
use wasmtime_wasi::{FsPerms, OpenMode};

/// The permissions of a new file before the process's mask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// Attempts at a path while others rename what is on it.
#[cfg(target_os = "linux")]
const ATTEMPTS_MAX: usize = 4;

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
pub(super) fn beneath(start: Start, path: &str, request: OpenRequest) -> Result<Thing, Failed> {
    request.check()?;
    let flags = request.flags();
    #[cfg(target_os = "linux")]
    if let Some(opened) = kernel::opened(&start.dir, path, flags)? {
        return checked(opened);
    }
    let resolved = start.walk(path, request.last)?;
    if resolved.must_be_folder && flags.contains(OFlags::CREATE) {
        return Err(Failed::Code(ErrorCode::IsDirectory));
    }
    named(&resolved.dir, &resolved.path(), request)
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

/// Paths that the kernel resolves beneath a folder.
#[cfg(target_os = "linux")]
mod kernel {
    use super::{
        ATTEMPTS_MAX, Errno, FILE_MODE, Failed, File, FileType, Mode, OFlags, fstat, may_be_opened,
        refused,
    };
    use rustix::fs::{ResolveFlags, openat2};
    use std::ffi::CString;
    use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

    /// Opens the file or folder at a path. None where the kernel does not do this, or others rename
    /// for too long.
    pub(super) fn opened(dir: &File, path: &str, flags: OFlags) -> Result<Option<File>, Failed> {
        let path = CString::new(path).map_err(|_| Failed::Code(ErrorCode::Invalid))?;
        let looking =
            (flags & (OFlags::NOFOLLOW | OFlags::DIRECTORY)) | OFlags::PATH | OFlags::CLOEXEC;
        match resolved(dir, &path, looking, Mode::empty()) {
            Ok(Some(found)) => may_be_opened(FileType::from_raw_mode(fstat(&found)?.st_mode))?,
            Ok(None) => return Ok(None),
            Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {}
            Err(error) => return Err(refused(error)),
        }
        let mode = if flags.contains(OFlags::CREATE) {
            FILE_MODE
        } else {
            Mode::empty()
        };
        resolved(dir, &path, flags, mode).map_err(refused)
    }

    fn resolved(
        dir: &File,
        path: &CString,
        flags: OFlags,
        mode: Mode,
    ) -> Result<Option<File>, Errno> {
        for _ in 0..ATTEMPTS_MAX {
            match openat2(
                dir,
                path.as_c_str(),
                flags,
                mode,
                ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
            ) {
                Ok(opened) => return Ok(Some(opened.into())),
                Err(Errno::AGAIN) => {}
                // Some confinements say that it is not permitted when they do not know it.
                Err(Errno::NOSYS | Errno::PERM) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}
