//! Compiling: in a process of its own that may take only so much, or on a thread of this one.
//!
//! A component comes from outside and the compiler is large, so the host lets another process do
//! it: one that eats all of its memory or never ends takes nothing else along. The thread is for
//! programs that use the runtime as a library and have no such process to start.

use crate::cache;
use crate::config::Config;
use crate::load::LoadError;
use rustix::process::{Resource, Rlimit, getppid, setrlimit};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use wasmtime::component::Component as Code;
use wasmtime::{Engine, InstanceAllocationStrategy};

/// Milliseconds that compiling one component may take. Python's, 18 MB, take a third of that on two
/// cores that others use as well.
const COMPILE_MS_MAX: u64 = 120_000;
/// Bytes of compiled code of one component.
const CODE_BYTES_MAX: usize = 512 << 20;
/// The exit code of a compiling process when it is the component that is at fault.
pub const COMPILE_REFUSED: u8 = 3;

/// Threads of a compiling process, and parts of its heap: each reserves addresses, which count as
/// memory.
const THREADS_MAX: &str = "4";
/// Bytes of what a compiling process says is wrong.
const DIAGNOSTICS_BYTES_MAX: usize = 4 << 10;

/// The compiler of components, and its time limit.
#[derive(Debug, Clone)]
pub struct Compiler {
    by: By,
    wall_max: Duration,
}

#[derive(Debug, Clone)]
enum By {
    Thread,
    Process {
        program: PathBuf,
        arguments: Vec<OsString>,
    },
}

/// The lasting limits of a compiling process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// Bytes of addresses.
    pub memory_bytes_max: u64,
    /// Seconds of computing, on all of its threads together.
    pub cpu_s_max: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            memory_bytes_max: 2 << 30,
            cpu_s_max: 120,
        }
    }
}

/// The reason that a compiling process has no code to give.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// It could not be limited, and so did nothing.
    #[error("the process could not be limited")]
    Unlimited(#[source] rustix::io::Errno),
    /// Its parent ended before it could be bound to it, or another process started it.
    #[error("the process is not the child of process {0}")]
    Orphaned(u32),
    /// The component could not be read.
    #[error("the component could not be read")]
    Read(#[source] std::io::Error),
    /// The engine refuses its configuration.
    #[error("the WebAssembly engine could not be made")]
    Engine(#[source] wasmtime::Error),
    /// The component is not valid, or uses a feature that this host leaves out.
    #[error("the component cannot be compiled")]
    Refused(#[source] wasmtime::Error),
    /// The code could not be handed over.
    #[error("the code could not be written")]
    Write(#[source] std::io::Error),
}

impl Compiler {
    /// A thread of this process. After the time limit the component is refused and the thread left
    /// to itself; nothing else is compiled until it ends, if it ever does. Memory is not limited.
    #[must_use]
    pub fn thread() -> Self {
        Self::new(By::Thread)
    }

    /// A process for each component: a program that does [`compile`] from its stdin to its stdout,
    /// and ends with [`COMPILE_REFUSED`] when that is the component's fault. It gets no
    /// environment, and is killed after the time limit.
    #[must_use]
    pub fn process(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self::new(By::Process { program, arguments })
    }

    fn new(by: By) -> Self {
        Self {
            by,
            wall_max: Duration::from_millis(COMPILE_MS_MAX),
        }
    }

    /// Returns the same compiler with another time limit.
    #[must_use]
    pub fn within(self, wall_max: Duration) -> Self {
        Self { wall_max, ..self }
    }

    /// Compiles a component. `permit` is held until the compiler has really ended.
    pub(crate) async fn compile(
        &self,
        engine: &Engine,
        wasm: Vec<u8>,
        permit: OwnedSemaphorePermit,
    ) -> Result<Code, LoadError> {
        match &self.by {
            By::Thread => on_a_thread(engine.clone(), wasm, permit, self.wall_max).await,
            By::Process { program, arguments } => {
                let mut command = Command::new(program);
                // The environment may hold keys, which a compiler has no use for.
                command
                    .args(arguments)
                    .env_clear()
                    .env("RAYON_NUM_THREADS", THREADS_MAX)
                    .env("MALLOC_ARENA_MAX", THREADS_MAX);
                let code = in_a_process(command, &wasm, self.wall_max).await?;
                drop(permit);
                let engine = engine.clone();
                let load = move || cache::trusted(&engine, &code);
                let loaded = tokio::task::spawn_blocking(load).await;
                loaded
                    .map_err(|error| faulted(&error))?
                    .map_err(|error| LoadError::Faulted {
                        detail: format!("the engine refuses what was compiled: {error:#}"),
                    })
            }
        }
    }
}

fn faulted(error: &dyn std::error::Error) -> LoadError {
    LoadError::Faulted {
        detail: format!("the compiler could not be run: {error}"),
    }
}

fn timed_out(wall_max: Duration) -> LoadError {
    LoadError::CompileTimedOut {
        limit_ms: u64::try_from(wall_max.as_millis()).unwrap_or(u64::MAX),
    }
}

/// Compiles on a thread that is not waited for when the program ends: it may never end.
async fn on_a_thread(
    engine: Engine,
    wasm: Vec<u8>,
    permit: OwnedSemaphorePermit,
    wall_max: Duration,
) -> Result<Code, LoadError> {
    let (done, compiled) = oneshot::channel();
    let work = move || {
        let code = Code::new(&engine, &wasm);
        drop(permit);
        // Nobody waits any more after the time limit.
        let _ = done.send(code);
    };
    std::thread::Builder::new()
        .name("compiler".to_owned())
        .spawn(work)
        .map_err(|error| faulted(&error))?;
    match tokio::time::timeout(wall_max, compiled).await {
        Ok(Ok(code)) => code.map_err(LoadError::Invalid),
        Ok(Err(panicked)) => Err(faulted(&panicked)),
        Err(_) => Err(timed_out(wall_max)),
    }
}

async fn in_a_process(
    mut command: Command,
    wasm: &[u8],
    wall_max: Duration,
) -> Result<Vec<u8>, LoadError> {
    let piped = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = piped.spawn().map_err(|error| faulted(&error))?;
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let work = async {
        let give = async {
            if let Some(mut stdin) = stdin {
                // A compiler that has seen enough reads no further.
                let _ = stdin.write_all(wasm).await;
            }
        };
        let ((), code, diagnostics) = tokio::join!(
            give,
            all(stdout, CODE_BYTES_MAX),
            all(stderr, DIAGNOSTICS_BYTES_MAX)
        );
        let ended = child.wait().await;
        (ended, code, diagnostics)
    };
    let Ok((ended, code, diagnostics)) = tokio::time::timeout(wall_max, work).await else {
        // Waits until it is gone, so that it leaves nothing behind.
        let _ = child.kill().await;
        return Err(timed_out(wall_max));
    };
    let ended = ended.map_err(|error| faulted(&error))?;
    match (ended.code(), code) {
        (Some(0), Ok(code)) if code.len() <= CODE_BYTES_MAX => Ok(code),
        (Some(0), Ok(_)) => Err(LoadError::CompilerEnded {
            how: format!("it wrote more than {CODE_BYTES_MAX} bytes"),
        }),
        (Some(0), Err(error)) => Err(faulted(&error)),
        (Some(code), _) if code == i32::from(COMPILE_REFUSED) => Err(LoadError::Invalid(
            wasmtime::Error::msg(one_line(&diagnostics)),
        )),
        _ => Err(LoadError::CompilerEnded {
            how: exit_reason(ended, &one_line(&diagnostics)),
        }),
    }
}

/// Reads everything from a pipe, up to one byte more than the limit. The writer of more finds the
/// pipe closed.
async fn all(pipe: Option<impl AsyncRead + Unpin>, bytes_max: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(bytes_max as u64 + 1)
            .read_to_end(&mut bytes)
            .await?;
    }
    Ok(bytes)
}

/// Returns what the compiler wrote to stderr as one line.
fn one_line(diagnostics: &std::io::Result<Vec<u8>>) -> String {
    let text = diagnostics
        .as_ref()
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .unwrap_or_default();
    crate::log::escaped(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn exit_reason(ended: ExitStatus, diagnostics: &str) -> String {
    if diagnostics.is_empty() {
        ended.to_string()
    } else {
        format!("{ended}: {diagnostics}")
    }
}

/// Runs as a compiling process: limits itself for good, reads a component to its end, and writes
/// its code.
///
/// It can open no file and no socket any more, and leaves no core behind. On Linux it ends with its
/// parent, and its addresses are limited; other systems have no such signal, and map more into
/// every process than the limit allows. `parent` is the process that started it; none when that may
/// be any process.
///
/// # Errors
/// It could not be limited, or there is no code to give. A process that reaches its limits does not
/// come back from this.
pub fn compile(
    parent: Option<u32>,
    limits: CompileLimits,
    mut component: impl Read,
    mut code: impl Write,
) -> Result<(), CompileError> {
    stay_with(parent)?;
    confine(limits)?;
    let mut wasm = Vec::new();
    component
        .read_to_end(&mut wasm)
        .map_err(CompileError::Read)?;
    let mut config = Config::default().engine();
    // The same code comes of it, and the addresses of a pool would not fit.
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    let engine = Engine::new(&config).map_err(CompileError::Engine)?;
    let compiled = engine
        .precompile_component(&wasm)
        .map_err(CompileError::Refused)?;
    code.write_all(&compiled)
        .and_then(|()| code.flush())
        .map_err(CompileError::Write)
}

/// Ends with its parent, or at once when that has ended already.
fn stay_with(parent: Option<u32>) -> Result<(), CompileError> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(CompileError::Unlimited)?;
    // Looked at only now: a parent that ended before sends no signal any more.
    let is_its_child = |parent| {
        getppid().is_some_and(|pid| u32::try_from(pid.as_raw_nonzero().get()) == Ok(parent))
    };
    match parent.filter(|parent| !is_its_child(*parent)) {
        Some(gone) => Err(CompileError::Orphaned(gone)),
        None => Ok(()),
    }
}

fn confine(limits: CompileLimits) -> Result<(), CompileError> {
    if cfg!(target_os = "linux") {
        limit(Resource::As, limits.memory_bytes_max)?;
    }
    // What it needs, stdin, stdout and stderr, is open already.
    limit(Resource::Cpu, limits.cpu_s_max)?;
    limit(Resource::Core, 0)?;
    limit(Resource::Nofile, 0)
}

fn limit(resource: Resource, max: u64) -> Result<(), CompileError> {
    let limit = Rlimit {
        current: Some(max),
        maximum: Some(max),
    };
    setrlimit(resource, limit).map_err(CompileError::Unlimited)
}
