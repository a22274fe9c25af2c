//! `grants explain` and `grants diff`: why an agent may or may not, and what a changed
//! configuration changes.

mod diff;
mod edge;
mod explain;
mod skills;
mod snapshot;

use super::pending::{Pending, left_behind_by};
use crate::answer::Answer;
use crate::cli::Grants;
use crate::config::{Finding, Loaded, load};
use crate::failure::{Exit, Failure};
pub(crate) use diff::{Change, changes};
use domain::authority::{ListCheck, Says};
use domain::ruling::Rule;
use serde_json::json;
use std::path::Path;

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Grants) -> Result<Answer, Failure> {
    match what {
        Grants::Explain {
            trigger: Some(name),
            ..
        } => edge::trigger(loaded, &name).await,
        Grants::Explain {
            connector: Some(name),
            ..
        } => edge::connector(loaded, &name).await,
        Grants::Explain { agent, tool, .. } => {
            // The command line has both where it has neither of the others.
            let agent = agent.unwrap_or_default();
            let tool = tool.unwrap_or_default();
            explain::run(loaded, &agent, &tool).await
        }
        Grants::Diff { against } => difference(loaded, against.as_deref()).await,
    }
}

async fn difference(loaded: &Loaded, against: Option<&Path>) -> Result<Answer, Failure> {
    let (before, what) = match against {
        Some(file) => {
            let other =
                load(file, std::iter::empty()).map_err(|error| Failure::new(Exit::Usage, error))?;
            (
                snapshot::configured(&other).await?,
                file.display().to_string(),
            )
        }
        None => (
            snapshot::running(loaded).await?,
            "the running host".to_owned(),
        ),
    };
    let changes = changes(&before, &snapshot::configured(loaded).await?);
    let running = match against {
        Some(_) => None,
        None => Pending::of_running(loaded).await,
    };
    let left: Vec<Finding> = match &running {
        Some(running) if running.is_of(loaded) => running.left_behind(),
        Some(_) => left_behind_by(loaded, running.as_ref()).await.by_change,
        None => Vec::new(),
    };
    let document = json!({
        "against": what, "config": loaded.file, "changes": changes, "left_behind": left,
    });
    let file = loaded.file.display();
    if changes.is_empty() && left.is_empty() {
        return Ok(Answer::line(
            document,
            format!("{file} grants the same as {what}"),
        ));
    }
    let head = format!("{file} against {what}: + is there now, - is not any more");
    let left = left.iter().map(ToString::to_string);
    let changes = changes.iter().map(Change::line);
    Ok(Answer::new(
        document,
        [head].into_iter().chain(changes).chain(left),
    ))
}

/// Returns the line for one inspection: the list, its verdict, and the pattern that decides.
fn check_line(check: &ListCheck) -> String {
    let list = if check.rule == Rule::NotGranted {
        "grant"
    } else {
        check.rule.as_str()
    };
    let by = |pattern: &Option<String>| {
        pattern
            .as_ref()
            .map(|pattern| format!(" by `{pattern}`"))
            .unwrap_or_default()
    };
    let says = match &check.says {
        Says::Nothing => "-".to_owned(),
        Says::Passes { pattern } => format!("passes{}", by(pattern)),
        Says::Stops { pattern } => format!("stops it{}", by(pattern)),
    };
    let with = check
        .with
        .as_ref()
        .map(|with| format!(" (asked for with `{with}`)"))
        .unwrap_or_default();
    format!("  {:<24}{list:<22}{says}{with}", check.name)
}
