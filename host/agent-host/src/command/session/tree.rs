//! `session tree` and `session diff`: the tree of turns, for people.

use super::path_of;
use crate::answer::{Answer, Row, fill, list, set_in, text};
use crate::client::{Client, segment};
use crate::failure::Failure;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Shows the tree that a session is a branch of.
pub(super) async fn tree(client: &Client, id: &str) -> Result<Answer, Failure> {
    let path = format!("{}/tree?limit=1000", path_of(client, id).await?);
    let turns = client.get_all(&path, "/turns").await?;
    let lines = drawn(&turns, id);
    let nothing = turns
        .is_empty()
        .then_some("nothing was said in this session yet");
    Ok(Answer::new(json!({ "turns": turns }), lines).notice(nothing))
}

/// Shows where two threads part.
pub(super) async fn diff(client: &Client, a: &str, b: &str) -> Result<Answer, Failure> {
    let path = format!("{}/diff?with={}", path_of(client, a).await?, segment(b));
    Ok(Answer::describing(client.get(&path).await?, side_by_side))
}

/// A tree, one turn a line. A thread goes straight down; where it forks, each branch is set in.
fn drawn(turns: &[Value], here: &str) -> Vec<String> {
    let mut children: HashMap<&str, Vec<&Value>> = HashMap::new();
    for turn in turns {
        children
            .entry(text(turn, "/parent_turn_id"))
            .or_default()
            .push(turn);
    }
    let mut lines = Vec::new();
    let mut next: Vec<(usize, &Value)> = children
        .get("")
        .into_iter()
        .flatten()
        .rev()
        .map(|turn| (0, *turn))
        .collect();
    while let Some((indent, turn)) = next.pop() {
        lines.push(format!("{}{}", "  ".repeat(indent), line(turn, here)));
        let below = children
            .get(text(turn, "/turn_id"))
            .map(Vec::as_slice)
            .unwrap_or_default();
        let indent = indent + usize::from(below.len() > 1);
        next.extend(below.iter().rev().map(|child| (indent, *child)));
    }
    lines
}

fn line(turn: &Value, here: &str) -> String {
    let labels = list(turn, "/sessions").iter().map(|label| {
        let session = text(label, "/session_id");
        let mark = if session == here { "*" } else { "" };
        match text(label, "/name") {
            "" => format!("{mark}{session}"),
            name => format!("{mark}{session} {name:?}"),
        }
    });
    let labels: Vec<String> = labels.collect();
    let labels = (!labels.is_empty()).then(|| format!("<- {}", labels.join(", ")));
    let cells = ["{/turn_id:12}", "{/end}", "{/text}"];
    Row::of(turn, &cells, &[]).note(labels).line()
}

fn side_by_side(parting: &Value) -> Vec<String> {
    let head = "[[in common up to turn {/common_turn_id}]][[{!/common_turn_id}nothing in common]]";
    let mut lines = vec![fill(parting, head)];
    for (mark, side) in [("-", "/only_here"), ("+", "/only_there")] {
        for turn in list(parting, side) {
            lines.push(format!("{mark} turn {}", text(turn, "/turn_id")));
            for said in list(turn, "/messages") {
                let head = format!("{mark}   {}: ", text(said, "/role"));
                lines.extend(set_in(&head, text(said, "/text"), mark));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{drawn, side_by_side};
    use serde_json::json;

    #[test]
    fn a_tree_goes_straight_down_and_is_set_in_where_it_forks() {
        let turn = |id: &str, parent: Option<&str>, sessions: serde_json::Value| json!({ "turn_id": id, "parent_turn_id": parent, "end": "replied", "text": format!("words {id}"), "sessions": sessions });
        let turns = [
            turn("a", None, json!([])),
            turn("b", Some("a"), json!([])),
            turn(
                "c",
                Some("b"),
                json!([{ "session_id": "s1", "name": null }]),
            ),
            turn(
                "d",
                Some("b"),
                json!([{ "session_id": "s2", "name": "Greek" }]),
            ),
        ];
        let expected = [
            "a  replied  words a",
            "b  replied  words b",
            "  c  replied  words c  <- *s1",
            "  d  replied  words d  <- s2 \"Greek\"",
        ];
        assert_eq!(drawn(&turns, "s1"), expected);
    }

    #[test]
    fn a_comparison_says_what_is_in_common_and_what_is_not() {
        let parting = json!({
            "common_turn_id": "a", "only_here": [],
            "only_there": [{ "turn_id": "d", "messages": [{ "role": "user", "text": "one\n- turn \
                x" }] }],
        });
        assert_eq!(
            side_by_side(&parting),
            [
                "in common up to turn a",
                "+ turn d",
                "+   user: one",
                "+     | - turn x"
            ]
        );
    }
}
