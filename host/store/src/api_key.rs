//! The API key under which a task works: whatever the task stores for a user came with it.
//!
//! Set around a whole request, so that no command can forget it. A task that such a task starts
//! works under no key, unless it is handed the key: a driver does not work under that of whoever
//! woke it.

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
