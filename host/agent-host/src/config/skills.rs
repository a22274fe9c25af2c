//! Skills of the operator's: their key in the configuration, what is read of their folders at a
//! start, and the check of the lists that name them.

use super::component::BUILT_INS;
use super::document::{Config, Loaded};
use super::finding::{Finding, error, warning};
use super::patterns;
use domain::definition::ToolExposure;
use domain::skill::{ALL_FOLDERS_BYTES_MAX, FILE_BYTES_MAX, FILES_MAX, SkillFolder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Folders below a skill's folder, one in the other.
const DEPTH_MAX: usize = 8;

/// A skill of the operator's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SkillConfig {
    /// The folder, in the Agent Skills format: `SKILL.md` with `name` and `description` between two
    /// lines `---`, a body, and files that it refers to. The name is the key here. Relative paths
    /// start at the configuration file.
    pub(crate) path: PathBuf,
}

/// Finds folders that cannot be read, and lists of skills that match or do nothing.
pub(super) fn check(loaded: &Loaded, findings: &mut Vec<Finding>) {
    for (id, skill) in &loaded.config.skills {
        if let Err(fault) = read_one(loaded, id, skill) {
            findings.push(error(format!("skills.{id}.path"), fault));
        }
    }
    check_lists(&loaded.config, findings);
}

/// Finds lists of skills that match nothing, or have no effect.
fn check_lists(config: &Config, findings: &mut Vec<Finding>) {
    let known: BTreeSet<&str> = config
        .components
        .keys()
        .chain(config.skills.keys())
        .map(String::as_str)
        .chain(BUILT_INS)
        .collect();
    for (index, agent) in config.agents.iter().enumerate() {
        for (key, list) in [
            ("skillAllowlist", &agent.skill_allowlist),
            ("skillDenylist", &agent.skill_denylist),
        ] {
            let key = format!("agents[{index}].{key}");
            if agent.tool_exposure == ToolExposure::Tools && list.is_some() {
                let reported = "it has no effect while `toolExposure` is `tools`; set that to `skills` \
                            or `mixed`";
                findings.push(warning(key, reported));
            } else {
                findings.extend(patterns::nothing(&key, list.as_ref(), "skill", &known));
            }
        }
    }
}

/// Reads the folders of all skills.
///
/// # Errors
/// The key of the first that cannot be read, or is one too many, and the fault.
pub(crate) fn read(loaded: &Loaded) -> Result<Vec<SkillFolder>, String> {
    let mut folders = Vec::new();
    let mut bytes = 0;
    for (id, skill) in &loaded.config.skills {
        let folder =
            read_one(loaded, id, skill).map_err(|fault| format!("skills.{id}.path: {fault}"))?;
        bytes += folder.bytes();
        if bytes > ALL_FOLDERS_BYTES_MAX {
            return Err(format!(
                "skills.{id}.path: with this one all skills have {bytes} bytes; \
                 {ALL_FOLDERS_BYTES_MAX} are the most; leave some out"
            ));
        }
        folders.push(folder);
    }
    Ok(folders)
}

fn read_one(loaded: &Loaded, id: &str, skill: &SkillConfig) -> Result<SkillFolder, String> {
    let mut files = BTreeMap::new();
    let mut next = vec![(loaded.resolve(&skill.path), String::new())];
    while let Some((folder, below)) = next.pop() {
        let entries = std::fs::read_dir(&folder)
            .map_err(|error| format!("`{}` cannot be read: {error}", folder.display()))?;
        for entry in entries {
            let entry = entry.map_err(|error| error.to_string())?;
            let path = entry.path();
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
                continue;
            };
            let kind = entry.file_type().map_err(|error| error.to_string())?;
            let name = format!("{below}{name}");
            if kind.is_dir() {
                if name.matches('/').count() >= DEPTH_MAX {
                    return Err(format!("`{}` is too deep below it", path.display()));
                }
                next.push((path, format!("{name}/")));
            } else if kind.is_file() {
                files.insert(name, text_of(&path)?);
            } else {
                return Err(format!(
                    "`{}` is neither a file nor a folder; links are not followed",
                    path.display()
                ));
            }
            if files.len() > FILES_MAX || next.len() > FILES_MAX {
                return Err(format!("it has more than {FILES_MAX} files or folders"));
            }
        }
    }
    SkillFolder::read(id, files).map_err(|fault| fault.to_string())
}

/// Returns the text of a file, or a remark that it is none.
fn text_of(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("`{}` cannot be read: {error}", path.display());
    let max = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let size = bytes.len();
    Ok(String::from_utf8(bytes).unwrap_or_else(|_| format!("[no text: {size} bytes]\n")))
}
