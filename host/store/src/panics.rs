//! Panics that concern one piece of work only.
//!
//! Loops over many work items use this to continue with the next one. Without it, one item that
//! panics would end a thread, or the process at every start.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs some work, and returns the message of its panic if it panics.
///
/// Catches a panic in the work. The caller undoes the changes made before the panic.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it has no message").to_owned()
}
