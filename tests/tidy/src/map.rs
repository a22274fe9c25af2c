//! The rule on the map: ARCHITECTURE.md has one table, one row a folder, and few of them.

/// Rows of the table.
pub const ROWS_MAX: usize = 15;

/// Returns the folders that the rows of a document's tables name, those of a row together.
///
/// A row names folders as code spans or as links to them, in its first cell.
#[must_use]
pub fn rows(document: &str) -> Vec<Vec<&str>> {
    document
        .lines()
        .filter_map(|line| line.trim().strip_prefix('|')?.split('|').next())
        .filter(|cell| cell.contains('`'))
        .map(|cell| cell.split('`').skip(1).step_by(2).collect())
        .collect()
}

/// Returns what is wrong with the table, given a function that says whether a folder exists.
pub fn check(document: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let rows = rows(document);
    let mut findings = Vec::new();
    if rows.is_empty() {
        findings.push("no rows at all: has the check lost its object?".to_owned());
    }
    if rows.len() > ROWS_MAX {
        let count = rows.len();
        findings.push(format!(
            "{count} rows, {ROWS_MAX} at most: say it in the module doc of the folder"
        ));
    }
    let missing = rows.iter().flatten().filter(|folder| !exists(folder));
    findings.extend(missing.map(|folder| format!("there is no folder `{folder}`")));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_folders_that_exist_and_there_are_few() {
        let head = "| folder | what |\n|---|---|\n";
        let check = |rows: &str| check(&format!("{head}{rows}"), |folder| folder == "a").len();
        assert_eq!(check("| `a` | `b` |\n"), 0);
        assert_eq!(check("| [`a`](a/lib.rs), `a` | x |\n"), 0);
        assert_eq!(check("| `a`, `b` | x |\n"), 1);
        assert_eq!(check(&"| `a` | x |\n".repeat(ROWS_MAX)), 0);
        assert_eq!(check(&"| `a` | x |\n".repeat(ROWS_MAX + 1)), 1);
        assert_eq!(check(""), 1);
    }
}
