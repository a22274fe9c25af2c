//! The command line of the commands about components.

use clap::{Args, Subcommand};
use std::path::PathBuf;

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
