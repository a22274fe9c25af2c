//! The directive `/queue`, by which a user sets the session's queue in the text of a message.

use super::mode::{Mode, UnknownMode};
use super::settings::{QueueOverride, SettingError};
use super::shown;
use std::str::FromStr;

/// The word that it begins with.
const WORD: &str = "/queue";
/// The words that reset earlier settings.
const RESETS: [&str; 3] = ["default", "reset", "clear"];

/// A `/queue` directive: `/queue collect debounce:2s cap:25 drop:old` or `/queue default`. It has
/// one or more settings, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directive {
    /// These become the session's settings; omitted ones stay unchanged.
    Set(QueueOverride),
    /// The session loses its own settings. Also written `reset` or `clear`.
    Reset,
}

/// The reason why a text is no directive. Each names the wrong word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DirectiveError {
    /// It does not begin with `/queue`.
    #[error("`{0}` is no directive of the queue; begin with `/queue`")]
    Other(String),
    /// Nothing follows `/queue`.
    #[error(
        "`/queue` alone says nothing; add a mode, `debounce:2s`, `cap:25` or `drop:old`, or \
             `default` to take back what was said"
    )]
    Nothing,
    /// A word without a colon is no mode.
    #[error(transparent)]
    Mode(#[from] UnknownMode),
    /// The option does not exist.
    #[error("`{0}` is no option of the queue; write `debounce:2s`, `cap:25` or `drop:old`")]
    Option(String),
    /// The value of an option is refused.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The mode, or an option, is repeated.
    #[error("`{0}` says a second time what was said before it; write it once")]
    Twice(String),
    /// A further word accompanies `default`, `reset` or `clear`.
    #[error("`{0}` cannot stand beside `default`, `reset` or `clear`; write two directives")]
    BesideReset(String),
}

impl Directive {
    /// Returns the session's settings after it.
    #[must_use]
    pub fn applied(self, session: QueueOverride) -> QueueOverride {
        match self {
            Self::Set(said) => said.over(session),
            Self::Reset => QueueOverride::default(),
        }
    }
}

impl FromStr for Directive {
    type Err = DirectiveError;

    fn from_str(text: &str) -> Result<Self, DirectiveError> {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        if !first.eq_ignore_ascii_case(WORD) {
            return Err(DirectiveError::Other(shown(first)));
        }
        let words: Vec<&str> = words.collect();
        let resets = |word: &&str| RESETS.iter().any(|reset| word.eq_ignore_ascii_case(reset));
        if words.iter().any(resets) {
            let beside = words
                .iter()
                .find(|word| !resets(word))
                .or_else(|| words.get(1));
            return beside.map_or(Ok(Self::Reset), |word| {
                Err(DirectiveError::BesideReset(shown(word)))
            });
        }
        let mut said = QueueOverride::default();
        for word in &words {
            say(&mut said, word)?;
        }
        if said == QueueOverride::default() {
            Err(DirectiveError::Nothing)
        } else {
            Ok(Self::Set(said))
        }
    }
}

/// Applies one word.
fn say(said: &mut QueueOverride, word: &str) -> Result<(), DirectiveError> {
    let twice = match word.split_once([':', '=']) {
        None => said.mode.replace(word.parse::<Mode>()?).is_some(),
        Some((option, value)) => match option.to_ascii_lowercase().as_str() {
            "debounce" => said.debounce_ms.replace(value.parse()?).is_some(),
            "cap" => said.cap.replace(value.parse()?).is_some(),
            "drop" => said.drop.replace(value.parse()?).is_some(),
            _ => return Err(DirectiveError::Option(shown(word))),
        },
    };
    if twice {
        Err(DirectiveError::Twice(shown(word)))
    } else {
        Ok(())
    }
}
