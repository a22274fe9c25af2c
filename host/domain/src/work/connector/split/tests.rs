//! Long texts in chunks: each fits, none is lost, and no block of code is left open.

use super::*;
use proptest::prelude::*;

const LIMIT: usize = 200;

fn fits(chunks: &[String], limit: usize) {
    for chunk in chunks {
        assert!(units(chunk) <= limit, "{} units: {chunk}", units(chunk));
        assert!(!chunk.trim().is_empty());
    }
}

/// Everything but blanks, and without the lines of fences.
fn letters(text: &str) -> String {
    text.lines()
        .filter(|line| Fence::marker_of(line).is_none())
        .flat_map(str::chars)
        .filter(|char| !char.is_whitespace())
        .collect()
}

#[test]
fn a_text_that_fits_stays_whole() {
    assert_eq!(split("hello\n\nworld", LIMIT), ["hello\n\nworld"]);
    assert_eq!(split("", LIMIT), Vec::<String>::new());
    assert_eq!(split(" \n \n", LIMIT), Vec::<String>::new());
    let exact = "a".repeat(LIMIT);
    assert_eq!(split(&exact, LIMIT), std::slice::from_ref(&exact));
}

#[test]
fn a_text_is_cut_at_a_paragraph_before_a_line_before_a_word() {
    let paragraph = "one two three. ".repeat(8).trim_end().to_owned();
    let text = format!("{paragraph}\n\n{paragraph}\n{paragraph}");
    let chunks = split(&text, LIMIT);
    fits(&chunks, LIMIT);
    assert_eq!(chunks, [paragraph.clone(), paragraph.clone(), paragraph]);
    let lines = format!(
        "{}\n{}",
        "a ".repeat(60).trim_end(),
        "b ".repeat(60).trim_end()
    );
    let chunks = split(&lines, LIMIT);
    assert_eq!(chunks.len(), 2);
    assert!(chunks[0].ends_with('a') && chunks[1].starts_with('b'));
    let sentences = format!("{}. {}", "a".repeat(120), "b ".repeat(100).trim_end());
    let chunks = split(&sentences, LIMIT);
    assert_eq!(chunks[0], format!("{}.", "a".repeat(120)));
    let words = "word ".repeat(100);
    let chunks = split(&words, LIMIT);
    fits(&chunks, LIMIT);
    assert!(chunks.iter().all(|chunk| chunk.ends_with("word")));
}

#[test]
fn a_text_without_blanks_is_cut_between_characters() {
    let text = "😀".repeat(300);
    let chunks = split(&text, LIMIT);
    fits(&chunks, LIMIT);
    assert_eq!(chunks.concat(), text);
    let wide = "これは文です。".repeat(60);
    let chunks = split(&wide, LIMIT);
    fits(&chunks, LIMIT);
    assert!(chunks[0].ends_with('。'));
    assert_eq!(chunks.concat(), wide);
}

#[test]
fn a_block_of_code_is_closed_and_opened_again() {
    let code = "let x = 1;\n".repeat(40);
    let text = format!("See:\n\n```rust\n{code}```\n\nThat is all.");
    let chunks = split(&text, LIMIT);
    fits(&chunks, LIMIT);
    for chunk in &chunks {
        assert_eq!(closing_of(chunk), None, "{chunk}");
    }
    assert!(chunks[1].starts_with("```rust\nlet x"));
    assert!(chunks[1].ends_with("let x = 1;\n```"));
    assert_eq!(letters(&chunks.join("\n")), letters(&text));
    assert!(chunks.last().unwrap().ends_with("That is all."));
}

#[test]
fn a_block_that_ends_where_the_text_is_cut_leaves_no_empty_one() {
    for lines in 8..24 {
        let code = "0123456789\n".repeat(lines);
        let text = format!("```\n{code}```\n\n{}", "after ".repeat(60).trim_end());
        let chunks = split(&text, LIMIT);
        fits(&chunks, LIMIT);
        for chunk in &chunks {
            assert_ne!(chunk, "```\n```", "{lines}");
            assert_eq!(closing_of(chunk), None, "{lines}: {chunk}");
        }
        assert_eq!(letters(&chunks.join("\n")), letters(&text), "{lines}");
    }
}

#[test]
fn fences_are_told_as_markdown_tells_them() {
    for (line, opens) in [
        ("```", true),
        ("   ~~~~ python", true),
        ("    ```", false),
        ("``", false),
        ("``` a`b", false),
        ("~~~ a`b", true),
        ("text ```", false),
    ] {
        assert_eq!(Fence::opened_by(line).is_some(), opens, "{line}");
    }
    let fence = Fence::opened_by("````md").unwrap();
    assert!(!fence.is_closed_by("```") && fence.is_closed_by("`````"));
    assert!(!fence.is_closed_by("~~~~") && !fence.is_closed_by("```` md"));
    assert_eq!(fence.opening(), "````md\n");
    let long = format!("```{}", "x".repeat(40));
    assert_eq!(Fence::opened_by(&long).unwrap().opening(), "```\n");
}

#[test]
fn a_limit_below_what_every_service_has_is_not_kept() {
    let chunks = split(&"a".repeat(1_000), 1);
    assert_eq!(chunks.len(), 6);
}

proptest! {
    #[test]
    fn every_piece_fits_and_nothing_is_lost(
        words in prop::collection::vec("[a-zé😀.]{1,30}|\n|\n\n| ", 0..200),
        limit in 200_usize..500,
    ) {
        let text = words.join(" ");
        let chunks = split(&text, limit);
        fits(&chunks, limit);
        prop_assert_eq!(letters(&chunks.concat()), letters(&text));
    }

    #[test]
    fn no_piece_leaves_a_block_of_code_open(
        lines in prop::collection::vec("```[a-z]{0,4}|~~~~|```|[a-z 😀]{0,80}|    ", 0..80),
        limit in 200_usize..400,
    ) {
        let text = lines.join("\n");
        let chunks = split(&text, limit);
        fits(&chunks, limit);
        let (_, before) = chunks.split_last().unwrap_or((&text, &[]));
        for chunk in before {
            prop_assert_eq!(closing_of(chunk), None);
        }
        prop_assert_eq!(letters(&chunks.join("\n")), letters(&text));
    }
}
