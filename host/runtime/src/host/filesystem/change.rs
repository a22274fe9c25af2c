//! Changes in a folder with patterns or a quota: each is charged, made, and given back as far as it
//! was not made, under the folder's lock.
//!
//! Every function waits for the disk and for others who change the same folder.

use super::account::{DEPTH_MAX, Sheet, bytes_of};
use super::failed::Failed;
use super::walk::ResolvedPath;
use crate::folders::file_id;
use domain::grant::FileId;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
    fchmod, fchown, fstat, ftruncate, linkat, mkdirat, openat, renameat, statat, symlinkat,
    unlinkat, utimensat,
};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, NewTimestamp};

/// The permissions of a new file, or folder, before the process's mask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);
/// The bits of a mode that say who may read, write and run.
const PERMISSIONS: Mode = Mode::from_raw_mode(0o777);

/// Returns the status of what a path leads to, of a link itself.
fn stat(resolved: &ResolvedPath) -> Result<Stat, Failed> {
    Ok(statat(
        &*resolved.dir,
        resolved.name()?,
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// Charges, makes, and gives back what could not be made.
fn charged<T>(
    sheet: &mut Sheet<'_>,
    bytes: u64,
    files: u64,
    make: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Failed> {
    sheet.charge(bytes, files)?;
    make().map_err(|error| {
        sheet.credit(bytes, files);
        error.into()
    })
}

/// A folder that is counted is not deeper than what is walked to count it.
fn countable(sheet: &Sheet<'_>, resolved: &ResolvedPath) -> Result<(), Failed> {
    if sheet.has_quota() && resolved.inside.depth() > DEPTH_MAX {
        Err(Failed::OverFiles)
    } else {
        Ok(())
    }
}

/// Makes a file, unless it is there and may be.
pub(super) fn create(
    sheet: &mut Sheet<'_>,
    resolved: &ResolvedPath,
    exclusive: bool,
) -> Result<(), Failed> {
    if resolved.must_be_folder {
        return Err(Failed::Code(ErrorCode::IsDirectory));
    }
    let name = resolved.name()?;
    if !exclusive && stat(resolved).is_ok() {
        return Ok(());
    }
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = charged(sheet, 0, 1, || openat(&*resolved.dir, name, how, FILE_MODE));
    match made {
        Err(Failed::Code(ErrorCode::Exist)) if !exclusive => Ok(()),
        made => made.map(drop),
    }
}

/// Takes everything out of a file. What is no file is left as it is.
pub(super) fn empty(sheet: &mut Sheet<'_>, resolved: &ResolvedPath) -> Result<(), Failed> {
    let found = stat(resolved)?;
    if is_folder(&found) {
        return Err(Failed::Code(ErrorCode::IsDirectory));
    }
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Ok(());
    }
    let how = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(&*resolved.dir, resolved.file_name()?, how, Mode::empty())?;
    resize(sheet, &File::from(file), 0)
}

/// Gives a file another length.
pub(super) fn resize(sheet: &mut Sheet<'_>, file: &File, size: u64) -> Result<(), Failed> {
    let length = bytes_of(&fstat(file)?);
    charged(sheet, size.saturating_sub(length), 0, || {
        ftruncate(file, size)
    })?;
    sheet.credit(length.saturating_sub(size), 0);
    Ok(())
}

/// Writes at an offset in a file, or at its end. Returns how much was written: some of it, not
/// always all.
pub(super) fn write(
    sheet: &mut Sheet<'_>,
    file: &File,
    at: Option<u64>,
    data: &[u8],
) -> Result<usize, Failed> {
    if data.is_empty() {
        return Ok(0);
    }
    let length = bytes_of(&fstat(file)?);
    let at = at.unwrap_or(length);
    let grown = |written: usize| at.saturating_add(written as u64).saturating_sub(length);
    let growth = grown(data.len());
    sheet.charge(growth, 0)?;
    let written = file.write_at(data, at);
    let used = written
        .as_ref()
        .map_or(0, |written| if *written == 0 { 0 } else { grown(*written) });
    sheet.credit(growth.saturating_sub(used), 0);
    Ok(written?)
}

pub(super) fn make_folder(sheet: &mut Sheet<'_>, resolved: &ResolvedPath) -> Result<(), Failed> {
    let name = resolved
        .name()
        .map_err(|_| Failed::Code(ErrorCode::Exist))?;
    countable(sheet, resolved)?;
    match charged(sheet, 0, 1, || mkdirat(&*resolved.dir, name, FOLDER_MODE)) {
        // A file that is not allowed is in the way, and not reported.
        Err(Failed::Code(ErrorCode::Exist))
            if !resolved.may_be_file() && !is_folder(&stat(resolved)?) =>
        {
            Err(Failed::Refused)
        }
        made => made,
    }
}

pub(super) fn remove_folder(sheet: &mut Sheet<'_>, resolved: &ResolvedPath) -> Result<(), Failed> {
    unlinkat(&*resolved.dir, resolved.name()?, AtFlags::REMOVEDIR)?;
    sheet.credit(0, 1);
    Ok(())
}

/// Removes a name of what is no folder.
pub(super) fn unlink(sheet: &mut Sheet<'_>, resolved: &ResolvedPath) -> Result<(), Failed> {
    let name = resolved.file_name()?;
    let found = stat(resolved)?;
    if is_folder(&found) {
        return Err(Failed::Code(ErrorCode::IsDirectory));
    }
    unlinkat(&*resolved.dir, name, AtFlags::empty())?;
    sheet.credit_gone(&found);
    Ok(())
}

/// Makes a link, which counts for the length of what it says.
pub(super) fn symlink(
    sheet: &mut Sheet<'_>,
    resolved: &ResolvedPath,
    target: &str,
) -> Result<(), Failed> {
    let name = resolved.file_name()?;
    if target.starts_with('/') {
        return Err(Failed::Refused);
    }
    charged(sheet, target.len() as u64, 1, || {
        symlinkat(target, &*resolved.dir, name)
    })
}

/// Gives a file another name beside the one that it has. Both are in one folder's account, so no
/// byte is written twice or uncounted.
pub(super) fn link(
    sheet: &mut Sheet<'_>,
    old: &ResolvedPath,
    new: &ResolvedPath,
) -> Result<(), Failed> {
    let from = old.file_name()?;
    let to = new.file_name()?;
    charged(sheet, 0, 1, || {
        linkat(&*old.dir, from, &*new.dir, to, AtFlags::empty())
    })
}

/// Moves something, over what may be there. A file that the call made itself has no permissions and
/// no owner that anybody chose: it takes over those of the file in whose place it comes.
pub(super) fn rename(
    sheet: &mut Sheet<'_>,
    old: &ResolvedPath,
    new: &ResolvedPath,
    is_made: impl FnOnce(FileId) -> bool,
) -> Result<(), Failed> {
    let from = old.name()?;
    let to = new.name()?;
    let moved = stat(old)?;
    // Paths in it would change, and with them what the patterns say of what is there.
    if is_folder(&moved) && (old.folder.grant.has_patterns() || new.folder.grant.has_patterns()) {
        return Err(Failed::Refused);
    }
    if !is_folder(&moved) && (old.must_be_folder || new.must_be_folder) {
        return Err(Failed::Code(ErrorCode::NotDirectory));
    }
    countable(sheet, new)?;
    let replaced = stat(new)
        .ok()
        .filter(|replaced| file_id(replaced) != file_id(&moved));
    if let Some(replaced) = &replaced
        && is_made(file_id(&moved))
    {
        take_over(old, &moved, replaced)?;
    }
    renameat(&*old.dir, from, &*new.dir, to)?;
    if let Some(replaced) = replaced {
        sheet.credit_gone(&replaced);
    }
    Ok(())
}

/// Gives what a path leads to other times, of a link itself.
pub(super) fn date(
    resolved: &ResolvedPath,
    accessed: NewTimestamp,
    modified: NewTimestamp,
) -> Result<(), Failed> {
    let times = Timestamps {
        last_access: timespec(accessed)?,
        last_modification: timespec(modified)?,
    };
    let dir = &*resolved.dir;
    Ok(utimensat(
        dir,
        resolved.path(),
        &times,
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

fn timespec(time: NewTimestamp) -> Result<Timespec, Failed> {
    let moment = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    Ok(match time {
        NewTimestamp::NoChange => moment(0, UTIME_OMIT),
        NewTimestamp::Now => moment(0, UTIME_NOW),
        NewTimestamp::Timestamp(time) => moment(
            i64::try_from(time.seconds).map_err(|_| Failed::Code(ErrorCode::Overflow))?,
            time.nanoseconds.into(),
        ),
    })
}

/// Gives a file the owner and the permissions of another. An owner that this process may not give
/// is left as it is. No program of the machine gets an owner's rights by it.
fn take_over(made: &ResolvedPath, moved: &Stat, replaced: &Stat) -> Result<(), Failed> {
    let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_file(moved) || !is_file(replaced) {
        return Ok(());
    }
    let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(&*made.dir, made.name()?, how, Mode::empty())?;
    if file_id(&fstat(&file)?) != file_id(moved) {
        return Ok(());
    }
    let owner = Uid::from_raw(replaced.st_uid);
    let group = Gid::from_raw(replaced.st_gid);
    if fchown(&file, Some(owner), Some(group)).is_err() {
        // The group at least may be one of this process's own.
        let _ = fchown(&file, None, Some(group));
    }
    let permissions = Mode::from_raw_mode(replaced.st_mode) & PERMISSIONS;
    Ok(fchmod(&file, permissions)?)
}
