//! The clock of the API, passed to the code that needs the time. Tests set one of their own.

use domain::time::Timestamp;
use std::fmt;
use std::sync::Arc;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The machine's.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that everything else is handed"
    )]
    pub fn system() -> Self {
        Self::of(|| {
            let since = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap_or_default();
            Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
        })
    }

    /// Makes a clock that shows the result of a function.
    #[must_use]
    pub fn of(shows: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(shows))
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
