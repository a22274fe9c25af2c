//! The gateway to the models of a configuration, and what its agents ask of them.

use crate::cli::KEEP_COMMAND;
use crate::config::{Config, Loaded};
use crate::failure::{Exit, Failure};
use anyhow::anyhow;
use llm::Gateway;
use llm::program::Keeper;

/// Sets up the models of the configuration, and checks that the providers of each definition's
/// model take its settings.
pub(crate) fn gateway(loaded: &Loaded) -> Result<Gateway, Failure> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the configuration names variables that hold keys, and this is where they are read"
    )]
    let env = |name: &str| std::env::var(name).ok();
    let keeper = Keeper {
        program: std::env::current_exe()?,
        arguments: vec![KEEP_COMMAND.into()],
    };
    let gateway = Gateway::with_keeper(loaded.config.gateway(), loaded.folder(), &env, keeper)
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    check_agents(&gateway, &loaded.config)?;
    Ok(gateway)
}

/// Checks that the providers of each definition's model take its settings.
pub(crate) fn check_agents(gateway: &Gateway, config: &Config) -> Result<(), Failure> {
    for (index, definition) in config.definitions().iter().enumerate() {
        let sampling = definition.generation.sampling(false);
        gateway
            .check_sampling(definition.model.as_deref(), &sampling)
            .map_err(|unfit| {
                let field = unfit.field;
                let told = anyhow!("agents[{index}].generation.{field}: {unfit}");
                Failure::new(Exit::Usage, told)
            })?;
    }
    Ok(())
}
