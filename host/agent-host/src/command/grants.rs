//! `grants explain` and `grants diff`: why an agent may or may not, and what a changed
//! configuration changes.

mod diff;
mod edge;
mod explain;
mod looks;
mod skills;
mod snapshot;

use super::pending::{Pending, left_behind_by};
use crate::cli::Grants;
use crate::config::{Finding, Loaded, load};
use crate::failure::{Exit, Failure};
use crate::terminal::Terminal;
pub(crate) use diff::{Change, changes};
use serde_json::json;
use std::path::Path;

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Grants, terminal: Terminal) -> Result<(), Failure> {
    match what {
        Grants::Explain {
            trigger: Some(name),
            ..
        } => edge::trigger(loaded, &name, terminal).await,
        Grants::Explain {
            connector: Some(name),
            ..
        } => edge::connector(loaded, &name, terminal).await,
        Grants::Explain { agent, tool, .. } => {
            // The command line has both where it has neither of the others.
            let agent = agent.unwrap_or_default();
            let tool = tool.unwrap_or_default();
            explain::run(loaded, &agent, &tool, terminal).await
        }
        Grants::Diff { against } => difference(loaded, against.as_deref(), terminal).await,
    }
}

async fn difference(
    loaded: &Loaded,
    against: Option<&Path>,
    terminal: Terminal,
) -> Result<(), Failure> {
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
    terminal.result(&document, || {
        if changes.is_empty() && left.is_empty() {
            return vec![format!(
                "{} grants the same as {what}",
                loaded.file.display()
            )];
        }
        let head = format!(
            "{} against {what}: + is there now, - is not any more",
            loaded.file.display()
        );
        std::iter::once(head)
            .chain(changes.iter().map(Change::line))
            .chain(
                left.iter()
                    .map(|it| format!("warning: {}: {}", it.key, it.message)),
            )
            .collect()
    });
    Ok(())
}
