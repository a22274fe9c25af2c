//! The list of requirements: every row has an id of its own and names tests that exist.

use crate::tree::TextFile;
use std::collections::{BTreeMap, BTreeSet};

/// The names of all test functions, and of the core modules that attack the host: a test there sees
/// to it that each has one of its name.
#[must_use]
pub fn tests(files: &[TextFile]) -> BTreeSet<String> {
    let modules = files.iter().filter_map(|file| {
        file.path
            .strip_prefix("tests/programs/wat/")?
            .strip_suffix(".wat")
    });
    let mut names: BTreeSet<String> = modules.map(str::to_owned).collect();
    for file in files.iter().filter(|file| file.is("rs")) {
        let mut marked = false;
        for line in file.text.lines().map(str::trim) {
            if line.starts_with("#[") {
                marked |= line.contains("test") && !line.starts_with("#[cfg");
            } else if let Some(name) = function(line) {
                if marked {
                    names.insert(name.to_owned());
                }
                marked = false;
            }
        }
    }
    names
}

fn function(line: &str) -> Option<&str> {
    let line = line
        .strip_prefix("pub ")
        .or_else(|| line.strip_prefix("pub(super) "))
        .unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// Everything that is wrong with the rows `| id | what | proving tests |` of a document.
#[must_use]
pub fn check(document: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, line) in (1_usize..).zip(document.lines()) {
        let Some((id, proofs)) = row(line) else {
            continue;
        };
        if let Some(first) = rows.insert(id, number) {
            findings.push(format!(
                "line {number}: {id} stands in line {first} already"
            ));
        }
        let named: Vec<&str> = proofs.split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            findings.push(format!("line {number}: {id} names no test"));
        }
        for name in named {
            if !tests.contains(name) {
                findings.push(format!("line {number}: {id}: there is no test `{name}`"));
            }
        }
    }
    if rows.is_empty() {
        findings.push("no rows at all: has the check lost its object?".to_owned());
    }
    findings
}

/// The names of all tests that a document's rows name.
#[must_use]
pub fn named(document: &str) -> BTreeSet<String> {
    document
        .lines()
        .filter_map(row)
        .flat_map(|(_, proofs)| proofs.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

/// A row's id and its last cell. An id starts with a capital letter and ends with a digit; heads
/// and rules of tables do not.
fn row(line: &str) -> Option<(&str, &str)> {
    let mut cells = line
        .trim()
        .strip_prefix('|')?
        .strip_suffix('|')?
        .split('|')
        .map(str::trim);
    let id = cells.next()?;
    let proofs = cells.next_back()?;
    let is_id = id.starts_with(|c: char| c.is_ascii_uppercase())
        && id.ends_with(|c: char| c.is_ascii_digit());
    is_id.then_some((id, proofs))
}

#[cfg(test)]
mod tests {
    use super::{TextFile, check, tests};

    #[test]
    fn a_row_names_tests_that_exist_under_an_id_of_its_own() {
        let source = "#[test]\nfn one_is_one() {}\n\n#[tokio::test]\nasync fn two_is_two() \
             {}\n#[cfg(test)]\nfn three() {}\n";
        let tests = tests(&[TextFile::new("a.rs", source)]);
        let check = |rows: &str| {
            check(
                &format!("| id | what | test |\n|---|---|---|\n{rows}"),
                &tests,
            )
        };
        assert_eq!(
            check("| S1.1 | one | `one_is_one`, `two_is_two` |").len(),
            0
        );
        assert_eq!(
            check("| S1.1 | one | `three` |"),
            ["line 3: S1.1: there is no test `three`"]
        );
        assert_eq!(
            check("| S1.1 | one | by hand |"),
            ["line 3: S1.1 names no test"]
        );
        assert_eq!(
            check("| S1.1 | one | `one_is_one` |\n| S1.1 | again | `one_is_one` |"),
            ["line 4: S1.1 stands in line 3 already"]
        );
        assert_eq!(check("").len(), 1);
    }
}
