//! The part of a provider's config that says which program it is, where it works, and what it may
//! take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

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
