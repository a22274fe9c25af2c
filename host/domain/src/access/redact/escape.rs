//! Escapes: spellings of one character by several, in URLs, JSON and HTML.

/// Bytes of the longest escape, `&#x0000041;`: with more leading zeros it is not recognised.
pub(super) const ESCAPE_BYTES_MAX: usize = 11;
/// Stands for a character that no secret contains.
const OTHER: u8 = 0xff;

/// The result of reading the first bytes of a text.
pub(super) enum Escape {
    /// No character yet: empty, or the possible beginning of an escape.
    Unfinished,
    /// A character, and the number of bytes of its spelling.
    Character(u8, usize),
}

/// Names that HTML has for visible characters of ASCII.
const ENTITIES: [(&[u8], u8); 42] = [
    (b"amp", b'&'),
    (b"AMP", b'&'),
    (b"lt", b'<'),
    (b"LT", b'<'),
    (b"gt", b'>'),
    (b"GT", b'>'),
    (b"quot", b'"'),
    (b"QUOT", b'"'),
    (b"apos", b'\''),
    (b"plus", b'+'),
    (b"sol", b'/'),
    (b"equals", b'='),
    (b"excl", b'!'),
    (b"num", b'#'),
    (b"dollar", b'$'),
    (b"percnt", b'%'),
    (b"lpar", b'('),
    (b"rpar", b')'),
    (b"ast", b'*'),
    (b"midast", b'*'),
    (b"comma", b','),
    (b"period", b'.'),
    (b"colon", b':'),
    (b"semi", b';'),
    (b"quest", b'?'),
    (b"commat", b'@'),
    (b"lsqb", b'['),
    (b"lbrack", b'['),
    (b"bsol", b'\\'),
    (b"rsqb", b']'),
    (b"rbrack", b']'),
    (b"Hat", b'^'),
    (b"lowbar", b'_'),
    (b"UnderBar", b'_'),
    (b"grave", b'`'),
    (b"lcub", b'{'),
    (b"lbrace", b'{'),
    (b"verbar", b'|'),
    (b"vert", b'|'),
    (b"VerticalLine", b'|'),
    (b"rcub", b'}'),
    (b"rbrace", b'}'),
];

/// Returns whether an escape begins with this byte.
pub(super) fn is_begin(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// Reads the first of these bytes.
pub(super) fn escape(bytes: &[u8]) -> Escape {
    match bytes {
        [] | [b'%' | b'\\' | b'&'] | [b'&', b'#'] | [b'&', b'#', b'x' | b'X'] => Escape::Unfinished,
        [b'%', digits @ ..] => fixed(bytes, digits, 2),
        [b'\\', b'u', digits @ ..] => fixed(bytes, digits, 4),
        [b'\\', b'x', digits @ ..] => fixed(bytes, digits, 2),
        [b'\\', escaped @ (b'"' | b'\\' | b'/'), ..] => Escape::Character(*escaped, 2),
        [b'&', b'#', b'x' | b'X', digits @ ..] => ended(bytes, digits, 16),
        [b'&', b'#', digits @ ..] => ended(bytes, digits, 10),
        [b'&', name @ ..] => named(name),
        [byte, ..] => Escape::Character(*byte, 1),
    }
}

/// A byte that begins no escape.
fn itself(bytes: &[u8]) -> Escape {
    Escape::Character(bytes.first().copied().unwrap_or(OTHER), 1)
}

/// An escape of a number of hexadecimal digits, which are the last of its bytes.
fn fixed(bytes: &[u8], digits: &[u8], count: usize) -> Escape {
    let before = bytes.len() - digits.len();
    let digits = digits.get(..count).unwrap_or(digits);
    match number(digits, 16) {
        None => itself(bytes),
        Some(_) if digits.len() < count => Escape::Unfinished,
        Some(number) => Escape::Character(number, before + count),
    }
}

/// An escape by digits with a semicolon after them.
fn ended(bytes: &[u8], digits: &[u8], radix: u32) -> Escape {
    let before = bytes.len() - digits.len();
    let digits = digits.get(..ESCAPE_BYTES_MAX - before).unwrap_or(digits);
    let end = digits.iter().position(|&digit| digit == b';');
    match (
        end,
        number(
            digits
                .get(..end.unwrap_or(digits.len()))
                .unwrap_or_default(),
            radix,
        ),
    ) {
        (Some(0), _) | (_, None) => itself(bytes),
        (Some(end), Some(number)) => Escape::Character(number, before + end + 1),
        (None, Some(_)) if bytes.len() < ESCAPE_BYTES_MAX => Escape::Unfinished,
        (None, Some(_)) => itself(bytes),
    }
}

/// An escape by a name of HTML.
fn named(name: &[u8]) -> Escape {
    let named = |(known, character): &(&[u8], u8)| {
        let end = name.strip_prefix(*known)?.first()?;
        (*end == b';').then(|| Escape::Character(*character, known.len() + 2))
    };
    if let Some(found) = ENTITIES.iter().find_map(named) {
        return found;
    }
    if ENTITIES.iter().any(|(known, _)| known.starts_with(name)) {
        Escape::Unfinished
    } else {
        Escape::Character(b'&', 1)
    }
}

/// The character with a number. For a character outside ASCII, a byte that no secret contains. None
/// if these are not all digits.
fn number(digits: &[u8], radix: u32) -> Option<u8> {
    let number = digits.iter().try_fold(0_u64, |number, &digit| {
        Some(number * u64::from(radix) + u64::from(char::from(digit).to_digit(radix)?))
    })?;
    Some(u8::try_from(number).unwrap_or(OTHER))
}

#[cfg(test)]
mod tests {
    use super::{ENTITIES, ESCAPE_BYTES_MAX, Escape, escape};

    #[test]
    fn every_kind_of_escape_is_undone_once() {
        for (text, expected) in [
            ("%2F", Some((b'/', 3))),
            ("\\u002f", Some((b'/', 6))),
            ("\\x2f", Some((b'/', 4))),
            ("\\/x", Some((b'/', 2))),
            ("&#47;", Some((b'/', 5))),
            ("&#0047;", Some((b'/', 7))),
            ("&#x2F;", Some((b'/', 6))),
            ("&#X2f;", Some((b'/', 6))),
            ("&#x000002f;", Some((b'/', 11))),
            ("&sol;", Some((b'/', 5))),
            ("&amp;amp;", Some((b'&', 5))),
            ("&#8364;", Some((0xff, 7))),
            ("x", Some((b'x', 1))),
            ("%2", None),
            ("&", None),
            ("&#", None),
            ("&#x", None),
            ("&#x2", None),
            ("&am", None),
            ("&amp", None),
            ("%zz", Some((b'%', 1))),
            ("&#;", Some((b'&', 1))),
            ("&#x;", Some((b'&', 1))),
            ("&#0000000000047;", Some((b'&', 1))),
            ("&nothing;", Some((b'&', 1))),
            ("& ", Some((b'&', 1))),
        ] {
            let reported = match escape(text.as_bytes()) {
                Escape::Unfinished => None,
                Escape::Character(character, bytes) => Some((character, bytes)),
            };
            assert_eq!(reported, expected, "{text}");
        }
    }

    #[test]
    fn what_may_become_an_escape_is_bounded() {
        let longest = ENTITIES
            .iter()
            .map(|(name, _)| name.len() + 2)
            .max()
            .unwrap();
        for begin in ["%", "\\u", "\\x", "&#", "&#x", "&", "&Vertical"] {
            let text = format!("{begin}{}", "0".repeat(40));
            let unfinished = (0..text.len())
                .filter(|end| matches!(escape(&text.as_bytes()[..*end]), Escape::Unfinished))
                .max();
            assert!(
                unfinished.unwrap() < longest.max(ESCAPE_BYTES_MAX),
                "{text}"
            );
        }
    }
}
