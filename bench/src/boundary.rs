//! The cost of the boundary: a granted host call beside the bare host function, and limits on
//! beside limits off. Also the share that is left to an honest tenant beside others that never stop
//! computing.

use crate::instance::anyhow_error;
use crate::measure::{Pair, in_turns, median, ms, us};
use crate::report::{Bar, Row};
use agent_host_tests::guests::wasm;
use agent_host_tests::world;
use anyhow::{Context, ensure};
use domain::grant::{Access, Bound, DirectoryGrant, GuestLimits};
use domain::ruling::{Rule, Ruling};
use runtime::{Component, EmptyBuckets, Notes, Outcome, Runtime, ToolCall};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wasmtime::component::{Component as Code, Linker, ResourceTable};
use wasmtime::{Config, Engine, Store};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};

/// The program that works.
const PROGRAM: &str = "toil";
/// Host calls of one measurement.
const HOST_CALLS: u32 = 100_000;
/// Host calls of one measurement that wait for nothing.
const QUICK_CALLS: u32 = 1_000_000;
/// Below which number primes are looked for: the tightest of loops, of which every turn is checked.
const SIEVE: u32 = 2_000_000;
/// Documents of fifty rows that are written, read and written again.
const DOCUMENTS: u32 = 300;
/// Calls of the honest tenant in one measurement.
const HONEST_CALLS: usize = 200;
/// Milliseconds of computing that a runaway is allowed.
const RUNAWAY_CPU_MS: u64 = 200;
/// Milliseconds between two ticks of the epoch.
const TICK_MS: f64 = 5.0;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "tool-plugin",
        imports: { default: trappable },
        exports: { default: async },
        require_store_data_send: true,
    });
}

use bindings::exports::agent_host::plugin::tools::CallContext;

struct Bare {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for Bare {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl bindings::agent_host::plugin::progress::Host for Bare {
    fn note(&mut self, _message: String) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl bindings::wasi::logging::logging::Host for Bare {
    fn log(
        &mut self,
        _level: bindings::wasi::logging::logging::Level,
        _context: String,
        _message: String,
    ) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl bindings::agent_host::plugin::types::Host for Bare {}

struct Unwatched;

impl Notes for Unwatched {
    fn note(&self, _message: &str) {}
}

pub(crate) async fn run() -> anyhow::Result<Vec<Row>> {
    let runtime = world::runtime();
    let component = runtime.load(wasm(PROGRAM)).await?;
    let folder = TempDir::new()?;
    std::fs::write(folder.path().join("file.txt"), "x")?;
    let bound = bound(folder.path());
    runtime.open_folders(&bound.directories, &[])?;
    let work = Work {
        runtime: &runtime,
        component: &component,
        bound: &bound,
        folder: folder.path(),
    };
    let host_calls = work.host_call_us("stats", HOST_CALLS).await?;
    let quick_calls = work.host_call_us("environments", QUICK_CALLS).await?;
    let compute = work.computing_ms("sieve", SIEVE).await?;
    let documents = work.computing_ms("json", DOCUMENTS).await?;
    let mut rows = vec![
        Row::new(
            "granted host call / bare host function",
            "µs",
            quick_calls,
            Bar::Within(2.0),
        ),
        Row::new(
            "what the grant adds to a host call",
            "µs",
            added(quick_calls),
            Bar::AtMost(1.0),
        ),
        Row::new(
            "granted host call to the disk / bare",
            "µs",
            host_calls,
            Bar::Within(2.0),
        ),
        Row::new(
            "what the grant adds to one to the disk",
            "µs",
            added(host_calls),
            Bar::AtMost(1.0),
        ),
        Row::new(
            "computing on documents, limits on / off",
            "ms",
            documents,
            Bar::Within(1.15),
        ),
        Row::new(
            "computing a sieve, limits on / off",
            "ms",
            compute,
            Bar::Within(1.15),
        ),
    ];
    rows.extend(crate::ledger::run().await?);
    rows.extend(runaways(&runtime, &component, &bound).await?);
    Ok(rows)
}

/// Returns what the first of two measurements has more than the second.
fn added(pair: Pair) -> Pair {
    Pair {
        ours: pair.ours - pair.peer,
        peer: 1.0,
    }
}

/// Work that is done by this host, and by wasmtime and WASI alone.
struct Work<'a> {
    runtime: &'a Runtime,
    component: &'a Component,
    bound: &'a Bound,
    folder: &'a Path,
}

impl Work<'_> {
    /// Measures the microseconds of a host call, over so many of them.
    async fn host_call_us(&self, tool: &str, calls: u32) -> anyhow::Result<Pair> {
        let times = f64::from(calls);
        in_turns(
            async || Ok(us(self.granted(tool, calls).await?) / times),
            async || {
                let config = self.runtime.engine_config();
                Ok(us(bare(&config, self.folder, tool, calls).await?) / times)
            },
        )
        .await
    }

    /// Measures the milliseconds of computing, with the limits on and off.
    async fn computing_ms(&self, tool: &str, number: u32) -> anyhow::Result<Pair> {
        let mut free = self.runtime.engine_config();
        free.epoch_interruption(false);
        in_turns(
            async || Ok(ms(self.granted(tool, number).await?)),
            async || Ok(ms(bare(&free, self.folder, tool, number).await?)),
        )
        .await
    }

    async fn granted(&self, tool: &str, number: u32) -> anyhow::Result<Duration> {
        ours(self.runtime, self.component, self.bound, tool, number).await
    }
}

fn bound(folder: &Path) -> Bound {
    let directory = DirectoryGrant::whole(folder, "/data", Access::ReadOnly);
    let rulings = ["files.read", "env.read"]
        .map(|name| Ruling {
            capability: name.into(),
            allowed: true,
            rule: Rule::Granted,
        })
        .to_vec();
    let environment = BTreeMap::from([("WORD".to_owned(), "granted".to_owned())]);
    let limits = GuestLimits {
        cpu_ms_max: 60_000,
        wall_ms_max: 60_000,
        calls_per_minute_max: 1_000_000,
        ..GuestLimits::default()
    };
    Bound {
        directories: vec![directory],
        environment,
        limits,
        rulings,
        ..Bound::default()
    }
}

fn call(tool: &str, number: u32) -> ToolCall {
    ToolCall {
        agent_id: "a".into(),
        session_id: "s".into(),
        user_id: "u".into(),
        call_id: "c".into(),
        idempotency_key: "k".into(),
        segment: 0,
        resumed: None,
        answer: None,
        tool: tool.to_owned(),
        arguments: number.to_string(),
        deadline_ms: 60_000,
    }
}

/// Measures a call of the host's, from its instance to its end.
async fn ours(
    runtime: &Runtime,
    component: &Component,
    bound: &Bound,
    tool: &str,
    number: u32,
) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let called = runtime
        .call(
            component,
            bound,
            call(tool, number),
            Arc::new(Unwatched),
            Arc::new(EmptyBuckets),
        )
        .await;
    ensure!(
        matches!(called.outcome, Outcome::Returned(Ok(_))),
        "the call ended as {:?}",
        called.outcome
    );
    Ok(began.elapsed())
}

/// Measures the same with wasmtime and WASI alone, on an engine of its own.
async fn bare(config: &Config, folder: &Path, tool: &str, number: u32) -> anyhow::Result<Duration> {
    let prepared = (|| {
        let engine = Engine::new(config)?;
        let code = Code::new(&engine, wasm(PROGRAM))?;
        let mut linker = Linker::<Bare>::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        bindings::ToolPlugin::add_to_linker::<Bare, wasmtime::component::HasSelf<Bare>>(
            &mut linker,
            |bare| bare,
        )?;
        let pre = bindings::ToolPluginPre::new(linker.instantiate_pre(&code)?)?;
        Ok((engine, pre))
    })();
    let (engine, pre) = prepared.map_err(|error: wasmtime::Error| anyhow_error(&error))?;
    let wasi = WasiCtx::builder()
        .env("WORD", "granted")
        .preopened_dir(folder, "/data", FsPerms::ReadOnly)
        .map_err(|error| anyhow_error(&error))?
        .build();
    let mut store = Store::new(
        &engine,
        Bare {
            wasi,
            table: ResourceTable::new(),
        },
    );
    store.set_epoch_deadline(u64::MAX >> 1);
    let began = Instant::now();
    let plugin = pre
        .instantiate_async(&mut store)
        .await
        .map_err(|error| anyhow_error(&error))?;
    let context = CallContext {
        agent_id: "a".into(),
        session_id: "s".into(),
        user_id: "u".into(),
        call_id: "c".into(),
        idempotency_key: "k".into(),
        deadline_ms: 60_000,
        resumed: None,
        answer: None,
    };
    let answer = plugin
        .agent_host_plugin_tools()
        .call_call(&mut store, &context, tool, &number.to_string())
        .await;
    ensure!(
        answer.map_err(|error| anyhow_error(&error))?.is_ok(),
        "the bare call failed"
    );
    Ok(began.elapsed())
}

/// Measures the time by which a runaway exceeds its budget, and the share that is left to an honest
/// tenant. The latter with one runaway, and with twice as many as there are cores.
async fn runaways(
    runtime: &Runtime,
    honest: &Arc<Component>,
    bound: &Bound,
) -> anyhow::Result<Vec<Row>> {
    let mut limits = bound.limits;
    limits.cpu_ms_max = RUNAWAY_CPU_MS;
    let wild = Arc::new(Bound {
        limits,
        ..bound.clone()
    });
    // Another component, so that it is judged by itself.
    let runaway = runtime.load(renamed(&wasm(PROGRAM))?).await?;
    let over = overrun(runtime, &runaway, &wild).await?;
    let alone = honest_calls(runtime, honest, bound).await?;
    let beside_one = beside(runtime, &runaway, &wild, 1, async || {
        honest_calls(runtime, honest, bound).await
    })
    .await?;
    let cores = std::thread::available_parallelism()?.get();
    let beside_many = beside(runtime, &runaway, &wild, 2 * cores, async || {
        honest_calls(runtime, honest, bound).await
    })
    .await?;
    let share = Pair {
        ours: beside_one.per_s,
        peer: alone.per_s,
    };
    let p99 = Pair {
        ours: beside_many.p99_ms,
        peer: alone.p99_ms,
    };
    Ok(vec![
        Row::new(
            "a runaway's time over its budget / two ticks",
            "ms",
            Pair {
                ours: over,
                peer: 2.0 * TICK_MS,
            },
            Bar::Within(1.0),
        ),
        Row::new(
            "honest calls beside a runaway / alone",
            "1/s",
            share,
            Bar::AtLeast(0.4),
        ),
        Row::new(
            "honest p99 beside runaways on 2 x cores / alone",
            "ms",
            p99,
            Bar::Within(5.0),
        ),
    ])
}

/// The component with a section at its end that says nothing: other bytes, the same code.
fn renamed(component: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut other = component.to_vec();
    // A custom section: its kind, its length, the length of its name, its name.
    other.extend([0, 2, 1, b'x']);
    Ok(other)
}

/// Milliseconds by which a runaway is stopped later than its budget of computing says, the median
/// of some.
async fn overrun(runtime: &Runtime, runaway: &Component, wild: &Bound) -> anyhow::Result<f64> {
    let mut over = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let called = runtime
            .call(
                runaway,
                wild,
                call("spin", 0),
                Arc::new(Unwatched),
                Arc::new(EmptyBuckets),
            )
            .await;
        ensure!(
            matches!(called.outcome, Outcome::OutOfCpu),
            "the runaway ended as {:?}",
            called.outcome
        );
        over.push((ms(began.elapsed()) - RUNAWAY_CPU_MS as f64).max(0.0));
    }
    Ok(median(&mut over))
}

/// The throughput and latency of an honest tenant.
#[derive(Clone, Copy)]
struct Honest {
    per_s: f64,
    p99_ms: f64,
}

async fn honest_calls(
    runtime: &Runtime,
    honest: &Component,
    bound: &Bound,
) -> anyhow::Result<Honest> {
    let mut each = Vec::with_capacity(HONEST_CALLS);
    let began = Instant::now();
    for _ in 0..HONEST_CALLS {
        each.push(ms(ours(runtime, honest, bound, "sieve", 20_000).await?));
    }
    each.sort_by(f64::total_cmp);
    let p99_ms = *each.get(HONEST_CALLS * 99 / 100).context("enough calls")?;
    Ok(Honest {
        per_s: HONEST_CALLS as f64 / began.elapsed().as_secs_f64(),
        p99_ms,
    })
}

/// Measures while so many callers call a runaway again and again.
async fn beside(
    runtime: &Runtime,
    runaway: &Arc<Component>,
    wild: &Arc<Bound>,
    callers: usize,
    measured: impl AsyncFn() -> anyhow::Result<Honest>,
) -> anyhow::Result<Honest> {
    let over = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let runtime = runtime.clone();
            let runaway = runaway.clone();
            let wild = wild.clone();
            let over = over.clone();
            #[expect(
                clippy::disallowed_methods,
                reason = "the callers are waited for below"
            )]
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    runtime
                        .call(
                            &runaway,
                            &wild,
                            call("spin", 0),
                            Arc::new(Unwatched),
                            Arc::new(EmptyBuckets),
                        )
                        .await;
                }
            })
        })
        .collect();
    // Until the repeat offender is known as one.
    tokio::time::sleep(Duration::from_millis(5 * RUNAWAY_CPU_MS)).await;
    let measured = measured().await;
    over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await?;
    }
    measured
}
