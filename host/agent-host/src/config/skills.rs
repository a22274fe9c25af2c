//! Skills of the operator's: their key in the configuration.

pub(crate) mod folders;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A skill of the operator's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SkillConfig {
    /// The folder, in the Agent Skills format: `SKILL.md` with `name` and `description` between two
    /// lines `---`, a body, and files that it refers to. The name is the key here. Relative paths
    /// start at the configuration file.
    pub(crate) path: PathBuf,
}
