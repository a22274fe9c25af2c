//! The budgets of lines: a file's and a function's, with a list of those over it that only shrinks.

use crate::masked::{Masked, functions};
use crate::tree::TextFile;
use std::collections::BTreeMap;

/// Lines of a file, its inline tests included.
pub const LINES_MAX: usize = 600;
/// Lines of a file that holds only tests.
pub const TEST_LINES_MAX: usize = 1_200;
/// Lines of a function, from `fn` to its closing brace. Tests have no such budget.
pub const FUNCTION_LINES_MAX: usize = 70;

/// Returns the files and functions over their budgets, with their lines.
///
/// A file stands there by its path, a function as `path: name`. Where several functions of a file
/// share a name, the longest counts.
#[must_use]
pub fn over(files: &[TextFile]) -> BTreeMap<String, usize> {
    let mut over = BTreeMap::new();
    for file in files {
        let lines = file.text.lines().count();
        if lines > lines_max(file) {
            over.insert(file.path.clone(), lines);
        }
        if file.is_only_tests() {
            continue;
        }
        let code = Masked::new(&file.text).without_tests();
        for function in functions(&code) {
            if function.lines > FUNCTION_LINES_MAX {
                let longest = over
                    .entry(format!("{}: {}", file.path, function.name))
                    .or_insert(0);
                *longest = function.lines.max(*longest);
            }
        }
    }
    over
}

fn lines_max(file: &TextFile) -> usize {
    if file.is_only_tests() {
        TEST_LINES_MAX
    } else {
        LINES_MAX
    }
}

/// Compares numbers that are too large with the list of those that are known.
///
/// A number that is not on the list, or larger than there, is a finding. So is a row of the list
/// whose number is smaller by now, or within its limit: the list only shrinks.
#[must_use]
pub fn compare(found: &BTreeMap<String, usize>, known: &[(&str, usize)]) -> Vec<String> {
    let mut rows: BTreeMap<&str, usize> = known.iter().copied().collect();
    let mut findings: Vec<String> = found
        .iter()
        .filter_map(|(name, count)| match rows.remove(name.as_str()) {
            None => Some(format!("{name}: {count}: divide it")),
            Some(row) if row < *count => {
                Some(format!("{name}: {count}, and {row} on the list: divide it"))
            }
            Some(row) if row > *count => {
                Some(format!("{name}: {count} by now: note that on the list"))
            }
            Some(_) => None,
        })
        .collect();
    findings.extend(
        rows.keys()
            .map(|name| format!("{name}: within its limit by now: take it off the list")),
    );
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over_of(path: &str, text: &str) -> Vec<(String, usize)> {
        over(&[TextFile::new(path, text)]).into_iter().collect()
    }

    #[test]
    fn a_file_has_a_budget_of_lines() {
        let text = |lines: usize| "\n".repeat(lines);
        assert_eq!(over_of("host/a.rs", &text(LINES_MAX)), []);
        assert_eq!(
            over_of("host/a.rs", &text(LINES_MAX + 1)),
            [("host/a.rs".to_owned(), LINES_MAX + 1)]
        );
        assert_eq!(over_of("host/a/tests.rs", &text(LINES_MAX + 1)), []);
        assert_eq!(
            over_of("tests/tests/all/a.rs", &text(TEST_LINES_MAX + 1)).len(),
            1
        );
    }

    #[test]
    fn a_function_has_a_budget_of_lines() {
        let text = |lines: usize| format!("fn a() {{{}}}\n", "\n".repeat(lines - 1));
        assert_eq!(over_of("host/a.rs", &text(FUNCTION_LINES_MAX)), []);
        assert_eq!(
            over_of("host/a.rs", &text(FUNCTION_LINES_MAX + 1)),
            [("host/a.rs: a".to_owned(), FUNCTION_LINES_MAX + 1)]
        );
        assert_eq!(
            over_of("host/tests/a.rs", &text(FUNCTION_LINES_MAX + 1)),
            []
        );
        let inline = format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            text(FUNCTION_LINES_MAX + 1)
        );
        assert_eq!(over_of("host/a.rs", &inline), []);
    }

    #[test]
    fn the_list_only_shrinks() {
        let found = BTreeMap::from([("a".to_owned(), 80)]);
        assert_eq!(compare(&found, &[("a", 80)]).len(), 0);
        assert_eq!(compare(&found, &[]).len(), 1);
        assert_eq!(compare(&found, &[("a", 79)]).len(), 1);
        assert_eq!(compare(&found, &[("a", 81)]).len(), 1);
        assert_eq!(compare(&found, &[("a", 80), ("b", 71)]).len(), 1);
    }
}
