//! The programs that there are: their names, their variables, the ways to them, and what their
//! protocols share.

use crate::config::ProviderKind;
use crate::key::ApiKey;
use crate::provider::program::claude::Claude;
use crate::provider::program::codex::Codex;
use crate::provider::program::handing::KeyTransfer;
use crate::provider::program::pi::Pi;
use domain::model::{Stop, Usage};
use serde_json::Value;
use std::path::Path;

/// Milliseconds for which a program keeps the key that it has read: longer than a turn lasts.
const A_WEEK_MS: &str = "604800000";

/// The program of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cli {
    /// `claude`.
    Claude,
    /// `codex`.
    Codex,
    /// `pi`.
    Pi,
}

impl Cli {
    /// Returns the program of a kind of provider, if it is one.
    pub(crate) fn of(kind: ProviderKind) -> Option<Self> {
        match kind {
            ProviderKind::ClaudeCli => Some(Self::Claude),
            ProviderKind::CodexCli => Some(Self::Codex),
            ProviderKind::PiCli => Some(Self::Pi),
            _ => None,
        }
    }

    /// Returns the variable in which the program looks for the key of its service.
    pub(crate) fn key_variable(self) -> &'static str {
        match self {
            Self::Claude | Self::Pi => "ANTHROPIC_API_KEY",
            Self::Codex => "OPENAI_API_KEY",
        }
    }

    /// Returns the way on which it gets the key that would be in a variable.
    pub(super) fn key_transfer(self, variable: &str) -> KeyTransfer {
        match (self, variable) {
            (Self::Claude, "ANTHROPIC_API_KEY" | "ANTHROPIC_AUTH_TOKEN") => KeyTransfer::Pipe,
            (Self::Codex, "OPENAI_API_KEY") => KeyTransfer::Stdin,
            (Self::Claude | Self::Codex | Self::Pi, _) => KeyTransfer::Environment,
        }
    }

    /// Returns the variable that leads to the program's own home, with its place in a home.
    pub(crate) fn own_home(self) -> (&'static str, &'static str) {
        match self {
            Self::Claude => ("CLAUDE_CONFIG_DIR", ".claude"),
            Self::Codex => ("CODEX_HOME", ".codex"),
            Self::Pi => ("PI_CODING_AGENT_DIR", ".pi/agent"),
        }
    }

    /// Returns the variables that keep the program from reading the words it is told as anything
    /// but words, or its key again. They are set, and nobody else may set them.
    pub(crate) fn switches(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // The first one for files alone; versions that do not know it have the second one. The
            // last one because the key is there once.
            Self::Claude => &[
                ("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"),
                ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
                ("CLAUDE_CODE_API_KEY_HELPER_TTL_MS", A_WEEK_MS),
            ],
            Self::Codex | Self::Pi => &[],
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude-cli",
            Self::Codex => "codex-cli",
            Self::Pi => "pi-cli",
        }
    }

    pub(super) fn arguments(self, turn: &Turn<'_>) -> Vec<String> {
        match self {
            Self::Claude => Claude::arguments(turn),
            Self::Codex => Codex::arguments(turn),
            Self::Pi => Pi::arguments(turn),
        }
    }

    pub(super) fn protocol(self, turn: &Turn<'_>) -> Box<dyn Protocol> {
        match self {
            Self::Claude => Box::new(Claude::new(turn)),
            Self::Codex => Box::new(Codex::new(turn)),
            Self::Pi => Box::new(Pi::new(turn)),
        }
    }
}

/// Characters of a tool's name that are kept.
const NAME_CHARS_MAX: usize = 64;
/// Calls of a turn that are kept; more are only shown while they are made.
const CALLS_KEPT_MAX: usize = 256;

/// One turn of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<'a> {
    /// The program's name of the model.
    pub(super) model: &'a str,
    /// The system prompt.
    pub(super) system: &'a str,
    /// The whole path of the file that has it, for a program that takes it as an argument.
    pub(super) system_file: &'a str,
    /// The pipe with the key of its service, for a program that reads it from one.
    pub(super) key_pipe: Option<&'a Path>,
    /// The key of its service, for a program that is told it on its stdin.
    pub(super) key: Option<&'a ApiKey>,
    /// The text of the turn.
    pub(super) prompt: &'a str,
    /// The session that goes on; none for a new one.
    pub(super) resumed: Option<&'a str>,
    /// The id of a new session, for a program that takes one.
    pub(super) fresh: &'a str,
    /// The working folder.
    pub(super) folder: &'a Path,
    /// True if nothing may be written there.
    pub(super) read_only: bool,
    /// True if the system enforces the whole of the host's confinement.
    pub(super) is_confined: bool,
    /// The program's own tools that it may use.
    pub(super) tools: &'a [String],
    /// True if it uses a login of its home.
    pub(super) login: bool,
}

/// A chunk of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConversationItem {
    /// More of the reply.
    Text(String),
    /// More of what it thinks.
    Thinking(String),
    /// It has called a tool of its own: the call's place among the calls of the turn, and the
    /// tool's name.
    Call(u32, String),
    /// A text for its stdin.
    Write(String),
    /// Its stdin is to be closed.
    Close,
}

/// The meaning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The turn goes on.
    More(Vec<ConversationItem>),
    /// The turn has ended.
    Done,
    /// The program says that it failed: its words.
    Failed(String),
}

/// All that a turn came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Gathered {
    /// The session's id, as the program reported it.
    pub(super) session: Option<String>,
    /// The texts of the reply.
    pub(super) texts: Vec<String>,
    /// Names of the tools that it called, in order.
    pub(super) calls: Vec<String>,
    /// Number of the calls.
    count: u32,
    /// The usage of the turn; none if it told of none.
    pub(super) usage: Option<Usage>,
    /// The reason why the reply ended, if not because it was done.
    pub(super) stop: Option<Stop>,
}

impl Gathered {
    /// Adds a text of the reply.
    pub(super) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.texts.push(text.to_owned());
        }
    }

    /// Adds a call, and returns what is shown of it.
    pub(super) fn call(&mut self, name: &str) -> ConversationItem {
        let name: String = name
            .chars()
            .filter(|c| !c.is_control())
            .take(NAME_CHARS_MAX)
            .collect();
        if self.calls.len() < CALLS_KEPT_MAX {
            self.calls.push(name.clone());
        }
        let index = self.count;
        self.count = self.count.saturating_add(1);
        ConversationItem::Call(index, name)
    }
}

/// The lines of a program, for one turn.
pub(super) trait Protocol: Send {
    /// Returns what is written before it says anything.
    fn opening(&mut self) -> Vec<ConversationItem>;
    /// Takes a line that is JSON.
    fn take(&mut self, line: &Value) -> Step;
    /// Returns all that the turn came to.
    fn gathered(self: Box<Self>) -> Gathered;
}

/// Returns a text; empty if it is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns a count; 0 if it is none.
pub(super) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Returns a field of an object; null if there is none.
pub(super) fn at<'a>(value: &'a Value, key: &str) -> &'a Value {
    static NOTHING: Value = Value::Null;
    value.get(key).unwrap_or(&NOTHING)
}
