//! `wasi:filesystem`: the granted folders, each as far as its grant goes.
//!
//! Every function comes here first, and what is decided is put into the call's audit record: one
//! that changes something as `files.write`, any other as `files.read`, but for what a granted
//! folder itself is. The way of a change is gone [here](walk), and the change is made [here](change),
//! in folders with patterns or a quota under the folder's [account]. In those the way of what reads
//! is gone here too, and wasmtime-wasi gets a folder that was opened on the way and a single name.
//! In whole folders without a quota it keeps what reads within the folder itself.

mod account;
mod change;
mod failed;
pub(crate) mod folders;
mod open;
mod perform;
mod stream;
mod walk;

pub(crate) use account::Accounts;

use crate::call::CallState;
use domain::glob::Inside;
use domain::grant::capability::{FILES_READ, FILES_WRITE};
use failed::Failed;
use folders::Opened;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode,
    Filesize, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags,
    PathFlags,
};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, FsError, FsResult, IoError, ReaddirIterator,
};

/// Entries of a listing that are left out in a row before others get their turn.
const HIDDEN_IN_A_ROW: u32 = 1_000;

type Fd = Resource<Descriptor>;

impl CallState {
    /// Returns the view that wasmtime-wasi works on.
    fn wasi_files(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView {
            ctx: self.wasi.filesystem(),
            table: &mut self.table,
        }
    }

    /// Begins a function on something open, with a path or none. Returns its number.
    fn at(&mut self, fd: &Fd, path: &str) -> u32 {
        self.folders.go(path);
        fd.rep()
    }

    /// Ends a function: the decision goes into the audit record, the result to the guest.
    fn decided<T>(
        &self,
        on: u32,
        capability: &'static str,
        done: Result<T, Failed>,
    ) -> FsResult<T> {
        let shown = || self.folders.path_shown(on);
        match &done {
            Err(Failed::Refused) => self.recorder.refused(capability, shown),
            Err(Failed::OverBytes | Failed::OverFiles) => self.recorder.limited(capability, shown),
            Err(Failed::Trap(_)) => {}
            // What the machine cannot do was granted all the same.
            Ok(_) | Err(Failed::Code(_)) => self.recorder.granted(capability, shown),
        }
        done.map_err(FsError::from)
    }
}

impl CallState {
    /// Puts on record that a call that failed was given its folders, or none, and opened nothing in
    /// them. The guest's own library looks for the folder of a path: a path that is in none never
    /// reaches the host.
    pub(crate) fn record_unreached_folders(&self) {
        if !self.folders.were_asked_for {
            return;
        }
        let granted = &self.folders.granted;
        let places: Vec<&str> = granted.iter().map(|it| it.grant.at.as_str()).collect();
        self.recorder.unreached_folders(&places);
    }
}

impl preopens::Host for CallState {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Fd, String)>> {
        self.folders.were_asked_for = true;
        let mut directories = Vec::with_capacity(self.folders.granted.len());
        for folder in self.folders.granted.clone() {
            let fd = self.table.push(Descriptor::Dir(folder.dir.clone()))?;
            let at = folder.grant.at.clone();
            let opened = Opened {
                folder,
                inside: Inside::default(),
                shown: at.clone(),
                open_file: None,
            };
            self.folders.opened.insert(fd.rep(), opened);
            directories.push((fd, at));
        }
        Ok(directories)
    }
}

impl types::Host for CallState {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<IoError>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        if let Some(code) = self.table.get(&error)?.downcast_ref::<ErrorCode>() {
            return Ok(Some(*code));
        }
        types::Host::filesystem_error_code(&mut self.wasi_files(), error)
    }
}

/// Functions on something open: done by wasmtime-wasi, or by the function of ours that is named
/// last, and put on record under a capability, with the path that is given.
macro_rules! functions {
    ($(
        $name:ident $([$path:ident])? ($($argument:ident: $kind:ty),*)
            -> $result:ty => $capability:ident $($own:ident)?;
    )*) => {$(
        async fn $name(&mut self, fd: Fd, $($argument: $kind),*) -> FsResult<$result> {
            let on = self.at(&fd, functions!(@path $($path)?));
            let done = functions!(@done self, $name(fd, $($argument),*) $($own)?);
            self.decided(on, $capability, done)
        }
    )*};
    (@path) => { "" };
    (@path $path:ident) => { &$path };
    (@done $state:ident, $name:ident($($argument:ident),* $(,)?)) => {
        $state.wasi_files().$name($($argument),*).await.map_err(Failed::from)
    };
    (@done $state:ident, $name:ident($($argument:ident),* $(,)?) $own:ident) => {
        $state.$own($($argument),*).await
    };
}

impl HostDescriptor for CallState {
    functions! {
        advise(offset: Filesize, len: Filesize, advice: Advice) -> () => FILES_READ;
        sync_data() -> () => FILES_READ;
        sync() -> () => FILES_READ;
        get_flags() -> DescriptorFlags => FILES_READ;
        read(len: Filesize, offset: Filesize) -> (Vec<u8>, bool) => FILES_READ;
        stat() -> DescriptorStat => FILES_READ;
        metadata_hash() -> MetadataHashValue => FILES_READ;
        stat_at[path](flags: PathFlags, path: String) -> DescriptorStat => FILES_READ inspect_at;
        metadata_hash_at[path](flags: PathFlags, path: String)
            -> MetadataHashValue => FILES_READ identify;
        readlink_at[path](path: String) -> String => FILES_READ read_link;
        set_size(size: Filesize) -> () => FILES_WRITE resize;
        set_times(accessed: NewTimestamp, modified: NewTimestamp) -> () => FILES_WRITE date;
        set_times_at[path](
            flags: PathFlags, path: String, accessed: NewTimestamp, modified: NewTimestamp
        ) -> () => FILES_WRITE date_at;
        write(data: Vec<u8>, offset: Filesize) -> Filesize => FILES_WRITE put;
        create_directory_at[path](path: String) -> () => FILES_WRITE make_folder;
        remove_directory_at[path](path: String) -> () => FILES_WRITE remove_folder;
        unlink_file_at[path](path: String) -> () => FILES_WRITE unlink;
        symlink_at[path](target: String, path: String) -> () => FILES_WRITE symlink;
        link_at[path](flags: PathFlags, path: String, to: Fd, to_path: String)
            -> () => FILES_WRITE link;
    }

    async fn get_type(&mut self, fd: Fd) -> FsResult<DescriptorType> {
        let on = self.at(&fd, "");
        let done = self.wasi_files().get_type(fd).await;
        // Every program asks that of the folders that it is started with, also one that then opens
        // nothing.
        if self.folders.is_granted(on) {
            return done;
        }
        self.decided(on, FILES_READ, done.map_err(Failed::from))
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<ReaddirIterator>> {
        let on = self.at(&fd, "");
        let done = self.wasi_files().read_directory(fd).await;
        if let (Ok(listing), Some(opened)) = (&done, self.folders.opened.get(&on))
            && opened.folder.account.is_some()
        {
            let listed = (opened.folder.clone(), opened.inside.clone());
            self.folders.listings.insert(listing.rep(), listed);
        }
        self.decided(on, FILES_READ, done.map_err(Failed::from))
    }

    async fn open_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
        how: OpenFlags,
        what: DescriptorFlags,
    ) -> FsResult<Fd> {
        let on = self.at(&fd, &path);
        let writes = perform::writes(how, what);
        let done = self.open_thing(fd, flags, path, how, what).await;
        self.decided(on, if writes { FILES_WRITE } else { FILES_READ }, done)
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        self.folders.opened.remove(&fd.rep());
        HostDescriptor::drop(&mut self.wasi_files(), fd)
    }

    async fn rename_at(&mut self, fd: Fd, path: String, to: Fd, to_path: String) -> FsResult<()> {
        let over = self.at(&to, &to_path);
        let new = self.folders.path_shown(over);
        let on = self.at(&fd, &path);
        let old = self.folders.path_shown(on);
        let done = self.rename(fd, path, to, to_path).await;
        if done.is_ok() {
            self.recorder.renamed(FILES_WRITE, &old, &new);
        }
        self.decided(on, FILES_WRITE, done)
    }

    fn read_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        let on = self.at(&fd, "");
        let done = self.reading(fd, offset);
        self.decided(on, FILES_READ, done)
    }

    fn write_via_stream(
        &mut self,
        fd: Fd,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        let on = self.at(&fd, "");
        let done = self.writing(fd, Some(offset));
        self.decided(on, FILES_WRITE, done)
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        let on = self.at(&fd, "");
        let done = self.writing(fd, None);
        self.decided(on, FILES_WRITE, done)
    }

    async fn is_same_object(&mut self, one: Fd, other: Fd) -> wasmtime::Result<bool> {
        let on = self.at(&one, "");
        self.recorder
            .granted(FILES_READ, || self.folders.path_shown(on));
        self.wasi_files().is_same_object(one, other).await
    }
}

impl HostDirectoryEntryStream for CallState {
    async fn read_directory_entry(
        &mut self,
        listing: Resource<ReaddirIterator>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let mut hidden = 0;
        loop {
            let next = self
                .wasi_files()
                .read_directory_entry(Resource::new_borrow(listing.rep()))
                .await?;
            let hides = |entry: &DirectoryEntry| {
                self.folders
                    .listings
                    .get(&listing.rep())
                    .is_some_and(|(folder, inside)| folder.hides(inside, entry))
            };
            if !next.as_ref().is_some_and(hides) {
                return Ok(next);
            }
            hidden += 1;
            if hidden % HIDDEN_IN_A_ROW == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    fn drop(&mut self, listing: Resource<ReaddirIterator>) -> wasmtime::Result<()> {
        self.folders.listings.remove(&listing.rep());
        HostDirectoryEntryStream::drop(&mut self.wasi_files(), listing)
    }
}
