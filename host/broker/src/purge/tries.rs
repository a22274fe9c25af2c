//! Tries of the parts of a purge that may fail while others succeed.

use crate::command::Error;
use domain::id::Stream;

/// Keeps the first error that concerns only a session or an agent of a tree, for after the others
/// were tried. Returns one that concerns everything.
pub(super) fn keep_first(
    first: &mut Option<Error>,
    purge: Stream,
    tried: Result<(), Error>,
) -> Result<(), Error> {
    match tried {
        Ok(()) => Ok(()),
        Err(error @ (Error::DiskFull | Error::ShuttingDown)) => Err(error),
        Err(error @ (Error::Refused(_) | Error::Unavailable(_))) => {
            tracing::warn!(
                %purge,
                error = &error as &dyn std::error::Error,
                "a part of an agent's purge did not come to its end"
            );
            if first.is_none() {
                *first = Some(error);
            }
            Ok(())
        }
    }
}
