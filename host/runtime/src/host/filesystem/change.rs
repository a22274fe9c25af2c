//! Changes in a folder with patterns or a quota: each is charged, made, and given back as far as it
//! was not made, under the folder's lock.
//!
//! Every function waits for the disk and for others who change the same folder.

use super::account::{DEPTH_MAX, Sheet, bytes_of};
use super::failed::Failed;
use super::walk::Place;
use crate::folders::file_id;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fstat, ftruncate, linkat, mkdirat, openat, renameat,
    statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// The permissions of a new file, or folder, before the process's mask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

/// Returns the status of a place itself, also when it is a link.
fn stat(place: &Place) -> Result<Stat, Failed> {
    Ok(statat(
        &*place.dir,
        place.name()?,
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
fn countable(sheet: &Sheet<'_>, place: &Place) -> Result<(), Failed> {
    if sheet.has_quota() && place.inside.depth() > DEPTH_MAX {
        Err(Failed::OverFiles)
    } else {
        Ok(())
    }
}

/// Makes a file, unless it is there and may be.
pub(super) fn create(sheet: &mut Sheet<'_>, place: &Place, exclusive: bool) -> Result<(), Failed> {
    if place.must_be_folder {
        return Err(Failed::Code(ErrorCode::IsDirectory));
    }
    let name = place.name()?;
    if !exclusive && stat(place).is_ok() {
        return Ok(());
    }
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = charged(sheet, 0, 1, || openat(&*place.dir, name, how, FILE_MODE));
    match made {
        Err(Failed::Code(ErrorCode::Exist)) if !exclusive => Ok(()),
        made => made.map(drop),
    }
}

/// Takes everything out of a file. What is no file is left as it is.
pub(super) fn empty(sheet: &mut Sheet<'_>, place: &Place) -> Result<(), Failed> {
    let found = stat(place)?;
    if is_folder(&found) {
        return Err(Failed::Code(ErrorCode::IsDirectory));
    }
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Ok(());
    }
    let how = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    resize(
        sheet,
        &File::from(openat(&*place.dir, place.file_name()?, how, Mode::empty())?),
        0,
    )
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

/// Writes at a place in a file, or at its end. Returns how much was written: some of it, not always
/// all.
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

/// Makes a folder.
pub(super) fn make_folder(sheet: &mut Sheet<'_>, place: &Place) -> Result<(), Failed> {
    let name = place.name().map_err(|_| Failed::Code(ErrorCode::Exist))?;
    countable(sheet, place)?;
    match charged(sheet, 0, 1, || mkdirat(&*place.dir, name, FOLDER_MODE)) {
        // A file that is not allowed is in the way, and not reported.
        Err(Failed::Code(ErrorCode::Exist))
            if !place.may_be_file() && !is_folder(&stat(place)?) =>
        {
            Err(Failed::Refused)
        }
        made => made,
    }
}

/// Removes an empty folder.
pub(super) fn remove_folder(sheet: &mut Sheet<'_>, place: &Place) -> Result<(), Failed> {
    unlinkat(&*place.dir, place.name()?, AtFlags::REMOVEDIR)?;
    sheet.credit(0, 1);
    Ok(())
}

/// Removes a name of what is no folder.
pub(super) fn unlink(sheet: &mut Sheet<'_>, place: &Place) -> Result<(), Failed> {
    let name = place.file_name()?;
    let found = stat(place)?;
    if is_folder(&found) {
        return Err(Failed::Code(ErrorCode::IsDirectory));
    }
    unlinkat(&*place.dir, name, AtFlags::empty())?;
    sheet.credit_gone(&found);
    Ok(())
}

/// Makes a link, which counts for the length of what it says.
pub(super) fn symlink(sheet: &mut Sheet<'_>, place: &Place, target: &str) -> Result<(), Failed> {
    let name = place.file_name()?;
    if target.starts_with('/') {
        return Err(Failed::Refused);
    }
    charged(sheet, target.len() as u64, 1, || {
        symlinkat(target, &*place.dir, name)
    })
}

/// Gives a file another name beside the one that it has. Both are in one folder's account, so no
/// byte is written twice or uncounted.
pub(super) fn link(sheet: &mut Sheet<'_>, old: &Place, new: &Place) -> Result<(), Failed> {
    let (from, to) = (old.file_name()?, new.file_name()?);
    charged(sheet, 0, 1, || {
        linkat(&*old.dir, from, &*new.dir, to, AtFlags::empty())
    })
}

/// Moves something, over what may be there.
pub(super) fn rename(sheet: &mut Sheet<'_>, old: &Place, new: &Place) -> Result<(), Failed> {
    let (from, to) = (old.name()?, new.name()?);
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
    renameat(&*old.dir, from, &*new.dir, to)?;
    if let Some(replaced) = replaced {
        sheet.credit_gone(&replaced);
    }
    Ok(())
}
