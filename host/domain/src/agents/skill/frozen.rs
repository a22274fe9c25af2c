//! Skills as a run has them: a document that is stored when the run begins, and read back for each
//! of its command lines.

use super::{Skill, SkillSet, is_left};
use crate::access::tool::ToolDefinition;
use crate::agents::definition::Definition;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A skill in the document.
#[derive(Serialize, Deserialize)]
struct FrozenSkill {
    id: String,
    description: String,
    files: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolDefinition>,
}

impl From<&Skill> for FrozenSkill {
    fn from(skill: &Skill) -> Self {
        let files = skill.files.iter();
        Self {
            id: skill.id.clone(),
            description: skill.description.clone(),
            files: files
                .map(|(path, text)| (path.clone(), text.to_string()))
                .collect(),
            tools: skill.tools.clone(),
        }
    }
}

impl From<FrozenSkill> for Skill {
    fn from(frozen: FrozenSkill) -> Self {
        let files = frozen.files.into_iter();
        Self {
            id: frozen.id,
            description: frozen.description,
            files: files.map(|(path, text)| (path, Arc::from(text))).collect(),
            tools: frozen.tools,
        }
    }
}

impl SkillSet {
    /// Returns the document in which the skills are stored, with all files; none without skills.
    #[must_use]
    pub fn freeze(&self) -> Option<Vec<u8>> {
        if self.is_empty() {
            return None;
        }
        let skills: Vec<FrozenSkill> = self.skills().iter().map(FrozenSkill::from).collect();
        // Texts and schemas have a JSON form.
        serde_json::to_vec(&skills).ok()
    }

    /// Reads such a document. None if it is invalid.
    #[must_use]
    pub fn thaw(document: &[u8]) -> Option<Self> {
        let skills: Vec<FrozenSkill> = serde_json::from_slice(document).ok()?;
        Some(Self::new(skills.into_iter().map(Skill::from).collect()))
    }

    /// Returns those of the skills that a definition still allows.
    #[must_use]
    pub fn left_by(&self, definition: &Definition) -> Self {
        let skills = self.skills().iter();
        let left = skills.filter(|skill| is_left(definition, &skill.id));
        Self::new(left.cloned().collect())
    }
}
