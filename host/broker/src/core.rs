//! The state that all of the broker shares, with its start and its shutdown.

use crate::buckets::Holds;
use crate::catalogue::Catalogue;
use crate::clock::Clock;
use crate::command::{Broker, Error, UserLimits};
use crate::driver::{Driver, Signal};
use crate::live::Live;
use crate::panics::{caught, end_process};
use crate::paths::PathSettings;
use crate::quarantine::Quarantine;
use crate::recovery::Recovering;
use crate::resolved_config::ResolvedConfigs;
use crate::restored::AfterRestore;
use domain::digest::{Digest, Salt};
use domain::dispatch;
use domain::id::{AgentId, ConversationId, EventId, InputId, RunId, SessionId};
use domain::key::{KEY_ID_CHARS, KEY_SECRET_BYTES};
use domain::queue::QueueOverride;
use domain::residency::Patience;
use domain::time::Timestamp;
use llm::Gateway;
use llm::fair_semaphore::FairSemaphore;
use runtime::Runtime;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{Commit, CommitError, Committed, Store};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// Number of signals that may wait for one session's driver. A sender of more waits.
const MAILBOX_MAX: usize = 256;
/// The time that drivers have to stop their work and to record what it did.
///
/// It is a second for the work to stop, another for what it had under way, and the commit.
const LEAVE: Duration = Duration::from_secs(5);
/// The time that the shutdown waits for the store, whose disk may not answer.
const CLOSE: Duration = Duration::from_secs(5);
/// Number of remembered digests of stored blobs. With more, the list is begun anew.
const KNOWN_BLOBS_MAX: usize = 100_000;

/// Number of drivers that recovery and timers start at a time. Each counts until it has folded its
/// run and looked at what there is to do.
const STARTING_MAX: usize = 64;

/// Number of locks on the queues of sessions. A lock is held while something is decided upon a
/// queue and stored.
const DECIDING: usize = 64;

/// Limits of the broker as a whole.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of model calls that run at the same time on this host. Of those that wait, the most
    /// urgent go first.
    pub model_calls_max: usize,
    /// The limits on how far agents may go with each other.
    pub dispatch: dispatch::Limits,
    /// Tokens reserved for the reply to a model call that names no limit of its own.
    pub reserved_tokens: u64,
    /// The time limit of a dispatch that names none, in milliseconds.
    pub dispatch_ms: u64,
    /// The time that a user has to agree to a call that the host asks about, in milliseconds.
    pub approval_ms: u64,
    /// The queue settings where neither the session nor the message has any.
    pub queue: QueueOverride,
    /// The limits of one user.
    pub users: UserLimits,
    /// The times without work after which agents sleep, and after which those made for a piece of
    /// work are dead.
    pub patience: Patience,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            model_calls_max: 64,
            dispatch: dispatch::Limits::default(),
            reserved_tokens: 4_096,
            dispatch_ms: 300_000,
            approval_ms: 15 * 60 * 1_000,
            queue: QueueOverride::default(),
            users: UserLimits::default(),
            patience: Patience::default(),
        }
    }
}

/// The parts that a broker is made of.
pub struct Parts {
    /// The event store.
    pub store: Store,
    /// The guests' runtime.
    pub runtime: Runtime,
    /// The model gateway.
    pub gateway: Arc<Gateway>,
    /// The catalogue of all that is configured.
    pub catalogue: Catalogue,
    /// Limits.
    pub limits: Limits,
    /// The treatment of work that was under way in the backup that the store was made from, if any.
    pub after_restore: AfterRestore,
    /// The operator's settings on agents by their paths.
    pub paths: PathSettings,
    /// The sessions that are in quarantine from the start. Nothing of them is begun until they are
    /// released.
    pub skipped: Vec<SessionId>,
    /// The host's clock. It begins anew with the store.
    pub clock: Clock,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts")
            .field("catalogue", &self.catalogue)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
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
    /// Number of looks of a driver at what there is to do.
    pub looks: u64,
    /// Number of drivers that recovery or a timer is starting: at most 64 at a time.
    pub starting: usize,
    /// Number of sessions that may have work from before the start and were not looked at yet.
    pub to_recover: usize,
    /// Number of sessions in quarantine.
    pub quarantined: usize,
}

/// The state that all of the broker shares.
pub(crate) struct Core {
    pub(crate) store: Store,
    pub(crate) runtime: Runtime,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) catalogue: Catalogue,
    pub(crate) resolved_configs: ResolvedConfigs,
    pub(crate) limits: Limits,
    pub(crate) paths: PathSettings,
    pub(crate) clock: Clock,
    pub(crate) live: Live,
    /// Number of API keys that were revoked since the start.
    pub(crate) revocations: watch::Sender<u64>,
    pub(crate) model_calls: Arc<FairSemaphore>,
    /// Places for steps, as many as for guests. The order in which sessions get one is decided
    /// here.
    pub(crate) steps: Arc<FairSemaphore>,
    pub(crate) holds: Arc<Holds>,
    /// The sessions for which nothing is done.
    pub(crate) quarantine: Quarantine,
    /// The sessions whose turns are recovered after the host ended without being told to.
    pub(crate) recovering: Recovering,
    /// Locks that are held while a decision upon a session's queue is made and stored. Several
    /// sessions share one.
    deciding: [tokio::sync::Mutex<()>; DECIDING],
    /// Lock that is held while a key is issued. Two together could pass the limit of a user's keys.
    pub(crate) issuing: tokio::sync::Mutex<()>,
    pub(crate) timers: Notify,
    tasks: TaskTracker,
    /// Cancelled when nothing new is to be begun.
    pub(crate) stopping: CancellationToken,
    /// Cancelled when the work under way is to be dropped.
    pub(crate) killed: CancellationToken,
    known_blobs: Mutex<HashSet<Digest>>,
    /// Lock over stored blobs. A commit that names blobs without bringing them along holds it for
    /// reading, and a deletion of blobs for writing.
    pub(crate) naming: tokio::sync::RwLock<()>,
    drivers: Mutex<HashMap<SessionId, Mailbox>>,
    /// The figure [`Stats::wakes`].
    wakes: AtomicU64,
    /// The figure [`Stats::looks`].
    looks: AtomicU64,
    /// The figure [`Stats::to_recover`].
    to_recover: AtomicUsize,
    /// The permits for drivers that recovery or a timer may start now.
    starting: Arc<Semaphore>,
}

/// The way to a session's driver.
#[derive(Clone)]
pub(crate) struct Mailbox {
    /// The channel for signals.
    pub(crate) signals: mpsc::Sender<Signal>,
    /// The flag that there may be something to do.
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
    /// Returns the present time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Keeps idempotency keys longer, by the time of which it is not known whether it has passed.
    pub(crate) fn keep_keys(&self) {
        self.store
            .keep_keys_longer(self.clock.state().gap.map_or(0, |gap| gap.ms));
    }

    /// Waits for a turn to decide something upon a session's queue.
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
    /// A panic that it does not catch itself ends the process, because nobody else would do its
    /// work.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.tasks.spawn(store::in_background(async move {
            if let Err(panic) = caught(task).await {
                end_process("a task of the broker", &panic);
            }
        }))
    }

    /// Sends a signal to a session's driver, which is started if there is none.
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
                // The driver retired in between: the next look starts another.
                Err(mpsc::error::SendError(back)) => signal = back,
            }
            // At the end of the program tasks are dropped instead of begun. This yield lets this
            // task come to its end, too.
            tokio::task::yield_now().await;
        }
    }

    /// Wakes a session's driver, which is started if there is none. Never waits.
    ///
    /// However often a driver is woken before it looks, it looks once.
    pub(crate) fn wake(self: &Arc<Self>, session: SessionId) {
        self.wake_with(session, None);
    }

    /// Wakes a session's driver unless that would start one driver too many.
    ///
    /// Returns false, with nothing done, when a driver would have to be started and too many are
    /// being started already. For moments in which many sessions may have something to do;
    /// otherwise see [`Self::wake`].
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
            looks: count(&self.looks),
            starting: STARTING_MAX.saturating_sub(self.starting.available_permits()),
            to_recover: self.to_recover.load(Ordering::Relaxed),
            quarantined: self.quarantine.count(),
        }
    }

    /// Sets the number of sessions that recovery has to look at.
    pub(crate) fn to_recover(&self, sessions: usize) {
        self.to_recover.store(sessions, Ordering::Relaxed);
    }

    /// Counts a session that recovery has looked at.
    pub(crate) fn recovered_one(&self) {
        self.to_recover.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a driver's look.
    pub(crate) fn looked(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }

    /// Commits what gives a session work, and wakes the session.
    ///
    /// Goes on to its end, even if the caller goes away or panics, because nobody else would wake
    /// the session. It is not woken for an input that its open run does not take in yet: the driver
    /// looks for that when it does.
    pub(crate) async fn commit_work(
        self: &Arc<Self>,
        session: SessionId,
        commit: Commit,
    ) -> Result<Committed, CommitError> {
        let core = self.clone();
        let (reply, answer) = oneshot::channel();
        self.spawn(async move {
            let committed = core.store.commit(commit).await;
            let has_work = committed
                .as_ref()
                .is_ok_and(|committed| !committed.waits_unheard);
            if has_work {
                core.wake(session);
            }
            // The caller may have gone.
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
        let driver = Driver::new(self.clone(), session, mailbox.clone(), receiver, starting);
        self.spawn(driver.drive());
        mailbox
    }

    /// Forgets a session's driver, unless a newer one has taken its place.
    ///
    /// Returns false if the driver was woken since its last look, and has to look again. That does
    /// not count while the host stops, as a driver looks after the next start, or while the session
    /// is in quarantine.
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
        let known = self
            .known_blobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        blobs
            .into_iter()
            .filter(|(digest, _)| !known.contains(digest))
            .collect()
    }

    /// Forgets which blobs are stored.
    pub(crate) fn forget_blobs(&self) {
        self.known_blobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Remembers that blobs are stored.
    pub(crate) fn know_blobs(&self, digests: impl Iterator<Item = Digest>) {
        let mut known = self
            .known_blobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if known.len() > KNOWN_BLOBS_MAX {
            known.clear();
        }
        known.extend(digests);
    }
}

/// Random ids and salts. They are made here only.
pub(crate) mod fresh {
    use super::{
        AgentId, ConversationId, EventId, InputId, KEY_ID_CHARS, KEY_SECRET_BYTES, RunId, Salt,
        SessionId, Uuid,
    };
    use domain::key::{ApiKey, KeyId};

    pub(crate) fn agent() -> AgentId {
        AgentId(Uuid::new_v4())
    }
    pub(crate) fn session() -> SessionId {
        SessionId(Uuid::new_v4())
    }
    pub(crate) fn conversation() -> ConversationId {
        ConversationId(Uuid::new_v4())
    }
    pub(crate) fn run() -> RunId {
        RunId(Uuid::now_v7())
    }
    pub(crate) fn input() -> InputId {
        InputId(Uuid::now_v7())
    }
    pub(crate) fn event() -> EventId {
        EventId(Uuid::now_v7())
    }
    pub(crate) fn salt() -> Salt {
        Salt(*Uuid::new_v4().as_bytes())
    }
    pub(crate) fn api_key() -> Result<ApiKey, getrandom::Error> {
        let (mut id, mut secret) = ([0; KEY_ID_CHARS], [0; KEY_SECRET_BYTES]);
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut secret)?;
        Ok(ApiKey::new(KeyId::of(id), secret))
    }
}

impl Broker {
    /// Starts a broker. It goes on by and by with every run that was open when the last one
    /// stopped.
    ///
    /// # Errors
    /// The store cannot be read. `RESTORED_FROM_BACKUP` when the store was made from a backup with
    /// work under way and the operator has not said what becomes of that ([`AfterRestore`]). A
    /// session to skip does not exist, or a start-up record cannot be committed.
    pub async fn start(parts: Parts) -> Result<Self, Error> {
        let Parts {
            store,
            runtime,
            gateway,
            catalogue,
            limits,
            after_restore,
            paths,
            skipped,
            clock,
        } = parts;
        clock.begin(store.latest_at_open());
        clock.carry().await;
        let resolved_configs = ResolvedConfigs::new(&catalogue);
        let guests = runtime.stats();
        let guests_max = usize::try_from(guests.in_flight + guests.slots_free)
            .unwrap_or(usize::MAX)
            .max(1);
        let core = Arc::new(Core {
            store,
            runtime,
            gateway,
            resolved_configs,
            catalogue,
            limits,
            paths,
            clock,
            live: Live::default(),
            revocations: watch::Sender::default(),
            model_calls: FairSemaphore::new(limits.model_calls_max),
            steps: FairSemaphore::new(guests_max),
            holds: Arc::default(),
            quarantine: Quarantine::default(),
            recovering: Recovering::default(),
            deciding: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            issuing: tokio::sync::Mutex::default(),
            timers: Notify::new(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            killed: CancellationToken::new(),
            known_blobs: Mutex::default(),
            naming: tokio::sync::RwLock::default(),
            drivers: Mutex::default(),
            wakes: AtomicU64::default(),
            looks: AtomicU64::default(),
            to_recover: AtomicUsize::default(),
            starting: Arc::new(Semaphore::new(STARTING_MAX)),
        });
        core.quarantine.skip(&core, skipped).await?;
        // The store of a backup says nothing of how the host that made the backup ended.
        let was_ended = core.store.was_ended()
            || core
                .store
                .backup_mark()
                .await
                .map_err(Error::unavailable)?
                .is_some();
        core.keep_keys();
        crate::restored::see_to(&core, after_restore).await?;
        crate::purge::finish_open(&core).await;
        crate::admission::admit(&core).await?;
        let work = core
            .store
            .sessions_with_work(core.now())
            .await
            .map_err(Error::unavailable)?;
        core.to_recover(work.len());
        core.recovering.begin(&core, was_ended, &work).await;
        core.spawn(crate::recovery::go_on(core.clone(), work));
        core.spawn(crate::timers::watch(core.clone()));
        Ok(Self {
            core,
            is_unruled: false,
        })
    }

    /// Shuts the broker down: no work is begun, what runs is drained, and the store is closed.
    ///
    /// Work has `drain` to come to a commit. Work that is not finished goes on at the next start.
    pub async fn shutdown(&self, drain: Duration) {
        self.core.stopping.cancel();
        self.core.tasks.close();
        if tokio::time::timeout(drain, self.core.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                "some turns did not come to a pause in time; they go on at the next start"
            );
            self.core.killed.cancel();
            // A driver in the middle of a commit finishes it.
            let _ = tokio::time::timeout(LEAVE, self.core.tasks.wait()).await;
        }
        let end = async {
            self.end_work().await;
            self.core.store.close().await;
        };
        if tokio::time::timeout(CLOSE, end).await.is_err() {
            tracing::warn!(
                "the disk does not answer: the store is left as it is, and takes up what its log \
                 holds when it is opened again"
            );
        }
    }
    /// Notes that the host is about to end because it was told to. Work under way goes on at the
    /// next start, and the end does not count against it.
    pub async fn note_end(&self) {
        if tokio::time::timeout(CLOSE, self.end_work()).await.is_err() {
            tracing::warn!(
                "the disk does not answer: it is not noted that the host was told to end"
            );
        }
    }

    async fn end_work(&self) {
        match self.core.store.end_work().await {
            // It is noted already.
            Ok(()) | Err(CommitError::Closed) => {}
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "it cannot be noted that the host was told to end"
            ),
        }
    }
}
