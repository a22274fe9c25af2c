//! The semaphore of requests that are under way at once, in all and for each component.

use crate::awake::timeout;
use crate::error::EgressError;
use crate::limits::Limits;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A permit for one request. It is given back when every clone is gone.
#[derive(Debug, Clone)]
pub struct RequestPermit {
    _held: Arc<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

/// The permits of all requests, and of those of each component.
#[derive(Debug)]
pub(crate) struct RequestSemaphore {
    all: Arc<Semaphore>,
    /// The semaphores of components that have requests under way.
    of_component: Mutex<HashMap<String, Weak<Semaphore>>>,
    of_component_max: usize,
    queue: Duration,
}

impl RequestSemaphore {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            all: Arc::new(Semaphore::new(limits.in_flight_max)),
            of_component: Mutex::default(),
            of_component_max: limits.in_flight_per_component_max,
            queue: Duration::from_millis(limits.queue_ms_max),
        }
    }

    /// Waits for a permit, first among the component's own requests. So no component stands in the
    /// common queue more often than it may have requests under way.
    pub(crate) async fn acquire(&self, component: &str) -> Result<RequestPermit, EgressError> {
        let own = self.semaphore(component);
        let acquire = async {
            let own = own.acquire_owned().await?;
            let all = Arc::clone(&self.all).acquire_owned().await?;
            Ok::<_, tokio::sync::AcquireError>(RequestPermit {
                _held: Arc::new((own, all)),
            })
        };
        timeout(self.queue, acquire)
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or(EgressError::Busy)
    }

    fn semaphore(&self, component: &str) -> Arc<Semaphore> {
        let mut known = self
            .of_component
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = known.get(component).and_then(Weak::upgrade) {
            return semaphore;
        }
        known.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(self.of_component_max));
        known.insert(component.to_owned(), Arc::downgrade(&semaphore));
        semaphore
    }
}
