//! The step from tree to markdown.

use super::parse::{Content, Node, walk};
use super::visible::{is_hidden, text_of};
use super::writer::{Gap, Writer};
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
