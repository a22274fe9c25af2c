//! The usage of a granted folder, for its quota: one account per folder, shared by all calls that
//! have it.
//!
//! A call that writes counts the folder once and charges every write before it is made; from then
//! on the account is kept, not counted again, as long as a call has it. Charge and write happen
//! under one lock, on a thread that is not interrupted when the call is, so no two writes pass on
//! the same remainder. What cannot be known is counted as more, never as less: a file that was
//! unlinked while it is open is given back when the last handle of it goes. What others than these
//! calls change is seen when the folder is counted the next time.

use crate::folders::{PASSING, file_id};
use crate::host::filesystem::failed::Failed;
use domain::grant::{DirectoryGrant, FileId};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The accounts of all folders that some call has.
#[derive(Debug, Default)]
pub(crate) struct Accounts(Mutex<HashMap<FileId, Weak<Account>>>);

/// The limits of a folder's content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quota {
    bytes_max: Option<u64>,
    files_max: Option<u64>,
}

/// The account of one folder.
#[derive(Debug)]
pub(super) struct Account {
    folder: Arc<File>,
    usage: Mutex<Usage>,
    open: Mutex<OpenFiles>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Usage {
    /// No call with a quota has written yet.
    Unknown,
    Counted(Tally),
    /// There is more than so many entries, or what cannot be counted: nothing is added until
    /// something is removed.
    Beyond(u64),
}

/// Bytes, and files and folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Tally {
    bytes: u64,
    files: u64,
}

#[derive(Debug, Default)]
struct OpenFiles {
    handles: HashMap<FileId, Handles>,
    /// Usage of the files that were unlinked and are closed by now.
    returned: Tally,
}

#[derive(Debug)]
struct Handles {
    count: usize,
    /// Its last name was removed: it has its place on the disk until it is closed.
    unlinked: bool,
    file: Arc<File>,
}

/// A guard that lasts while a call has a file open.
#[derive(Debug)]
pub(super) struct OpenFileGuard {
    account: Arc<Account>,
    id: FileId,
}

/// The account while something is changed; none of a whole folder without a quota.
pub(super) struct Sheet<'a>(Option<Counted<'a>>);

struct Counted<'a> {
    account: &'a Account,
    usage: MutexGuard<'a, Usage>,
    quota: Quota,
}

/// Bytes that it counts for: of files and links their length, of other things none.
pub(super) fn bytes_of(stat: &Stat) -> u64 {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Symlink => {
            u64::try_from(stat.st_size).unwrap_or(u64::MAX)
        }
        _ => 0,
    }
}

impl Quota {
    pub(super) fn of(grant: &DirectoryGrant) -> Self {
        Self {
            bytes_max: grant.bytes_max,
            files_max: grant.files_max.map(u64::from),
        }
    }

    pub(super) fn is_none(self) -> bool {
        self.bytes_max.is_none() && self.files_max.is_none()
    }
}

impl Accounts {
    /// Returns the account of an open folder.
    pub(super) fn account(&self, folder: &Arc<File>) -> io::Result<Arc<Account>> {
        let id = file_id(&fstat(folder)?);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = known.get(&id).and_then(Weak::upgrade) {
            return Ok(account);
        }
        known.retain(|_, account| account.strong_count() > 0);
        let account = Arc::new(Account {
            folder: folder.clone(),
            usage: Mutex::new(Usage::Unknown),
            open: Mutex::default(),
        });
        known.insert(id, Arc::downgrade(&account));
        Ok(account)
    }
}

impl Account {
    /// Locks the account for a change in the folder. Others wait: call it on a thread that may
    /// wait, and no longer than needed.
    pub(super) fn sheet(&self, quota: Quota) -> Sheet<'_> {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let returned = std::mem::take(&mut self.open().returned);
        usage.subtract(returned);
        Sheet(Some(Counted {
            account: self,
            usage,
            quota,
        }))
    }

    /// Notes that a file is open.
    ///
    /// # Errors
    /// It has lost its last name meanwhile: it is not there any more, and must not be held.
    pub(super) fn hold(self: &Arc<Self>, file: &Arc<File>) -> Result<OpenFileGuard, Failed> {
        let id = file_id(&fstat(file)?);
        self.open()
            .handles
            .entry(id)
            .or_insert_with(|| Handles {
                count: 0,
                unlinked: false,
                file: file.clone(),
            })
            .count += 1;
        let open_file = OpenFileGuard {
            account: self.clone(),
            id,
        };
        // An unlink looks at the handles after the name is gone: either it is seen there, or here.
        let nameless = fstat(file)?.st_nlink == 0;
        let noticed = self
            .open()
            .handles
            .get(&id)
            .is_some_and(|handles| handles.unlinked);
        if nameless && !noticed {
            Err(Failed::from(rustix::io::Errno::NOENT))
        } else {
            Ok(open_file)
        }
    }

    /// Returns true if a file without a name is still open somewhere. Its usage is then given back
    /// when it is closed.
    fn keeps(&self, id: FileId) -> bool {
        let mut open = self.open();
        let handles = open.handles.get_mut(&id);
        handles.map(|handles| handles.unlinked = true).is_some()
    }

    fn open(&self) -> MutexGuard<'_, OpenFiles> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenFileGuard {
    fn drop(&mut self) {
        let mut open = self.account.open();
        let Some(handles) = open.handles.get_mut(&self.id) else {
            return;
        };
        handles.count -= 1;
        if handles.count > 0 {
            return;
        }
        if let Some(Handles {
            unlinked: true,
            file,
            ..
        }) = open.handles.remove(&self.id)
        {
            // What cannot be asked stays charged.
            let bytes = fstat(&file).map_or(0, |stat| bytes_of(&stat));
            open.returned.bytes = open.returned.bytes.saturating_add(bytes);
            open.returned.files += 1;
        }
    }
}

impl Usage {
    fn subtract(&mut self, gone: Tally) {
        match self {
            Self::Counted(tally) => {
                tally.bytes = tally.bytes.saturating_sub(gone.bytes);
                tally.files = tally.files.saturating_sub(gone.files);
            }
            // It may be countable by now.
            Self::Beyond(_) if gone != Tally::default() => *self = Self::Unknown,
            Self::Beyond(_) | Self::Unknown => {}
        }
    }
}

impl Sheet<'_> {
    /// The sheet of a folder in which nothing is counted and nobody waits for others.
    pub(super) fn uncounted() -> Self {
        Self(None)
    }

    /// Returns true if there is a quota to charge.
    pub(super) fn has_quota(&self) -> bool {
        self.0.as_ref().is_some_and(|it| !it.quota.is_none())
    }

    /// Takes so much of the quota, before it is used. The first to do so counts the folder.
    ///
    /// # Errors
    /// There is not so much left, or the folder cannot be counted.
    pub(super) fn charge(&mut self, bytes: u64, files: u64) -> Result<(), Failed> {
        self.0
            .as_mut()
            .map_or(Ok(()), |counted| counted.charge(bytes, files))
    }

    /// Gives so much back.
    pub(super) fn credit(&mut self, bytes: u64, files: u64) {
        if let Some(counted) = &mut self.0 {
            counted.usage.subtract(Tally { bytes, files });
        }
    }

    /// Gives back what had this name, which is gone.
    pub(super) fn credit_gone(&mut self, gone: &Stat) {
        if let Some(counted) = &mut self.0 {
            let freed = counted.freed_by(gone);
            counted.usage.subtract(freed);
        }
    }
}

impl Counted<'_> {
    fn charge(&mut self, bytes: u64, files: u64) -> Result<(), Failed> {
        if bytes == 0 && files == 0 {
            return Ok(());
        }
        self.count()?;
        let quota = self.quota;
        let limited = !quota.is_none();
        let tally = match &mut *self.usage {
            Usage::Counted(tally) => tally,
            Usage::Beyond(_) if limited => {
                return Err(if files > 0 {
                    Failed::OverFiles
                } else {
                    Failed::OverBytes
                });
            }
            Usage::Beyond(_) | Usage::Unknown => return Ok(()),
        };
        let then = Tally {
            bytes: tally.bytes.saturating_add(bytes),
            files: tally.files.saturating_add(files),
        };
        if bytes > 0 && quota.bytes_max.is_some_and(|max| then.bytes > max) {
            return Err(Failed::OverBytes);
        }
        if files > 0 && quota.files_max.is_some_and(|max| then.files > max) {
            return Err(Failed::OverFiles);
        }
        *tally = then;
        Ok(())
    }

    /// The place that is free again when a name of this is gone.
    fn freed_by(&self, gone: &Stat) -> Tally {
        let is_folder = FileType::from_raw_mode(gone.st_mode) == FileType::Directory;
        if is_folder || gone.st_nlink > 1 {
            // A file's bytes are still there under another name.
            Tally { bytes: 0, files: 1 }
        } else if self.account.keeps(file_id(gone)) {
            Tally::default()
        } else {
            Tally {
                bytes: bytes_of(gone),
                files: 1,
            }
        }
    }

    fn count(&mut self) -> Result<(), Failed> {
        let entries_max = self.quota.files_max.unwrap_or(ENTRIES_MAX).min(ENTRIES_MAX);
        let counted = match *self.usage {
            Usage::Counted(_) => true,
            Usage::Beyond(inspected) => inspected > entries_max,
            Usage::Unknown => false,
        };
        if counted || self.quota.is_none() {
            return Ok(());
        }
        let found = count(&self.account.folder, entries_max)?;
        // Together: what is returned from here on was found just now.
        let mut open = self.account.open();
        open.returned = Tally::default();
        *self.usage = found.map_or(Usage::Beyond(entries_max.saturating_add(1)), |mut tally| {
            for Handles { file, .. } in open.handles.values().filter(|handles| handles.unlinked) {
                tally.bytes = tally
                    .bytes
                    .saturating_add(fstat(file).map_or(u64::MAX, |stat| bytes_of(&stat)));
                tally.files += 1;
            }
            Usage::Counted(tally)
        });
        Ok(())
    }
}

/// Files and folders that are counted where a grant says no less.
const ENTRIES_MAX: u64 = 1_000_000;
/// Folders within each other that are walked.
pub(crate) const DEPTH_MAX: usize = 128;

/// Counts the content of a folder. None when it has more entries, or folders deeper in each other,
/// than are counted. Follows no link.
fn count(folder: &File, entries_max: u64) -> io::Result<Option<Tally>> {
    let mut tally = Tally::default();
    let mut seen = HashSet::new();
    let mut levels = vec![listing(folder, c".")?];
    loop {
        let depth = levels.len();
        let Some(level) = levels.last_mut() else {
            return Ok(Some(tally));
        };
        let Some(entry) = level.read() else {
            levels.pop();
            continue;
        };
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let stat = match statat(level.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // Another process has removed it meanwhile.
            Err(rustix::io::Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        tally.files += 1;
        if tally.files > entries_max {
            return Ok(None);
        }
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            if depth > DEPTH_MAX {
                return Ok(None);
            }
            let inner = level
                .fd()
                .map_err(io::Error::from)
                .and_then(|fd| listing(fd, name));
            match inner {
                Ok(inner) => levels.push(inner),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        } else if stat.st_nlink <= 1 || seen.insert(file_id(&stat)) {
            tally.bytes = tally.bytes.saturating_add(bytes_of(&stat));
        }
    }
}

/// A way of its own through a folder: reading it moves no other.
fn listing(within: impl std::os::fd::AsFd, name: &std::ffi::CStr) -> io::Result<Dir> {
    let flags =
        OFlags::RDONLY | (PASSING & (OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC));
    Ok(Dir::new(openat(within, name, flags, Mode::empty())?)?)
}
