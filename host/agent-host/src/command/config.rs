//! `config schema` and `config check`.

use crate::cli::Config;
use crate::config::{Finding, Loaded, Severity, check, mute, schema, unmatched};
use crate::failure::{Exit, Failure};
use crate::guests;
use crate::serve::{Reach, gateway, make_private, refuse_errors, start_runtime};
use crate::terminal::Terminal;
use broker::Catalogue;
use serde_json::json;

/// Runs the command.
pub(super) async fn run(
    what: &Config,
    load: impl FnOnce() -> Result<Loaded, Failure>,
    terminal: Terminal,
) -> Result<(), Failure> {
    match what {
        Config::Schema => {
            let schema = schema();
            terminal.result(&schema, || {
                format!("{schema:#}").lines().map(str::to_owned).collect()
            });
            Ok(())
        }
        Config::Check => check_all(&load()?, terminal).await,
    }
}

/// Checks everything that starting a host would check, except its port and its data.
async fn check_all(loaded: &Loaded, terminal: Terminal) -> Result<(), Failure> {
    let mut findings = check(loaded);
    show_warnings(&findings, terminal);
    refuse_errors(&findings)?;
    gateway(loaded)?;
    let data = loaded.data_dir();
    make_private(&data)?;
    let entries = guests::load_all(
        loaded,
        &start_runtime(&loaded.config.limits, &data, Reach::default()).await?,
    )
    .await?;
    let names: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
    let catalogue = Catalogue::new(loaded.config.definitions(), entries)
        .map_err(|misfit| Failure::new(Exit::Usage, misfit))?;
    let mut unmatched = unmatched(
        &loaded.config.agents,
        catalogue.tools().map(|(_, tool)| &**tool),
    );
    unmatched.extend(mute(
        &loaded.config.agents,
        &loaded.config.components,
        catalogue.entries().map(|entry| &**entry),
    ));
    show_warnings(&unmatched, terminal);
    findings.extend(unmatched);
    let agents: Vec<String> = catalogue
        .definitions()
        .map(|definition| definition.agent_id.to_string())
        .collect();
    let tools: Vec<String> = catalogue
        .tools()
        .map(|(_, tool)| tool.name.clone())
        .collect();
    let models: Vec<&String> = loaded.config.models.keys().collect();
    let document = json!({
        "config": loaded.file, "data_dir": data, "listen": loaded.config.server.listen, "overlaid": loaded.overlaid, "agents": agents,
        "components": names, "tools": tools, "models": models, "findings": findings,
    });
    terminal.result(&document, || {
        vec![
            format!("{} is in order", loaded.file.display()),
            format!("  listens     {}", loaded.config.server.listen),
            format!("  data        {}", data.display()),
            format!("  agents      {}", agents.join(", ")),
            format!("  components  {}", names.join(", ")),
            format!("  tools       {}", tools.join(", ")),
            format!(
                "  models      {}",
                models
                    .iter()
                    .map(|name| name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        ]
    });
    Ok(())
}

fn show_warnings(findings: &[Finding], terminal: Terminal) {
    for warning in findings
        .iter()
        .filter(|finding| finding.severity == Severity::Warning)
    {
        terminal.notice(&format!("warning: {}: {}", warning.key, warning.message));
    }
}
