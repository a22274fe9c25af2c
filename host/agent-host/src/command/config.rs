//! `config schema`, `config check`, `config diff` and `config apply`.

use super::pending::{Pending, found_in};
use super::status;
use crate::answer::{Answer, details};
use crate::cli::Config;
use crate::client::Client;
use crate::config::outlook;
use crate::config::{Finding, Loaded, Severity, about_code, schema, unfit, without_secret};
use crate::failure::{Exit, Failure};
use crate::serve::{load_catalogue, refuse_errors, startable};
use crate::terminal::Terminal;
use anyhow::anyhow;
use api::Clock;
use broker::Catalogue;
use serde_json::json;

/// The lines on a configuration that is in order.
const IN_ORDER: [(&str, &str); 6] = [
    ("  listens", "{/listen}"),
    ("  data", "{/data_dir}"),
    ("  agents", "{/agents:list}"),
    ("  components", "{/components:list}"),
    ("  tools", "{/tools:list}"),
    ("  models", "{/models:list}"),
];

/// Runs the command.
pub(super) async fn run(
    what: &Config,
    load: impl FnOnce() -> Result<Loaded, Failure>,
    terminal: Terminal,
) -> Result<Answer, Failure> {
    match what {
        Config::Schema => {
            let schema = schema();
            let lines: Vec<String> = format!("{schema:#}").lines().map(str::to_owned).collect();
            Ok(Answer::new(schema, lines))
        }
        Config::Check { strict } => {
            let loaded = load()?;
            let running = Pending::of_running(&loaded).await;
            let (answer, warnings) = check_all(&loaded, running.as_ref(), terminal).await?;
            let failure = (*strict && warnings > 0).then(|| {
                let error =
                    anyhow!("the configuration has {warnings} warnings, and `--strict` takes none");
                Failure::new(Exit::Usage, error)
            });
            Ok(answer.failing(failure))
        }
        Config::Diff => diff(&load()?).await,
        Config::Apply => {
            let loaded = load()?;
            refuse_other_file(&Pending::ask(&loaded).await?, &loaded)?;
            status::reload(&Client::new(&loaded)?).await
        }
    }
}

/// Refuses a file that is not the one of the running host, which it would not read.
fn refuse_other_file(running: &Pending, loaded: &Loaded) -> Result<(), Failure> {
    if running.is_of(loaded) {
        return Ok(());
    }
    let error = anyhow!(
        "the running host reads `{}`, and not `{}`: nothing was applied; put the content there, \
         and apply that",
        running.file(),
        loaded.file.display()
    );
    Err(Failure::new(Exit::Usage, error))
}

/// Shows what the file would change of what a running host has in force. Another file than that
/// host's is read and checked here.
async fn diff(loaded: &Loaded) -> Result<Answer, Failure> {
    let running = Pending::ask(loaded).await?;
    let pending = match running.is_of(loaded) {
        true => running,
        false => running.beside(loaded).await?,
    };
    let refused = pending.refused().map(|it| anyhow!("{it}"));
    let refused = refused.map(|error| Failure::new(Exit::Refused, error));
    let answer = Answer::new(pending.document().clone(), pending.lines());
    Ok(answer.failing(refused))
}

/// Checks everything that starting a host would check, except its port and its data. Where a host
/// runs with the same file, its environment counts, and not the caller's. Returns the number of
/// warnings too.
async fn check_all(
    loaded: &Loaded,
    running: Option<&Pending>,
    terminal: Terminal,
) -> Result<(Answer, usize), Failure> {
    let of_same_file = running.filter(|pending| pending.is_of(loaded));
    let mut findings = found_in(loaded, running).await;
    show_warnings(&findings, terminal);
    match of_same_file.map(Pending::refused) {
        Some(Some(reason)) => return Err(Failure::new(Exit::Usage, anyhow!("{reason}"))),
        Some(None) => refuse_errors(&findings)?,
        None => drop(startable(loaded, &findings)?),
    }
    let catalogue = load_catalogue(loaded).await?;
    refuse_errors(&unfit(&loaded.config, &catalogue).await)?;
    // A running host has found some of them itself.
    let of_code = warnings_of_code(loaded, &catalogue).into_iter();
    let of_code: Vec<Finding> = of_code.filter(|it| !findings.contains(it)).collect();
    show_warnings(&of_code, terminal);
    findings.extend(of_code);
    // What is an error has ended the check before.
    Ok((in_order(loaded, &catalogue, &findings), findings.len()))
}

/// Returns the warnings that need the components themselves.
pub(crate) fn warnings_of_code(loaded: &Loaded, catalogue: &Catalogue) -> Vec<Finding> {
    let mut warnings = about_code(loaded, catalogue);
    warnings.extend(without_secret(&loaded.config, catalogue));
    warnings.extend(outlook::never_due(&loaded.config, Clock::system().now()));
    warnings
}

/// Says what is served by a configuration that is in order, and what fires next.
fn in_order(loaded: &Loaded, catalogue: &Catalogue, findings: &[Finding]) -> Answer {
    let data = loaded.data_dir();
    let names = catalogue.entries();
    let names: Vec<&str> = names.map(|entry| entry.name.as_str()).collect();
    let agents = catalogue.definitions();
    let agents: Vec<&str> = agents.map(|it| it.agent_id.0.as_str()).collect();
    let tools = catalogue.tools();
    let tools: Vec<&str> = tools.map(|(_, tool)| tool.name.as_str()).collect();
    let models = loaded.config.models.keys();
    let models: Vec<&str> = models.map(String::as_str).collect();
    let triggers = outlook::triggers(&loaded.config, Clock::system().now());
    let connectors = outlook::connectors(&loaded.config);
    let document = json!({
        "config": loaded.file, "data_dir": data, "listen": loaded.config.server.listen, "overlaid": loaded.overlaid, "agents": agents,
        "components": names, "tools": tools, "models": models, "triggers": triggers, "connectors": connectors, "findings": findings,
    });
    let mut lines = vec![format!("{} is in order", loaded.file.display())];
    lines.extend(details(&document, &IN_ORDER));
    lines.extend(outlook::lines(&triggers, &connectors));
    Answer::new(document, lines)
}

fn show_warnings(findings: &[Finding], terminal: Terminal) {
    let warnings = findings.iter();
    let warnings = warnings.filter(|finding| finding.severity == Severity::Warning);
    warnings.for_each(|warning| terminal.notice(&warning.to_string()));
}
