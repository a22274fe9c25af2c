//! Turns from messages: where each begins and ends, and what it contains.

use super::{
    ABORTED_CALL, Adoption, COPIED_BYTES_MAX, COPIED_MESSAGES_MAX, Compacts, ForeignMessage,
    PassedOver,
};
use crate::thread::compaction::Mark;
use crate::thread::message::{Answers, Draft, Message, Part, Role};
use crate::thread::model::Usage;
use crate::thread::transcript::verify::jump;
use crate::thread::transcript::{EMPTY_STATE, TranscriptFault, TranscriptTurn};
use crate::thread::turn::{TurnEnd, TurnNode};
use crate::values::digest::Digest;
use crate::values::id::{RunId, SessionId, TurnId};
use std::collections::{HashMap, HashSet};

/// The division of messages into turns.
struct Plan {
    /// The start of its turn, for each message, as an index.
    starts: Vec<usize>,
    /// True if a turn ends with it, for each message.
    ends: Vec<bool>,
}

/// Makes turns, and returns them with the turn of each message: the one that ends with it, or
/// otherwise the first that contains it. Parents precede their children; `head` is the session's
/// position, which is the end of a turn too. Results without a call are passed over.
pub(in crate::thread::transcript) fn turns(
    said: &[ForeignMessage],
    head: Option<usize>,
    session: SessionId,
    adoption: &Adoption,
    passed_over: &mut PassedOver,
) -> Result<(Vec<TranscriptTurn>, Vec<TurnId>), TranscriptFault> {
    let plan = plan(said, head);
    let mut turns: Vec<TranscriptTurn> = Vec::new();
    let mut places: HashMap<TurnId, usize> = HashMap::new();
    let mut ended: HashMap<usize, TurnId> = HashMap::new();
    let mut first: HashMap<usize, TurnId> = HashMap::new();
    let mut copied = Copied {
        messages: 0,
        bytes: 0,
    };
    for end in (0..said.len()).filter(|place| plan.ends.get(*place) == Some(&true)) {
        let path = path(said, &plan, end, &first, &mut copied)?;
        let start = path.first().and_then(|place| said.get(*place));
        let before = start
            .and_then(|start| start.parent)
            .and_then(|parent| ended.get(&parent));
        let parent = before
            .and_then(|turn| places.get(turn))
            .and_then(|place| turns.get(*place))
            .map(|turn| &turn.node);
        let find = |id: TurnId| {
            places
                .get(&id)
                .and_then(|place| turns.get(*place))
                .map(|turn| &turn.node)
        };
        let said: Vec<&ForeignMessage> = path.iter().filter_map(|place| said.get(*place)).collect();
        let mark = match said.as_slice() {
            [alone] => alone.compacts.and_then(|compacts| {
                let kept = compacts
                    .first_kept
                    .and_then(|place| ended.get(&place).or_else(|| first.get(&place)))
                    .copied();
                marked(compacts, kept, parent, find)
            }),
            _ => None,
        };
        let jump = jump(parent, find);
        let (turn, orphans) = make(&said, parent, jump, mark, session, adoption);
        for orphan in orphans {
            passed_over.add(orphan)?;
        }
        let id = turn.node.id;
        for place in path {
            first.entry(place).or_insert(id);
        }
        ended.insert(end, id);
        places.insert(id, turns.len());
        turns.push(turn);
    }
    let homes = (0..said.len())
        .filter_map(|place| ended.get(&place).or_else(|| first.get(&place)).copied())
        .collect();
    Ok((turns, homes))
}

/// Count of the messages and bytes that were copied so far.
struct Copied {
    messages: usize,
    bytes: usize,
}

fn plan(said: &[ForeignMessage], head: Option<usize>) -> Plan {
    let mut starts: Vec<usize> = Vec::with_capacity(said.len());
    // True for each message whose turn has an answer by then.
    let mut answered: Vec<bool> = Vec::with_capacity(said.len());
    // The turn's calls without results up to here.
    let mut open: Vec<usize> = Vec::with_capacity(said.len());
    let mut goes_on: HashSet<usize> = HashSet::new();
    let mut is_left: HashSet<usize> = HashSet::new();
    for (place, this) in said.iter().enumerate() {
        let before = this
            .parent
            .and_then(|parent| Some((parent, *starts.get(parent)?, *answered.get(parent)?)));
        let waits = this
            .parent
            .and_then(|parent| open.get(parent))
            .copied()
            .unwrap_or_default();
        let is_apart = |one: &ForeignMessage| one.compacts.is_some() && waits == 0;
        let apart = is_apart(this)
            || this
                .parent
                .and_then(|parent| said.get(parent))
                .is_some_and(is_apart);
        let within = before.filter(|(_, _, answered)| !(apart || (*answered && this.asks())));
        if let Some((parent, ..)) = before {
            let children = if within.is_some() {
                &mut goes_on
            } else {
                &mut is_left
            };
            children.insert(parent);
        }
        starts.push(within.map_or(place, |(_, start, _)| start));
        let calls = this
            .parts
            .iter()
            .filter(|part| matches!(part, Part::Call { .. }))
            .count();
        open.push(
            (within.map_or(0, |_| waits) + calls)
                .saturating_sub(usize::from(this.answers.is_some())),
        );
        answered.push(!this.asks() || within.is_some_and(|(_, _, answered)| answered));
    }
    let is_end =
        |place: &usize| !goes_on.contains(place) || is_left.contains(place) || head == Some(*place);
    Plan {
        ends: (0..said.len()).map(|place| is_end(&place)).collect(),
        starts,
    }
}

/// Returns the messages of the turn that ends here, in order.
fn path(
    said: &[ForeignMessage],
    plan: &Plan,
    end: usize,
    first: &HashMap<usize, TurnId>,
    copied: &mut Copied,
) -> Result<Vec<usize>, TranscriptFault> {
    let start = plan.starts.get(end).copied().unwrap_or(end);
    let mut path = vec![end];
    let mut at = end;
    while at != start {
        let Some(parent) = said.get(at).and_then(|this| this.parent) else {
            break;
        };
        path.push(parent);
        at = parent;
        if first.contains_key(&parent) {
            copied.messages += 1;
            copied.bytes += said.get(parent).map_or(0, |this| this.bytes);
        }
        if copied.messages > COPIED_MESSAGES_MAX || copied.bytes > COPIED_BYTES_MAX {
            let line = said.get(end).map_or(0, |this| this.line);
            let message = format!(
                "too many branches part in the middle of their turns: what they have in common is \
                 copied to each, and \
                 {COPIED_MESSAGES_MAX} messages or {COPIED_BYTES_MAX} bytes of copies are the \
                 most. Take branches out"
            );
            return Err(TranscriptFault::line(line, message));
        }
    }
    path.reverse();
    Ok(path)
}

/// Returns the mark of a compaction on the turns before it. None if no turn precedes the kept part.
fn marked<'a>(
    compacts: Compacts,
    kept: Option<TurnId>,
    parent: Option<&'a TurnNode>,
    find: impl Fn(TurnId) -> Option<&'a TurnNode>,
) -> Option<Mark> {
    let before = parent?;
    let mut at = Some(before);
    // A turn kept on another branch is not kept on this one.
    let kept = loop {
        match (kept, at) {
            (Some(turn), Some(node)) if node.id == turn => break Some(node),
            (Some(_), Some(node)) => at = node.parent.and_then(&find),
            (None, _) | (_, None) => break None,
        }
    };
    Some(Mark {
        summarized_through: kept.map_or(Some(before.id), |node| node.parent)?,
        first_kept: kept.map(|node| node.id),
        tokens_before: compacts.tokens_before,
        tokens_after: 0,
    })
}

/// Makes a turn that joins the tree at a parent, with the mark of a compaction, if it is one.
/// Returns it with the faults of results without a waiting call.
fn make(
    said: &[&ForeignMessage],
    parent: Option<&TurnNode>,
    jump: Option<TurnId>,
    mark: Option<Mark>,
    session: SessionId,
    adoption: &Adoption,
) -> (TranscriptTurn, Vec<TranscriptFault>) {
    let first_message = parent.map_or(1, |parent| parent.last_message + 1);
    let last = said.last();
    let committed = said.iter().map(|this| this.time).max().unwrap_or_default();
    let key = last.map_or("", |last| last.key.as_str());
    let run = run(session, adoption, key, committed.0);
    let salt = salt(adoption, run);
    let mut reported = Telling {
        next: first_message,
        salt,
        messages: Vec::new(),
        open: Vec::new(),
    };
    let mut orphans = Vec::new();
    for this in said {
        orphans.extend(reported.say(this).err());
    }
    let was_cut_off = !reported.open.is_empty();
    reported.pair_what_is_left();
    reported.mark(mark.as_ref());
    let answer = said.iter().rev().find(|this| this.role == Role::Assistant);
    let end = match answer.map(|answer| answer.end) {
        Some(TurnEnd::Replied) if was_cut_off || last.is_some_and(|last| last.asks()) => {
            TurnEnd::Aborted
        }
        Some(end) => end,
        None if mark.is_some() => TurnEnd::Replied,
        None => TurnEnd::Aborted,
    };
    let mut models: Vec<String> = Vec::new();
    for model in said.iter().filter_map(|this| this.model.as_ref()) {
        if !models.contains(model) {
            models.push(model.clone());
        }
    }
    let messages = reported.messages;
    let mut node = TurnNode {
        id: TurnId(Digest([0; 32])),
        parent: parent.map(|parent| parent.id),
        jump,
        depth: parent.map_or(1, |parent| parent.depth + 1),
        run,
        first_message,
        last_message: (first_message + messages.len() as u64).saturating_sub(1),
        messages: messages.iter().map(Message::digest).collect(),
        session_state: Digest::of(EMPTY_STATE),
        end,
        usage: said
            .iter()
            .fold(Usage::default(), |sum, this| sum.plus(this.usage)),
        models,
    };
    node.id = node.compute_id();
    let turn = TranscriptTurn {
        node,
        committed,
        messages: messages.into_iter().map(Some).collect(),
    };
    (turn, orphans)
}

/// The run of an adopted turn: its id is derived from the session, from the adoption and from the
/// last entry of the turn, and contains the turn's time. A file that is adopted twice gets new
/// runs, and so new messages, each time.
fn run(session: SessionId, adoption: &Adoption, key: &str, time_ms: u64) -> RunId {
    let Digest(digest) = Digest::of_parts(&[
        b"imported run",
        session.0.as_bytes(),
        &adoption.salt.0,
        key.as_bytes(),
    ]);
    RunId(
        uuid::Builder::from_unix_timestamp_millis(
            time_ms,
            digest.first_chunk().unwrap_or(&[0; 10]),
        )
        .into_uuid(),
    )
}

/// The salt from which those of a run's messages are derived.
fn salt(adoption: &Adoption, run: RunId) -> crate::values::digest::Salt {
    let Digest(digest) = adoption.salt.digest(run.0.as_bytes());
    crate::values::digest::Salt(*digest.first_chunk().unwrap_or(&[0; 16]))
}

/// The messages of a turn under construction.
struct Telling {
    next: u64,
    salt: crate::values::digest::Salt,
    messages: Vec<Message>,
    /// Calls without a result so far.
    open: Vec<Answers>,
}

impl Telling {
    /// Adds a message.
    ///
    /// # Errors
    /// It is the result of a call that does not wait for one. It is not added.
    fn say(&mut self, said: &ForeignMessage) -> Result<(), TranscriptFault> {
        let answers = match &said.answers {
            None => None,
            Some(answered) => {
                let place = self
                    .open
                    .iter()
                    .position(|call| call.call_id == answered.call_id);
                let call = place.map(|place| self.open.remove(place)).ok_or_else(|| {
                    let message = format!(
                        "no call before it in its turn waits for a result under the id `{}`: put \
                         it behind the message that calls, or take \
                         it out",
                        answered.call_id
                    );
                    TranscriptFault::line(said.line, message)
                })?;
                Some(Answers {
                    name: answered.name.clone(),
                    failed: answered.failed,
                    ..call
                })
            }
        };
        let id = self.next;
        for (index, part) in (0_u32..).zip(
            said.parts
                .iter()
                .filter(|part| matches!(part, Part::Call { .. })),
        ) {
            let Part::Call { call_id, name, .. } = part else {
                continue;
            };
            self.open.push(Answers {
                message: id,
                index,
                call_id: call_id.clone(),
                name: name.clone(),
                failed: false,
            });
        }
        // Nobody here vouches for another program's text, least of all for its tools' results.
        self.put(Draft {
            role: said.role,
            parts: said.parts.clone(),
            origin: said.origin.clone(),
            untrusted: true,
            speaker: None,
            answers,
        });
        Ok(())
    }

    fn pair_what_is_left(&mut self) {
        for call in std::mem::take(&mut self.open) {
            let answers = Some(Answers {
                failed: true,
                ..call
            });
            self.put(Draft {
                answers,
                ..Draft::text(Role::Tool, "host", ABORTED_CALL)
            });
        }
    }

    /// Adds the mark of a compaction to its only message.
    fn mark(&mut self, mark: Option<&Mark>) {
        if let (Some(mark), Some(message)) = (mark, self.messages.last_mut()) {
            message.parts.push(mark.part());
        }
    }

    fn put(&mut self, draft: Draft) {
        self.messages.push(draft.at(self.next, self.salt));
        self.next += 1;
    }
}
