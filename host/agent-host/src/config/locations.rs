//! The default locations of configuration and data.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The environment variable that names the config file.
pub(crate) const CONFIG_VARIABLE: &str = "AGENT_HOST_CONFIG";

/// Name of the config file, where it is found without being named.
pub(crate) const CONFIG_FILE: &str = "config.toml";

/// The folder of the system's configuration.
pub(crate) const SYSTEM_CONFIG: &str = "/etc/agent-host";

/// No config file was named and none is where it is looked for.
#[derive(Debug, thiserror::Error)]
#[error("there is no configuration{}", list(searched))]
pub(crate) struct NoConfig {
    /// The locations that were searched.
    searched: Vec<PathBuf>,
}

fn list(searched: &[PathBuf]) -> String {
    let mut text = format!(
        "; name a file with --config or ${CONFIG_VARIABLE}, or put one at one of these places:"
    );
    for path in searched {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {}", path.display());
    }
    text
}

/// The config file: the one named, or the first one that is there.
pub(crate) fn locate(named: Option<&Path>) -> Result<PathBuf, NoConfig> {
    let of_environment = || variable(CONFIG_VARIABLE).map(PathBuf::from);
    if let Some(path) = named.map(Path::to_owned).or_else(of_environment) {
        return Ok(path);
    }
    let searched: Vec<PathBuf> = config_folders()
        .iter()
        .flat_map(|folder| [folder.join(CONFIG_FILE), folder.join("config.json")])
        .collect();
    searched
        .iter()
        .find(|path| path.is_file())
        .cloned()
        .ok_or(NoConfig { searched })
}

/// The folders in which a config file is looked for: the user's, if they have a home, and the
/// system's.
pub(crate) fn config_folders() -> Vec<PathBuf> {
    let of_user = config_home().map(|home| home.join("agent-host"));
    of_user
        .into_iter()
        .chain([PathBuf::from(SYSTEM_CONFIG)])
        .collect()
}

/// Returns a variable of the environment. An empty one counts as one that is not set: that is how
/// unit files and compose files leave one out.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns a variable of the environment that is text and not empty.
pub(crate) fn text_variable(name: &str) -> Option<String> {
    variable(name)?.into_string().ok()
}

/// The home of the user that the host runs as.
pub(super) fn home() -> Option<PathBuf> {
    absolute("HOME")
}

fn config_home() -> Option<PathBuf> {
    absolute("XDG_CONFIG_HOME").or_else(|| home().map(|home| home.join(".config")))
}

/// Returns the folder for data when the configuration names none.
pub(crate) fn state_dir() -> PathBuf {
    absolute("STATE_DIRECTORY")
        .or_else(|| absolute("XDG_STATE_HOME").map(|home| home.join("agent-host")))
        .or_else(|| home().map(|home| home.join(".local/state/agent-host")))
        .unwrap_or_else(|| PathBuf::from("/var/lib/agent-host"))
}

/// Returns the path in a variable. A relative one is ignored, as the base directory specification
/// demands.
fn absolute(variable: &str) -> Option<PathBuf> {
    self::variable(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}
