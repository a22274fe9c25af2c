//! The commands about triggers.

use clap::Subcommand;

/// Commands about triggers.
#[derive(Debug, Subcommand)]
pub(crate) enum Trigger {
    /// List them: kind, state, next due time and last firing
    #[command(
        after_help = "`config check` tells the same of a configuration that no host serves \
                      yet.\n\nExamples:\n  agent-host trigger list\n  agent-host trigger list \
                      --kind webhook --user alice"
    )]
    List {
        /// Only those that act for this user
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        /// Only those of this kind: schedule, heartbeat, webhook, files or events
        #[arg(long, value_name = "KIND")]
        kind: Option<String>,
    },
    /// Show one: its definition, its state, and when it fires next
    Show {
        /// Its name
        name: String,
    },
    /// Fire one now, whatever its schedule says; its schedule stays as it is
    Run {
        /// Its name
        name: String,
    },
    /// Pause one: it is not fired until it is resumed
    #[command(
        after_help = "A schedule goes on from the time at which it is resumed. Webhook calls are \
                      refused meanwhile."
    )]
    Pause {
        /// Its name
        name: String,
    },
    /// Resume one that was paused, by somebody or by its failures
    Resume {
        /// Its name
        name: String,
    },
    /// List the occasions of one, the newest first: what happened, and what became of it
    History {
        /// Its name
        name: String,
        /// Only those after this place in the list: the page before names it
        #[arg(long, value_name = "PLACE")]
        after: Option<u64>,
        /// Maximum number of occasions, 100 at most
        #[arg(
            long,
            short = 'n',
            default_value_t = 20,
            value_name = "N",
            value_parser = clap::value_parser!(u16).range(1..=100)
        )]
        limit: u16,
    },
    /// Remove one that was made over the API; its history stays
    #[command(
        after_help = "A trigger of the configuration goes when it is taken out of the file; until \
                      then, pause it."
    )]
    Remove {
        /// Its name
        name: String,
    },
}
