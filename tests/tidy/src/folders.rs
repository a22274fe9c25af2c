//! The order of the folders of `domain`: none imports from one that comes after it.

use crate::masked::{Masked, first_word};
use crate::tree::TextFile;

/// The folders of `host/domain/src/`, from the one that knows no other to the one that knows all.
pub const FOLDERS: [&str; 6] = ["values", "access", "thread", "agents", "work", "events"];

/// Returns the places at which one file of `domain` names a later folder than its own.
///
/// A file that stands in none of the folders may name all of them. Inline tests do not count, and
/// neither do files that hold only tests.
#[must_use]
pub fn check(file: &TextFile) -> Vec<String> {
    let Some(own) = own(file).filter(|_| !file.is_only_tests()) else {
        return Vec::new();
    };
    let code = Masked::new(&file.text).without_tests();
    (1_usize..)
        .zip(code.lines())
        .flat_map(|(number, line)| named(line).map(move |folder| (number, folder)))
        .filter(|(_, folder)| position(folder) > Some(own))
        .map(|(number, folder)| {
            format!(
                "{}: line {number}: `{folder}` comes after this folder",
                file.path
            )
        })
        .collect()
}

fn position(folder: &str) -> Option<usize> {
    FOLDERS.iter().position(|known| *known == folder)
}

/// Returns the position of the folder in which a file stands, or whose module it is.
fn own(file: &TextFile) -> Option<usize> {
    position(first_word(file.path.strip_prefix("host/domain/src/")?))
}

/// Returns the modules of the crate that a line names.
fn named(line: &str) -> impl Iterator<Item = &str> {
    const MARK: &str = "crate::";
    line.match_indices(MARK).flat_map(move |(at, _)| {
        let rest = line.get(at + MARK.len()..).unwrap_or_default();
        let group = rest
            .strip_prefix('{')
            .map(|group| group.split_once('}').map_or(group, |(group, _)| group));
        match group {
            Some(group) => group.split(',').map(first_word).collect(),
            None => vec![first_word(rest)],
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_from_a_later_folder_is_found_and_one_from_an_earlier_is_not() {
        for (path, text, expected) in [
            ("values/id.rs", "use crate::access::grant::Grant;", 1),
            ("values.rs", "use crate::events::Event;", 1),
            ("values/id.rs", "use crate::{access, values};", 1),
            ("values/id.rs", "fn f() -> crate::work::run::Run {}", 1),
            ("work/run.rs", "use crate::agents::Agent;", 0),
            ("work/run.rs", "use crate::work::step::Step;", 0),
            ("work/run/tests.rs", "use crate::events::Event;", 0),
            ("refusal.rs", "use crate::events::Event;", 0),
            ("values/id.rs", "use other::access::Grant;", 0),
        ] {
            let file = TextFile::new(&format!("host/domain/src/{path}"), text);
            assert_eq!(check(&file).len(), expected, "{path}: {text}");
        }
    }
}
