//! The log: stderr, without the secrets that the host knows.

use domain::redact::Redactor;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{IsTerminal, Write, stderr};
use std::panic::PanicHookInfo;
use std::sync::{Arc, OnceLock};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

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

/// Begins to log to stderr: notable events while serving, otherwise warnings. `RUST_LOG` overrides
/// this.
pub(crate) fn begin(serving: bool) -> LogRedaction {
    let redaction = LogRedaction::default();
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(if serving { "info" } else { "warn" }));
    let colours =
        stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // A log that takes no more lines loses them: to say so on the same stderr would be a panic of
    // whoever had something to log.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(redaction.clone())
        .with_ansi(colours)
        .log_internal_errors(false)
        .init();
    std::panic::set_hook(Box::new(log_panic));
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
