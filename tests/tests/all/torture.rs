//! Torture: clients that keep a ledger, and a host that is killed, stopped, starved of disk,
//! refused its syncs and its reads, and told wrong times meanwhile.
//!
//! It begins with every harm and with everything that a client does, each once; then chance
//! decides. In the ordinary tests it lasts seconds. `AGENT_HOST_TORTURE_S=3600` makes it last as
//! long as that says, and `AGENT_HOST_TORTURE_SEED` repeats the choices of a run (not its timing).
//! Afterwards the ledger must agree with the events: whatever was acknowledged is there once,
//! whatever was asked for under one key was begun once, no call that must not repeat was made
//! twice, and what was purged is gone.

mod chaos;
mod clients;
mod judge;

use super::crash;
use agent_host_tests::process::Folder;
use agent_host_tests::skip::{WITHOUT_NAMESPACES, needed};
use agent_host_tests::small_disk::Room;
use chaos::Chaos;
use clients::Clients;
use std::time::Duration;

/// Seconds that the short form lasts; every harm once takes about fifteen.
const SHORT_S: u64 = 20;
/// Room of the data folder: enough for an hour, and little enough to fill.
const ROOM: Room = Room {
    bytes: 4 << 30,
    inodes: 100_000,
};

fn from_env(name: &str) -> Option<u64> {
    std::env::var_os(name)?.to_str()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_or_repeated_under_torture() {
    let lasts = Duration::from_secs(from_env("AGENT_HOST_TORTURE_S").unwrap_or(SHORT_S));
    let seed = from_env("AGENT_HOST_TORTURE_SEED").unwrap_or_else(|| fastrand::u64(..));
    eprintln!("torture for {lasts:?}, AGENT_HOST_TORTURE_SEED={seed}");
    let folder = Folder::on_bad_machine(crash::config(), ROOM);
    let Some(folder) = needed(folder, WITHOUT_NAMESPACES) else {
        return;
    };
    folder.warm(&["puppet", "effects"]).await;
    let mut chaos = Chaos::start(folder, seed).await;
    let clients = Clients::begin(&chaos.line(), seed);
    let harm = chaos.rage(lasts).await;
    let ledger = clients.end().await;
    let folder = chaos.end(&ledger).await;
    eprintln!("{harm:?}\n{ledger}");
    let verdict = judge::judge(&folder, &ledger)
        .await
        .unwrap_or_else(|wrong| panic!("{wrong:#}\nseed {seed}, {harm:?}, {ledger}"));
    eprintln!("{verdict}");
    let missing: Vec<&str> = [harm.counts(), ledger.counts()]
        .concat()
        .into_iter()
        .filter_map(|(what, times)| (times == 0).then_some(what))
        .collect();
    assert!(missing.is_empty(), "never done: {missing:?}\nseed {seed}");
}
