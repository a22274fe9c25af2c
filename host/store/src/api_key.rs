//! The API key under which a task works: everything that the task stores for a user is charged to
//! this key.
//!
//! The key is set around a whole request, so no command can forget it. A task that is spawned from
//! such a task works under no key unless it is given the key. In particular, a driver does not work
//! under the key of the caller that woke it.

use domain::key::KeyId;

tokio::task_local! {
    static API_KEY: Option<KeyId>;
}

/// Runs a task under an API key, or under none.
pub fn under_api_key<F: Future>(key: Option<KeyId>, task: F) -> impl Future<Output = F::Output> {
    API_KEY.scope(key, task)
}

/// Returns the API key under which this task works; none for the host's own work, and for requests
/// with another credential.
#[must_use]
pub fn api_key_here() -> Option<KeyId> {
    API_KEY.try_with(Clone::clone).ok().flatten()
}
