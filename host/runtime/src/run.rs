//! Drives one call to its end, and tells what kind of end it was.

use crate::call::{CallState, CallTime};
use crate::host::clock_and_randomness::TooManyRandomBytes;
use crate::log::LogLine;
use crate::outcome::Outcome;
use egress::awake::{TooLate, timeout};
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi_http::FieldMapError;

/// Bytes of a guest's own message that go into the message of a trap.
const PANIC_BYTES_MAX: usize = 1_024;

/// A guest's future, run to its end or dropped at the deadline, which is kept in awake time.
/// Dropping it frees the instance, its handles and what it waits for.
pub(crate) async fn drive<T>(
    time: &CallTime,
    wall_max: Duration,
    guest: impl Future<Output = wasmtime::Result<T>>,
) -> Result<wasmtime::Result<T>, TooLate> {
    timeout(wall_max, time.computed.during(guest)).await
}

/// Returns the outcome of a call that has ended. `logs` are the call's.
pub(crate) fn outcome<T>(
    ended: Result<wasmtime::Result<T>, TooLate>,
    state: &CallState,
    time: &CallTime,
    logs: &[LogLine],
) -> Outcome<T> {
    let error = match ended {
        Ok(Ok(value)) => return Outcome::Returned(value),
        Ok(Err(error)) => error,
        Err(TooLate) => return Outcome::TimedOut,
    };
    if let Some(limit) = fixed_limit(&error) {
        state.met(limit);
    }
    // Without a host call, nothing that matters has happened yet.
    let began = state.host_calls > 0;
    if let Some(detail) = &state.fault {
        let detail = detail.clone();
        return Outcome::Faulted { detail, began };
    }
    if time.over.load(Ordering::Relaxed) {
        return Outcome::OutOfCpu;
    }
    if state.memory.process_refused() {
        return Outcome::Faulted {
            detail: "the memory for all guests together is used up".to_owned(),
            began,
        };
    }
    if error.is::<PoolConcurrencyLimitError>() || is_exhausted(&error) {
        return if began {
            Outcome::Faulted {
                detail: format!("{error}"),
                began,
            }
        } else {
            Outcome::Busy
        };
    }
    if state.memory.refused() {
        return Outcome::OutOfMemory;
    }
    let backtrace = error
        .downcast_ref::<WasmBacktrace>()
        .map(ToString::to_string)
        .unwrap_or_default();
    Outcome::Trapped {
        message: message(&error, logs),
        backtrace,
    }
}

/// Puts on record which of its limits a call has met, those that it got over included.
pub(crate) fn note_limits<T>(outcome: &Outcome<T>, state: &CallState, log_bytes_dropped: u64) {
    for (limit, is_met) in [
        ("memoryBytesMax", state.memory.refused()),
        ("cpuMsMax", matches!(outcome, Outcome::OutOfCpu)),
        ("wallMsMax", matches!(outcome, Outcome::TimedOut)),
        ("logBytesMax", log_bytes_dropped > 0),
    ] {
        if is_met {
            state.met(limit);
        }
    }
}

/// The limit behind a trap, where it is one that is the same for all guests: the constants in
/// `config`. For two of them wasmtime has no error type but only a message. The attacks on the host
/// as a whole notice when the messages change.
fn fixed_limit(error: &wasmtime::Error) -> Option<&'static str> {
    if error.downcast_ref() == Some(&Trap::StackOverflow) {
        return Some("stackBytes");
    }
    error.chain().find_map(|cause| {
        if cause.is::<TooManyRandomBytes>() {
            return Some("randomBytes");
        }
        if matches!(cause.downcast_ref(), Some(ResourceTableError::Full)) {
            return Some("resources");
        }
        if matches!(
            cause.downcast_ref(),
            Some(FieldMapError::TooManyFields | FieldMapError::TotalSizeTooBig)
        ) {
            return Some("httpFieldsBytes");
        }
        let message = cause.to_string();
        if message.contains("fuel allocated for hostcalls has been exhausted") {
            return Some("hostcallBytes");
        }
        message
            .contains("store handle limit exceeded")
            .then_some("handles")
    })
}

/// Returns true if the system refused this process what an instance needs: descriptors or memory.
/// It may have them again in a moment.
fn is_exhausted(error: &wasmtime::Error) -> bool {
    let passing = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN];
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .filter_map(Errno::from_io_error)
        .any(|errno| passing.contains(&errno))
}

fn message(error: &wasmtime::Error, logs: &[LogLine]) -> String {
    let reason = match error.downcast_ref::<I32Exit>() {
        Some(I32Exit(code)) => format!("the guest ended itself with exit code {code}"),
        None => error.root_cause().to_string(),
    };
    match last_line(logs) {
        Some(line) => format!("{line} ({reason})"),
        None => reason,
    }
}

/// Returns the guest's last line on stderr or about a panic. If there was a panic, the text from
/// the last one on.
fn last_line(logs: &[LogLine]) -> Option<String> {
    let stderr: Vec<&str> = logs
        .iter()
        .filter(|line| {
            (line.context == "stderr" || line.context == "panic")
                && !line.message.starts_with("note: ")
        })
        .map(|line| line.message.as_str())
        .collect();
    let panic = stderr.iter().rposition(|line| line.contains("panicked at"));
    let line = stderr
        .get(panic.unwrap_or(stderr.len().saturating_sub(1))..)?
        .join(" ");
    let (line, _) = line.split_at(line.floor_char_boundary(PANIC_BYTES_MAX));
    (!line.is_empty()).then(|| line.to_owned())
}
