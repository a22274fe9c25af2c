//! `audit`: the ledger of the boundary, filtered and exported.

#[cfg(test)]
mod tests;

use crate::cli::Audit;
use crate::client::{Client, segment};
use crate::config::{Loaded, closest};
use crate::failure::Failure;
use crate::terminal::Terminal;
use domain::delegate;
use domain::event::{AGENT_CALL, MODEL_CALL, OPERATOR_READ, STEP, TOOL_CALL};
use domain::grant::capability::{ENV_READ, FILES_READ, FILES_WRITE, NET_HTTP, SECRETS_USE};
use domain::id::AgentId;
use domain::talk;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Events whose lines make a page.
const PAGE: u64 = 500;
/// Milliseconds between two looks for new lines.
const LOOK_MS: u64 = 300;
/// Hexadecimal digits of a digest or an id on a line.
const SHORT: usize = 8;

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Audit, terminal: Terminal) -> Result<(), Failure> {
    let Audit {
        after,
        follow,
        agent,
        session,
        run,
        user,
        component,
        tool,
        capability,
        verdict,
    } = what;
    let client = Client::new(loaded)?;
    let named = [
        ("agent", &agent),
        ("component", &component),
        ("tool", &tool),
        ("capability", &capability),
    ];
    let named: Vec<(&str, &str)> = named
        .into_iter()
        .filter_map(|(what, name)| Some((what, name.as_deref()?)))
        .collect();
    if !named.is_empty() {
        let known = Known::of(
            &client.get("/api/definitions").await?,
            &client.get("/api/components").await?,
        );
        named
            .iter()
            .filter_map(|(what, name)| known.note(what, name))
            .for_each(|note| terminal.notice(&note));
    }
    let filter: String = [
        ("agent", agent),
        ("session", session),
        ("run", run),
        ("user", user),
        ("component", component),
        ("tool", tool),
        ("capability", capability),
        ("verdict", verdict),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(format!("&{name}={}", segment(&value?))))
    .collect();
    let mut position = after;
    loop {
        let page = client
            .get(&format!("/api/audit?after={position}&limit={PAGE}{filter}"))
            .await?;
        for told in page
            .get("lines")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            terminal.result(told, || vec![line(told)]);
        }
        let number = |name: &str| page.get(name).and_then(Value::as_u64).unwrap_or(0);
        position = number("next_after").max(position);
        if position < number("last_position") {
            continue;
        }
        if !follow {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
    }
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
    fn of(definitions: &Value, components: &Value) -> Self {
        let list = |from: &Value, pointer: &str| {
            from.pointer(pointer)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let text = |from: &Value, name: &str| {
            from.get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let fixed = [
            FILES_READ,
            FILES_WRITE,
            NET_HTTP,
            ENV_READ,
            SECRETS_USE,
            TOOL_CALL,
            STEP,
            MODEL_CALL,
            AGENT_CALL,
            OPERATOR_READ,
        ];
        let mut known = Self {
            capabilities: fixed.map(str::to_owned).into(),
            ..Self::default()
        };
        known.agents.extend(
            list(definitions, "/definitions")
                .iter()
                .map(|definition| text(definition, "definition")),
        );
        for component in list(components, "/components") {
            known.components.insert(text(&component, "name"));
            for tool in list(&component, "/describes/description") {
                known.tools.insert(text(&tool, "name"));
                known.capabilities.extend(
                    list(&tool, "/capabilities")
                        .iter()
                        .filter_map(|name| Some(name.as_str()?.to_owned())),
                );
            }
            for bucket in list(&component, "/grant/keyValue") {
                let bucket = text(&bucket, "bucket");
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
            "agent" => &self.agents,
            "component" => &self.components,
            // The host's own calls are on record as well.
            "tool" if name == delegate::NAME || talk::NAMES.contains(&name) => return None,
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
        Some(format!(
            "note: the host has no {what} `{name}` now, so that only older lines can be about it{}",
            nearest.unwrap_or_default()
        ))
    }
}

/// One line for people: when, who, through what, which call, what was decided.
fn line(told: &Value) -> String {
    let text = |name: &str| told.get(name).and_then(Value::as_str).unwrap_or_default();
    let number = |name: &str| told.get(name).and_then(Value::as_u64);
    let short = |name: &str| {
        text(name)
            .trim_start_matches("sha256:")
            .chars()
            .take(SHORT)
            .collect::<String>()
    };
    let component = format!(
        "{}@{} grant {}",
        text("component"),
        short("code"),
        short("grant")
    );
    let position = number("position").unwrap_or(0);
    let head = format!("{position:>8}  {}", text("time"));
    if text("kind") == "admission" {
        return format!("{head}  host  {component}  admitted");
    }
    let user = match text("user_id") {
        "" => String::new(),
        user => format!("  for {user}"),
    };
    if text("kind") == "reading" {
        let of =
            [("agent", "agent_id"), ("session", "session_id")].map(|(what, id)| match short(id) {
                id if id.is_empty() => String::new(),
                id => format!("  {what} {id}"),
            });
        return format!(
            "{head}  operator  {} read{}  {}",
            text("user_id"),
            of.concat(),
            text("detail")
        );
    }
    let call = match text("tool") {
        "" if text("operation_id").is_empty() => "step".to_owned(),
        "" => format!(
            "operation {}.{}",
            short("operation_id"),
            number("segment").unwrap_or(0)
        ),
        tool => format!(
            "{tool} {}.{}",
            short("operation_id"),
            number("segment").unwrap_or(0)
        ),
    };
    let who = format!("{head}  {}{user}  {component}  {call}", text("definition"));
    if let Some(left_out) = number("left_out") {
        return format!("{who}  {left_out} more of this call were not kept one by one");
    }
    let times = number("times")
        .filter(|times| *times > 1)
        .map(|times| format!(" x{times}"))
        .unwrap_or_default();
    if text("kind") == "request" {
        let status = number("status")
            .map(|status| format!(" {status}"))
            .unwrap_or_default();
        let (sent, received) = (
            number("bytes_out").unwrap_or(0),
            number("bytes_in").unwrap_or(0),
        );
        return format!(
            "{who}  request {}{status}{times}  {}  {sent} bytes out, {received} in",
            text("verdict"),
            text("detail")
        );
    }
    format!(
        "{who}  {} {}{times} by {}  {}",
        text("verdict"),
        text("capability"),
        text("rule"),
        text("detail")
    )
}
