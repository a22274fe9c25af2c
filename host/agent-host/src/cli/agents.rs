//! The commands about agents, their definitions and the sessions with all of them.

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
