//! A few threads with large stacks, for work that may have to be given up.

use domain::digest::Digest;
use domain::error_code::INVALID_ARGUMENTS;
use domain::step::Failure;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

/// Number of threads, and so of pieces of work at a time, those that were given up included.
pub(super) const THREADS_MAX: usize = 4;
/// The size of a thread's stack, in bytes: for the deepest documents and schemas. Only the used
/// part takes memory.
const STACK_BYTES: usize = 128 << 20;
/// The time that a piece of work may wait for a thread, and the time that it may take then, in
/// milliseconds.
const WORK_MS_MAX: u64 = 10_000;
/// The pause between checks for a permit by a blocked thread.
const POLL: Duration = Duration::from_millis(1);

/// The reason why a piece of work has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GivenUp {
    /// Too long a time was taken. The work may still be going on.
    #[error("comparing with a JSON Schema took longer than {WORK_MS_MAX} ms and was given up")]
    TooLong,
    /// The schema with this digest took too long before, and is not used again.
    #[error(
        "the JSON Schema with the digest {0} took longer than {WORK_MS_MAX} ms before and is not \
             used again"
    )]
    Before(Digest),
    /// Every thread is at work.
    #[error("the host is busy comparing with JSON Schemas; try again later")]
    Busy,
    /// A panic ended it.
    #[error(
        "the host failed while it compared with a JSON Schema; whoever runs it finds the \
             reason in its log"
    )]
    Panicked,
}

impl GivenUp {
    /// Returns the failure of an operation that needed the comparison.
    pub(crate) fn failure(self) -> Failure {
        match self {
            Self::Before(_) => Failure::lasting(INVALID_ARGUMENTS, self.to_string()),
            Self::TooLong | Self::Busy | Self::Panicked => {
                Failure::passing("busy", self.to_string())
            }
        }
    }
}

type Work = Box<dyn FnOnce() + Send>;
type Idle = Arc<Mutex<Vec<Sender<Handed>>>>;

/// The threads. They are started when they are needed.
#[derive(Debug)]
pub(super) struct Threads {
    permits: Arc<Semaphore>,
    /// The channels to threads without work.
    idle: Idle,
    /// Number of threads at work for which nobody waits any more.
    lost: Arc<AtomicUsize>,
    work_ms_max: u64,
}

/// A piece of work with its permit.
struct Job {
    work: Work,
    permit: OwnedSemaphorePermit,
}

/// A piece of work, with the channel to the thread that does it.
///
/// The thread keeps no sender of its own channel, so it ends when all others are dropped.
struct Handed {
    job: Job,
    thread: Sender<Self>,
}

impl Default for Threads {
    fn default() -> Self {
        Self::giving_up_after(WORK_MS_MAX)
    }
}

impl Threads {
    pub(super) fn giving_up_after(work_ms_max: u64) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(THREADS_MAX)),
            idle: Arc::default(),
            lost: Arc::default(),
            work_ms_max,
        }
    }

    /// Runs a job on a thread. The wait for a thread does not count as its time. If the future is
    /// dropped before its end, the job continues and its result is dropped.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, GivenUp> {
        if self.lost() >= THREADS_MAX {
            return Err(GivenUp::Busy);
        }
        let permit = timeout(self.work_max(), self.permits.clone().acquire_owned());
        let Ok(Ok(permit)) = permit.await else {
            return Err(GivenUp::Busy);
        };
        let (reply, answer) = oneshot::channel();
        let is_over = self.begin(permit, work, move |done| drop(reply.send(done)))?;
        match timeout(self.work_max(), answer).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(GivenUp::Panicked),
            Err(_) => Err(self.give_up(&is_over)),
        }
    }

    /// The same, while the caller's thread blocks.
    pub(super) fn run_and_wait<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, GivenUp> {
        let permit = self.permit_soon()?;
        let (reply, answer) = channel();
        let is_over = self.begin(permit, work, move |done| drop(reply.send(done)))?;
        match answer.recv_timeout(self.work_max()) {
            Ok(done) => done,
            Err(RecvTimeoutError::Disconnected) => Err(GivenUp::Panicked),
            Err(RecvTimeoutError::Timeout) => Err(self.give_up(&is_over)),
        }
    }

    fn work_max(&self) -> Duration {
        Duration::from_millis(self.work_ms_max)
    }

    /// Waits for a permit on the caller's own thread.
    fn permit_soon(&self) -> Result<OwnedSemaphorePermit, GivenUp> {
        for _ in 0..self.work_ms_max {
            if self.lost() >= THREADS_MAX {
                break;
            }
            match self.permits.clone().try_acquire_owned() {
                Ok(permit) => return Ok(permit),
                Err(_) => std::thread::sleep(POLL),
            }
        }
        Err(GivenUp::Busy)
    }

    /// Returns the number of threads at work for which nobody waits any more.
    pub(super) fn lost(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }

    /// Begins a job. Its panic is caught, and it no longer counts as lost once it ends after all.
    /// Returns the flag that it is over.
    fn begin<T: Send + 'static>(
        &self,
        permit: OwnedSemaphorePermit,
        work: impl FnOnce() -> T + Send + 'static,
        reply: impl FnOnce(Result<T, GivenUp>) + Send + 'static,
    ) -> Result<Arc<AtomicBool>, GivenUp> {
        let is_over = Arc::new(AtomicBool::new(false));
        let lost = Arc::clone(&self.lost);
        let over = Arc::clone(&is_over);
        let watched = move || {
            let done = catch_unwind(AssertUnwindSafe(work)).map_err(|_| GivenUp::Panicked);
            // The second of the two undoes, or leaves out, the count of the other.
            if over.swap(true, Ordering::SeqCst) {
                lost.fetch_sub(1, Ordering::SeqCst);
            }
            reply(done);
        };
        self.hand_over(Job {
            work: Box::new(watched),
            permit,
        })?;
        Ok(is_over)
    }

    fn give_up(&self, is_over: &AtomicBool) -> GivenUp {
        self.lost.fetch_add(1, Ordering::SeqCst);
        if is_over.swap(true, Ordering::SeqCst) {
            self.lost.fetch_sub(1, Ordering::SeqCst);
        }
        tracing::warn!(
            lost = self.lost(),
            "comparing with a JSON Schema took too long and was given up"
        );
        GivenUp::TooLong
    }

    /// Hands a piece of work to a thread without work, or to a new one. There are never more
    /// threads than permits.
    fn hand_over(&self, mut job: Job) -> Result<(), GivenUp> {
        loop {
            let Some(thread) = self.idle().pop() else {
                break;
            };
            match thread.send(Handed {
                job,
                thread: thread.clone(),
            }) {
                Ok(()) => return Ok(()),
                Err(returned) => job = returned.0.job,
            }
        }
        let (thread, handed) = channel();
        let idle = Arc::downgrade(&self.idle);
        let builder = std::thread::Builder::new()
            .name("schemas".to_owned())
            .stack_size(STACK_BYTES);
        if let Err(error) = builder.spawn(move || work_off(&handed, &idle)) {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a thread for JSON Schemas could not be started"
            );
            return Err(GivenUp::Busy);
        }
        thread
            .send(Handed {
                job,
                thread: thread.clone(),
            })
            .map_err(|_| GivenUp::Busy)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Sender<Handed>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The loop of a thread. It ends when no sender is left.
fn work_off(jobs: &Receiver<Handed>, idle: &Weak<Mutex<Vec<Sender<Handed>>>>) {
    while let Ok(Handed {
        job: Job { work, permit },
        thread,
    }) = jobs.recv()
    {
        work();
        let Some(idle) = idle.upgrade() else { return };
        idle.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(thread);
        // Whoever gets the permit finds this thread.
        drop(permit);
    }
}
