//! The broker itself, which all commands are given to.

use super::Error;
use crate::boxed::boxed;
use crate::catalogue::Catalogue;
use crate::clock::{Clock, ClockState};
use crate::core::{Core, Stats};
use crate::live::Live;
use crate::refusals::busy;
use crate::telemetry::Listener;
use domain::path::ModelRole;
use domain::telemetry::TelemetryFilter;
use domain::usage::UsageSum;
use serde_json::Value;
use std::marker::PhantomData;
use std::sync::Arc;
use store::{Maintenance, ReadError, Store, UsageBy, UsageFilter, UsageRow};
use tokio::sync::watch;

/// The broker. It is cheap to clone.
#[derive(Clone)]
pub struct Broker {
    pub(crate) core: Arc<Core>,
    /// True if no rule on paths hides anything from the caller.
    pub(crate) is_unruled: bool,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker")
            .field("catalogue", &self.core.served().catalogue)
            .finish_non_exhaustive()
    }
}

/// A view of the broker on one subject, with the commands of that subject.
pub struct Handle<'a, S> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) is_unruled: bool,
    subject: PhantomData<S>,
}

impl<S> Handle<'_, S> {
    pub(crate) fn store(&self) -> &Store {
        &self.core.store
    }

    /// Returns the broker, for what outlives the handle.
    pub(crate) fn broker(&self) -> Broker {
        Broker {
            core: self.core.clone(),
            is_unruled: self.is_unruled,
        }
    }
}

impl<S> std::fmt::Debug for Handle<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

/// Declares the subjects and how the broker, and each handle, comes to the handle of one.
macro_rules! handles {
    ($($handle:ident $name:ident $doc:literal)+) => {
        /// The subjects of [`Handle`].
        pub mod subject {
            $(
                #[doc = $doc]
                #[derive(Debug)]
                pub enum $handle {}
            )+
        }

        $(
            #[doc = $doc]
            pub type $handle<'a> = Handle<'a, subject::$handle>;
        )+

        impl Broker {
            $(
                #[doc = $doc]
                #[must_use]
                pub fn $name(&self) -> $handle<'_> {
                    let subject = PhantomData;
                    Handle { core: &self.core, is_unruled: self.is_unruled, subject }
                }
            )+
        }

        impl<'a, S> Handle<'a, S> {
            $(
                #[doc = $doc]
                #[must_use]
                pub fn $name(&self) -> $handle<'a> {
                    let subject = PhantomData;
                    Handle { core: self.core, is_unruled: self.is_unruled, subject }
                }
            )+
        }
    };
}

handles! {
    Sessions sessions "Sessions: opening, reading, names, clearing and the end of structured ones."
    Runs runs "Runs: cancelling, compaction on request, answers to questions, reports."
    Switches switches "Switches of a user to another agent, and returns."
    Transcripts transcripts "Threads: turns, comparisons, forks, search, export and import."
    Messages messages "Messages to agents: their routing, their acceptance, the wait for a reply."
    Agents agents "Agents: making, settings, users, archiving."
    Definitions definitions "Definitions that users make."
    Paths paths "Agents by their paths."
    Configuration configuration "The configuration that is served."
    Queue queue "Inputs that wait, and the settings of queues."
    DeadLetters dead_letters "Inputs that no turn took."
    Tasks tasks "Work that agents handed to each other."
    Files files "Files that users hand over."
    Keys keys "API keys."
    ExternalAgents external_agents "Sessions of external agents, and their answers."
    Connectors connectors "Connectors and their keys."
    Memory memory "Notes of agents."
    Imports imports "The old system's sessions."
    Access access "What a user may see, command and store, and readings by the operator."
    Requests requests "Requests under an idempotency key."
    Models models "Models, and the settings of replies."
    Quarantines quarantines "Sessions that cannot continue."
    Feeds feeds "Events as they are followed, and who sees them."
}

impl Broker {
    pub(crate) fn store(&self) -> &Store {
        &self.core.store
    }

    /// Returns the store for those who keep it running. It shows nothing that anybody said.
    #[must_use]
    pub fn maintenance(&self) -> &Maintenance {
        &self.core.store
    }

    /// Returns the catalogue that is served now.
    #[must_use]
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.core.served().catalogue.clone()
    }

    /// Returns a watch on a counter that changes whenever an API key is revoked. A holder of a
    /// right that depends on a key checks it again then.
    #[must_use]
    pub fn revocations(&self) -> watch::Receiver<u64> {
        self.core.revocations.subscribe()
    }

    /// Returns the host's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.core.clock
    }

    /// Adopts the wall clock, because an operator confirmed it. A clock that is ahead is followed:
    /// everything due by it becomes due, and it no longer extends the lifetime of keys. By one that
    /// is behind, credentials expire, also after a restart.
    #[boxed]
    pub async fn confirm_clock(&self) -> ClockState {
        let state = self.core.clock.confirm();
        // Written before the answer, so that the next process knows it.
        self.core.clock.carry().await;
        self.core.keep_keys();
        self.core.timers.notify_one();
        state
    }

    /// Returns figures of the broker: its drivers and how often they were woken.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Subscribes to telemetry. With `content`, chunks of replies include their text: the caller
    /// has recorded the reading.
    #[must_use]
    pub fn listen(&self, filter: TelemetryFilter, content: bool) -> Listener {
        let from = *self.core.store.durable().borrow();
        self.core.telemetry.listen(from, filter, content)
    }

    /// Returns the faults of a document by a JSON Schema that is used once, each with its place;
    /// none when it fits.
    ///
    /// # Errors
    /// It could not be compared in time.
    #[boxed]
    pub async fn complaints(
        &self,
        schema: &Value,
        document: Value,
    ) -> Result<Option<String>, Error> {
        let judged = self.core.schemas.judge(schema, document).await;
        judged.map_err(|given_up| busy(&given_up.to_string()).into())
    }

    /// Returns the feed of ephemeral frames.
    #[must_use]
    pub fn live(&self) -> &Live {
        &self.core.live
    }
}

impl Models<'_> {
    /// Returns the model that is configured for a role now; none without one.
    #[must_use]
    pub fn of_role(&self, role: ModelRole) -> Option<String> {
        let served = self.core.served();
        served.settings.paths.models.get(&role).cloned()
    }

    /// Returns a page of what models and tools used, and the sum of all pages.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn usage(
        &self,
        by: UsageBy,
        filter: UsageFilter,
        after: Option<String>,
        limit: usize,
    ) -> Result<(UsageSum, Vec<UsageRow>), ReadError> {
        let total = self.store().usage_total(filter.clone()).await?;
        let rows = self.store().usage(by, filter, after, limit).await?;
        Ok((total, rows))
    }
}
