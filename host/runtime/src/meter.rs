//! What one call uses of the machine: memory as it grows, and the time during which it is on a thread.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
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
        Self { bytes_max, bytes: AtomicU64::new(0) }
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn reserve(&self, more: u64) -> bool {
        let within = |bytes: u64| bytes.checked_add(more).filter(|sum| *sum <= self.bytes_max);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }

    fn release(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The process has no memory left for this guest: a limit that does not depend on the guest, so the guest must not get to see it.
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
        Self { process, bytes_max, bytes: 0, peak: 0, last: 0, refused: false, process_refused: false }
    }

    /// The largest sum of all memories and tables so far, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }

    /// Whether the guest was refused memory because of its own limit.
    pub(crate) fn refused(&self) -> bool {
        self.refused
    }

    /// Whether the process had no more memory.
    pub(crate) fn process_refused(&self) -> bool {
        self.process_refused
    }

    fn grow(&mut self, more: u64) -> wasmtime::Result<bool> {
        let Some(bytes) = self.bytes.checked_add(more).filter(|bytes| *bytes <= self.bytes_max) else {
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

    /// What was allowed did not happen: the pool's own limit for a single memory, or the guest's declared maximum.
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
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.grow((desired as u64).saturating_sub(current as u64))
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.undo();
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let elements = (desired as u64).saturating_sub(current as u64);
        self.grow(elements.saturating_mul(TABLE_ELEMENT_BYTES))
    }

    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.undo();
        Ok(())
    }
}

/// How long a call has been on a thread. Waiting inside host functions does not count, so a tool that reads ten thousand files
/// does not run out of computing time while the disk is at work.
#[derive(Debug)]
pub(crate) struct OnThread {
    origin: Instant,
    /// Nanoseconds of the stretches that have ended.
    ended_ns: AtomicU64,
    /// When the stretch under way began, in nanoseconds after `origin`; `OFF` between two.
    began_ns: AtomicU64,
}

const OFF: u64 = u64::MAX;

impl OnThread {
    pub(crate) fn new(origin: Instant) -> Self {
        Self { origin, ended_ns: AtomicU64::new(0), began_ns: AtomicU64::new(OFF) }
    }

    /// How long so far, the stretch under way included.
    pub(crate) fn so_far(&self) -> Duration {
        let ended = self.ended_ns.load(Ordering::Relaxed);
        match self.began_ns.load(Ordering::Relaxed) {
            OFF => Duration::from_nanos(ended),
            began => Duration::from_nanos(ended.saturating_add(self.now_ns().saturating_sub(began))),
        }
    }

    /// Runs a future and counts the time during which it is polled.
    pub(crate) async fn during<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        std::future::poll_fn(|context| {
            let began = self.now_ns();
            self.began_ns.store(began, Ordering::Relaxed);
            let polled = future.as_mut().poll(context);
            self.began_ns.store(OFF, Ordering::Relaxed);
            self.ended_ns.fetch_add(self.now_ns().saturating_sub(began), Ordering::Relaxed);
            polled
        })
        .await
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(OFF - 1)
    }
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
        meter.memory_grow_failed(wasmtime::format_err!("no")).unwrap();
        assert_eq!(process.bytes(), 0);
    }
}
