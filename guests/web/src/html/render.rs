//! The step from tree to markdown, and the lines of it in the making.

use crate::html::parse::{Content, Node, walk};
use crate::html::{is_hidden, text_of};
use ego_tree::iter::Edge;
use url::Url;

/// Blocks of their own that need nothing else.
const BLOCKS: [&str; 21] = [
    "address",
    "article",
    "aside",
    "body",
    "caption",
    "center",
    "details",
    "dialog",
    "div",
    "dl",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hgroup",
    "main",
    "p",
    "section",
    "summary",
];
/// Characters of a link's target; longer ones are left out.
const TARGET_CHARS_MAX: usize = 500;

/// Elements that do not fit into a line: a table that has one of them only arranges the page.
const TOO_LARGE: [&str; 12] = [
    "table",
    "ul",
    "ol",
    "pre",
    "blockquote",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "form",
];
/// Columns; a table of more is not shown as one.
const COLUMNS_MAX: usize = 50;

/// Everything that is shown of a node and below it.
pub(super) fn markdown(root: Node<'_>, base: &Url) -> String {
    let mut render = Render {
        base,
        writer: Writer::new(),
        lists: Vec::new(),
    };
    render.run(root);
    render.writer.finish()
}

/// A list that is being written.
#[derive(Debug)]
enum List {
    Bullets,
    /// The number of the next entry.
    Numbers(i64),
}

struct Render<'a> {
    base: &'a Url,
    writer: Writer,
    lists: Vec<List>,
}

impl Render<'_> {
    /// Renders the tree below `root`, which is shown even if it says that it is hidden.
    fn run(&mut self, root: Node<'_>) {
        walk(root, |edge| match edge {
            Edge::Open(node) => (node == root || !is_hidden(node)) && self.enter(node),
            Edge::Close(node) => {
                self.leave(node);
                true
            }
        });
    }

    /// Begins an element, or writes a text. Returns true to go on into it.
    fn enter(&mut self, node: Node<'_>) -> bool {
        let content = node.value();
        if let Content::Text(text) = content {
            self.writer.text(text);
        }
        let Some(name) = content.name() else {
            return true;
        };
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.writer.gap(Gap::Blank);
                let level = name
                    .bytes()
                    .last()
                    .map_or(1, |digit| usize::from(digit - b'0'));
                self.writer
                    .push_margin(format!("{} ", "#".repeat(level)), "");
            }
            "ul" => self.begin_list(List::Bullets),
            "ol" => {
                let start = content.attribute("start");
                let start = start.and_then(|start| start.trim().parse().ok());
                self.begin_list(List::Numbers(start.unwrap_or(1)));
            }
            "li" => self.begin_entry(),
            "dt" => self.writer.gap(Gap::Line),
            "dd" => {
                self.writer.gap(Gap::Line);
                self.writer.push_margin(": ", "  ");
            }
            "blockquote" => {
                self.writer.gap(Gap::Blank);
                self.writer.push_margin("> ", "> ");
            }
            "pre" => {
                self.preformatted(node);
                return false;
            }
            "code" | "kbd" | "samp" | "tt" => self.writer.open("`"),
            "a" => self.writer.begin_span(),
            "img" => self.image(content),
            "br" => self.writer.break_line(),
            "hr" => {
                self.writer.gap(Gap::Blank);
                self.writer.push_word("---");
                self.writer.gap(Gap::Blank);
            }
            "table" => return !self.table(node),
            "tr" => self.writer.gap(Gap::Line),
            "td" | "th" => self.writer.gap(Gap::Space),
            "wbr" => {}
            _ if BLOCKS.contains(&name) => self.block(),
            _ => {}
        }
        true
    }

    fn leave(&mut self, node: Node<'_>) {
        let Some(name) = node.value().name() else {
            return;
        };
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "blockquote" => {
                self.writer.pop_margin();
                self.writer.gap(Gap::Blank);
            }
            "ul" | "ol" => {
                self.lists.pop();
                self.block();
            }
            "li" | "dd" => {
                self.writer.pop_margin();
                self.writer.gap(Gap::Line);
            }
            "dt" | "tr" => self.writer.gap(Gap::Line),
            "code" | "kbd" | "samp" | "tt" => self.writer.close("`"),
            "a" => self.link(node.value()),
            "table" => self.block(),
            _ if BLOCKS.contains(&name) => self.block(),
            _ => {}
        }
    }

    /// The gap around a block: within a list it would tear the entries apart.
    fn block(&mut self) {
        let is_in_list = !self.lists.is_empty();
        self.writer
            .gap(if is_in_list { Gap::Line } else { Gap::Blank });
    }

    fn begin_list(&mut self, list: List) {
        self.block();
        self.lists.push(list);
    }

    fn begin_entry(&mut self) {
        self.writer.gap(Gap::Line);
        match self.lists.last_mut() {
            Some(List::Numbers(next)) => {
                let number = *next;
                *next = next.saturating_add(1);
                self.writer.push_margin(format!("{number}. "), "   ");
            }
            Some(List::Bullets) | None => self.writer.push_margin("- ", "  "),
        }
    }

    fn preformatted(&mut self, node: Node<'_>) {
        let text = text_of(node);
        if text.trim().is_empty() {
            return;
        }
        let codes = node
            .children()
            .filter(|child| child.value().name() == Some("code"));
        let language = std::iter::once(node)
            .chain(codes)
            .filter_map(|node| node.value().attribute("class"))
            .flat_map(str::split_whitespace)
            .find_map(language_of);
        self.writer
            .fenced(text.trim_matches('\n'), language.unwrap_or_default());
    }

    fn link(&mut self, link: &Content) {
        let Some(words) = self.writer.end_span() else {
            return;
        };
        let href = link.attribute("href");
        let Some(target) = href.and_then(|href| target_of(href, self.base)) else {
            return;
        };
        let text = words.text();
        if text == target || text.contains("](") {
            return;
        }
        // Around a heading or several blocks, the target follows.
        if text.contains('\n') {
            words.enclose("", &format!(" <{target}>"))
        } else {
            words.enclose("[", &format!("]({target})"))
        }
    }

    fn image(&mut self, image: &Content) {
        let label = image.attribute("alt").unwrap_or_default().trim();
        if !label.is_empty() {
            self.writer.text(&format!("[image: {label}]"));
        }
    }

    /// Writes a table that has rows and columns. Others only arrange a page: their cells are
    /// blocks.
    fn table(&mut self, node: Node<'_>) -> bool {
        let Some(table) = Table::read(node) else {
            self.block();
            return false;
        };
        self.writer.gap(Gap::Blank);
        if let Some(caption) = table.caption {
            self.run(caption);
        }
        for (index, row) in table.rows.iter().enumerate() {
            self.writer.gap(Gap::Line);
            let cells: Vec<String> = row.iter().map(|cell| self.cell(*cell)).collect();
            self.writer.push_word(&format!("| {} |", cells.join(" | ")));
            if index == 0 {
                self.writer.gap(Gap::Line);
                self.writer
                    .push_word(&format!("|{}", " --- |".repeat(row.len())));
            }
        }
        self.writer.gap(Gap::Blank);
        true
    }

    /// A cell on one line.
    fn cell(&self, node: Node<'_>) -> String {
        let text = markdown(node, self.base);
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
            .replace('|', "\\|")
    }
}

/// The cells of a table whose rows and columns have a meaning.
#[derive(Debug)]
struct Table<'a> {
    caption: Option<Node<'a>>,
    rows: Vec<Vec<Node<'a>>>,
}

impl<'a> Table<'a> {
    /// The rows of a table of at least two columns.
    fn read(node: Node<'a>) -> Option<Self> {
        if matches!(
            node.value().attribute("role"),
            Some("presentation" | "none")
        ) {
            return None;
        }
        let mut table = Self {
            caption: None,
            rows: Vec::new(),
        };
        for below in node.descendants().skip(1) {
            match below.value().name() {
                Some(name) if TOO_LARGE.contains(&name) => return None,
                Some("caption") => table.caption = table.caption.or(Some(below)),
                Some("tr") if !is_hidden(below) => table.rows.push(Vec::new()),
                Some("td" | "th") if !is_hidden(below) => table.rows.last_mut()?.push(below),
                _ => {}
            }
        }
        table.rows.retain(|row| !row.is_empty());
        let columns = table.rows.iter().map(Vec::len).max()?;
        (2..=COLUMNS_MAX).contains(&columns).then_some(table)
    }
}

/// The language that highlighters leave in a class.
fn language_of(class: &str) -> Option<&str> {
    let language = class
        .strip_prefix("language-")
        .or_else(|| class.strip_prefix("lang-"))
        .or_else(|| class.strip_prefix("highlight-source-"))?;
    language
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "+-#_.".contains(c))
        .then_some(language)
}

/// Returns the target of a link as a whole address. None for what is no place: within the page, a
/// script, data.
fn target_of(href: &str, base: &Url) -> Option<String> {
    let href = href.trim();
    if href.is_empty() || href.starts_with('#') {
        return None;
    }
    let target = base.join(href).ok()?;
    if !matches!(target.scheme(), "http" | "https" | "mailto") {
        return None;
    }
    // Markdown ends a target at a bracket.
    let target = String::from(target).replace('(', "%28").replace(')', "%29");
    (target.len() <= TARGET_CHARS_MAX).then_some(target)
}

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
