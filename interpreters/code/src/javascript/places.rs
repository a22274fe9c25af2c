//! Places in a program, as the engine counts them, and text that was inserted in it.
//!
//! The engine keeps the places of calls, of properties and of bodies, and none of names. An error
//! about a name that is not defined has the place of the last of them before it, or of the one
//! around it, so that the name is looked for from there.

use super::reader::reads_of;

/// A place in a program. Both numbers are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Place {
    /// The beginning of a program.
    pub(super) const FIRST: Self = Self { line: 1, column: 1 };
}

/// Text that was inserted in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Insert {
    /// The place before which it was inserted, in the program as it was.
    pub(super) before: Place,
    pub(super) width: u32,
}

/// A program with text that was inserted in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) code: String,
    pub(super) inserts: Vec<Insert>,
}

/// Returns the place in a program as it was, for one in the program as it is. What was inserted
/// last comes first; what was inserted at the same time, in the program's order.
pub(super) fn original(inserts: &[Insert], place: Place) -> Place {
    let of_line = inserts
        .iter()
        .filter(|insert| insert.before.line == place.line);
    let column = of_line.fold(place.column, |column, Insert { before, width }| {
        if column >= before.column + width {
            column - width
        } else {
            column.min(before.column)
        }
    });
    Place { column, ..place }
}

/// Returns the byte at a place.
pub(super) fn byte_of(code: &str, place: Place) -> Option<usize> {
    letters(code)
        .find(|(_, at)| *at == place)
        .map(|(byte, _)| byte)
}

/// Returns the place of a byte.
pub(super) fn place_of(code: &str, byte: usize) -> Option<Place> {
    letters(code)
        .find(|(at, _)| *at == byte)
        .map(|(_, place)| place)
}

/// Returns the last line of a program.
pub(super) fn last_line(code: &str) -> u32 {
    letters(code).last().map_or(1, |(_, place)| place.line)
}

/// The letters of a program, by their bytes and their places.
fn letters(code: &str) -> impl Iterator<Item = (usize, Place)> {
    let mut next = Place::FIRST;
    let mut letters = code.char_indices().peekable();
    std::iter::from_fn(move || {
        let (byte, letter) = letters.next()?;
        let place = next;
        let ends_line = match letter {
            '\r' => letters.peek().is_none_or(|(_, after)| *after != '\n'),
            '\n' | '\u{2028}' | '\u{2029}' => true,
            _ => false,
        };
        if ends_line {
            next.line += 1;
            next.column = 1;
        } else {
            next.column += 1;
        }
        Some((byte, place))
    })
}

/// Returns the place at which a name is read first, from the line of another place on. None if the
/// program has the name nowhere there, or cannot be read.
pub(super) fn place_of_read(code: &str, name: &str, from: Option<Place>) -> Option<Place> {
    let begin = from.map_or(Some(0), |from| line_of(code, from))?;
    let reads = reads_of(code, name)?;
    let byte = reads.into_iter().find(|byte| *byte >= begin)?;
    place_of(code, byte)
}

/// Returns the byte at which a line begins; that of the line above for one that goes on with a dot.
fn line_of(code: &str, place: Place) -> Option<usize> {
    let mut begin = byte_of(code, Place { column: 1, ..place })?;
    while begin > 0 && goes_on(code.get(begin..)?) {
        let above = code.get(..begin - 1)?;
        begin = above.rfind('\n').map_or(0, |end| end + 1);
    }
    Some(begin)
}

fn goes_on(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t']);
    line.starts_with('.') || line.starts_with("?.")
}

#[cfg(test)]
mod tests {
    use super::{Place, byte_of, last_line, place_of, place_of_read};

    #[test]
    fn bytes_and_places_are_found_by_each_other() {
        let code = "é a\r\nb\u{2028}c\rd\n e";
        for (line, column, letter) in [
            (1, 1, 'é'),
            (1, 3, 'a'),
            (2, 1, 'b'),
            (3, 1, 'c'),
            (4, 1, 'd'),
            (5, 2, 'e'),
        ] {
            let place = Place { line, column };
            let byte = code.find(letter);
            assert_eq!(byte_of(code, place), byte, "{letter}");
            assert_eq!(place_of(code, byte.unwrap()), Some(place), "{letter}");
        }
        assert_eq!(byte_of(code, Place { line: 6, column: 1 }), None);
        assert_eq!(last_line(code), 5);
        assert_eq!(last_line("a\n"), 1);
    }

    #[test]
    fn names_are_found_where_they_are_read() {
        for (code, from, expected) in [
            ("a; nope", (1, 1), Some((1, 4))),
            ("a(nope)", (1, 2), Some((1, 3))),
            ("nope(a)", (1, 5), Some((1, 1))),
            ("nope\n  .a()\n  ?.b", (3, 5), Some((1, 1))),
            ("nope;\na;\nnope", (2, 1), Some((3, 1))),
            (
                "// nope\n'nope' + /nope/ + `nope ${nope}`",
                (1, 1),
                Some((2, 27)),
            ),
            ("a.nope + [...nope]", (1, 1), Some((1, 14))),
            ("({ nope: 1, a: nope })", (1, 1), Some((1, 16))),
            ("a ? nope : 1", (1, 1), Some((1, 5))),
            (
                "typeof nope; nope => 1; { let nope } nope",
                (1, 1),
                Some((1, 38)),
            ),
            ("nopes + a.nope", (1, 1), None),
            ("nope\na", (2, 1), None),
            ("nope\n'", (1, 1), None),
        ] {
            let place = |(line, column)| Place { line, column };
            let found = place_of_read(code, "nope", Some(place(from)));
            assert_eq!(found, expected.map(place), "{code}");
        }
        let anywhere = place_of_read("a;\nnope", "nope", None);
        assert_eq!(anywhere, Some(Place { line: 2, column: 1 }));
    }
}
