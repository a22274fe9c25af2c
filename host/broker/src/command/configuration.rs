//! Another configuration in the place of the present one, as a whole.

use super::{Configuration, Error, MADE_DEFINITIONS_MAX};
use crate::admission::{AdmissionReason, admit};
use crate::boxed::boxed;
use crate::catalogue::Catalogue;
use crate::journal::Context;
use crate::serving::{Served, Settings};
use domain::definition::DefinitionId;
use domain::difference::{DIFFERENCES_MAX, Difference};
use domain::digest::Digest;
use domain::event::{
    ConfigRefused, ConfigReloaded, DefinitionMade, Event, REFUSAL_BYTES_MAX, ReloadCause,
};
use domain::id::Stream;
use domain::user::UserId;
use std::sync::Arc;
use store::{Commit, Expected};

/// A new configuration, with the facts that are recorded about the change.
#[derive(Debug)]
pub struct Reload {
    /// The catalogue, a successor of the present one.
    pub catalogue: Catalogue,
    /// The settings that are served with it.
    pub settings: Settings,
    /// The trigger event of the change.
    pub because: ReloadCause,
    /// The user who requested it, if any.
    pub user: Option<UserId>,
    /// The keys that differ from the served configuration.
    pub differences: Vec<Difference>,
    /// The keys that were changed since the start and are read at a start only.
    pub needs_restart: Vec<String>,
}

/// A configuration that was read and refused as a whole.
#[derive(Debug, Clone)]
pub struct RefusedReload {
    /// The trigger event on which it was read.
    pub because: ReloadCause,
    /// The user who requested it, if any.
    pub user: Option<UserId>,
    /// The reason in words. It is truncated to the maximum of the record.
    pub reason: String,
}

/// The configurations before and after a change, as records name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reloaded {
    /// The configuration that is served now.
    pub configuration: Digest,
    /// The configuration that was served before; the same if nothing has changed.
    pub replaces: Digest,
}

impl Configuration<'_> {
    /// Serves another configuration from now on, as a whole: it applies to every turn that begins
    /// later. A turn in progress keeps the code, the tools, the models and the limits that it began
    /// with, except those withdrawn since, and uses the present grants. Turns of removed
    /// definitions end at once.
    ///
    /// The record of the change, and the admission of every changed component, are durable before
    /// anything runs under it. The definitions that users made are served with it, as far as their
    /// templates still allow.
    ///
    /// # Errors
    /// The record cannot be committed, or users' definitions cannot be read. Then nothing has
    /// changed.
    #[boxed]
    pub async fn reload(&self, reload: Reload) -> Result<Reloaded, Error> {
        let Reload {
            catalogue,
            settings,
            because,
            user,
            mut differences,
            needs_restart,
        } = reload;
        let core = self.core;
        // The components that were admitted last are the served ones.
        let _replacing = core.replacing.lock().await;
        let before = core.served();
        let made = core.store.made_definitions(MADE_DEFINITIONS_MAX).await?;
        let catalogue = with_made(catalogue, made, before.clone()).await?;
        let next = Served::new(catalogue, settings);
        let reloaded = Reloaded {
            configuration: next.version,
            replaces: before.version,
        };
        let left_out = differences.len().saturating_sub(DIFFERENCES_MAX);
        differences.truncate(DIFFERENCES_MAX);
        let record = (next.version != before.version).then(|| {
            Event::ConfigReloaded(Box::new(ConfigReloaded {
                configuration: next.version,
                replaces: before.version,
                because,
                user_id: user,
                differences,
                left_out: u64::try_from(left_out).unwrap_or(u64::MAX),
                needs_restart,
                time: core.now(),
            }))
        });
        admit(core, &next, AdmissionReason::Replacement, record).await?;
        let gone = gone(&before.catalogue, &next.catalogue);
        core.serving.replace(next);
        core.runtime.forget_unused();
        self.end_turns_of(gone);
        Ok(reloaded)
    }

    /// Records that a configuration was refused: the served one stays. Secrets are left out of the
    /// reason.
    ///
    /// # Errors
    /// The record cannot be committed.
    #[boxed]
    pub async fn note_refused(&self, refused: RefusedReload) -> Result<(), Error> {
        let RefusedReload {
            because,
            user,
            reason,
        } = refused;
        let core = self.core;
        let time = core.now();
        let secrets = core.runtime.secrets();
        let mut reason = secrets.redactor().text(&reason).into_owned();
        reason.truncate(reason.floor_char_boundary(REFUSAL_BYTES_MAX));
        let context = match &user {
            Some(user) => Context::by(user, time),
            None => Context::new("host", time),
        };
        let event = Event::ConfigRefused(Box::new(ConfigRefused {
            configuration: core.served().version,
            because,
            user_id: user,
            reason,
            time,
        }));
        let commit = Commit::new().append(Stream::Host, Expected::Any, vec![context.event(event)]);
        let committed = core.store.commit(commit).await;
        committed.map(drop).map_err(Error::unavailable)
    }

    /// Serves another catalogue from now on, with the same settings and no record except the
    /// admissions of changed components. The definitions that users made are served with it, too.
    ///
    /// # Errors
    /// The admission cannot be committed, or users' definitions cannot be read. Then nothing has
    /// changed.
    #[boxed]
    pub async fn replace_catalogue(&self, next: Catalogue) -> Result<(), Error> {
        let core = self.core;
        let _replacing = core.replacing.lock().await;
        let made = core.store.made_definitions(MADE_DEFINITIONS_MAX).await?;
        let before = core.served();
        let next = with_made(next, made, before.clone()).await?;
        let next = Served::new(next, before.settings.clone());
        admit(core, &next, AdmissionReason::Replacement, None).await?;
        let gone = gone(&before.catalogue, &next.catalogue);
        core.serving.replace(next);
        core.runtime.forget_unused();
        self.end_turns_of(gone);
        Ok(())
    }

    /// Ends the turns of definitions that were removed just now, including turns that only wait:
    /// their drivers are woken, and find that the definitions are no longer configured.
    pub(super) fn end_turns_of(&self, gone: Vec<DefinitionId>) {
        if gone.is_empty() {
            return;
        }
        let core = self.core.clone();
        self.core.spawn(async move {
            match core.store.sessions_running_as(&gone).await {
                Ok(sessions) => {
                    for session in sessions {
                        core.wake_in_turn(session).await;
                    }
                }
                Err(error) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "turns of definitions that were taken away could not be looked for; each ends \
                     when it next goes on"
                ),
            }
        });
    }

    /// Returns the settings that are served with the catalogue.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.core.served().settings.clone()
    }

    /// Returns the digest by which records name the configuration that is served.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.core.served().version
    }
}

/// Returns the definitions of one catalogue that another one does not have.
fn gone(before: &Catalogue, after: &Catalogue) -> Vec<DefinitionId> {
    let ids = before.definitions().map(|definition| &definition.agent_id);
    ids.filter(|id| after.definition(id).is_none())
        .cloned()
        .collect()
}

/// Returns a catalogue with the definitions that users made, of which there may be many.
async fn with_made(
    next: Catalogue,
    made: Vec<DefinitionMade>,
    before: Arc<Served>,
) -> Result<Catalogue, Error> {
    let all = move || next.with_all_made(&made, &before.catalogue);
    let all = tokio::task::spawn_blocking(all).await;
    all.map_err(Error::unavailable)
}
