//! Turns in public form: alone, in their tree, side by side with another thread, and as what was
//! found.

use super::Time;
use super::message::{MessageView, message, role_name};
use super::outbound_message::{TurnOutboundMessageView, turn_outbound_message};
use domain::event::OutboundMessageCause;
use domain::id::{AgentId, InputId, RunId, SessionId, TurnId};
use domain::message::{Message, Role};
use domain::model::Usage;
use domain::speaker::Speaker;
use domain::turn::{TurnEnd, TurnNode};
use serde::Serialize;
use store::{Found, OutboundMessageRow, Parting, SeenTurn, SessionLabel, TreeTurn};

/// Characters of a turn's first message in a tree.
const TEXT_CHARS_MAX: usize = 160;
/// Characters before the first word that was found, in a snippet, and in all of it.
const SNIPPET_CHARS: (usize, usize) = (60, 200);

/// A session that points to a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = SessionLabel)]
pub(crate) struct SessionLabelView {
    /// The session.
    pub(crate) session_id: SessionId,
    /// Its agent.
    pub(crate) agent_id: AgentId,
    /// Its name.
    pub(crate) name: Option<String>,
}

/// A turn in its tree.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = TreeTurn)]
pub(crate) struct TreeTurnView {
    /// Its id: a hash of its messages, of its parent, and of its end.
    pub(crate) turn_id: TurnId,
    /// The turn before it.
    pub(crate) parent_turn_id: Option<TurnId>,
    /// Number of turns in its thread, itself included.
    pub(crate) depth: u64,
    /// Its first message's place in the thread.
    pub(crate) first_message: u64,
    /// Its last message's place.
    pub(crate) last_message: u64,
    /// The way in which it ended.
    pub(crate) end: TurnEnd,
    /// The run that made it.
    pub(crate) run_id: RunId,
    /// The session in which it was made, or for which it was imported.
    pub(crate) session_id: SessionId,
    /// The time at which it was stored, ISO 8601. For an imported turn, the time at which it was
    /// stored at its origin.
    pub(crate) time: Time,
    /// The tokens that it used.
    pub(crate) usage: Usage,
    /// The models that took part.
    pub(crate) models: Vec<String>,
    /// The beginning of its first message.
    pub(crate) text: String,
    /// The inputs that it answers; empty for an imported turn.
    pub(crate) input_ids: Vec<InputId>,
    /// True if it is the host's own and compacts the conversation; it answers no input.
    pub(crate) compaction: bool,
    /// The sessions that are at this turn, as far as you see them.
    pub(crate) sessions: Vec<SessionLabelView>,
    /// Messages to people outside that come of it: its reply, and its questions. Absent without
    /// any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) outbound_messages: Vec<TurnOutboundMessageView>,
}

/// A turn with all that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Turn)]
pub(crate) struct TurnView {
    /// The fields that a tree shows.
    #[serde(flatten)]
    pub(crate) summary: TreeTurnView,
    /// The turns that follow it, as far as you see them.
    pub(crate) child_turn_ids: Vec<TurnId>,
    /// Its messages, in order. One that was erased is not among them.
    pub(crate) messages: Vec<MessageView>,
}

/// A message, with its role and its text only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = MessageText)]
pub(crate) struct MessageTextView {
    /// The role of its author.
    pub(crate) role: Role,
    /// Its text.
    pub(crate) text: String,
}

/// A turn that one of two threads has alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = LoneTurn)]
pub(crate) struct LoneTurnView {
    /// The turn.
    pub(crate) turn_id: TurnId,
    /// Number of turns in its thread, itself included.
    pub(crate) depth: u64,
    /// Its messages, in order.
    pub(crate) messages: Vec<MessageTextView>,
}

/// The point at which two threads part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Parting)]
pub(crate) struct PartingView {
    /// The last turn of both; none when they have nothing in common.
    pub(crate) common_turn_id: Option<TurnId>,
    /// The turns of the session alone, in order.
    pub(crate) only_here: Vec<LoneTurnView>,
    /// The turns of the other thread alone, in order.
    pub(crate) only_there: Vec<LoneTurnView>,
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Found)]
pub(crate) struct FoundView {
    /// The session of the message.
    pub(crate) session_id: SessionId,
    /// The name of that session.
    pub(crate) session_name: Option<String>,
    /// Its agent.
    pub(crate) agent_id: AgentId,
    /// The turn that it is of.
    pub(crate) turn_id: TurnId,
    /// The message's place in its thread.
    pub(crate) message: u64,
    /// The one who said it: `user`, `assistant`, or the kind of whoever else spoke in a user's
    /// place, such as `agent` or `trigger`.
    pub(crate) role: &'static str,
    /// The same by name, as in a message; absent of an agent's own reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) speaker: Option<Speaker>,
    /// An excerpt around the first matching word.
    pub(crate) snippet: String,
    /// True if its content came from outside the user's and the operator's control.
    pub(crate) untrusted: bool,
    /// The time of the message, ISO 8601.
    pub(crate) time: Time,
}

/// A turn of a tree, with the outbound messages that come of it.
pub(crate) fn tree_turn(turn: &TreeTurn, outbound_messages: &[OutboundMessageRow]) -> TreeTurnView {
    let node = &turn.node;
    TreeTurnView {
        turn_id: node.id,
        parent_turn_id: node.parent,
        depth: node.depth,
        first_message: node.first_message,
        last_message: node.last_message,
        end: node.end,
        run_id: node.run,
        session_id: turn.session,
        time: Time(turn.time),
        usage: node.usage,
        models: node.models.clone(),
        text: on_one_line(&turn.text, TEXT_CHARS_MAX),
        input_ids: turn.inputs.clone(),
        compaction: turn.compacts,
        sessions: turn.labels.iter().map(label).collect(),
        outbound_messages: outbound_messages
            .iter()
            .map(turn_outbound_message)
            .collect(),
    }
}

/// Returns the run whose turn shows an outbound message; none for one that no turn does.
pub(crate) fn run_of(row: &OutboundMessageRow) -> Option<RunId> {
    match &row.cause {
        OutboundMessageCause::Turn { run, .. } | OutboundMessageCause::Question { run, .. } => {
            Some(*run)
        }
        OutboundMessageCause::Input { .. }
        | OutboundMessageCause::Host { .. }
        | OutboundMessageCause::Test { .. } => None,
    }
}

/// A turn with all that is known of it, and with the outbound messages that come of it.
pub(crate) fn turn(seen: &SeenTurn, outbound_messages: &[OutboundMessageRow]) -> TurnView {
    TurnView {
        summary: tree_turn(&seen.turn, outbound_messages),
        child_turn_ids: seen.children.clone(),
        messages: seen.messages.iter().flatten().map(message).collect(),
    }
}

/// Returns the point at which two threads part.
pub(crate) fn parting(parting: &Parting) -> PartingView {
    let views = |turns: &[(TurnNode, Vec<Option<Message>>)]| {
        turns
            .iter()
            .map(|(node, messages)| lone_turn(node, messages))
            .collect()
    };
    PartingView {
        common_turn_id: parting.common,
        only_here: views(&parting.left),
        only_there: views(&parting.right),
    }
}

/// Returns a message that was found with these words.
pub(crate) fn found(found: &Found, words: &str) -> FoundView {
    let speaker = found.message.said_by();
    FoundView {
        session_id: found.session,
        session_name: found.session_name.clone(),
        agent_id: found.agent,
        turn_id: found.turn,
        message: found.place,
        role: speaker
            .as_ref()
            .map_or_else(|| role_name(found.message.role), Speaker::kind),
        speaker,
        snippet: snippet(&found.message.text(), words),
        untrusted: found.message.untrusted,
        time: Time(found.time),
    }
}

fn lone_turn(node: &TurnNode, messages: &[Option<Message>]) -> LoneTurnView {
    let said = messages.iter().flatten().map(|message| MessageTextView {
        role: message.role,
        text: message.text(),
    });
    LoneTurnView {
        turn_id: node.id,
        depth: node.depth,
        messages: said.collect(),
    }
}

fn label(label: &SessionLabel) -> SessionLabelView {
    SessionLabelView {
        session_id: label.id,
        agent_id: label.agent,
        name: label.name.clone(),
    }
}

/// The beginning of a text on one line.
fn on_one_line(text: &str, chars_max: usize) -> String {
    let line = text
        .split_whitespace()
        .take(chars_max)
        .collect::<Vec<_>>()
        .join(" ");
    line.chars().take(chars_max).collect()
}

/// Returns an excerpt around the first of these words. It is the beginning of the text when none of
/// them occurs literally.
fn snippet(text: &str, words: &str) -> String {
    let (before, all) = SNIPPET_CHARS;
    let wanted: Vec<Vec<char>> = words
        .split_whitespace()
        .map(|word| word.chars().flat_map(char::to_lowercase).collect())
        .collect();
    let chars: Vec<char> = text.chars().collect();
    // Character by character: what a letter becomes in lower case may be longer than the letter.
    let lower: Vec<char> = chars
        .iter()
        .map(|char| char.to_lowercase().next().unwrap_or(*char))
        .collect();
    let first = (0..lower.len()).find(|at| {
        wanted
            .iter()
            .any(|word| lower.get(*at..).is_some_and(|rest| rest.starts_with(word)))
    });
    let begin = first.unwrap_or(0).saturating_sub(before);
    let shown: String = chars.iter().skip(begin).take(all).collect();
    let head = if begin > 0 { "…" } else { "" };
    let tail = if chars.len() > begin + all { "…" } else { "" };
    format!("{head}{}{tail}", on_one_line(&shown, all))
}

#[cfg(test)]
mod tests {
    use super::snippet;

    #[test]
    fn a_snippet_is_what_stands_around_the_first_word_that_was_found() {
        assert_eq!(
            snippet("Where do Dragons live?", "dragons"),
            "Where do Dragons live?"
        );
        let long = format!("{} zebra {}", "a ".repeat(200), "b ".repeat(200));
        let shown = snippet(&long, "nothing zebra");
        assert!(
            shown.starts_with('…') && shown.contains(" zebra b") && shown.ends_with('…'),
            "{shown}"
        );
        assert_eq!(
            snippet("nothing of it\nis here", "zebra"),
            "nothing of it is here"
        );
    }
}
