//! The numbers that bound every guest, and the engine they are built into.

use domain::grant::GuestLimits;
use domain::secret::Secrets;
use egress::Egress;
use std::path::PathBuf;
use std::sync::Arc;
use wasmtime::{
    Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Strategy,
    WasmBacktraceDetails,
};

/// Bytes of one linear memory that the pool has room for. A guest's own limit
/// ([`GuestLimits::memory_bytes_max`]) applies when it is lower.
const POOL_MEMORY_BYTES_MAX: usize = 256 << 20;
/// Bytes that a guest may hand to the host in one call of a host function, or return.
pub(crate) const HOSTCALL_BYTES_MAX: usize = 4 << 20;
/// Component-model handles that are alive in one instance.
pub(crate) const HANDLES_MAX: usize = 10_000;
/// Host resources (files, streams, pollables, requests) that are alive in one instance.
pub(crate) const RESOURCES_MAX: usize = 1_000;
/// Bytes of randomness that a guest gets in one call.
pub(crate) const RANDOM_BYTES_MAX: u64 = 64 << 10;
/// Bytes of the headers of one HTTP request, with what they cost in memory.
pub(crate) const HTTP_FIELDS_BYTES_MAX: usize = 32 << 10;
/// Core instances, and tables, of one component. Python and JavaScript need dozens.
const INSTANCES_PER_COMPONENT_MAX: u32 = 64;
/// Memories of one component.
const MEMORIES_PER_COMPONENT_MAX: u32 = 4;

/// Core instances, and tables, that the pool holds for each concurrent guest.
const POOL_INSTANCES_PER_GUEST: u32 = 32;
/// Memories that the pool holds for each concurrent guest.
const POOL_MEMORIES_PER_GUEST: u32 = 2;
/// Bytes of one core instance's own data.
const CORE_INSTANCE_BYTES_MAX: usize = 4 << 20;
/// Bytes of one component instance's own data.
const COMPONENT_INSTANCE_BYTES_MAX: usize = 1 << 20;
/// Elements of one table.
const TABLE_ELEMENTS_MAX: usize = 30_000;
/// Bytes of an instance that stay in memory until the next one: what is zeroed instead of given
/// back. More costs each call more than it saves.
const KEEP_RESIDENT_BYTES: usize = 64 << 10;
/// Bytes of stack for wasm.
const WASM_STACK_BYTES: usize = 512 << 10;
/// Bytes of stack for wasm and the host functions that it calls.
const ASYNC_STACK_BYTES: usize = 2 << 20;
/// Slots that stay warm for a component that is not running.
const WARM_SLOTS_MAX: u32 = 32;

/// The settings that a [`Runtime`](crate::Runtime) is made with.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder for compiled code. Made with mode 0700 when it is not there.
    pub cache_dir: PathBuf,
    /// Guests that run at the same time; more wait.
    pub instances_max: u32,
    /// Calls that wait for a permit; more are refused as busy.
    pub wait_max: usize,
    /// Milliseconds that a call waits for a permit before it is refused as busy.
    pub wait_ms_max: u64,
    /// Milliseconds between two polls at a guest that computes.
    pub tick_ms: u64,
    /// Bytes of all memories and tables of all guests together.
    pub process_memory_bytes_max: u64,
    /// Bytes of a component.
    pub component_bytes_max: usize,
    /// The limits of `describe`.
    pub describe: GuestLimits,
    /// Secrets by name, which are put into requests as they are granted.
    pub secrets: Secrets,
    /// The way out for tools that were granted requests. Without one every request is refused.
    pub egress: Option<Arc<Egress>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cache_dir: PathBuf::from("component-cache"),
            instances_max: 128,
            wait_max: 1_024,
            wait_ms_max: 30_000,
            tick_ms: 5,
            process_memory_bytes_max: 2 << 30,
            component_bytes_max: 32 << 20,
            describe: GuestLimits {
                memory_bytes_max: 256 << 20,
                cpu_ms_max: 5_000,
                wall_ms_max: 30_000,
                concurrency_max: 1,
                ..GuestLimits::default()
            },
            secrets: Secrets::default(),
            egress: None,
        }
    }
}

impl Config {
    /// The wasmtime configuration of the runtime's only engine, pool included. Public so that a
    /// bench can compare with a bare engine.
    #[must_use]
    pub fn engine(&self) -> wasmtime::Config {
        let mut config = wasmtime::Config::new();
        config
            .allocation_strategy(InstanceAllocationStrategy::Pooling(self.pool()))
            .strategy(Strategy::Cranelift)
            .epoch_interruption(true)
            .max_wasm_stack(WASM_STACK_BYTES)
            .async_stack_size(ASYNC_STACK_BYTES)
            .async_stack_zeroing(true)
            .memory_init_cow(true)
            .concurrency_support(false)
            .shared_memory(false)
            .wasm_memory64(false)
            .wasm_multi_memory(true)
            .wasm_relaxed_simd(false)
            .cranelift_nan_canonicalization(true)
            .wasm_custom_page_sizes(false)
            .wasm_wide_arithmetic(false)
            .wasm_backtrace_details(WasmBacktraceDetails::Disable)
            .debug_info(false)
            .cranelift_opt_level(OptLevel::Speed)
            .cranelift_debug_verifier(false);
        config
    }

    fn pool(&self) -> PoolingAllocationConfig {
        let guests = self.instances_max;
        // One component of the largest size fits, however few guests there are.
        let instances = guests
            .saturating_mul(POOL_INSTANCES_PER_GUEST)
            .max(INSTANCES_PER_COMPONENT_MAX);
        let memories = guests
            .saturating_mul(POOL_MEMORIES_PER_GUEST)
            .max(MEMORIES_PER_COMPONENT_MAX);
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(guests)
            .total_core_instances(instances)
            .total_tables(instances)
            .total_memories(memories)
            .total_stacks(guests)
            .max_core_instances_per_component(INSTANCES_PER_COMPONENT_MAX)
            .max_tables_per_component(INSTANCES_PER_COMPONENT_MAX)
            .max_memories_per_component(MEMORIES_PER_COMPONENT_MAX)
            .max_component_instance_size(COMPONENT_INSTANCE_BYTES_MAX)
            .max_core_instance_size(CORE_INSTANCE_BYTES_MAX)
            .max_memory_size(POOL_MEMORY_BYTES_MAX)
            .max_memories_per_module(2)
            .max_tables_per_module(2)
            .table_elements(TABLE_ELEMENTS_MAX)
            .linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
            .table_keep_resident(KEEP_RESIDENT_BYTES)
            .async_stack_keep_resident(KEEP_RESIDENT_BYTES)
            .max_unused_warm_slots(WARM_SLOTS_MAX)
            .decommit_batch_size(1)
            // A page that was swapped out escapes the scan, and the next guest could read it.
            .pagemap_scan(Enabled::No);
        pool
    }
}
