//! `doctor`: checks of the machine and the configuration, each with the fix.
//!
//! - `doctor/report.rs`: the findings and their form
//! - `doctor/machine.rs`: the data folder, disk, clock, token and limits of the process
//! - `doctor/host.rs`: the port, the components and the models

mod host;
mod machine;
mod report;

use crate::answer::Answer;
use crate::cli::Doctor;
use crate::command::pending::{Pending, found_in};
use crate::config::{Loaded, Severity};
use crate::failure::{Exit, Failure};
use anyhow::anyhow;
use report::{Finding, Grade};
use serde_json::json;

/// Runs the command.
pub(super) async fn run(
    options: &Doctor,
    load: impl FnOnce() -> Result<Loaded, Failure>,
) -> Result<Answer, Failure> {
    let mut findings = Vec::new();
    match load() {
        Ok(loaded) => examine(&loaded, options, &mut findings).await,
        Err(failure) => findings.push(Finding::of_failure("configuration", &failure)),
    }
    findings.push(machine::open_files());
    let count = |grade| findings.iter().filter(|it| it.grade == grade).count();
    let failed = count(Grade::Fail);
    let warned = count(Grade::Warn);
    let document = json!({ "findings": findings, "failed": failed, "warned": warned });
    let answer = Answer::new(document, findings.iter().flat_map(Finding::lines));
    Ok(match (failed, warned) {
        (0, 0) => answer,
        (0, warned) if !options.strict => answer.notice([format!("{warned} to look at")]),
        (failed, warned) => {
            let error = anyhow!("{failed} failed, {warned} to look at");
            answer.failing(Failure::new(Exit::Failed, error))
        }
    })
}

async fn examine(loaded: &Loaded, options: &Doctor, findings: &mut Vec<Finding>) {
    let before = findings.len();
    let running = Pending::of_running(loaded).await;
    let of_same_file = running.as_ref().filter(|pending| pending.is_of(loaded));
    for finding in &found_in(loaded, running.as_ref()).await {
        let name = match finding.key.as_str() {
            "server.dataDir" => "file system",
            _ => "configuration",
        };
        let grade = match finding.severity {
            Severity::Error => Grade::Fail,
            Severity::Warning => Grade::Warn,
        };
        let message = format!("{}: {}", finding.key, finding.message);
        findings.push(Finding::new(name, grade, message));
    }
    let is_reported = |name: &str| findings.iter().skip(before).any(|it| it.name == name);
    let ok = [
        (!is_reported("configuration")).then(|| {
            let message = format!("{} is in order", loaded.file.display());
            Finding::new("configuration", Grade::Ok, message)
        }),
        (!is_reported("file system")).then(|| {
            let message = "the data is on a local file system";
            Finding::new("file system", Grade::Ok, message)
        }),
    ];
    findings.extend(ok.into_iter().flatten());
    let data = loaded.data_dir();
    findings.push(machine::data_folder(&data));
    findings.push(machine::disk_space(&data));
    findings.push(machine::clock(&data));
    findings.push(machine::token(&loaded.token_file()));
    findings.push(host::port(loaded).await);
    findings.push(host::components(loaded).await);
    let down = match of_same_file {
        Some(_) => host::outages(loaded).await,
        None => Vec::new(),
    };
    match of_same_file {
        Some(running) if !options.ask_models => {
            let is_reported = down.iter().any(|it| it.name == host::MODELS);
            findings.extend((!is_reported).then(|| host::models_of_running(loaded, running)));
        }
        Some(_) | None => findings.extend(host::models(loaded, options.ask_models).await),
    }
    findings.extend(down);
}
