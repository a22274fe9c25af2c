//! Retries of the parts of a purge, and the errors that do not stop other parts.

use crate::shared::Error;
use domain::id::Stream;
use std::time::Duration;
use store::CommitError;

/// Maximum number of retries in a row while the store is too busy.
const TRIES_MAX: u32 = 50;
/// The pause between two of them.
const PAUSE: Duration = Duration::from_millis(100);

/// Sends a request to the store, and repeats it while the store is too busy or ends the read
/// because it is in the way of the log. A large purge fills the log by itself, so its own reads may
/// be ended. Each part of a purge can be repeated, and a commit that was refused is not stored.
pub(super) async fn retry_busy<T, E: Into<CommitError>, F: Future<Output = Result<T, E>>>(
    ask: impl Fn() -> F,
) -> Result<T, CommitError> {
    let mut tries = 1;
    loop {
        let answer: Result<T, CommitError> = ask().await.map_err(Into::into);
        match answer {
            Err(CommitError::Busy) if tries < TRIES_MAX => tries += 1,
            answer => return answer,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Keeps the first error that concerns only a session or an agent of a tree, until the others were
/// tried. Returns an error that concerns everything.
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

#[cfg(test)]
mod tests {
    use super::{TRIES_MAX, retry_busy};
    use std::cell::Cell;
    use store::{CommitError, ReadError};

    /// Asks a store that is busy so often. Returns its answer, and how often it was asked.
    async fn ask(busy: u32) -> (Result<(), CommitError>, u32) {
        let asked = Cell::new(0);
        let answer = retry_busy(|| {
            asked.set(asked.get() + 1);
            let is_busy = asked.get() <= busy;
            async move {
                match is_busy {
                    true => Err(ReadError::InTheWay),
                    false => Ok(()),
                }
            }
        });
        (answer.await, asked.get())
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_store_is_asked_again_a_limited_number_of_times() {
        assert!(matches!(ask(0).await, (Ok(()), 1)));
        assert!(matches!(ask(TRIES_MAX - 1).await, (Ok(()), TRIES_MAX)));
        let (answer, asked) = ask(TRIES_MAX).await;
        assert!(matches!(answer, Err(CommitError::Busy)), "{answer:?}");
        assert_eq!(asked, TRIES_MAX);
    }
}
