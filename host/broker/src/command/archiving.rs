//! Archiving agents: alone, or with a successor at the same path.

use super::once::{AsItWas, Plan};
use super::reason::checked_reason;
use super::{AgentView, Agents, By, Error, Request, Target};
use crate::boxed::boxed;
use crate::core::fresh;
use crate::journal::Context;
use crate::refusals::spawned;
use domain::agent::Agent;
use domain::authority::{Denies, Permissions};
use domain::event::{AgentCreated, Event};
use domain::id::{AgentId, Stream};
use domain::path::AgentConfig;
use domain::role::{AgentRole, Right};
use domain::user::UserId;
use serde_json::json;
use store::{Commit, Expected};

impl Agents<'_> {
    /// Archives an agent, and with it those below it. Their open runs end as cancelled.
    ///
    /// # Errors
    /// It is archived already, a structured session is active, the user may not.
    #[boxed]
    pub async fn archive<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        reason: String,
    ) -> Result<AgentView, Error> {
        let reason = checked_reason(Some(reason), "")?;
        let asked = json!({ "archive": reason });
        let archive = |agent: &Agent, now| Ok(vec![agent.archive(reason.clone(), now)?]);
        let view = self
            .change(by, target, Right::Archive, asked, archive)
            .await?;
        self.end_runs_of(view.row.agent.id).await?;
        Ok(view)
    }

    /// Wakes the drivers of the open runs of an archived agent and of those below it, which end
    /// them.
    ///
    /// After a restart the drivers check these runs in any case.
    async fn end_runs_of(&self, archived: AgentId) -> Result<(), Error> {
        for session in self.store().sessions_running_below(archived).await? {
            self.core.wake(session);
        }
        Ok(())
    }

    /// Archives an agent and makes another from the same definition at the same path, both or
    /// neither.
    ///
    /// The new agent has the same name. The archived one is returned first.
    ///
    /// # Errors
    /// As for archiving; the definition is not configured any more.
    #[boxed]
    pub async fn start_afresh<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        reason: String,
    ) -> Result<(AgentView, AgentView), Error> {
        let reason = checked_reason(Some(reason), "")?;
        let request = Request::of(
            by,
            &json!({ "start_afresh": target.named(), "reason": reason }),
        )?;
        let plan = || self.planned_replacement(by.user, target, &reason);
        let (archived, fresh) = self
            .requests()
            .carry_out(request.as_ref(), "the agent", plan)
            .await?;
        self.end_runs_of(archived.agent).await?;
        Ok((
            self.view_as_it_was(&archived).await?,
            self.view_as_it_was(&fresh).await?,
        ))
    }

    /// Returns the commit that archives an agent and makes another, with both as they are then.
    async fn planned_replacement(
        &self,
        user: &UserId,
        target: &Target,
        reason: &str,
    ) -> Result<Plan<(AsItWas, AsItWas)>, Error> {
        let (row, role) = self.find(user, target).await?;
        if row.parent.is_some() {
            return Err(spawned(row.agent.id).into());
        }
        role.permits(Right::Archive)?;
        self.access().may_command(user, row.agent.path.as_str())?;
        let now = self.core.now();
        let id = row.agent.id;
        let archived = row.agent.archive(reason.to_owned(), now)?;
        let definition = self.definition(&row.agent.definition)?;
        let fresh = AgentCreated {
            agent: fresh::agent(),
            definition: definition.agent_id.clone(),
            agent_type: self.core.served().catalogue.agent_type(&definition),
            path: row.agent.path.clone(),
            kind: row.kind,
            config: AgentConfig {
                name: row.agent.config.name.clone(),
                ..AgentConfig::default()
            },
            parent: None,
            owner_user_id: user.clone(),
            name: row.agent.name.clone(),
            denies: Denies::default(),
            permissions: Permissions::default(),
            created_at: now,
        };
        let made = fresh.agent;
        let both = (
            AsItWas {
                agent: id,
                version: row.version + 1,
                role,
            },
            AsItWas {
                agent: made,
                version: 1,
                role: AgentRole::Primary,
            },
        );
        let context = Context::by(user, now);
        let of = |id: AgentId, event| vec![context.clone().about(id, None, None).event(event)];
        let commit = Commit::new()
            .append(
                Stream::Agent(id),
                Expected::Version(row.version),
                of(id, archived),
            )
            .append(
                Stream::Agent(made),
                Expected::New,
                of(made, Event::AgentCreated(fresh)),
            );
        Ok(Plan::new(commit, both))
    }
}
