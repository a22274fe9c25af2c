//! The host's log: a plugin's messages, and the message of its panic.

/// The severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Details for the search for a defect.
    Trace,
    /// Details for development.
    Debug,
    /// An operator may want to know.
    Info,
    /// Unexpected, and dealt with.
    Warn,
    /// Something went wrong.
    Error,
    /// Going on is impossible.
    Critical,
}

/// Writes one message. The host keeps at most 64 KiB of log per call. In a test,
/// [`harness::logged`](crate::harness::logged) has it.
pub fn write(level: Level, message: &str) {
    crate::wire::log(level, "", message);
}

/// Writes something of interest while developing.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// Writes something that an operator may want to know.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// Writes something unexpected that was dealt with.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Writes something that went wrong.
pub fn error(message: &str) {
    write(Level::Error, message);
}

/// Sends the message of a panic to the host's log before the instance traps. Each instance does
/// this once, at its first call; a native test keeps the hook of the test runner.
pub(crate) fn send_panics_to_the_host() {
    #[cfg(target_family = "wasm")]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            std::panic::set_hook(Box::new(|panic| {
                crate::wire::log(Level::Error, "panic", &panic.to_string())
            }));
        });
    }
}
