//! Loading a component whose code is in the cache, as at every start but the first, beside
//! compiling it.

use crate::instance::anyhow_error;
use crate::measure::{in_turns, ms};
use crate::report::{Bar, Row};
use agent_host_tests::guests::wasm;
use anyhow::ensure;
use runtime::{Config, Runtime};
use std::time::Instant;
use wasmtime::Engine;
use wasmtime::component::Component;

/// The component.
const COMPONENT: &str = "assistant";

pub(crate) async fn run() -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let config = Config {
        cache_dir: folder.path().join("cache"),
        instances_max: 4,
        ..Config::default()
    };
    let bytes = wasm(COMPONENT);
    Runtime::new(config.clone())?.load(bytes.clone()).await?;
    let engine = Engine::new(&config.engine()).map_err(|error| anyhow_error(&error))?;
    let pair = in_turns(
        async || {
            // A runtime that has not seen it yet, as after a restart.
            let runtime = Runtime::new(config.clone())?;
            let wasm = bytes.clone();
            let began = Instant::now();
            let component = runtime.load(wasm).await?;
            let taken = ms(began.elapsed());
            ensure!(
                runtime.stats().loaded_from_cache == 1 && component.size_bytes() > 0,
                "it was compiled"
            );
            Ok(taken)
        },
        async || {
            let began = Instant::now();
            Component::new(&engine, &bytes).map_err(|error| anyhow_error(&error))?;
            Ok(ms(began.elapsed()))
        },
    )
    .await?;
    Ok(vec![Row::new(
        "component from cache / compiled",
        "ms",
        pair,
        Bar::Faster(50.0),
    )])
}
