//! Rules about documents: their links lead somewhere, and the paths and commands that they name
//! exist.

use crate::tree::TextFile;
use std::path::Path;

/// Extensions of source files. A name with one of them is meant to be a file of this repository.
const SOURCE: [&str; 3] = ["rs", "wat", "wit"];

/// The targets of a Markdown file's links to other files of the repository, as paths from its root.
#[must_use]
pub fn links(file: &TextFile) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(&file.text) {
        for (at, _) in line.match_indices("](") {
            let target = line
                .get(at + 2..)
                .and_then(|rest| rest.split([')', ' ', '#']).next())
                .unwrap_or_default();
            if !target.is_empty() && !target.contains(':') {
                links.push(resolve(file.folder(), target));
            }
        }
    }
    links
}

/// The lines outside fenced code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// A relative target from a folder, as a path from the root.
pub(crate) fn resolve(folder: &str, target: &str) -> String {
    let mut path: Vec<&str> = if target.starts_with('/') {
        Vec::new()
    } else {
        folder.split('/').collect()
    };
    for component in target.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                path.pop();
            }
            _ => path.push(component),
        }
    }
    path.retain(|component| !component.is_empty());
    path.join("/")
}

/// Returns the code spans of a document, without those in fenced code.
#[must_use]
pub fn spans(text: &str) -> Vec<String> {
    let lines: Vec<&str> = prose(text).collect();
    lines
        .split(|line| line.trim().is_empty())
        .flat_map(|paragraph| {
            let paragraph = paragraph.join(" ");
            let spans = paragraph.split('`').skip(1).step_by(2);
            spans.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the files and folders of the repository that a document names in code spans, as they
/// stand there.
///
/// A span is a path if its first component is a folder of the root, if it ends with a `/`, or if it
/// is the name of a source file. Spans with placeholders are left out.
pub fn paths(text: &str, is_at_root: impl Fn(&str) -> bool) -> Vec<String> {
    let mut paths = spans(text);
    paths.retain(|span| is_path(span, &is_at_root));
    paths
}

fn is_path(span: &str, is_at_root: impl Fn(&str) -> bool) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ['_', '-', '.', '/'].contains(&c);
    if span.starts_with('/') || !span.chars().all(is_plain) {
        return false;
    }
    let is_source = Path::new(span)
        .extension()
        .is_some_and(|found| SOURCE.iter().any(|extension| found == *extension));
    let first = span.split_once('/').map(|(first, _)| first);
    is_source || span.ends_with('/') || first.is_some_and(is_at_root)
}

/// The commands of the entry script that a document names: the words after `./x `.
#[must_use]
pub fn commands(text: &str) -> Vec<&str> {
    text.match_indices("./x ")
        .filter_map(|(at, mark)| text.get(at + mark.len()..))
        .map(|rest| {
            rest.split(|c: char| !c.is_ascii_lowercase() && c != '-')
                .next()
                .unwrap_or_default()
        })
        .filter(|command| !command.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_path_from_the_root() {
        let text = "See [a](../A.md), [b](b/c.md#part), [c](#here), [d](https://example.org/x) and \
                    [e](/host).\n```\n[f](f.md)\n```\n[g](.)\n";
        assert_eq!(
            links(&TextFile::new("docs/x.md", text)),
            ["A.md", "docs/b/c.md", "host", "docs"]
        );
    }

    #[test]
    fn a_path_is_a_code_span_that_names_a_file_or_folder_of_the_repository() {
        let text = "In `host/a.rs`, `b.rs`, `c/`, `wit` and `docs/x`, not in `text/plain`, `a\nb`, \
                    `/v1/c.rs`,\n`host/<x>/a.rs` or `d.toml`.\n```\n`host/e.rs`\n```\n\nAn odd `\n\n\
                    `host/f`\n";
        assert_eq!(
            paths(text, |folder| ["host", "docs"].contains(&folder)),
            ["host/a.rs", "b.rs", "c/", "docs/x", "host/f"]
        );
    }

    #[test]
    fn the_commands_of_a_document_are_the_words_after_the_script() {
        assert_eq!(
            commands("Run `./x demo`, then\n    ./x chat tutor\nand ./x test."),
            ["demo", "chat", "test"]
        );
    }
}
