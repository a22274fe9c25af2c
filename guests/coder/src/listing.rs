//! Results of the file tools, read back into data.

use crate::symbols::Language;

/// A file of a listing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Its path from the folder that was listed.
    pub(crate) path: String,
    pub(crate) bytes: u64,
}

/// Folders with what others wrote, or what a build made.
const PASSED_OVER: [&str; 10] = [
    ".git",
    "node_modules",
    "target",
    "dist",
    "build",
    "vendor",
    "__pycache__",
    ".venv",
    "venv",
    ".next",
];

/// The files of a listing, and whether there are more.
pub(crate) fn files(text: &str) -> (Vec<Listed>, bool) {
    let mut files = Vec::new();
    let mut has_more = false;
    for line in text.lines() {
        if line.starts_with("[there is more;") {
            has_more = true;
        }
        let file = line
            .strip_suffix(" bytes)")
            .and_then(|line| line.rsplit_once(" ("))
            .and_then(|(path, bytes)| Some((path, bytes.parse().ok()?)));
        if let Some((path, bytes)) = file {
            files.push(Listed {
                path: path.to_owned(),
                bytes,
            });
        }
    }
    (files, has_more)
}

/// The language of a file that is worth reading; none for others and for those of others' making.
pub(crate) fn worth_reading(path: &str) -> Option<Language> {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    if folders
        .split('/')
        .any(|folder| PASSED_OVER.contains(&folder))
    {
        return None;
    }
    Language::from_path(path)
}

/// A part of a file as `read_file` returned it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    pub(crate) text: &'a str,
    /// The lines to skip for the next part, if there is one.
    pub(crate) next: Option<u64>,
}

/// Reads a part.
///
/// # Errors
/// The file is not text. The error is its size in bytes.
pub(crate) fn part(text: &str) -> Result<Part<'_>, u64> {
    if let Some(bytes) = bytes_of_no_text(text) {
        return Err(bytes);
    }
    if text.starts_with("[the file has only ") && !text.contains('\n') {
        return Ok(Part {
            text: "",
            next: None,
        });
    }
    let more = text
        .rsplit_once("\n[there is more; go on with offset ")
        .and_then(|(head, tail)| Some((head, tail.strip_suffix(']')?.parse().ok()?)));
    Ok(match more {
        Some((text, next)) => Part {
            text,
            next: Some(next),
        },
        None => Part { text, next: None },
    })
}

/// Returns the size of a file that `read_file` did not show because it is not text.
fn bytes_of_no_text(text: &str) -> Option<u64> {
    let line = text.strip_prefix('`').filter(|line| !line.contains('\n'))?;
    let (_, bytes) = line.rsplit_once("` is not text; it has ")?;
    bytes.strip_suffix(" bytes")?.parse().ok()
}

/// A line that a search found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hit<'a> {
    pub(crate) file: &'a str,
    pub(crate) line: u64,
    pub(crate) text: &'a str,
}

/// The lines that a search found, and whether there may be more.
pub(crate) fn hits(text: &str) -> (Vec<Hit<'_>>, bool) {
    let has_more = text
        .lines()
        .any(|line| line.starts_with("[there may be more;"));
    let hits = text.lines().filter_map(hit).collect();
    (hits, has_more)
}

/// Reads `src/a.rs:12: text`. A path may have colons of its own.
fn hit(line: &str) -> Option<Hit<'_>> {
    line.match_indices(": ").find_map(|(end, _)| {
        let (file, number) = line.get(..end)?.rsplit_once(':')?;
        let line_number = number.parse().ok()?;
        Some(Hit {
            file,
            line: line_number,
            text: line.get(end + 2..)?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{Listed, files, hits, part, worth_reading};

    #[test]
    fn what_the_file_tools_say_is_read_back() {
        let text = "src/\nsrc/a (b).rs (12 bytes)\nlink@\n[there is more; narrow the path]";
        let listed = Listed {
            path: "src/a (b).rs".to_owned(),
            bytes: 12,
        };
        assert_eq!(files(text), (vec![listed], true));

        let cut = part("a\nb\n\n[there is more; go on with offset 2]").unwrap();
        assert_eq!((cut.text, cut.next), ("a\nb\n", Some(2)));
        assert_eq!(part("`/d/x` is not text; it has 9 bytes"), Err(9));

        let found = hits("a:b.rs:7: let x: u8;\n[no line in `x` matches]").0;
        let found: Vec<_> = found
            .iter()
            .map(|hit| (hit.file, hit.line, hit.text))
            .collect();
        assert_eq!(found, [("a:b.rs", 7, "let x: u8;")]);
        assert!(worth_reading("src/target.rs").is_some());
        assert!(worth_reading("target/debug/a.rs").is_none());
    }
}
