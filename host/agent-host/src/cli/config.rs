//! The commands about the configuration: grants, components, models; keys and the token.

use super::scopes::Lifetime;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Commands about the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print its JSON Schema
    Schema,
    /// Check it: keys, folders, files, models, and that every component loads
    #[command(
        after_help = "While a host runs with this file, its own environment counts, and not that \
                      of the caller: it says which variables and secrets it has. Warnings do not \
                      fail the check; with --strict they do (exit code 2)."
    )]
    Check {
        /// Fail on warnings too
        #[arg(long)]
        strict: bool,
    },
    /// Show what the file would change of the configuration that a running host has in force, and
    /// what would be left behind
    #[command(
        after_help = "Nothing is put in force. With `server.reload = \"manual\"` a saved file waits \
                      for `config apply`; otherwise the host takes it up at once, and there is \
                      nothing to show.\n\nExit codes:\n  0 it could be applied   3 it would be refused"
    )]
    Diff,
    /// Have a running host put the file in force, on record with who asked
    #[command(after_help = "If anything in it is wrong, all of it is refused (exit code 3).")]
    Apply,
}

/// Commands about grants.
#[derive(Debug, Subcommand)]
pub(crate) enum Grants {
    /// Show each list that decides whether an agent may call a tool, the rule, and the call's
    /// bounds; or what a trigger or a connector may do
    #[command(
        after_help = "Examples:\n  agent-host grants explain reading-list reading_list_delete\n  \
                      agent-host grants explain --connector telegram"
    )]
    Explain {
        /// An `agentId` of the configuration
        #[arg(required_unless_present_any = ["trigger", "connector"], requires = "tool")]
        agent: Option<String>,
        /// A tool
        tool: Option<String>,
        /// A trigger of the configuration instead
        #[arg(long, value_name = "NAME", conflicts_with = "agent")]
        trigger: Option<String>,
        /// A connector of the configuration instead
        #[arg(long, value_name = "NAME", conflicts_with_all = ["agent", "trigger"])]
        connector: Option<String>,
    },
    /// Show in what the configuration's agents, lists, code and grants differ from the running
    /// host's, or from another configuration's
    #[command(
        after_help = "Examples:\n  agent-host grants diff                        # what a restart \
                      would change\n  \
        agent-host grants diff --against old.toml"
    )]
    Diff {
        /// A config file to compare with, instead of the running host
        #[arg(long, value_name = "FILE")]
        against: Option<PathBuf>,
    },
}

/// Commands about components.
#[derive(Debug, Subcommand)]
pub(crate) enum Component {
    /// List the components of the configuration
    List,
    /// Look at one component
    #[command(
        after_help = "Examples:\n  agent-host component inspect files\n  agent-host component \
                      inspect ./my-tool.wasm   # needs no configuration"
    )]
    Inspect {
        /// Its name in the configuration, or a file
        component: String,
    },
    /// Run calls of a tool component again in isolation, and print the least grant that they need
    #[command(
        after_help = "Each call gets an empty folder, empty buckets and no network. A call whose \
                      request is refused is repeated with `{}` as the answer, so that its next \
                      requests are seen. With --network, GET and HEAD are really sent.\n\n\
                      Examples:\n  \
        agent-host component suggest web                     # the calls that the running host has \
        on record\n  \
        agent-host component suggest web --calls calls.jsonl"
    )]
    Suggest(Suggest),
    /// Compare what components ask for with their grants, and print the lines that would change the
    /// result
    Check {
        /// Only this one, by its name in the configuration
        component: Option<String>,
    },
}

/// The calls to run, and their component.
#[derive(Debug, Args)]
pub(crate) struct Suggest {
    /// Its name in the configuration
    pub(crate) component: String,
    /// Calls, one JSON object a line:
    /// {"tool":"web_fetch","arguments":{"url":"https://example.com"}}; by default those recorded by
    /// the running host
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Option<PathBuf>,
    /// Let GET and HEAD requests out, to any public host
    #[arg(long)]
    pub(crate) network: bool,
}

/// Commands about models.
#[derive(Debug, Subcommand)]
pub(crate) enum Model {
    /// List the models by alias: provider, name there, window, and the state last seen
    List,
    /// Ask every provider for its list of models, which costs nothing, and fail if one does not
    /// answer or does not list a model of the configuration
    #[command(
        after_help = "No model is called: `doctor --ask-models` does that.\n\n\
                            Exit codes:\n  0 all are there   1 one is not"
    )]
    Check,
}

/// Commands about API keys.
#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Issue a key. It is printed only once; the host keeps only its hash
    #[command(
        after_help = "Examples:\n  agent-host key create --user alice --scopes read,write \
                      --expires 90d --name laptop\n  \
        KEY=$(agent-host key create --scopes read --quiet)"
    )]
    Create {
        /// The user that the key is for; the caller by default
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        /// The scopes that it may be used for: any of read, write, keys and admin
        #[arg(long, value_name = "SCOPES", value_delimiter = ',', required = true)]
        scopes: Vec<String>,
        /// The time for which it is valid: a number with s, m, h or d
        #[arg(long, value_name = "TIME", default_value = "90d")]
        expires: Lifetime,
        /// Its name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// List keys, also those that have ended
    List {
        /// This user's
        #[arg(long, value_name = "USER", conflicts_with = "all")]
        user: Option<String>,
        /// All users'
        #[arg(long)]
        all: bool,
    },
    /// Revoke a key at once and permanently
    Revoke {
        /// Its id: the part between the underscores
        id: String,
        /// The reason, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// Commands about the token.
#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Print it
    #[command(
        after_help = "Example:\n  curl -H \"authorization: Bearer $(agent-host token show)\" \
                      http://127.0.0.1:7777/api/agents"
    )]
    Show,
}
