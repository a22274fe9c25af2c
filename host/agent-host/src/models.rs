//! The gateway to the models of a configuration, and what its agents ask of them.

use crate::cli::KEEP_COMMAND;
use crate::config::{Config, Loaded, text_variable};
use crate::failure::{Exit, Failure};
use anyhow::anyhow;
use domain::definition::Definition;
use domain::delegate::Target;
use domain::path::PathKind;
use llm::Gateway;
use llm::program::Supervisor;

/// Sets up the models of the configuration, and checks that those of its agents take their
/// settings.
pub(crate) fn gateway(loaded: &Loaded) -> Result<Gateway, Failure> {
    let supervisor = Supervisor {
        program: std::env::current_exe()?,
        arguments: vec![KEEP_COMMAND.into()],
    };
    let gateway = Gateway::with_supervisor(
        loaded.config.gateway(),
        loaded.folder(),
        &text_variable,
        supervisor,
    )
    .map_err(|error| Failure::new(Exit::Usage, error))?;
    check_agents(&gateway, &loaded.config)?;
    Ok(gateway)
}

/// Checks that the models of each definition's agents take their settings.
pub(crate) fn check_agents(gateway: &Gateway, config: &Config) -> Result<(), Failure> {
    let paths = config.path_settings();
    let definitions = config.definitions();
    for (index, definition) in definitions.iter().enumerate() {
        let settings = &definition.generation;
        let sampling = settings.sampling(false);
        for kind in kinds(definition, &definitions) {
            let model = paths.model_of(kind, definition);
            let checked = gateway
                .check_sampling(model, &sampling)
                .and_then(|()| gateway.check_reply_limit(model, settings.max_tokens));
            checked.map_err(|unfit| {
                let field = unfit.field;
                let by_role = if model == definition.model.as_deref() {
                    ""
                } else {
                    "; its agents have the model of their role (`roles`)"
                };
                let reported = anyhow!("agents[{index}].generation.{field}: {unfit}{by_role}");
                Failure::new(Exit::Usage, reported)
            })?;
        }
    }
    Ok(())
}

/// Returns the kinds of agents that a definition is for: those for which it is named, or else
/// agents that people talk with.
fn kinds(definition: &Definition, all: &[Definition]) -> Vec<PathKind> {
    let id = &definition.agent_id;
    let memories = || all.iter().filter_map(|other| other.memory.as_ref());
    let is_target = Target::from_word(&id.0).is_some();
    let reads = memories().any(|memory| memory.agent == *id);
    let searches = memories().any(|memory| memory.search.as_ref() == Some(id));
    let named = [
        is_target.then_some(PathKind::Sub),
        reads.then_some(PathKind::Memory),
        searches.then_some(PathKind::Search),
    ];
    let named: Vec<PathKind> = named.into_iter().flatten().collect();
    if named.is_empty() {
        vec![PathKind::Agent]
    } else {
        named
    }
}
