//! Senders: the author of a message, and what follows from it.

use super::incoming::{Incoming, Moved, Said};
use super::{
    ConnectorSpec, GROUP_PREFIX, Groups, PAIRING_MS, PAIRINGS_MAX, PAIRINGS_OF_SENDER_MAX,
    UnknownSender,
};
use crate::access::user::UserId;
use crate::agents::path::{AgentPath, ConnectorKey, ConnectorKeyError, ConnectorName};
use crate::values::text::{serde_as_text, wrapped_text};
use crate::values::time::Timestamp;
use std::str::FromStr;

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

// Pairing: an unknown sender receives a code, with which the operator or a user says who the
// sender is.

/// Characters of a code.
pub const PAIRING_CODE_CHARS: usize = 8;
/// The characters of codes: no two of them look alike.
const ALPHABET: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";

/// A pairing code: 8 of `2`–`9` and `A`–`Z` without `I` and `O`. Small letters, blanks and dashes
/// are accepted on reading.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PairingCode(String);

/// A text that is no pairing code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no pairing code: {PAIRING_CODE_CHARS} letters and digits are needed, as the sender \
     was told them"
)]
pub struct NotACode;

/// The answer to an unknown sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairingOffer {
    /// They get a new code, which is valid until then.
    New {
        /// Time until which it is valid.
        expires: Timestamp,
    },
    /// They get no answer: too many codes of theirs, or of the connector's, are valid now.
    Nothing,
}

/// The reason why a pairing cannot be confirmed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairingRefused {
    /// Its time is over.
    #[error("the code has expired; have the sender write again for another one")]
    Expired,
}

impl PairingCode {
    /// The code from random bytes. Each character is equally likely.
    #[must_use]
    pub fn from_random(bytes: [u8; PAIRING_CODE_CHARS]) -> Self {
        Self(bytes.into_iter().map(sign).collect())
    }
}

/// Returns the character for a byte.
pub(super) fn sign(byte: u8) -> char {
    let index = usize::from(byte) % ALPHABET.len();
    ALPHABET.get(index).copied().map_or('2', char::from)
}

impl FromStr for PairingCode {
    type Err = NotACode;

    fn from_str(text: &str) -> Result<Self, NotACode> {
        let code: String = text
            .chars()
            .filter(|char| *char != '-' && *char != ' ')
            .map(|char| char.to_ascii_uppercase())
            .take(PAIRING_CODE_CHARS + 1)
            .collect();
        if code.len() == PAIRING_CODE_CHARS && code.bytes().all(|byte| ALPHABET.contains(&byte)) {
            Ok(Self(code))
        } else {
            Err(NotACode)
        }
    }
}

wrapped_text!(PairingCode);
serde_as_text!(PairingCode::from_str);

impl PairingOffer {
    /// Returns the answer, by the number of codes that are valid now: those of the sender, and
    /// those of the whole connector.
    #[must_use]
    pub fn new(of_sender: usize, of_connector: usize, now: Timestamp) -> Self {
        if of_sender >= PAIRINGS_OF_SENDER_MAX || of_connector >= PAIRINGS_MAX {
            return Self::Nothing;
        }
        Self::New {
            expires: now.plus_ms(PAIRING_MS),
        }
    }
}

/// Checks that a code is still valid.
///
/// # Errors
/// It has expired.
pub fn confirm(expires: Timestamp, now: Timestamp) -> Result<(), PairingRefused> {
    if now < expires {
        Ok(())
    } else {
        Err(PairingRefused::Expired)
    }
}

/// Returns the text with which a sender receives a code.
#[must_use]
pub fn offer_words(code: &PairingCode) -> String {
    format!(
        "I do not know you yet. Give this code to whoever runs this service, or enter it where \
         you are signed in: **{code}**. It counts for {} minutes.",
        PAIRING_MS / 60_000
    )
}

#[cfg(test)]
mod pairing_tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);

    #[test]
    fn a_code_has_no_sign_that_looks_like_another() {
        let code = PairingCode::from_random([0, 1, 7, 8, 31, 32, 254, 255]);
        assert_eq!(code.as_str().len(), PAIRING_CODE_CHARS);
        for byte in 0..=255_u8 {
            assert!(!"01IO".contains(sign(byte)), "{byte}");
        }
    }

    #[test]
    fn every_sign_of_a_code_is_as_likely_as_any_other() {
        for sign_of_alphabet in ALPHABET {
            let bytes = (0..=255_u8).filter(|byte| sign(*byte) == char::from(*sign_of_alphabet));
            assert_eq!(bytes.count(), 8);
        }
    }

    #[test]
    fn a_code_is_read_as_people_write_it() {
        let code: PairingCode = "K4F7Z2QX".parse().unwrap();
        for written in ["k4f7z2qx", "K4F7-Z2QX", " k4f7 z2qx "] {
            assert_eq!(written.parse(), Ok(code.clone()), "{written}");
        }
        for wrong in [
            "",
            "K4F7Z2Q",
            "K4F7Z2QXX",
            "K4F7Z2Q0",
            "K4F7Z2QI",
            "K4F7Z2Qé",
        ] {
            assert_eq!(wrong.parse::<PairingCode>(), Err(NotACode), "{wrong}");
        }
    }

    #[test]
    fn a_code_counts_for_an_hour() {
        let PairingOffer::New { expires } = PairingOffer::new(0, 0, NOW) else {
            panic!("no offer")
        };
        assert_eq!(expires, NOW.plus_ms(3_600_000));
        assert_eq!(confirm(expires, Timestamp(expires.0 - 1)), Ok(()));
        assert_eq!(confirm(expires, expires), Err(PairingRefused::Expired));
    }

    #[test]
    fn a_sender_and_a_connector_have_so_many_codes() {
        for (of_sender, of_connector, offers) in [
            (PAIRINGS_OF_SENDER_MAX - 1, 10, true),
            (PAIRINGS_OF_SENDER_MAX, 10, false),
            (0, PAIRINGS_MAX - 1, true),
            (0, PAIRINGS_MAX, false),
        ] {
            let offer = PairingOffer::new(of_sender, of_connector, NOW);
            assert_eq!(offer != PairingOffer::Nothing, offers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::time::Timestamp;
    use serde_json::{Value, json};

    fn spec(changes: &Value) -> ConnectorSpec {
        let mut spec = json!({ "component": "telegram", "agent": "assistant" });
        let fields = spec.as_object_mut().unwrap();
        fields.extend(changes.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    }

    fn telegram() -> ConnectorName {
        "telegram".parse().unwrap()
    }

    fn said(sender: &str, group: Option<&str>) -> Incoming {
        Incoming {
            id: "1".to_owned(),
            sender: sender.to_owned(),
            sender_name: None,
            group: group.map(str::to_owned),
            chat: "9".to_owned(),
            said: Said::Text {
                text: "hello".to_owned(),
            },
            quotations: Vec::new(),
            attachments: Vec::new(),
            sent_at: Timestamp(1),
        }
    }

    fn received(spec: &ConnectorSpec, incoming: &Incoming, user: Option<&str>) -> Reception {
        let user = user.map(|user| user.parse().unwrap());
        receive(spec, &telegram(), incoming, user.as_ref())
    }

    #[test]
    fn a_group_has_a_key_that_no_sender_can_have() {
        let key = |incoming: &Incoming| key_of(&telegram(), incoming).map(|key| key.to_string());
        assert_eq!(key(&said("42", None)), Ok("telegram:42".to_owned()));
        let group = key(&said("42", Some("-100")));
        assert_eq!(group, Ok("telegram:group:-100".to_owned()));
        assert_eq!(key(&said("group:-100", None)), Err(NoSender::Group));
        assert_eq!(key(&said("group:-100", Some("-1"))), Err(NoSender::Group));
    }

    #[test]
    fn whoever_has_another_id_has_another_key_of_the_same_kind() {
        let keys = |from: &str, to: &str, is_group: bool| {
            let moved = Moved {
                from: from.to_owned(),
                to: to.to_owned(),
                is_group,
            };
            keys_of_moved(&telegram(), &moved).map(|keys| keys.map(|key| key.to_string()))
        };
        assert_eq!(
            keys("-5", "-100", true),
            Ok(["telegram:group:-5", "telegram:group:-100"].map(str::to_owned))
        );
        assert_eq!(
            keys("4912", "4913", false),
            Ok(["telegram:4912", "telegram:4913"].map(str::to_owned))
        );
        // No person becomes a group.
        assert_eq!(keys("4912", "group:-5", false), Err(NoSender::Group));
        assert_eq!(keys("group:-5", "4913", false), Err(NoSender::Group));
    }

    #[test]
    fn a_sender_who_is_known_speaks_to_an_agent_of_theirs() {
        let accepted = |own_words| Reception::Accept {
            user: "alice".parse().unwrap(),
            path: "/alice/telegram".parse().unwrap(),
            own_words,
        };
        let alone = said("42", None);
        let plain = spec(&json!({}));
        assert_eq!(received(&plain, &alone, Some("alice")), accepted(true));
        // Where senders prove nothing, their words are content from outside.
        let mail = spec(&json!({ "untrusted": true }));
        assert_eq!(received(&mail, &alone, Some("alice")), accepted(false));
        // In a group anybody may have said it.
        let groups = spec(&json!({ "groups": "bound" }));
        let in_group = said("42", Some("-100"));
        assert_eq!(received(&groups, &in_group, Some("alice")), accepted(false));
        assert_eq!(
            received(&plain, &in_group, Some("alice")),
            Reception::Ignore
        );
    }

    #[test]
    fn a_sender_whom_nobody_knows_gets_what_the_operator_says() {
        let alone = said("42", None);
        let with = |changes: Value| received(&spec(&changes), &alone, None);
        assert_eq!(with(json!({})), Reception::Ignore);
        assert_eq!(with(json!({ "unknown": "pair" })), Reception::Pair);
        let Reception::Refuse { text } = with(json!({ "unknown": "refuse" })) else {
            panic!("another reception")
        };
        assert_eq!(text, REFUSAL);
        let own = with(json!({ "unknown": "refuse", "refusal": "No." }));
        assert_eq!(
            own,
            Reception::Refuse {
                text: "No.".to_owned()
            }
        );
    }

    #[test]
    fn no_group_and_no_button_of_a_stranger_is_answered() {
        let mut pressed = said("42", None);
        pressed.said = Said::Button {
            value: "q".to_owned(),
        };
        for unknown in ["ignore", "refuse", "pair"] {
            let spec = spec(&json!({ "unknown": unknown, "groups": "bound" }));
            let in_group = said("42", Some("-100"));
            assert_eq!(received(&spec, &in_group, None), Reception::Ignore);
            assert_eq!(received(&spec, &pressed, None), Reception::Ignore);
        }
    }

    /// Nobody may ever read what somebody says whom nobody knows, and so it is not kept.
    #[test]
    fn the_words_of_a_sender_whom_nobody_knows_are_not_kept() {
        let message = Incoming {
            sender_name: Some("Eve".to_owned()),
            ..said("42", None)
        };
        let kept = |spec: &Value, user: Option<&str>| {
            received(&self::spec(spec), &message, user).kept(message.clone())
        };
        assert_eq!(kept(&json!({}), Some("eve")), Some(message.clone()));
        assert_eq!(kept(&json!({}), None), None);
        let wordless = message.clone().without_words();
        assert_eq!(wordless.said_words(), None);
        let paired = kept(&json!({ "unknown": "pair" }), None);
        assert_eq!(paired, Some(wordless.clone()), "an operator sees the name");
        let nameless = Incoming {
            sender_name: None,
            ..wordless
        };
        assert_eq!(kept(&json!({ "unknown": "refuse" }), None), Some(nameless));
    }
}
