//! Loading components: where the built-in ones are, and what of the configuration has to be loaded;
//! and calls of tools without a host.

use crate::config::component::{BUILT_IN_TRIGGERS, BUILT_INS, ComponentConfig};
use crate::config::document::Loaded;
use crate::config::{HooksConfig, variable};
use crate::failure::{Exit, Failure};
use anyhow::anyhow;
use broker::{Entry, LineComponent};
use domain::authority::ToolRequirements;
use domain::connector::DIRECT;
use domain::definition::{Definition, ToolExposure};
use domain::digest::Digest;
use domain::ruling::{Rule, Ruling};
use domain::tool::ToolDefinition;
use domain::trigger::TriggerSpec;
use runtime::{LoadError, Runtime, ToolCall};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::AsyncReadExt;

/// The component that carries command lines out.
const SHELL: &str = "shell";
/// The variable that names the folder with the built-in components.
const FOLDER_VARIABLE: &str = "AGENT_HOST_COMPONENTS";
/// Their location beside the folder of an installed program.
const INSTALLED: &str = "share/agent-host/components";
/// Their location in the repository, when this program was built from it.
const IN_REPOSITORY: &str = "guests/target/wasm32-wasip2/release";
/// Number of folders from the program up to the repository, its own folder included.
const REPOSITORY_ABOVE: usize = 3;

/// Loads every component that the configuration has or means.
///
/// # Errors
/// The first one that cannot be loaded, with its name. A host with part of its components is never
/// made.
pub(crate) async fn load_all(loaded: &Loaded, runtime: &Runtime) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for (name, config) in served(loaded) {
        entries.push(load_one(loaded, runtime, name, &config).await?);
    }
    Ok(entries)
}

/// Loads one component under its name.
///
/// # Errors
/// It is not there, is another than is pinned, or is no component of this host's.
pub(crate) async fn load_one(
    loaded: &Loaded,
    runtime: &Runtime,
    name: String,
    config: &ComponentConfig,
) -> Result<Entry, Failure> {
    let file = locate(loaded, &name, config)?;
    let component = load_file(runtime, &file, config.sha256)
        .await
        .map_err(|failure| Failure {
            error: failure.error.context(format!(
                "components.{name}: cannot load `{}`",
                file.display()
            )),
            ..failure
        })?;
    Ok(Entry {
        grant: config.grant(&name, loaded.folder()),
        is_pinned: config.sha256.is_some(),
        name,
        component,
    })
}

/// Loads one file, of which nothing but its digest is looked at when another one is pinned.
///
/// # Errors
/// It cannot be read, is another than is pinned, or is no component of this host's.
pub(crate) async fn load_file(
    runtime: &Runtime,
    file: &Path,
    pinned: Option<Digest>,
) -> Result<Arc<runtime::Component>, Failure> {
    let max = runtime.component_bytes_max();
    let about = tokio::fs::metadata(file).await?;
    // Of a pipe or a device there is no end to wait for.
    if !about.is_file() {
        return Err(Failure::new(Exit::Failed, anyhow!("it is not a file")));
    }
    let size = usize::try_from(about.len()).unwrap_or(usize::MAX);
    if size > max {
        return Err(Failure::new(
            Exit::Failed,
            LoadError::TooLarge { size, max },
        ));
    }
    let mut wasm = Vec::with_capacity(size);
    // It may grow meanwhile, as files that say that they are empty do: one byte more than is
    // allowed is enough to see it.
    tokio::fs::File::open(file)
        .await?
        .take(max as u64 + 1)
        .read_to_end(&mut wasm)
        .await?;
    let wasm = match pinned {
        Some(pinned) => tokio::task::spawn_blocking(move || as_pinned(wasm, pinned)).await??,
        None => wasm,
    };
    runtime
        .load(wasm)
        .await
        .map_err(|error: LoadError| Failure::new(Exit::Failed, error))
}

/// Checks that no component's file is larger than the configuration permits. Whatever else keeps
/// one from being loaded is left to whoever loads it.
///
/// # Errors
/// The first one that is too large, with its name.
pub(crate) fn check_sizes(loaded: &Loaded) -> Result<(), Failure> {
    let max = usize::try_from(loaded.config.limits.component_bytes_max).unwrap_or(usize::MAX);
    for (name, config) in wanted(loaded) {
        let about = locate(loaded, &name, &config).map(std::fs::metadata);
        let Ok(Ok(about)) = about else { continue };
        let size = usize::try_from(about.len()).unwrap_or(usize::MAX);
        if size > max {
            let error = anyhow!(LoadError::TooLarge { size, max });
            let context = format!("components.{name}: cannot be loaded");
            return Err(Failure::new(Exit::Failed, error.context(context)));
        }
    }
    Ok(())
}

/// The code, if it has the digest that the configuration pins.
fn as_pinned(wasm: Vec<u8>, pinned: Digest) -> Result<Vec<u8>, Failure> {
    let found = Digest::of(&wasm);
    if found == pinned {
        return Ok(wasm);
    }
    let error = anyhow!(
        "its digest is {found}, and `sha256` pins {pinned}: it is not the code that was meant"
    );
    Err(Failure::new(Exit::Failed, error).advise(format!(
        "if the new code is meant, set `sha256` to \"{found}\""
    )))
}

/// The components of the configuration, and the built-in ones that its agents, triggers and
/// connectors name.
pub(crate) fn wanted(loaded: &Loaded) -> BTreeMap<String, ComponentConfig> {
    let config = &loaded.config;
    let mut wanted = config.components.clone();
    let agents = config.agents.iter().map(|definition| definition.driver());
    let triggers = config.triggers.values().map(TriggerSpec::component);
    let hooks = config.hooks.iter().map(|_| HooksConfig::COMPONENT);
    let connectors = config.connectors.values();
    let connectors = connectors.map(|spec| spec.component.as_str());
    // That one is the host itself.
    let connectors = connectors.filter(|component| *component != DIRECT);
    let named: BTreeSet<&str> = agents
        .chain(triggers)
        .chain(hooks)
        .chain(connectors)
        .collect();
    for name in named {
        wanted.entry(name.to_owned()).or_default();
    }
    wanted
}

/// The same, with the built-in components of triggers, as far as they are installed: triggers are
/// also made while the host serves. Where every component has to be pinned, only those are there
/// that the configuration has.
pub(crate) fn served(loaded: &Loaded) -> BTreeMap<String, ComponentConfig> {
    let mut served = wanted(loaded);
    if loaded.config.require_pins {
        return served;
    }
    for name in BUILT_IN_TRIGGERS {
        let unnamed = ComponentConfig::default();
        let is_there = || locate(loaded, name, &unnamed).is_ok();
        if !served.contains_key(name) && is_there() {
            served.insert(name.to_owned(), unnamed);
        }
    }
    served
}

/// Returns the component that carries command lines out: part of the program, which no operator
/// configures and only the host calls. It is loaded at once where an agent is offered skills, and
/// otherwise with the first line, since agents are also made while the host serves.
///
/// # Errors
/// An agent is offered skills, and the component is not there or is none of this host's.
pub(crate) async fn line_component(
    loaded: &Loaded,
    runtime: &Runtime,
) -> Result<LineComponent, Failure> {
    let has_skills = |agent: &Definition| agent.tool_exposure != ToolExposure::Tools;
    if loaded.config.agents.iter().any(has_skills) {
        load_shell(runtime).await?;
    }
    let runtime = runtime.clone();
    Ok(LineComponent::new(move || {
        let runtime = runtime.clone();
        async move {
            let loaded = load_shell(&runtime).await;
            loaded.map_err(|failure| format!("{:#}", failure.error))
        }
    }))
}

async fn load_shell(runtime: &Runtime) -> Result<Arc<runtime::Component>, Failure> {
    let file = built_in(SHELL)?;
    load_file(runtime, &file, None)
        .await
        .map_err(|failure| Failure {
            error: failure
                .error
                .context(format!("command lines: cannot load `{}`", file.display())),
            ..failure
        })
}

/// The file of a component.
pub(crate) fn locate(
    loaded: &Loaded,
    name: &str,
    config: &ComponentConfig,
) -> Result<PathBuf, Failure> {
    if let Some(path) = &config.path {
        return Ok(loaded.resolve(path));
    }
    if !BUILT_INS.contains(&name) {
        let error = anyhow!("components.{name}.path: say which file it is");
        return Err(Failure::new(Exit::Usage, error));
    }
    built_in(name)
}

/// The file of a component that comes with the host.
fn built_in(name: &str) -> Result<PathBuf, Failure> {
    let file = file_of(name);
    let folders = folders();
    let mut files = folders.iter().map(|folder| folder.join(&file));
    let found = files.find(|path| path.is_file());
    found.ok_or_else(|| {
        let searched = folders.iter().map(|folder| folder.display().to_string());
        let searched: Vec<String> = searched.collect();
        let error = anyhow!(
            "the built-in component `{name}` is not there: no `{file}` in {}",
            searched.join(", ")
        );
        Failure::new(Exit::Failed, error).advise(format!(
            "build the built-in components with `./x guests`, or name their folder in \
             ${FOLDER_VARIABLE}"
        ))
    })
}

/// Returns the name of a built-in component's file. Cargo writes `_` for `-` in it.
fn file_of(name: &str) -> String {
    format!("{}.wasm", name.replace('-', "_"))
}

/// The folders and the files that built-in components are loaded from.
pub(crate) fn places() -> Vec<PathBuf> {
    let folders = folders();
    let files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| {
            let names = BUILT_INS.into_iter().chain([SHELL]);
            names.map(move |name| folder.join(file_of(name)))
        })
        .collect();
    folders.into_iter().chain(files).collect()
}

/// Returns the folders in which built-in components are looked for. A folder that was named is the
/// only one.
fn folders() -> Vec<PathBuf> {
    if let Some(folder) = variable(FOLDER_VARIABLE) {
        return vec![folder.into()];
    }
    folders_of(&std::env::current_exe().unwrap_or_default())
}

/// Returns the folders beside a program, where it is installed, and in the repository that it was
/// built from.
fn folders_of(program: &Path) -> Vec<PathBuf> {
    let at = |above: usize, folder: &str| Some(program.ancestors().nth(above)?.join(folder));
    [
        at(1, "components"),
        at(2, INSTALLED),
        at(REPOSITORY_ABOVE, IN_REPOSITORY),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns a call of a tool without an agent, in the name of a command.
pub(crate) fn isolated_call(command: &str, tool: &str, arguments: &Value) -> ToolCall {
    let id = || command.to_owned();
    let arguments = match arguments {
        Value::Null => "{}".to_owned(),
        arguments => arguments.to_string(),
    };
    ToolCall {
        agent_id: id(),
        session_id: id(),
        user_id: id(),
        call_id: id(),
        idempotency_key: id(),
        segment: 0,
        resumed: None,
        answer: None,
        tool: tool.to_owned(),
        arguments,
        deadline_ms: u32::MAX,
    }
}

/// Returns the rulings of a call that is granted all that its tool needs: also what a capability
/// that it declares brings with it, as writing does reading.
pub(crate) fn rulings(tool: &ToolDefinition) -> Vec<Ruling> {
    let needed = ToolRequirements::from(tool)
        .capabilities_needed()
        .into_iter();
    needed
        .map(|capability| Ruling {
            capability,
            allowed: true,
            rule: Rule::Granted,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{as_pinned, folders_of};
    use domain::digest::Digest;
    use std::path::{Path, PathBuf};

    #[test]
    fn code_that_is_not_the_pinned_one_is_refused_with_both_digests() {
        let pinned = Digest::of(b"reviewed");
        let other = Digest::of(b"swapped");
        assert_eq!(
            as_pinned(b"reviewed".to_vec(), pinned).unwrap(),
            b"reviewed"
        );
        let refused = as_pinned(b"swapped".to_vec(), pinned)
            .unwrap_err()
            .error
            .to_string();
        assert!(
            refused.contains(&pinned.hex()) && refused.contains(&other.hex()),
            "{refused}"
        );
    }

    #[test]
    fn components_are_looked_for_by_paths_without_detours() {
        let found = folders_of(Path::new("/repo/target/debug/agent-host"));
        let expected = [
            "/repo/target/debug/components",
            "/repo/target/share/agent-host/components",
            "/repo/guests/target/wasm32-wasip2/release",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
    }
}
