//! Waiting for a state that a host reaches by itself.

use std::panic::Location;
use std::time::Duration;

/// Time limit of anything that is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two polls.
const POLL: Duration = Duration::from_millis(5);

/// Looks again and again until there is something.
///
/// # Panics
/// When nothing comes in time.
#[track_caller]
pub fn found<T>(answer: impl AsyncFn() -> Option<T>) -> impl Future<Output = T> {
    let at = Location::caller();
    async move {
        let looking = async {
            loop {
                if let Some(found) = answer().await {
                    return found;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, looking).await;
        found.unwrap_or_else(|_| panic!("{at}: it does not come to that"))
    }
}

/// Looks again and again until it is so.
///
/// # Panics
/// When it does not get so in time.
#[track_caller]
pub fn until(is: impl AsyncFn() -> bool) -> impl Future<Output = ()> {
    found(async move || is().await.then_some(()))
}
