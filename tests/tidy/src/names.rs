//! Names that say nothing: forbidden as modules and as the ends of types' names.

use crate::tree::TextFile;

/// Words that must not end a type's name or be a module's name.
const EMPTY_WORDS: [&str; 9] = [
    "Manager",
    "Handler",
    "Helper",
    "Service",
    "Processor",
    "Util",
    "Common",
    "Base",
    "Impl",
];

/// Every empty name in one Rust file: its own, its modules', its types'.
#[must_use]
pub fn check(file: &TextFile) -> Vec<String> {
    let stem = file.name().strip_suffix(".rs").unwrap_or_default();
    let own = is_empty_module(stem).then(|| {
        format!(
            "{}: a file called `{stem}` says nothing of what is in it",
            file.path
        )
    });
    let inside = (1_usize..)
        .zip(file.text.lines())
        .filter_map(|(number, line)| {
            let name = declared(line)?;
            Some(format!(
                "{}: line {number}: `{name}` says nothing of what it is",
                file.path
            ))
        });
    own.into_iter().chain(inside).collect()
}

/// The empty name that a line declares, if it declares one.
fn declared(line: &str) -> Option<&str> {
    let mut words = line
        .split_whitespace()
        .skip_while(|word| word.starts_with("pub") || *word == "unsafe");
    let keyword = words.next()?;
    let rest = words.next()?;
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    let name = rest.get(..end)?;
    let empty = match keyword {
        "struct" | "enum" | "trait" | "type" | "union" => {
            EMPTY_WORDS.iter().any(|word| name.ends_with(word))
        }
        "mod" => is_empty_module(name),
        _ => false,
    };
    empty.then_some(name)
}

fn is_empty_module(name: &str) -> bool {
    EMPTY_WORDS
        .iter()
        .map(|word| word.to_lowercase())
        .any(|word| {
            let last = name.rsplit('_').next().unwrap_or_default();
            last == word || last.strip_suffix('s') == Some(&word)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_is_found_wherever_it_is_declared() {
        for (line, expected) in [
            ("pub struct SessionManager {", 1),
            ("pub(crate) struct EventHandler;", 1),
            ("enum Base {", 1),
            ("    trait ToolService: Send {", 1),
            ("type StoreImpl<T> = Vec<T>;", 1),
            ("mod util;", 1),
            ("pub mod test_helpers {", 1),
            ("pub struct Broker {", 0),
            ("struct Database;", 0),
            ("impl tower::Service<Request> for Routes {", 0),
            ("let handler = 1;", 0),
            ("// struct SessionManager", 0),
        ] {
            assert_eq!(
                check(&TextFile::new("host/a.rs", line)).len(),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn a_file_must_not_have_an_empty_name_either() {
        for (path, expected) in [
            ("host/common.rs", 1),
            ("host/utils.rs", 1),
            ("host/store.rs", 0),
            ("host/basis.rs", 0),
        ] {
            assert_eq!(check(&TextFile::new(path, "")).len(), expected, "{path}");
        }
    }
}
