//! Checks of the model of a session, and of the settings with which its turns ask it.

use super::error::invalid;
use super::{Broker, Error, Fork, GENERATION, NewSession};
use domain::agent::Agent;
use domain::definition::Definition;
use domain::path::PathKind;
use domain::sampling::GenerationSettings;
use serde::Deserialize;
use store::SessionRow;

impl Broker {
    /// Checks that the model which a session names is there, if it names one.
    pub(super) fn check_model(&self, model: Option<&str>) -> Result<(), Error> {
        if let Some(model) = model
            && let Err(unknown) = self.core.gateway().resolve(Some(model))
        {
            return Err(invalid(unknown.to_string(), "/model"));
        }
        Ok(())
    }

    /// Checks the settings of replies that a session is opened with, and those of its definition.
    pub(super) fn check_generation(
        &self,
        command: &NewSession,
        agent: &Agent,
        kind: PathKind,
    ) -> Result<(), Error> {
        let given = settings_of(command)?;
        let definition = self.definition(&agent.definition)?;
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
        let definition = self.definition(&agent.agent.definition)?;
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
                let field = format!("/config/generation/{}", unfit.field);
                invalid(unfit.message, &field)
            })?;
        // What does not fit among all of them is the definition's.
        let settings = given.over(&definition.generation);
        let checked = gateway
            .check_sampling(model, &settings.sampling(false))
            .and_then(|()| gateway.check_reply_limit(model, settings.max_tokens));
        checked.map_err(|unfit| {
            let told = format!("of the agent's own settings, {unfit}");
            invalid(told, "/model")
        })
    }
}

/// Returns the settings of replies that a session is opened with.
fn settings_of(command: &NewSession) -> Result<GenerationSettings, Error> {
    let given = command.config.as_ref().and_then(|it| it.get(GENERATION));
    let Some(given) = given else {
        return Ok(GenerationSettings::default());
    };
    let fault = match GenerationSettings::deserialize(given) {
        Ok(settings) if given.is_object() => return Ok(settings),
        // A list would be taken for the values of the fields.
        Ok(_) => "it must be an object".to_owned(),
        Err(error) => error.to_string(),
    };
    let told = format!("`{GENERATION}` is not as it must be: {fault}");
    Err(invalid(told, "/config/generation"))
}
