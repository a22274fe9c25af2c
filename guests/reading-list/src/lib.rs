//! The reading list's agent: what a user sends to be read goes on the list at once, and a model is
//! asked about everything else.
//!
//! A message that is nothing but web addresses needs no model. The tools are those of the component
//! `lists`, as far as the agent may use them; an agent that may not add anything asks its model.

use agent_host_sdk::{
    Agent, Description, MessageId, Operation, Outcome, Part, Settlement, Step, Turn, export_agent,
    shortened, tool_loop,
};
use serde_json::{Value, json};

/// The tool that puts something on the list.
const ADD: &str = "reading_list_add";
/// The operations that do so have keys that begin like this, and end with the address.
const KEY: &str = "add ";
/// Addresses that one message may have; more are the model's to look at.
const ADDRESSES_MAX: usize = 10;
/// Bytes of an address that the list takes.
const ADDRESS_BYTES_MAX: usize = 2_000;
/// Bytes of a title.
const TITLE_BYTES_MAX: usize = 300;

/// The agent.
#[derive(Debug)]
pub struct ReadingList;

impl Agent for ReadingList {
    fn describe(&self) -> Description {
        Description::new(
            "reading-list",
            "Reading List",
            "Keeps what the user wants to read.",
        )
        .wants(ADD)
        .wants("reading_list_list")
        .wants("reading_list_search")
        .wants("reading_list_mark_read")
    }

    fn on_said(&self, turn: Turn<'_>, messages: &[MessageId]) -> Step {
        let addresses = addresses_in(turn, messages);
        if addresses.is_empty() || turn.tool(ADD).is_none() {
            return tool_loop::ask_model(self, turn);
        }
        Step::start(addresses.iter().enumerate().map(|(number, address)| {
            let arguments = json!({ "title": title_of(address), "url": address });
            Operation::tool(format!("{KEY}{number}"), ADD, arguments)
        }))
    }

    fn on_settled(&self, turn: Turn<'_>, settled: &[Settlement]) -> Step {
        if settled
            .iter()
            .any(|settlement| matches!(settlement.outcome, Outcome::Denied))
        {
            return tool_loop::ask_model(self, turn);
        }
        let lines: Vec<String> = settled.iter().map(line_of).collect();
        Step::reply(lines.join("\n"))
    }
}

/// The addresses of messages that are nothing else; none if they say anything more.
fn addresses_in(turn: Turn<'_>, messages: &[MessageId]) -> Vec<String> {
    let mut addresses: Vec<String> = Vec::new();
    for id in messages {
        let Some(message) = turn.message(*id) else {
            return Vec::new();
        };
        for word in message.text().split_whitespace() {
            if !is_address(word) {
                return Vec::new();
            }
            if !addresses.iter().any(|known| known == word) {
                addresses.push(word.to_owned());
            }
        }
    }
    if addresses.len() > ADDRESSES_MAX {
        return Vec::new();
    }
    addresses
}

fn is_address(word: &str) -> bool {
    let rest = word
        .strip_prefix("https://")
        .or_else(|| word.strip_prefix("http://"));
    word.len() <= ADDRESS_BYTES_MAX
        && rest.is_some_and(|rest| rest.contains('.') && !rest.starts_with(['/', '.']))
}

/// A title for an address that nobody has read yet: its host and path.
fn title_of(address: &str) -> String {
    let (_, rest) = address.split_once("://").unwrap_or(("", address));
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let rest = rest.strip_prefix("www.").unwrap_or(rest);
    shortened(rest.trim_end_matches('/'), TITLE_BYTES_MAX)
}

/// The outcome of one addition, in words.
fn line_of(settlement: &Settlement) -> String {
    let entry = match &settlement.outcome {
        Outcome::Parts(parts) => parts.iter().find_map(|part| {
            let Part::Text(text) = part else {
                return None;
            };
            serde_json::from_str::<Value>(text).ok()
        }),
        outcome => return format!("Not added: {outcome}"),
    };
    let entry = entry.unwrap_or_default();
    let id = entry.get("id").and_then(Value::as_u64);
    let title = entry.get("title").and_then(Value::as_str);
    match (id, title) {
        (Some(id), Some(title)) => format!("Added as {id}: {title}"),
        _ => "Added.".to_owned(),
    }
}

export_agent!(ReadingList);

#[cfg(test)]
mod tests;
