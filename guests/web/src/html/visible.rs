//! The parts of a page that are shown to a reader.

use super::parse::{Content, Node, walk};
use ego_tree::iter::Edge;

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
pub(super) fn is_hidden(node: Node<'_>) -> bool {
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
pub(super) fn text_of(root: Node<'_>) -> String {
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
