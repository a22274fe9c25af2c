//! Lines of markdown in the making: words, gaps between blocks, and what stands at the beginning of
//! each line.

/// The gap between the text before and the next word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    None,
    Space,
    Line,
    Blank,
}

/// Stands at the beginning of lines: the mark of a list's entry, the indentation of what follows in
/// it.
#[derive(Debug)]
struct Margin {
    /// The margin of the first line, until it has been written.
    first: Option<String>,
    /// The margin of the lines after it.
    rest: &'static str,
}

#[derive(Debug)]
pub(super) struct Writer {
    out: String,
    /// The gap before the next word.
    gap: Gap,
    margins: Vec<Margin>,
    /// Marks that come right before the next word, such as that of code.
    openings: Vec<&'static str>,
    /// The start positions of the open spans; none yet for those in which no word was written.
    spans: Vec<Option<usize>>,
}

/// The words of a span.
#[derive(Debug)]
pub(super) struct Span<'a> {
    out: &'a mut String,
    start: usize,
}

impl Span<'_> {
    pub(super) fn text(&self) -> &str {
        self.out.get(self.start..).unwrap_or_default()
    }

    /// Puts the words between two others.
    pub(super) fn enclose(self, before: &str, after: &str) {
        self.out.insert_str(self.start, before);
        self.out.push_str(after);
    }
}

impl Writer {
    pub(super) fn new() -> Self {
        // Nothing was written before the first word, and its line begins.
        Self {
            out: String::new(),
            gap: Gap::Line,
            margins: Vec::new(),
            openings: Vec::new(),
            spans: Vec::new(),
        }
    }

    /// Keeps what follows away from what was written, at least by this much.
    pub(super) fn gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// A line ends here. Two of them end a block.
    pub(super) fn break_line(&mut self) {
        self.gap = if self.gap >= Gap::Line {
            Gap::Blank
        } else {
            Gap::Line
        };
    }

    /// Begins every line with this from here on.
    pub(super) fn push_margin(&mut self, first: impl Into<String>, rest: &'static str) {
        self.margins.push(Margin {
            first: Some(first.into()),
            rest,
        });
    }

    pub(super) fn pop_margin(&mut self) {
        self.margins.pop();
    }

    /// Opens a mark that is written only if a word follows.
    pub(super) fn open(&mut self, mark: &'static str) {
        self.openings.push(mark);
    }

    /// Closes a mark.
    pub(super) fn close(&mut self, mark: &'static str) {
        if self.openings.last() == Some(&mark) {
            self.openings.pop();
        } else {
            self.out.push_str(mark);
        }
    }

    /// Text of which white space is only ever a gap.
    pub(super) fn text(&mut self, text: &str) {
        for (index, word) in text.split(|c: char| c.is_ascii_whitespace()).enumerate() {
            if index > 0 {
                self.gap(Gap::Space);
            }
            if !word.is_empty() {
                self.push_word(word);
            }
        }
    }

    /// Text as it stands.
    pub(super) fn push_word(&mut self, word: &str) {
        self.fill();
        let start = self.out.len();
        self.spans
            .iter_mut()
            .rev()
            .take_while(|span| span.is_none())
            .for_each(|span| *span = Some(start));
        for mark in std::mem::take(&mut self.openings) {
            self.out.push_str(mark);
        }
        self.out.push_str(word);
    }

    /// Lines as they stand, as a block of its own between two lines of fence.
    pub(super) fn fenced(&mut self, text: &str, language: &str) {
        let fence = fence_for(text);
        self.gap(Gap::Blank);
        self.push_word(&fence);
        self.out.push_str(language);
        for line in text.lines() {
            self.gap(Gap::Line);
            // Nothing is taken away from it, and nothing added but the margin.
            self.push_word(line);
        }
        self.gap(Gap::Line);
        self.push_word(&fence);
        self.gap(Gap::Blank);
    }

    /// Writes the gap.
    fn fill(&mut self) {
        let is_first = self.out.is_empty();
        match self.gap {
            Gap::None => return,
            Gap::Space => self.out.push(' '),
            Gap::Line | Gap::Blank if is_first => self.begin_line(),
            Gap::Line => self.new_line(),
            Gap::Blank => {
                self.blank_line();
                self.new_line();
            }
        }
        self.gap = Gap::None;
    }

    /// It belongs to the margins that have begun, and its end shows nothing.
    fn blank_line(&mut self) {
        let begun = self
            .margins
            .iter()
            .take_while(|margin| margin.first.is_none());
        let line: String = begun.map(|margin| margin.rest).collect();
        self.out.push('\n');
        self.out.push_str(line.trim_end());
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        self.begin_line();
    }

    fn begin_line(&mut self) {
        for margin in &mut self.margins {
            match margin.first.take() {
                Some(first) => self.out.push_str(&first),
                None => self.out.push_str(margin.rest),
            }
        }
    }

    /// A span begins with the next word.
    pub(super) fn begin_span(&mut self) {
        self.spans.push(None);
    }

    /// The innermost span ends: what was written in it, if anything.
    pub(super) fn end_span(&mut self) -> Option<Span<'_>> {
        let start = self.spans.pop()??;
        Some(Span {
            out: &mut self.out,
            start,
        })
    }

    /// Returns the text that was written.
    pub(super) fn finish(self) -> String {
        self.out
    }
}

/// A line of backticks that does not occur in the text.
fn fence_for(text: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}
