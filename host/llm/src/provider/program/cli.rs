//! The programs that there are: their names, their variables, and the ways to them.

use super::claude::Claude;
use super::codex::Codex;
use super::handing::KeyTransfer;
use super::pi::Pi;
use super::protocol::{Protocol, Turn};
use crate::config::ProviderKind;

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
            ProviderKind::Openai
            | ProviderKind::OpenaiCompatible
            | ProviderKind::Anthropic
            | ProviderKind::Scripted => None,
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
