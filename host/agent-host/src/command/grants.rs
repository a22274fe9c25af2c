//! `grants explain` and `grants diff`: why an agent may or may not, and what a changed configuration changes.

mod diff;

use crate::cli::Grants;
use crate::client::Client;
use crate::config::{Loaded, load};
use crate::failure::{Exit, Failure};
use crate::guests;
use crate::serve::{Reach, make_private, start_runtime};
use crate::terminal::{Terminal, clean};
use anyhow::anyhow;
use broker::Catalogue;
use diff::Change;
use domain::authority::{Caller, Denies, Look, Permissions, Rule, Says};
use domain::definition::DefinitionId;
use domain::grant::{Access, Bound};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Grants, terminal: Terminal) -> Result<(), Failure> {
    match what {
        Grants::Explain { agent, tool } => explain(loaded, &agent, &tool, terminal).await,
        Grants::Diff { against } => difference(loaded, against.as_deref(), terminal).await,
    }
}

async fn explain(loaded: &Loaded, agent: &str, tool: &str, terminal: Terminal) -> Result<(), Failure> {
    let data = loaded.data_dir();
    make_private(&data)?;
    let entries = guests::load_all(loaded, &start_runtime(&loaded.config.limits, &data, Reach::default()).await?).await?;
    let catalogue = Catalogue::new(loaded.config.definitions(), entries).map_err(|misfit| Failure::new(Exit::Usage, misfit))?;
    let known = |names: Vec<String>| names.join(", ");
    let definition = catalogue.definition(&DefinitionId(agent.to_owned())).ok_or_else(|| {
        let names = catalogue.definitions().map(|definition| definition.agent_id.to_string()).collect();
        Failure::new(Exit::Usage, anyhow!("there is no agent `{agent}`; known are {}", known(names)))
    })?;
    let (entry, asked) = catalogue.tool(tool).ok_or_else(|| {
        let names = catalogue.tools().map(|(_, tool)| tool.name.clone()).collect();
        Failure::new(Exit::Usage, anyhow!("no component offers the tool `{tool}`; known are {}", known(names)))
    })?;
    let caller = Caller { agent: definition, denies: &Denies::default(), permissions: &Permissions::default() };
    let looks = caller.explain(&**asked, &entry.grant);
    let bound = caller.bound(&**asked, &entry.grant).map(|bound| bound.for_effect(asked.effect));
    let document = json!({
        "agent": agent, "tool": tool, "component": entry.name, "code": entry.component.digest().reference(), "looks": looks,
        "refused": bound.as_ref().err().map(|denied| json!({ "rule": denied.rule, "what": denied.what })),
        "rulings": bound.as_ref().ok().map(|bound| &bound.rulings),
    });
    terminal.result(&document, || {
        let mut lines = vec![format!("{agent} calls {tool} of {}@{}", entry.name, entry.component.digest().short())];
        lines.extend(looks.iter().map(look_line));
        match &bound {
            Err(denied) => lines.push(format!("refused: `{}`, by {}", denied.what, denied.rule)),
            Ok(bound) => {
                lines.push("allowed; the call is bound to".to_owned());
                lines.extend(bound_lines(bound));
            }
        }
        lines
    });
    Ok(())
}

/// What is looked at, what it says, and the pattern that says so.
fn look_line(look: &Look) -> String {
    let list = if look.rule == Rule::NotGranted { "grant" } else { look.rule.name() };
    let by = |pattern: &Option<String>| pattern.as_ref().map(|pattern| format!(" by `{pattern}`")).unwrap_or_default();
    let says = match &look.says {
        Says::Nothing => "-".to_owned(),
        Says::Passes { pattern } => format!("passes{}", by(pattern)),
        Says::Stops { pattern } => format!("stops it{}", by(pattern)),
    };
    format!("  {:<24}{list:<22}{says}", look.name)
}

fn bound_lines(bound: &Bound) -> Vec<String> {
    let access = |access: Access| if access == Access::ReadOnly { "read-only" } else { "read-write" };
    let folders = bound.directories.iter().map(|folder| format!("{} at {}, {}", folder.path.display(), folder.at, access(folder.access)));
    let requests = bound.network.iter().map(|grant| {
        let methods: Vec<&str> = grant.methods.iter().map(|method| method.as_str()).collect();
        format!("requests to {} ({})", grant.host, methods.join(", "))
    });
    let buckets = bound.key_value.iter().map(|bucket| format!("bucket {}, {}", bucket.bucket, access(bucket.access)));
    let secrets = bound.secrets.iter().map(|secret| format!("secret {} for {}", secret.secret, secret.host));
    let environment = bound.environment.keys().map(|name| format!("environment variable {name}"));
    let lines: Vec<String> = folders.chain(requests).chain(buckets).chain(secrets).chain(environment).collect();
    if lines.is_empty() {
        return vec!["  nothing but its arguments".to_owned()];
    }
    lines.iter().map(|line| format!("  {}", clean(line))).collect()
}

async fn difference(loaded: &Loaded, against: Option<&Path>, terminal: Terminal) -> Result<(), Failure> {
    let (before, what) = match against {
        Some(file) => {
            let other = load(file, std::iter::empty()).map_err(|error| Failure::new(Exit::Usage, error))?;
            (configured(&other), file.display().to_string())
        }
        None => (running(loaded).await?, "the running host".to_owned()),
    };
    let changes = diff::changes(&Value::Object(before), &Value::Object(configured(loaded)));
    let document = json!({ "against": what, "config": loaded.file, "changes": changes });
    terminal.result(&document, || {
        if changes.is_empty() {
            return vec![format!("{} grants the same as {what}", loaded.file.display())];
        }
        let head = format!("{} against {what}: + is granted now, - is not any more", loaded.file.display());
        std::iter::once(head).chain(changes.iter().map(Change::line)).collect()
    });
    Ok(())
}

/// The grants of a configuration, by component.
fn configured(loaded: &Loaded) -> Map<String, Value> {
    let wanted = guests::wanted(loaded).into_iter();
    wanted.map(|(name, config)| (name.clone(), json!(config.grant(&name, loaded.folder())))).collect()
}

/// The grants that a host runs with, by component.
async fn running(loaded: &Loaded) -> Result<Map<String, Value>, Failure> {
    let told = Client::new(loaded)?.get("/api/components").await?;
    let components = told.get("components").and_then(Value::as_array).into_iter().flatten();
    let named = components.filter_map(|component| Some((component.get("name")?.as_str()?.to_owned(), component.get("grant")?.clone())));
    Ok(named.collect())
}
