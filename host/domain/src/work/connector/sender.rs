//! Senders: the author of a message, and what follows from it.

use super::incoming::{Incoming, Moved, Said};
use super::limits::GROUP_PREFIX;
use super::spec::{ConnectorSpec, Groups, UnknownSender};
use crate::access::user::UserId;
use crate::agents::path::{AgentPath, ConnectorKey, ConnectorKeyError, ConnectorName};

/// The default text for a refused sender.
const REFUSAL: &str = "Sorry, I do not know you, and so I cannot answer here.";

/// The reason why a message has no valid sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSender {
    /// The sender's id looks like that of a group.
    #[error("sender: an id that begins with `{GROUP_PREFIX}` names a group, and no sender")]
    Group,
    /// The id forms no valid connector key.
    #[error(transparent)]
    Key(#[from] ConnectorKeyError),
}

/// The treatment of a message, by its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reception {
    /// An agent receives it.
    Accept {
        /// The user of the sender or the group.
        user: UserId,
        /// The agent's path.
        path: AgentPath,
        /// True if the words are the user's own. Otherwise they are marked as content from outside.
        own_words: bool,
    },
    /// Ignored without an answer.
    Ignore,
    /// The sender is informed.
    Refuse {
        /// The words.
        text: String,
    },
    /// The sender may receive a pairing code.
    Pair,
}

impl Reception {
    /// Returns the part of a message that is stored; none if nothing is stored.
    ///
    /// The text of an ignored message is not stored. If the sender gets an answer, the message is
    /// stored without its text, so that they get it once.
    #[must_use]
    pub fn kept(&self, message: Incoming) -> Option<Incoming> {
        match self {
            Self::Accept { .. } => Some(message),
            Self::Ignore => None,
            Self::Refuse { .. } => Some(Incoming {
                sender_name: None,
                ..message.without_words()
            }),
            Self::Pair => Some(message.without_words()),
        }
    }
}

/// Returns the keys of a person or a group whose id has changed: the old key and the new one.
///
/// # Errors
/// The service's ids form no valid key.
pub fn keys_of_moved(
    connector: &ConnectorName,
    moved: &Moved,
) -> Result<[ConnectorKey; 2], NoSender> {
    let key = |id: &str| match moved.is_group {
        true => Ok(ConnectorKey::new(
            connector.clone(),
            &format!("{GROUP_PREFIX}{id}"),
        )?),
        false if id.starts_with(GROUP_PREFIX) => Err(NoSender::Group),
        false => Ok(ConnectorKey::new(connector.clone(), id)?),
    };
    Ok([key(&moved.from)?, key(&moved.to)?])
}

/// Returns the key by which a message's user is looked up: the group's, if the message is from a
/// group.
///
/// # Errors
/// The service's ids form no valid key.
pub fn key_of(connector: &ConnectorName, incoming: &Incoming) -> Result<ConnectorKey, NoSender> {
    if incoming.sender.starts_with(GROUP_PREFIX) {
        return Err(NoSender::Group);
    }
    let id = match &incoming.group {
        Some(group) => format!("{GROUP_PREFIX}{group}"),
        None => incoming.sender.clone(),
    };
    Ok(ConnectorKey::new(connector.clone(), &id)?)
}

/// Returns the treatment of a message whose key is bound to a user, or to none.
#[must_use]
pub fn receive(
    spec: &ConnectorSpec,
    connector: &ConnectorName,
    incoming: &Incoming,
    bound: Option<&UserId>,
) -> Reception {
    let in_group = incoming.group.is_some();
    if in_group && spec.groups == Groups::Ignore {
        return Reception::Ignore;
    }
    match (bound, spec.unknown) {
        (Some(user), _) => Reception::Accept {
            user: user.clone(),
            path: AgentPath::connector(user.clone(), connector.clone()),
            own_words: !in_group && !spec.untrusted,
        },
        // An answer in a group reaches people whom it does not concern.
        (None, _) if in_group || matches!(incoming.said, Said::Button { .. }) => Reception::Ignore,
        (None, UnknownSender::Ignore) => Reception::Ignore,
        (None, UnknownSender::Refuse) => Reception::Refuse {
            text: spec.refusal.clone().unwrap_or_else(|| REFUSAL.to_owned()),
        },
        (None, UnknownSender::Pair) => Reception::Pair,
    }
}

#[cfg(test)]
mod tests;
