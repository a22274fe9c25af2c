//! The preparation of a step: all data that it sees is read and frozen.

use super::context::SessionContext;
use super::driving::Driving;
use super::frozen::{Frozen, OwnOf};
use super::state::Driver;
use crate::catalogue::Entry;
use crate::engine::Component;
use crate::fresh;
use crate::resolved_config::ResolvedConfig;
use crate::shared::DriverError;
use domain::digest::{Digest, Salt};
use domain::event::InputAccepted;
use domain::role::AgentRole;
use domain::run::end::Cause;
use domain::run::intake::{Intake, intake};
use domain::time::Timestamp;
use runtime::Described;
use std::sync::Arc;
use store::AgentRow;

/// The reason for the end of a turn whose resolved config is not stored any more.
const TURN_CONFIG_GONE: &str = "the tools and settings that this turn began with are gone";
/// The reason for the end of a run that compacts its thread, in the same case.
const RUN_CONFIG_GONE: &str = "the tools and settings that this run began with are gone";

/// A step that can be taken.
pub(super) struct Prepared {
    pub(super) agent: AgentRow,
    /// The resolved config that the run began with.
    pub(super) config: Arc<ResolvedConfig>,
    pub(super) intake: Intake,
    /// The role of the run's user with the agent.
    pub(super) role: Option<AgentRole>,
    pub(super) frozen: Frozen,
    pub(super) salt: Salt,
    /// The time of the step, as its view has it.
    pub(super) time: Timestamp,
}

impl Driver {
    /// Prepares the step of the open run by this code. The inner error is the end of the run,
    /// because something that it began with is missing.
    pub(super) async fn prepare(
        &mut self,
        words: &[InputAccepted],
        code: Digest,
    ) -> Result<Result<Prepared, Cause>, DriverError> {
        let begun_with = self.phase.take_agent();
        let driving = self.phase.open()?;
        let time = self.context.core.now();
        let salt = fresh::salt();
        let agent = match begun_with {
            Some(agent) => agent,
            None => self.context.agent_row(driving).await?,
        };
        let agent = self.context.with_own(driving, agent).await?;
        let mut intake = self.context.take_in(driving, words, salt);
        let core = &self.context.core;
        let Some(config) = core
            .serving
            .config_of_run(&core.store, &driving.run.started)
            .await?
        else {
            let reason = match driving.run.started.compacts {
                None => TURN_CONFIG_GONE,
                Some(_) => RUN_CONFIG_GONE,
            };
            return Ok(Err(Cause::Failed {
                code: "configuration-gone".to_owned(),
                reason: reason.to_owned(),
            }));
        };
        let beginning = self.phase.beginning();
        let own_of = OwnOf {
            driving,
            agent: &agent,
            config: &config,
            code,
        };
        let overrides = beginning.and_then(|starting| starting.overrides.clone());
        let sections = beginning.and_then(|starting| starting.sections.clone());
        let own = match self.context.own(own_of, overrides).await? {
            Ok(own) => own,
            Err((code, reason)) => {
                return Ok(Err(Cause::Failed {
                    code: code.to_owned(),
                    reason: reason.to_owned(),
                }));
            }
        };
        let role = own.role;
        // A step of the host's own reads no history.
        intake.history_untrusted =
            driving.run.started.compacts.is_none() && own.history_is_untrusted();
        let mut frozen = self.context.freeze(own_of, &intake, own, time);
        frozen.blobs.extend(sections);
        Ok(Ok(Prepared {
            agent,
            config,
            intake,
            role,
            frozen,
            salt,
            time,
        }))
    }
}

impl SessionContext {
    /// Adds the preferences of the run's user to the agent, and of no other user.
    async fn with_own(
        &self,
        driving: &Driving,
        mut agent: AgentRow,
    ) -> Result<AgentRow, DriverError> {
        let user = &driving.run.started.user_id;
        let own = self.store().remembered_of(agent.agent.id, user).await?;
        agent.agent.user_preferences = own.map(|keys| (user.clone(), keys)).into_iter().collect();
        Ok(agent)
    }

    /// Returns the intake of a step. A first step claims only the inputs that its run's start has
    /// claimed.
    fn take_in(&self, driving: &Driving, words: &[InputAccepted], salt: Salt) -> Intake {
        let mut intake = intake(&driving.run, driving.settlements(), words, salt);
        if driving.run.step == 0 {
            intake.claimed.clear();
        }
        intake
    }

    /// Returns the component that is configured for a run's agent.
    pub(super) fn configured(&self, driving: &Driving) -> Result<Arc<Entry>, DriverError> {
        let definition = self
            .served
            .catalogue
            .definition(&driving.run.started.definition)
            .ok_or_else(|| missing_definition(driving))?;
        let entry = self.served.catalogue.entry(&definition.component);
        entry
            .cloned()
            .ok_or_else(|| DriverError::Missing(format!("component `{}`", definition.component)))
    }

    /// Returns the code that takes the next step; none if it no longer exists.
    ///
    /// A run that began in this process ends with the version that it began with. A run from before
    /// a restart changes to a newer version as soon as that can read the memo; until then it stays
    /// with the version that wrote the memo. If the present version is pinned, neither runs any
    /// other.
    pub(super) async fn component(
        &self,
        driving: &Driving,
        current: &Entry,
    ) -> Result<Option<Arc<Component>>, DriverError> {
        let run = &driving.run;
        if let Some(earlier) = self.core.serving.earlier_agent(&run.started, current) {
            return Ok(Some(earlier));
        }
        let accepts = |format: u32| match current.component.describes() {
            Described::Agent(description) => description.memo_formats.contains(&format),
            Described::Tools(_) | Described::Trigger(_) | Described::Connector(_) => false,
        };
        if current.component.digest() == run.component
            || run.memo.as_ref().is_none_or(|memo| accepts(memo.format))
        {
            return Ok(Some(current.component.clone()));
        }
        if current.is_pinned {
            return Ok(None);
        }
        let kept = self.core.runtime.kept(run.component).await;
        Ok(kept.map(|kept| kept.in_place_of(&current.component)))
    }
}

fn missing_definition(driving: &Driving) -> DriverError {
    DriverError::Missing(format!("definition `{}`", driving.run.started.definition))
}
