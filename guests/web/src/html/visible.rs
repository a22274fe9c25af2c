//! The parts of a page that are shown to a reader.

use super::tree::{NodeId, Tree};

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
pub(super) fn is_hidden(tree: &Tree, id: NodeId) -> bool {
    let Some(name) = tree.name(id) else {
        // The labels of a picture make no sense alone. Formulas are read.
        return tree.foreign_name(id) == Some("svg");
    };
    UNSHOWN.contains(&name)
        || tree
            .attribute(id, "hidden")
            .is_some_and(|value| !value.eq_ignore_ascii_case("until-found"))
        || tree
            .attribute(id, "aria-hidden")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || tree
            .attribute(id, "role")
            .is_some_and(|role| UNSHOWN_ROLES.contains(&role))
        || (name == "dialog" && tree.attribute(id, "open").is_none())
        || tree.attribute(id, "style").is_some_and(hides)
}

fn hides(style: &str) -> bool {
    style
        .split(';')
        .filter_map(|declaration| declaration.split_once(':'))
        .any(|(property, value)| {
            let value = value
                .trim()
                .split('!')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase();
            match property.trim().to_ascii_lowercase().as_str() {
                "display" => value == "none",
                "visibility" => value == "hidden" || value == "collapse",
                // Text that only programs read is meant for programs such as a model.
                "opacity" => value.parse() == Ok(0.0),
                "font-size" => {
                    value
                        .trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%')
                        .parse()
                        == Ok(0.0)
                }
                _ => false,
            }
        })
}
