//! Markdown for a terminal, rendered while it streams in: every line that is given out is final.
//!
//! `pulldown-cmark` says where each block begins, so that it is known which lines no further text
//! changes. Renderers such as `termimad` do not: they take a whole text, a line of it as a
//! paragraph, and lose what is no markup to CommonMark, such as the asterisk of `2 * 3`.
//!
//! ## Where things are
//!
//! - `markdown/styled.rs`: styled text: spans, lines, wrapping
//! - `markdown/render.rs`: a document as styled lines; `markdown/table.rs`: its tables

mod render;
mod styled;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use styled::wrapped;

use crate::terminal::clean;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use render::{Rendered, render};
use styled::StyledLine;

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
