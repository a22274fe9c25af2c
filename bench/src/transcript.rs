//! The cost of a long conversation for a step: the same agent, reading the newest message, in a
//! thread of 10 messages and in one of 10,000.

use crate::measure::{in_turns, mean_us};
use crate::report::{Bar, Row};
use crate::thread::Conversation;
use crate::view::{Thread, basis};
use agent_host_tests::guests::wasm;
use agent_host_tests::world;
use anyhow::{anyhow, ensure};
use domain::grant::GuestLimits;
use runtime::{Component, Outcome, Runtime, View};
use std::sync::Arc;
use store::{Options, Store};

/// Steps of one measurement.
const STEPS: u32 = 400;
/// Messages of a turn.
const MESSAGES_PER_TURN: u64 = 10;
/// Turns of the long thread, which makes 10,000 messages.
const TURNS: usize = 1_000;

pub(crate) async fn run() -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(&folder.path().join("data"), Options::default())?;
    let long = thread(&store, TURNS).await?;
    let short = thread(&store, 1).await?;
    let runtime = world::runtime();
    let reader = runtime.load(wasm("reader")).await?;
    let pair = in_turns(
        async || steps(&runtime, &reader, long.clone()).await,
        async || steps(&runtime, &reader, short.clone()).await,
    )
    .await?;
    store.close().await;
    Ok(vec![Row::new(
        "step with 10,000 messages / with 10",
        "µs",
        pair,
        Bar::Within(1.2),
    )])
}

async fn thread(store: &Store, turns: usize) -> anyhow::Result<Arc<dyn View>> {
    let head = Conversation::begin(store)
        .await?
        .exchange(store, turns, MESSAGES_PER_TURN)
        .await?;
    let view = Thread::new(store.clone(), head, turns as u64 * MESSAGES_PER_TURN);
    ensure!(
        view.message(turns as u64 * MESSAGES_PER_TURN)
            .await?
            .is_some(),
        "the thread is shorter than it should be"
    );
    Ok(Arc::new(view))
}

async fn steps(runtime: &Runtime, reader: &Component, view: Arc<dyn View>) -> anyhow::Result<f64> {
    let basis = basis();
    let limits = GuestLimits::default();
    mean_us(STEPS, async || {
        let admission = runtime
            .admit(reader, &limits)
            .await
            .map_err(|turned_away| anyhow!("{turned_away:?}"))?;
        let stepped = runtime
            .step(admission, reader, view.clone(), &[], &basis)
            .await;
        ensure!(
            matches!(stepped.outcome, Outcome::Returned(_)),
            "the step ended as {:?}",
            stepped.outcome
        );
        Ok(())
    })
    .await
}
