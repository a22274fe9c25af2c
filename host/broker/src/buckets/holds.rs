//! The holders of buckets: one call at a time for each.

use domain::grant::BucketPlace;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::OwnedMutexGuard;

type Lock = tokio::sync::Mutex<()>;

/// The holders of buckets. Waiting calls get a bucket in the order of their requests.
#[derive(Debug, Default)]
pub(crate) struct Holds(Mutex<HashMap<BucketPlace, Weak<Lock>>>);

impl Holds {
    /// Waits until a bucket is free, and holds it until the returned value is dropped.
    pub(super) async fn hold(self: &Arc<Self>, place: BucketPlace) -> BucketLease {
        let lock = match self.locks().entry(place.clone()) {
            Entry::Occupied(mut there) => there.get().upgrade().unwrap_or_else(|| {
                let lock = Arc::default();
                there.insert(Arc::downgrade(&lock));
                lock
            }),
            Entry::Vacant(free) => {
                let lock = Arc::default();
                free.insert(Arc::downgrade(&lock));
                lock
            }
        };
        // Made before the wait, so that it also cleans up after a wait that is given up.
        let mut leased = BucketLease {
            holds: self.clone(),
            place,
            guard: None,
        };
        leased.guard = Some(lock.lock_owned().await);
        leased
    }

    fn locks(&self) -> MutexGuard<'_, HashMap<BucketPlace, Weak<Lock>>> {
        // Every change of the map is a single one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bucket that is leased, or waited for.
#[derive(Debug)]
pub(super) struct BucketLease {
    holds: Arc<Holds>,
    place: BucketPlace,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Drop for BucketLease {
    fn drop(&mut self) {
        self.guard = None;
        let mut locks = self.holds.locks();
        if locks
            .get(&self.place)
            .is_some_and(|lock| lock.strong_count() == 0)
        {
            locks.remove(&self.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::grant::BucketScope;
    use std::time::Duration;

    fn place(bucket: &str) -> BucketPlace {
        BucketPlace {
            component: "c".to_owned(),
            bucket: bucket.to_owned(),
            scope: BucketScope::Component,
            of: String::new(),
        }
    }

    #[tokio::test]
    async fn a_bucket_is_held_by_one_and_nothing_is_left_of_those_who_waited() {
        let holds = Arc::new(Holds::default());
        let first = holds.hold(place("a")).await;
        let other = holds.hold(place("b")).await;
        assert!(
            tokio::time::timeout(Duration::from_millis(10), holds.hold(place("a")))
                .await
                .is_err(),
            "it is held"
        );
        assert_eq!(holds.locks().len(), 2);
        drop(other);
        let (waiter, ()) = tokio::join!(holds.hold(place("a")), async {
            tokio::task::yield_now().await;
            drop(first);
        });
        assert_eq!(holds.locks().len(), 1, "whoever waited has it");
        drop(waiter);
        assert!(holds.locks().is_empty());
    }
}
