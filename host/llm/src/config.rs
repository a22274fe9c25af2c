//! The part of the config file that names providers and models.

use domain::delegate::Presentation;
use domain::egress::{AddressRange, GrantError};
use domain::price::PER_MILLION_MAX;
use domain::ranges::{OutOfRange, out_of_range};
use domain::words;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Tokens of a model's window where the config does not say.
pub(crate) const CONTEXT_WINDOW_DEFAULT: u64 = 128_000;
/// Calls of one provider at the same time where the config does not say.
pub(crate) const CONCURRENT_DEFAULT: u32 = 16;
/// Calls of one provider at the same time, at most.
pub(crate) const CONCURRENT_MAX: u32 = 1_000;
/// Milliseconds of any pause and time limit, at most: a day, as longer is a mistake.
const MS_MAX: u64 = 24 * 3_600_000;

/// Providers, models and the limits of asking them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The alias of the model that is used when none is named. Not needed when there is only one.
    pub default_model: Option<String>,
    /// Providers of models, by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Models by alias. Only these can be asked.
    pub models: BTreeMap<String, ModelConfig>,
    /// Limits on repeating a failed call.
    pub retry: RetryLimits,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Limits after which a failing provider is not asked for a while.
    pub breaker: BreakerLimits,
}

/// The API of a provider.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, utoipa::ToSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schema(as = ModelProviderKind)]
pub enum ProviderKind {
    /// OpenAI's own chat completions. The key comes from `OPENAI_API_KEY` unless said otherwise.
    Openai,
    /// A server that speaks the same, such as llama.cpp, vLLM, Ollama or a router. Needs `baseUrl`;
    /// a key if the server wants one.
    OpenaiCompatible,
    /// Anthropic's messages API. The key comes from `ANTHROPIC_API_KEY` unless said otherwise.
    Anthropic,
    /// No model at all: replies from a rule file, without key and network.
    Scripted,
    /// The program `claude` (Claude Code) of the operating system. Needs `program`.
    ClaudeCli,
    /// The program `codex` (Codex) of the operating system. Needs `program`.
    CodexCli,
    /// The program `pi` (pi coding agent) of the operating system. Needs `program`.
    PiCli,
}

words!(ProviderKind {
    Openai = "openai",
    OpenaiCompatible = "openai-compatible",
    Anthropic = "anthropic",
    Scripted = "scripted",
    ClaudeCli = "claude-cli",
    CodexCli = "codex-cli",
    PiCli = "pi-cli",
});

/// One provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderConfig {
    /// The API of the provider.
    pub kind: ProviderKind,
    /// Its base URL, such as `http://127.0.0.1:8080/v1`. Without query, user or password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The file that holds the key; only its owner may be able to read it. Relative to the config
    /// file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_file: Option<PathBuf>,
    /// Addresses at which it may be although they are not public, such as `10.1.0.0/16`, when
    /// `baseUrl` has a name. An address that stands in `baseUrl`, and those of `localhost`, need no
    /// mention; an address of a cloud's metadata does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub private_addresses: Vec<AddressRange>,
    /// The rule file of a `scripted` provider. Relative to the config file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<PathBuf>,
    /// The program of a `claude-cli`, `codex-cli` or `pi-cli` provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramConfig>,
    /// Calls at the same time, 1 to 1,000; 16 without. Users take turns, and in a user's turn the
    /// calls for the most urgent delegations go first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = CONCURRENT_MAX))]
    pub concurrent_max: Option<u32>,
    /// Never: a key does not belong here. Read only in order to say so.
    #[serde(
        default,
        alias = "api_key",
        alias = "key",
        alias = "token",
        skip_serializing
    )]
    #[schemars(skip)]
    pub api_key: Option<LiteralKey>,
}

/// A key that stands in the config, where it must not be. Its text is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiteralKey;

impl<'de> Deserialize<'de> for LiteralKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// One model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelConfig {
    /// The name of its provider in `providers`.
    pub provider: String,
    /// The provider's name of it.
    pub model: String,
    /// Tokens of prompt and reply that it can hold; 128,000 without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub context_window: Option<u64>,
    /// Tokens of a reply, at most, whatever an agent asks for. An agent that names no limit gets as
    /// many, as far as its budget has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// Aliases that are tried, in this order, when this one does not answer. Their own fallbacks
    /// are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// Its price. A model without a price has unknown costs, and a turn whose costs are limited
    /// cannot ask it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceConfig>,
    /// The form that suits it, for agents whose `operations` is `auto`: `one` or `byOperation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Presentation>,
    /// More fields of the request in the provider's terms, such as `temperature`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

/// The price of a million tokens of a model. All prices are in one currency; 0 for a model of one's
/// own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PriceConfig {
    /// Price of the prompt.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub input_per_million: f64,
    /// Price of the part of the prompt that was read from a cache. Without it, that of the rest of
    /// the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub cached_per_million: Option<f64>,
    /// Price of the reply.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub output_per_million: f64,
}

/// Limits on repeating a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RetryLimits {
    /// Attempts at one model, the first included: 1 to 10.
    #[schemars(range(min = 1, max = 10))]
    pub attempts_max: u32,
    /// Milliseconds before the second attempt, at most. The limit doubles before each further one,
    /// and the pause is a random part of it.
    #[schemars(range(min = 0, max = MS_MAX))]
    pub base_ms: u64,
    /// Milliseconds between two attempts, at most.
    #[schemars(range(min = 0, max = MS_MAX))]
    pub delay_ms_max: u64,
    /// Milliseconds that a provider may ask for (`Retry-After`). When it asks for more, the next
    /// fallback is tried at once.
    #[schemars(range(min = 0, max = MS_MAX))]
    pub retry_after_ms_max: u64,
}

impl Default for RetryLimits {
    fn default() -> Self {
        Self {
            attempts_max: 3,
            base_ms: 500,
            delay_ms_max: 30_000,
            retry_after_ms_max: 60_000,
        }
    }
}

/// Time limits in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Timeouts {
    /// Name, connection and TLS, each of them.
    #[schemars(range(min = 1, max = MS_MAX))]
    pub connect_ms: u64,
    /// Time from sending to the first bytes of a streamed reply.
    #[schemars(range(min = 1, max = MS_MAX))]
    pub first_token_ms: u64,
    /// Time between two portions of a reply.
    #[schemars(range(min = 1, max = MS_MAX))]
    pub idle_ms: u64,
    /// Time from sending to the first bytes of a reply that is not streamed: the model is done by
    /// then.
    #[schemars(range(min = 1, max = MS_MAX))]
    pub whole_ms: u64,
    /// Attempts, pauses between them, and fallbacks of one call. It begins when a provider lets
    /// the call in; waiting for another one to do so does not count.
    #[schemars(range(min = 1, max = MS_MAX))]
    pub total_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect_ms: 5_000,
            first_token_ms: 30_000,
            idle_ms: 30_000,
            whole_ms: 300_000,
            total_ms: 600_000,
        }
    }
}

/// Limits after which a failing provider is not asked for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BreakerLimits {
    /// Failures in a row after which it is not asked for a while: 1 to 1,000.
    #[schemars(range(min = 1, max = 1_000))]
    pub failures_max: u32,
    /// Milliseconds for which it is not asked; then one call goes out to see.
    #[schemars(range(min = 0, max = MS_MAX))]
    pub open_ms: u64,
}

impl Default for BreakerLimits {
    fn default() -> Self {
        Self {
            failures_max: 5,
            open_ms: 30_000,
        }
    }
}

/// A config that cannot be used: which key, and what is wrong with it.
#[derive(Debug)]
pub struct ConfigError {
    /// The key at fault, such as `providers.local.baseUrl`.
    pub key: String,
    /// The problem with it.
    pub problem: ConfigProblem,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.key, self.problem)
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.problem)
    }
}

/// A problem with a key of the config.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// A key is written into the config.
    #[error(
        "a key does not belong in the config; put it into a file and name that in \
             `apiKeyFile`, or into the environment and name the variable in `apiKeyEnv`"
    )]
    LiteralKey,
    /// `apiKeyEnv` is not the name of a variable. Its text is not repeated: it may be a key.
    #[error(
        "not the name of an environment variable; if this is the key itself, it does not \
             belong in the config"
    )]
    NotAVariable,
    /// The variable is not set.
    #[error(
        "the environment variable `{variable}` is not set; set it to the provider's key, or \
             name a file in `apiKeyFile`"
    )]
    Unset {
        /// Its name.
        variable: String,
    },
    /// There is no key in the variable or file.
    #[error("there is no key in it")]
    EmptyKey,
    /// The key has characters that no header can carry.
    #[error("what is in it is not a key: it has blanks, line breaks or characters beyond ASCII")]
    UnusableKey,
    /// A folder of a program that cannot be granted.
    #[error("cannot be granted: {why}")]
    Folder {
        /// The reason.
        why: String,
    },
    /// Others can read the key file.
    #[error("others than its owner may read `{}` (mode {mode:o}); run: chmod 600 {}", path.display(), quoted(path))]
    SharedKeyFile {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file cannot be read.
    #[error("cannot read `{}`; a relative path starts from the config file's folder", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// A rule file makes no sense.
    #[error("the rule file `{}` cannot be used: {problem}", path.display())]
    Script {
        /// The file.
        path: PathBuf,
        /// The problem, and its place in the file.
        problem: String,
    },
    /// Something that this kind of provider needs is missing.
    #[error("missing; {why}")]
    Missing {
        /// The purpose for which it is needed.
        why: &'static str,
    },
    /// Something that this kind of provider has no use for.
    #[error("has no meaning for a provider of this kind")]
    Misplaced,
    /// Two that exclude each other.
    #[error("give either `apiKeyEnv` or `apiKeyFile`, not both")]
    TwoKeys,
    /// A URL that cannot be used.
    #[error("not a usable base URL: {why}")]
    BaseUrl {
        /// The reason.
        why: &'static str,
    },
    /// Addresses that cannot be meant as they are written.
    #[error("cannot be meant as it is written")]
    Addresses {
        /// The problem.
        #[source]
        source: GrantError,
    },
    /// A name that stands for nothing.
    #[error("there is no {what} `{name}`{}", did_you_mean(nearest.as_deref()))]
    Unknown {
        /// A provider or a model.
        what: &'static str,
        /// The name.
        name: String,
        /// The one that looks most like it.
        nearest: Option<String>,
    },
    /// A number out of its range.
    #[error("must be from {min} to {max}")]
    OutOfRange {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A price that is none.
    #[error("each price must be from 0 to {PER_MILLION_MAX}")]
    NoPrice,
    /// A parameter that the host sets itself.
    #[error("the host sets this itself")]
    Reserved,
    /// TLS cannot be set up.
    #[error(
        "no TLS connection can be made from this machine; are its certificate authorities \
             installed (package `ca-certificates`)?"
    )]
    Tls {
        /// The reason.
        #[source]
        source: rustls::Error,
    },
}

impl ConfigProblem {
    /// The problem, at a key.
    pub(crate) fn at(self, key: impl Into<String>) -> ConfigError {
        ConfigError {
            key: key.into(),
            problem: self,
        }
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest
        .map(|nearest| format!("; did you mean `{nearest}`?"))
        .unwrap_or_default()
}

/// A path as a shell takes it.
fn quoted(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    let plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
    if plain {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

impl Config {
    /// Checks every number of the sections against the range that its schema tells.
    pub(crate) fn check_ranges(&self) -> Result<(), ConfigError> {
        check_section("retry", &self.retry)?;
        check_section("timeouts", &self.timeouts)?;
        check_section("breaker", &self.breaker)
    }
}

pub(crate) fn check_section<T: JsonSchema + Serialize>(
    section: &str,
    values: &T,
) -> Result<(), ConfigError> {
    match out_of_range(values).first() {
        Some(OutOfRange {
            key, least, most, ..
        }) => Err(ConfigProblem::OutOfRange {
            min: *least,
            max: *most,
        }
        .at(format!("{section}.{key}"))),
        None => Ok(()),
    }
}

/// Milliseconds of one turn of a program, at most: a day, as longer is a mistake.
const TURN_MS_MAX: u64 = 24 * 3_600_000;
/// Milliseconds that a program is given to end by itself, at most.
const GRACE_MS_MAX: u64 = 60_000;
/// Bytes of any limit: 1 TiB, as more is a mistake.
const BYTES_MAX: u64 = 1 << 40;

/// A program of the operating system that answers in a model's place. It is outside of the
/// WebAssembly sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProgramConfig {
    /// True if the program may be started. Without it, every call is refused and nothing is
    /// started.
    #[serde(default)]
    pub enabled: bool,
    /// The program's file. For `codex-cli` the native binary and not the script that npm installs,
    /// which does not end its own children. Relative to the config file.
    pub path: PathBuf,
    /// The working folder, which is there already: the program may write in it. Relative to the
    /// config file.
    pub folder: PathBuf,
    /// True if it may only read in its working folder.
    #[serde(default)]
    pub read_only: bool,
    /// A folder in which each agent has a home of its own for the program: its `HOME`, its
    /// settings, and its sessions. It is made if it is not there. Neither in `folder` nor around
    /// it. Relative to the config file.
    pub home: PathBuf,
    /// Names of environment variables of the host that it gets. It gets no others but those of
    /// `variables`, those that lead to its home, and the key of `apiKeyEnv` or `apiKeyFile`. Their
    /// values are not hidden in replies: no keys here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub environment: Vec<String>,
    /// Environment variables that it gets, with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// More files and folders that it may read and start programs from, such as the folder that it
    /// is installed in. Those of the system (`/usr`, `/lib` and the like, and what programs need of
    /// `/etc`) and the program's own file need no mention.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub read_folders: Vec<PathBuf>,
    /// Names of the program's own tools that it may use without asking; none without. For
    /// `claude-cli` and `pi-cli` these are the tools themselves; for `codex-cli`, which has no such
    /// list, any name lets it run commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub tools: Vec<String>,
    /// True if it uses a login that is in its home. Of `claude-cli` only, which reads none
    /// otherwise.
    #[serde(default)]
    pub login: bool,
    /// True if it is not started where its folders and its signals cannot be enforced (Landlock's
    /// sixth version, of Linux 6.12). Otherwise that is a warning at the start of the host.
    #[serde(default)]
    pub require_confinement: bool,
    /// Its limits.
    #[serde(default)]
    pub limits: ProgramLimits,
}

/// Limits of one turn of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProgramLimits {
    /// Milliseconds of the turn.
    #[schemars(range(min = 1, max = TURN_MS_MAX))]
    pub turn_ms_max: u64,
    /// Milliseconds from the signal to end until it is killed with all that it started.
    #[schemars(range(min = 1, max = GRACE_MS_MAX))]
    pub grace_ms: u64,
    /// Bytes that it writes to stdout and stderr.
    #[schemars(range(min = 1, max = BYTES_MAX))]
    pub output_bytes_max: u64,
    /// Processes at the same time, itself and all that it started.
    #[schemars(range(min = 1, max = 10_000))]
    pub processes_max: u32,
    /// Bytes of memory that all of them have together. Looked at several times a second.
    #[schemars(range(min = 1, max = BYTES_MAX))]
    pub memory_bytes_max: u64,
    /// Seconds that each of them computes.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub cpu_s_max: u64,
    /// Bytes of each file that they write.
    #[schemars(range(min = 1, max = BYTES_MAX))]
    pub file_bytes_max: u64,
}

impl Default for ProgramLimits {
    fn default() -> Self {
        Self {
            turn_ms_max: 300_000,
            grace_ms: 2_000,
            output_bytes_max: 64 << 20,
            processes_max: 64,
            memory_bytes_max: 4 << 30,
            cpu_s_max: 600,
            file_bytes_max: 1 << 30,
        }
    }
}
