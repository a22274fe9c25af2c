//! The rule on widths: rustfmt keeps code within 100 columns, this rule keeps comments there.

use crate::masked::{Masked, line_at};
use crate::tree::TextFile;

/// Columns of a line with a comment.
pub const COLUMNS_MAX: usize = 100;

/// Returns the comments of one Rust file that are too wide.
///
/// Tables, fenced code and lines with a link keep the width that they need.
#[must_use]
pub fn check(file: &TextFile) -> Vec<String> {
    let masked = Masked::new(&file.text);
    let commented: Vec<usize> = masked
        .comments
        .iter()
        .flat_map(|range| {
            line_at(&file.text, range.start)..=line_at(&file.text, range.end.saturating_sub(1))
        })
        .collect();
    let mut is_fenced = false;
    let mut findings = Vec::new();
    for (number, line) in (1_usize..).zip(file.text.lines()) {
        let text = line
            .trim_start()
            .trim_start_matches(['/', '!'])
            .trim_start();
        let is_comment = line.trim_start().starts_with("//");
        let is_fence = is_comment && text.starts_with("```");
        is_fenced = is_comment && (is_fenced ^ is_fence);
        let needs_width = is_fenced || is_fence || text.starts_with('|') || has_link(line);
        let columns = line.chars().count();
        if columns > COLUMNS_MAX && !needs_width && commented.binary_search(&number).is_ok() {
            findings.push(format!(
                "{}: line {number}: a comment of {columns} columns, {COLUMNS_MAX} at most",
                file.path
            ));
        }
    }
    findings
}

fn has_link(line: &str) -> bool {
    ["](", "]: ", "https://", "http://"]
        .iter()
        .any(|mark| line.contains(mark))
}

/// Returns what is wrong with the configuration of rustfmt.
#[must_use]
pub fn check_rustfmt(config: &str) -> Vec<String> {
    let width = format!("max_width = {COLUMNS_MAX}");
    let has_width = config.lines().any(|line| line.trim() == width);
    (!has_width)
        .then(|| format!("rustfmt.toml: it must say `{width}`"))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_comment_is_found_and_a_table_a_fence_and_a_link_are_not() {
        let wide = "x ".repeat(60);
        for (text, expected) in [
            (format!("/// {wide}\n"), 1),
            (format!("fn a() {{}} // {wide}\n"), 1),
            (format!("/*\n{wide}\n*/\n"), 1),
            (format!("const A: &str = \"{wide}\";\n"), 0),
            (format!("//! | {wide} |\n"), 0),
            (format!("//! ```text\n//! {wide}\n//! ```\n"), 0),
            (format!("//! ```text\n//! ```\n//! {wide}\n"), 1),
            (format!("/// See [this](x). {wide}\n"), 0),
            ("/// Short.\n".to_owned(), 0),
        ] {
            let found = check(&TextFile::new("host/a.rs", &text)).len();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn rustfmt_has_the_same_width() {
        assert_eq!(check_rustfmt("max_width = 100\n").len(), 0);
        assert_eq!(check_rustfmt("max_width = 140\n").len(), 1);
    }
}
