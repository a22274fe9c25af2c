//! The log lines of guests in the host's log, under the name that the operator knows them by.
//!
//! The runtime has bounded and escaped them.

use runtime::{Level, LogLine};

pub(crate) fn record(component: &str, lines: &[LogLine]) {
    for LogLine {
        level,
        context,
        message,
    } in lines
    {
        match level {
            Level::Critical | Level::Error => {
                tracing::error!(target: "guest", component, context, "{message}")
            }
            Level::Warn => tracing::warn!(target: "guest", component, context, "{message}"),
            Level::Info => tracing::info!(target: "guest", component, context, "{message}"),
            Level::Debug => tracing::debug!(target: "guest", component, context, "{message}"),
            Level::Trace => tracing::trace!(target: "guest", component, context, "{message}"),
        }
    }
}
