//! Characters that change the display of the text around them, or that are invisible.

/// Returns whether a character controls the display of text. Such characters are line breaks and
/// other control characters, and those that change the direction of text. They can disguise a name
/// as another one (Trojan Source, CVE-2021-42574).
#[must_use]
pub fn controls_what_is_shown(char: char) -> bool {
    matches!(char, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || char.is_control()
}

/// Returns whether a character is invisible, or changes how others are shown. Such a character is a
/// control, changes the reading direction, has no width, or is a tag or a variation that no text of
/// people needs. A model reads all of them.
#[must_use]
pub fn is_hidden(char: char) -> bool {
    controls_what_is_shown(char)
        || matches!(
            char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Characters of a text that an error repeats.
const BEGINNING_CHARS_MAX: usize = 64;

/// Returns the beginning of a text, escaped, as an error repeats it.
#[must_use]
pub fn escaped(text: &str) -> String {
    let text = text.chars().take(BEGINNING_CHARS_MAX);
    text.flat_map(char::escape_debug).collect()
}

/// Text with every character visible: hidden and unprintable characters are written as numbers. At
/// most so many characters of it.
#[must_use]
pub fn visible(text: &str, chars_max: usize) -> String {
    let mut visible = String::new();
    for (index, char) in text.chars().enumerate() {
        if index == chars_max {
            visible.push('…');
            break;
        }
        let printable = matches!(char, '"' | '\'' | '\\') || char.escape_debug().len() == 1;
        if printable && !is_hidden(char) {
            visible.push(char);
        } else if matches!(char, '\n' | '\t' | '\r') {
            visible.extend(char.escape_default());
        } else {
            visible.extend(char.escape_unicode());
        }
    }
    visible
}

/// Returns the first sentence of a text's first line, with its full stop. A full stop before a
/// small letter ends no sentence: that is an abbreviation such as `e.g.`.
#[must_use]
pub fn first_sentence(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or_default();
    let end = line.match_indices(". ").find(|(at, stop)| {
        let next = line.get(at + stop.len()..).unwrap_or_default();
        !next.starts_with(char::is_lowercase)
    });
    end.and_then(|(at, _)| line.get(..=at)).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::{first_sentence, is_hidden, visible};

    #[test]
    fn a_sentence_does_not_end_at_an_abbreviation() {
        for (text, expected) in [
            (
                "Adds a note, e.g. of a call. And more.",
                "Adds a note, e.g. of a call.",
            ),
            ("  One line\nand another. More.", "One line"),
            ("Ends. Ümlaut.", "Ends."),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), expected);
        }
    }

    #[test]
    fn what_nobody_sees_is_hidden_and_what_people_write_is_not() {
        for hidden in [
            '\0',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{2028}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{feff}',
            '\u{fe01}',
            '\u{3164}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e007f}',
            '\u{e0100}',
        ] {
            assert!(is_hidden(hidden), "{hidden:?}");
        }
        for seen in [
            'a', ' ', 'é', 'ß', '中', 'ع', 'א', '🙂', '\u{fe0f}', '\u{301}', '\u{a0}', '—',
        ] {
            assert!(!is_hidden(seen), "{seen:?}");
        }
    }

    #[test]
    fn what_is_shown_of_a_text_has_nothing_hidden_in_it() {
        for (text, expected) in [
            ("plain \"text\" é 🙂", "plain \"text\" é 🙂"),
            ("a\nb\tc\u{1b}[2J", "a\\nb\\tc\\u{1b}[2J"),
            (
                "a\u{202e}b\u{e0041}\u{200b}",
                "a\\u{202e}b\\u{e0041}\\u{200b}",
            ),
            ("\u{e000}\u{fdd0}", "\\u{e000}\\u{fdd0}"),
        ] {
            assert_eq!(visible(text, 100), expected);
        }
        assert_eq!(visible("abcdef", 3), "abc…");
    }
}
