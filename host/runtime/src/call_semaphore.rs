//! A semaphore for the calls of one component. Its limit comes with each call, so that calls under
//! different limits share one count.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The permits that are out, and the queue for the next one.
#[derive(Debug, Default)]
pub(crate) struct CallSemaphore(Mutex<Permits>);

#[derive(Debug, Default)]
struct Permits {
    acquired: u32,
    queue: VecDeque<QueuedCall>,
}

/// A call that waits until fewer than `max` permits are out.
#[derive(Debug)]
struct QueuedCall {
    max: u32,
    sender: oneshot::Sender<CallPermit>,
}

/// The right to make one call. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct CallPermit(Arc<CallSemaphore>);

impl CallSemaphore {
    /// Waits until fewer than `max` permits are out. None when too many wait already or it took too
    /// long.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        max: u32,
        queued_max: usize,
        wait_max: Duration,
    ) -> Option<CallPermit> {
        let max = max.max(1);
        let permit = {
            let mut permits = self.permits();
            if permits.acquired < max {
                permits.acquired += 1;
                return Some(CallPermit(self.clone()));
            }
            permits.queue.retain(|call| !call.sender.is_closed());
            if permits.queue.len() >= queued_max {
                return None;
            }
            let (sender, receiver) = oneshot::channel();
            permits.queue.push_back(QueuedCall { max, sender });
            receiver
        };
        timeout(wait_max, permit).await.ok()?.ok()
    }

    fn permits(&self) -> MutexGuard<'_, Permits> {
        // Nobody who holds the lock panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a permit back, and gives it to the first in the queue who may have it.
    fn release(self: &Arc<Self>) {
        let next = {
            let mut permits = self.permits();
            permits.acquired -= 1;
            permits.queue.retain(|call| !call.sender.is_closed());
            let first = permits
                .queue
                .iter()
                .position(|call| permits.acquired < call.max);
            let next = first.and_then(|first| permits.queue.remove(first));
            permits.acquired += u32::from(next.is_some());
            next
        };
        if let Some(QueuedCall { sender, .. }) = next {
            // Who gave up in this moment gives it back by dropping it.
            let _ = sender.send(CallPermit(self.clone()));
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        self.0.release();
    }
}
