//! The state that all routes share: the broker and the edge once they are open, the access rules,
//! and whether the host is ready.

use crate::access::Access;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::quota::{Quotas, SessionShare};
use crate::reloads::{ReloadRequest, Reloads};
use crate::server::Limits;
use crate::stream::tail::Tail;
use crate::visits::Visits;
use broker::{Broker, By};
use bytes::Bytes;
use domain::delegate::Priority;
use domain::error_code::ErrorCode;
use domain::id::AgentId;
use domain::user::UserId;
use edge::Edge;
use llm::fair_semaphore::{FairSemaphore, Party, Permit, Section};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::{EventFilter, Health};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// Files that are on their way to the host at the same time: each is in memory whole.
const UPLOADS_MAX: usize = 16;
/// Files of one user among them, so that places are left for others.
const UPLOADS_OF_USER_MAX: usize = 12;
/// Event streams that are held at the same time while the host starts. Each keeps its connection.
const STREAMS_WAITING_MAX: usize = 1_024;
/// Time that a file waits for other uploads before it is refused.
const UPLOAD_PATIENCE: Duration = Duration::from_secs(5);
/// Large calls from outside, of webhooks and services, that are on their way to the host at the
/// same time: each is in memory whole, and nobody knows yet who sends it.
const LARGE_CALLS_MAX: usize = 32;
/// Bytes from which on a call from outside is a large one.
const LARGE_CALL_BYTES: u64 = 64 << 10;

/// The API of one host. Cheap to clone.
///
/// It can serve before there is a broker: until [`Api::open`], `/readyz` and every route that needs
/// a credential answer 503, but for event streams, which wait ([`crate::stream::held`]).
#[derive(Debug, Clone)]
pub struct Api {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    access: Access,
    limits: Limits,
    backups: PathBuf,
    opened: OnceLock<Opened>,
    /// Cancelled once there is a broker.
    ready: CancellationToken,
    /// Permits for event streams that wait for that.
    startup_wait: Arc<Semaphore>,
    document: OnceLock<Bytes>,
    draining: AtomicBool,
    streams: AtomicUsize,
    quotas: Quotas,
    reloads: Reloads,
    /// Permits for files that are on their way.
    uploads: Arc<FairSemaphore>,
    /// Permits for large calls from outside that are on their way.
    large_calls: Arc<Semaphore>,
    visits: Visits,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

/// The parts that exist once there is a broker.
#[derive(Debug)]
struct Opened {
    broker: Broker,
    edge: Edge,
    tail: Tail,
    at: Instant,
}

/// The readiness of the host to accept requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    Starting,
    Ready {
        /// Sessions for which nothing is done.
        quarantined: usize,
        /// True if the write-ahead log could not be moved to the database at the last try.
        is_log_failing: bool,
    },
    DiskFull,
    NotRecording,
    NotReading,
    Draining,
}

impl Api {
    /// An API without a broker. `backups` is the folder for backups, made when one is asked for;
    /// `stopping` ends the event streams.
    #[must_use]
    pub fn new(
        access: Access,
        limits: Limits,
        backups: PathBuf,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                access,
                limits,
                backups,
                opened: OnceLock::new(),
                ready: CancellationToken::new(),
                startup_wait: Arc::new(Semaphore::new(STREAMS_WAITING_MAX)),
                document: OnceLock::new(),
                draining: AtomicBool::new(false),
                streams: AtomicUsize::new(0),
                quotas: Quotas::default(),
                reloads: Reloads::default(),
                uploads: FairSemaphore::new(UPLOADS_MAX),
                large_calls: Arc::new(Semaphore::new(LARGE_CALLS_MAX)),
                visits: Visits::default(),
                tasks: TaskTracker::new(),
                stopping,
            }),
        }
    }

    /// Serves requests from here on. Only the first broker and the first edge count. It must run
    /// within a runtime: a task reads the events that streams show.
    pub fn open(&self, broker: Broker, edge: Edge) {
        self.shared.opened.get_or_init(|| {
            let following = broker.clone();
            let read = move |after, limit| {
                let broker = following.clone();
                async move {
                    broker
                        .feeds()
                        .events(after, EventFilter::default(), limit)
                        .await
                }
            };
            let durable = broker.maintenance().durable();
            let (tail, reading) = Tail::begin(durable, read, self.shared.stopping.clone());
            self.shared.tasks.spawn(reading);
            Opened {
                broker,
                edge,
                tail,
                at: Instant::now(),
            }
        });
        self.shared.ready.cancel();
    }

    /// Takes requests to read the configuration again from here on. Whoever calls it carries them
    /// out and answers each.
    #[must_use]
    pub fn reload_requests(&self) -> mpsc::Receiver<ReloadRequest> {
        self.shared.reloads.begin()
    }

    /// Passes on a request to read the configuration again.
    ///
    /// # Errors
    /// 429: too many wait. 503: nobody takes them yet, or any more.
    pub(crate) fn ask_to_reload(&self, request: ReloadRequest) -> Result<(), Problem> {
        self.shared.reloads.ask(request)
    }

    /// Refuses commands from here on, and lets `/readyz` report that. Reads and event streams
    /// continue.
    pub fn drain(&self) {
        self.shared.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn access(&self) -> &Access {
        &self.shared.access
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(crate) fn quotas(&self) -> &Quotas {
        &self.shared.quotas
    }

    pub(crate) fn visits(&self) -> &Visits {
        &self.shared.visits
    }

    /// Counts a session that a request is to open. One that was made before under the same
    /// idempotency key opens none, and has its answer also beyond the limit.
    ///
    /// # Errors
    /// 429: there were too many.
    pub(crate) async fn session_share(
        &self,
        caller: &Caller,
        key: Option<&str>,
    ) -> Result<SessionShare, Problem> {
        if self
            .broker()?
            .requests()
            .is_remembered(By {
                user: &caller.user,
                key,
            })
            .await?
        {
            return Ok(self.quotas().no_session());
        }
        self.quotas().session(caller, self.limits())
    }

    pub(crate) fn backups(&self) -> &Path {
        &self.shared.backups
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.shared.tasks
    }

    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.shared.stopping
    }

    /// Cancelled once requests are served.
    pub(crate) fn ready(&self) -> &CancellationToken {
        &self.shared.ready
    }

    /// Takes a permit for an event stream that waits for the host to be ready; none when too many
    /// wait.
    pub(crate) fn wait_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.shared.startup_wait.clone().try_acquire_owned().ok()
    }

    /// The broker, for reading.
    pub(crate) fn broker(&self) -> Result<&Broker, Problem> {
        self.opened().map(|opened| &opened.broker)
    }

    /// The triggers and connectors, for reading.
    pub(crate) fn edge(&self) -> Result<&Edge, Problem> {
        self.opened().map(|opened| &opened.edge)
    }

    /// The triggers and connectors, for a command.
    pub(crate) fn commanded_edge(&self) -> Result<&Edge, Problem> {
        self.command()?;
        self.edge()
    }

    /// The time since requests are served.
    pub(crate) fn uptime(&self) -> Duration {
        let opened = self.shared.opened.get();
        opened.map_or(Duration::ZERO, |opened| opened.at.elapsed())
    }

    /// The newest events, for event streams.
    pub(crate) fn tail(&self) -> Result<&Tail, Problem> {
        self.opened().map(|opened| &opened.tail)
    }

    fn opened(&self) -> Result<&Opened, Problem> {
        self.shared.opened.get().ok_or_else(Problem::starting)
    }

    /// The broker, for a command.
    pub(crate) fn command(&self) -> Result<&Broker, Problem> {
        if self.shared.draining.load(Ordering::Relaxed) {
            return Err(Problem::shutting_down());
        }
        self.broker()
    }

    pub(crate) async fn readiness(&self) -> Readiness {
        if self.shared.draining.load(Ordering::Relaxed) {
            return Readiness::Draining;
        }
        match self.shared.opened.get() {
            None => Readiness::Starting,
            Some(Opened { broker, .. }) => match broker.maintenance().health() {
                Health::Well if broker.maintenance().is_readable().await => Readiness::Ready {
                    quarantined: broker.stats().quarantined,
                    is_log_failing: broker.maintenance().log_state().failing.is_some(),
                },
                Health::Well => Readiness::NotReading,
                Health::Full => Readiness::DiskFull,
                Health::Failing | Health::Stalled => Readiness::NotRecording,
            },
        }
    }

    /// The description of all routes, as JSON. Written once, by `write`.
    pub(crate) fn document(&self, write: impl FnOnce() -> Bytes) -> Bytes {
        self.shared.document.get_or_init(write).clone()
    }

    /// Takes a permit for a file that is on its way. Users take turns.
    ///
    /// # Errors
    /// 429: too many others are on their way.
    pub(crate) async fn upload_permit(&self, user: &UserId) -> Result<Permit, Problem> {
        let party = Party {
            user: user.clone(),
            agent: AgentId(Uuid::nil()),
            priority: Priority::default(),
            section: Some(Section {
                name: user.as_str().into(),
                permits: UPLOADS_OF_USER_MAX,
            }),
        };
        let permit = self.shared.uploads.enter(party);
        match timeout(UPLOAD_PATIENCE, permit).await {
            Ok(permit) => Ok(permit),
            Err(_) => {
                let detail =
                    "too many files are being uploaded to this host; try again in a moment";
                Err(Problem::new(ErrorCode::TooManyUploads, detail)
                    .retry_after(UPLOAD_PATIENCE.as_secs()))
            }
        }
    }

    /// Takes a permit for a call from outside that says it has so many bytes, or does not say; none
    /// for a small one, which needs none.
    ///
    /// # Errors
    /// 429: too many others are on their way.
    pub(crate) fn call_permit(
        &self,
        bytes: Option<u64>,
    ) -> Result<Option<OwnedSemaphorePermit>, Problem> {
        if bytes.is_some_and(|bytes| bytes <= LARGE_CALL_BYTES) {
            return Ok(None);
        }
        let permit = self.shared.large_calls.clone().try_acquire_owned();
        permit.map(Some).map_err(|_| {
            let detail =
                "too many large calls are on their way to this host; try again in a moment";
            Problem::new(ErrorCode::TooManyCalls, detail)
        })
    }

    /// A place among the event streams; none when all are taken.
    pub(crate) fn stream_place(&self) -> Option<StreamPlace> {
        let place = StreamPlace { api: self.clone() };
        // Taken before it is compared: the place is left again when it is dropped.
        let before = self.shared.streams.fetch_add(1, Ordering::Relaxed);
        (before < self.shared.limits.streams_max).then_some(place)
    }
}

/// One event stream's place.
#[derive(Debug)]
pub(crate) struct StreamPlace {
    api: Api,
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.api.shared.streams.fetch_sub(1, Ordering::Relaxed);
    }
}
