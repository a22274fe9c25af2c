//! Harm that is done to a host, and its restarts.

use super::clients::Ledger;
use agent_host_tests::process::{Folder, Host, Line};
use agent_host_tests::slow_disk::{Syncs, count};
use domain::time::Timestamp;
use fastrand::Rng;
use rustix::process::{Signal, kill_process};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// Time for which the host goes unharmed before each harm of the first pass, in milliseconds.
const FIRST_QUIET_MS: std::ops::Range<u64> = 100..300;
/// The same between two later harms.
const QUIET_MS: std::ops::Range<u64> = 100..900;
/// Time within which a disk that misbehaves is asked to sync something.
const ASKED: Duration = Duration::from_secs(5);
/// Time for which reads of the database fail, in milliseconds.
const FAILING_READS_MS: std::ops::Range<u64> = 2_000..8_000;
/// Time after the last harm within which no session is in quarantine any more.
const RELEASED: Duration = Duration::from_secs(10);
/// Time that an inspection of the host's clock may take.
const POLL: Duration = Duration::from_secs(5);
/// Milliseconds between two polls at the host's clock that are no jump: more than both may take.
const POLLS_MS: u64 = 15_000;
/// Distance of a wrong time from the right one, in milliseconds: more than keys are remembered.
const JUMP_MS: i64 = 9 * 24 * 3_600_000;
/// Failed starts of a host after which that is a finding.
const STARTS_MAX: u32 = 3;
/// Time that a host has to end when it ends by itself.
const DEATH: Duration = Duration::from_millis(300);

/// A way in which a host is harmed.
#[derive(Debug, Clone, Copy)]
enum HarmKind {
    Jump,
    Stop,
    SlowSyncs,
    FailingSyncs,
    HangingSyncs,
    FailingReads,
    FullDisk,
    Kill,
}

/// Every way: a host is harmed once in each before chance decides.
const EVERY: [HarmKind; 8] = [
    HarmKind::Jump,
    HarmKind::Stop,
    HarmKind::SlowSyncs,
    HarmKind::FailingSyncs,
    HarmKind::HangingSyncs,
    HarmKind::FailingReads,
    HarmKind::FullDisk,
    HarmKind::Kill,
];
/// Further entries of the ways that chance chooses among: deaths come more often than the rest.
const MORE_OFTEN: [HarmKind; 4] = [
    HarmKind::Kill,
    HarmKind::Kill,
    HarmKind::Kill,
    HarmKind::Stop,
];

/// Counts of the harms.
#[derive(Debug, Default)]
pub(super) struct Harm {
    starts: u64,
    kills: u64,
    /// The host ended by itself. It need not.
    ends: u64,
    stops: u64,
    slow_syncs: u64,
    failed_syncs: u64,
    hanging_syncs: u64,
    full_disks: u64,
    failed_reads: u64,
    /// The host was seen to have the new time.
    clock_jumps: u64,
}

impl Harm {
    /// Returns how often each harm was done.
    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("restarts", self.starts - 1),
            ("kills", self.kills),
            ("stops", self.stops),
            ("slow syncs", self.slow_syncs),
            ("failed syncs", self.failed_syncs),
            ("hanging syncs", self.hanging_syncs),
            ("full disks", self.full_disks),
            ("failed reads", self.failed_reads),
            ("clock jumps", self.clock_jumps),
        ]
    }
}

/// A host under torture.
pub(super) struct Chaos {
    folder: Folder,
    host: Option<Host>,
    line: watch::Sender<Line>,
    rng: Rng,
    harm: Harm,
    /// The distance of its clock from the right time, in milliseconds.
    shifted_ms: i64,
}

impl Chaos {
    pub(super) async fn start(folder: Folder, seed: u64) -> Self {
        let host = folder.serve().await;
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
            shifted_ms: 0,
        }
    }

    /// Returns the current address of the host, always up to date.
    pub(super) fn line(&self) -> watch::Receiver<Line> {
        self.line.subscribe()
    }

    /// Harms the host once in every way, and then by chance until it has lasted for so long.
    pub(super) async fn rage(&mut self, lasts: Duration) -> Harm {
        let until = Instant::now() + lasts;
        for harm_kind in EVERY {
            self.harm_by(harm_kind, FIRST_QUIET_MS).await;
        }
        let harm_kinds = [EVERY.as_slice(), MORE_OFTEN.as_slice()].concat();
        while Instant::now() < until {
            let harm_kind = harm_kinds[self.rng.usize(..harm_kinds.len())];
            self.harm_by(harm_kind, QUIET_MS).await;
        }
        std::mem::take(&mut self.harm)
    }

    async fn harm_by(&mut self, harm_kind: HarmKind, quiet_ms: std::ops::Range<u64>) {
        sleep(Duration::from_millis(self.rng.u64(quiet_ms))).await;
        match harm_kind {
            HarmKind::Jump => self.jump().await,
            HarmKind::Stop => self.stop().await,
            HarmKind::SlowSyncs => self.syncs(Syncs::Take(Duration::from_millis(4))).await,
            HarmKind::FailingSyncs => self.syncs(Syncs::Fail).await,
            HarmKind::HangingSyncs => self.syncs(Syncs::Hang).await,
            HarmKind::FailingReads => self.reads().await,
            HarmKind::FullDisk => self.fill().await,
            HarmKind::Kill => self.kill().await,
        }
        self.revive().await;
    }

    /// Lets it come to rest and stops it.
    pub(super) async fn end(mut self, ledger: &Ledger) -> Folder {
        self.revive().await;
        let host = self.host.take().unwrap();
        self.leaves_none_in_quarantine(&host).await;
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

    /// Has syncs misbehave for a while, in which at least one is asked for.
    async fn syncs(&mut self, syncs: Syncs) {
        let done = match syncs {
            Syncs::Fail => &mut self.harm.failed_syncs,
            Syncs::Hang => &mut self.harm.hanging_syncs,
            Syncs::Take(_) => &mut self.harm.slow_syncs,
        };
        let disk = self.folder.slow_disk();
        let asked = || count(disk.counter()).unwrap();
        let before = asked();
        disk.set(syncs).unwrap();
        sleep(Duration::from_millis(self.rng.u64(20..400))).await;
        let until = Instant::now() + ASKED;
        while asked() == before && Instant::now() < until {
            sleep(Duration::from_millis(5)).await;
        }
        *done += asked() - before;
        // One time in two it dies while its disk misbehaves.
        if self.rng.bool() {
            self.kill().await;
        }
        self.folder
            .slow_disk()
            .set(Syncs::Take(Duration::ZERO))
            .unwrap();
    }

    /// Has reads of the database fail for seconds, while turns are at work. One time in two it is
    /// killed meanwhile.
    async fn reads(&mut self) {
        self.harm.failed_reads += 1;
        self.folder.slow_disk().set_reads(false).unwrap();
        sleep(Duration::from_millis(self.rng.u64(FAILING_READS_MS))).await;
        if self.rng.bool() {
            self.kill().await;
        }
        self.folder.slow_disk().set_reads(true).unwrap();
    }

    /// Checks that no session is left in quarantine by what was done to the host.
    async fn leaves_none_in_quarantine(&self, host: &Host) {
        let until = Instant::now() + RELEASED;
        loop {
            let list = host.get("/api/quarantine").await.body["quarantined"].clone();
            if list.as_array().is_some_and(Vec::is_empty) {
                return;
            }
            assert!(
                Instant::now() < until,
                "still in quarantine: {list}; {}",
                self.folder.log()
            );
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Sets the wall clock to any time within some days of the right one, and looks whether the
    /// host's has followed.
    async fn jump(&mut self) {
        let to_ms = self.rng.i64(-JUMP_MS..=JUMP_MS);
        let before = self.wall_ms().await;
        self.folder.clock().shift(to_ms);
        let after = self.wall_ms().await;
        let by_ms = to_ms - self.shifted_ms;
        self.shifted_ms = to_ms;
        // Of a host that dies just now nothing is seen.
        let Some((before, after)) = before.zip(after) else {
            return;
        };
        let seen_ms = after - before;
        assert!(
            seen_ms.abs_diff(by_ms) < POLLS_MS,
            "the clock was set ahead by {by_ms} ms, and the host's went ahead by {seen_ms} ms"
        );
        self.harm.clock_jumps += u64::from(by_ms.unsigned_abs() > POLLS_MS);
    }

    /// Asks the host for its wall clock, in milliseconds.
    async fn wall_ms(&self) -> Option<i64> {
        let asked = self.host.as_ref()?.get("/api/clock");
        let answer = timeout(POLL, asked.attempt()).await.ok()?.ok()?;
        let wall: Timestamp = answer.text("wall").parse().ok()?;
        i64::try_from(wall.0).ok()
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
    let mut chunk = 256_u64 << 20;
    let mut end = 0;
    while chunk >= 4096 {
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), end, chunk) {
            Ok(()) => end += chunk,
            Err(_) => chunk /= 2,
        }
    }
    // What is left of the last page.
    let _ = file.write_at(&[0; 4096], end);
}
