//! Kinds of file systems, and which of them something else than this machine's kernel keeps.
//!
//! Such a file system may not answer for as long as a server or another process takes: whoever asks
//! it waits on a thread that may. What is not known to be local is taken for one of them.

#[cfg(target_os = "linux")]
use rustix::fs::{StatFs, fstatfs, statfs};
use std::os::fd::AsFd;
use std::path::Path;

/// File systems that are kept by another machine or another process.
const ELSEWHERE: [(u64, &str); 13] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9P"),
    (0x5346_414f, "AFS"),
    (0x00c3_6400, "Ceph"),
    (0x7375_7245, "Coda"),
    (0x0bd0_0bd0, "Lustre"),
    (0x6573_5546, "FUSE"),
    (0x786f_4256, "VirtualBox shared folders"),
    (0x0116_1970, "GFS2"),
    (0x4750_4653, "GPFS"),
];

/// The kind of a file system, by its number (`statfs(2)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystemKind(pub u64);

impl FileSystemKind {
    /// Returns the kind that a path is on; none where nothing is there, or the system has no such
    /// numbers. Waits for the disk.
    #[must_use]
    #[cfg(target_os = "linux")]
    pub fn at(path: &Path) -> Option<Self> {
        statfs(path).ok().and_then(|found| Self::read(&found))
    }

    /// Returns none: this system has no such numbers.
    #[must_use]
    #[cfg(not(target_os = "linux"))]
    pub fn at(_path: &Path) -> Option<Self> {
        None
    }

    /// Returns the kind that something open is on. Waits for the disk.
    #[cfg(target_os = "linux")]
    fn under(open: impl AsFd) -> Option<Self> {
        fstatfs(open).ok().and_then(|found| Self::read(&found))
    }

    #[cfg(not(target_os = "linux"))]
    fn under(_open: impl AsFd) -> Option<Self> {
        None
    }

    #[cfg(target_os = "linux")]
    fn read(found: &StatFs) -> Option<Self> {
        // The numbers have 32 bits; the field is signed and wider.
        let number = u64::try_from(i128::from(found.f_type) & 0xffff_ffff);
        number.ok().map(Self)
    }

    /// Returns the name of a file system that another machine or another process keeps; none for
    /// others.
    #[must_use]
    pub fn kept_elsewhere(self) -> Option<&'static str> {
        ELSEWHERE
            .iter()
            .find(|(number, _)| *number == self.0)
            .map(|(_, name)| *name)
    }
}

/// Returns true if something open is known to be on a file system of this machine's kernel. Waits
/// for the disk.
pub(crate) fn is_local(open: impl AsFd) -> bool {
    FileSystemKind::under(open).is_some_and(|kind| kind.kept_elsewhere().is_none())
}

#[cfg(test)]
mod tests {
    use crate::file_system::FileSystemKind;

    #[test]
    fn a_file_system_of_a_server_or_another_process_is_kept_elsewhere() {
        let kept = |number| FileSystemKind(number).kept_elsewhere();
        // ext4, XFS, Btrfs, ZFS, tmpfs, overlay.
        for local in [
            0xef53,
            0x5846_5342,
            0x9123_683e,
            0x2fc1_2fc1,
            0x0102_1994,
            0x794c_7630,
        ] {
            assert_eq!(kept(local), None, "{local:x}");
        }
        for (number, name) in [
            (0x6969, "NFS"),
            (0xff53_4d42, "CIFS"),
            (0x6573_5546, "FUSE"),
            (0x0102_1997, "9P"),
        ] {
            assert_eq!(kept(number), Some(name));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernels_own_tables_are_local_by_their_path_and_when_they_are_open() {
        let path = std::path::Path::new("/proc");
        assert_eq!(FileSystemKind::at(path), Some(FileSystemKind(0x9fa0)));
        assert!(super::is_local(std::fs::File::open(path).unwrap()));
    }
}
