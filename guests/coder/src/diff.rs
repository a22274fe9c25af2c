//! Unified diffs: which files they are about, and which lines of them they show.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Files of a diff.
const FILES_MAX: usize = 300;
/// Ranges of lines of all files.
const RANGES_MAX: usize = 3_000;
/// Bytes of a path.
const PATH_BYTES_MAX: usize = 300;

/// The places that a diff shows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Diff {
    /// By file, the first and last line of each hunk, in the new and in the old version.
    files: BTreeMap<String, Vec<(u32, u32)>>,
    ranges: usize,
    is_cut: bool,
}

impl Diff {
    /// Reads a diff; what is none is passed over.
    pub(crate) fn parse(text: &str) -> Self {
        let mut diff = Self::default();
        let mut old = None;
        let mut file: Option<String> = None;
        let mut left = Hunk::default();
        for line in text.lines() {
            // A removed line that begins with `-- ` looks like a header, but not within a hunk.
            if left.takes(line) {
                continue;
            }
            if let Some(path) = line.strip_prefix("--- ") {
                old = path_of(path);
            } else if let Some(path) = line.strip_prefix("+++ ") {
                file = path_of(path).or_else(|| old.take());
                if let Some(path) = &file {
                    diff.add_file(path);
                }
            } else if let Some((hunk, path)) = Hunk::parse(line).zip(file.as_ref()) {
                diff.add_range(path, hunk.new);
                diff.add_range(path, hunk.old);
                left = hunk;
            } else if let Some(paths) = line.strip_prefix("diff --git ") {
                // A file that is only renamed, or is no text, has no other lines.
                file = None;
                if let Some((_, path)) = paths.rsplit_once(" b/") {
                    diff.add_file(path);
                }
            }
        }
        diff
    }

    /// Returns true if it has no file.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns true if all of its places are known.
    pub(crate) fn is_whole(&self) -> bool {
        !self.is_cut
    }

    /// The paths of its files.
    pub(crate) fn files(&self) -> Vec<&str> {
        self.files.keys().map(String::as_str).collect()
    }

    /// Says why a place is not in the diff; none if it is.
    pub(crate) fn missing(&self, file: &str, line: Option<u32>) -> Option<String> {
        let plain = file.strip_prefix("./").unwrap_or(file);
        let prefixed = ["a/", "b/"]
            .iter()
            .find_map(|prefix| plain.strip_prefix(prefix));
        let found = self.files.get(plain).or_else(|| self.files.get(prefixed?));
        let Some(ranges) = found else {
            return Some("the file does not occur in the diff".to_owned());
        };
        let line = line?;
        let is_shown = ranges
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&line));
        (!is_shown).then(|| format!("line {line} of the file does not occur in the diff"))
    }

    fn add_file(&mut self, path: &str) {
        let is_short = path.len() <= PATH_BYTES_MAX && !path.contains(char::is_control);
        if self.files.len() < FILES_MAX && is_short {
            self.files.entry(path.to_owned()).or_default();
        } else {
            self.is_cut = true;
        }
    }

    fn add_range(&mut self, path: &str, range: Range) {
        if range.lines == 0 {
            return;
        }
        if self.ranges == RANGES_MAX {
            self.is_cut = true;
            return;
        }
        if let Some(ranges) = self.files.get_mut(path) {
            let last = range.first.saturating_add(range.lines - 1);
            if !ranges.contains(&(range.first, last)) {
                ranges.push((range.first, last));
                self.ranges += 1;
            }
        }
    }
}

/// Lines of one version of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Range {
    first: u32,
    lines: u32,
}

/// A hunk, with the lines that are left of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Hunk {
    old: Range,
    new: Range,
}

impl Hunk {
    /// Reads `@@ -3,7 +3,9 @@ …`.
    fn parse(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("@@ -")?;
        let (old, rest) = rest.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        Some(Self {
            old: Range::parse(old)?,
            new: Range::parse(new)?,
        })
    }

    /// Counts a line if it belongs to the hunk.
    fn takes(&mut self, line: &str) -> bool {
        let (old, new) = match line.bytes().next() {
            Some(b'+') => (0, 1),
            Some(b'-') => (1, 0),
            Some(b' ') | None => (1, 1),
            Some(b'\\') => return self.old.lines + self.new.lines > 0,
            Some(_) => return false,
        };
        if self.old.lines < old || self.new.lines < new {
            return false;
        }
        self.old.lines -= old;
        self.new.lines -= new;
        true
    }
}

impl Range {
    /// Reads `3,7`, or `3` for one line.
    fn parse(text: &str) -> Option<Self> {
        let (first, lines) = text.split_once(',').unwrap_or((text, "1"));
        Some(Self {
            first: first.parse().ok()?,
            lines: lines.parse().ok()?,
        })
    }
}

/// Returns the path of a header; none for a file that is not there.
fn path_of(header: &str) -> Option<String> {
    let path = header.split('\t').next().unwrap_or_default().trim_end();
    if path == "/dev/null" || path.is_empty() {
        return None;
    }
    let plain = path
        .strip_prefix("a/")
        .or_else(|| path.strip_prefix("b/"))
        .unwrap_or(path);
    Some(plain.to_owned())
}

#[cfg(test)]
mod tests {
    use super::Diff;

    const DIFF: &str = concat!(
        "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n",
        "@@ -3,4 +3,5 @@ fn f()\n line\n--- gone\n+new\n+new\n line\n line\n",
        "diff --git a/old.txt b/old.txt\n--- a/old.txt\n+++ /dev/null\n",
        "@@ -1,2 +0,0 @@\n-a\n-b\ndiff --git a/x b/y\nrename from x\nrename to y\n",
    );

    #[test]
    fn a_place_is_in_a_diff_by_its_file_and_line() {
        let diff = Diff::parse(DIFF);
        assert_eq!(diff.files(), ["old.txt", "src/a.rs", "y"]);
        for (file, line, is_there) in [
            ("src/a.rs", Some(3), true),
            ("b/src/a.rs", Some(7), true),
            ("src/a.rs", Some(8), false),
            ("src/a.rs", Some(2), false),
            ("src/a.rs", None, true),
            ("old.txt", Some(2), true),
            ("old.txt", Some(3), false),
            ("gone", None, false),
            ("b.rs", Some(3), false),
        ] {
            assert_eq!(
                diff.missing(file, line).is_none(),
                is_there,
                "{file} {line:?}"
            );
        }
    }

    #[test]
    fn what_is_no_diff_has_no_files() {
        for text in ["", "fn main() {}", "@@ -1 +1 @@\n+x", "--- a\nplain"] {
            assert!(Diff::parse(text).is_empty(), "{text}");
        }
    }
}
