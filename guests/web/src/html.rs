//! HTML as markdown: parsed as browsers do, and said with headings, paragraphs, lists, links, code
//! and tables.

mod parse;
mod render;

use crate::html::parse::{Content, Node, Tree, walk};
use ego_tree::iter::Edge;
use url::Url;

/// Characters of a title.
const TITLE_CHARS_MAX: usize = 300;
/// Characters of text that a page's `main` element must have to be taken for all that matters.
const MAIN_CHARS_MIN: usize = 200;

/// Seconds after which a page that leads to another is still no page of its own.
const REFRESH_S_MAX: u32 = 5;

/// Elements that stand within a line, so that the text around them is not apart.
const WITHIN_LINES: [&str; 27] = [
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd",
    "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "u", "var", "wbr",
];

/// The content of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Its title, on one line.
    pub(crate) title: Option<String>,
    /// Its text, as markdown.
    pub(crate) text: String,
    /// True if that is all of it.
    pub(crate) whole: bool,
    /// The page that browsers show in its place by themselves, soon after.
    pub(crate) next: Option<Url>,
}

/// Reads a page that came from `url`. When its `main` element has enough text, only that is read.
pub(crate) fn page(source: String, url: &Url) -> Page {
    let (tree, whole) = parse::parse(source);
    let base = element(&tree, |node| node.value().name() == Some("base"))
        .and_then(|base| url.join(base.value().attribute("href")?).ok());
    let base = base.as_ref().unwrap_or(url);
    let title = element(&tree, |node| node.value().name() == Some("title"))
        .map(|title| on_one_line(&text_of(title)))
        .filter(|title| !title.is_empty());
    let main = main_of(&tree).map(|main| render::markdown(main, base));
    let text = main.filter(|text| text.chars().nth(MAIN_CHARS_MIN - 1).is_some());
    let text = text.unwrap_or_else(|| render::markdown(tree.root(), base));
    let next = element(&tree, is_refresh).and_then(|meta| meta.value().attribute("content"));
    Page {
        title,
        text,
        whole,
        next: next.and_then(|content| refreshed(content, base)),
    }
}

/// All nodes of a page that are such, without what a template keeps for later.
fn nodes<'a>(tree: &'a Tree, is_such: impl Fn(Node<'a>) -> bool) -> impl Iterator<Item = Node<'a>> {
    let is_template = |node: Node<'_>| node.value().name() == Some("template");
    tree.root()
        .descendants()
        .filter(move |node| is_such(*node) && !node.ancestors().any(is_template))
}

fn element<'a>(tree: &'a Tree, is_such: impl Fn(Node<'a>) -> bool) -> Option<Node<'a>> {
    nodes(tree, is_such).next()
}

/// Returns true for a `meta` element that stands for the header `refresh`.
fn is_refresh(node: Node<'_>) -> bool {
    let stands_for = node.value().attribute("http-equiv");
    node.value().name() == Some("meta")
        && stands_for.is_some_and(|name| name.trim().eq_ignore_ascii_case("refresh"))
}

/// The page behind a header `refresh`, such as `0; url=/new`. None for a page that waits long
/// enough to be read, or loads itself anew.
pub(crate) fn refreshed(content: &str, base: &Url) -> Option<Url> {
    let content = content.trim_start();
    let is_number = |sign: char| sign.is_ascii_digit() || sign == '.';
    let (seconds, rest) = content.split_at(content.find(|it| !is_number(it))?);
    let seconds = seconds.split('.').next().unwrap_or_default();
    if seconds.parse().unwrap_or(0_u32) > REFRESH_S_MAX {
        return None;
    }
    let rest = rest.trim_start_matches([';', ',', ' ', '\t', '\n']);
    let named = rest.get(..3).filter(|it| it.eq_ignore_ascii_case("url"));
    let value = named.and_then(|_| rest.get(3..)?.trim_start().strip_prefix('='));
    let value = value.unwrap_or(rest).trim();
    let value = match value.chars().next()? {
        quote @ ('"' | '\'') => value.get(1..)?.split(quote).next()?,
        _ => value,
    };
    let mut next = base.join(value).ok()?;
    next.set_fragment(None);
    (matches!(next.scheme(), "http" | "https") && next != *base).then_some(next)
}

/// The text of a chunk of HTML, as a reader sees it: without tags, with characters in place of
/// entities, and without what is not shown.
pub(crate) fn plain_text(source: String) -> String {
    let (tree, _) = parse::parse(source);
    let mut text = String::new();
    walk(tree.root(), |edge| {
        let node = match edge {
            Edge::Open(node) if is_hidden(node) => return false,
            Edge::Open(node) | Edge::Close(node) => node,
        };
        match node.value() {
            Content::Text(chunk) if edge == Edge::Open(node) => text.push_str(chunk),
            content => {
                let is_apart = |name: &str| !WITHIN_LINES.contains(&name);
                if content.name().is_some_and(is_apart) {
                    text.push(' ');
                }
            }
        }
        true
    });
    text
}

/// The only `main` element of a page.
fn main_of(tree: &Tree) -> Option<Node<'_>> {
    let is_main = |node: Node<'_>| {
        let content = node.value();
        (content.name() == Some("main") || content.attribute("role") == Some("main"))
            && !is_hidden(node)
    };
    let mut mains = nodes(tree, is_main);
    mains.next().filter(|_| mains.next().is_none())
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(TITLE_CHARS_MAX)
        .collect()
}

/// Elements of which nothing is shown: they act, embed or navigate.
const UNSHOWN: [&str; 24] = [
    "script", "style", "template", "head", "title", "nav", "menu", "iframe", "object", "embed",
    "canvas", "audio", "video", "map", "select", "datalist", "textarea", "input", "button",
    "noembed", "noframes", "frameset", "progress", "meter",
];
/// Roles by which other elements say that they do the same.
const UNSHOWN_ROLES: [&str; 8] = [
    "navigation",
    "menu",
    "menubar",
    "toolbar",
    "search",
    "tablist",
    "dialog",
    "alertdialog",
];

/// Returns true if an element, with everything in it, is not shown.
fn is_hidden(node: Node<'_>) -> bool {
    let content = node.value();
    let Some(name) = content.name() else {
        // The labels of a picture make no sense alone. Formulas are read.
        return content.foreign_name() == Some("svg");
    };
    let attribute = |name: &str| content.attribute(name);
    UNSHOWN.contains(&name)
        || attribute("hidden").is_some_and(|value| !value.eq_ignore_ascii_case("until-found"))
        || attribute("aria-hidden").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || attribute("role").is_some_and(|role| UNSHOWN_ROLES.contains(&role))
        || (name == "dialog" && attribute("open").is_none())
        || attribute("style").is_some_and(hides)
}

fn hides(style: &str) -> bool {
    let is_unit = |letter: char| letter.is_ascii_alphabetic() || letter == '%';
    style
        .split(';')
        .filter_map(|declaration| declaration.split_once(':'))
        .any(|(property, value)| {
            let value = value.split('!').next().unwrap_or_default();
            let value = value.trim().to_ascii_lowercase();
            match property.trim().to_ascii_lowercase().as_str() {
                "display" => value == "none",
                "visibility" => value == "hidden" || value == "collapse",
                // Text that only programs read is meant for programs such as a model.
                "opacity" => value.parse() == Ok(0.0),
                "font-size" => value.trim_end_matches(is_unit).parse() == Ok(0.0),
                _ => false,
            }
        })
}

/// All text that is shown below a node, as it stands.
fn text_of(root: Node<'_>) -> String {
    let mut text = String::new();
    walk(root, |edge| {
        let Edge::Open(node) = edge else {
            return true;
        };
        match node.value() {
            Content::Text(chunk) => text.push_str(chunk),
            Content::Element { name, .. } if &*name.local == "br" => text.push('\n'),
            Content::Element { .. } | Content::Nothing => {}
        }
        node == root || !is_hidden(node)
    });
    text
}
