//! The commands about agents: their definitions, notes, prompts and tasks.

use super::up_to;
use clap::Subcommand;

/// Commands about agents.
#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    /// Print the active agents as a tree: path, kind, label, activity and open work
    #[command(
        after_help = "Examples:\n  agent-host agents tree\n  agent-host agents tree \
                      /alice/agent/reader\n  \
        agent-host agents tree /alice --kind sub --json"
    )]
    Tree {
        /// The agent at this path and those below it; or a place where agents live, such as /alice
        path: Option<String>,
        /// Only agents at most so far below it
        #[arg(long, value_name = "N")]
        depth: Option<usize>,
        /// Only agents of this kind
        #[arg(long, value_name = "KIND")]
        kind: Option<String>,
    },
    /// List the definitions that agents are made from: id, name, your agents and open sessions
    Definitions,
    /// Make a definition of your own from a template
    #[command(
        after_help = "Example:\n  agent-host agents make helper \"Trip planner\" --tool 'web_*'"
    )]
    Make {
        /// The template, by its id
        template: String,
        /// Its name
        name: String,
        /// Its purpose
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Its system prompt
        #[arg(long, value_name = "TEXT")]
        prompt: Option<String>,
        /// A tool that it may use, as a pattern within those of the template; may be repeated
        #[arg(long = "tool", value_name = "PATTERN")]
        tools: Vec<String>,
    },
    /// Remove a definition that you made
    Remove {
        /// Its id
        definition: String,
    },
    /// List your sessions with all agents, grouped by agent, pinned ones first
    Sessions,
}

/// Commands about notes.
#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    /// List an agent's notes that you may see, the latest first
    List {
        /// The agent: a UUID or a path
        #[arg(long, short, value_name = "AGENT")]
        agent: String,
        /// Maximum number of notes, 50 at most
        #[arg(long, short = 'n', default_value_t = 20, value_name = "N", value_parser = up_to(50))]
        limit: u16,
    },
    /// Search an agent's notes
    Search {
        /// The words to look for; the best notes come first
        #[arg(required = true)]
        words: Vec<String>,
        /// The agent: a UUID or a path
        #[arg(long, short, value_name = "AGENT")]
        agent: String,
        /// Maximum number of notes, 50 at most
        #[arg(long, short = 'n', default_value_t = 20, value_name = "N", value_parser = up_to(50))]
        limit: u16,
    },
    /// Forget a note: what it said is erased
    #[command(
        after_help = "The conversation that the note was taken from stays as it is, and \
                      earlier backups still have the note."
    )]
    Forget {
        /// The note's id
        id: String,
        /// Its agent: a UUID or a path
        #[arg(long, short, value_name = "AGENT")]
        agent: String,
    },
    /// Have the memory agent read a chat now, instead of when it is idle
    Read {
        /// The session's id
        session: String,
    },
}

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

/// Commands about tasks.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// List the tasks that you may see, the newest first
    List {
        /// Only those that were handed over in this session
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Only those that this agent handed over or does: a UUID or a path
        #[arg(long, short, value_name = "AGENT")]
        agent: Option<String>,
        /// Only those in this state, such as RUNNING or FAILED
        #[arg(long, value_name = "STATE")]
        state: Option<String>,
        /// Only those after this place: the page before names it
        #[arg(long, value_name = "PLACE")]
        after: Option<String>,
        /// Maximum number of tasks, 200 at most
        #[arg(long, short = 'n', default_value_t = 20, value_name = "N", value_parser = up_to(200))]
        limit: u16,
    },
    /// Show one: who handed it to whom, its state, and what it used
    Show {
        /// Its task id
        id: String,
    },
    /// Cancel one: its caller is told so, and the work is stopped
    Cancel {
        /// Its task id
        id: String,
        /// The reason, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Sum tasks up by target and operation: numbers, durations, failures, cost
    Stats {
        /// Only those that were handed over at this time or later, in ISO 8601
        #[arg(long, value_name = "TIME")]
        from: Option<String>,
        /// Only those that were handed over before this time
        #[arg(long, value_name = "TIME")]
        to: Option<String>,
    },
}
