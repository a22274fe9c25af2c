//! The commands about triggers and connectors.

use super::up_to;
use clap::Subcommand;

/// Commands about triggers.
#[derive(Debug, Subcommand)]
pub(crate) enum Trigger {
    /// List them: kind, state, next due time and last trigger run
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
    /// List the trigger events of one, the newest first: what happened, and what became of it
    History {
        /// Its name
        name: String,
        /// Only those after this place in the list: the page before names it
        #[arg(long, value_name = "PLACE")]
        after: Option<u64>,
        /// Maximum number of trigger events, 100 at most
        #[arg(long, short = 'n', default_value_t = 20, value_name = "N", value_parser = up_to(100))]
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

/// Commands about connectors and the keys by which they know users.
#[derive(Debug, Subcommand)]
pub(crate) enum Connector {
    /// Bind a key to a user: what comes from that id at the service belongs to the user
    #[command(after_help = "Example:\n  agent-host connector bind alice telegram:123456")]
    Bind {
        /// The user
        user: String,
        /// The key, such as telegram:123456
        key: String,
    },
    /// Unbind a key: it is no longer bound to any user
    Unbind {
        /// The user
        user: String,
        /// The key, such as telegram:123456
        key: String,
    },
    /// List the connectors: state, last inbound message, and what waits to be sent; with a user,
    /// the user's keys
    List {
        /// A user, whose keys are listed instead
        user: Option<String>,
    },
    /// List the pairing codes that senders got and nobody has confirmed
    Pairings {
        /// Only of this connector
        #[arg(long, value_name = "NAME")]
        connector: Option<String>,
    },
    /// Confirm a pairing code: its sender is that user from now on
    #[command(
        after_help = "The code says that whoever tells it to you wrote to the connector. \
                      `connector pairings` shows who that is.\n\nExample:\n  agent-host connector \
                      pair K7PM3XQ2 alice"
    )]
    Pair {
        /// The code
        code: String,
        /// The user that its sender is; you without. For others you need the scope admin
        user: Option<String>,
    },
    /// Decline a pairing code: its sender stays unknown
    Unpair {
        /// The code
        code: String,
    },
    /// List the messages that were sent, are to be sent or could not be sent, the newest first
    #[command(
        after_help = "`unknown` is a message of which a crash left open whether it was sent; it is \
                      not sent again unless you requeue it.\n\nExample:\n  agent-host connector \
                      outbound-messages telegram --state dead"
    )]
    OutboundMessages {
        /// The connector
        connector: String,
        /// Only in this state: queued, started, failed, delivered, unknown or dead
        #[arg(long, value_name = "STATE")]
        state: Option<String>,
        /// Only those after this place in the list: the page before names it
        #[arg(long, value_name = "PLACE")]
        after: Option<u64>,
        /// Maximum number of messages, 500 at most
        #[arg(long, short = 'n', default_value_t = 20, value_name = "N", value_parser = up_to(500))]
        limit: u16,
    },
    /// Send a dead or unknown message again; one that was unknown may arrive twice
    Requeue {
        /// The connector
        connector: String,
        /// The outbound message's id
        outbound_message: String,
    },
    /// Send a test message through a connector, and wait up to ten seconds for its service to take
    /// it
    #[command(
        group = clap::ArgGroup::new("to").required(true).args(["chat", "user"]),
        after_help = "Fails with what holds the message up when it is not taken in that time; the \
                      host goes on trying.\n\nExamples:\n  agent-host connector test telegram \
                      --user alice\n  agent-host \
                      connector test slack --chat C024BE91L \"Hello from the host\""
    )]
    Test {
        /// The connector
        connector: String,
        /// The words; a sentence of the host's own without
        text: Option<String>,
        /// The chat, in the service's terms
        #[arg(long, value_name = "CHAT")]
        chat: Option<String>,
        /// The user, whom the connector knows by a key
        #[arg(long, value_name = "USER")]
        user: Option<String>,
    },
}
