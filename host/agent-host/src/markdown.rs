//! Markdown for a terminal, rendered while it streams in: every line that is given out is final.
//!
//! `pulldown-cmark` says where each block begins, so that it is known which lines no further text
//! changes. Renderers such as `termimad` do not: they take a whole text, a line of it as a
//! paragraph, and lose what is no markup to CommonMark, such as the asterisk of `2 * 3`.
//!
//! ## Where things are
//!
//! - `markdown/styled.rs`: styled text: spans, lines, wrapping
//! - `markdown/render.rs`: a document as styled lines; its tables are here

mod render;
mod styled;
#[cfg(test)]
mod tests;

use crate::terminal::clean;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use render::{Rendered, render};
pub(crate) use styled::wrapped;
use styled::{Margin, Span, Style, StyledLine, wrap};
use unicode_width::UnicodeWidthStr;

/// Bytes of one block that are kept to be read again. What is longer is given out in chunks.
const BLOCK_BYTES_MAX: usize = 64 * 1024;
/// The same of code between fences, each line of which is final by itself.
const CODE_BYTES_MAX: usize = 8 * 1024;

/// A document that streams in. Blocks are rendered as they become complete; of an open one, those
/// lines are given out that no further text can change.
#[derive(Debug)]
pub(crate) struct Markdown {
    /// Columns of a line, fixed while a block is open.
    width: usize,
    /// The source that is not wholly given out.
    source: String,
    /// Number of lines of it that were given out.
    shown: usize,
    /// True if blocks stand before that source, so that an empty line comes first.
    begun: bool,
    /// Bytes of the source when it was last rendered.
    rendered: usize,
}

/// A block at the end of a document that may go on.
#[derive(Debug)]
struct OpenBlock {
    /// The position of its first line.
    start: usize,
    /// True if an empty line ends it.
    ends_with_empty_line: bool,
    /// True if it is code between fences.
    is_fenced: bool,
    /// True if it is a table.
    is_table: bool,
}

impl Markdown {
    /// An empty document.
    pub(crate) fn new(width: usize) -> Self {
        Self {
            width,
            source: String::new(),
            shown: 0,
            begun: false,
            rendered: 0,
        }
    }

    /// Sets the width of the lines of blocks that are yet to begin.
    pub(crate) fn resize(&mut self, width: usize) {
        if self.source.is_empty() {
            self.width = width;
        }
    }

    /// Adds text, and returns the lines that are final with it.
    pub(crate) fn push(&mut self, text: &str) -> Vec<String> {
        let text = clean(text);
        self.source.push_str(&text);
        // Within a line nothing becomes final until it is full.
        if !text.contains('\n') && self.source.len() < self.rendered + self.width / 2 {
            return Vec::new();
        }
        let mut lines = self.complete_blocks();
        lines.extend(self.final_lines());
        self.rendered = self.source.len();
        if self.source.len() > CODE_BYTES_MAX {
            let fence = self.fence();
            if fence.is_some() || self.source.len() > BLOCK_BYTES_MAX {
                lines.extend(self.cut(fence.as_deref().unwrap_or_default()));
            }
        }
        lines
    }

    /// The line that begins the open block, if it is code between fences.
    fn fence(&self) -> Option<String> {
        let open = last_block(&self.source).filter(|open| open.is_fenced)?;
        let lines = self.source.get(open.start..)?;
        let line = lines.split_inclusive('\n').next()?;
        line.ends_with('\n').then(|| line.to_owned())
    }

    /// Ends the document, and returns the lines that are left.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let source = std::mem::take(&mut self.source);
        let lines = self.rest_of(&source);
        *self = Self::new(self.width);
        lines
    }

    /// Gives out all blocks that are followed by another, or ended by an empty line.
    fn complete_blocks(&mut self) -> Vec<String> {
        let Some(open) = last_block(whole_lines(&self.source)) else {
            return Vec::new();
        };
        let is_ended = open.ends_with_empty_line && ends_with_empty_line(&self.source);
        let end = if is_ended {
            self.source.len()
        } else {
            open.start
        };
        if end == 0 {
            return Vec::new();
        }
        let rest = self.source.split_off(end);
        let done = std::mem::replace(&mut self.source, rest);
        let rendered = self.render(&done);
        let lines = written(rendered.lines.iter().skip(self.shown));
        // Lines of the block that follows may be shown already.
        self.shown = self.shown.saturating_sub(rendered.lines.len());
        self.begun = true;
        lines
    }

    /// Gives out the lines of the open block that are final.
    fn final_lines(&mut self) -> Vec<String> {
        // The first letters of a row do not look like one, and would seem to end the table.
        if last_block(whole_lines(&self.source)).is_some_and(|open| open.is_table) {
            return Vec::new();
        }
        let rendered = self.render(&self.source);
        let until = rendered.final_lines().max(self.shown);
        let lines = written(rendered.lines.iter().take(until).skip(self.shown));
        self.shown = until;
        lines
    }

    /// Gives out a block that is too long to be kept. What is left goes on after the fence. A line
    /// that is too long by itself is cut as well.
    fn cut(&mut self, fence: &str) -> Vec<String> {
        let end = whole_lines(&self.source).len();
        let has_lines = end > fence.len();
        let end = if has_lines { end } else { self.source.len() };
        let rest = self.source.split_off(end);
        let done = std::mem::replace(&mut self.source, rest);
        let lines = self.rest_of(&done);
        self.shown = 0;
        self.begun = false;
        self.source.insert_str(0, fence);
        self.rendered = self.source.len();
        lines
    }

    fn rest_of(&self, source: &str) -> Vec<String> {
        written(self.render(source).lines.iter().skip(self.shown))
    }

    fn render(&self, source: &str) -> Rendered {
        let mut rendered = render(source, self.width);
        if self.begun {
            rendered.begin_with_empty_line();
        }
        rendered
    }
}

fn written<'a>(lines: impl Iterator<Item = &'a StyledLine>) -> Vec<String> {
    lines.map(ToString::to_string).collect()
}

/// The extensions of CommonMark that models write.
fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Returns the lines that are complete.
fn whole_lines(source: &str) -> &str {
    let end = source.rfind('\n').map_or(0, |at| at + 1);
    source.get(..end).unwrap_or_default()
}

fn ends_with_empty_line(source: &str) -> bool {
    let line = source.trim_end_matches([' ', '\t']);
    line.strip_suffix('\n')
        .is_some_and(|before| before.trim_end_matches([' ', '\t']).ends_with('\n'))
}

/// Returns the last block of a document.
fn last_block(source: &str) -> Option<OpenBlock> {
    let mut depth = 0_usize;
    let mut last = None;
    for (event, range) in Parser::new_ext(source, options()).into_offset_iter() {
        match &event {
            Event::Start(tag) => {
                if depth == 0 {
                    last = Some((Some(tag.clone()), range.start));
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => last = Some((None, range.start)),
            _ => {}
        }
    }
    let (tag, start) = last?;
    let line = source.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    let end = tag.as_ref().map(Tag::to_end);
    Some(OpenBlock {
        start: line,
        ends_with_empty_line: matches!(
            end,
            None | Some(TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Table)
        ),
        is_table: matches!(tag, Some(Tag::Table(_))),
        is_fenced: matches!(
            tag,
            Some(Tag::CodeBlock(pulldown_cmark::CodeBlockKind::Fenced(_)))
        ),
    })
}

/// Columns between two cells.
const GAP: usize = 2;
/// The least width of a column.
const COLUMN_WIDTH_MIN: usize = 4;

/// A table that is read row by row; the first is its head.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<Vec<Vec<Span>>>,
}

impl Table {
    fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    fn cell(&mut self, spans: Vec<Span>) {
        if let Some(row) = self.rows.last_mut() {
            row.push(spans);
        }
    }

    /// Returns its lines, a rule below the head.
    fn lines(&self, width: usize) -> Vec<StyledLine> {
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
