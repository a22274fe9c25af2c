//! Checks of the model of a session, and of the settings with which its turns ask it.

use super::Whom;
use super::agents::Template;
use super::{CreateAgent, Error, Fork, GENERATION, Models, NewSession, Target};
use crate::serving::Served;
use crate::shared::error::invalid;
use domain::agent::Agent;
use domain::authority::Caller;
use domain::definition::Definition;
use domain::id::SessionId;
use domain::json::snake_case;
use domain::path::PathKind;
use domain::persona::PersonaId;
use domain::role::Right;
use domain::sampling::{GenerationSettings, SessionGeneration};
use domain::user::UserId;
use serde::Deserialize;
use std::collections::BTreeSet;
use store::SessionRow;

/// The turns for which a model is named.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns<'a> {
    /// The agent whose turns they are.
    pub(super) agent: &'a Agent,
    /// The kind of its path.
    pub(super) kind: PathKind,
    /// The persona under which its session is led.
    pub(super) persona: Option<&'a PersonaId>,
    /// The user who names it.
    pub(super) user: &'a UserId,
}

impl Turns<'_> {
    /// Returns whether a model may answer in these turns, by its alias.
    fn may_be_answered_by(&self, served: &Served, definition: &Definition, alias: &str) -> bool {
        let paths = &served.settings.paths;
        let persona = self.persona.and_then(|id| served.catalogue.persona(id));
        let permissions = persona
            .map(|persona| persona.permissions())
            .unwrap_or_default()
            .both(&self.agent.permissions)
            .both(&paths.permissions(self.user, self.agent.path.as_str(), self.kind, definition));
        let caller = Caller {
            agent: definition,
            denies: &self.agent.denies,
            permissions: &permissions,
        };
        let model = paths.named(&served.settings.gateway, self.kind, definition, alias);
        caller.may_be_answered_by(model).is_ok()
    }
}

impl Models<'_> {
    /// Returns the reason why a user may not name a model for a message to an agent, or to an agent
    /// that is determined later; none if the user may. The reason lists only models that the user
    /// may name.
    ///
    /// # Errors
    /// The agent does not exist, or the user may not talk with it.
    pub async fn unnameable(
        &self,
        user: &UserId,
        target: Option<&Target>,
        model: &str,
    ) -> Result<Option<String>, Error> {
        let nameable = self.nameable(user, target).await?;
        let may = |alias: &str| nameable.contains(alias);
        let gateway = self.core.gateway();
        let found = gateway.resolve(Some(model));
        let is_for_them = found.is_ok_and(|route| target.is_none() || may(&route.alias));
        Ok((!is_for_them).then(|| gateway.unknown(model, may).to_string()))
    }

    /// Checks that a model named for turns exists, and may answer in them. One that may not is
    /// reported as missing.
    pub(super) fn check(&self, turns: Turns<'_>, model: Option<&str>) -> Result<(), Error> {
        let Some(asked) = model else {
            return Ok(());
        };
        let served = self.core.served();
        let gateway = &served.settings.gateway;
        let definition = self.agents().definition(&turns.agent.definition)?;
        let may = |alias: &str| turns.may_be_answered_by(&served, &definition, alias);
        match gateway.resolve(Some(asked)) {
            Ok(route) if may(&route.alias) => Ok(()),
            Ok(_) | Err(_) => Err(invalid(gateway.unknown(asked, may).to_string(), "/model")),
        }
    }

    /// Checks the model that a message names, for the session that takes it.
    pub(super) async fn check_for_words(
        &self,
        user: &UserId,
        session: SessionId,
        model: Option<&str>,
    ) -> Result<(), Error> {
        if model.is_none() {
            return Ok(());
        }
        let row = self.sessions().row(session).await?;
        let Some(agent) = self.store().agent(row.agent).await? else {
            return Ok(());
        };
        let turns = Turns {
            agent: &agent.agent,
            kind: agent.kind,
            persona: row.persona.as_ref(),
            user,
        };
        self.check(turns, model)
    }

    /// Returns the aliases of the models that a user may name for an agent; without one, for any
    /// agent that the user has or may make.
    ///
    /// # Errors
    /// The agent does not exist, or the user may not talk with it.
    pub async fn nameable(
        &self,
        user: &UserId,
        target: Option<&Target>,
    ) -> Result<BTreeSet<String>, Error> {
        let served = self.core.served();
        let mut agents = Vec::new();
        match target {
            Some(target) => {
                let whom = self
                    .agents()
                    .find_or_make(user, target, Right::Interact)
                    .await?;
                let kind = whom.kind();
                agents.push(match whom {
                    Whom::There(row, _) => (row.agent, kind),
                    Whom::New(created) => (Agent::created(&created), kind),
                });
            }
            None => {
                let open = served.catalogue.definitions();
                for definition in open.filter(|definition| definition.is_open_to(user)) {
                    let template = Template::Definition(definition.agent_id.clone());
                    let create = CreateAgent::of(template, user.clone());
                    // A model that path rules keep from the user is not used.
                    if let Ok(created) = self.agents().created(&create, self.core.now()) {
                        agents.push((Agent::created(&created), created.kind));
                    }
                }
            }
        }
        let mut aliases = BTreeSet::new();
        for (agent, kind) in &agents {
            let definition = self.agents().definition(&agent.definition)?;
            let turns = Turns {
                agent,
                kind: *kind,
                persona: None,
                user,
            };
            let all = served.settings.gateway.models().into_iter();
            let may = |alias: &String| turns.may_be_answered_by(&served, &definition, alias);
            aliases.extend(all.map(|model| model.alias).filter(may));
        }
        Ok(aliases)
    }

    /// Checks the model that a session is opened with, and the settings of replies: its own, and
    /// those of its definition.
    pub(super) fn check_generation(
        &self,
        command: &NewSession,
        agent: &Agent,
        kind: PathKind,
    ) -> Result<(), Error> {
        let turns = Turns {
            agent,
            kind,
            persona: None,
            user: &command.user,
        };
        self.check(turns, command.model.as_deref())?;
        let given = settings_of(command)?;
        let definition = self.agents().definition(&agent.definition)?;
        let served = self.core.served();
        let of_agent = || served.settings.paths.model_of(kind, &definition);
        let model = command.model.as_deref().or_else(of_agent);
        self.check_settings(&given, &definition, model)
    }

    /// Checks the settings of a fork's definition. A fork has none of its session's own.
    pub(super) async fn check_generation_of_fork(
        &self,
        row: &SessionRow,
        fork: &Fork,
    ) -> Result<(), Error> {
        let Some(agent) = self.store().agent(row.agent).await? else {
            return Ok(());
        };
        let definition = self.agents().definition(&agent.agent.definition)?;
        let of_session = fork.model.as_deref().or(row.model.as_deref());
        let served = self.core.served();
        let of_agent = || served.settings.paths.model_of(agent.kind, &definition);
        let model = of_session.or_else(of_agent);
        self.check_settings(&GenerationSettings::default(), &definition, model)
    }

    fn check_settings(
        &self,
        given: &GenerationSettings,
        definition: &Definition,
        model: Option<&str>,
    ) -> Result<(), Error> {
        let gateway = self.core.gateway();
        given
            .check()
            .and_then(|()| gateway.check_sampling(model, &given.sampling(false)))
            .and_then(|()| gateway.check_reply_limit(model, given.max_tokens))
            .map_err(|unfit| {
                let name = snake_case(unfit.field);
                let message = unfit.message.replace(unfit.field, &name);
                invalid(message, &format!("/config/generation/{name}"))
            })?;
        // If the settings do not fit together, those of the definition apply.
        let settings = given.over(&definition.generation);
        let checked = gateway
            .check_sampling(model, &settings.sampling(false))
            .and_then(|()| gateway.check_reply_limit(model, settings.max_tokens));
        checked.map_err(|unfit| {
            let reported = format!("of the agent's own settings, {unfit}");
            invalid(reported, "/model")
        })
    }
}

/// Returns the settings of replies that a session is opened with.
fn settings_of(command: &NewSession) -> Result<GenerationSettings, Error> {
    let given = command.config.as_ref().and_then(|it| it.get(GENERATION));
    let Some(given) = given else {
        return Ok(GenerationSettings::default());
    };
    let fault = match SessionGeneration::deserialize(given) {
        Ok(settings) if given.is_object() => return Ok(settings.into()),
        // A list would be mistaken for the values of the fields.
        Ok(_) => "it must be an object".to_owned(),
        Err(error) => error.to_string(),
    };
    let reported = format!("`{GENERATION}` is not as it must be: {fault}");
    Err(invalid(reported, "/config/generation"))
}
