//! The commands about prompts.

use clap::Subcommand;

/// Commands about prompts.
#[derive(Debug, Subcommand)]
pub(crate) enum Prompt {
    /// Show the system prompt that an agent's next turn would begin with, section by section
    #[command(
        after_help = "Tokens are estimates. Tools that list items are called for it; nothing is \
                      stored.\n\nExamples:\n  agent-host prompt show assistant\n  \
                      agent-host prompt show /ada/agent/assistant --session 0b87…"
    )]
    Show {
        /// The agent: a UUID, a path, or a definition for your agent of it
        agent: String,
        /// The session whose prompt it is; without it, that of a chat that is opened for you
        #[arg(long, short, value_name = "SESSION")]
        session: Option<String>,
    },
}
