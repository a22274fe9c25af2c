//! What a panic of a driver leads to: the session goes on from what is stored, as after a restart of the process, or the turn is given up.

use super::{Driver, Trouble};
use domain::run::end::Cause;
use std::time::Duration;

/// Panics of a driver in a row, with nothing recorded in between, after which it gives up what it was about.
const PANICS_MAX: u32 = 3;
/// The pause after a driver's first panic, in milliseconds; it doubles up to [`PAUSE_MS_MAX`].
const PAUSE_MS: u64 = 200;
/// The longest pause after a driver's panic, in milliseconds.
const PAUSE_MS_MAX: u64 = 5_000;

impl Driver {
    /// Forgets everything that is in memory only. What was being worked on is stopped, and what becomes of it is decided as after a restart.
    pub(super) async fn begin_anew(&mut self, panic: &str) {
        let run = self.driving.as_ref().map(|driving| driving.run.started.run.to_string());
        if let Some(driving) = self.driving.take() {
            self.owed = Some(driving.into_ledger(self.core.now()).await);
        }
        self.idle = None;
        self.ticket = None;
        self.starting = None;
        self.stale = true;
        let pause_ms = PAUSE_MS.saturating_mul(1 << self.panics.min(16)).min(PAUSE_MS_MAX);
        self.panics += 1;
        let (session, count) = (self.session, self.panics);
        tracing::error!(session.id = %session, run.id = run, panic, count, pause_ms, "a session's driver panicked; it begins anew from the store");
        // Nobody is heard meanwhile: who speaks to it must not use up its attempts.
        tokio::select! {
            () = self.core.stopping.cancelled() => {}
            () = tokio::time::sleep(Duration::from_millis(pause_ms)) => {}
        }
    }

    /// Whether it panicked so often in a row that going on as before leads nowhere.
    pub(super) fn keeps_panicking(&self) -> bool {
        self.panics >= PANICS_MAX
    }

    /// Ends the turn, or puts the input aside that no turn can be begun with. If that keeps panicking too, the session is left alone.
    pub(super) async fn give_up(&mut self) -> Result<(), Trouble> {
        let reason =
            format!("the host failed {} times in a row while it worked on this; whoever runs it finds the reason in its log", self.panics);
        tracing::error!(session.id = %self.session, count = self.panics, "a session's driver keeps panicking: it gives up what it was about");
        if !self.refresh().await? {
            let (Some(opening), Some(session)) = (self.opening().await?, self.idle.take()) else {
                self.panics = 0;
                return Ok(());
            };
            // A run that fails tells whoever waits for it. Only if that panicked too is the input put aside without.
            if self.panics > PANICS_MAX {
                return self.bury(&opening.inputs, reason).await;
            }
            self.start(opening, session).await?;
        }
        self.fail(Cause::Failed { code: "host-failed".to_owned(), reason }).await
    }
}
