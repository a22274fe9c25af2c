//! Skills: components and folders that an agent reads about in files and uses by commands, instead
//! of seeing their schemas.
//!
//! A skill has a `SKILL.md` in the Agent Skills format below `/skills/{id}`. For a component, the
//! host generates it from the tools, or the operator supplies it. A folder of the operator's is
//! also a skill without a component. None of these are files of the machine: they are texts in
//! memory.

mod folder;
mod head;

use super::definition::ToolExposure;
use crate::access::tool::ToolDefinition;
use crate::agents::definition::Definition;
use crate::values::shown::{first_sentence, visible};
pub use folder::{
    ALL_FOLDERS_BYTES_MAX, DESCRIPTION_CHARS_MAX, FILE_BYTES_MAX, FILES_MAX, FOLDER_BYTES_MAX,
    SkillFault, SkillFolder,
};
pub use head::HeadFault;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shell::flags::flags_of;
pub use shell::{COMMAND_BYTES_MAX, COMMAND_CALLS_MAX, ROOT};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// The host's tool through which skills are read and used.
pub const BASH: &str = "bash";
/// The name of the file that describes a skill.
pub const SKILL_FILE: &str = "SKILL.md";
/// Milliseconds that a command line may take, with all its calls.
pub const COMMAND_MS_MAX: u64 = 1_800_000;
/// Characters of a generated skill's description.
const GENERATED_CHARS_MAX: usize = 300;
/// Characters of the first sentence of a tool's description.
const SENTENCE_CHARS_MAX: usize = 160;

/// The entry of a skill in the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillListing {
    /// Its id: the component's name, or that of the folder.
    pub id: String,
    /// Its description in a few words.
    pub description: String,
    /// The path of its `SKILL.md`.
    pub skill_path: String,
    /// The path of its command; none for a folder without a component.
    pub cli_path: Option<String>,
}

/// The form in which a component's tools are offered to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// As tools, with their schemas.
    Tools,
    /// As a skill.
    Skill,
    /// Not at all.
    Nothing,
}

/// One skill as it is offered to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// Its id.
    pub id: String,
    /// Its description.
    pub description: String,
    /// Its files by their path below its folder, `SKILL.md` among them.
    pub files: BTreeMap<String, Arc<str>>,
    /// The tools that its command calls; none without a command.
    pub tools: Vec<ToolDefinition>,
}

/// All skills of an agent, with their files by their whole paths.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SkillSet {
    skills: Vec<Skill>,
    files: BTreeMap<String, Arc<str>>,
}

/// Returns the form in which a component is offered to an agent, by the exposure and the lists of
/// its definition. The lists are ignored if everything is exposed as tools.
#[must_use]
pub fn offer(definition: &Definition, component: &str) -> Offer {
    match definition.tool_exposure {
        ToolExposure::Tools => Offer::Tools,
        ToolExposure::Skills | ToolExposure::Mixed if is_listed(definition, component) => {
            Offer::Skill
        }
        ToolExposure::Skills => Offer::Nothing,
        ToolExposure::Mixed => Offer::Tools,
    }
}

/// Returns whether the skill lists of a definition allow a skill. A deny wins, and a missing allow
/// list allows everything.
#[must_use]
pub fn is_listed(definition: &Definition, id: &str) -> bool {
    let denied = definition
        .skill_denylist
        .as_ref()
        .is_some_and(|list| list.matches(id));
    let allowed = definition
        .skill_allowlist
        .as_ref()
        .is_none_or(|list| list.matches(id));
    allowed && !denied
}

/// Returns whether a definition still allows a skill that an agent had. The skill lists are ignored
/// if everything is now exposed as tools.
#[must_use]
pub fn is_left(definition: &Definition, id: &str) -> bool {
    definition.tool_exposure == ToolExposure::Tools || is_listed(definition, id)
}

/// Returns the skills of an agent by id: those of components that offer it these tools as skills,
/// and the operator's folders. A folder with the name of a component replaces the generated skill
/// of that component.
#[must_use]
pub fn skills_of(
    definition: &Definition,
    components: BTreeMap<String, Vec<ToolDefinition>>,
    folders: &[SkillFolder],
) -> SkillSet {
    if definition.tool_exposure == ToolExposure::Tools {
        return SkillSet::default();
    }
    let mut skills: BTreeMap<String, Skill> = folders
        .iter()
        .filter(|folder| is_listed(definition, &folder.id))
        .map(|folder| (folder.id.clone(), folder.skill()))
        .collect();
    for (id, tools) in components {
        if tools.is_empty() {
            continue;
        }
        match skills.get_mut(&id) {
            Some(own) => own.tools = tools,
            None => {
                let made = generated(&id, tools);
                skills.insert(id, made);
            }
        }
    }
    SkillSet::new(skills.into_values().collect())
}

impl Skill {
    /// Returns the name of its command.
    #[must_use]
    pub fn command(&self) -> String {
        format!("{}-cli", self.id)
    }

    /// Returns its entry in the prompt.
    #[must_use]
    pub fn listing(&self) -> SkillListing {
        SkillListing {
            id: self.id.clone(),
            description: self.description.clone(),
            skill_path: format!("{ROOT}/{}/{SKILL_FILE}", self.id),
            cli_path: (!self.tools.is_empty())
                .then(|| format!("{ROOT}/{}/{}", self.id, self.command())),
        }
    }
}

impl SkillSet {
    /// Puts skills together.
    #[must_use]
    pub fn new(skills: Vec<Skill>) -> Self {
        let mut files = BTreeMap::new();
        for skill in &skills {
            for (path, text) in &skill.files {
                files.insert(format!("{ROOT}/{}/{path}", skill.id), text.clone());
            }
            if let Some(cli_path) = skill.listing().cli_path {
                files.insert(cli_path, command_text(skill).into());
            }
        }
        Self { skills, files }
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Returns the skills, by id.
    #[must_use]
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// Returns all files by their whole paths.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, Arc<str>> {
        &self.files
    }

    /// Returns a tool that a command calls, and the skill of that command.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<(&Skill, &ToolDefinition)> {
        self.skills.iter().find_map(|skill| {
            let mut tools = skill.tools.iter();
            Some((skill, tools.find(|tool| tool.name == name)?))
        })
    }

    /// Returns the tools of all commands.
    pub fn tools(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.skills.iter().flat_map(|skill| &skill.tools)
    }

    /// Returns the entries of the prompt, by id.
    #[must_use]
    pub fn listings(&self) -> Vec<SkillListing> {
        self.skills.iter().map(Skill::listing).collect()
    }
}

/// Returns the tool through which an agent uses its skills.
#[must_use]
pub fn bash() -> ToolDefinition {
    ToolDefinition::reading(
        BASH,
        format!(
            "Reads skills and uses them. This is no system shell: no process is started, and there \
             is no network and no file but those below {ROOT}, which are read-only. It knows pipes, \
             `&&`, `||`, `;`, quotes, `NAME=value`, `$NAME`, `$(command)`, `2>&1`; no loops, \
             `${{…}}`, and outside of quotes no `{{…}}` or `*`. Commands: cat, head and tail (-n -c), \
             grep (-E -F -i -v -n -c -l -q -o -w -r -h -H -s -e -A -B -C), wc, sort (-r -n -u -f -k \
             -t), uniq (-c -d -u), echo (-n), ls (-l -R), true, false, jq (-r -j -c -n -s -e --arg \
             --argjson; no modules, input, env, now); no sed, awk, cut, tr, find. Each skill has a command: `<id>-cli \
             <tool> --flag value`, `<id>-cli <tool> --json '{{…}}'`, `<id>-cli [<tool>] --help`. \
             Read the SKILL.md of a skill before you use it."
        ),
        json!({
            "type": "object",
            "properties": {
                "command": {
                    "type": "string", "minLength": 1, "maxLength": COMMAND_BYTES_MAX,
                    "description": "The command line.",
                },
            },
            "required": ["command"],
            "additionalProperties": false,
        }),
    )
}

/// Makes the skill of a component from its tools.
fn generated(id: &str, tools: Vec<ToolDefinition>) -> Skill {
    let sentences: Vec<String> = tools
        .iter()
        .map(|tool| visible(first_sentence(&tool.description), SENTENCE_CHARS_MAX))
        .collect();
    let reported = format!("The tools of `{id}`. {}", sentences.join(" "));
    let description = visible(&reported, GENERATED_CHARS_MAX);
    let mut text = format!(
        "---\nname: {id}\ndescription: {}\n---\n\n# {id}\n\nUse these tools by the command \
         `{id}-cli` in `{BASH}`:\n\n    {id}-cli <tool> --flag value\n    {id}-cli <tool> --json \
         '{{…}}'\n    {id}-cli <tool> --help\n",
        Value::from(description.as_str())
    );
    for tool in &tools {
        // Writing to a text cannot fail.
        let _ = write!(text, "\n## {}\n\n{}\n", tool.name, tool.description.trim());
        let flags = flags_of(&tool.arguments);
        if !flags.is_empty() {
            let _ = write!(text, "\n{flags}");
        }
    }
    let files = BTreeMap::from([(SKILL_FILE.to_owned(), Arc::from(text))]);
    Skill {
        id: id.to_owned(),
        description,
        files,
        tools,
    }
}

/// Returns the text at the place where a shell has a program.
fn command_text(skill: &Skill) -> String {
    let names: Vec<&str> = skill.tools.iter().map(|tool| tool.name.as_str()).collect();
    format!(
        "{} is a command of the tool `{BASH}`; it calls: {}\n",
        skill.command(),
        names.join(", ")
    )
}

// Skills as a run has them: a document that is stored when the run begins, and read back for each
// of its command lines.

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

#[cfg(test)]
mod tests;
