//! A page of what is stored of a chat: what was said to the visitor and what they said, in one
//! order.

use super::PAGE;
use domain::event::InputAccepted;
use store::OutboundMessageRow;

/// Something that is stored of a chat.
#[derive(Debug)]
pub(super) enum Line {
    /// It was said to the visitor.
    Reported(Box<OutboundMessageRow>),
    /// The visitor said it: an agent got it at this position.
    Own(u64, Box<InputAccepted>),
}

impl Line {
    pub(super) fn position(&self) -> u64 {
        match self {
            Self::Reported(row) => row.position,
            Self::Own(position, _) => *position,
        }
    }
}

/// A page of a chat.
#[derive(Debug)]
pub(super) struct Page {
    /// Its lines, in order.
    pub(super) lines: Vec<Line>,
    /// The position up to which it has everything.
    pub(super) end: u64,
}

impl Page {
    /// Returns the lines up to a position, and no further than to the first end of a list that goes
    /// on: beyond it, lines of that list are missing.
    pub(super) fn new(
        lines: impl Iterator<Item = Line>,
        ends: [Option<u64>; 2],
        until: u64,
    ) -> Self {
        let end = ends.into_iter().flatten().fold(until, u64::min);
        let mut lines: Vec<Line> = lines.filter(|line| line.position() <= end).collect();
        lines.sort_by_key(Line::position);
        Self { lines, end }
    }
}

/// Returns the position of the last row, if there may be more behind it.
pub(super) fn end_of_full<T>(rows: &[T], position: impl Fn(&T) -> u64) -> Option<u64> {
    rows.last().filter(|_| rows.len() >= PAGE).map(position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::event::Source;
    use domain::id::{InputId, SessionId};
    use domain::time::Timestamp;
    use uuid::Uuid;

    fn own(position: u64) -> Line {
        let accepted = InputAccepted::of(
            SessionId(Uuid::nil()),
            InputId(Uuid::nil()),
            Source::Api,
            Timestamp(0),
        );
        Line::Own(position, Box::new(accepted))
    }

    fn page(positions: &[u64], ends: [Option<u64>; 2], until: u64) -> (Vec<u64>, u64) {
        let page = Page::new(positions.iter().map(|it| own(*it)), ends, until);
        (page.lines.iter().map(Line::position).collect(), page.end)
    }

    #[test]
    fn a_page_ends_where_one_of_its_lists_may_go_on() {
        assert_eq!(page(&[5, 2, 9], [None, None], 7), (vec![2, 5], 7));
        assert_eq!(page(&[5, 2, 9], [Some(5), None], 9), (vec![2, 5], 5));
        assert_eq!(page(&[5, 2, 9], [Some(9), Some(2)], 9), (vec![2], 2));
        assert_eq!(page(&[], [None, None], 3), (Vec::new(), 3));
    }

    #[test]
    fn only_a_full_list_may_go_on() {
        let rows: Vec<u64> = (1..=PAGE as u64).collect();
        assert_eq!(end_of_full(&rows, |it| *it), Some(PAGE as u64));
        assert_eq!(end_of_full(&rows[1..], |it| *it), None);
    }
}
