//! Folders of the operator's in the Agent Skills format: `SKILL.md` with `name` and `description`
//! at its head, a body, and files that it refers to.

use super::head::{HeadFault, fields_of, head_of};
use super::{SKILL_FILE, Skill};
use crate::values::digest::Digest;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Characters of a skill's description.
pub const DESCRIPTION_CHARS_MAX: usize = 1_024;
/// Characters of a skill's name.
const NAME_CHARS_MAX: usize = 64;
/// Files of a skill.
pub const FILES_MAX: usize = 128;
/// Bytes of one file of a skill.
pub const FILE_BYTES_MAX: usize = 256 << 10;
/// Bytes of all files of a skill.
pub const FOLDER_BYTES_MAX: usize = 2 << 20;
/// Bytes of all files of all skills of a configuration. An agent's skills are stored with its
/// turns.
pub const ALL_FOLDERS_BYTES_MAX: usize = 16 << 20;
/// The folder of a skill with files that are programs on other systems.
const SCRIPTS: &str = "scripts/";
/// The fields of its head that are used.
const NAME: &str = "name";
const DESCRIPTION: &str = "description";

/// The note at the end of the `SKILL.md` of a skill with scripts.
const NO_SCRIPTS: &str = "\n---\n\nNote of the host: the files in `scripts/` can be read here and \
                          cannot be run. Do what they would do by other means.\n";

/// A folder of the operator's, read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    /// Its id, which is the name at the head of its `SKILL.md`.
    pub id: String,
    description: String,
    files: BTreeMap<String, Arc<str>>,
}

/// A fault in a folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillFault {
    /// The file `SKILL.md` is missing.
    #[error("there is no {SKILL_FILE} in it; write one with `name` and `description` at its head")]
    NoSkillFile,
    /// The `SKILL.md` has no head.
    #[error(
        "{SKILL_FILE} does not begin with a head: put `name:` and `description:` between two \
             lines `---`"
    )]
    NoHead,
    /// The head cannot be read.
    #[error("the head of {SKILL_FILE} {0}")]
    Head(HeadFault),
    /// The head lacks a field.
    #[error("the head of {SKILL_FILE} has no `{0}`; add it")]
    NoField(&'static str),
    /// The name differs from the id under which the skill is configured, or is no valid id.
    #[error(
        "the head of {SKILL_FILE} says `name: {name}`, and the skill is configured as `{id}`; use \
             one name of 1 to {NAME_CHARS_MAX} of a-z, 0-9 and - for both"
    )]
    OtherName {
        /// The name at the head.
        name: String,
        /// The name in the configuration.
        id: String,
    },
    /// The description is too long.
    #[error(
        "the description in {SKILL_FILE} has {0} characters; {DESCRIPTION_CHARS_MAX} are the most"
    )]
    LongDescription(usize),
    /// It has too many files, or they are too large.
    #[error(
        "it has more than {FILES_MAX} files, a file of more than {FILE_BYTES_MAX} bytes, or more \
             than {FOLDER_BYTES_MAX} bytes in all; leave some out"
    )]
    TooLarge,
}

impl SkillFolder {
    /// Reads a folder from its files, by their paths below it with `/` between the parts.
    ///
    /// # Errors
    /// The first fault.
    pub fn read(id: &str, files: BTreeMap<String, String>) -> Result<Self, SkillFault> {
        let all: usize = files.values().map(String::len).sum();
        let is_large = files.values().any(|text| text.len() > FILE_BYTES_MAX);
        if files.len() > FILES_MAX || is_large || all > FOLDER_BYTES_MAX {
            return Err(SkillFault::TooLarge);
        }
        let text = files.get(SKILL_FILE).ok_or(SkillFault::NoSkillFile)?;
        let head = head_of(text).ok_or(SkillFault::NoHead)?;
        let head = fields_of(head, &[NAME, DESCRIPTION]);
        let mut head = head.map_err(SkillFault::Head)?;
        let mut field = |name| head.remove(name).ok_or(SkillFault::NoField(name));
        let name = field(NAME)?;
        let is_name = !id.is_empty()
            && id.len() <= NAME_CHARS_MAX
            && id
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if name != id || !is_name {
            let id = id.to_owned();
            return Err(SkillFault::OtherName { name, id });
        }
        let description = field(DESCRIPTION)?;
        let chars = description.chars().count();
        if chars > DESCRIPTION_CHARS_MAX {
            return Err(SkillFault::LongDescription(chars));
        }
        let has_scripts = files.keys().any(|path| path.starts_with(SCRIPTS));
        let files = files
            .into_iter()
            .map(|(path, mut text)| {
                if path == SKILL_FILE && has_scripts {
                    text.push_str(NO_SCRIPTS);
                }
                (path, Arc::from(text))
            })
            .collect();
        Ok(Self {
            id: id.to_owned(),
            description,
            files,
        })
    }

    /// Returns the number of bytes of its files.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.files.values().map(|text| text.len()).sum()
    }

    /// Returns the digest of its whole content.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let files: BTreeMap<&str, &str> = self
            .files
            .iter()
            .map(|(path, text)| (path.as_str(), &**text))
            .collect();
        let whole = json!({ "id": self.id, "description": self.description, "files": files });
        Digest::of(whole.to_string().as_bytes())
    }

    /// Returns the folder's own skill, without any component.
    #[must_use]
    pub fn skill(&self) -> Skill {
        Skill {
            id: self.id.clone(),
            description: self.description.clone(),
            files: self.files.clone(),
            tools: Vec::new(),
        }
    }
}
