//! `agents tree`.

use crate::cli::Agents;
use crate::client::{Client, parameters};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{number, text};
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Agents, terminal: Terminal) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    let Agents::Tree { path, depth, kind } = what;
    let query = parameters([
        ("under", path),
        ("depth", depth.map(|depth| depth.to_string())),
        ("kind", kind),
    ]);
    let path = format!("/api/paths?limit=200{query}");
    let paths = client.get_all(&path, "/paths").await?;
    terminal.result(&json!({ "paths": paths }), || tree(&paths));
    if paths.is_empty() {
        terminal.notice("there are no agents");
    }
    Ok(())
}

/// One line each, below the agent that it is below of, as far as that is in the list.
fn tree(paths: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    let is_root = |entry: &&Value| {
        !paths
            .iter()
            .any(|other| text(other, "/path") == text(entry, "/parent_path"))
    };
    for root in paths.iter().filter(is_root) {
        branch(root, 0, paths, &mut lines);
    }
    lines
}

fn branch(entry: &Value, depth: usize, paths: &[Value], lines: &mut Vec<String>) {
    lines.push(format!("{}{}", "  ".repeat(depth), line(entry)));
    let path = text(entry, "/path");
    for below in paths
        .iter()
        .filter(|other| !path.is_empty() && text(other, "/parent_path") == path)
    {
        branch(below, depth + 1, paths, lines);
    }
}

fn line(entry: &Value) -> String {
    let sessions = number(entry, "/open_sessions");
    let work = match (sessions, number(entry, "/open_runs")) {
        (0, 0) => String::new(),
        (sessions, runs) => format!("  sessions {sessions}, running {runs}"),
    };
    let residency = match text(entry, "/residency") {
        "" => String::new(),
        residency => format!("  {residency}"),
    };
    format!(
        "{}  {}  {}{residency}{work}",
        text(entry, "/path"),
        text(entry, "/kind"),
        text(entry, "/label")
    )
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
