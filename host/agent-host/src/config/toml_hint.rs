//! Hints about what TOML's brackets mean, where a mistake shows that something else was meant.

use super::key::KeyError;

/// Adds to a fault in a TOML file what its brackets should have been. `line` is the line of the
/// fault.
pub(super) fn hinted(fault: KeyError, line: &str) -> KeyError {
    let message = match table(line) {
        Some(table) => message(&fault, table),
        None => None,
    };
    match message {
        Some(message) => KeyError { message, ..fault },
        None => fault,
    }
}

/// Returns the name in a line such as `[agents.reader]`; none for a line with two brackets.
fn table(line: &str) -> Option<&str> {
    let inner = line.trim().strip_prefix('[')?;
    let name = inner.split(']').next()?.trim();
    (!name.starts_with('[')).then_some(name)
}

fn message(fault: &KeyError, table: &str) -> Option<String> {
    let KeyError { key, message } = fault;
    // `[agents]` or `[agents.reader]`, and nothing else.
    if message == "a table is not a list" && (table == key || is_below(table, key)) {
        return Some(format!(
            "it is a list, and `[{table}]` makes it a table: write `[[{key}]]` before each \
             entry{}",
            named(key, table)
        ));
    }
    // `[agents.reader]` beside `[[agents]]` belongs to the entry above.
    let list = key.split('[').next()?;
    let is_unknown = message.starts_with("unknown key");
    (is_unknown && key.starts_with(&format!("{list}[")) && is_below(table, list)).then(|| {
        format!(
            "`[{table}]` is a part of the entry of `[[{list}]]` above it, which has no such key: \
             write `[[{list}]]` for another entry{}",
            named(list, table)
        )
    })
}

/// Returns true if a table is in another, such as `agents.reader` in `agents`.
fn is_below(table: &str, of: &str) -> bool {
    table
        .strip_prefix(of)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// Returns where the name of an entry belongs, if it was written into the brackets.
fn named(list: &str, table: &str) -> String {
    let name = table
        .strip_prefix(list)
        .and_then(|rest| rest.strip_prefix('.'))
        .map(|name| name.trim_matches(['"', '\'']));
    let key = match list {
        "agents" => "agentId",
        "personas" => "id",
        _ => return String::new(),
    };
    name.map(|name| format!(", and {key} = \"{name}\" in it"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{KeyError, hinted};

    #[test]
    fn brackets_that_mean_something_else_are_told_with_those_that_were_meant() {
        let fault = |key: &str, message: &str| KeyError {
            key: key.to_owned(),
            message: message.to_owned(),
        };
        let reported =
            |key: &str, message: &str, line: &str| hinted(fault(key, message), line).message;
        assert_eq!(
            reported("agents", "a table is not a list", "[agents.reader]"),
            "it is a list, and `[agents.reader]` makes it a table: write `[[agents]]` before each \
             entry, and agentId = \"reader\" in it"
        );
        assert!(reported("agents", "a table is not a list", "[agents]").ends_with("each entry"));
        assert_eq!(
            reported(
                "agents[0].x",
                "unknown key `x` in `agents[0]`; known are",
                "[agents.x]"
            ),
            "`[agents.x]` is a part of the entry of `[[agents]]` above it, which has no such key: \
             write `[[agents]]` for another entry, and agentId = \"x\" in it"
        );
        for (key, message, line) in [
            ("agents[0].x", "unknown key `x` in `agents[0]`", "x = 5"),
            ("server.x", "unknown key `x` in `server`", "[server.x]"),
            ("agents", "`5` is not a list", "agents = 5"),
        ] {
            assert_eq!(reported(key, message, line), message);
        }
    }
}
