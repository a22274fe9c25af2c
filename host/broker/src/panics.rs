//! Panics: caught where the work can be restarted, and the end of the process where it cannot.
//!
//! Otherwise a task that panicked would disappear silently, and its work would stop. The program's
//! panic hook logs the place in the code.

use futures::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;

/// Runs work to its end, or to its panic, whose message is then the error. The caller drops or
/// renews all data that the work was changing.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .map_err(|panic| message(&*panic))
}

/// Ends the process after the loss of a part that it cannot do without.
///
/// Its supervisor starts it again, and nothing is lost.
pub(crate) fn end_process(lost: &str, panic: &str) -> ! {
    tracing::error!(
        panic,
        "{lost} panicked: the process ends, so that it can be started again whole"
    );
    std::process::abort()
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it has no message").to_owned()
}
