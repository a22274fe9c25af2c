//! Secrets: where their values come from. The configuration holds no value, and nothing here prints
//! one.

use super::component::EnvironmentValue;
use super::document::{Config, Loaded};
use super::finding::{Finding, error, warning};
use super::locations::text_variable;
use crate::terminal::quoted;
use domain::secret::{
    NAME_BYTES_MAX, SECRET_BYTES_MAX, Secret, SecretError, Secrets, is_secret_name,
};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

/// Milliseconds that a command may take to say a secret.
const COMMAND_MS_MAX: u64 = 10_000;
/// Characters of a variable's name. Longer names do not occur; secrets do.
const VARIABLE_CHARS_MAX: usize = 64;
/// Bytes to read of a secret: enough for its line end, and to detect that it is too long.
const READ_BYTES_MAX: u64 = SECRET_BYTES_MAX as u64 + 3;

/// The source of a secret's value: 8 bytes to 16 KiB of visible ASCII. The line break at the end is
/// dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SecretSource {
    /// The variable of the host's environment with this name.
    Env(String),
    /// This file, relative to the config file's folder. Only its owner may read it.
    File(PathBuf),
    /// The output of this program on stdout. It is called with these arguments, without a shell,
    /// from the config file's folder, once at each start and at each check. It has ten seconds.
    Command(Vec<String>),
}

/// The same as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    env: Option<String>,
    file: Option<PathBuf>,
    command: Option<Vec<String>>,
}

impl<'de> Deserialize<'de> for SecretSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourceVisitor)
    }
}

/// Reads a source. What is written in its place may be the secret itself, and is not repeated in
/// the error.
struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = SecretSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("exactly one of `env`, `file` and `command`")
    }

    fn visit_str<E: de::Error>(self, _text: &str) -> Result<SecretSource, E> {
        Err(E::custom(
            "a secret does not belong in the config; say where it is: { env = \"NAME\" }, { file = \
             \"path\" } or { command = [...] }",
        ))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SecretSource, A::Error> {
        match Written::deserialize(MapAccessDeserializer::new(map))? {
            Written {
                env: Some(env),
                file: None,
                command: None,
            } => Ok(SecretSource::Env(env)),
            Written {
                env: None,
                file: Some(file),
                command: None,
            } => Ok(SecretSource::File(file)),
            Written {
                env: None,
                file: None,
                command: Some(command),
            } => Ok(SecretSource::Command(command)),
            Written { .. } => Err(de::Error::custom(
                "name exactly one of `env`, `file` and `command`",
            )),
        }
    }
}

/// The reason why there is no value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretProblem {
    #[error(
        "`env` is not the name of an environment variable, such as `GITHUB_TOKEN`; if it is \
             the secret itself, it does not belong here"
    )]
    NotAVariable,
    #[error(
        "the environment variable `{0}` is not set, or not to text; set it where the host is \
             started, or put the secret into a file: {{ file = \"path\" }}"
    )]
    NotSet(String),
    #[error("the file `{}` cannot be read", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    #[error("`{}` is not a regular file", .0.display())]
    NoFile(PathBuf),
    #[error("others can read the file `{}` (its mode is {mode:03o}); make it yours alone: chmod \
             600 {}", .file.display(), quoted(.file))]
    Shared { file: PathBuf, mode: u32 },
    #[error("`command` names no program")]
    NoProgram,
    #[error("the program `{0}` cannot be run")]
    Unrunnable(String, #[source] io::Error),
    #[error("the program `{0}` took longer than {COMMAND_MS_MAX} ms")]
    TooSlow(String),
    #[error("the program `{program}` failed ({status})")]
    Failed { program: String, status: ExitStatus },
    #[error("its value cannot be used")]
    Unusable(#[from] SecretError),
}

impl SecretProblem {
    /// Describes all of it in one line. No part of a value is in it.
    fn message(&self) -> String {
        let source = std::error::Error::source(self).map(|source| format!(": {source}"));
        format!("{self}{}", source.unwrap_or_default())
    }

    fn finding(&self, name: &str) -> Finding {
        error(format!("secrets.{name}"), self.message())
    }
}

impl SecretSource {
    /// The value. A command is run for it.
    async fn value(&self, folder: &Path) -> Result<Secret, SecretProblem> {
        match self {
            Self::Env(name) => of_variable(name),
            Self::File(file) => of_file(&folder.join(file)),
            Self::Command(words) => of_command(words, folder).await,
        }
    }

    /// The value, if it is there without running anything; none for a command.
    fn at_rest(&self, folder: &Path) -> Option<Result<Secret, SecretProblem>> {
        match self {
            Self::Env(name) => Some(of_variable(name)),
            Self::File(file) => Some(of_file(&folder.join(file))),
            Self::Command(_) => None,
        }
    }
}

fn of_variable(name: &str) -> Result<Secret, SecretProblem> {
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if name.is_empty() || name.len() > VARIABLE_CHARS_MAX || !name.bytes().all(plain) {
        return Err(SecretProblem::NotAVariable);
    }
    let value = text_variable(name).ok_or_else(|| SecretProblem::NotSet(name.to_owned()))?;
    Ok(Secret::parse(&value)?)
}

fn of_file(path: &Path) -> Result<Secret, SecretProblem> {
    use std::os::unix::fs::PermissionsExt;
    let unreadable = |source| SecretProblem::Unreadable(path.to_owned(), source);
    // A pipe would be waited for.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(SecretProblem::NoFile(path.to_owned()));
    }
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(SecretProblem::Shared {
            file: path.to_owned(),
            mode,
        });
    }
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    Ok(Secret::parse(&String::from_utf8_lossy(&bytes))?)
}

async fn of_command(words: &[String], folder: &Path) -> Result<Secret, SecretProblem> {
    let (program, arguments) = words.split_first().ok_or(SecretProblem::NoProgram)?;
    let unrunnable = |source| SecretProblem::Unrunnable(program.clone(), source);
    let mut command = Command::new(program);
    // What it says on stderr may be the secret too.
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(unrunnable)?;
    let running = async {
        let mut bytes = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            stdout
                .take(READ_BYTES_MAX)
                .read_to_end(&mut bytes)
                .await
                .map_err(unrunnable)?;
        }
        let status = child.wait().await.map_err(unrunnable)?;
        // Whoever says too much may be ended by that; what it said tells more than its end.
        if status.success() || bytes.len() as u64 >= READ_BYTES_MAX {
            Ok(bytes)
        } else {
            Err(SecretProblem::Failed {
                program: program.clone(),
                status,
            })
        }
    };
    let ended = timeout(Duration::from_millis(COMMAND_MS_MAX), running).await;
    let bytes = ended.map_err(|_| SecretProblem::TooSlow(program.clone()))??;
    Ok(Secret::parse(&String::from_utf8_lossy(&bytes))?)
}

/// Reads all secrets, running the commands among them.
///
/// # Errors
/// The first that cannot be had, by its key. No value is in it.
pub(crate) async fn read(loaded: &Loaded) -> Result<Secrets, Finding> {
    let mut values = Vec::new();
    for (name, source) in &loaded.config.secrets {
        let value = source.value(loaded.folder()).await;
        values.push((name.clone(), value.map_err(|it| it.finding(name))?));
    }
    Ok(Secrets::new(values))
}

/// Reads the secrets that can be read without running anything. Those that cannot be had are left
/// out.
pub(super) fn at_rest(loaded: &Loaded) -> Secrets {
    Secrets::new(values_at_rest(loaded))
}

fn values_at_rest(loaded: &Loaded) -> impl Iterator<Item = (String, Secret)> {
    let sources = loaded.config.secrets.iter();
    sources.filter_map(move |(name, source)| {
        let value = source.at_rest(loaded.folder())?.ok()?;
        Some((name.clone(), value))
    })
}

/// Reads all secrets, and finds the commands that say none that can be used. Each is run as a start
/// runs it, all at once.
pub(super) async fn tried(loaded: &Loaded) -> (Secrets, Vec<Finding>) {
    let commands = loaded.config.secrets.iter().filter_map(|(name, source)| {
        let is_run = matches!(source, SecretSource::Command(words) if !words.is_empty());
        is_run.then_some(async move { (name, source.value(loaded.folder()).await) })
    });
    let mut values: Vec<(String, Secret)> = values_at_rest(loaded).collect();
    let mut findings = Vec::new();
    for (name, said) in futures::future::join_all(commands).await {
        match said {
            Ok(value) => values.push((name.clone(), value)),
            Err(problem) => findings.push(problem.finding(name)),
        }
    }
    (Secrets::new(values), findings)
}

/// Finds everything that is wrong or odd about secrets and the grants of them. Reads
/// those that can be read without running anything.
pub(super) fn check(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let config = &loaded.config;
    for (name, source) in &config.secrets {
        let key = format!("secrets.{name}");
        if !is_secret_name(name) {
            findings.push(error(
                &key,
                format!("the name of a secret is 1 to {NAME_BYTES_MAX} of a-z, 0-9, `-` and `_`"),
            ));
        }
        let problem = match source {
            SecretSource::Command(words) => words.is_empty().then_some(SecretProblem::NoProgram),
            SecretSource::Env(_) | SecretSource::File(_) => {
                source.at_rest(loaded.folder()).and_then(Result::err)
            }
        };
        findings.extend(problem.map(|problem| error(&key, problem.message())));
        let is_granted = config
            .components
            .values()
            .any(|component| component.secrets.iter().any(|grant| grant.secret == *name));
        if !is_granted && !config.signs_with(name) && !config.verifies_with(name) {
            findings.push(warning(&key, "no component is granted it"));
        }
    }
    for (name, component) in &config.components {
        for (index, grant) in component.secrets.iter().enumerate() {
            let key = format!("components.{name}.secrets[{index}]");
            if !config.secrets.contains_key(&grant.secret) {
                findings.push(error(format!("{key}.secret"), not_there(config)));
            }
            findings.extend(
                grant
                    .check(&component.network)
                    .err()
                    .map(|wrong| error(&key, wrong.to_string())),
            );
            if component
                .secrets
                .iter()
                .take(index)
                .any(|other| other.is_beside(grant))
            {
                findings.push(error(
                    &key,
                    format!("another secret goes to the same slot of `{}`", grant.host),
                ));
            }
        }
        let shown = component
            .environment
            .iter()
            .filter_map(|(variable, value)| match value {
                EnvironmentValue::Host(host) => Some((variable, secret_of(loaded, &host.env)?)),
                EnvironmentValue::Text(_) => None,
            });
        findings.extend(shown.map(|(variable, secret)| {
            let message = format!(
                "the component would see the secret `{secret}`; grant it in `secrets`, and \
                         the host puts it into requests"
            );
            error(format!("components.{name}.environment.{variable}"), message)
        }));
    }
}

/// Describes a name that no secret has, without the name: it may be the secret itself.
pub(super) fn not_there(config: &Config) -> String {
    let names: Vec<String> = config
        .secrets
        .keys()
        .map(|name| format!("`{name}`"))
        .collect();
    let known = match names.as_slice() {
        [] => "which has none".to_owned(),
        names => format!("which has {}", names.join(", ")),
    };
    format!(
        "it names no secret of `secrets`, {known}; add one there, such as `[secrets.NAME]` with \
         `env` or `file`; if this is the secret itself, it does not belong here"
    )
}

/// The secret that a variable of the host's environment holds.
fn secret_of<'a>(loaded: &'a Loaded, variable: &str) -> Option<&'a String> {
    let holds =
        |source: &SecretSource| matches!(source, SecretSource::Env(name) if name == variable);
    loaded
        .config
        .secrets
        .iter()
        .find(|(_, source)| holds(source))
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests;
