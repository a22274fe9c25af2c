//! The tables of a page whose rows and columns have a meaning, and their cells.

use super::tree::{NodeId, Tree};
use super::visible::is_hidden;

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

/// A table's cells.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) caption: Option<NodeId>,
    pub(super) rows: Vec<Vec<NodeId>>,
}

/// The rows of a table of at least two columns.
pub(super) fn parse(tree: &Tree, id: NodeId) -> Option<Table> {
    if matches!(tree.attribute(id, "role"), Some("presentation" | "none")) {
        return None;
    }
    let mut table = Table {
        caption: None,
        rows: Vec::new(),
    };
    for below in tree.below(id) {
        match tree.name(below) {
            Some(name) if TOO_LARGE.contains(&name) => return None,
            Some("caption") => table.caption = table.caption.or(Some(below)),
            Some("tr") if !is_hidden(tree, below) => table.rows.push(Vec::new()),
            Some("td" | "th") if !is_hidden(tree, below) => table.rows.last_mut()?.push(below),
            _ => {}
        }
    }
    table.rows.retain(|row| !row.is_empty());
    let columns = table.rows.iter().map(Vec::len).max()?;
    (2..=COLUMNS_MAX).contains(&columns).then_some(table)
}
