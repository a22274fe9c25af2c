//! Calls that a model repeats although they fail in the same way.

use crate::thread::message::{Message, Role};
use crate::values::json;
use crate::work::delegate;
use std::collections::BTreeMap;

/// Failures of the same call with the same error in one turn, after which it is refused.
pub const REPEATS_MAX: usize = 3;
/// The origin of the host's results for calls that were not made.
const NOT_MADE: &str = "host";

/// Returns the error of a call that has failed in the same way [`REPEATS_MAX`] times among the
/// messages of a turn. The count restarts when a user writes, and when a call that may change
/// something succeeds.
pub fn repeated(
    messages: &[&Message],
    tool: &str,
    arguments: &str,
    may_change: impl Fn(&str, &str) -> bool,
) -> Option<String> {
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    for message in messages {
        if message.role == Role::User {
            failures.clear();
        }
        let Some((name, given)) = answered(messages, message) else {
            continue;
        };
        match error_of(message) {
            Some(error) if name == tool && are_equal(given, arguments) => {
                *failures.entry(error).or_default() += 1;
            }
            None if may_change(name, given) => failures.clear(),
            _ => {}
        }
    }
    let repeated = failures
        .into_iter()
        .find(|(_, times)| *times >= REPEATS_MAX);
    repeated.map(|(error, _)| error)
}

/// Returns the name and the arguments of the call that a message answers. None if that call was not
/// made.
fn answered<'a>(messages: &[&'a Message], message: &Message) -> Option<(&'a str, &'a str)> {
    let answers = message.answers.as_ref()?;
    if message.origin == NOT_MADE {
        return None;
    }
    let mut asking = messages.iter().copied();
    let asking = asking.find(|asking| asking.id == answers.message)?;
    let mut calls = asking.calls();
    let call = calls.find(|(index, ..)| *index == answers.index)?;
    Some((call.2, call.3))
}

/// Returns the error in a result.
fn error_of(message: &Message) -> Option<String> {
    let text = message.text();
    match delegate::failure_in(&text) {
        Some(failure) => Some(format!("{} ({})", failure.message, failure.code)),
        None => message.answers.as_ref()?.failed.then_some(text),
    }
}

/// Returns whether arguments are the same, in any spelling.
fn are_equal(one: &str, other: &str) -> bool {
    one == other
        || matches!((json::parse(one), json::parse(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::{REPEATS_MAX, repeated};
    use crate::thread::message::{Answers, Draft, Message, Part, Role};
    use crate::values::digest::Salt;

    /// The messages of a turn, as one line each: `read a !gone` is a call that failed, `write a`
    /// one that succeeded, `user` a message of the user's.
    fn turn(lines: &[&str]) -> Vec<Message> {
        let mut messages = Vec::new();
        for line in lines {
            let id = messages.len() as u64 + 1;
            let mut words = line.splitn(3, ' ');
            let tool = words.next().unwrap();
            let path = words.next();
            let Some(path) = path else {
                messages.push(Draft::text(Role::User, "api", "hm").at(id, Salt::default()));
                continue;
            };
            let error = words.next().and_then(|word| word.strip_prefix('!'));
            let call = Part::Call {
                call_id: format!("c{id}"),
                name: tool.to_owned(),
                arguments: format!("{{\"path\": \"{path}\"}}"),
            };
            let asks = Draft {
                parts: vec![call],
                ..Draft::text(Role::Assistant, "model:m", "")
            };
            let answers = Answers {
                message: id,
                index: 0,
                call_id: format!("c{id}"),
                name: tool.to_owned(),
                failed: error.is_some(),
            };
            let result = Draft {
                answers: Some(answers),
                ..Draft::text(Role::Tool, format!("tool:{tool}"), error.unwrap_or("done"))
            };
            messages.push(asks.at(id, Salt::default()));
            messages.push(result.at(id + 1, Salt::default()));
        }
        messages
    }

    #[test]
    fn a_call_that_fails_in_the_same_way_three_times_is_not_made_again() {
        for (lines, expected) in [
            (&["read a !gone"; 2][..], None),
            (&["read a !gone"; REPEATS_MAX], Some("gone")),
            (&["read a !gone"; 7], Some("gone")),
            (
                &["read a !gone", "look b", "read a !gone", "read a !gone"],
                Some("gone"),
            ),
            (
                &["read a !gone", "write a", "read a !gone", "read a !gone"],
                None,
            ),
            (
                &["read a !gone", "user", "read a !gone", "read a !gone"],
                None,
            ),
            (&["read a !gone", "read a !busy", "read a !gone"], None),
            (&["read b !gone", "read b !gone", "read b !gone"], None),
            (&["scan a !gone", "scan a !gone", "scan a !gone"], None),
        ] {
            let messages = turn(lines);
            let messages: Vec<&Message> = messages.iter().collect();
            let may_change = |name: &str, _: &str| name == "write";
            let found = repeated(&messages, "read", r#"{"path":"a"}"#, may_change);
            assert_eq!(found.as_deref(), expected, "{lines:?}");
        }
    }
}
