//! The knowledge of a client: what it sent and got acknowledged, what it expects of it, and what it
//! was shown.

use super::follower::SeenPlaces;
use agent_host_tests::process::Session;
use std::collections::{BTreeMap, BTreeSet};

/// The expected end of the turn that a message begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It ended with a reply.
    Replied,
    /// Cancelled by the user.
    Aborted,
    /// It ended at a limit.
    Limited,
    /// Not at all: the message is put aside, again and again.
    Dead,
    /// It ended with its structured session.
    Completed,
}

/// A message that was sent, once or several times, and under which id it was acknowledged.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) exchange: Session,
    pub(super) text: String,
    pub(super) key: String,
    pub(super) fate: Fate,
    pub(super) input: Option<String>,
}

impl Sent {
    pub(super) fn new(exchange: &Session, text: &str, number: usize) -> Self {
        Self {
            exchange: exchange.clone(),
            text: text.to_owned(),
            key: format!("{}-{number}", exchange.id()),
            fate: Fate::Replied,
            input: None,
        }
    }

    pub(super) fn fated(self, fate: Fate) -> Self {
        Self { fate, ..self }
    }
}

/// Everything that one client knows.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Messages.
    pub(super) sent: Vec<Sent>,
    /// Chats that messages began, where nothing else did.
    pub(super) begun: BTreeSet<String>,
    /// Structured sessions, and how the turn is to end that opens each.
    pub(super) lessons: BTreeMap<String, Fate>,
    /// Work that agents hand over and that does not end with a reply, by what it says.
    pub(super) handed: Vec<(String, Fate)>,
    /// Questions whose answer was acknowledged.
    pub(super) answered: BTreeSet<String>,
    /// Dead letters whose requeueing was acknowledged, and how often.
    pub(super) requeued: BTreeMap<String, u32>,
    /// The events of each agent that an event stream showed.
    pub(super) seen: BTreeMap<String, SeenPlaces>,
}
