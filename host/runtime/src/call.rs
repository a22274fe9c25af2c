//! The state of one call: everything that host functions may touch, made for the call and gone with
//! it.

use crate::config::{
    HANDLES_MAX, HOSTCALL_BYTES_MAX, HTTP_FIELDS_BYTES_MAX, RANDOM_BYTES_MAX, RESOURCES_MAX,
};
use crate::host::audit_recorder::AuditRecorder;
use crate::host::clock_and_randomness::ClockAndRandomness;
use crate::host::filesystem::folders::Folders;
use crate::host::http::EgressScope;
use crate::host::keyvalue::write_overlay::WriteOverlay;
use crate::host::progress::NoteRelay;
use crate::host::turn::step_view::StepView;
use crate::log::{Log, Pipe};
use crate::meter::{Computed, MemoryMeter, ProcessMemory};
use crate::outcome::Written;
use domain::digest::Digest;
use domain::grant::GuestLimits;
use domain::operation::CallUsage;
use domain::ruling::{STEP, TOOL_CALL};
use domain::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

/// The purpose of a call, which decides what it can reach.
pub(crate) enum Purpose {
    /// A component says what it is: it reaches nothing.
    Describe,
    /// An agent decides: it reaches its view.
    Step(Box<StepView>),
    /// A tool works.
    Tool(Box<ToolWork>),
    /// A trigger turns a trigger event into messages: it reaches nothing.
    Fire,
    /// A connector talks with its service: it reaches these environment variables, beside WASI.
    Connect(BTreeMap<String, String>),
}

/// The capability under which what befalls a trigger run as a whole is on record.
pub(crate) const TRIGGER_FIRE: &str = "triggers.fire";
/// The capability under which what befalls the call of a connector as a whole is on record.
pub(crate) const CONNECTOR_CALL: &str = "connectors.call";

/// The host functions that a tool reaches beside WASI.
pub(crate) struct ToolWork {
    /// It can say how it is getting on.
    pub(crate) notes: NoteRelay,
    /// It can keep something.
    pub(crate) overlay: WriteOverlay,
    /// Its environment variables.
    pub(crate) environment: BTreeMap<String, String>,
}

/// The capabilities of a call. It reaches nothing else.
pub(crate) struct CallScope {
    pub(crate) purpose: Purpose,
    pub(crate) clock_and_randomness: ClockAndRandomness,
    pub(crate) folders: Folders,
    pub(crate) egress_scope: EgressScope,
    pub(crate) recorder: AuditRecorder,
}

impl CallScope {
    /// No capabilities at all; chance follows from a seed.
    pub(crate) fn none(seed: &[u8]) -> Self {
        Self {
            purpose: Purpose::Describe,
            clock_and_randomness: ClockAndRandomness::frozen(Timestamp(0), Digest::of(seed)),
            folders: Folders::default(),
            egress_scope: EgressScope::default(),
            recorder: AuditRecorder::default(),
        }
    }
}

/// The state of one call.
pub(crate) struct CallState {
    pub(crate) purpose: Purpose,
    pub(crate) clock_and_randomness: ClockAndRandomness,
    pub(crate) memory: MemoryMeter,
    pub(crate) log: Log,
    pub(crate) recorder: AuditRecorder,
    pub(crate) folders: Folders,
    pub(crate) host_calls: u64,
    /// The failure of the host, when that is why the call ends.
    pub(crate) fault: Option<String>,
    pub(crate) wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    http: WasiHttpCtx,
    egress_scope: EgressScope,
    time: Arc<CallTime>,
}

/// The clocks of a call, shared with the future that drives it.
#[derive(Debug)]
pub(crate) struct CallTime {
    pub(crate) began: Instant,
    pub(crate) computed: Computed,
    pub(crate) cpu_max: Duration,
    /// Set when the guest was stopped because it had computed for too long.
    pub(crate) over: AtomicBool,
}

impl CallState {
    /// Returns the state of a call that begins now.
    pub(crate) fn new(
        call_scope: CallScope,
        process: &Arc<ProcessMemory>,
        limits: &GuestLimits,
    ) -> Self {
        let CallScope {
            purpose,
            clock_and_randomness,
            folders,
            egress_scope,
            recorder,
        } = call_scope;
        let log = Log::keeping(limits.log_bytes_max);
        let mut wasi = WasiCtx::builder();
        wasi.stdout(log.pipe(Pipe::Stdout))
            .stderr(log.pipe(Pipe::Stderr))
            .max_random_size(RANDOM_BYTES_MAX)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false);
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES_MAX);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(HTTP_FIELDS_BYTES_MAX);
        let time = CallTime {
            began: Instant::now(),
            computed: Computed::default(),
            cpu_max: Duration::from_millis(limits.cpu_ms_max),
            over: AtomicBool::new(false),
        };
        Self {
            purpose,
            clock_and_randomness,
            memory: MemoryMeter::new(process.clone(), limits.memory_bytes_max),
            log,
            recorder,
            folders,
            host_calls: 0,
            fault: None,
            wasi: wasi.build(),
            table,
            http,
            egress_scope,
            time: Arc::new(time),
        }
    }

    pub(crate) fn time(&self) -> Arc<CallTime> {
        self.time.clone()
    }

    /// The view, when this is a step.
    pub(crate) fn step(&mut self) -> wasmtime::Result<&mut StepView> {
        match &mut self.purpose {
            Purpose::Step(view) => Ok(view),
            Purpose::Describe | Purpose::Tool(_) | Purpose::Fire | Purpose::Connect(_) => {
                Err(wasmtime::format_err!("there is no turn to view here"))
            }
        }
    }

    /// Takes the call's writes to buckets. Nothing can be written after it.
    pub(crate) fn take_written(&mut self) -> Written {
        match std::mem::replace(&mut self.purpose, Purpose::Describe) {
            Purpose::Tool(work) => work.overlay.into_written(),
            Purpose::Describe | Purpose::Step(_) | Purpose::Fire | Purpose::Connect(_) => {
                Written::default()
            }
        }
    }

    /// Ends the call because of what the host could not do. The guest does not get to see it.
    pub(crate) fn faulted(&mut self, error: &dyn std::error::Error) -> wasmtime::Error {
        let mut detail = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            detail = format!("{detail}: {cause}");
            source = cause.source();
        }
        self.fault = Some(detail);
        wasmtime::format_err!("{error}")
    }

    /// Puts on record that the call met one of its limits.
    pub(crate) fn met(&self, limit: &str) {
        let capability = match &self.purpose {
            Purpose::Step(_) => STEP,
            Purpose::Fire => TRIGGER_FIRE,
            Purpose::Connect(_) => CONNECTOR_CALL,
            // What a description decides is on nobody's record.
            Purpose::Tool(_) | Purpose::Describe => TOOL_CALL,
        };
        self.recorder.met(capability, limit);
    }

    /// The host functions' way in, where they are counted.
    pub(crate) fn entered(&mut self) -> &mut Self {
        self.host_calls += 1;
        self
    }

    /// Returns the call's usage so far.
    pub(crate) fn usage(&self, tick_ms: u64, log_bytes_dropped: u64) -> CallUsage {
        let tick_us = u128::from(tick_ms.max(1)) * 1_000;
        CallUsage {
            wall_us: u64::try_from(self.time.began.elapsed().as_micros()).unwrap_or(u64::MAX),
            cpu_ticks: u64::try_from(self.time.computed.so_far().as_micros() / tick_us)
                .unwrap_or(u64::MAX),
            memory_bytes_peak: self.memory.peak(),
            host_calls: self.host_calls,
            log_bytes_dropped,
        }
    }

    /// A store that stops what runs in it at the call's limits.
    pub(crate) fn into_store(self, engine: &Engine) -> Store<Self> {
        let time = self.time();
        let mut store = Store::new(engine, self);
        store.limiter(|state| &mut state.memory);
        store.set_hostcall_fuel(HOSTCALL_BYTES_MAX);
        store.set_max_component_handles(HANDLES_MAX);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |_| {
            if time.computed.so_far() >= time.cpu_max {
                time.over.store(true, Ordering::Relaxed);
                return Ok(UpdateDeadline::Interrupt);
            }
            let turn = Box::pin(tokio::task::yield_now());
            Ok(UpdateDeadline::YieldCustom(1, turn))
        });
        store
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.host_calls += 1;
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for CallState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.host_calls += 1;
        WasiHttpCtxView {
            hooks: &mut self.egress_scope,
            table: &mut self.table,
            ctx: &mut self.http,
        }
    }
}
