//! The state that all of the broker shares, and the port through which sessions are woken.

use crate::buckets::Holds;
use crate::catalogue::Catalogue;
use crate::clock::Clock;
use crate::computing::Computing;
use crate::engine::Runtime;
use crate::external::NotedRefusals;
pub(crate) use crate::fresh;
use crate::inspections::Inspections;
use crate::kept_results::KeptResults;
use crate::live::Live;
use crate::outages::Outages;
use crate::panics::{caught, end_process};
use crate::quarantine::Quarantine;
use crate::recovering::Recovering;
use crate::schemas::Schemas;
use crate::serving::{Served, Serving, Settings};
use crate::signal::Signal;
use crate::telemetry::Telemetry;
use crate::tool_places::{PLACES_MAX, ToolPlaces};
use domain::delegate::CacheLimits;
use domain::digest::Digest;
use domain::dispatch;
use domain::id::SessionId;
use domain::queue::QueueOverride;
use domain::residency::Patience;
use domain::time::Timestamp;
use llm::Gateway;
use llm::fair_semaphore::FairSemaphore;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{Commit, CommitError, Committed, Store};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Number of signals that may wait for one session's driver. A sender of more waits.
const MAILBOX_MAX: usize = 256;
/// Maximum number of remembered digests of stored blobs. Beyond it the list is cleared.
const KNOWN_BLOBS_MAX: usize = 100_000;

/// Number of drivers that recovery and timers start at a time. Each counts until it has folded its
/// run and checked for work.
const STARTING_MAX: usize = 64;

/// Number of locks on the queues of sessions. A lock is held while a decision about a queue is made
/// and stored.
const DECIDING: usize = 64;

/// The limits of one user, and of one of their API keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserLimits {
    /// Number of sessions that a user opens within a minute, in whichever way.
    pub sessions_per_minute_max: u64,
    /// Bytes that a user has handed over and that were not purged: words, files, answers, settings,
    /// imports.
    pub stored_bytes_max: u64,
    /// Bytes of these that were stored under one API key.
    pub key_stored_bytes_max: u64,
}

impl Default for UserLimits {
    fn default() -> Self {
        Self {
            sessions_per_minute_max: 240,
            stored_bytes_max: 1 << 30,
            key_stored_bytes_max: 1 << 29,
        }
    }
}

/// Limits of the broker as a whole.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of model calls that run at the same time on this host. Users take turns, and in a
    /// user's turn the most urgent calls go first.
    pub model_calls_max: usize,
    /// The limits on how far agents may go with each other.
    pub dispatch: dispatch::DispatchLimits,
    /// Tokens of the reply to a model call, if neither the call nor its model has a limit. If the
    /// budget has less than the model may reply, the reply is shortened, but not below this.
    pub reserved_tokens: u64,
    /// The limits of the cache for results of delegations that only read; none keeps none.
    pub delegation_cache: Option<CacheLimits>,
    /// The time limit of a dispatch that names none, in milliseconds.
    pub dispatch_ms: u64,
    /// The time that a user has to agree to a call that the host asks about, in milliseconds.
    pub approval_ms: u64,
    /// The queue settings where neither the session nor the message has any.
    pub queue: QueueOverride,
    /// The limits of one user, and of one of their API keys.
    pub users: UserLimits,
    /// The times without work after which agents sleep, and after which those made for a piece of
    /// work are dead.
    pub patience: Patience,
    /// Number of due sessions that the watch over timers reads in a round, besides as many as were
    /// woken before or are in quarantine.
    pub due_sessions_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            model_calls_max: 64,
            dispatch: dispatch::DispatchLimits::default(),
            delegation_cache: None,
            reserved_tokens: 4_096,
            dispatch_ms: 300_000,
            approval_ms: 15 * 60 * 1_000,
            queue: QueueOverride::default(),
            users: UserLimits::default(),
            patience: Patience::default(),
            due_sessions_max: 10_000,
        }
    }
}

impl Limits {
    /// Returns these limits for a turn under way, lowered to those in force now.
    pub(crate) fn within(self, others: &Self) -> Self {
        Self {
            dispatch: self.dispatch.within(others.dispatch),
            ..self
        }
    }
}

/// Figures of a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Number of drivers now: one for each session that is being worked on.
    pub drivers: usize,
    /// Number of wakes of a driver since the start, including wakes of drivers that were woken
    /// already.
    pub wakes: u64,
    /// Number of times that drivers checked for work.
    pub inspections: u64,
    /// Number of drivers that recovery or a timer is starting: at most 64 at a time.
    pub starting: usize,
    /// Number of sessions that may have work from before the start and were not checked yet.
    pub to_recover: usize,
    /// Number of sessions in quarantine.
    pub quarantined: usize,
}

/// The parts of the state that are made before it.
pub(crate) struct CoreParts {
    pub(crate) store: Store,
    pub(crate) runtime: Runtime,
    pub(crate) catalogue: Catalogue,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) computing: Computing,
}

/// The state that all of the broker shares.
pub(crate) struct Core {
    pub(crate) store: Store,
    pub(crate) runtime: Runtime,
    /// The configuration: the catalogue, limits, models and rules on paths.
    pub(crate) serving: Serving,
    /// The service that compares documents with schemas, for all catalogues.
    pub(crate) schemas: Schemas,
    pub(crate) clock: Clock,
    pub(crate) live: Live,
    /// Results of delegations that only read.
    pub(crate) kept_results: KeptResults,
    pub(crate) telemetry: Telemetry,
    /// Number of API keys that were revoked since the start.
    pub(crate) revocations: watch::Sender<u64>,
    pub(crate) model_calls: Arc<FairSemaphore>,
    /// Places for steps, as many as for guests. Sessions get them in an order decided here.
    pub(crate) steps: Arc<FairSemaphore>,
    /// Places for messages, with a section for each agent: its `maxConcurrentMessages`.
    pub(crate) messages: Arc<FairSemaphore>,
    /// Places for calls of tools, with a section for each component.
    pub(crate) tool_places: ToolPlaces,
    pub(crate) holds: Arc<Holds>,
    /// The sessions for which nothing is done.
    pub(crate) quarantine: Quarantine,
    /// The sessions whose turns are recovered after an unrequested end of the host.
    pub(crate) recovering: Recovering,
    /// The sessions that are computed for at the moment.
    pub(crate) computing: Computing,
    /// The sessions that are noted because a start inspects them.
    pub(crate) noted_inspections: Inspections,
    /// Locks of decisions upon queues until they are stored, each shared by several sessions.
    deciding: [tokio::sync::Mutex<()>; DECIDING],
    /// The bound on refused answers of external agents in the ledger.
    pub(crate) noted_refusals: NotedRefusals,
    /// The recorded outages of providers of models.
    pub(crate) outages: Outages,
    /// Lock that is held while the catalogue is replaced.
    pub(crate) replacing: tokio::sync::Mutex<()>,
    /// Lock that is held while a key is issued. Two at once could exceed the user's limit of keys.
    pub(crate) issuing: tokio::sync::Mutex<()>,
    pub(crate) timers: Notify,
    tasks: TaskTracker,
    /// Cancelled when no new work may begin.
    pub(crate) stopping: CancellationToken,
    /// Cancelled when the work under way has to be dropped.
    pub(crate) killed: CancellationToken,
    known_blobs: Mutex<HashSet<Digest>>,
    /// Lock over stored blobs. A commit that names blobs without bringing them along holds it for
    /// reading, and a deletion of blobs for writing.
    pub(crate) naming: tokio::sync::RwLock<()>,
    drivers: Mutex<HashMap<SessionId, Mailbox>>,
    /// The way in which a driver of a session is started.
    port: WakePort,
    /// The figure [`Stats::wakes`].
    wakes: AtomicU64,
    /// The figure [`Stats::inspections`].
    inspections: AtomicU64,
    /// The figure [`Stats::to_recover`].
    to_recover: AtomicUsize,
    /// The permits for drivers that recovery or a timer may start now.
    starting: Arc<Semaphore>,
}

/// The port through which a session without a driver gets one.
///
/// The state does not depend on drivers: the broker's starter supplies the function for them.
pub(crate) struct WakePort(Box<dyn Fn(Arc<Core>, Seat) + Send + Sync>);

impl WakePort {
    pub(crate) fn new(start: impl Fn(Arc<Core>, Seat) + Send + Sync + 'static) -> Self {
        Self(Box::new(start))
    }
}

/// The seat of a session's driver, which the driver takes.
pub(crate) struct Seat {
    pub(crate) session: SessionId,
    pub(crate) mailbox: Mailbox,
    /// The signals that are sent to the mailbox.
    pub(crate) inbox: mpsc::Receiver<Signal>,
    /// The permit to start, until the driver's first inspection is over.
    pub(crate) starting: Option<OwnedSemaphorePermit>,
}

/// The way to a session's driver.
#[derive(Clone)]
pub(crate) struct Mailbox {
    /// The channel for signals.
    pub(crate) signals: mpsc::Sender<Signal>,
    /// The flag that there may be work.
    pub(crate) wake: Arc<Wake>,
}

/// A flag that wakes the task that waits for it.
///
/// Setting it never waits. Setting it again before it is taken changes nothing.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    set: AtomicBool,
    changed: Notify,
}

impl Wake {
    pub(crate) fn set(&self) {
        if !self.set.swap(true, Ordering::AcqRel) {
            self.changed.notify_one();
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Takes the flag down. Returns whether it was set.
    pub(crate) fn take(&self) -> bool {
        self.set.swap(false, Ordering::AcqRel)
    }

    /// Waits until the flag is set, and leaves it so.
    pub(crate) async fn is_set_now(&self) {
        while !self.is_set() {
            self.changed.notified().await;
        }
    }
}

impl Core {
    /// Creates the state from the parts that a broker is started with.
    pub(crate) fn new(parts: CoreParts, port: WakePort) -> Arc<Self> {
        let guests = parts.runtime.stats();
        let guests_max = usize::try_from(guests.in_flight + guests.permits_free)
            .unwrap_or(usize::MAX)
            .max(1);
        Arc::new(Self {
            schemas: parts.catalogue.schemas().clone(),
            live: Live::new(parts.store.durable()),
            store: parts.store,
            runtime: parts.runtime,
            kept_results: KeptResults::default(),
            model_calls: FairSemaphore::new(parts.settings.limits.model_calls_max),
            serving: Serving::new(parts.catalogue, parts.settings),
            clock: parts.clock,
            telemetry: Telemetry::default(),
            revocations: watch::Sender::default(),
            steps: FairSemaphore::new(guests_max),
            messages: FairSemaphore::new(PLACES_MAX),
            tool_places: ToolPlaces::default(),
            holds: Arc::default(),
            quarantine: Quarantine::default(),
            recovering: Recovering::default(),
            computing: parts.computing,
            noted_inspections: Inspections::default(),
            deciding: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            noted_refusals: NotedRefusals::default(),
            outages: Outages::default(),
            replacing: tokio::sync::Mutex::default(),
            issuing: tokio::sync::Mutex::default(),
            timers: Notify::new(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            killed: CancellationToken::new(),
            known_blobs: Mutex::default(),
            naming: tokio::sync::RwLock::default(),
            drivers: Mutex::default(),
            port,
            wakes: AtomicU64::default(),
            inspections: AtomicU64::default(),
            to_recover: AtomicUsize::default(),
            starting: Arc::new(Semaphore::new(STARTING_MAX)),
        })
    }

    /// Begins to stop: no new work and no further task begins.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
        self.tasks.close();
    }

    /// Waits until all tasks have ended.
    pub(crate) async fn ended(&self) {
        self.tasks.wait().await;
    }

    /// Returns the served configuration.
    pub(crate) fn served(&self) -> Arc<Served> {
        self.serving.present()
    }

    /// Returns the limits that are in force now. For those of a turn under way see
    /// [`Serving::limits_of_run`].
    pub(crate) fn limits(&self) -> Limits {
        self.serving.present().settings.limits
    }

    /// Returns the models as they are configured now. For those of a turn under way see
    /// [`Serving::gateway_of_run`].
    pub(crate) fn gateway(&self) -> Arc<Gateway> {
        self.serving.present().settings.gateway.clone()
    }

    /// Returns the present time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Extends the lifetime of idempotency keys by the time that may not have passed.
    pub(crate) fn keep_keys(&self) {
        self.store
            .keep_keys_longer(self.clock.state().gap.map_or(0, |gap| gap.ms));
    }

    /// Waits for the lock under which a decision about a session's queue is made.
    ///
    /// The decision is guarded by its commit all the same. The turns only keep others with the same
    /// purpose from having to decide again.
    pub(crate) async fn in_turn(&self, session: SessionId) -> tokio::sync::MutexGuard<'_, ()> {
        let place = session.0.as_u128() % DECIDING as u128;
        // Always found: the place is less than the number of locks.
        let [first, ..] = &self.deciding;
        self.deciding
            .get(usize::try_from(place).unwrap_or_default())
            .unwrap_or(first)
            .lock()
            .await
    }

    /// Starts a task of the broker's. Its reads of the store give way to those of requests.
    ///
    /// A panic that it does not catch itself ends the process, because no other task would do its
    /// work.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.tasks.spawn(store::in_background(async move {
            if let Err(panic) = caught(task).await {
                end_process("a task of the broker", &panic);
            }
        }))
    }

    /// Sends a signal to a session's driver, which is started if it does not run.
    ///
    /// Waits while the driver's mailbox is full. A signal to a session in quarantine is dropped,
    /// and so is any while the host stops.
    pub(crate) async fn signal(self: &Arc<Self>, session: SessionId, mut signal: Signal) {
        loop {
            if self.stopping.is_cancelled() || self.quarantine.has(session) {
                return;
            }
            let mailbox = self.mailbox(session, &mut self.drivers(), None);
            match mailbox.signals.send(signal).await {
                Ok(()) => return,
                // The driver retired in between: the next inspection starts another.
                Err(mpsc::error::SendError(back)) => signal = back,
            }
            // When the program ends, tasks are dropped instead of started. This yield lets this
            // task end, too.
            tokio::task::yield_now().await;
        }
    }

    /// Wakes a session's driver, which is started if it does not run. Never waits.
    ///
    /// Several wakes before a check cause one check.
    pub(crate) fn wake(self: &Arc<Self>, session: SessionId) {
        self.wake_with(session, None);
    }

    /// Wakes a session's driver unless that would start one driver too many.
    ///
    /// Returns false, with nothing done, when a driver would have to be started and too many are
    /// being started already. Use it when many sessions may have work at once; otherwise see
    /// [`Self::wake`].
    pub(crate) fn try_wake(self: &Arc<Self>, session: SessionId) -> bool {
        let is_driven = self
            .drivers()
            .get(&session)
            .is_some_and(|mailbox| !mailbox.signals.is_closed());
        if is_driven || self.quarantine.has(session) {
            self.wake(session);
            return true;
        }
        let Ok(permit) = self.starting.clone().try_acquire_owned() else {
            return false;
        };
        self.wake_with(session, Some(permit));
        true
    }

    /// Wakes a session's driver, after waiting until a driver may be started.
    pub(crate) async fn wake_in_turn(self: &Arc<Self>, session: SessionId) {
        // The semaphore is never closed.
        if let Ok(permit) = self.starting.clone().acquire_owned().await {
            self.wake_with(session, Some(permit));
        }
    }

    fn wake_with(self: &Arc<Self>, session: SessionId, starting: Option<OwnedSemaphorePermit>) {
        if self.stopping.is_cancelled() || self.quarantine.has(session) {
            return;
        }
        self.wakes.fetch_add(1, Ordering::Relaxed);
        // A driver retires under this lock, so a driver that has been woken does not.
        let mut drivers = self.drivers();
        self.mailbox(session, &mut drivers, starting).wake.set();
    }

    pub(crate) fn stats(&self) -> Stats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            drivers: self.drivers().len(),
            wakes: count(&self.wakes),
            inspections: count(&self.inspections),
            starting: STARTING_MAX.saturating_sub(self.starting.available_permits()),
            to_recover: self.to_recover.load(Ordering::Relaxed),
            quarantined: self.quarantine.count(),
        }
    }

    /// Sets the number of sessions that recovery has to check.
    pub(crate) fn to_recover(&self, sessions: usize) {
        self.to_recover.store(sessions, Ordering::Relaxed);
    }

    /// Counts a session that recovery has checked.
    pub(crate) fn recovered_one(&self) {
        self.to_recover.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a driver's check.
    pub(crate) fn inspected(&self) {
        self.inspections.fetch_add(1, Ordering::Relaxed);
    }

    /// Commits events that give a session work, and wakes the session.
    ///
    /// Runs to its end even if the caller is dropped or panics, because nothing else would wake the
    /// session. The session is not woken for an input that its open run does not take in yet: its
    /// driver checks for that input later.
    pub(crate) async fn commit_work(
        self: &Arc<Self>,
        session: SessionId,
        commit: Commit,
    ) -> Result<Committed, CommitError> {
        let core = self.clone();
        let key = store::api_key_here();
        let (reply, answer) = oneshot::channel();
        self.spawn(async move {
            let committed = store::under_api_key(key, core.store.commit(commit)).await;
            let has_work = committed
                .as_ref()
                .is_ok_and(|committed| !committed.waits_unheard);
            if has_work {
                core.wake(session);
            }
            // The caller may have been dropped.
            let _ = reply.send(committed);
        });
        answer.await.unwrap_or(Err(CommitError::Closed))
    }

    fn drivers(&self) -> MutexGuard<'_, HashMap<SessionId, Mailbox>> {
        self.drivers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mailbox(
        self: &Arc<Self>,
        session: SessionId,
        drivers: &mut HashMap<SessionId, Mailbox>,
        starting: Option<OwnedSemaphorePermit>,
    ) -> Mailbox {
        if let Some(there) = drivers
            .get(&session)
            .filter(|mailbox| !mailbox.signals.is_closed())
        {
            return there.clone();
        }
        let (sender, receiver) = mpsc::channel(MAILBOX_MAX);
        let mailbox = Mailbox {
            signals: sender,
            wake: Arc::default(),
        };
        drivers.insert(session, mailbox.clone());
        let seat = Seat {
            session,
            mailbox: mailbox.clone(),
            inbox: receiver,
            starting,
        };
        (self.port.0)(self.clone(), seat);
        mailbox
    }

    /// Forgets a session's driver, unless a newer one has taken its place.
    ///
    /// Returns false if the driver was woken since its last check, and has to check again. That
    /// does not count while the host stops, because the driver checks after the next start, nor
    /// while the session is in quarantine.
    pub(crate) fn retire(&self, session: SessionId, mailbox: &Mailbox) -> bool {
        let mut drivers = self.drivers();
        if mailbox.wake.is_set() && !self.stopping.is_cancelled() && !self.quarantine.has(session) {
            return false;
        }
        if drivers
            .get(&session)
            .is_some_and(|there| there.signals.same_channel(&mailbox.signals))
        {
            drivers.remove(&session);
        }
        true
    }

    /// Returns those of the blobs that may not be stored yet.
    pub(crate) fn unknown_blobs(
        &self,
        blobs: Vec<(Digest, Arc<Vec<u8>>)>,
    ) -> Vec<(Digest, Arc<Vec<u8>>)> {
        let known = self.known_blobs();
        blobs
            .into_iter()
            .filter(|(digest, _)| !known.contains(digest))
            .collect()
    }

    /// Forgets which blobs are stored.
    pub(crate) fn forget_blobs(&self) {
        self.known_blobs().clear();
    }

    fn known_blobs(&self) -> MutexGuard<'_, HashSet<Digest>> {
        let known = self.known_blobs.lock();
        known.unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers that blobs are stored.
    pub(crate) fn know_blobs(&self, digests: impl Iterator<Item = Digest>) {
        let mut known = self.known_blobs();
        if known.len() > KNOWN_BLOBS_MAX {
            known.clear();
        }
        known.extend(digests);
    }
}
