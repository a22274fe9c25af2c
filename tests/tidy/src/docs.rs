//! Rules about documents: their links lead somewhere, and the commands that they name exist.

use crate::tree::TextFile;

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
fn resolve(folder: &str, target: &str) -> String {
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
    fn the_commands_of_a_document_are_the_words_after_the_script() {
        assert_eq!(
            commands("Run `./x demo`, then\n    ./x chat tutor\nand ./x test."),
            ["demo", "chat", "test"]
        );
    }
}
