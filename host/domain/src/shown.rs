//! Characters that change how the text around them is shown.

/// Whether a character controls what is shown: line breaks and other control characters, and what makes text run in another direction than it
/// is written, so that a name reads as another one than it is (Trojan Source, CVE-2021-42574).
#[must_use]
pub fn controls_what_is_shown(char: char) -> bool {
    matches!(char, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') || char.is_control()
}
