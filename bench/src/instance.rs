//! The time that the runtime adds to a call: a fresh instance, one step, and the drop of it, beside
//! the same in a bare loop over wasmtime's pool.
//!
//! The agent reads nothing and decides at once, so that nothing but the way there and back is
//! measured.

use crate::measure::{in_turns, mean_us};
use crate::report::{Bar, Row};
use crate::view::{Nothing, basis};
use agent_host_tests::guests::wasm;
use agent_host_tests::world;
use anyhow::{anyhow, ensure};
use domain::grant::GuestLimits;
use runtime::Outcome;
use std::sync::Arc;
use wasmtime::component::{Component, Linker, Resource, ResourceTable, ResourceType};
use wasmtime::{Config, Engine, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

/// Calls of one measurement.
const CALLS: u32 = 1_000;
/// A test program whose step returns at once, with something that the host refuses.
const PROGRAM: &str = "refused";

mod bindings {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "agent-plugin",
        imports: { default: trappable },
        exports: { default: async },
        with: { "agent-host:plugin/turn.view": crate::instance::ViewHandle },
        require_store_data_send: true,
    });
}

/// Stands for the view that the step is lent and never looks at.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the bindings re-export it")]
pub struct ViewHandle;

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

pub(crate) async fn run() -> anyhow::Result<Vec<Row>> {
    let runtime = world::runtime();
    let component = runtime.load(wasm(PROGRAM)).await?;
    let view = Arc::new(Nothing::new());
    let basis = basis();
    let limits = GuestLimits::default();
    let (engine, pre) = bare(&runtime.engine_config()).map_err(|error| anyhow_error(&error))?;
    let pair = in_turns(
        async || {
            mean_us(CALLS, async || {
                let admission = runtime
                    .admit(&component, &limits)
                    .await
                    .map_err(|turned_away| anyhow!("{turned_away:?}"))?;
                let stepped = runtime
                    .step(admission, &component, view.clone(), &[], &basis)
                    .await;
                ensure!(
                    matches!(stepped.outcome, Outcome::Refused { .. }),
                    "the step ended as {:?}",
                    stepped.outcome
                );
                Ok(())
            })
            .await
        },
        async || {
            mean_us(CALLS, async || {
                let effects = bare_step(&engine, &pre)
                    .await
                    .map_err(|error| anyhow_error(&error))?;
                ensure!(effects == 1, "the step decided something else");
                Ok(())
            })
            .await
        },
    )
    .await?;
    Ok(vec![Row::new(
        "fresh instance, step, drop / bare pool",
        "µs",
        pair,
        Bar::Within(2.0),
    )])
}

/// An engine of its own with the same configuration, and the program linked to WASI and to nothing
/// else.
fn bare(config: &Config) -> wasmtime::Result<(Engine, bindings::AgentPluginPre<Bare>)> {
    let engine = Engine::new(config)?;
    let component = Component::new(&engine, wasm(PROGRAM))?;
    let mut linker = Linker::<Bare>::new(&engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    linker.instance("agent-host:plugin/turn@0.2.0")?.resource(
        "view",
        ResourceType::host::<ViewHandle>(),
        |_, _| Ok(()),
    )?;
    let pre = bindings::AgentPluginPre::new(linker.instantiate_pre(&component)?)?;
    Ok((engine, pre))
}

/// One step; how many effects it asked for.
async fn bare_step(
    engine: &Engine,
    pre: &bindings::AgentPluginPre<Bare>,
) -> wasmtime::Result<usize> {
    let state = Bare {
        wasi: WasiCtx::builder().build(),
        table: ResourceTable::new(),
    };
    let mut store = Store::new(engine, state);
    // Nobody counts epochs here.
    store.set_epoch_deadline(1);
    let plugin = pre.instantiate_async(&mut store).await?;
    let result = plugin
        .agent_host_plugin_agent()
        .call_step(&mut store, Resource::new_borrow(0), &[])
        .await?;
    Ok(result.effects.len())
}

/// Wasmtime's errors are no `std::error::Error`.
pub(crate) fn anyhow_error(error: &wasmtime::Error) -> anyhow::Error {
    anyhow!("{error:?}")
}
