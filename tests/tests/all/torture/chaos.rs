//! Harm that is done to a host, and its restarts.

use super::clients::Ledger;
use agent_host_tests::process::{Folder, Host, Line};
use agent_host_tests::slow_disk::Syncs;
use fastrand::Rng;
use rustix::process::{Signal, kill_process};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// Time for which the host goes unharmed between two harms, in milliseconds.
const QUIET_MS: std::ops::Range<u64> = 100..900;
/// Distance of a wrong time from the right one, in milliseconds: more than keys are remembered.
const JUMP_MS: i64 = 9 * 24 * 3_600_000;
/// Failed starts of a host after which that is a finding.
const STARTS_MAX: u32 = 3;
/// Time that a host has to end when it ends by itself.
const DEATH: Duration = Duration::from_millis(300);

/// Counts of the harms.
#[derive(Debug, Default)]
pub(super) struct Harm {
    pub(super) starts: u32,
    kills: u32,
    /// The host ended by itself: a sync had failed.
    ends: u32,
    stops: u32,
    failed_syncs: u32,
    hanging_syncs: u32,
    full_disks: u32,
    failed_reads: u32,
    clock_jumps: u32,
}

/// A host under torture.
pub(super) struct Chaos {
    folder: Folder,
    host: Option<Host>,
    line: watch::Sender<Line>,
    rng: Rng,
    harm: Harm,
}

impl Chaos {
    pub(super) async fn start(folder: Folder, seed: u64) -> Self {
        let host = folder.start(None).await.unwrap();
        let line = watch::Sender::new(host.line());
        Self {
            folder,
            host: Some(host),
            line,
            rng: Rng::with_seed(seed),
            harm: Harm {
                starts: 1,
                ..Harm::default()
            },
        }
    }

    /// Returns the current address of the host, always up to date.
    pub(super) fn line(&self) -> watch::Receiver<Line> {
        self.line.subscribe()
    }

    /// Harms the host for so long, and until it had to be started again.
    pub(super) async fn rage(&mut self, lasts: Duration) -> Harm {
        let until = Instant::now() + lasts;
        while Instant::now() < until || self.harm.starts == 1 {
            sleep(Duration::from_millis(self.rng.u64(QUIET_MS))).await;
            match self.rng.u8(0..12) {
                0..=3 => self.kill().await,
                4 | 5 => self.stop().await,
                6 => self.syncs(Syncs::Fail).await,
                7 => self.syncs(Syncs::Hang).await,
                8 => self.syncs(Syncs::Take(Duration::from_millis(4))).await,
                9 => self.fill().await,
                10 => self.reads().await,
                _ => self.jump(),
            }
            self.revive().await;
        }
        std::mem::take(&mut self.harm)
    }

    /// Lets it come to rest and stops it.
    pub(super) async fn end(mut self, ledger: &Ledger) -> Folder {
        self.revive().await;
        let host = self.host.take().unwrap();
        for session in ledger.sessions() {
            super::crash::rest(&host, session).await.unwrap();
        }
        let status = host.stop().await;
        assert!(
            status.success(),
            "it stopped with {status}: {}",
            self.folder.log()
        );
        self.folder
    }

    async fn kill(&mut self) {
        self.harm.kills += 1;
        if let Some(host) = self.host.take() {
            host.kill().await;
        }
    }

    /// Stops the process without its knowing, for a while.
    async fn stop(&mut self) {
        self.harm.stops += 1;
        let Some(host) = &self.host else { return };
        kill_process(host.process(), Signal::STOP).unwrap();
        sleep(Duration::from_millis(self.rng.u64(50..1_500))).await;
        kill_process(host.process(), Signal::CONT).unwrap();
    }

    async fn syncs(&mut self, syncs: Syncs) {
        match syncs {
            Syncs::Fail => self.harm.failed_syncs += 1,
            Syncs::Hang => self.harm.hanging_syncs += 1,
            Syncs::Take(_) => {}
        }
        self.folder.slow_disk().set(syncs).unwrap();
        sleep(Duration::from_millis(self.rng.u64(20..400))).await;
        // One time in two it dies while its disk misbehaves.
        if self.rng.bool() {
            self.kill().await;
        }
        self.folder
            .slow_disk()
            .set(Syncs::Take(Duration::ZERO))
            .unwrap();
    }

    /// Has reads of the database fail, for a while.
    async fn reads(&mut self) {
        self.harm.failed_reads += 1;
        self.folder.slow_disk().set_reads(false).unwrap();
        sleep(Duration::from_millis(self.rng.u64(20..400))).await;
        if self.rng.bool() {
            self.kill().await;
        }
        self.folder.slow_disk().set_reads(true).unwrap();
    }

    /// Sets the wall clock to any time within some days of the right one.
    fn jump(&mut self) {
        self.harm.clock_jumps += 1;
        self.folder.clock().shift(self.rng.i64(-JUMP_MS..=JUMP_MS));
    }

    /// Takes all the room that is left, for a while.
    async fn fill(&mut self) {
        self.harm.full_disks += 1;
        let filler = self.folder.data().join("filler");
        let at = filler.clone();
        tokio::task::spawn_blocking(move || fill(&at))
            .await
            .unwrap();
        sleep(Duration::from_millis(self.rng.u64(50..600))).await;
        if self.rng.bool() {
            self.kill().await;
        }
        std::fs::remove_file(filler).unwrap();
    }

    /// Starts it again, when it has ended.
    async fn revive(&mut self) {
        if let Some(host) = &mut self.host {
            if host.died(DEATH).await.is_none() {
                return;
            }
            self.harm.ends += 1;
        }
        for _ in 0..STARTS_MAX {
            self.harm.starts += 1;
            if let Ok(Ok(host)) = timeout(Duration::from_secs(60), self.folder.start(None)).await {
                self.line.send_replace(host.line());
                self.host = Some(host);
                return;
            }
        }
        panic!("it does not start again: {}", self.folder.log());
    }
}

/// Writes to a file until there is no room.
fn fill(at: &std::path::Path) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::create(at).unwrap();
    let mut piece = 256_u64 << 20;
    let mut end = 0;
    while piece >= 4096 {
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), end, piece) {
            Ok(()) => end += piece,
            Err(_) => piece /= 2,
        }
    }
    // What is left of the last page.
    let _ = file.write_at(&[0; 4096], end);
}
