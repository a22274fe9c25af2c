//! The machine usage of one call: memory as it grows, and the time that it computes.

use rustix::time::{ClockId, clock_gettime};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wasmtime::ResourceLimiter;

/// Bytes that one element of a table takes.
const TABLE_ELEMENT_BYTES: u64 = 8;

/// The memory of all guests together.
#[derive(Debug)]
pub(crate) struct ProcessMemory {
    bytes_max: u64,
    bytes: AtomicU64,
}

impl ProcessMemory {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            bytes: AtomicU64::new(0),
        }
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn reserve(&self, more: u64) -> bool {
        let within = |bytes: u64| bytes.checked_add(more).filter(|sum| *sum <= self.bytes_max);
        self.bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, within)
            .is_ok()
    }

    fn release(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The process has no memory left for this guest: a limit that does not depend on the guest, so the
/// guest must not get to see it.
#[derive(Debug, thiserror::Error)]
#[error("the memory for all guests together is used up")]
pub(crate) struct ProcessMemoryUsedUp;

/// Counts all memories and tables of one call together.
#[derive(Debug)]
pub(crate) struct MemoryMeter {
    process: Arc<ProcessMemory>,
    bytes_max: u64,
    bytes: u64,
    peak: u64,
    /// The growth that was allowed last, in case that it fails after all.
    last: u64,
    refused: bool,
    process_refused: bool,
}

impl MemoryMeter {
    pub(crate) fn new(process: Arc<ProcessMemory>, bytes_max: u64) -> Self {
        Self {
            process,
            bytes_max,
            bytes: 0,
            peak: 0,
            last: 0,
            refused: false,
            process_refused: false,
        }
    }

    /// The largest sum of all memories and tables so far, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }

    /// Returns true if the guest was refused memory because of its own limit.
    pub(crate) fn refused(&self) -> bool {
        self.refused
    }

    /// Returns true if the process had no more memory.
    pub(crate) fn process_refused(&self) -> bool {
        self.process_refused
    }

    fn grow(&mut self, more: u64) -> wasmtime::Result<bool> {
        let Some(bytes) = self
            .bytes
            .checked_add(more)
            .filter(|bytes| *bytes <= self.bytes_max)
        else {
            self.refused = true;
            return Ok(false);
        };
        if !self.process.reserve(more) {
            self.process_refused = true;
            return Err(ProcessMemoryUsedUp.into());
        }
        self.bytes = bytes;
        self.last = more;
        self.peak = self.peak.max(bytes);
        Ok(true)
    }

    /// Takes back a growth that was allowed and then did not happen. The reason is the pool's own
    /// limit for a single memory, or the guest's declared maximum.
    fn undo(&mut self) {
        self.refused = true;
        self.bytes = self.bytes.saturating_sub(self.last);
        self.process.release(std::mem::take(&mut self.last));
    }
}

impl Drop for MemoryMeter {
    fn drop(&mut self) {
        self.process.release(self.bytes);
    }
}

impl ResourceLimiter for MemoryMeter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.grow((desired as u64).saturating_sub(current as u64))
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.undo();
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let elements = (desired as u64).saturating_sub(current as u64);
        self.grow(elements.saturating_mul(TABLE_ELEMENT_BYTES))
    }

    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.undo();
        Ok(())
    }
}

/// The CPU time of a call on the threads that it ran on. Waiting does not count. Time inside host
/// functions does not, so that a tool which reads ten thousand files does not run out of computing
/// time while the disk is at work. Waiting for a CPU that others use does not either, so that no
/// guest is stopped for what its neighbours do.
#[derive(Debug, Default)]
pub(crate) struct Computed {
    /// Nanoseconds of the stretches that have ended.
    ended_ns: AtomicU64,
    /// The thread's CPU time when the stretch under way began, and one more; 0 between two. It is
    /// read on the same thread alone.
    began_ns: AtomicU64,
}

impl Computed {
    /// Returns the time so far; from within [`Self::during`] the stretch under way included.
    pub(crate) fn so_far(&self) -> Duration {
        let ended = self.ended_ns.load(Ordering::Relaxed);
        let under_way = match self.began_ns.load(Ordering::Relaxed) {
            0 => 0,
            began => (cpu_ns() + 1).saturating_sub(began),
        };
        Duration::from_nanos(ended.saturating_add(under_way))
    }

    /// Runs a future and counts what the thread computes while it is polled.
    pub(crate) async fn during<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        std::future::poll_fn(|context| {
            let began = cpu_ns();
            self.began_ns.store(began + 1, Ordering::Relaxed);
            let polled = future.as_mut().poll(context);
            self.began_ns.store(0, Ordering::Relaxed);
            self.ended_ns
                .fetch_add(cpu_ns().saturating_sub(began), Ordering::Relaxed);
            polled
        })
        .await
    }
}

/// The CPU time of this thread, in nanoseconds.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_memories_and_tables_count_together_and_are_given_back() {
        let process = Arc::new(ProcessMemory::new(1_000));
        let mut meter = MemoryMeter::new(process.clone(), 300);
        assert!(meter.memory_growing(0, 100, None).unwrap());
        assert!(meter.memory_growing(0, 100, None).unwrap());
        assert!(meter.table_growing(0, 10, None).unwrap());
        assert!(!meter.refused());
        assert!(!meter.memory_growing(100, 200, None).unwrap());
        assert!(meter.refused());
        assert_eq!((meter.peak(), process.bytes()), (280, 280));
        drop(meter);
        assert_eq!(process.bytes(), 0);
    }

    #[test]
    fn the_limit_of_the_process_is_an_error_and_not_a_refusal() {
        let process = Arc::new(ProcessMemory::new(150));
        let mut first = MemoryMeter::new(process.clone(), 1_000);
        let mut second = MemoryMeter::new(process, 1_000);
        assert!(first.memory_growing(0, 100, None).unwrap());
        assert!(second.memory_growing(0, 100, None).is_err());
        assert!(second.process_refused() && !second.refused());
    }

    #[test]
    fn growth_that_fails_after_all_is_not_counted() {
        let process = Arc::new(ProcessMemory::new(1_000));
        let mut meter = MemoryMeter::new(process.clone(), 1_000);
        assert!(meter.memory_growing(0, 400, None).unwrap());
        meter
            .memory_grow_failed(wasmtime::format_err!("no"))
            .unwrap();
        assert_eq!(process.bytes(), 0);
    }

    #[tokio::test]
    async fn computing_counts_and_waiting_does_not() {
        let computed = Computed::default();
        computed
            .during(async { std::thread::sleep(Duration::from_millis(50)) })
            .await;
        assert!(
            computed.so_far() < Duration::from_millis(40),
            "{computed:?}"
        );
        computed
            .during(async {
                while computed.so_far() < Duration::from_millis(60) {
                    std::hint::spin_loop();
                }
            })
            .await;
        assert!(
            computed.so_far() >= Duration::from_millis(60),
            "{computed:?}"
        );
    }
}
