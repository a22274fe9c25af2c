//! The log lines of guests in the host's log, under the name that the operator knows them by.
//!
//! The runtime has bounded and escaped them.

use runtime::{Level, LogLine};
use std::sync::{Mutex, PoisonError};

/// Records the lines of one call.
pub fn record(component: &str, lines: &[LogLine]) {
    lines.iter().for_each(|line| write(component, line));
}

fn write(component: &str, line: &LogLine) {
    let LogLine {
        level,
        context,
        message,
    } = line;
    match level {
        Level::Critical | Level::Error => {
            tracing::error!(target: "guest", component, context, "{message}");
        }
        Level::Warn => tracing::warn!(target: "guest", component, context, "{message}"),
        Level::Info => tracing::info!(target: "guest", component, context, "{message}"),
        Level::Debug => tracing::debug!(target: "guest", component, context, "{message}"),
        Level::Trace => tracing::trace!(target: "guest", component, context, "{message}"),
    }
}

/// The log of a component that is called repeatedly: a repetition of the previous call's warning is
/// logged as a detail.
#[derive(Debug, Default)]
pub struct RepeatedCalls {
    warned: Mutex<Vec<String>>,
}

impl RepeatedCalls {
    /// Records the lines of one more call.
    pub fn record(&self, component: &str, lines: &[LogLine]) {
        let is_warning = |line: &&LogLine| line.level >= Level::Warn;
        let now = lines.iter().filter(is_warning);
        let now: Vec<String> = now.map(|line| line.message.clone()).collect();
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        for line in lines {
            if line.level >= Level::Warn && warned.contains(&line.message) {
                let message = &line.message;
                tracing::debug!(target: "guest", component, context = line.context, "{message}");
            } else {
                write(component, line);
            }
        }
        *warned = now;
    }
}
