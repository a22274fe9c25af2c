//! `agents tree`.

use crate::cli::Agents;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Agents, terminal: Terminal) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    let Agents::Tree { path, depth, kind } = what;
    let mut query = String::new();
    for (name, value) in [
        ("under", path),
        ("depth", depth.map(|depth| depth.to_string())),
        ("kind", kind),
    ] {
        if let Some(value) = value {
            query.push_str(&format!("&{name}={}", segment(&value)));
        }
    }
    let mut paths = Vec::new();
    let mut after = String::new();
    loop {
        let page = client
            .get(&format!("/api/paths?limit=200{query}{after}"))
            .await?;
        paths.extend(
            page.get("paths")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
        );
        match page.get("next_after").and_then(Value::as_str) {
            Some(next) => after = format!("&after={}", segment(next)),
            None => break,
        }
    }
    terminal.result(&json!({ "paths": paths }), || tree(&paths));
    if paths.is_empty() {
        terminal.notice("no agents live there");
    }
    Ok(())
}

/// One line each, below the agent that it is below of, as far as that is in the list.
fn tree(paths: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    let is_root = |entry: &&Value| {
        !paths
            .iter()
            .any(|other| text(other, "path") == text(entry, "parent_path"))
    };
    for root in paths.iter().filter(is_root) {
        branch(root, 0, paths, &mut lines);
    }
    lines
}

fn branch(entry: &Value, depth: usize, paths: &[Value], lines: &mut Vec<String>) {
    lines.push(format!("{}{}", "  ".repeat(depth), line(entry)));
    let path = text(entry, "path");
    for below in paths
        .iter()
        .filter(|other| !path.is_empty() && text(other, "parent_path") == path)
    {
        branch(below, depth + 1, paths, lines);
    }
}

fn line(entry: &Value) -> String {
    let count = |field: &str| entry.get(field).and_then(Value::as_u64).unwrap_or(0);
    let work = match (count("open_sessions"), count("open_runs")) {
        (0, 0) => String::new(),
        (sessions, runs) => format!("  sessions {sessions}, running {runs}"),
    };
    let residency = match text(entry, "residency") {
        "" => String::new(),
        residency => format!("  {residency}"),
    };
    format!(
        "{}  {}  {}{residency}{work}",
        text(entry, "path"),
        text(entry, "kind"),
        text(entry, "label")
    )
}

fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_indented_below_those_that_they_are_below_of() {
        let entry = |path: &str, parent: Option<&str>| json!({ "path": path, "parent_path": parent, "kind": "k", "label": "l" });
        let paths = [
            entry("/a/agent/x", None),
            entry("/a/agent/x-y", None),
            entry("/a/agent/x/sub/0", Some("/a/agent/x")),
            entry("/a/agent/x/sub/0/memory", Some("/a/agent/x/sub/0")),
            // What is above it is not in the list.
            entry("/b/agent/z/sub/3", Some("/b/agent/z")),
        ];
        let expected = [
            "/a/agent/x",
            "  /a/agent/x/sub/0",
            "    /a/agent/x/sub/0/memory",
            "/a/agent/x-y",
            "/b/agent/z/sub/3",
        ];
        assert_eq!(tree(&paths), expected.map(|line| format!("{line}  k  l")));
    }
}
