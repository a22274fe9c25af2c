//! The runtime: one engine, one linker, and the way from a component's bytes to the outcome of a
//! call.

use crate::artifacts;
use crate::cache::{Cache, CacheError, Entry, Found};
use crate::call::{CallState, Purpose, ToolWork, memory_meter};
use crate::call_audit::CallAudit;
use crate::compile::Compiler;
use crate::component::{Component, Described, World};
use crate::config::Config;
use crate::convert::describe::{agent_description, tool_definitions};
use crate::convert::{
    Unacceptable, step::step_result, tool::call_context, tool::call_result, view::guest_news,
};
use crate::folders::{FolderError, GrantedFolders};
use crate::host::audit_recorder::AuditRecorder;
use crate::host::clock_and_randomness::ClockAndRandomness;
use crate::host::filesystem::{Accounts, Folders};
use crate::host::http::WayOut;
use crate::host::keyvalue::WriteOverlay;
use crate::host::link;
use crate::host::progress::Noting;
use crate::host::secrets::BoundSecrets;
use crate::host::turn::{StepView, ViewHandle};
use crate::load::{self, LoadError};
use crate::log::LogLine;
use crate::meter::ProcessMemory;
use crate::outcome::{Called, NotAdmitted, Outcome, Ran, Stepped, TurnedAway, Written};
use crate::redacted;
use crate::run;
use crate::selftest::{self, SelfTestFailed};
use crate::slots::{Admission, Gate, Slots, Turned};
use crate::stats::{Counts, Stats, count};
use crate::tool::ToolCall;
use crate::view::{Buckets, Notes, View};
use domain::basis::Basis;
use domain::digest::Digest;
use domain::event::{STEP, TOOL_CALL};
use domain::grant::{Bound, DirectoryGrant, GuestLimits};
use domain::operation::CallUsage;
use domain::step::News;
use domain::time::Timestamp;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OnceCell, Semaphore};
use wasmtime::component::{Component as Code, Linker, Resource};
use wasmtime::{Engine, Store};

/// Components that are compiled at the same time.
const COMPILING_MAX: usize = 1;
/// Milliseconds that a component waits for others to be compiled before it is refused as busy.
const COMPILE_WAIT_MS_MAX: u64 = 600_000;

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
    slots: Slots,
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

/// The means that one call gets from the machine.
struct Means<'a> {
    purpose: Purpose,
    clock_and_randomness: ClockAndRandomness,
    directories: &'a [DirectoryGrant],
    way_out: WayOut,
    recorder: AuditRecorder,
    limits: &'a GuestLimits,
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
        let slots = Slots::new(
            config.instances_max,
            config.wait_max,
            Duration::from_millis(config.wait_ms_max),
        );
        Ok(Self(Arc::new(Inner {
            config,
            engine,
            linker,
            cache,
            slots,
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
    /// finds no other folder than these, even if their names stand for others by then. `own` are
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
        let own: Vec<PathBuf> = own
            .iter()
            .copied()
            .chain([&*self.0.config.cache_dir])
            .map(Path::to_owned)
            .collect();
        self.0.folders.open(&granted, &own)
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

    /// Returns the runtime's counters and gauges.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let Inner {
            counts,
            slots,
            config,
            process,
            ..
        } = &*self.0;
        let free = slots.free() as u64;
        Stats {
            in_flight: u64::from(config.instances_max).saturating_sub(free),
            waiting: slots.waiting() as u64,
            slots_free: free,
            memory_bytes: process.bytes(),
            ..counts.read()
        }
    }

    /// Loads a component, or returns it when it is loaded already. Its code comes from the cache
    /// when it was compiled before.
    ///
    /// # Errors
    /// See [`LoadError`]. A component that was refused is looked at anew the next time.
    pub async fn load(&self, wasm: Vec<u8>) -> Result<Arc<Component>, LoadError> {
        let (size, max) = (wasm.len(), self.0.config.component_bytes_max);
        if size > max {
            return Err(LoadError::TooLarge { size, max });
        }
        let (digest, wasm) = blocking(move || (Digest::of(&wasm), wasm)).await?;
        let cell = self
            .0
            .loaded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(digest)
            .or_default()
            .clone();
        let artifact =
            (!artifacts::is_kept(&self.0.config.cache_dir, digest)).then(|| wasm.clone());
        let loaded = cell
            .get_or_try_init(|| Box::pin(self.load_new(digest, wasm)))
            .await
            .cloned();
        if let (Ok(_), Some(artifact)) = (&loaded, artifact) {
            self.keep_artifact(digest, artifact).await?;
        }
        if loaded.is_err() {
            let mut loaded = self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            loaded.retain(|known, cell| *known != digest || cell.initialized());
        }
        loaded
    }

    /// A component that was loaded once, now or by an earlier process; none when it is gone. For
    /// turns that began with a version that the operator has replaced since.
    pub async fn kept(&self, digest: Digest) -> Option<Arc<Component>> {
        let loaded = self
            .0
            .loaded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&digest)
            .and_then(|cell| cell.get().cloned());
        if loaded.is_some() {
            return loaded;
        }
        let wasm = self
            .blocking(move |inner| artifacts::read(&inner.config.cache_dir, digest))
            .await
            .ok()??;
        self.load(wasm).await.inspect_err(|error| tracing::warn!(component.digest = %digest, %error, "a kept component does not load")).ok()
    }

    async fn keep_artifact(&self, digest: Digest, wasm: Vec<u8>) -> Result<(), LoadError> {
        let kept = self
            .blocking(move |inner| artifacts::keep(&inner.config.cache_dir, digest, &wasm))
            .await?;
        if let Err(error) = kept {
            tracing::warn!(component.digest = %digest, %error, "a component could not be kept: \
                turns that began with it need its file");
        }
        Ok(())
    }

    async fn load_new(&self, digest: Digest, wasm: Vec<u8>) -> Result<Arc<Component>, LoadError> {
        let size_bytes = wasm.len() as u64;
        let found = self
            .blocking(move |inner| inner.cache.read(&inner.engine, digest))
            .await?;
        let (code, described) = match found {
            Found::Sound(entry) => {
                let Entry { code, described } = *entry;
                count(&self.0.counts.loaded_from_cache);
                (code, Some(described))
            }
            Found::Nothing => (self.compile(wasm).await?, None),
            Found::Damaged => {
                count(&self.0.counts.cache_damaged);
                (self.compile(wasm).await?, None)
            }
        };
        let (world, imports) = load::link(&self.0.engine, &self.0.linker, &code)?;
        let described = match described {
            Some(described) => described,
            None => {
                let described = self.describe(&world).await?;
                self.keep(digest, code, described.clone()).await?;
                described
            }
        };
        // Also of what an earlier version of this host has kept.
        described
            .check_wording()
            .map_err(|wrong| LoadError::DescribeRefused {
                detail: wrong.to_string(),
            })?;
        tracing::info!(component.digest = %digest, component.bytes = size_bytes, "component \
            loaded");
        let (described, world, gate) = (
            Arc::new(described),
            Arc::new(world),
            Arc::new(Gate::default()),
        );
        Ok(Arc::new(Component {
            digest,
            name: digest.to_string(),
            described,
            imports: imports.into(),
            size_bytes,
            world,
            gate,
        }))
    }

    async fn compile(&self, wasm: Vec<u8>) -> Result<Code, LoadError> {
        let wasm = blocking(move || load::inspect(&wasm).map(|()| wasm)).await??;
        let turn = self.0.compiling.clone().acquire_owned();
        let turn = tokio::time::timeout(Duration::from_millis(COMPILE_WAIT_MS_MAX), turn).await;
        // The semaphore is never closed.
        let permit = turn.ok().and_then(Result::ok).ok_or(LoadError::Busy)?;
        let code = self
            .0
            .compiler
            .compile(&self.0.engine, wasm, permit)
            .await?;
        count(&self.0.counts.compiled);
        Ok(code)
    }

    /// Keeps compiled code for the next start. A full disk costs time at that start and nothing
    /// else.
    async fn keep(
        &self,
        digest: Digest,
        code: Code,
        described: Described,
    ) -> Result<(), LoadError> {
        let kept = self
            .blocking(move |inner| inner.cache.write(digest, &code, &described))
            .await?;
        if let Err(error) = kept {
            tracing::warn!(component.digest = %digest, %error, "compiled code could not be kept \
                and will be compiled again at the next start");
        }
        Ok(())
    }

    async fn describe(&self, world: &World) -> Result<Described, LoadError> {
        count(&self.0.counts.described);
        let limits = self.0.config.describe;
        let _slot = self.0.slots.enter_ungated().await.ok_or(LoadError::Busy)?;
        let clock_and_randomness =
            ClockAndRandomness::frozen(Timestamp(0), Digest::of(b"describe"));
        let means = Means {
            purpose: Purpose::Describe,
            clock_and_randomness,
            directories: &[],
            way_out: WayOut::default(),
            recorder: AuditRecorder::default(),
            limits: &limits,
        };
        let mut store = self
            .store(means)
            .map_err(|detail| LoadError::Faulted { detail })?;
        let time = store.data().time();
        let guest = async {
            Ok(match world {
                World::Agent(pre) => {
                    let plugin = pre.instantiate_async(&mut store).await?;
                    let description = plugin
                        .agent_host_plugin_agent()
                        .call_describe(&mut store)
                        .await?;
                    agent_description(description).map(Described::Agent)
                }
                World::Tools(pre) => {
                    let plugin = pre.instantiate_async(&mut store).await?;
                    let tools = plugin
                        .agent_host_plugin_tools()
                        .call_describe(&mut store)
                        .await?;
                    tool_definitions(tools).map(Described::Tools)
                }
            })
        };
        let ended = run::drive(&time, Duration::from_millis(limits.wall_ms_max), guest).await;
        let (logs, _) = store.data().log.take();
        match run::outcome(ended, store.data(), &time, &logs) {
            Outcome::Returned(Ok(described)) => Ok(described),
            Outcome::Returned(Err(Unacceptable(detail))) | Outcome::Refused { detail } => {
                Err(LoadError::DescribeRefused { detail })
            }
            Outcome::Trapped { message, .. } => Err(LoadError::DescribeTrapped { message }),
            Outcome::OutOfMemory => Err(LoadError::DescribeStopped {
                limit: "needs more memory than it may have",
            }),
            Outcome::OutOfCpu => Err(LoadError::DescribeStopped {
                limit: "computes for too long",
            }),
            Outcome::TimedOut => Err(LoadError::DescribeStopped {
                limit: "takes too long",
            }),
            Outcome::Busy | Outcome::TooOften { .. } => Err(LoadError::Busy),
            Outcome::Faulted { detail } => Err(LoadError::Faulted { detail }),
        }
    }

    /// Lets one step of a component in: waits until it has a slot, and counts it as one of the
    /// component's calls within a minute. Whatever the step is to see may be read afterwards.
    ///
    /// # Errors
    /// Too many calls are under way or wait, it took too long, or the component was called as often
    /// as it may be.
    pub async fn admit(
        &self,
        component: &Component,
        limits: &GuestLimits,
    ) -> Result<Admission, TurnedAway> {
        match self.0.slots.admit(&component.gate, limits).await {
            Ok(slot) => Ok(Admission {
                slot,
                gate: component.gate.clone(),
                limits: *limits,
            }),
            Err(turned) => {
                let recorder = AuditRecorder::default();
                recorder.met(STEP, turned.limit());
                count(&self.0.counts.calls);
                Err(TurnedAway {
                    why: NotAdmitted::from(&turned),
                    decided: recorder.take(),
                })
            }
        }
    }

    /// Asks an agent that was let in what happens next: at once. The same component, view, news and
    /// basis give the same result.
    pub async fn step(
        &self,
        admission: Admission,
        component: &Component,
        view: Arc<dyn View>,
        news: &[News],
        basis: &Basis,
    ) -> Stepped {
        let recorder = AuditRecorder::default();
        let Admission {
            slot: _slot,
            gate,
            limits,
        } = admission;
        if !Arc::ptr_eq(&gate, &component.gate) {
            return stepped(
                self.unmet(Outcome::Faulted {
                    detail: format!("component {} was not let in", component.digest),
                }),
                &recorder,
            );
        }
        let World::Agent(pre) = &*component.world else {
            return stepped(
                self.unmet(Outcome::Faulted {
                    detail: format!("component {} is not an agent", component.digest),
                }),
                &recorder,
            );
        };
        let purpose = Purpose::Step(Box::new(StepView::new(view, basis)));
        let clock_and_randomness = ClockAndRandomness::frozen(basis.now, basis.seed);
        let means = Means {
            purpose,
            clock_and_randomness,
            directories: &[],
            way_out: WayOut::default(),
            recorder: recorder.clone(),
            limits: &limits,
        };
        let mut store = match self.store(means) {
            Ok(store) => store,
            Err(detail) => return stepped(self.unmet(Outcome::Faulted { detail }), &recorder),
        };
        let time = store.data().time();
        let news = guest_news(news);
        let guest = async {
            let plugin = pre.instantiate_async(&mut store).await?;
            // The host knows which view is meant, so the number behind the handle says nothing.
            let view = Resource::<ViewHandle>::new_borrow(0);
            plugin
                .agent_host_plugin_agent()
                .call_step(&mut store, view, &news)
                .await
        };
        let ended = run::drive(&time, Duration::from_millis(limits.wall_ms_max), guest).await;
        let ended = self.ended(&mut store, |state, logs| {
            run::outcome(ended, state, &time, logs)
        });
        let Ended {
            outcome,
            usage,
            answers,
            logs,
        } = ended;
        judge(component, &outcome);
        let outcome = outcome.and_then(|result| accepted(step_result(result)));
        Stepped {
            outcome,
            usage,
            answers,
            logs,
            decided: recorder.take(),
        }
    }

    /// Calls a tool with what of its component's grant it is bound to. What it wrote to buckets is
    /// in what comes back, and nowhere else.
    pub async fn call(
        &self,
        component: &Component,
        bound: &Bound,
        call: ToolCall,
        notes: Arc<dyn Notes>,
        buckets: Arc<dyn Buckets>,
    ) -> Called {
        let audit = CallAudit::default();
        let Ran {
            outcome,
            usage,
            logs,
            written,
        } = self
            .call_noting(component, bound, call, notes, buckets, &audit)
            .await;
        let (decided, egress) = audit.take();
        Called {
            outcome,
            usage,
            logs,
            decided,
            egress,
            written,
        }
    }

    /// The same with a call audit of the caller's: if the call is cut off, what happened until then
    /// is in it.
    pub async fn call_noting(
        &self,
        component: &Component,
        bound: &Bound,
        call: ToolCall,
        notes: Arc<dyn Notes>,
        buckets: Arc<dyn Buckets>,
        audit: &CallAudit,
    ) -> Ran {
        let (limits, recorder) = (&bound.limits, audit.recorder(bound.rulings.clone()));
        let World::Tools(pre) = &*component.world else {
            return ran(self.unmet(Outcome::Faulted {
                detail: format!("component {} has no tools", component.digest),
            }));
        };
        let _slot = match self.0.slots.admit(&component.gate, limits).await {
            Ok(slot) => slot,
            Err(turned) => return ran(self.turned_away(&turned, &recorder)),
        };
        notes.begun();
        let secrets = BoundSecrets::new(&bound.secrets, self.0.config.secrets.clone());
        let redactor = secrets.redactor();
        recorder.redact(&redactor);
        let (egress, name) = (self.0.config.egress.clone(), component.name.clone());
        let way_out = WayOut::open(egress, bound, secrets, name, recorder.clone(), audit);
        let noting = Noting::new(notes, redactor.clone());
        let (overlay, environment) = (
            WriteOverlay::new(buckets, &bound.key_value),
            bound.environment.clone(),
        );
        let purpose = Purpose::Tool(Box::new(ToolWork {
            noting,
            overlay,
            environment,
        }));
        let means = Means {
            purpose,
            clock_and_randomness: ClockAndRandomness::live(),
            directories: &bound.directories,
            way_out,
            recorder,
            limits,
        };
        let mut store = match self.store(means) {
            Ok(store) => store,
            Err(detail) => return ran(self.unmet(Outcome::Faulted { detail })),
        };
        let time = store.data().time();
        let wall_ms = limits.wall_ms_max.min(u64::from(call.deadline_ms));
        let context = call_context(&call, u32::try_from(wall_ms).unwrap_or(u32::MAX));
        let guest = async {
            let plugin = pre.instantiate_async(&mut store).await?;
            plugin
                .agent_host_plugin_tools()
                .call_call(&mut store, &context, &call.tool, &call.arguments)
                .await
        };
        let ended = run::drive(&time, Duration::from_millis(wall_ms), guest).await;
        let ended = self.ended(&mut store, |state, logs| {
            run::outcome(ended, state, &time, logs)
        });
        let written = store.data_mut().take_written();
        // With it go the call's connections.
        drop(store);
        audit.closed().await;
        let Ended {
            outcome,
            usage,
            answers: _,
            mut logs,
        } = ended;
        judge(component, &outcome);
        redacted::logs(&redactor, &mut logs);
        let outcome = redacted::outcome(
            &redactor,
            outcome.and_then(|result| accepted(call_result(result))),
        );
        let written = if matches!(outcome, Outcome::Returned(Ok(_))) {
            written
        } else {
            Written::default()
        };
        Ran {
            outcome,
            usage,
            logs,
            written: redacted::written(&redactor, written),
        }
    }

    fn store(&self, means: Means<'_>) -> Result<Store<CallState>, String> {
        let Means {
            purpose,
            clock_and_randomness,
            directories,
            way_out,
            recorder,
            limits,
        } = means;
        let memory = memory_meter(&self.0.process, limits);
        let folders = Folders::of(directories, &self.0.folders, &self.0.accounts)
            .map_err(|error| told(&error))?;
        Ok(CallState::new(
            purpose,
            clock_and_randomness,
            folders,
            way_out,
            recorder,
            memory,
            limits,
        )
        .into_store(&self.0.engine))
    }

    /// Everything that remains of a call.
    fn ended<T>(
        &self,
        store: &mut Store<CallState>,
        outcome: impl FnOnce(&CallState, &[LogLine]) -> Outcome<T>,
    ) -> Ended<T> {
        count(&self.0.counts.calls);
        let state = store.data_mut();
        let (logs, dropped) = state.log.take();
        let outcome = outcome(state, &logs);
        run::note_limits(&outcome, state, dropped);
        let usage = state.usage(self.0.config.tick_ms, dropped);
        Ended {
            outcome,
            usage,
            answers: state.answers(),
            logs,
        }
    }

    /// Returns the result of a call that never began.
    fn unmet<T>(&self, outcome: Outcome<T>) -> Ended<T> {
        count(&self.0.counts.calls);
        Ended {
            outcome,
            usage: CallUsage::default(),
            answers: Digest::of(&[]),
            logs: Vec::new(),
        }
    }

    /// Returns the result of a call of a tool that was not let in, and records that it was not.
    fn turned_away<T>(&self, turned: &Turned, recorder: &AuditRecorder) -> Ended<T> {
        recorder.met(TOOL_CALL, turned.limit());
        self.unmet(NotAdmitted::from(turned).into())
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> Result<T, LoadError> {
        let inner = self.0.clone();
        blocking(move || work(&inner)).await
    }
}

struct Ended<T> {
    outcome: Outcome<T>,
    usage: CallUsage,
    answers: Digest,
    logs: Vec<LogLine>,
}

fn stepped(ended: Ended<domain::step::StepResult>, recorder: &AuditRecorder) -> Stepped {
    let Ended {
        outcome,
        usage,
        answers,
        logs,
    } = ended;
    Stepped {
        outcome,
        usage,
        answers,
        logs,
        decided: recorder.take(),
    }
}

fn ran(ended: Ended<Result<domain::tool::Progress, domain::tool::ToolError>>) -> Ran {
    let Ended {
        outcome,
        usage,
        answers: _,
        logs,
    } = ended;
    Ran {
        outcome,
        usage,
        logs,
        written: Written::default(),
    }
}

/// Remembers of a component that it computed until it was stopped.
fn judge<T>(component: &Component, outcome: &Outcome<T>) {
    if matches!(outcome, Outcome::OutOfCpu) {
        component.gate.offended(Instant::now());
    }
}

/// An error of a folder, with the machine's answer.
fn told(error: &FolderError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn accepted<T>(read: Result<T, Unacceptable>) -> Outcome<T> {
    match read {
        Ok(value) => Outcome::Returned(value),
        Err(Unacceptable(detail)) => Outcome::Refused { detail },
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LoadError> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.map_err(|error| LoadError::Faulted {
        detail: error.to_string(),
    })
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
