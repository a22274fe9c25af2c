//! The recovery of a driver from panics: it continues from the store, or gives up the turn.
//!
//! It continues as after a restart of the process.

use super::state::Driver;
use crate::shared::DriverError;
use domain::backoff::Backoff;
use domain::run::end::Cause;
use domain::run::recover::GIVEN_UP;
use std::time::Duration;

/// Panics of a driver in a row, with nothing recorded in between, after which it gives up its turn.
const PANICS_MAX: u32 = 3;
/// Pauses after a driver's panics.
const PAUSES: Backoff = Backoff {
    first_ms: 200,
    most_ms: 5_000,
};

impl Driver {
    /// Forgets all that is only in memory. Work under way is stopped and is then treated as after a
    /// restart.
    pub(super) async fn begin_anew(&mut self, panic: &str) {
        let run = self
            .phase
            .driving()
            .map(|driving| driving.run.started.run.to_string());
        let forgotten = std::mem::take(&mut self.phase);
        if let Some(owed) = forgotten.into_ledger(self.context.core.now()).await {
            self.owed = Some(owed);
        }
        self.ticket = None;
        self.starting = None;
        self.stale = true;
        self.failures.panics += 1;
        let session = self.context.session;
        let count = self.failures.panics;
        let pause_ms = PAUSES.pause_ms(count);
        tracing::error!(session.id = %session, run.id = run, panic, count, pause_ms, "a session's \
            driver panicked; it begins anew from the store");
        // Nothing is heard meanwhile: signals must not use up the attempts.
        tokio::select! {
            () = self.context.core.stopping.cancelled() => {}
            () = tokio::time::sleep(Duration::from_millis(pause_ms)) => {}
        }
    }

    /// Returns whether it panicked so often in a row that going on as before leads nowhere.
    pub(super) fn keeps_panicking(&self) -> bool {
        self.failures.panics >= PANICS_MAX
    }

    /// Ends the turn, or puts aside the inputs with which no turn can begin.
    ///
    /// If that keeps panicking too, the session is put into quarantine.
    pub(super) async fn give_up(&mut self) -> Result<(), DriverError> {
        let count = self.failures.panics;
        let reason = format!(
            "the host failed {count} times in a row while it worked on this; whoever runs \
                     it finds the reason in its log"
        );
        tracing::error!(session.id = %self.context.session, count, "a session's driver keeps panicking: it \
                                                            gives up what it was about");
        if !self.refresh().await? {
            let opening = self.context.opening().await?;
            let session = self.phase.take_idle();
            let (Some(opening), Some(session)) = (opening, session) else {
                self.failures.panics = 0;
                return Ok(());
            };
            // A run that fails reports to its caller. Only if that panicked too are the inputs put
            // aside instead.
            if count > PANICS_MAX {
                return self.bury(&opening.inputs, reason).await;
            }
            self.start(opening, session).await?;
        }
        self.fail(Cause::Failed {
            code: GIVEN_UP.to_owned(),
            reason,
        })
        .await
    }
}
