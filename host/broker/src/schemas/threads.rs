//! A few threads with large stacks, for work that may have to be given up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

/// Number of threads, and so of pieces of work at a time, those that were given up included.
pub(super) const THREADS_MAX: usize = 4;
/// The size of a thread's stack, in bytes: for the deepest documents and schemas. Only what is used
/// takes memory.
const STACK_BYTES: usize = 128 << 20;
/// The time that a piece of work may wait and take, in milliseconds. [`Threads::run`] counts both
/// together, [`Threads::run_and_wait`] each apart.
const WORK_MS_MAX: u64 = 10_000;
/// The pause between looks for a permit by a thread that stands still.
const LOOK: Duration = Duration::from_millis(1);

/// The reason why a piece of work has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GivenUp {
    /// Too long a time was taken. The work may still be going on.
    #[error("comparing with a JSON Schema took longer than {WORK_MS_MAX} ms and was given up")]
    TooLong,
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
struct Piece {
    work: Work,
    permit: OwnedSemaphorePermit,
}

/// A piece of work, with the channel to the thread that does it.
///
/// The thread keeps no channel to itself, so it ends when nobody else has one.
struct Handed {
    piece: Piece,
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

    /// Has a piece of work done. If the future is dropped before its end, the work goes on and its
    /// result is dropped.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, GivenUp> {
        if self.lost() >= THREADS_MAX {
            return Err(GivenUp::Busy);
        }
        let until = Instant::now() + Duration::from_millis(self.work_ms_max);
        let Ok(Ok(permit)) = timeout_at(until, self.permits.clone().acquire_owned()).await else {
            return Err(GivenUp::Busy);
        };
        let (reply, answer) = oneshot::channel();
        let (watched, is_lost) = self.watched(work);
        self.hand_over(Piece {
            work: Box::new(move || drop(reply.send(watched()))),
            permit,
        })?;
        match timeout_at(until, answer).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(GivenUp::Panicked),
            Err(_) => Err(self.give_up(&is_lost)),
        }
    }

    /// Has a piece of work done, while the caller's thread stands still.
    pub(super) fn run_and_wait<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, GivenUp> {
        let permit = self.permit_soon()?;
        let (reply, answer) = channel();
        let (watched, is_lost) = self.watched(work);
        self.hand_over(Piece {
            work: Box::new(move || drop(reply.send(watched()))),
            permit,
        })?;
        match answer.recv_timeout(Duration::from_millis(self.work_ms_max)) {
            Ok(done) => done,
            Err(RecvTimeoutError::Disconnected) => Err(GivenUp::Panicked),
            Err(RecvTimeoutError::Timeout) => Err(self.give_up(&is_lost)),
        }
    }

    /// Waits for a permit on the caller's own thread.
    fn permit_soon(&self) -> Result<OwnedSemaphorePermit, GivenUp> {
        for _ in 0..self.work_ms_max {
            match self.permits.clone().try_acquire_owned() {
                Ok(permit) => return Ok(permit),
                Err(_) => std::thread::sleep(LOOK),
            }
        }
        Err(GivenUp::Busy)
    }

    /// Returns the number of threads at work for which nobody waits any more.
    pub(super) fn lost(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }

    /// Wraps work so that its panic is caught, and that it no longer counts as lost when it ends
    /// after all.
    fn watched<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(
        &self,
        work: W,
    ) -> (
        impl FnOnce() -> Result<T, GivenUp> + Send + 'static + use<T, W>,
        Arc<AtomicBool>,
    ) {
        let is_over = Arc::new(AtomicBool::new(false));
        let lost = Arc::clone(&self.lost);
        let over = Arc::clone(&is_over);
        let watched = move || {
            let done = catch_unwind(AssertUnwindSafe(work)).map_err(|_| GivenUp::Panicked);
            // The second of the two undoes, or leaves out, the count of the other.
            if over.swap(true, Ordering::SeqCst) {
                lost.fetch_sub(1, Ordering::SeqCst);
            }
            done
        };
        (watched, is_over)
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
    fn hand_over(&self, mut piece: Piece) -> Result<(), GivenUp> {
        loop {
            let Some(thread) = self.idle().pop() else {
                break;
            };
            match thread.send(Handed {
                piece,
                thread: thread.clone(),
            }) {
                Ok(()) => return Ok(()),
                Err(returned) => piece = returned.0.piece,
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
                piece,
                thread: thread.clone(),
            })
            .map_err(|_| GivenUp::Busy)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Sender<Handed>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The whole life of a thread. It ends when nobody can reach it any more.
fn work_off(pieces: &Receiver<Handed>, idle: &Weak<Mutex<Vec<Sender<Handed>>>>) {
    while let Ok(Handed {
        piece: Piece { work, permit },
        thread,
    }) = pieces.recv()
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
