//! The commands on agents, on their notes (`memory`), and on their prompts.

use crate::answer::{Answer, Row, list, number, table, text};
use crate::cli::{Agents, Memory, Prompt};
use crate::client::{Client, parameters, segment};
use crate::failure::Failure;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(client: &Client, what: Agents) -> Result<Answer, Failure> {
    Ok(match what {
        Agents::Tree { path, depth, kind } => {
            let query = parameters([
                ("under", path),
                ("depth", depth.map(|depth| depth.to_string())),
                ("kind", kind),
            ]);
            let path = format!("/api/paths?limit=200{query}");
            let paths = client.get_all(&path, "/paths").await?;
            let lines = tree(&paths);
            let nothing = paths.is_empty().then_some("there are no agents");
            Answer::new(json!({ "paths": paths }), lines).notice(nothing)
        }
        Agents::Definitions => {
            let listed = client.definitions().await?;
            let left_out = list(&listed, "/left_out").iter().map(left_out_definition);
            let left_out = table(left_out);
            let mut answer = Answer::list(
                listed,
                "/definitions",
                definition,
                "there are no definitions",
            );
            answer.lines.extend(left_out);
            answer
        }
        Agents::Sessions => {
            let listed = client.get("/api/sessions").await?;
            let agents = list(&listed, "/agents");
            let lines: Vec<String> = agents.iter().flat_map(group).collect();
            let nothing = agents.is_empty().then_some("there are no sessions");
            Answer::new(listed, lines).notice(nothing)
        }
        Agents::Make {
            template,
            name,
            description,
            prompt,
            tools,
        } => {
            let lists = match tools.as_slice() {
                [] => json!({}),
                tools => json!({ "tool_allowlist": tools }),
            };
            let new = json!({
                "template": template,
                "display_name": name,
                "description": description,
                "system_prompt": prompt,
                "lists": lists,
            });
            Answer::row(client.post("/api/definitions", &new).await?, definition)
        }
        Agents::Remove { definition } => {
            let path = format!("/api/definitions/{}", segment(&definition));
            let removed = client.delete(&path).await?;
            Answer::line(removed, format!("{definition} is gone"))
        }
    })
}

fn definition(it: &Value) -> Row {
    let counts = "agents {/counts/agents}, sessions {/counts/sessions}";
    let notes = ["{?/is_template}template", "made by {/made_by}"];
    Row::of(it, &["{/definition}", "{/display_name}", counts], &notes)
}

/// The row of a definition that fits no template any more.
fn left_out_definition(it: &Value) -> Row {
    let cells = ["{/definition}", "{/display_name}", "left out: {/reason}"];
    Row::of(it, &cells, &["made by {/made_by}"])
}

/// One line for an agent, and one for each of its sessions below it.
fn group(agent: &Value) -> Vec<String> {
    let head = Row::of(agent, &["{/path}", "{/label}"], &[]).line();
    let row = |it: &Value| {
        let notes = ["{/name}", "{?/pinned_at}pinned"];
        Row::of(it, &["  {/session_id}", "{/status}"], &notes)
    };
    let sessions = table(list(agent, "/sessions").iter().map(row));
    std::iter::once(head).chain(sessions).collect()
}

/// One line each, below the agent that it is below of, as far as that is in the list.
fn tree(paths: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    let is_root = |entry: &&Value| {
        let parent = text(entry, "/parent_path");
        !paths.iter().any(|other| text(other, "/path") == parent)
    };
    for root in paths.iter().filter(is_root) {
        branch(root, 0, paths, &mut lines);
    }
    lines
}

fn branch(entry: &Value, depth: usize, paths: &[Value], lines: &mut Vec<String>) {
    let work = match (number(entry, "/open_sessions"), number(entry, "/open_runs")) {
        (0, 0) => None,
        (sessions, runs) => Some(format!("sessions {sessions}, running {runs}")),
    };
    let row = Row::of(
        entry,
        &["{/path}", "{/kind}", "{/label}"],
        &["{/residency}"],
    );
    lines.push(format!("{}{}", "  ".repeat(depth), row.note(work).line()));
    let path = text(entry, "/path");
    let below = paths.iter();
    for entry in below.filter(|it| !path.is_empty() && text(it, "/parent_path") == path) {
        branch(entry, depth + 1, paths, lines);
    }
}

/// Runs the command.
pub(super) async fn memory(client: &Client, what: Memory) -> Result<Answer, Failure> {
    let of = |agent: &str| format!("/api/agents/{}", segment(agent));
    Ok(match what {
        Memory::List { agent, limit } => {
            let path = format!("{}/memory?limit={limit}", of(&agent));
            Answer::list(
                client.get(&path).await?,
                "/notes",
                row,
                "there are no notes",
            )
        }
        Memory::Search {
            words,
            agent,
            limit,
        } => {
            let words = segment(&words.join(" "));
            let path = format!("{}/memory?q={words}&limit={limit}", of(&agent));
            Answer::list(client.get(&path).await?, "/notes", row, "nothing was found")
        }
        Memory::Forget { id, agent } => {
            let path = format!("{}/memory/{}", of(&agent), segment(&id));
            let forgotten = client.delete(&path).await?;
            Answer::line(forgotten, format!("the note {id} is forgotten"))
        }
        Memory::Read { session } => {
            let found = client.session(&session).await?;
            let agent = of(text(&found, "/agent_id"));
            let path = format!("{agent}/sessions/{}/memory", segment(&session));
            let begun = client.post(&path, &json!({})).await?;
            Answer::line(begun, format!("the session {session} is read into notes"))
        }
    })
}

fn row(note: &Value) -> Row {
    let cells = ["{/note_id}", "{/time}", "{/user_id}"];
    Row::of(
        note,
        &cells,
        &["{/text}", "{?/untrusted}(from outside content)"],
    )
}

/// Runs the command.
pub(super) async fn prompt(client: &Client, what: Prompt) -> Result<Answer, Failure> {
    let Prompt::Show { agent, session } = what;
    let mut path = format!("/api/agents/{}/prompt", segment(&agent));
    if let Some(session) = session {
        path = format!("{path}?session={}", segment(&session));
    }
    Ok(Answer::describing(client.get(&path).await?, lines))
}

/// Returns the lines of a prompt: each part and each tool under its name and its tokens.
fn lines(answer: &Value) -> Vec<String> {
    let title = |what: &str, tokens: u64| format!("--- {what} ({tokens} tokens)");
    let mut lines = Vec::new();
    for part in list(answer, "/parts") {
        lines.push(title(text(part, "/name"), number(part, "/tokens")));
        lines.extend(text(part, "/text").lines().map(str::to_owned));
        lines.push(String::new());
    }
    let mut of_tools = 0;
    for tool in list(answer, "/tools") {
        let tokens = number(tool, "/tokens");
        of_tools += tokens;
        lines.push(title(&format!("tool {}", text(tool, "/name")), tokens));
        lines.extend(text(tool, "/description").lines().map(str::to_owned));
        lines.extend(tool.pointer("/arguments").map(Value::to_string));
        lines.push(String::new());
    }
    if of_tools > 0 {
        lines.push(title("tools", of_tools));
    }
    lines.push(title("all", number(answer, "/tokens")));
    lines
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
