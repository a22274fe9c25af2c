//! The functions of the file system: they check what is granted, then act here or have
//! wasmtime-wasi act.

use super::Fd;
use super::change;
use super::failed::{Failed, blocking};
use super::folders::Opened;
use super::open::{self, OpenRequest};
use super::stream::{Reading, Target, Writing};
use super::walk::{Last, ResolvedPath, Start};
use crate::call::CallState;
use crate::folders::file_id;
use domain::glob::Inside;
use rustix::fs::fstat;
use std::sync::Arc;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, Filesize, HostDescriptor,
    MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError};

/// The access of a function to what is granted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AccessRequest {
    Read,
    Write,
}

/// Returns true if opening in this way is a change, or allows one.
pub(super) fn writes(how: OpenFlags, what: DescriptorFlags) -> bool {
    how.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE) || what.contains(DescriptorFlags::WRITE)
}

/// Returns the meaning of the last name, when links may be followed.
fn last(flags: PathFlags) -> Last {
    if flags.contains(PathFlags::SYMLINK_FOLLOW) {
        Last::Followed
    } else {
        Last::Thing
    }
}

impl CallState {
    fn opened(&self, fd: &Fd) -> Result<&Opened, Failed> {
        let unknown = || {
            Failed::Trap(FsError::trap(wasmtime::format_err!(
                "nothing is open by the number {}",
                fd.rep()
            )))
        };
        self.folders.opened.get(&fd.rep()).ok_or_else(unknown)
    }

    /// Checks that the grant goes so far at all. Says whether it has patterns or a quota.
    fn admit(&self, fd: &Fd, access: AccessRequest) -> Result<bool, Failed> {
        let folder = &self.opened(fd)?.folder;
        if access == AccessRequest::Write && folder.is_read_only() {
            return Err(Failed::Refused);
        }
        Ok(folder.account.is_some())
    }

    /// The same, for a function on a path: where the path starts in a folder with patterns or a
    /// quota, and nothing in others.
    fn start(&self, fd: &Fd, access: AccessRequest) -> Result<Option<Start>, Failed> {
        if self.admit(fd, access)? {
            self.from(fd).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The same, for a change: where the path starts.
    fn start_change(&self, fd: &Fd) -> Result<Start, Failed> {
        self.admit(fd, AccessRequest::Write)?;
        self.from(fd)
    }

    fn from(&self, fd: &Fd) -> Result<Start, Failed> {
        let Descriptor::Dir(dir) = self.table.get(fd)? else {
            return Err(Failed::Code(ErrorCode::NotDirectory));
        };
        let Opened { folder, inside, .. } = self.opened(fd)?;
        Ok(Start {
            folder: folder.clone(),
            inside: inside.clone(),
            dir: dir.dir.clone(),
        })
    }

    /// Gives wasmtime-wasi the folder of a path, for one function. The caller has to take it back.
    fn lend(&mut self, resolved: &ResolvedPath) -> Result<Fd, Failed> {
        let mut dir = resolved.folder.dir.clone();
        dir.dir = resolved.dir.clone();
        Ok(self.table.push(Descriptor::Dir(dir))?)
    }

    /// Returns the status of a resolved path, if the guest may know of it.
    async fn inspect(
        &mut self,
        resolved: &ResolvedPath,
        flags: PathFlags,
    ) -> Result<DescriptorStat, Failed> {
        let lent = self.lend(resolved)?;
        let dir = Resource::new_borrow(lent.rep());
        let found = self
            .wasi_files()
            .stat_at(dir, PathFlags::empty(), resolved.path())
            .await;
        self.table.delete(lent)?;
        let may_be_file = resolved.may_be_file();
        let found = match found.map_err(Failed::from) {
            // The existence of a file that is not allowed is not revealed either.
            Err(Failed::Code(_)) if !may_be_file => return Err(Failed::Refused),
            found => found?,
        };
        let follows = flags.contains(PathFlags::SYMLINK_FOLLOW)
            && found.type_ == DescriptorType::SymbolicLink;
        if follows || (!may_be_file && found.type_ != DescriptorType::Directory) {
            return Err(Failed::Refused);
        }
        Ok(found)
    }

    pub(super) async fn inspect_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
    ) -> Result<DescriptorStat, Failed> {
        let Some(start) = self.start(&fd, AccessRequest::Read)? else {
            return Ok(self.wasi_files().stat_at(fd, flags, path).await?);
        };
        let resolved = blocking(move || start.walk(&path, last(flags))).await?;
        self.inspect(&resolved, flags).await
    }

    pub(super) async fn identify(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
    ) -> Result<MetadataHashValue, Failed> {
        let Some(start) = self.start(&fd, AccessRequest::Read)? else {
            return Ok(self.wasi_files().metadata_hash_at(fd, flags, path).await?);
        };
        let resolved = blocking(move || start.walk(&path, last(flags))).await?;
        self.inspect(&resolved, flags).await?;
        let lent = self.lend(&resolved)?;
        let dir = Resource::new_borrow(lent.rep());
        let hash = self
            .wasi_files()
            .metadata_hash_at(dir, PathFlags::empty(), resolved.path())
            .await;
        self.table.delete(lent)?;
        Ok(hash?)
    }

    pub(super) async fn read_link(&mut self, fd: Fd, path: String) -> Result<String, Failed> {
        let Some(start) = self.start(&fd, AccessRequest::Read)? else {
            return Ok(self.wasi_files().readlink_at(fd, path).await?);
        };
        let resolved = blocking(move || named(start, &path)).await?;
        resolved.file_name()?;
        let lent = self.lend(&resolved)?;
        let target = self
            .wasi_files()
            .readlink_at(Resource::new_borrow(lent.rep()), resolved.path())
            .await;
        self.table.delete(lent)?;
        Ok(target?)
    }

    pub(super) async fn open_thing(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
        how: OpenFlags,
        what: DescriptorFlags,
    ) -> Result<Fd, Failed> {
        let access = if writes(how, what) {
            AccessRequest::Write
        } else {
            AccessRequest::Read
        };
        let start = self.start(&fd, access)?;
        let shown = self.folders.path_shown(fd.rep());
        let folder = self.opened(&fd)?.folder.clone();
        let (opened, inside) = match start {
            Some(start) => self.open_within(start, flags, path, how, what).await?,
            None => {
                let start = self.from(&fd)?;
                let request = OpenRequest {
                    how,
                    what,
                    last: last(flags),
                };
                let thing = blocking(move || open::beneath(&start.dir, &path, request)).await?;
                let descriptor = thing.into_descriptor(folder.dir.perms, request);
                (self.table.push(descriptor)?, Inside::default())
            }
        };
        let file = match self.table.get(&opened)? {
            Descriptor::File(file) => Some(file.file.clone()),
            Descriptor::Dir(_) => None,
        };
        // It makes a file, or fails where something is.
        let makes = how.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE);
        if let Some(file) = file.as_ref().filter(|_| makes) {
            let made = file_id(&fstat(&**file).map_err(Failed::from)?);
            self.folders.note_made(made);
        }
        let open_file = match file.zip(folder.account.clone()) {
            Some((file, account)) => blocking(move || account.hold(&file)).await.map(Some),
            None => Ok(None),
        };
        let open_file = match open_file {
            Ok(open_file) => open_file.map(Arc::new),
            Err(failed) => {
                self.table.delete(opened)?;
                return Err(failed);
            }
        };
        let thing = Opened {
            folder,
            inside,
            shown,
            open_file,
        };
        self.folders.opened.insert(opened.rep(), thing);
        Ok(opened)
    }

    /// Opens in a folder with patterns or a quota. Every check comes before the first change.
    async fn open_within(
        &mut self,
        start: Start,
        flags: PathFlags,
        path: String,
        mut how: OpenFlags,
        mut what: DescriptorFlags,
    ) -> Result<(Fd, Inside), Failed> {
        let changing = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
        let changes = how & changing;
        OpenRequest {
            how,
            what,
            last: last(flags),
        }
        .check()?;
        let meant = match changes.contains(OpenFlags::CREATE) {
            // What is to be made is a file, and neither an exclusive one nor what is called like a
            // folder is where a link leads.
            true if changes.contains(OpenFlags::EXCLUSIVE) || path.ends_with('/') => Last::Name,
            true | false => last(flags),
        };
        let resolved = blocking(move || start.walk(&path, meant)).await?;
        let may_be_file = resolved.may_be_file();
        if !may_be_file {
            if writes(how, what) {
                return Err(Failed::Refused);
            }
            // Then only a folder may be opened, whatever is there by then.
            how |= OpenFlags::DIRECTORY;
        }
        let resolved = prepared(resolved, changes).await?;
        if changes.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE) {
            what |= DescriptorFlags::WRITE;
        }
        let request = OpenRequest {
            how: how & OpenFlags::DIRECTORY,
            what,
            last: Last::Thing,
        };
        let dir = resolved.dir.clone();
        let name = resolved.path();
        match blocking(move || open::named(&dir, &name, request)).await {
            Ok(thing) => Ok((
                self.table
                    .push(thing.into_descriptor(resolved.folder.dir.perms, request))?,
                resolved.inside,
            )),
            Err(Failed::Code(_)) if !may_be_file => Err(Failed::Refused),
            // A link, which nobody follows here.
            Err(Failed::Code(ErrorCode::Loop)) if resolved.folder.grant.has_patterns() => {
                Err(Failed::Refused)
            }
            Err(failed) => Err(failed),
        }
    }

    pub(super) async fn date(
        &mut self,
        fd: Fd,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> Result<(), Failed> {
        self.admit(&fd, AccessRequest::Write)?;
        Ok(self.wasi_files().set_times(fd, accessed, modified).await?)
    }

    pub(super) async fn date_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> Result<(), Failed> {
        let start = self.start_change(&fd)?;
        let resolved = blocking(move || start.walk(&path, last(flags))).await?;
        self.inspect(&resolved, flags).await?;
        blocking(move || change::date(&resolved, accessed, modified)).await
    }

    pub(super) async fn resize(&mut self, fd: Fd, size: Filesize) -> Result<(), Failed> {
        if !self.admit(&fd, AccessRequest::Write)? {
            return Ok(self.wasi_files().set_size(fd, size).await?);
        }
        let target = self.target(&fd)?;
        blocking(move || target.changed(|sheet, file| change::resize(sheet, file, size))).await
    }

    pub(super) async fn put(
        &mut self,
        fd: Fd,
        data: Vec<u8>,
        offset: Filesize,
    ) -> Result<Filesize, Failed> {
        if !self.admit(&fd, AccessRequest::Write)? {
            return Ok(self.wasi_files().write(fd, data, offset).await?);
        }
        let target = self.target(&fd)?;
        let write =
            move || target.changed(|sheet, file| change::write(sheet, file, Some(offset), &data));
        Ok(blocking(write).await? as u64)
    }

    /// An open file in a folder with patterns or a quota.
    fn target(&self, fd: &Fd) -> Result<Target, Failed> {
        let Descriptor::File(file) = self.table.get(fd)? else {
            return Err(Failed::Code(ErrorCode::BadDescriptor));
        };
        let Opened {
            folder,
            open_file,
            shown,
            ..
        } = self.opened(fd)?;
        Ok(Target {
            folder: folder.clone(),
            file: file.file.clone(),
            _open_file: open_file.clone(),
            recorder: self.recorder.clone(),
            shown: shown.clone(),
        })
    }

    pub(super) fn reading(
        &mut self,
        fd: Fd,
        offset: Filesize,
    ) -> Result<Resource<DynInputStream>, Failed> {
        let open_file = self.opened(&fd)?.open_file.clone();
        let stream = self.wasi_files().read_via_stream(fd, offset)?;
        let Some(open_file) = open_file else {
            return Ok(stream);
        };
        let inner = self.table.delete(stream)?;
        let reading: DynInputStream = Box::new(Reading {
            inner,
            _open_file: open_file,
        });
        Ok(self.table.push(reading)?)
    }

    /// Writes from an offset in the file on, or at its end.
    pub(super) fn writing(
        &mut self,
        fd: Fd,
        at: Option<Filesize>,
    ) -> Result<Resource<DynOutputStream>, Failed> {
        if self.admit(&fd, AccessRequest::Write)? {
            let writing: DynOutputStream = Box::new(Writing::new(self.target(&fd)?, at));
            return Ok(self.table.push(writing)?);
        }
        let mut files = self.wasi_files();
        Ok(match at {
            Some(offset) => files.write_via_stream(fd, offset)?,
            None => files.append_via_stream(fd)?,
        })
    }

    pub(super) async fn make_folder(&mut self, fd: Fd, path: String) -> Result<(), Failed> {
        let start = self.start_change(&fd)?;
        blocking(move || start.walk(&path, Last::Name)?.changed(change::make_folder)).await
    }

    pub(super) async fn remove_folder(&mut self, fd: Fd, path: String) -> Result<(), Failed> {
        let start = self.start_change(&fd)?;
        blocking(move || {
            let resolved = start.walk(&path, Last::Name)?;
            match resolved.changed(change::remove_folder) {
                // The existence of a file that is not allowed is not revealed.
                Err(Failed::Code(ErrorCode::NotDirectory | ErrorCode::NoEntry))
                    if !resolved.may_be_file() =>
                {
                    Err(Failed::Refused)
                }
                removed => removed,
            }
        })
        .await
    }

    pub(super) async fn unlink(&mut self, fd: Fd, path: String) -> Result<(), Failed> {
        let start = self.start_change(&fd)?;
        blocking(move || named(start, &path)?.changed(change::unlink)).await
    }

    pub(super) async fn symlink(
        &mut self,
        fd: Fd,
        target: String,
        path: String,
    ) -> Result<(), Failed> {
        let start = self.start_change(&fd)?;
        if start.folder.grant.has_patterns() {
            return Err(Failed::Refused);
        }
        blocking(move || {
            named(start, &path)?.changed(|sheet, new| change::symlink(sheet, new, &target))
        })
        .await
    }

    /// The two ends of what is moved or linked. Both may be changed, and are counted together.
    fn ends(&self, fd: &Fd, to: &Fd) -> Result<(Start, Start), Failed> {
        let from = self.start_change(fd)?;
        let to = self.start_change(to)?;
        if from.folder.shares_account(&to.folder) {
            Ok((from, to))
        } else {
            Err(Failed::Refused)
        }
    }

    pub(super) async fn link(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
        to: Fd,
        to_path: String,
    ) -> Result<(), Failed> {
        let (from, new) = self.ends(&fd, &to)?;
        if flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return Err(Failed::Code(ErrorCode::Invalid));
        }
        blocking(move || {
            let old = named(from, &path)?;
            let new = named(new, &to_path)?;
            new.changed(|sheet, new| change::link(sheet, &old, new))
        })
        .await
    }

    pub(super) async fn rename(
        &mut self,
        fd: Fd,
        path: String,
        to: Fd,
        to_path: String,
    ) -> Result<(), Failed> {
        let (from, new) = self.ends(&fd, &to)?;
        let made = self.folders.made.clone();
        blocking(move || {
            let old = named(from, &path)?;
            let new = named(new, &to_path)?;
            let is_made = |file| made.contains(&file);
            new.changed(|sheet, new| change::rename(sheet, &old, new, is_made))
        })
        .await
    }
}

/// Resolves a path to a name that stands for no folder, or for one that is moved. Where it is not
/// allowed, the guest learns nothing of what is there.
fn named(start: Start, path: &str) -> Result<ResolvedPath, Failed> {
    let resolved = start.walk(path, Last::Name)?;
    if resolved.may_be_file() {
        Ok(resolved)
    } else {
        Err(Failed::Refused)
    }
}

/// Makes the file and takes everything out of it, as far as opening it is to do that.
async fn prepared(resolved: ResolvedPath, changes: OpenFlags) -> Result<ResolvedPath, Failed> {
    if !changes.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE) {
        return Ok(resolved);
    }
    blocking(move || {
        resolved.changed(|sheet, resolved| {
            if changes.contains(OpenFlags::CREATE) {
                change::create(sheet, resolved, changes.contains(OpenFlags::EXCLUSIVE))?;
            }
            if changes.contains(OpenFlags::TRUNCATE) {
                change::empty(sheet, resolved)?;
            }
            Ok(())
        })?;
        Ok(resolved)
    })
    .await
}
