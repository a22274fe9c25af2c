//! Panics: caught where the work can be begun anew, and the end of the process where it cannot.
//!
//! Without this a task that panicked would be gone without a word, and what it looked after would stand still. Where in the code it was,
//! the panic hook of the program says.

use futures::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;

/// Runs work to its end, or to its panic: then it is the panic's message that comes back. Whoever calls this drops or renews what the
/// work had in its hands.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| message(&*panic))
}

/// Ends the process, because a part of it is lost that it cannot do without. Whoever supervises it starts it again, and nothing is lost.
pub(crate) fn end_process(lost: &str, panic: &str) -> ! {
    tracing::error!(panic, "{lost} panicked: the process ends, so that it can be started again whole");
    std::process::abort()
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it has no message").to_owned()
}
