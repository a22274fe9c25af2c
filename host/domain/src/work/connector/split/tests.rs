//! Long texts in pieces: each fits, none is lost, and no block of code is left open.

use super::*;
use proptest::prelude::*;

const LIMIT: usize = 200;

fn fits(pieces: &[String], limit: usize) {
    for piece in pieces {
        assert!(units(piece) <= limit, "{} units: {piece}", units(piece));
        assert!(!piece.trim().is_empty());
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
    let pieces = split(&text, LIMIT);
    fits(&pieces, LIMIT);
    assert_eq!(pieces, [paragraph.clone(), paragraph.clone(), paragraph]);
    let lines = format!(
        "{}\n{}",
        "a ".repeat(60).trim_end(),
        "b ".repeat(60).trim_end()
    );
    let pieces = split(&lines, LIMIT);
    assert_eq!(pieces.len(), 2);
    assert!(pieces[0].ends_with('a') && pieces[1].starts_with('b'));
    let sentences = format!("{}. {}", "a".repeat(120), "b ".repeat(100).trim_end());
    let pieces = split(&sentences, LIMIT);
    assert_eq!(pieces[0], format!("{}.", "a".repeat(120)));
    let words = "word ".repeat(100);
    let pieces = split(&words, LIMIT);
    fits(&pieces, LIMIT);
    assert!(pieces.iter().all(|piece| piece.ends_with("word")));
}

#[test]
fn a_text_without_blanks_is_cut_between_characters() {
    let text = "😀".repeat(300);
    let pieces = split(&text, LIMIT);
    fits(&pieces, LIMIT);
    assert_eq!(pieces.concat(), text);
    let wide = "これは文です。".repeat(60);
    let pieces = split(&wide, LIMIT);
    fits(&pieces, LIMIT);
    assert!(pieces[0].ends_with('。'));
    assert_eq!(pieces.concat(), wide);
}

#[test]
fn a_block_of_code_is_closed_and_opened_again() {
    let code = "let x = 1;\n".repeat(40);
    let text = format!("See:\n\n```rust\n{code}```\n\nThat is all.");
    let pieces = split(&text, LIMIT);
    fits(&pieces, LIMIT);
    for piece in &pieces {
        assert_eq!(closing_of(piece), None, "{piece}");
    }
    assert!(pieces[1].starts_with("```rust\nlet x"));
    assert!(pieces[1].ends_with("let x = 1;\n```"));
    assert_eq!(letters(&pieces.join("\n")), letters(&text));
    assert!(pieces.last().unwrap().ends_with("That is all."));
}

#[test]
fn a_block_that_ends_where_the_text_is_cut_leaves_no_empty_one() {
    for lines in 8..24 {
        let code = "0123456789\n".repeat(lines);
        let text = format!("```\n{code}```\n\n{}", "after ".repeat(60).trim_end());
        let pieces = split(&text, LIMIT);
        fits(&pieces, LIMIT);
        for piece in &pieces {
            assert_ne!(piece, "```\n```", "{lines}");
            assert_eq!(closing_of(piece), None, "{lines}: {piece}");
        }
        assert_eq!(letters(&pieces.join("\n")), letters(&text), "{lines}");
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
    let pieces = split(&"a".repeat(1_000), 1);
    assert_eq!(pieces.len(), 6);
}

proptest! {
    #[test]
    fn every_piece_fits_and_nothing_is_lost(
        words in prop::collection::vec("[a-zé😀.]{1,30}|\n|\n\n| ", 0..200),
        limit in 200_usize..500,
    ) {
        let text = words.join(" ");
        let pieces = split(&text, limit);
        fits(&pieces, limit);
        prop_assert_eq!(letters(&pieces.concat()), letters(&text));
    }

    #[test]
    fn no_piece_leaves_a_block_of_code_open(
        lines in prop::collection::vec("```[a-z]{0,4}|~~~~|```|[a-z 😀]{0,80}|    ", 0..80),
        limit in 200_usize..400,
    ) {
        let text = lines.join("\n");
        let pieces = split(&text, limit);
        fits(&pieces, limit);
        let (_, before) = pieces.split_last().unwrap_or((&text, &[]));
        for piece in before {
            prop_assert_eq!(closing_of(piece), None);
        }
        prop_assert_eq!(letters(&pieces.join("\n")), letters(&text));
    }
}
