//! Versions of the plugin interface that were released: not a byte of them changes any more.

use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::Path;

/// Each version of the package in `wit/frozen/`, oldest first, with the digest of its folder:
/// interfaces and components.
///
/// A new version is added when it is released; see CONTRIBUTING.md. A row is never changed:
/// components with that version are out there.
pub const VERSIONS: [(&str, &str); 1] = [(
    "0.1.0",
    "32c7c6ce8aff7dcbf879c7458f03e7fc9d37dccbf3e47d58f95a64f5856724fa",
)];

/// The SHA-256 of all files of a folder, in hexadecimal digits: of each its path from there, a zero
/// byte, its length in eight bytes, most significant first, and its bytes, in the order of the
/// paths.
///
/// # Errors
/// A folder or file that cannot be read.
pub fn digest(folder: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    collect(folder, "", &mut files)?;
    files.sort();
    let mut hash = Sha256::new();
    for name in files {
        let bytes = fs::read(folder.join(&name))?;
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(&bytes);
    }
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.push(name);
        }
    }
    Ok(())
}

/// The version that a WIT text declares in its first line, `package name@version;`.
#[must_use]
pub fn version(wit: &str) -> Option<&str> {
    wit.lines()
        .next()?
        .strip_prefix("package agent-host:plugin@")?
        .strip_suffix(';')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_knows_the_names_and_the_bytes_of_all_files() {
        let folder = std::env::temp_dir().join(format!("agent-host-frozen-{}", std::process::id()));
        let of = |files: &[(&str, &str)]| {
            let _ = fs::remove_dir_all(&folder);
            for (name, text) in files {
                let file = folder.join(name);
                fs::create_dir_all(file.parent().expect("a folder")).expect("a folder is made");
                fs::write(file, text).expect("a file is written");
            }
            digest(&folder).expect("the folder can be read")
        };
        let all = [
            of(&[("a", "1"), ("b/c", "2")]),
            of(&[("a", "1"), ("b/c", "3")]),
            of(&[("a", "1"), ("b/d", "2")]),
            of(&[("a", "1")]),
            of(&[("a", "12"), ("b/c", "")]),
        ];
        assert_eq!(
            of(&[("b/c", "2"), ("a", "1")]),
            all[0],
            "in whatever order they were written"
        );
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{at}");
        }
        fs::remove_dir_all(&folder).expect("the folder goes");
    }

    #[test]
    fn a_version_stands_in_the_first_line() {
        assert_eq!(
            version("package agent-host:plugin@0.1.0;\n\nworld w {}"),
            Some("0.1.0")
        );
        assert_eq!(version("// package agent-host:plugin@0.1.0;"), None);
    }
}
