//! Styled text: spans of one style, lines made of them, and words wrapped into lines.

use std::fmt;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The inspection of a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) bold: bool,
    pub(super) faint: bool,
    pub(super) italic: bool,
    pub(super) underlined: bool,
    pub(super) struck: bool,
    pub(super) code: bool,
}

/// A piece of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) style: Style,
    pub(super) text: String,
}

/// A line of the terminal, which displays with its escape sequences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StyledLine {
    pub(super) spans: Vec<Span>,
}

/// The margin of wrapped text: of its first line, and of the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Margin<'a> {
    pub(super) first: &'a str,
    pub(super) rest: &'a str,
}

impl Style {
    fn codes(self) -> Vec<&'static str> {
        [
            (self.bold, "1"),
            (self.faint, "2"),
            (self.italic, "3"),
            (self.underlined, "4"),
            (self.struck, "9"),
            (self.code, "36"),
        ]
        .into_iter()
        .filter_map(|(is_on, code)| is_on.then_some(code))
        .collect()
    }
}

impl Span {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self {
            style: Style::default(),
            text: text.into(),
        }
    }
}

impl StyledLine {
    fn beginning(margin: &str) -> Self {
        let mut line = Self::default();
        line.push(Style::default(), margin);
        line
    }

    /// Adds text, to the last span if that has the same style.
    pub(super) fn push(&mut self, style: Style, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.spans.push(Span {
                style,
                text: text.to_owned(),
            }),
        }
    }

    /// Number of columns.
    pub(super) fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.width()).sum()
    }

    fn trim_end(&mut self) {
        while let Some(last) = self.spans.last_mut() {
            let end = last.text.trim_end_matches(' ').len();
            last.text.truncate(end);
            if !last.text.is_empty() {
                return;
            }
            self.spans.pop();
        }
    }
}

impl fmt::Display for StyledLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Span { style, text } in &self.spans {
            match style.codes().as_slice() {
                [] => f.write_str(text)?,
                codes => write!(f, "\u{1b}[{}m{text}\u{1b}[0m", codes.join(";"))?,
            }
        }
        Ok(())
    }
}

/// A word: chunks without a space between them.
#[derive(Debug, Default)]
struct Word {
    chunks: Vec<Span>,
    width: usize,
}

/// Text that is being wrapped.
struct Wrapping<'a> {
    margin: Margin<'a>,
    width: usize,
    lines: Vec<StyledLine>,
    line: StyledLine,
    column: usize,
    /// True if the line has words.
    filled: bool,
}

impl<'a> Wrapping<'a> {
    fn new(margin: Margin<'a>, width: usize) -> Self {
        Self {
            margin,
            // A margin that fills the line leaves room for one character all the same.
            width: width.max(margin.first.width().max(margin.rest.width()) + 1),
            lines: Vec::new(),
            line: StyledLine::beginning(margin.first),
            column: margin.first.width(),
            filled: false,
        }
    }

    fn add_word(&mut self, word: &Word, gap: Option<Style>) {
        let space = usize::from(self.filled && gap.is_some());
        if self.filled && self.column + space + word.width > self.width {
            self.end_line();
        } else if let (true, Some(style)) = (self.filled, gap) {
            self.line.push(style, " ");
            self.column += 1;
        }
        for chunk in &word.chunks {
            self.add_chunk(chunk);
        }
        self.filled = true;
    }

    /// Adds a chunk, which continues on further lines where it is longer than one.
    fn add_chunk(&mut self, chunk: &Span) {
        for character in chunk.text.chars() {
            let width = character.width().unwrap_or(0);
            if self.column + width > self.width {
                self.end_line();
            }
            let mut buffer = [0; 4];
            self.line
                .push(chunk.style, character.encode_utf8(&mut buffer));
            self.column += width;
            self.filled = true;
        }
    }

    fn end_line(&mut self) {
        let next = StyledLine::beginning(self.margin.rest);
        self.column = self.margin.rest.width();
        let mut done = std::mem::replace(&mut self.line, next);
        done.trim_end();
        self.lines.push(done);
        self.filled = false;
    }

    fn finish(mut self) -> Vec<StyledLine> {
        self.end_line();
        self.lines
    }
}

/// Wraps spans at spaces. A line break in a span begins a new line; a word that is longer than a
/// line is divided.
pub(super) fn wrap(spans: &[Span], margin: Margin<'_>, width: usize) -> Vec<StyledLine> {
    let mut wrapping = Wrapping::new(margin, width);
    let mut word = Word::default();
    let mut gap = None;
    for span in spans {
        let mut rest = span.text.as_str();
        while let Some(at) = rest.find([' ', '\n']) {
            let (before, after) = rest.split_at(at);
            word.add(span.style, before);
            if !word.chunks.is_empty() {
                wrapping.add_word(&std::mem::take(&mut word), gap);
            }
            gap = Some(span.style);
            if after.starts_with('\n') {
                wrapping.end_line();
                gap = None;
            }
            rest = after.get(1..).unwrap_or_default();
        }
        word.add(span.style, rest);
    }
    if !word.chunks.is_empty() {
        wrapping.add_word(&word, gap);
    }
    wrapping.finish()
}

impl Word {
    fn add(&mut self, style: Style, text: &str) {
        if !text.is_empty() {
            self.width += text.width();
            self.chunks.push(Span {
                style,
                text: text.to_owned(),
            });
        }
    }
}

/// Divides a line of code at the width, spaces and all.
pub(super) fn divide(line: &str, margin: &str, width: usize) -> Vec<StyledLine> {
    let margin = Margin {
        first: margin,
        rest: margin,
    };
    let mut wrapping = Wrapping::new(margin, width);
    wrapping.add_chunk(&Span {
        style: Style {
            code: true,
            ..Style::default()
        },
        text: line.replace('\t', "    "),
    });
    wrapping.finish()
}

/// Wraps a line of plain text. Further lines are indented two columns more than the first.
pub(crate) fn wrapped(line: &str, width: usize) -> Vec<String> {
    let text = line.trim_start_matches(' ');
    let indent = " ".repeat((line.len() - text.len()).min(width / 2));
    let rest = format!("{indent}  ");
    let margin = Margin {
        first: &indent,
        rest: &rest,
    };
    wrap(&[Span::plain(text)], margin, width)
        .iter()
        .map(ToString::to_string)
        .collect()
}
