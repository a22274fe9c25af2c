//! Splitting of texts that are longer than one message of a service.
//!
//! A text is cut at the last paragraph that fits, otherwise at a line, a sentence, a word, or
//! finally between two characters. A code block that is cut is closed in one chunk and reopened in
//! the next.

use super::TEXT_LIMIT_MIN;

/// The most backquotes or tildes in the fence of a code block. A longer one is text.
const FENCE_CHARS_MAX: usize = 16;
/// Bytes of the text after a fence, such as `rust`, that are repeated in the next chunk.
const INFO_BYTES_MAX: usize = 32;
/// The first part of a chunk in which a cut is avoided if possible: a third.
const UNCUT_PART: usize = 3;

/// An open code block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fence {
    /// Its backquotes or tildes.
    marker: String,
    /// The word after them, if any.
    info: String,
}

/// A place where a text is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// The end of the text before it.
    end: usize,
    /// The beginning of the next chunk: blanks in between are left out.
    next: usize,
}

/// The last places between lines where a text can be cut.
#[derive(Debug, Clone, Copy, Default)]
struct Places {
    paragraph: Option<Cut>,
    line: Option<Cut>,
    line_of_code: Option<Cut>,
}

/// Returns the chunks of a text, each of at most so many UTF-16 code units; [`TEXT_LIMIT_MIN`] at
/// least. Blanks between two chunks are left out, and so is a blank chunk.
#[must_use]
pub fn split(text: &str, limit_utf16: usize) -> Vec<String> {
    let limit = limit_utf16.max(usize::try_from(TEXT_LIMIT_MIN).unwrap_or(usize::MAX));
    let mut chunks = Vec::new();
    let mut open: Option<Fence> = None;
    let mut rest = text.trim_end();
    while !rest.trim().is_empty() {
        if open.is_none() {
            rest = rest.trim_start_matches(['\n', '\r']);
        }
        let before = open.as_ref().map_or_else(String::new, Fence::opening);
        let room = limit.saturating_sub(units(&before));
        if prefix(rest, room).len() == rest.len() {
            chunks.push(format!("{before}{rest}"));
            break;
        }
        // Room for closing a block is reserved whether or not one is open at the end.
        let window = prefix(rest, room.saturating_sub(FENCE_CHARS_MAX + 1));
        let cut = cut_of(window, open.as_ref());
        let chunk = window.get(..cut.end).unwrap_or(window).trim_end();
        rest = rest.get(cut.next..).unwrap_or_default();
        open = fence_after(open, chunk);
        let mut whole = format!("{before}{chunk}");
        if let Some(fence) = &open {
            whole.push('\n');
            whole.push_str(&fence.marker);
            if let Some(after) = after_closing(rest, fence) {
                rest = after;
                open = None;
            }
        }
        if !chunk.is_empty() {
            chunks.push(whole);
        }
    }
    chunks
}

/// Returns the number of UTF-16 code units of a text.
#[must_use]
pub fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Returns the longest beginning of a text with at most so many UTF-16 code units.
#[must_use]
pub fn prefix(text: &str, units: usize) -> &str {
    let mut left = units;
    let end = text.char_indices().find(|(_, char)| {
        let fits = char.len_utf16() <= left;
        left = left.saturating_sub(char.len_utf16());
        !fits
    });
    end.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

/// Returns the marker that closes the code block in which a text ends, if any.
pub(super) fn closing_of(text: &str) -> Option<String> {
    fence_after(None, text).map(|fence| fence.marker)
}

/// Returns the place where a text of the maximum length is cut.
fn cut_of(window: &str, open: Option<&Fence>) -> Cut {
    let earliest = window.len() / UNCUT_PART;
    let late = |cut: &Cut| cut.end > earliest;
    let places = Places::of(window, open.cloned());
    let word = |at: usize| Cut {
        end: at,
        next: at + 1,
    };
    places
        .paragraph
        .filter(late)
        .or_else(|| places.line.filter(late))
        .or_else(|| places.line_of_code.filter(late))
        .or_else(|| sentence(window).filter(late))
        .or_else(|| window.rfind(' ').filter(|at| *at > 0).map(word))
        .unwrap_or(Cut {
            end: window.len(),
            next: window.len(),
        })
}

/// Returns the place after the last sentence.
fn sentence(window: &str) -> Option<Cut> {
    let spaced = [". ", "! ", "? "].into_iter().filter_map(|mark| {
        let end = window.rfind(mark)? + 1;
        Some(Cut { end, next: end + 1 })
    });
    let wide = ['。', '！', '？'].into_iter().filter_map(|mark| {
        let end = window.rfind(mark)? + mark.len_utf8();
        Some(Cut { end, next: end })
    });
    spaced.chain(wide).max_by_key(|cut| cut.end)
}

impl Places {
    /// The places of a text, which may begin inside a code block. The line that opens a block stays
    /// with it.
    fn of(window: &str, mut open: Option<Fence>) -> Self {
        let mut places = Self::default();
        let mut at = 0;
        for line in window.split_inclusive('\n') {
            let was_open = open.is_some();
            open = fence_after(open, line);
            at += line.len();
            let Some(end) = line.ends_with('\n').then(|| at.saturating_sub(1)) else {
                break;
            };
            let cut = Cut { end, next: at };
            if open.is_some() {
                places.line_of_code = was_open.then_some(cut).or(places.line_of_code);
                continue;
            }
            places.line = Some(cut);
            let after = window.get(at..).unwrap_or_default();
            if line.trim().is_empty() || after.starts_with(['\n', '\r']) {
                places.paragraph = Some(cut);
            }
        }
        places
    }
}

impl Fence {
    /// The fence that a line opens.
    fn opened_by(line: &str) -> Option<Self> {
        let (marker, behind) = Self::marker_of(line)?;
        let behind = behind.trim();
        // CommonMark: the text after a fence of backquotes contains no backquotes.
        if marker.starts_with('`') && behind.contains('`') {
            return None;
        }
        let info = behind.split_whitespace().next().unwrap_or_default();
        Some(Self {
            marker: marker.to_owned(),
            info: if info.len() <= INFO_BYTES_MAX {
                info.to_owned()
            } else {
                String::new()
            },
        })
    }

    /// Returns the backquotes or tildes at the beginning of a line, and the text after them.
    fn marker_of(line: &str) -> Option<(&str, &str)> {
        let indented = line.trim_start_matches(' ');
        if line.len() - indented.len() > 3 {
            return None;
        }
        let first = indented
            .chars()
            .next()
            .filter(|char| matches!(char, '`' | '~'))?;
        let behind = indented.trim_start_matches(first);
        let chars = indented.len() - behind.len();
        let marker = indented.get(..chars)?;
        (3..=FENCE_CHARS_MAX)
            .contains(&chars)
            .then_some((marker, behind))
    }

    fn is_closed_by(&self, line: &str) -> bool {
        Self::marker_of(line).is_some_and(|(marker, behind)| {
            marker.starts_with(&self.marker) && behind.trim().is_empty()
        })
    }

    /// The line that opens it again.
    fn opening(&self) -> String {
        format!("{}{}\n", self.marker, self.info)
    }
}

/// Returns the code block that is open after a text.
fn fence_after(mut open: Option<Fence>, text: &str) -> Option<Fence> {
    for line in text.lines() {
        open = match open {
            Some(fence) if fence.is_closed_by(line) => None,
            Some(fence) => Some(fence),
            None => Fence::opened_by(line),
        };
    }
    open
}

/// Returns the text after the line that closes a block, if nothing else precedes that line.
fn after_closing<'a>(rest: &'a str, fence: &Fence) -> Option<&'a str> {
    let rest = rest.trim_start_matches(['\n', '\r']);
    let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
    fence.is_closed_by(line).then_some(after)
}

#[cfg(test)]
mod tests {
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
}
