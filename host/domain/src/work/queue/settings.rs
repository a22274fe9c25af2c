//! Settings of the queue: its debounce, its cap and its drop policy, from a message, a session and
//! the operator.

use super::{CAP_MAX, DEBOUNCE_MS_MAX, shown};
use crate::values::text::{serde_as_text, words};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::str::FromStr;
use utoipa::ToSchema;

/// The inputs to drop when one arrives and the queue is at its cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum DropPolicy {
    /// No waiting input: the arriving one is refused.
    New,
    /// The messages that have waited longest. Their number is reported.
    Old,
    /// The messages that have waited longest. Their number is reported, and one line of each.
    #[default]
    Summarize,
}

/// Milliseconds without a further input before queued ones get their turn.
///
/// Read from a number of milliseconds or from text such as `500`, `500ms`, `2s`, `1.5m`, `1h`,
/// `1d`; written as a number.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(try_from = "Value")]
#[schema(as = QueueDebounce, maximum = 86_400_000)]
pub struct Debounce(u64);

/// The most inputs in the queue.
///
/// Read from a number or its text, rounded down; written as a number.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(try_from = "Value")]
#[schema(as = QueueCap, minimum = 1, maximum = 1_000)]
pub struct Cap(usize);

/// A queue setting that is refused, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// It is no time.
    #[error(
        "`{0}` is no debounce; write milliseconds, or a number with ms, s, m, h or d, such as `2s`"
    )]
    Debounce(String),
    /// It is longer than [`DEBOUNCE_MS_MAX`].
    #[error("a debounce of `{0}` is too long; write at most {hours}h", hours = DEBOUNCE_MS_MAX / 3_600_000)]
    DebounceTooLong(String),
    /// It is no number from 1 to [`CAP_MAX`].
    #[error("`{0}` is no cap; write a number from 1 to {CAP_MAX}")]
    Cap(String),
    /// It is no policy.
    #[error(
        "`{0}` is no drop policy; write new (or newest), old (or oldest), summarize (or summary)"
    )]
    Drop(String),
}

/// The settings of one input: every field has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EffectiveQueueRules)]
pub struct QueueSettings {
    /// Its treatment while the agent is busy.
    pub mode: Mode,
    /// The quiet time before it gets its turn, in milliseconds; none for `steer` and `interrupt`.
    pub debounce_ms: Debounce,
    /// The most inputs in the queue.
    pub cap: Cap,
    /// The inputs that are dropped beyond that.
    pub drop: DropPolicy,
}

/// The settings of one level: a message, a session or the operator. An omitted field is left to the
/// next level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = QueueRules)]
pub struct QueueOverride {
    /// The mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The quiet time before queued inputs get their turn, in milliseconds.
    #[serde(
        alias = "debounceMs",
        alias = "debounce",
        skip_serializing_if = "Option::is_none"
    )]
    pub debounce_ms: Option<Debounce>,
    /// The most inputs in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<Cap>,
    /// The policy for inputs beyond the cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<DropPolicy>,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            mode: Mode::Steer,
            debounce_ms: Debounce(500),
            cap: Cap(20),
            drop: DropPolicy::Summarize,
        }
    }
}

impl QueueSettings {
    /// Each field from the first level that sets it: the message, its session, the operator's
    /// default. Otherwise it is that of [`Self::default`].
    #[must_use]
    pub fn resolve([message, session, configured]: [QueueOverride; 3]) -> Self {
        let said = message.over(session).over(configured);
        let default = Self::default();
        Self {
            mode: said.mode.unwrap_or(default.mode),
            debounce_ms: said.debounce_ms.unwrap_or(default.debounce_ms),
            cap: said.cap.unwrap_or(default.cap),
            drop: said.drop.unwrap_or(default.drop),
        }
    }

    /// Returns the text about the settings in force after a person's directive.
    #[must_use]
    pub fn in_words(self) -> String {
        format!(
            "Done. While the agent is busy, messages are now dealt with so: {}, debounce {} ms, \
             cap {}, drop {}.",
            self.mode.as_str(),
            self.debounce_ms.ms(),
            self.cap.inputs(),
            self.drop.as_str()
        )
    }
}

impl QueueOverride {
    /// Both in one: this one takes precedence, field by field.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            mode: self.mode.or(below.mode),
            debounce_ms: self.debounce_ms.or(below.debounce_ms),
            cap: self.cap.or(below.cap),
            drop: self.drop.or(below.drop),
        }
    }
}

impl Debounce {
    /// None at all.
    pub const NONE: Self = Self(0);

    /// Returns it in milliseconds.
    #[must_use]
    pub fn ms(self) -> u64 {
        self.0
    }
}

impl Cap {
    /// Returns it as a number of inputs; at least 1.
    #[must_use]
    pub fn inputs(self) -> usize {
        self.0
    }
}

impl FromStr for Debounce {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let given = text.trim().to_ascii_lowercase();
        let (number, unit) = given.split_at(
            given
                .find(|sign: char| sign != '.' && !sign.is_ascii_digit())
                .unwrap_or(given.len()),
        );
        let unit_ms = match unit {
            "" | "ms" => 1.0,
            "s" => 1_000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            "d" => 86_400_000.0,
            _ => return Err(SettingError::Debounce(shown(text))),
        };
        let number: f64 = number
            .parse()
            .map_err(|_| SettingError::Debounce(shown(text)))?;
        let ms = (number * unit_ms).floor();
        // Between 0 and the limit every whole number has its place in both types.
        if ms > DEBOUNCE_MS_MAX as f64 {
            Err(SettingError::DebounceTooLong(shown(text)))
        } else {
            Ok(Self(ms as u64))
        }
    }
}

impl FromStr for Cap {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let no = || SettingError::Cap(shown(text));
        let given = text.trim();
        let (whole, fraction) = given.split_once('.').unwrap_or((given, "0"));
        if whole.starts_with('+')
            || fraction.is_empty()
            || !fraction.bytes().all(|sign| sign.is_ascii_digit())
        {
            return Err(no());
        }
        let inputs = whole.parse().map_err(|_| no())?;
        if (1..=CAP_MAX).contains(&inputs) {
            Ok(Self(inputs))
        } else {
            Err(no())
        }
    }
}

impl FromStr for DropPolicy {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        match text.trim().to_ascii_lowercase().as_str() {
            "new" | "newest" => Ok(Self::New),
            "old" | "oldest" => Ok(Self::Old),
            "summarize" | "summary" => Ok(Self::Summarize),
            _ => Err(SettingError::Drop(shown(text))),
        }
    }
}

words!(DropPolicy { New = "new", Old = "old", Summarize = "summarize" });
serde_as_text!(DropPolicy::from_str);

/// A number or a text, as text.
fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

impl TryFrom<Value> for Debounce {
    type Error = SettingError;

    fn try_from(value: Value) -> Result<Self, SettingError> {
        text_of(value).parse()
    }
}

impl TryFrom<Value> for Cap {
    type Error = SettingError;

    fn try_from(value: Value) -> Result<Self, SettingError> {
        text_of(value).parse()
    }
}

// The modes of the queue, and every spelling of them.

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

// The directive `/queue`, by which a user sets the session's queue in the text of a message.

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
