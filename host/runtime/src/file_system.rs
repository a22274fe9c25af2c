//! Kinds of file systems: those that this machine's kernel keeps by itself, and those that
//! something else keeps.
//!
//! A file system of the second kind may not answer for as long as a server or another process
//! takes: whoever asks it waits on a thread that may. What is not known to be local is taken for
//! one of them. The names of the second kind are for people who are warned.

#[cfg(target_os = "linux")]
use rustix::fs::{StatFs, fstatfs, statfs};
use std::os::fd::AsFd;
use std::path::Path;

/// File systems that this machine's kernel keeps in memory or on its own devices, and that answer
/// at once about what is open. Overlays are left out: their layers may lie on any file system.
const LOCAL: [u64; 11] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // Btrfs
    0x2fc1_2fc1, // ZFS
    0xf2f5_2010, // F2FS
    0xca45_1a4e, // bcachefs
    0x3153_464a, // JFS
    0x3434,      // NILFS
    0x5265_4973, // ReiserFS
    0x0102_1994, // tmpfs, devtmpfs
    0x8584_58f6, // ramfs
];

/// File systems that are kept by another machine or another process, by their names.
const ELSEWHERE: [(u64, &str); 20] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x564c, "NCP"),
    (0x0102_1997, "9P"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x00c3_6400, "Ceph"),
    (0x7375_7245, "Coda"),
    (0x0bd0_0bd0, "Lustre"),
    (0x6573_5546, "FUSE"),
    (0x786f_4256, "VirtualBox shared folders"),
    (0xbacb_acbc, "VMware shared folders"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x2003_0528, "OrangeFS"),
    (0xaad7_aaea, "PanFS"),
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
    is_local_kind(FileSystemKind::under(open))
}

/// Returns true if a file system is known to be one of this machine's kernel. One whose kind cannot
/// be read is not.
fn is_local_kind(kind: Option<FileSystemKind>) -> bool {
    kind.is_some_and(|kind| LOCAL.contains(&kind.0))
}

#[cfg(test)]
mod tests {
    use super::{ELSEWHERE, LOCAL, is_local_kind};
    use crate::file_system::FileSystemKind;

    #[test]
    fn a_file_system_that_is_not_known_to_be_local_is_taken_for_a_servers() {
        for (kind, is_local) in [
            (Some(0xef53), true),       // ext4
            (Some(0x5846_5342), true),  // XFS
            (Some(0x0102_1994), true),  // tmpfs
            (Some(0x6969), false),      // NFS
            (Some(0x6b41_4653), false), // AFS
            (Some(0x7461_636f), false), // OCFS2
            (Some(0x794c_7630), false), // overlay
            (Some(0x9fa0), false),      // proc
            (Some(0x0ddb_a110), false), // nobody's
            (Some(0), false),
            (None, false),
        ] {
            assert_eq!(
                is_local_kind(kind.map(FileSystemKind)),
                is_local,
                "{kind:x?}"
            );
        }
    }

    #[test]
    fn a_file_system_of_a_server_or_another_process_is_kept_elsewhere() {
        let kept = |number| FileSystemKind(number).kept_elsewhere();
        for local in LOCAL {
            assert_eq!(kept(local), None, "{local:x}");
        }
        assert_eq!(kept(0x794c_7630), None, "nobody knows whose an overlay is");
        for (number, name) in [
            (0x6969, "NFS"),
            (0xff53_4d42, "CIFS"),
            (0x6573_5546, "FUSE"),
            (0x0102_1997, "9P"),
            (0x6b41_4653, "AFS"),
            (0x7461_636f, "OCFS2"),
            (0x1983_0326, "BeeGFS"),
            (0x2003_0528, "OrangeFS"),
        ] {
            assert_eq!(kept(number), Some(name));
        }
        for (number, name) in ELSEWHERE {
            assert!(!is_local_kind(Some(FileSystemKind(number))), "{name}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_path_and_what_is_open_there_are_on_the_same_file_system() {
        let path = std::path::Path::new("/proc");
        let proc = Some(FileSystemKind(0x9fa0));
        assert_eq!(FileSystemKind::at(path), proc);
        let open = std::fs::File::open(path).unwrap();
        assert_eq!(FileSystemKind::under(&open), proc);
    }
}
