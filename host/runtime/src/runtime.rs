//! The runtime: one engine and one linker, the components that are loaded, and the folders that are
//! open.

mod calling;
mod connecting;
mod loading;

use crate::cache::{Cache, CacheError};
use crate::call::{CallScope, CallState};
use crate::compile::Compiler;
use crate::component::Component;
use crate::config::Config;
use crate::folders::{FolderError, GrantedFolders};
use crate::guest_semaphore::GuestSemaphore;
use crate::host::filesystem::Accounts;
use crate::host::link;
use crate::meter::ProcessMemory;
use crate::selftest::{self, SelfTestFailed};
use domain::digest::Digest;
use domain::grant::{DirectoryGrant, GuestLimits};
use domain::secret::Secrets;
use egress::Egress;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OnceCell, Semaphore};
use wasmtime::component::Linker;
use wasmtime::{Engine, Store};

/// Components that are compiled at the same time.
const COMPILING_MAX: usize = 1;

/// The reason that the runtime did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The engine refuses its configuration.
    #[error("the WebAssembly engine could not be made")]
    Engine(#[source] wasmtime::Error),
    /// The cache folder cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The thread that looks after running guests could not be started.
    #[error("the ticker thread could not be started")]
    Ticker(#[source] std::io::Error),
    /// A guest that has to be stopped was not.
    #[error(transparent)]
    SelfTest(#[from] SelfTestFailed),
}

type Loaded = Arc<OnceCell<Arc<Component>>>;

struct Inner {
    config: Config,
    engine: Engine,
    linker: Linker<CallState>,
    cache: Cache,
    guests: GuestSemaphore,
    process: Arc<ProcessMemory>,
    compiler: Compiler,
    compiling: Arc<Semaphore>,
    loaded: Mutex<HashMap<Digest, Loaded>>,
    folders: GrantedFolders,
    accounts: Accounts,
    counts: Counts,
}

/// Loads components and calls them, each call on a fresh instance within its limits. Cheap to
/// clone.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// Readies the calling thread for guests. Without, the first guest on a thread does, and takes
    /// the process with it if there is no memory for that.
    pub fn ready_thread() {
        Engine::tls_eager_initialize();
    }

    /// Makes the engine, starts its ticker, and shows that guests are stopped at their limits.
    ///
    /// # Errors
    /// Any of these did not work; nothing is left behind but the ticker, which ends by itself.
    pub fn new(config: Config) -> Result<Self, StartError> {
        Self::with_compiler(config, Compiler::thread())
    }

    /// The same, with another compiler of components than a thread of this process.
    ///
    /// # Errors
    /// As for [`Runtime::new`].
    pub fn with_compiler(config: Config, compiler: Compiler) -> Result<Self, StartError> {
        let engine = Engine::new(&config.engine()).map_err(StartError::Engine)?;
        let linker = link::linker(&engine).map_err(StartError::Engine)?;
        let cache = Cache::open(&config.cache_dir, &engine)?;
        let process = Arc::new(ProcessMemory::new(config.process_memory_bytes_max));
        start_ticker(&engine, Duration::from_millis(config.tick_ms.max(1)))
            .map_err(StartError::Ticker)?;
        selftest::check(&engine, &process)?;
        let guests = GuestSemaphore::new(
            config.instances_max,
            config.wait_max,
            Duration::from_millis(config.wait_ms_max),
        );
        Ok(Self(Arc::new(Inner {
            config,
            engine,
            linker,
            cache,
            guests,
            process,
            compiler,
            compiling: Arc::new(Semaphore::new(COMPILING_MAX)),
            loaded: Mutex::default(),
            folders: GrantedFolders::default(),
            accounts: Accounts::default(),
            counts: Counts::default(),
        })))
    }

    /// Opens every folder that is granted, in the place of those that were open before. A call
    /// finds no other folder than these, even if their names stand for others by then; one that was
    /// bound before still finds those that were open before. `own` are
    /// folders of the host's that none of them may hold or lie in, beside the cache. Waits for the
    /// disk.
    ///
    /// # Errors
    /// One of them cannot be opened, is reached through another that may be written, or is the
    /// host's own. Then nothing has changed.
    pub fn open_folders<'a>(
        &self,
        granted: impl IntoIterator<Item = &'a DirectoryGrant>,
        own: &[&Path],
    ) -> Result<(), FolderError> {
        let granted: Vec<&DirectoryGrant> = granted.into_iter().collect();
        let own = [own, &[self.0.config.cache_dir.as_path()]].concat();
        self.0.folders.open(&granted, &own)
    }

    /// Returns the granted folders in whose places others are now, or none. Calls go on in those
    /// that were opened until [`Self::open_folders`] opens what is there.
    #[must_use]
    pub fn moved_folders(&self) -> Vec<PathBuf> {
        self.0.folders.moved()
    }

    /// An engine configuration equal to this runtime's, to compare with: an engine of one's own
    /// shares nothing with the runtime.
    #[must_use]
    pub fn engine_config(&self) -> wasmtime::Config {
        self.0.config.engine()
    }

    /// Bytes of the largest component that is loaded. A reader of a component need not read more.
    #[must_use]
    pub fn component_bytes_max(&self) -> usize {
        self.0.config.component_bytes_max
    }

    /// Returns the one way out over HTTP; none on a host without.
    #[must_use]
    pub fn http_egress(&self) -> Option<Arc<Egress>> {
        self.0.config.egress.clone()
    }

    /// Returns the host's secrets, by name.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.0.config.secrets
    }

    /// Returns the runtime's counters and gauges.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let inner = &*self.0;
        let free = inner.guests.free() as u64;
        Stats {
            in_flight: u64::from(inner.config.instances_max).saturating_sub(free),
            waiting: inner.guests.waiting() as u64,
            permits_free: free,
            memory_bytes: inner.process.bytes(),
            ..inner.counts.read()
        }
    }

    /// Returns a store for one call, which stops the guest at its limits.
    fn store(&self, call_scope: CallScope, limits: &GuestLimits) -> Store<CallState> {
        CallState::new(call_scope, &self.0.process, limits).into_store(&self.0.engine)
    }
}

/// Starts the thread by whose ticks running guests are looked after. It ends with the engine.
fn start_ticker(engine: &Engine, tick: Duration) -> std::io::Result<()> {
    let engine = engine.weak();
    let ticks = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(tick);
        }
    };
    std::thread::Builder::new()
        .name("guest-ticker".to_owned())
        .spawn(ticks)
        .map(drop)
}

/// The state of a runtime in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Stats {
    /// Components that were compiled.
    pub compiled: u64,
    /// Components whose code came from the cache.
    pub loaded_from_cache: u64,
    /// Cache entries that could not be used.
    pub cache_damaged: u64,
    /// Components that were asked what they are.
    pub described: u64,
    /// Steps, trigger runs, and calls of tools and connectors that have ended, refused ones
    /// included.
    pub calls: u64,
    /// Guests that run now.
    pub in_flight: u64,
    /// Calls that wait for a permit now.
    pub waiting: u64,
    /// Permits that are free now.
    pub permits_free: u64,
    /// Bytes of all guests' memories and tables now.
    pub memory_bytes: u64,
}

/// The counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) compiled: AtomicU64,
    pub(crate) loaded_from_cache: AtomicU64,
    pub(crate) cache_damaged: AtomicU64,
    pub(crate) described: AtomicU64,
    pub(crate) calls: AtomicU64,
}

impl Counts {
    /// Returns the counters; the gauges are left at zero.
    pub(crate) fn read(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            compiled: read(&self.compiled),
            loaded_from_cache: read(&self.loaded_from_cache),
            cache_damaged: read(&self.cache_damaged),
            described: read(&self.described),
            calls: read(&self.calls),
            ..Stats::default()
        }
    }
}

/// One more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
