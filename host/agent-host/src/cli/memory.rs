//! The commands about agents' notes.

use clap::Subcommand;

/// Commands about notes.
#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    /// List an agent's notes that you may see, the latest first
    List {
        /// The agent: a UUID or a path
        #[arg(long, short, value_name = "AGENT")]
        agent: String,
        /// Maximum number of notes, 50 at most
        #[arg(
            long,
            short = 'n',
            default_value_t = 20,
            value_name = "N",
            value_parser = clap::value_parser!(u16).range(1..=50)
        )]
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
        #[arg(
            long,
            short = 'n',
            default_value_t = 20,
            value_name = "N",
            value_parser = clap::value_parser!(u16).range(1..=50)
        )]
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
