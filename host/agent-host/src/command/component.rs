//! `component list`, `component inspect`, `component check` and `component suggest`.

mod check;
mod needs;
mod suggest;

use crate::cli::Component;
use crate::config::{BUILT_INS, ComponentConfig, LimitsConfig, Loaded};
use crate::failure::{Exit, Failure};
use crate::guests;
use crate::serve::{Reach, make_private, start_runtime};
use crate::terminal::{Terminal, clean};
use anyhow::anyhow;
use api::wire;
use broker::Entry;
use domain::grant::Grant;
use runtime::Described;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Runs the command.
pub(super) async fn run(what: Component, load: impl FnOnce() -> Result<Loaded, Failure>, terminal: Terminal) -> Result<(), Failure> {
    match what {
        Component::List => {
            let loaded = load()?;
            let data = loaded.data_dir();
            make_private(&data)?;
            let entries = guests::load_all(&loaded, &start_runtime(&loaded.config.limits, &data, Reach::default()).await?).await?;
            let components: Vec<_> = entries.iter().map(wire::component).collect();
            terminal.result(&json!({ "components": components }), || entries.iter().map(line).collect());
        }
        Component::Suggest(what) => suggest::run(&load()?, &what, terminal).await?,
        Component::Check { component } => check::run(&load()?, component.as_deref(), terminal).await?,
        Component::Inspect { component } => {
            let (entry, file) = one(&component, load).await?;
            terminal.result(&json!(wire::component(&entry)), || inspect(&entry, &file));
        }
    }
    Ok(())
}

/// A component of the configuration, or a file, which gets no grant and leaves nothing behind.
async fn one(named: &str, load: impl FnOnce() -> Result<Loaded, Failure>) -> Result<(Entry, PathBuf), Failure> {
    let path = Path::new(named);
    if path.extension().is_some_and(|extension| extension == "wasm") || path.is_file() {
        let scratch = std::env::temp_dir().join(format!("agent-host-inspect-{}", std::process::id()));
        make_private(&scratch)?;
        let loaded =
            async { guests::load_file(&start_runtime(&LimitsConfig::default(), &scratch, Reach::default()).await?, path).await }.await;
        // The folder of temporary files is emptied in time anyway.
        let _ = std::fs::remove_dir_all(&scratch);
        let component = loaded.map_err(|failure| Failure { error: failure.error.context(format!("cannot load `{named}`")), ..failure })?;
        return Ok((Entry { name: named.to_owned(), component, grant: Grant::default() }, path.to_owned()));
    }
    let loaded = load()?;
    let built_in = BUILT_INS.iter().any(|(name, _)| *name == named);
    let config = match loaded.config.components.get(named) {
        Some(config) => config.clone(),
        None if built_in => ComponentConfig::default(),
        None => {
            let known: BTreeSet<&str> =
                loaded.config.components.keys().map(String::as_str).chain(BUILT_INS.map(|(name, _)| name)).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Failure::new(Exit::Usage, anyhow!("there is no component `{named}`; known are {known}")));
        }
    };
    let file = guests::locate(&loaded, named, &config)?;
    let data = loaded.data_dir();
    make_private(&data)?;
    let component = guests::load_file(&start_runtime(&loaded.config.limits, &data, Reach::default()).await?, &file).await?;
    Ok((Entry { name: named.to_owned(), component, grant: config.grant(named, loaded.folder()) }, file))
}

fn line(entry: &Entry) -> String {
    let what = match entry.component.describes() {
        Described::Agent(agent) => format!("agent  {}", agent.summary),
        Described::Tools(tools) => format!("tools  {}", tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ")),
    };
    format!("{:<16}  {}  {}", entry.name, entry.component.digest().short(), clean(&what))
}

fn inspect(entry: &Entry, file: &Path) -> Vec<String> {
    let component = &entry.component;
    let mut lines = vec![
        format!("{} ({})", entry.name, file.display()),
        format!("  digest   {}", component.digest().reference()),
        format!("  size     {} bytes", component.size_bytes()),
    ];
    match component.describes() {
        Described::Agent(agent) => {
            lines.push(format!("  agent    {}: {}", clean(&agent.display_name), clean(&agent.summary)));
            let types = if agent.session_types.is_empty() { "chat".to_owned() } else { agent.session_types.join(", ") };
            lines.push(format!("  leads    {}", clean(&types)));
            lines.extend((!agent.wants.is_empty()).then(|| format!("  wants    {}", clean(&agent.wants.join(", ")))));
        }
        Described::Tools(tools) => {
            for tool in tools {
                let needs = if tool.capabilities.is_empty() { String::new() } else { format!(", needs {}", tool.capabilities.join(", ")) };
                let effect = json!(tool.effect);
                let effect = effect.as_str().unwrap_or_default();
                lines.push(format!("  tool     {}: {} ({effect}{needs})", tool.name, clean(&tool.description).replace('\n', " ")));
            }
        }
    }
    for directory in &entry.grant.directories {
        lines.push(format!(
            "  granted  {} at {} ({})",
            directory.path.display(),
            directory.at,
            json!(directory.access).as_str().unwrap_or_default()
        ));
    }
    for grant in &entry.grant.network {
        let methods: Vec<&str> = grant.methods.iter().map(|method| method.as_str()).collect();
        lines.push(format!("  granted  requests to {} ({})", grant.host, methods.join(", ")));
    }
    lines.extend(component.imports().iter().map(|import| format!("  imports  {import}")));
    lines
}
