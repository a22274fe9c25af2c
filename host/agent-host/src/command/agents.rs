//! `agents tree`, `agents definitions`, `agents make`, `agents remove` and `agents sessions`.

use crate::cli::Agents;
use crate::client::{Client, parameters, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{is_true, list, number, text};
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Agents, terminal: Terminal) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    match what {
        Agents::Tree { path, depth, kind } => {
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
        }
        Agents::Definitions => definitions(&client, terminal).await?,
        Agents::Sessions => sessions(&client, terminal).await?,
        Agents::Make {
            template,
            name,
            description,
            prompt,
            tools,
        } => {
            let lists = if tools.is_empty() {
                json!({})
            } else {
                json!({ "toolAllowlist": tools })
            };
            let new = json!({
                "template": template,
                "display_name": name,
                "description": description,
                "system_prompt": prompt,
                "lists": lists,
            });
            let made = client.post("/api/definitions", &new).await?;
            terminal.result(&made, || vec![definition(&made)]);
        }
        Agents::Remove { definition } => {
            let path = format!("/api/definitions/{}", segment(&definition));
            let removed = client.delete(&path).await?;
            terminal.result(&removed, || vec![format!("{definition} is gone")]);
        }
    }
    Ok(())
}

async fn definitions(client: &Client, terminal: Terminal) -> Result<(), Failure> {
    let listed = client.definitions().await?;
    let all = list(&listed, "/definitions");
    let left_out = list(&listed, "/left_out");
    terminal.result(&listed, || {
        let left_out = left_out.iter().map(left_out_definition);
        all.iter().map(definition).chain(left_out).collect()
    });
    if all.is_empty() {
        terminal.notice("there are no definitions");
    }
    Ok(())
}

/// One line for a definition that fits no template any more.
fn left_out_definition(it: &Value) -> String {
    format!(
        "{}  {}  left out: {}  made by {}",
        text(it, "/definition"),
        text(it, "/display_name"),
        text(it, "/reason"),
        text(it, "/made_by"),
    )
}

fn definition(it: &Value) -> String {
    let maker = match text(it, "/made_by") {
        "" => String::new(),
        maker => format!("  made by {maker}"),
    };
    let template = if is_true(it, "/is_template") {
        "  template"
    } else {
        ""
    };
    format!(
        "{}  {}  agents {}, sessions {}{template}{maker}",
        text(it, "/definition"),
        text(it, "/display_name"),
        number(it, "/counts/agents"),
        number(it, "/counts/sessions"),
    )
}

async fn sessions(client: &Client, terminal: Terminal) -> Result<(), Failure> {
    let listed = client.get("/api/sessions").await?;
    let agents = list(&listed, "/agents");
    terminal.result(&listed, || agents.iter().flat_map(group).collect());
    if agents.is_empty() {
        terminal.notice("there are no sessions");
    }
    Ok(())
}

/// One line for an agent, and one for each of its sessions below it.
fn group(agent: &Value) -> Vec<String> {
    let head = format!("{}  {}", text(agent, "/path"), text(agent, "/label"));
    let line = |session: &Value| {
        let pinned = match text(session, "/pinned_at") {
            "" => "",
            _ => "  pinned",
        };
        format!(
            "  {}  {}  {}{pinned}",
            text(session, "/id"),
            text(session, "/status"),
            text(session, "/name"),
        )
    };
    let sessions = list(agent, "/sessions").iter().map(line);
    std::iter::once(head).chain(sessions).collect()
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
