//! The modes of the queue, and every spelling of them.

use super::shown;
use crate::values::text::{serde_as_text, words};
use std::str::FromStr;
use utoipa::ToSchema;

/// The treatment of messages that arrive while the agent is busy. All spellings are read, one is
/// written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ToSchema)]
#[schema(as = QueueMode, rename_all = "lowercase")]
pub enum Mode {
    /// They join the open run at its next boundary. Running tools are not cancelled for it.
    #[default]
    Steer,
    /// They get a turn of their own after the run.
    Followup,
    /// They get one turn after the run, together with other collected inputs.
    Collect,
    /// The run ends, and they begin the next one.
    Interrupt,
}

/// Other spellings, in lower case.
///
/// `steer-backlog` once meant to steer and to be a followup as well, which answered the same
/// message twice. Here it only steers: an input is claimed once.
const ALIASES: [(&str, Mode); 14] = [
    ("steering", Mode::Steer),
    ("queue", Mode::Steer),
    ("queued", Mode::Steer),
    ("steer-backlog", Mode::Steer),
    ("steer+backlog", Mode::Steer),
    ("steer_backlog", Mode::Steer),
    ("followups", Mode::Followup),
    ("follow-up", Mode::Followup),
    ("follow-ups", Mode::Followup),
    ("follow_up", Mode::Followup),
    ("follow_ups", Mode::Followup),
    ("coalesce", Mode::Collect),
    ("interrupts", Mode::Interrupt),
    ("abort", Mode::Interrupt),
];

/// A word that is no mode of the queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is no mode of the queue; write {}", Mode::spellings())]
pub struct UnknownMode {
    word: String,
}

words!(Mode {
    Steer = "steer",
    Followup = "followup",
    Collect = "collect",
    Interrupt = "interrupt",
});

impl Mode {
    /// The mode that a word names, in any case and with blanks around it; none for an unknown word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        let word = word.trim().to_lowercase();
        let names = Self::ALL.into_iter().map(|mode| (mode.as_str(), mode));
        names
            .chain(ALIASES)
            .find_map(|(spelling, mode)| (spelling == word).then_some(mode))
    }

    /// All modes with their aliases, for errors.
    fn spellings() -> String {
        let each = Self::ALL.into_iter().map(|mode| {
            let aliases: Vec<&str> = ALIASES
                .iter()
                .filter(|(_, of)| *of == mode)
                .map(|(alias, _)| *alias)
                .collect();
            format!("{mode} (or {})", aliases.join(", "))
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(word: &str) -> Result<Self, UnknownMode> {
        Self::named(word).ok_or_else(|| UnknownMode { word: shown(word) })
    }
}

serde_as_text!(Mode::from_str);
