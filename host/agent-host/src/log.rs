//! The log: stderr, without the secrets that the host knows.

use domain::redact::Redactor;
use runtime::{Level, LogLine};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::io::{IsTerminal, Write, stderr};
use std::panic::PanicHookInfo;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// The redactor of the log, once the secrets are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogRedaction(Arc<OnceLock<Redactor>>);

impl LogRedaction {
    /// Removes these secrets from the log from here on. Only the first call counts: a process reads
    /// its secrets once.
    pub(crate) fn drop_over(&self, redactor: Redactor) {
        _ = self.0.set(redactor);
    }
}

/// Each line of the log is written in one go.
impl Write for LogRedaction {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.get().and_then(|redactor| redactor.bytes(bytes)) {
            Some(redacted) => stderr().write_all(&redacted)?,
            None => stderr().write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        stderr().flush()
    }
}

impl<'a> MakeWriter<'a> for LogRedaction {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The variable whose filter goes before the configured one.
const VARIABLE: &str = "RUST_LOG";
/// The filter of a host that is configured without one: notable events.
pub(crate) const SERVING: &str = "info";
/// The filter of all other commands.
pub(crate) const QUIET: &str = "warn";
/// The filter of a command that reports warnings itself.
const ERRORS: &str = "error";

/// The lines that guests of a host of the command's own write to stderr.
#[derive(Debug, Clone, Default)]
pub(crate) struct GuestStderr(Arc<Mutex<Vec<LogLine>>>);

impl GuestStderr {
    /// Takes the lines until now, without those that repeat an earlier one.
    pub(crate) fn take(&self) -> Vec<LogLine> {
        let mut lines = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut seen = BTreeSet::new();
        lines.retain(|line| seen.insert(line.message.clone()));
        lines
    }
}

impl<S: Subscriber> Layer<S> for GuestStderr {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = GuestLine(LogLine {
            level: Level::Warn,
            context: String::new(),
            message: String::new(),
        });
        event.record(&mut line);
        if line.0.context == "stderr" {
            let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push(line.0);
        }
    }
}

/// A line of a guest's, as the broker logs it.
struct GuestLine(LogLine);

impl Visit for GuestLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.message = format!("{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "context" {
            value.clone_into(&mut self.0.context);
        }
    }
}

/// Begins to log errors alone, and to keep what guests write to stderr.
pub(crate) fn keep_guest_stderr() -> GuestStderr {
    let kept = GuestStderr::default();
    start(ERRORS, Some(kept.clone()));
    kept
}

/// Reads a filter of the log as the configuration has it.
///
/// # Errors
/// It is none, or has a word that is no level.
pub(crate) fn parse(text: &str) -> Result<EnvFilter, String> {
    // As a filter, a misspelt level would be a part of the program that is logged alone and whole.
    let is_word = |part: &&str| !part.contains(['=', '[', '{', '}', ']']);
    let wrong = text
        .split(',')
        .filter(is_word)
        .find(|part| part.is_empty() || part.parse::<LevelFilter>().is_err());
    if let Some(wrong) = wrong {
        return Err(format!(
            "`{wrong}` is no level of the log; write `off`, `error`, `warn`, `info`, `debug` or \
             `trace`, or a part of the program with its own, such as `warn,broker=debug`"
        ));
    }
    EnvFilter::try_new(text).map_err(|error| format!("`{text}` is no filter of the log: {error}"))
}

/// The filter to log by.
struct Chosen {
    filter: EnvFilter,
    /// The reason why the filter of the environment is not used, if it has one that is none.
    refused: Option<String>,
}

impl Chosen {
    /// Chooses the filter of the environment, or without one the configured filter.
    fn new(variable: Option<&OsStr>, configured: &str) -> Self {
        let mut refused = None;
        if let Some(text) = variable.filter(|text| !text.is_empty()) {
            match text.to_str().map(EnvFilter::try_new) {
                Some(Ok(filter)) => {
                    return Self {
                        filter,
                        refused: None,
                    };
                }
                Some(Err(error)) => refused = Some(error.to_string()),
                None => refused = Some("it is not text".to_owned()),
            }
        }
        Self {
            filter: EnvFilter::new(configured),
            refused,
        }
    }
}

/// Begins to log to stderr by a filter. That of `RUST_LOG` goes before it.
pub(crate) fn begin(configured: &str) -> LogRedaction {
    start(configured, None)
}

fn start(configured: &str, kept: Option<GuestStderr>) -> LogRedaction {
    let redaction = LogRedaction::default();
    let named = std::env::var_os(VARIABLE).filter(|filter| !filter.is_empty());
    let Chosen { filter, refused } = Chosen::new(named.as_deref(), configured);
    let colours =
        stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // A log that takes no more lines loses them: to say so on the same stderr would be a panic of
    // whoever had something to log.
    let log = tracing_subscriber::fmt::layer()
        .with_writer(redaction.clone())
        .with_ansi(colours)
        .log_internal_errors(false)
        .with_filter(filter);
    let of_guests = filter_fn(|about| about.target() == "guest");
    tracing_subscriber::registry()
        .with(log)
        .with(kept.map(|kept| kept.with_filter(of_guests)))
        .init();
    std::panic::set_hook(Box::new(log_panic));
    if let Some(error) = refused {
        tracing::warn!(
            error,
            "{VARIABLE} is no filter of the log; it is filtered by `{configured}` instead"
        );
    }
    redaction
}

/// Logs a panic as an ordinary line, so that it is found by whatever monitors the log. With
/// `RUST_BACKTRACE` it includes the backtrace.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string);
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then_some(&backtrace);
    let message = panic.payload_as_str().unwrap_or("it has no message");
    let thread = std::thread::current();
    tracing::error!(
        panic.place = place,
        thread = thread.name(),
        backtrace = backtrace.map(tracing::field::display),
        "panicked: {message}"
    );
}

#[cfg(test)]
mod tests {
    use super::{Chosen, parse};
    use std::ffi::OsStr;

    #[test]
    fn a_filter_of_the_log_has_levels_and_no_other_words() {
        for text in [
            "info",
            "WARN",
            "off",
            "warn,broker=debug",
            "info,[turn{session}]=trace",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
        for (text, reported) in [
            ("inof", "`inof` is no level"),
            ("info,broker", "`broker` is no level"),
            ("", "`` is no level"),
            ("info, broker=debug", "is no filter of the log"),
            ("broker=loud", "`broker=loud` is no filter of the log"),
        ] {
            let error = parse(text).map(drop).unwrap_err();
            assert!(error.contains(reported), "{text}: {error}");
        }
    }

    #[test]
    fn a_filter_of_the_environment_goes_first_and_one_that_is_none_is_told() {
        for (variable, filter, is_refused) in [
            (None, "warn", false),
            (Some(""), "warn", false),
            (Some("debug"), "debug", false),
            (Some("broker=loud"), "warn", true),
        ] {
            let chosen = Chosen::new(variable.map(OsStr::new), "warn");
            assert_eq!(chosen.filter.to_string(), filter, "{variable:?}");
            assert_eq!(chosen.refused.is_some(), is_refused, "{variable:?}");
        }
    }
}
