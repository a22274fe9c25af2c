//! What all of the broker shares, and its beginning and end.

use crate::buckets::Holds;
use crate::catalogue::Catalogue;
use crate::command::{Broker, Error};
use crate::driver::{Driver, Signal};
use crate::live::Live;
use crate::outfit::Outfits;
use crate::panics::{caught, end_process};
use crate::paths::PathSettings;
use crate::places::Places;
use crate::restored::AfterRestore;
use domain::digest::{Digest, Salt};
use domain::dispatch;
use domain::id::{AgentId, ConversationId, EventId, InputId, RunId, SessionId};
use domain::key::{KEY_ID_CHARS, KEY_SECRET_BYTES};
use domain::queue::QueueOverride;
use domain::residency::Patience;
use domain::time::Timestamp;
use llm::Gateway;
use runtime::Runtime;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{Commit, CommitError, Committed, Store};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// Signals that may wait for one session's driver; whoever sends more waits.
const MAILBOX_MAX: usize = 256;
/// How long drivers may take to drop what they are doing and to record what it did until then: a second for the work to stop, another for what
/// it had under way, and the commit.
const LEAVE: Duration = Duration::from_secs(5);
/// How long the end of the broker waits for the store, whose disk may not answer.
const CLOSE: Duration = Duration::from_secs(5);
/// Digests of blobs that are known to be stored, before the list is begun anew.
const KNOWN_BLOBS_MAX: usize = 100_000;

/// Sessions upon whose queues something is decided at the same time.
const DECIDING: usize = 64;

/// Limits of the broker as a whole.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Model calls that run at the same time on this host; of those that wait, the most urgent go first.
    pub model_calls_max: usize,
    /// How far agents may go with each other.
    pub dispatch: dispatch::Limits,
    /// Tokens reserved for a model call that names no limit of its own.
    pub reserved_tokens: u64,
    /// How long a dispatch may take that names no time of its own, in milliseconds.
    pub dispatch_ms: u64,
    /// How queues are of which neither session nor message says anything.
    pub queue: QueueOverride,
    /// After how long without work agents sleep, and those that were made for a piece of work are dead.
    pub patience: Patience,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            model_calls_max: 64,
            dispatch: dispatch::Limits::default(),
            reserved_tokens: 4_096,
            dispatch_ms: 300_000,
            queue: QueueOverride::default(),
            patience: Patience::default(),
        }
    }
}

/// What a broker is made of.
pub struct Parts {
    /// The event store.
    pub store: Store,
    /// The guests' runtime.
    pub runtime: Runtime,
    /// The model gateway.
    pub gateway: Arc<Gateway>,
    /// What is configured.
    pub catalogue: Catalogue,
    /// Limits.
    pub limits: Limits,
    /// What to do about work that was under way in the backup that the store was made of, if it was made of one.
    pub after_restore: AfterRestore,
    /// What the operator says of agents by their paths.
    pub paths: PathSettings,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("catalogue", &self.catalogue).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// What all of the broker shares.
pub(crate) struct Core {
    pub(crate) store: Store,
    pub(crate) runtime: Runtime,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) catalogue: Catalogue,
    pub(crate) outfits: Outfits,
    pub(crate) limits: Limits,
    pub(crate) paths: PathSettings,
    pub(crate) live: Live,
    /// How many API keys were revoked since the start.
    pub(crate) revocations: watch::Sender<u64>,
    pub(crate) model_calls: Arc<Places>,
    /// As many steps at a time as there are places for guests: in which order sessions get one is decided here.
    pub(crate) steps: Arc<Places>,
    pub(crate) holds: Arc<Holds>,
    /// Held while something is decided upon a session's queue and stored; several sessions share one.
    deciding: [tokio::sync::Mutex<()>; DECIDING],
    /// Held while a key is issued, so that no two together pass the limit of their user's keys.
    pub(crate) issuing: tokio::sync::Mutex<()>,
    pub(crate) timers: Notify,
    tasks: TaskTracker,
    /// Nothing new is begun.
    pub(crate) stopping: CancellationToken,
    /// What is being worked on is dropped.
    pub(crate) killed: CancellationToken,
    known_blobs: Mutex<HashSet<Digest>>,
    /// Held by whoever commits what names blobs that it does not bring along, because they are known to be stored; and by whoever deletes some.
    pub(crate) naming: tokio::sync::RwLock<()>,
    drivers: Mutex<HashMap<SessionId, mpsc::Sender<Signal>>>,
}

impl Core {
    /// The present. The one place in this crate where a clock is read.
    #[expect(clippy::disallowed_methods, clippy::unused_self, reason = "this is the clock that everything else is handed")]
    pub(crate) fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Waits for its turn to decide something upon a session's queue. What it decides is guarded by its commit all the same; in turn, nobody
    /// has to decide again for others who do the same.
    pub(crate) async fn in_turn(&self, session: SessionId) -> tokio::sync::MutexGuard<'_, ()> {
        let place = session.0.as_u128() % DECIDING as u128;
        // It is less than their number.
        let [first, ..] = &self.deciding;
        self.deciding.get(usize::try_from(place).unwrap_or_default()).unwrap_or(first).lock().await
    }

    /// Starts a task of the broker's. A panic that it does not see to by itself ends the process: nobody else would do its work.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.tasks.spawn(async move {
            if let Err(panic) = caught(task).await {
                end_process("a task of the broker", &panic);
            }
        })
    }

    /// Sends a signal to a session's driver, and starts one if there is none.
    pub(crate) async fn signal(self: &Arc<Self>, session: SessionId, mut signal: Signal) {
        loop {
            if self.stopping.is_cancelled() {
                return;
            }
            let mailbox = self.mailbox(session);
            match mailbox.send(signal).await {
                Ok(()) => return,
                // The driver retired in between: the next look starts another.
                Err(mpsc::error::SendError(back)) => signal = back,
            }
            // Where tasks are dropped instead of begun, because the program ends, this one must come to its end too.
            tokio::task::yield_now().await;
        }
    }

    /// Makes a session's driver look at what there is to do.
    pub(crate) async fn wake(self: &Arc<Self>, session: SessionId) {
        self.signal(session, Signal::Look).await;
    }

    /// Commits what gives a session work, and wakes it: to the end, also if whoever asked for it goes away or panics meanwhile. Nobody else
    /// would wake it. Nobody is woken for what an open run does not take in yet: its driver looks for it when it does.
    pub(crate) async fn commit_work(self: &Arc<Self>, session: SessionId, commit: Commit) -> Result<Committed, CommitError> {
        let core = self.clone();
        let (reply, answer) = oneshot::channel();
        self.spawn(async move {
            let committed = core.store.commit(commit).await;
            let has_work = committed.as_ref().is_ok_and(|committed| !committed.waits_unheard);
            // Whoever asked may have gone. They are told first: a driver that is busy takes its time to be woken.
            let _ = reply.send(committed);
            if has_work {
                core.wake(session).await;
            }
        });
        answer.await.unwrap_or(Err(CommitError::Closed))
    }

    /// [`Self::wake`] from within a driver: drivers never wait for each other's mailboxes.
    pub(crate) fn wake_soon(self: &Arc<Self>, session: SessionId) {
        let core = self.clone();
        self.spawn(async move { core.wake(session).await });
    }

    fn mailbox(self: &Arc<Self>, session: SessionId) -> mpsc::Sender<Signal> {
        let mut drivers = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = drivers.get(&session).filter(|mailbox| !mailbox.is_closed()) {
            return there.clone();
        }
        let (sender, receiver) = mpsc::channel(MAILBOX_MAX);
        drivers.insert(session, sender.clone());
        let driver = Driver::new(self.clone(), session, sender.clone(), receiver);
        self.spawn(driver.drive());
        sender
    }

    /// Forgets a session's driver, unless a newer one has taken its place.
    pub(crate) fn retire(&self, session: SessionId, mailbox: &mpsc::Sender<Signal>) {
        let mut drivers = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
        if drivers.get(&session).is_some_and(|there| there.same_channel(mailbox)) {
            drivers.remove(&session);
        }
    }

    /// Which of these blobs may not be stored yet.
    pub(crate) fn unknown_blobs(&self, blobs: Vec<(Digest, Arc<Vec<u8>>)>) -> Vec<(Digest, Arc<Vec<u8>>)> {
        let known = self.known_blobs.lock().unwrap_or_else(PoisonError::into_inner);
        blobs.into_iter().filter(|(digest, _)| !known.contains(digest)).collect()
    }

    /// Which blobs are stored is not known any more.
    pub(crate) fn forget_blobs(&self) {
        self.known_blobs.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Remembers that blobs are stored.
    pub(crate) fn know_blobs(&self, digests: impl Iterator<Item = Digest>) {
        let mut known = self.known_blobs.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > KNOWN_BLOBS_MAX {
            known.clear();
        }
        known.extend(digests);
    }
}

/// Ids and salts are random, and made here only.
pub(crate) mod fresh {
    use super::{AgentId, ConversationId, EventId, InputId, KEY_ID_CHARS, KEY_SECRET_BYTES, RunId, Salt, SessionId, Uuid};
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
    /// Starts a broker, and goes on with every run that was open when the last one stopped.
    ///
    /// # Errors
    /// When the store cannot be read, and `RESTORED_FROM_BACKUP` when it was made from a backup with work under way and nobody has said what is
    /// to become of that ([`AfterRestore`]).
    pub async fn start(parts: Parts) -> Result<Self, Error> {
        let Parts { store, runtime, gateway, catalogue, limits, after_restore, paths } = parts;
        let outfits = Outfits::new(&catalogue);
        let guests = runtime.stats();
        let guests_max = usize::try_from(guests.in_flight + guests.slots_free).unwrap_or(usize::MAX).max(1);
        let core = Arc::new(Core {
            store,
            runtime,
            gateway,
            outfits,
            catalogue,
            limits,
            paths,
            live: Live::default(),
            revocations: watch::Sender::default(),
            model_calls: Places::new(limits.model_calls_max),
            steps: Places::new(guests_max),
            holds: Arc::default(),
            deciding: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            issuing: tokio::sync::Mutex::default(),
            timers: Notify::new(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            killed: CancellationToken::new(),
            known_blobs: Mutex::default(),
            naming: tokio::sync::RwLock::default(),
            drivers: Mutex::default(),
        });
        crate::restored::see_to(&core, after_restore).await?;
        crate::purge::finish_open(&core).await;
        crate::admission::admit(&core).await?;
        let work = core.store.sessions_with_work(core.now()).await.map_err(Error::unavailable)?;
        for session in work {
            core.wake(session).await;
        }
        core.spawn(crate::timers::watch(core.clone()));
        Ok(Self { core })
    }

    /// Stops taking up work, lets what runs come to a commit for at most `drain`, and closes the store. Whatever was not finished goes on at
    /// the next start.
    pub async fn shutdown(&self, drain: Duration) {
        self.core.stopping.cancel();
        self.core.tasks.close();
        if tokio::time::timeout(drain, self.core.tasks.wait()).await.is_err() {
            tracing::warn!("some turns did not come to a pause in time; they go on at the next start");
            self.core.killed.cancel();
            // A driver that is in the middle of a commit finishes it.
            let _ = tokio::time::timeout(LEAVE, self.core.tasks.wait()).await;
        }
        if tokio::time::timeout(CLOSE, self.core.store.close()).await.is_err() {
            tracing::warn!("the disk does not answer: the store is left as it is, and takes up what its log holds when it is opened again");
        }
    }
}
