//! Empty checklists: a heartbeat with one is not worth a model's time.

/// Returns whether a checklist has no content: only blank lines, headings, empty list items, empty
/// checkboxes, rules and HTML comments.
#[must_use]
pub fn is_effectively_empty(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    without_comments(text).lines().all(says_nothing)
}

fn says_nothing(line: &str) -> bool {
    let line = line.trim();
    if is_heading(line) {
        return true;
    }
    let is_rule = line.len() >= 3
        && ['-', '*', '_', '=']
            .iter()
            .any(|sign| line.chars().all(|found| found == *sign));
    is_rule || item(line).is_empty()
}

/// A heading, with or without words: `#` to `######`, and a space or nothing.
fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// The content of a line without the leading marks of lists, quotes and checkboxes.
fn item(line: &str) -> &str {
    let mut rest = line;
    loop {
        let before = rest;
        for mark in ["-", "*", "+", ">", "[ ]", "[x]", "[X]", "[]"] {
            rest = without_mark(rest, mark);
        }
        rest = without_number(rest);
        if rest == before {
            return rest;
        }
    }
}

/// The rest of a line after a mark, which is followed by a space or the line's end.
fn without_mark<'a>(line: &'a str, mark: &str) -> &'a str {
    match line.strip_prefix(mark) {
        Some(rest) if rest.is_empty() || rest.starts_with([' ', '\t']) => rest.trim_start(),
        _ => line,
    }
}

/// The rest of a line after a number with `.` or `)`.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start_matches(|sign: char| sign.is_ascii_digit());
    if rest.len() == line.len() {
        return line;
    }
    for mark in [".", ")"] {
        let behind = without_mark(rest, mark);
        if behind != rest {
            return behind;
        }
    }
    line
}

/// The text without its HTML comments. An unclosed comment extends to the end.
fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checklist_with_nothing_to_look_for_is_effectively_empty() {
        for text in [
            "",
            " \n\t\r\n",
            "\u{feff}# Heartbeat\n",
            "#\n## Two\n###### Six",
            "- \n-\n* \n+\n1.\n2) \n",
            "- [ ]\n- [ ] \n* [x]\n1. [ ]",
            "<!-- look at mail -->",
            "# Heartbeat\n<!--\n- mail\n-->\n- [ ]\n---\n***\n",
            "<!-- not closed\n- mail",
            "> -",
        ] {
            assert!(is_effectively_empty(text), "{text:?}");
        }
    }

    #[test]
    fn a_checklist_with_one_thing_to_look_for_is_not_empty() {
        for text in [
            "mail",
            "# Heartbeat\n\n- mail",
            "- [ ] mail",
            "1. mail",
            "#hashtag",
            "####### seven",
            "42",
            "<!-- a --> mail <!-- b -->",
            "-mail",
            "[mail]",
            "--",
        ] {
            assert!(!is_effectively_empty(text), "{text:?}");
        }
    }
}
