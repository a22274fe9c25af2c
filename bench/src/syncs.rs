//! The number of syncs of the disk per acknowledged event, with 1, 64 and 256 clients. The syncs
//! are counted, and each client waits for its own event.

use crate::measure::Pair;
use crate::report::{Bar, Row};
use crate::shim;
use crate::thread::new;
use agent_host_tests::slow_disk;
use anyhow::ensure;
use domain::event::{Event, PluginEmitted, Subject};
use domain::id::{SessionId, Stream};
use std::path::Path;
use store::{Commit, Expected, Options, Store};
use tokio::task::JoinSet;
use uuid::Uuid;

/// Asks for [`count`] on the slow disk.
pub(crate) const FLAG: &str = "--count-syncs";
/// Clients, events of each of them, and the bar: syncs per event.
const CASES: [(u32, u32, f64); 3] = [(1, 100, 1.15), (64, 30, 0.125), (256, 30, 0.04)];

pub(crate) fn run() -> anyhow::Result<Vec<Row>> {
    let measured = shim::again(FLAG, shim::STEADY)?;
    let rows = CASES.iter().zip(measured).map(|((clients, _, bar), ours)| {
        let name = format!(
            "syncs per event, {clients} client{}",
            if *clients == 1 { "" } else { "s" }
        );
        Row::new(name, "syncs", Pair { ours, peer: 1.0 }, Bar::AtMost(*bar))
    });
    Ok(rows.collect())
}

/// Commits events; the syncs per event of every case.
///
/// # Errors
/// The store's, or the counter does not count.
pub(crate) async fn count(counter: &Path) -> anyhow::Result<Vec<f64>> {
    let mut measured = Vec::new();
    for (clients, events, _) in CASES {
        let folder = tempfile::tempdir()?;
        let store = Store::open(&folder.path().join("data"), Options::default())?;
        let before = slow_disk::count(counter)?;
        let mut tasks = JoinSet::new();
        for _ in 0..clients {
            tasks.spawn(client(store.clone(), events));
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        let syncs = slow_disk::count(counter)? - before;
        ensure!(syncs > 0, "no sync was counted: the library is not loaded");
        measured.push(syncs as f64 / f64::from(clients * events));
        store.close().await;
    }
    Ok(measured)
}

async fn client(store: Store, events: u32) -> anyhow::Result<()> {
    let stream = Stream::Session(SessionId(Uuid::new_v4()));
    for n in 0..events {
        let emitted = PluginEmitted {
            name: "plugin.bench.event".to_owned(),
            data: serde_json::json!({ "n": n }),
        };
        let event = new(Event::PluginEmitted(emitted), Subject::default());
        store
            .commit(Commit::new().append(stream, Expected::Any, vec![event]))
            .await?;
    }
    Ok(())
}
