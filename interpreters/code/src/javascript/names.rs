//! Places of names that are not defined.
//!
//! The engine keeps the places of calls, of properties and of bodies, and none of names. An error
//! about a name has the place of the last of them before it, or of the one around it.

use super::places::{Place, byte_of, place_of};
use super::reader::reads_of;

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
    use super::place_of_read;
    use crate::javascript::places::Place;

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
