//! `audit`: the ledger of the boundary, filtered and exported.

#[cfg(test)]
mod tests;

use crate::answer::{fill, list, number, text};
use crate::cli::Audit;
use crate::client::{Client, Log, code_of, parameters, segment};
use crate::config::closest;
use crate::failure::Failure;
use crate::terminal::Terminal;
use domain::error_code::ErrorCode;
use domain::event::OPERATOR_READ;
use domain::grant::capability::{ENV_READ, FILES_READ, FILES_WRITE, NET_HTTP, SECRETS_USE};
use domain::id::AgentId;
use domain::outbound_message::{ANSWER, DELIVER};
use domain::ruling::{AGENT_CALL, MODEL_CALL, PROGRAM_RUN, STEP, TOOL_CALL};
use domain::{delegate, direct_message, memory, panels, skill, trigger};
use serde_json::Value;
use std::collections::BTreeSet;

/// The rule of a refusal of what a tool did not declare.
const NOT_ASKED: &str = "notAsked";

/// The beginnings of the names that triggers and connectors have in the ledger.
const TRIGGER: &str = "trigger:";
const CONNECTOR: &str = "connector:";
/// The calls of triggers and connectors, as the ledger names them.
const EDGE_CALLS: [&str; 5] = [
    "trigger.fire",
    "connector.poll",
    "connector.receive",
    "connector.send",
    "connector.fetch",
];

/// Runs the command.
pub(super) async fn run(client: &Client, what: Audit, terminal: Terminal) -> Result<(), Failure> {
    let named = [
        ("agent", &what.agent),
        ("component", &what.component),
        ("tool", &what.tool),
        ("capability", &what.capability),
    ];
    let named: Vec<(&str, &str)> = named
        .into_iter()
        .filter_map(|(kind, name)| Some((kind, name.as_deref()?)))
        .collect();
    note_unknown(client, &named, terminal).await?;
    let filter = parameters([
        ("agent", what.agent),
        ("session", what.session),
        ("run", what.run),
        ("user", what.user),
        ("component", what.component),
        ("tool", what.tool),
        ("capability", what.capability),
        ("verdict", what.verdict),
    ]);
    let log = Log {
        path: "/api/audit",
        filter: &filter,
        pointer: "/lines",
        after: what.after,
        follow: what.follow,
    };
    let show = |entry: &Value| terminal.result(entry, || vec![line(entry)]);
    client.read_log(log, show).await
}

/// Prints a note about each name in the filter that the host does not know now.
async fn note_unknown(
    client: &Client,
    named: &[(&str, &str)],
    terminal: Terminal,
) -> Result<(), Failure> {
    if named.is_empty() {
        return Ok(());
    }
    for (_, name) in named.iter().filter(|(kind, _)| *kind == "agent") {
        let unknown = unknown_edge(client, name).await;
        unknown.iter().for_each(|note| terminal.notice(note));
    }
    // The definitions take a scope that the ledger itself does not: without them there are no
    // notes.
    let Ok(definitions) = client.definitions().await else {
        return Ok(());
    };
    let known = Known::new(&definitions, &client.get("/api/components").await?);
    named
        .iter()
        .filter_map(|(what, name)| known.note(what, name))
        .for_each(|note| terminal.notice(&note));
    Ok(())
}

/// Returns a note about a trigger or a connector that the host does not have now; none about other
/// names, nor where it cannot be told.
async fn unknown_edge(client: &Client, name: &str) -> Option<String> {
    let is_unknown = if let Some(trigger) = name.strip_prefix(TRIGGER) {
        let path = format!("/api/triggers/{}", segment(trigger));
        let shown = client.get(&path).await;
        shown.is_err_and(|failure| code_of(&failure) == Some(ErrorCode::TriggerNotFound))
    } else {
        let connector = name.strip_prefix(CONNECTOR)?;
        let listed = client.get("/api/connectors").await.ok()?;
        let mut known = list(&listed, "/connectors").iter();
        !known.any(|known| text(known, "/name") == connector)
    };
    let (what, name) = name.split_once(':')?;
    is_unknown.then(|| only_older(&format!("{what} `{name}`")))
}

/// Returns the note about a name that only older lines can have.
fn only_older(what: &str) -> String {
    format!("note: the host has no {what} now, so that only older lines can be about it")
}

/// The names that lines can have as the host is configured now.
#[derive(Debug, Default)]
struct Known {
    agents: BTreeSet<String>,
    components: BTreeSet<String>,
    tools: BTreeSet<String>,
    capabilities: BTreeSet<String>,
}

impl Known {
    /// Collects the known names from the host's responses.
    fn new(definitions: &Value, components: &Value) -> Self {
        let fixed = [
            FILES_READ,
            FILES_WRITE,
            NET_HTTP,
            ENV_READ,
            SECRETS_USE,
            TOOL_CALL,
            STEP,
            MODEL_CALL,
            PROGRAM_RUN,
            AGENT_CALL,
            OPERATOR_READ,
            DELIVER,
            ANSWER,
        ];
        let mut known = Self {
            capabilities: fixed.map(str::to_owned).into(),
            tools: EDGE_CALLS.map(str::to_owned).into(),
            ..Self::default()
        };
        let definitions = list(definitions, "/definitions").iter();
        let agents = definitions.map(|definition| text(definition, "/definition").to_owned());
        known.agents.extend(agents);
        for component in list(components, "/components") {
            known.components.insert(text(component, "/name").to_owned());
            for tool in list(component, "/describes/description") {
                known.tools.insert(text(tool, "/name").to_owned());
                let capabilities = list(tool, "/capabilities").iter();
                let capabilities = capabilities.filter_map(|name| Some(name.as_str()?.to_owned()));
                known.capabilities.extend(capabilities);
            }
            for bucket in list(component, "/grant/keyValue") {
                let bucket = text(bucket, "/bucket");
                known
                    .capabilities
                    .extend([format!("{bucket}.read"), format!("{bucket}.write")]);
            }
        }
        known
    }

    /// Returns a note about an unknown name. It is no error, because the ledger may be older than
    /// the configuration.
    fn note(&self, what: &str, name: &str) -> Option<String> {
        let known = match what {
            // Whoever is named by a UUID is in the ledger or not.
            "agent" if name.parse::<AgentId>().is_ok() => return None,
            // So are triggers and connectors, which stand in the place of an agent.
            "agent" if is_edge(name) => return None,
            "agent" => &self.agents,
            "component" => &self.components,
            // The host's own calls are on record as well.
            "tool"
                if name == delegate::NAME
                    || direct_message::NAMES.contains(&name)
                    || memory::NAMES.contains(&name)
                    || panels::NAMES.contains(&name)
                    || trigger::OWN_TOOLS.contains(&name)
                    || name == skill::BASH =>
            {
                return None;
            }
            "tool" => &self.tools,
            // Interfaces stand for what no capability stands for.
            _ if name.contains(':') => return None,
            _ => &self.capabilities,
        };
        if known.contains(name) {
            return None;
        }
        let nearest = closest(name, known.iter().map(String::as_str))
            .map(|nearest| format!("; the nearest is `{nearest}`"));
        let note = only_older(&format!("{what} `{name}`"));
        Some(note + &nearest.unwrap_or_default())
    }
}

/// Returns whether a name is that of a trigger or a connector, as the ledger has it.
fn is_edge(name: &str) -> bool {
    name.starts_with(TRIGGER) || name.starts_with(CONNECTOR)
}

/// The code that a call ran on, and its grant.
const COMPONENT: &str = "{/component}[[ {/version}]]@{/code:8} grant {/grant:8}";

/// Returns a line of the ledger for people.
fn line(entry: &Value) -> String {
    let what = match text(entry, "/kind") {
        "admission" => vec!["host  ", COMPONENT, "  admitted"],
        "reading" => vec![
            "operator  {/user_id} read[[  agent {/agent_id:8}]][[  session {/session_id:8}]]",
            "  {/detail}",
        ],
        kind => {
            let who = "{/definition}[[  for {/user_id}]]  ";
            let mut call = vec![who, COMPONENT, "  ", call(entry), "  "];
            call.extend(decided(kind, entry));
            call
        }
    };
    fill(
        entry,
        &["{/position:>8}  {/time}  ", &what.concat()].concat(),
    )
}

/// The template of the call that a line is about.
fn call(entry: &Value) -> &'static str {
    match (text(entry, "/tool"), text(entry, "/operation_id")) {
        ("", "") => "step",
        ("", _) => "operation {/operation_id:8}.{/segment}",
        // A call of a trigger or a connector is no operation of an agent.
        (_, "") => "{/tool}",
        _ => "{/tool} {/operation_id:8}.{/segment}",
    }
}

/// The template of what was decided about a call, in parts.
fn decided(kind: &str, entry: &Value) -> Vec<&'static str> {
    let times = match number(entry, "/times") {
        0 | 1 => "",
        _ => " x{/times}",
    };
    let undeclared = match text(entry, "/rule") {
        NOT_ASKED => " (its tool does not declare {/capability})",
        _ => "",
    };
    match kind {
        "left_out" => vec!["{/left_out} more of this call were not kept one by one"],
        "request" => vec![
            "request {/verdict}[[ {/status}]]",
            times,
            "  {/detail}  {/bytes_out} bytes out, {/bytes_in} in",
        ],
        _ => vec![
            "{/verdict} {/capability}",
            times,
            " by {/rule}",
            undeclared,
            "[[  {/detail}]][[  in {/folder} ({/folder_granted})]]",
        ],
    }
}
