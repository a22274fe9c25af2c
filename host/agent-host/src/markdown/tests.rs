//! Tests of rendered markdown: whole, and as it streams in.

use super::{Markdown, wrapped};

/// The rendered lines without their styles.
fn plain(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| without_styles(line)).collect()
}

fn without_styles(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once('m').map_or("", |(_, rest)| rest)
    })
}

fn rendered(source: &str, width: usize) -> Vec<String> {
    let mut markdown = Markdown::new(width);
    let mut lines = markdown.push(source);
    lines.extend(markdown.finish());
    lines
}

const DOCUMENT: &str = "# A title\n\nSome **bold** words, some *soft* ones, `code` and \
    [a link](https://example.com/x), which are more than fit on one line.\n\n- one\n- two with \
    more words than the width of a line has room for\n  - nested\n\n1. first\n2. second\n\n\
    > quoted words\n> in two lines\n\n```rust\nfn main() {\n\n    done();\n}\n```\n\n| a | b |\n\
    |---|---|\n| 1 | two words |\n\n---\n\nSnake_case and 2 * 3 stay.\n";

#[test]
fn blocks_are_shown_as_a_terminal_can() {
    assert_eq!(
        plain(&rendered(DOCUMENT, 40)),
        [
            "A title",
            "",
            "Some bold words, some soft ones, code",
            "and a link (https://example.com/x),",
            "which are more than fit on one line.",
            "",
            "• one",
            "• two with more words than the width of",
            "  a line has room for",
            "  • nested",
            "",
            "1. first",
            "2. second",
            "",
            "│ quoted words in two lines",
            "",
            "  fn main() {",
            "",
            "      done();",
            "  }",
            "",
            "a  b",
            "────────────",
            "1  two words",
            "",
            "────────────────────────────────────────",
            "",
            "Snake_case and 2 * 3 stay.",
        ]
    );
}

#[test]
fn styles_are_switched_off_where_they_end() {
    assert_eq!(
        rendered("a **b *c*** `d` ~~e~~", 40),
        ["a \u{1b}[1mb \u{1b}[0m\u{1b}[1;3mc\u{1b}[0m \u{1b}[36md\u{1b}[0m \u{1b}[9me\u{1b}[0m"]
    );
}

#[test]
fn a_text_that_streams_in_ends_as_it_is_rendered_whole() {
    for width in [20, 33, 40, 80] {
        let whole = rendered(DOCUMENT, width);
        for size in [1, 2, 3, 7, 50] {
            let mut markdown = Markdown::new(width);
            let characters: Vec<char> = DOCUMENT.chars().collect();
            let mut lines = Vec::new();
            for chunk in characters.chunks(size) {
                lines.extend(markdown.push(&chunk.iter().collect::<String>()));
            }
            lines.extend(markdown.finish());
            assert_eq!(lines, whole, "pieces of {size} at {width}");
        }
    }
}

#[test]
fn lines_of_an_open_paragraph_are_shown_before_its_end() {
    let mut markdown = Markdown::new(20);
    let words = "one two three four five six seven eight nine ten ";
    let lines = markdown.push(words);
    assert_eq!(lines, ["one two three four", "five six seven eight"]);
    assert_eq!(markdown.finish(), ["nine ten"]);
}

#[test]
fn markup_that_may_still_close_holds_its_line_back() {
    let mut markdown = Markdown::new(20);
    let words = "one **two three four five six seven eight ";
    assert_eq!(markdown.push(words), Vec::<String>::new());
    let lines = markdown.push("nine** ten\n\n");
    assert_eq!(
        lines.first().unwrap(),
        "one \u{1b}[1mtwo three four\u{1b}[0m"
    );
}

#[test]
fn code_is_shown_line_by_line() {
    let mut markdown = Markdown::new(20);
    let lines = markdown.push("```\nlet a = 1;\nlet b = 2;\nlet");
    assert_eq!(plain(&lines), ["  let a = 1;", "  let b = 2;"]);
}

#[test]
fn a_block_without_end_is_given_out_and_stays_code() {
    let mut markdown = Markdown::new(40);
    let mut lines = markdown.push("```\n");
    for number in 0..20_000 {
        lines.extend(markdown.push(&format!("line {number} * and *\n")));
    }
    lines.extend(markdown.push("```\n\nEnd.\n"));
    lines.extend(markdown.finish());
    let lines = plain(&lines);
    assert_eq!(lines.len(), 20_002);
    assert_eq!(lines.first().unwrap(), "  line 0 * and *");
    assert_eq!(lines.get(19_999).unwrap(), "  line 19999 * and *");
    assert_eq!(lines.last().unwrap(), "End.");
}

#[test]
fn a_line_of_code_without_end_is_given_out_once() {
    let mut markdown = Markdown::new(40);
    let mut lines = markdown.push("```\n");
    for number in 10_000..15_000 {
        lines.extend(markdown.push(&format!("{number},")));
    }
    lines.extend(markdown.push("\n```\n"));
    lines.extend(markdown.finish());
    let text: String = plain(&lines).iter().map(|line| line.trim()).collect();
    let all: String = (10_000..15_000)
        .map(|number| format!("{number},"))
        .collect();
    assert_eq!(text, all);
}

#[test]
fn a_table_is_narrowed_until_it_fits() {
    let table =
        "| name | what it is |\n|---|---|\n| worker | it reads and writes files for others |";
    assert_eq!(
        plain(&rendered(table, 30)),
        [
            "name    what it is",
            "──────────────────────────────",
            "worker  it reads and writes",
            "        files for others",
        ]
    );
}

#[test]
fn characters_that_steer_a_terminal_do_not_come_through_entities() {
    let lines = rendered("a&#27;[31mred&#7; `&#27;` [x](&#27;]8;;y)", 80);
    assert!(plain(&lines).iter().all(|line| !line.contains('\u{1b}')));
    let escapes = lines.concat().matches("\u{1b}[31m").count();
    assert_eq!(escapes, 0, "{lines:?}");
    assert!(!lines.concat().contains('\u{7}'), "{lines:?}");
    assert!(!lines.concat().contains("\u{1b}]"), "{lines:?}");
}

#[test]
fn wide_characters_count_as_two_columns() {
    let words = "漢字漢字漢字漢字 漢字漢字";
    assert_eq!(rendered(words, 20), ["漢字漢字漢字漢字", "漢字漢字"]);
    assert_eq!(rendered("漢字漢字漢字漢字漢字漢字", 20).len(), 2);
}

#[test]
fn nonsense_is_rendered_without_a_fault() {
    for source in [
        "",
        "\n\n\n",
        "*",
        "```",
        "- ",
        "1.",
        "|",
        "> > > > > > > > > > > > x",
        "| a |\n|---|",
        "<div>\n<b>x</b>\n</div>",
        "- [ ] open\n- [x] done",
        "[",
        "![a](b)",
        "\\",
        "&",
        "a\\\nb",
        "********",
        "- \n  - \n    - x",
        "#",
        "####### seven",
    ] {
        for width in [1, 2, 20] {
            let mut markdown = Markdown::new(width);
            for character in source.chars() {
                markdown.push(&character.to_string());
            }
            markdown.finish();
            rendered(source, width);
        }
    }
}

#[test]
fn a_plain_line_is_wrapped_below_its_first_word() {
    assert_eq!(
        wrapped("  ! one two three four", 14),
        ["  ! one two", "    three four"]
    );
    assert_eq!(wrapped("short", 14), ["short"]);
    assert_eq!(wrapped("", 14), [""]);
}
