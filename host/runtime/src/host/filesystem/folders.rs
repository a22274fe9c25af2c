//! The folders of one call, and which of them each open file and folder belongs to.

use super::account::{Account, Accounts, OpenFileGuard, Quota, Sheet};
use super::failed::Failed;
use crate::folders::{FolderError, GrantedFolders};
use domain::glob::Inside;
use domain::grant::{Access, DirectoryGrant, FileId, OwnedFolder, Owners};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use wasmtime_wasi::filesystem::Dir;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry};
use wasmtime_wasi::{FsPerms, OpenMode};

/// Files of which one call is known to have made them.
const MADE_MAX: usize = 1_024;

/// A granted folder, open.
pub(super) struct Folder {
    pub(super) grant: DirectoryGrant,
    pub(super) dir: Dir,
    /// The account that counts and locks its content. None for a whole folder without a quota, of
    /// which wasmtime-wasi reads and writes the files.
    pub(super) account: Option<Arc<Account>>,
}

impl Folder {
    /// The folder that was opened when the host started, even if another has its name by now; or
    /// the one below it that these owners have.
    fn of(
        grant: &DirectoryGrant,
        owners: Owners<'_>,
        granted_folders: &GrantedFolders,
        accounts: &Accounts,
    ) -> Result<(Self, Option<OwnedFolder>), FolderError> {
        let unusable = |source| FolderError::Unusable {
            path: grant.path.clone(),
            source,
        };
        let handle = granted_folders.get(&grant.path)?;
        let (file, owned) = if handle.pattern.is_owned() {
            let (file, owned) = handle.of_owners(grant, owners)?;
            (file, Some(owned))
        } else {
            let dir = handle.dir.try_clone().map_err(unusable)?;
            (dir.into_std_file(), None)
        };
        let (permissions, mode) = match grant.access {
            Access::ReadOnly => (FsPerms::ReadOnly, OpenMode::READ),
            Access::ReadWrite => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
        };
        let dir = Dir::new(file, permissions, mode, false);
        let bounded = grant.has_patterns() || grant.has_quota();
        let account = bounded
            .then(|| accounts.account(&dir.dir).map_err(unusable))
            .transpose()?;
        let folder = Self {
            grant: grant.clone(),
            dir,
            account,
        };
        Ok((folder, owned))
    }

    /// Returns true if nothing in it may be changed.
    pub(super) fn is_read_only(&self) -> bool {
        self.grant.access == Access::ReadOnly
    }

    /// Returns true if two folders are counted together. A move or link between others would be
    /// counted nowhere, or twice.
    pub(super) fn shares_account(&self, other: &Self) -> bool {
        match (&self.account, &other.account) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Makes a change while no other is made. Waits for the disk and for others.
    pub(super) fn changed<T>(
        &self,
        change: impl FnOnce(&mut Sheet<'_>) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let mut sheet = match &self.account {
            Some(account) => account.sheet(Quota::of(&self.grant)),
            None => Sheet::uncounted(),
        };
        change(&mut sheet)
    }

    /// Returns true if a listing leaves an entry out.
    pub(super) fn hides(&self, folder: &Inside, entry: &DirectoryEntry) -> bool {
        if !self.grant.has_patterns() {
            return false;
        }
        let mut inside = folder.clone();
        inside.push(&entry.name);
        match entry.type_ {
            DescriptorType::Directory => self.grant.denies(&inside),
            _ => !self.grant.allows_file(&inside),
        }
    }
}

/// An open file or folder.
pub(super) struct Opened {
    pub(super) folder: Arc<Folder>,
    /// Its path in the granted folder, when the grant has patterns or a quota.
    pub(super) inside: Inside,
    /// As the guest sees it.
    pub(super) shown: String,
    pub(super) open_file: Option<Arc<OpenFileGuard>>,
}

/// The folders of a call.
#[derive(Default)]
pub(crate) struct Folders {
    pub(super) granted: Vec<Arc<Folder>>,
    /// True once the guest has asked which folders there are.
    pub(super) were_asked_for: bool,
    /// The folders that are of the call's owners alone.
    pub(crate) owned: Vec<OwnedFolder>,
    /// The open files and folders, by the number of their resource.
    pub(super) opened: HashMap<u32, Opened>,
    /// The files that this call made under names that nothing had.
    pub(super) made: HashSet<FileId>,
    /// Folders that are being listed, by the number of the listing.
    pub(super) listings: HashMap<u32, (Arc<Folder>, Inside)>,
    /// The path of the function that runs. Kept, so that no memory is taken for a path that is not
    /// reported.
    trail: String,
}

impl Folders {
    /// The folders that are granted to a call for these owners. Waits for the disk where
    /// [`GrantedFolders::may_wait`] says so.
    ///
    /// # Errors
    /// One of them was not opened when it was granted, or has been removed since; or one of an
    /// owner cannot be made.
    pub(crate) fn of(
        granted: &[DirectoryGrant],
        owners: Owners<'_>,
        granted_folders: &GrantedFolders,
        accounts: &Accounts,
    ) -> Result<Self, FolderError> {
        let mut folders = Self::default();
        for grant in granted {
            let (folder, owned) = Folder::of(grant, owners, granted_folders, accounts)?;
            folders.granted.push(Arc::new(folder));
            folders.owned.extend(owned);
        }
        Ok(folders)
    }

    /// Begins a function on a path.
    pub(super) fn go(&mut self, path: &str) {
        self.trail.clear();
        self.trail.push_str(path);
    }

    /// Notes that this call has made a file.
    pub(super) fn note_made(&mut self, file: FileId) {
        if self.made.len() < MADE_MAX {
            self.made.insert(file);
        }
    }

    /// Returns true if an open folder is a granted folder itself.
    pub(super) fn is_granted(&self, on: u32) -> bool {
        self.opened
            .get(&on)
            .is_some_and(|opened| opened.shown == opened.folder.grant.at)
    }

    /// The path of the function that runs, from what is open, as the guest sees it.
    pub(super) fn path_shown(&self, on: u32) -> String {
        let base = self
            .opened
            .get(&on)
            .map_or("", |opened| opened.shown.as_str());
        if self.trail.is_empty() {
            base.to_owned()
        } else {
            format!("{}/{}", base.trim_end_matches('/'), self.trail)
        }
    }
}
