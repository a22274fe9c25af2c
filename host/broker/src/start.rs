//! The start and the shutdown of a broker.

use crate::admission::{self, AdmissionReason};
use crate::boxed::boxed;
use crate::catalogue::Catalogue;
use crate::clock::Clock;
use crate::command::MADE_DEFINITIONS_MAX;
use crate::computing::Computing;
use crate::core::{Core, CoreParts, Limits, WakePort};
use crate::driver::Driver;
use crate::engine::Runtime;
use crate::isolation;
use crate::paths::PathSettings;
use crate::purge;
use crate::quarantine::{QuarantineCause, Quarantined};
use crate::recovery;
use crate::refusals::session_unknown;
use crate::restored::{self, AfterRestore};
use crate::serving::Settings;
use crate::shared::{Broker, Error};
use crate::telemetry;
use crate::timers;
use domain::id::SessionId;
use llm::Gateway;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::{CommitError, Store};

/// The time that drivers have to stop their work and to record its results.
///
/// It is a second for the work to stop, another for its unfinished calls, and the commit.
const LEAVE: Duration = Duration::from_secs(5);
/// The time that the shutdown waits for the store, whose disk may not answer.
const CLOSE: Duration = Duration::from_secs(5);

/// The parts that a broker is made of.
pub struct Parts {
    /// The event store.
    pub store: Store,
    /// The guests' runtime.
    pub runtime: Runtime,
    /// The model gateway.
    pub gateway: Arc<Gateway>,
    /// The catalogue of all that is configured.
    pub catalogue: Catalogue,
    /// Limits.
    pub limits: Limits,
    /// The treatment of work that was under way in the backup that the store was made from, if any.
    pub after_restore: AfterRestore,
    /// The operator's settings on agents by their paths.
    pub paths: PathSettings,
    /// The sessions that are in quarantine from the start. No work begins for them until they are
    /// released.
    pub skipped: Vec<SessionId>,
    /// The host's clock. It is reset with the store.
    pub clock: Clock,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts")
            .field("catalogue", &self.catalogue)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Broker {
    /// Starts a broker. It gradually continues every run that was open when the last one stopped.
    ///
    /// # Errors
    /// The store cannot be read. `RESTORED_FROM_BACKUP` if the store was made from a backup with
    /// work under way and the operator has not decided about that work ([`AfterRestore`]). A
    /// session to skip does not exist, or a start-up record cannot be committed.
    #[boxed]
    pub async fn start(parts: Parts) -> Result<Self, Error> {
        parts.clock.begin(parts.store.latest_at_open());
        parts.clock.carry().await;
        let port = WakePort::new(|core, seat| {
            core.clone().spawn(Driver::new(core, seat).drive());
        });
        let made = parts.store.made_definitions(MADE_DEFINITIONS_MAX).await?;
        let none = Catalogue::default();
        let catalogue = parts.catalogue.with_all_made(&made, &none);
        let computed = Computing::left(parts.store.folder());
        let core = Core::new(
            CoreParts {
                store: parts.store,
                runtime: parts.runtime,
                catalogue,
                settings: Settings {
                    limits: parts.limits,
                    paths: parts.paths,
                    gateway: parts.gateway,
                },
                clock: parts.clock,
                computing: Computing::default(),
            },
            port,
        );
        skip(&core, parts.skipped).await?;
        let was_ended = was_ended(&core).await?;
        core.keep_keys();
        restored::see_to(&core, parts.after_restore).await?;
        purge::finish_open(&core).await;
        admission::admit(&core, &core.served(), AdmissionReason::Start, None).await?;
        let work = core.store.sessions_with_work(core.now()).await?;
        core.to_recover(work.len());
        core.recovering.begin(&core.store, was_ended, &work).await;
        let found = recovery::inspect_suspects(&core, was_ended, work.clone()).await;
        let blamed = if was_ended { BTreeSet::new() } else { computed };
        let groups = isolation::begin(&core, &blamed, &work).await;
        core.spawn(isolation::resume(core.clone(), groups));
        let recovered = core.spawn(recovery::go_on(core.clone(), found));
        core.spawn(telemetry::relay(core.clone()));
        let watched = core.clone();
        core.spawn(async move {
            if !was_ended {
                // Timers would wake sessions that are not noted yet.
                let _ = recovered.await;
            }
            timers::watch(watched).await;
        });
        Ok(Self {
            core,
            is_unruled: false,
        })
    }

    /// Shuts the broker down: no work begins, running work is drained, and the store is closed.
    ///
    /// Work has `drain` to reach a commit. Unfinished work continues at the next start.
    #[boxed]
    pub async fn shutdown(&self, drain: Duration) {
        self.core.stop();
        if tokio::time::timeout(drain, self.core.ended())
            .await
            .is_err()
        {
            tracing::warn!(
                "some turns did not come to a pause in time; they go on at the next start"
            );
            self.core.killed.cancel();
            // A driver in the middle of a commit finishes it.
            let _ = tokio::time::timeout(LEAVE, self.core.ended()).await;
        }
        let end = async {
            self.end_work().await;
            self.core.store.close().await;
        };
        if tokio::time::timeout(CLOSE, end).await.is_err() {
            tracing::warn!(
                "the disk does not answer: the store is left as it is, and takes up what its log \
                 holds when it is opened again"
            );
        }
    }

    /// Records that the host is about to end on request. Work under way continues at the next
    /// start, and the end does not count against it.
    #[boxed]
    pub async fn note_end(&self) {
        if tokio::time::timeout(CLOSE, self.end_work()).await.is_err() {
            tracing::warn!(
                "the disk does not answer: it is not noted that the host was told to end"
            );
        }
    }

    async fn end_work(&self) {
        match self.core.store.end_work().await {
            // It is already recorded.
            Ok(()) | Err(CommitError::Closed) => {}
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "it cannot be noted that the host was told to end"
            ),
        }
    }
}

/// Returns whether the last host on the store ended on request.
async fn was_ended(core: &Core) -> Result<bool, Error> {
    // The store of a backup does not show how the host that made the backup ended.
    Ok(core.store.was_ended() || core.store.backup_mark().await?.is_some())
}

/// Puts the sessions into quarantine that the operator named at the start.
async fn skip(core: &Core, sessions: Vec<SessionId>) -> Result<(), Error> {
    for session in sessions {
        if matches!(core.store.session(session).await, Ok(None)) {
            return Err(session_unknown(session).into());
        }
        tracing::warn!(session.id = %session, "a session is skipped: nothing is done for it \
            until it is released");
        let reason = "the host was started with `serve --skip` for it".to_owned();
        core.quarantine.put(Quarantined {
            session,
            why: QuarantineCause::Skipped,
            reason,
            since: core.now(),
        });
    }
    Ok(())
}
