//! A table as lines: columns as wide as their text, or narrower until all fit.

use super::styled::{Margin, Span, Style, StyledLine, wrap};
use unicode_width::UnicodeWidthStr;

/// Columns between two cells.
const GAP: usize = 2;
/// The least width of a column.
const COLUMN_WIDTH_MIN: usize = 4;

/// A table that is read row by row; the first is its head.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<Vec<Span>>>,
}

impl Table {
    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn cell(&mut self, spans: Vec<Span>) {
        if let Some(row) = self.rows.last_mut() {
            row.push(spans);
        }
    }

    /// Returns its lines, a rule below the head.
    pub(super) fn lines(&self, width: usize) -> Vec<StyledLine> {
        let widths = self.widths(width);
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let is_head = index == 0;
            lines.extend(row_lines(row, &widths, is_head));
            if is_head {
                let gaps = widths.len().saturating_sub(1) * GAP;
                let faint = Style {
                    faint: true,
                    ..Style::default()
                };
                let mut rule = StyledLine::default();
                rule.push(faint, &"─".repeat(widths.iter().sum::<usize>() + gaps));
                lines.push(rule);
            }
        }
        lines
    }

    /// The widths of the columns: the widest is made narrower until all fit.
    fn widths(&self, width: usize) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell_width(cell)).max().unwrap_or(0).max(1)
            })
            .collect();
        let room = width.saturating_sub(columns.saturating_sub(1) * GAP);
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().max() {
                Some(widest) if *widest > COLUMN_WIDTH_MIN => *widest -= 1,
                _ => break,
            }
        }
        widths
    }
}

fn cell_width(cell: &[Span]) -> usize {
    cell.iter().map(|span| span.text.width()).sum()
}

/// The lines of one row, as many as its longest cell takes.
fn row_lines(row: &[Vec<Span>], widths: &[usize], is_head: bool) -> Vec<StyledLine> {
    let no_margin = Margin {
        first: "",
        rest: "",
    };
    let cells: Vec<Vec<StyledLine>> = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| wrap(cell, no_margin, *width))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    (0..height)
        .map(|at| {
            let mut line = StyledLine::default();
            let mut column = 0;
            for (cell, width) in cells.iter().zip(widths) {
                let gap = column - line.width();
                line.push(Style::default(), &" ".repeat(gap));
                for span in cell.get(at).iter().flat_map(|part| &part.spans) {
                    let style = Style {
                        bold: span.style.bold || is_head,
                        ..span.style
                    };
                    line.push(style, &span.text);
                }
                column = (column + width).max(line.width()) + GAP;
            }
            line
        })
        .collect()
}
