//! The commands about tasks: work that agents handed to each other.

use clap::Subcommand;

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
        #[arg(
            long,
            short = 'n',
            default_value_t = 20,
            value_name = "N",
            value_parser = clap::value_parser!(u16).range(1..=200)
        )]
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
