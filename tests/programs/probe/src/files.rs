//! Folders and files: the first granted folder, which holds `file`, `link` (to it), `old`, `spare`
//! and the empty folder `empty`.

use crate::{Rows, empty, said, with_handle};
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Advice, Descriptor, DescriptorFlags, NewTimestamp, OpenFlags, PathFlags,
};

pub(crate) fn probe(rows: &mut Rows) {
    let folders = get_directories();
    rows.say(
        "wasi:filesystem/preopens.get-directories",
        empty(folders.is_empty()),
    );
    let folder = folders.first().map(|(folder, _)| folder);
    let mut at = |name: &str, call: &dyn Fn(&Descriptor) -> String| {
        rows.say(
            &format!("wasi:filesystem/types.[method]descriptor.{name}"),
            with_handle(folder, call),
        );
    };
    let plain = PathFlags::empty();
    let same = NewTimestamp::NoChange;
    at("create-directory-at", &|folder| {
        said(&folder.create_directory_at("made"))
    });
    at("get-flags", &|folder| said(&folder.get_flags()));
    at("get-type", &|folder| said(&folder.get_type()));
    at("is-same-object", &|folder| {
        empty(!folder.is_same_object(folder)).to_owned()
    });
    at("link-at", &|folder| {
        said(&folder.link_at(plain, "file", folder, "linked"))
    });
    at("metadata-hash", &|folder| said(&folder.metadata_hash()));
    at("metadata-hash-at", &|folder| {
        said(&folder.metadata_hash_at(plain, "file"))
    });
    at("open-at", &|folder| said(&open(folder)));
    at("read-directory", &|folder| said(&folder.read_directory()));
    at("readlink-at", &|folder| said(&folder.readlink_at("link")));
    at("remove-directory-at", &|folder| {
        said(&folder.remove_directory_at("empty"))
    });
    at("rename-at", &|folder| {
        said(&folder.rename_at("old", folder, "new"))
    });
    at("set-times-at", &|folder| {
        said(&folder.set_times_at(plain, "file", same, NewTimestamp::Now))
    });
    at("stat", &|folder| said(&folder.stat()));
    at("stat-at", &|folder| said(&folder.stat_at(plain, "file")));
    at("symlink-at", &|folder| {
        said(&folder.symlink_at("file", "soft"))
    });
    at("unlink-file-at", &|folder| {
        said(&folder.unlink_file_at("spare"))
    });

    let file = folder.and_then(|folder| open(folder).ok());
    let mut on = |name: &str, call: &dyn Fn(&Descriptor) -> String| {
        rows.say(
            &format!("wasi:filesystem/types.[method]descriptor.{name}"),
            with_handle(file.as_ref(), call),
        );
    };
    on("advise", &|file| said(&file.advise(0, 1, Advice::Normal)));
    on("append-via-stream", &|file| said(&file.append_via_stream()));
    on("read", &|file| said(&file.read(4, 0)));
    on("read-via-stream", &|file| said(&file.read_via_stream(0)));
    on("set-size", &|file| said(&file.set_size(4)));
    on("set-times", &|file| {
        said(&file.set_times(same, NewTimestamp::Now))
    });
    on("sync", &|file| said(&file.sync()));
    on("sync-data", &|file| said(&file.sync_data()));
    on("write", &|file| said(&file.write(b"word", 0)));
    on("write-via-stream", &|file| said(&file.write_via_stream(0)));

    let entries = folder.and_then(|folder| folder.read_directory().ok());
    let entry = with_handle(entries.as_ref(), |entries| {
        said(&entries.read_directory_entry())
    });
    rows.say(
        "wasi:filesystem/types.[method]directory-entry-stream.read-directory-entry",
        entry,
    );
}

/// The file, to write in if that is possible.
fn open(folder: &Descriptor) -> Result<Descriptor, wasip2::filesystem::types::ErrorCode> {
    let open = |flags| folder.open_at(PathFlags::empty(), "file", OpenFlags::empty(), flags);
    open(DescriptorFlags::READ | DescriptorFlags::WRITE).or_else(|_| open(DescriptorFlags::READ))
}
