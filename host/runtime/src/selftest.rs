//! Shows before anything is served that guests which do not stop are stopped.

use crate::call::{CallScope, CallState};
use crate::meter::ProcessMemory;
use crate::outcome::Outcome;
use crate::run;
use domain::grant::GuestLimits;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use wasmtime::{Engine, Linker, Module};

/// Time limit of the whole self-test, after which it counts as failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Milliseconds that the guest that loops may compute: every start waits for that.
const LOOP_CPU_MS_MAX: u64 = 5;
/// Milliseconds that the guest that grows may compute. It ends by itself, on a busy machine later
/// than on an idle one.
const GROW_CPU_MS_MAX: u64 = 5_000;

/// A module with a function `loop` that never returns, and a function `grow` that exhausts memory
/// and traps. Its text stands in the test below.
const MODULE: &[u8] = b"\0asm\x01\0\0\0\
    \x01\x04\x01\x60\0\0\
    \x03\x03\x02\0\0\
    \x05\x03\x01\0\x01\
    \x07\x0f\x02\x04loop\0\0\x04grow\0\x01\
    \x0a\x19\x02\x07\0\x03\x40\x0c\0\x0b\x0b\x0f\0\x03\x40\x41\x10\x40\0\x41\x7f\x47\x0d\0\x0b\0\x0b";

/// A guest that has to be stopped was not.
#[derive(Debug, thiserror::Error)]
#[error("self-test: {what}")]
pub struct SelfTestFailed {
    what: String,
}

/// Runs both guests under small limits.
pub(crate) fn check(engine: &Engine, process: &Arc<ProcessMemory>) -> Result<(), SelfTestFailed> {
    let engine = engine.clone();
    let process = process.clone();
    let (report, reported) = mpsc::channel();
    // A thread of its own: if a guest is not stopped, only this thread is lost; and the caller may
    // be inside another runtime.
    let test = move || {
        // The receiver may have lost patience.
        let _ = report.send(both(&engine, &process));
    };
    let failed = |what: &str| SelfTestFailed {
        what: what.to_owned(),
    };
    std::thread::Builder::new()
        .name("guest-self-test".to_owned())
        .spawn(test)
        .map_err(|_| failed("no thread could be started"))?;
    match reported.recv_timeout(PATIENCE) {
        Ok(result) => result,
        Err(_) => Err(failed("a guest that never returns was not stopped")),
    }
}

fn both(engine: &Engine, process: &Arc<ProcessMemory>) -> Result<(), SelfTestFailed> {
    let failed = |what: String| SelfTestFailed { what };
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| failed(error.to_string()))?;
    tokio.block_on(async {
        for (function, cpu_ms_max, expected) in [
            ("loop", LOOP_CPU_MS_MAX, Outcome::OutOfCpu),
            ("grow", GROW_CPU_MS_MAX, Outcome::OutOfMemory),
        ] {
            let ended = stopped(engine, process, function, cpu_ms_max)
                .await
                .map_err(|error| failed(error.to_string()))?;
            if ended != expected {
                return Err(failed(format!(
                    "a guest that {function}s ended as {ended:?}"
                )));
            }
        }
        Ok(())
    })
}

async fn stopped(
    engine: &Engine,
    process: &Arc<ProcessMemory>,
    function: &str,
    cpu_ms_max: u64,
) -> wasmtime::Result<Outcome<()>> {
    let limits = GuestLimits {
        memory_bytes_max: 4 << 20,
        cpu_ms_max,
        wall_ms_max: 5_000,
        concurrency_max: 1,
        ..GuestLimits::default()
    };
    let state = CallState::new(CallScope::none(b"self-test"), process, &limits);
    let time = state.time();
    let mut store = state.into_store(engine);
    let module = Module::new(engine, MODULE)?;
    let guest = async {
        let instance = Linker::new(engine)
            .instantiate_async(&mut store, &module)
            .await?;
        instance
            .get_typed_func::<(), ()>(&mut store, function)?
            .call_async(&mut store, ())
            .await
    };
    let ended = run::drive(&time, Duration::from_millis(limits.wall_ms_max), guest).await;
    Ok(run::outcome(ended, store.data(), &time, &[]))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_module_is_what_it_says() {
        let text = r#"(module
            (func (export "loop") (loop br 0))
            (func (export "grow") (loop (br_if 0 (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable)
            (memory 1))"#;
        assert_eq!(wat::parse_str(text).unwrap(), super::MODULE);
    }
}
