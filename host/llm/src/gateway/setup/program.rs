//! The way from the config to a provider that is a program.

use super::{Surroundings, api_key, is_variable};
use crate::config::{ConfigError, ConfigProblem, ProgramConfig, ProviderConfig, check_section};
use crate::key::ApiKey;
use crate::program::Enforcement;
use crate::provider::program::{Cli, Program};
use rustix::fs::{Access, access};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Sets up a program. It is not started, and its home is not made before its first turn.
pub(super) fn program(
    provider: &ProviderConfig,
    surroundings: &Surroundings<'_>,
    key: &dyn Fn(&str) -> String,
) -> Result<Program, ConfigError> {
    let missing = |why: &'static str| ConfigProblem::Missing { why }.at(key("program"));
    let no_program = "a provider of this kind needs the program that it starts";
    let cli = Cli::of(provider.kind).ok_or_else(|| missing(no_program))?;
    let config = provider
        .program
        .as_ref()
        .ok_or_else(|| missing(no_program))?;
    let misplaced = [
        ("baseUrl", provider.base_url.is_some()),
        ("script", provider.script.is_some()),
        ("privateAddresses", !provider.private_addresses.is_empty()),
        ("program.login", config.login && cli != Cli::Claude),
    ];
    if let Some((field, _)) = misplaced.iter().find(|(_, there)| *there) {
        return Err(ConfigProblem::Misplaced.at(key(field)));
    }
    check_section(&key("program.limits"), &config.limits)?;
    check_tools(&config.tools, key)?;
    let config = whole(config, surroundings.base, key)?;
    let variable = provider.api_key_env.as_deref();
    let variable = variable.unwrap_or(cli.key_variable()).to_owned();
    let api_key = api_key(provider, None, surroundings, key)?;
    let redactor = api_key.as_ref().map(ApiKey::redactor).unwrap_or_default();
    if config.enabled
        && !config.require_confinement
        && let Some(gap) = Enforcement::of_system().gap()
    {
        tracing::warn!(config.key = key("program"), "{gap}");
    }
    Ok(Program {
        cli,
        environment: environment(cli, &config, surroundings, key)?,
        config,
        key: api_key.map(|api_key| (variable, api_key)),
        redactor,
        supervisor: surroundings.supervisor.clone(),
    })
}

/// Returns the config with whole paths, none of which undoes what another one grants.
fn whole(
    config: &ProgramConfig,
    base: &Path,
    key: &dyn Fn(&str) -> String,
) -> Result<ProgramConfig, ConfigError> {
    let found = |field: &str, path: &Path| {
        let path = base.join(path);
        std::fs::canonicalize(&path)
            .map_err(|source| ConfigProblem::Unreadable { path, source }.at(key(field)))
    };
    let path = found("program.path", &config.path)?;
    let folder = found("program.folder", &config.folder)?;
    let denied = |field: &str, why: String| ConfigProblem::Folder { why }.at(key(field));
    if !path.is_file() {
        return Err(denied("program.path", "it is not a file".to_owned()));
    }
    if access(&path, Access::EXEC_OK).is_err() {
        let why = "it is not a file that this user may start; see its mode".to_owned();
        return Err(denied("program.path", why));
    }
    if !folder.is_dir() {
        return Err(denied("program.folder", "it is not a folder".to_owned()));
    }
    if !config.read_only && path.starts_with(&folder) {
        let why = "the program's own file is in it, and the program must not write that".to_owned();
        return Err(denied("program.folder", why));
    }
    let home = std::path::absolute(base.join(&config.home)).map_err(|source| {
        let path = config.home.clone();
        ConfigProblem::Unreadable { path, source }.at(key("program.home"))
    })?;
    // Where it is there already, it may be reached through a link.
    let real = std::fs::canonicalize(&home).unwrap_or(home);
    if real.starts_with(&folder) || folder.starts_with(&real) {
        let why = format!(
            "it and `folder` (`{}`) lie in each other, and the program must not write what the \
             host keeps there; name a folder elsewhere",
            folder.display()
        );
        return Err(denied("program.home", why));
    }
    let mut read_folders = Vec::new();
    for (index, path) in config.read_folders.iter().enumerate() {
        read_folders.push(found(&format!("program.readFolders[{index}]"), path)?);
    }
    let is_text = |path: &PathBuf| path.to_str().is_some();
    if ![&path, &folder, &real].into_iter().all(is_text) || !read_folders.iter().all(is_text) {
        let why = "a path of it is not UTF-8".to_owned();
        return Err(denied("program", why));
    }
    Ok(ProgramConfig {
        path,
        folder,
        home: real,
        read_folders,
        ..config.clone()
    })
}

/// Checks the names of a program's own tools, which are arguments of it.
fn check_tools(tools: &[String], key: &dyn Fn(&str) -> String) -> Result<(), ConfigError> {
    let is_misread = |name: &String| {
        let begins = name.trim_start();
        begins.is_empty() || begins.starts_with('-') || name.chars().any(char::is_control)
    };
    match tools.iter().position(is_misread) {
        Some(index) => {
            let why =
                "the name of a tool is not empty, does not begin with `-` and has no control \
                       characters"
                    .to_owned();
            Err(ConfigProblem::Folder { why }.at(key(&format!("program.tools[{index}]"))))
        }
        None => Ok(()),
    }
}

/// Returns the variables that a program gets by name and by value.
fn environment(
    cli: Cli,
    config: &ProgramConfig,
    surroundings: &Surroundings<'_>,
    key: &dyn Fn(&str) -> String,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut environment = BTreeMap::new();
    let not_own = |field: String, name: &str| {
        let places = ["HOME", "TMPDIR", cli.own_home().0];
        let is_switch = cli.switches().iter().any(|(switch, _)| *switch == name);
        if !places.contains(&name) && !is_switch {
            return Ok(());
        }
        let why = if places.contains(&name) {
            "the host sets this variable itself, to a place that is the agent's alone"
        } else {
            "the host sets this variable itself, so that the program takes words for words alone"
        }
        .to_owned();
        Err(ConfigProblem::Folder { why }.at(key(&field)))
    };
    for (index, name) in config.environment.iter().enumerate() {
        let no = |problem: ConfigProblem| problem.at(key(&format!("program.environment[{index}]")));
        if !is_variable(name) {
            return Err(no(ConfigProblem::NotAVariable));
        }
        not_own(format!("program.environment[{index}]"), name)?;
        // One that is not set there is not set here.
        if let Some(value) = (surroundings.env)(name) {
            environment.insert(name.clone(), value);
        }
    }
    for (name, value) in &config.variables {
        let is_usable = !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
        if !is_usable {
            let why = "not a variable with a value that a program can be given".to_owned();
            let key = key(&format!("program.variables.{name}"));
            return Err(ConfigProblem::Folder { why }.at(key));
        }
        not_own(format!("program.variables.{name}"), name)?;
        environment.insert(name.clone(), value.clone());
    }
    Ok(environment)
}
