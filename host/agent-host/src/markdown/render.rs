//! A markdown document as styled lines.

use super::styled::{Margin, Span, Style, StyledLine, divide, wrap};
use super::{Table, options};
use crate::terminal::clean;
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr;

/// Columns of a line across the text.
const RULE_COLUMNS_MAX: usize = 40;
/// Levels of quotes and lists that are moved to the right.
const DEPTH_SHOWN_MAX: usize = 8;
/// Characters that may begin markup, which further text would complete.
const MARKS: [char; 6] = ['*', '_', '`', '[', '<', '~'];

/// A rendered document, with what further text may still change of it.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) lines: Vec<StyledLine>,
    /// The line with which the last paragraph, item, table or code begins.
    leaf: usize,
    /// The kind of that one.
    kind: Leaf,
}

/// The kinds of blocks that contain no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaf {
    /// Text, which is wrapped.
    Text,
    /// Code, line by line.
    Code,
    /// A table, or text that may become one: no line of it is final before its end.
    Table,
}

/// A container of blocks, with the margin that it adds.
#[derive(Debug)]
struct Container {
    /// The margin of the first line of an item; taken when it is written.
    mark: Option<String>,
    rest: String,
}

/// A document that is being rendered.
struct Rendering<'a> {
    width: usize,
    lines: Vec<StyledLine>,
    leaf: usize,
    kind: Leaf,
    containers: Vec<Container>,
    /// The numbers of the lists that are open; none for bullets.
    lists: Vec<Option<u64>>,
    /// True if a block ended before, so that the next one is set apart.
    apart: bool,
    spans: Vec<Span>,
    styles: Vec<Style>,
    links: Vec<String>,
    in_code: bool,
    table: Option<Table>,
    source: &'a str,
}

impl Rendered {
    /// Number of lines that no further text changes.
    pub(super) fn final_lines(&self) -> usize {
        let last = self.lines.len().saturating_sub(1);
        match self.kind {
            Leaf::Table => self.leaf.min(last),
            Leaf::Code => last,
            Leaf::Text => {
                let leaf = self.lines.iter().enumerate().skip(self.leaf);
                let marked = leaf.filter(|(_, line)| has_marks(line)).map(|(at, _)| at);
                marked.take(1).fold(last, usize::min)
            }
        }
    }

    /// Puts an empty line before all others.
    pub(super) fn begin_with_empty_line(&mut self) {
        if !self.lines.is_empty() {
            self.lines.insert(0, StyledLine::default());
            self.leaf += 1;
        }
    }
}

/// Returns whether the text of a line has a character that may begin markup.
fn has_marks(line: &StyledLine) -> bool {
    let mut text = line.spans.iter().filter(|span| !span.style.code);
    text.any(|span| span.text.contains(MARKS))
}

/// Renders a document.
pub(super) fn render(source: &str, width: usize) -> Rendered {
    let mut rendering = Rendering {
        width,
        lines: Vec::new(),
        leaf: 0,
        kind: Leaf::Text,
        containers: Vec::new(),
        lists: Vec::new(),
        apart: false,
        spans: Vec::new(),
        styles: vec![Style::default()],
        links: Vec::new(),
        in_code: false,
        table: None,
        source,
    };
    for (event, range) in Parser::new_ext(source, options()).into_offset_iter() {
        rendering.event(event, range.start);
    }
    Rendered {
        lines: rendering.lines,
        leaf: rendering.leaf,
        kind: rendering.kind,
    }
}

impl Rendering<'_> {
    fn event(&mut self, event: Event<'_>, at: usize) {
        match event {
            Event::Start(tag) => self.start(tag, at),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text)
            }
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(text) => self.styled(|style| style.code = true, &text),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.text("\n"),
            Event::Rule => self.rule(),
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]")),
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: usize) {
        match tag {
            Tag::Paragraph => {
                self.begin(Leaf::Text);
                let line = self.source.get(at..).and_then(|rest| rest.lines().next());
                if line.is_some_and(|line| line.contains('|')) {
                    self.kind = Leaf::Table;
                }
            }
            Tag::Heading { level, .. } => {
                self.begin(Leaf::Text);
                self.push_style(|style| {
                    style.bold = true;
                    style.underlined = level == HeadingLevel::H1;
                });
            }
            Tag::HtmlBlock => self.begin(Leaf::Text),
            Tag::CodeBlock(_) => {
                self.begin(Leaf::Code);
                self.in_code = true;
            }
            Tag::Table(_) => {
                self.begin(Leaf::Table);
                self.table = Some(Table::default());
            }
            Tag::TableRow | Tag::TableHead => {
                if let Some(table) = &mut self.table {
                    table.begin_row();
                }
            }
            Tag::BlockQuote(_) => {
                self.begin(Leaf::Text);
                self.open(None, "│ ".to_owned());
            }
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.begin(Leaf::Text);
                }
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.push_style(|style| style.italic = true),
            Tag::Strong => self.push_style(|style| style.bold = true),
            Tag::Strikethrough => self.push_style(|style| style.struck = true),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.into_string());
                self.push_style(|style| style.underlined = true);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.apart = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.apart = true;
            }
            TagEnd::CodeBlock => {
                self.in_code = false;
                self.apart = true;
            }
            TagEnd::BlockQuote(_) => {
                self.containers.pop();
                self.apart = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.apart = true;
            }
            TagEnd::Item => {
                self.flush();
                if self.containers.last().is_some_and(|it| it.mark.is_some()) {
                    self.emit(&[]);
                }
                self.containers.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// Begins a block, with an empty line between it and the one before.
    fn begin(&mut self, kind: Leaf) {
        self.flush();
        if self.apart {
            let margin = self.margin();
            let mut line = StyledLine::default();
            line.push(Style::default(), margin.trim_end());
            self.lines.push(line);
            self.apart = false;
        }
        self.leaf = self.lines.len();
        self.kind = kind;
    }

    fn open(&mut self, mark: Option<String>, rest: String) {
        if self.containers.len() < DEPTH_SHOWN_MAX {
            self.containers.push(Container { mark, rest });
        } else {
            let rest = String::new();
            self.containers.push(Container { mark, rest });
        }
    }

    fn item(&mut self) {
        self.flush();
        self.apart = false;
        self.leaf = self.lines.len();
        self.kind = Leaf::Text;
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            _ => "• ".to_owned(),
        };
        let rest = " ".repeat(mark.width());
        self.open(Some(mark), rest);
    }

    /// The margin of a line that goes on.
    fn margin(&self) -> String {
        self.containers.iter().map(|it| it.rest.as_str()).collect()
    }

    /// The margin of the next line, with the marks of items that begin with it.
    fn first_margin(&mut self) -> String {
        self.containers
            .iter_mut()
            .map(|it| it.mark.take().unwrap_or_else(|| it.rest.clone()))
            .collect()
    }

    fn emit(&mut self, spans: &[Span]) {
        let first = self.first_margin();
        let rest = self.margin();
        let margin = Margin {
            first: &first,
            rest: &rest,
        };
        self.lines.extend(wrap(spans, margin, self.width));
    }

    fn flush(&mut self) {
        let mut spans = std::mem::take(&mut self.spans);
        // A block of HTML ends with a line break.
        if let Some(last) = spans.last_mut() {
            last.text.truncate(last.text.trim_end().len());
        }
        let has_text = spans.iter().any(|span| !span.text.trim().is_empty());
        if has_text {
            self.emit(&spans);
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push_style(&mut self, change: impl FnOnce(&mut Style)) {
        let mut style = self.style();
        change(&mut style);
        self.styles.push(style);
    }

    fn styled(&mut self, change: impl FnOnce(&mut Style), text: &str) {
        self.push_style(change);
        self.text(text);
        self.styles.pop();
    }

    fn text(&mut self, text: &str) {
        // Entities such as `&#27;` are characters only now.
        let text = clean(text);
        if self.in_code {
            for line in text.lines() {
                let margin = format!("{}  ", self.first_margin());
                self.lines.extend(divide(line, &margin, self.width));
            }
            return;
        }
        let style = self.style();
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(&text),
            _ => self.spans.push(Span { style, text }),
        }
    }

    fn rule(&mut self) {
        self.begin(Leaf::Text);
        let columns = self.width.min(RULE_COLUMNS_MAX);
        self.emit(&[Span {
            style: Style {
                faint: true,
                ..Style::default()
            },
            text: "─".repeat(columns),
        }]);
        self.apart = true;
    }

    /// Names the place that a link leads to, unless its text does.
    fn end_link(&mut self) {
        self.styles.pop();
        let place = self.links.pop().unwrap_or_default();
        let shown: String = self.spans.iter().map(|span| span.text.as_str()).collect();
        let said = place.trim_start_matches("mailto:");
        if !place.is_empty() && !shown.ends_with(said) {
            self.styled(|style| style.faint = true, &format!(" ({place})"));
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        let margin = self.first_margin();
        let width = self.width.saturating_sub(margin.width());
        for row in table.lines(width) {
            let mut line = StyledLine::default();
            line.push(Style::default(), &margin);
            row.spans
                .iter()
                .for_each(|span| line.push(span.style, &span.text));
            self.lines.push(line);
        }
        self.apart = true;
    }
}
