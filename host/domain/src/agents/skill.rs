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
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// The host's tool through which skills are read and used.
pub const BASH: &str = "bash";
/// The folder in which all skills are.
pub const ROOT: &str = "/skills";
/// The name of the file that describes a skill.
pub const SKILL_FILE: &str = "SKILL.md";
/// Bytes of a command line.
pub const COMMAND_BYTES_MAX: usize = 16 << 10;
/// The most tool calls of one command line.
pub const COMMAND_CALLS_MAX: usize = 32;
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

    /// Returns a tool of its command, by its full name or by the part after the id.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        let long = format!("{}_{name}", self.id.replace('-', "_"));
        self.tools
            .iter()
            .find(|tool| tool.name == name)
            .or_else(|| self.tools.iter().find(|tool| tool.name == long))
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

    /// Returns the skill of a command, by the command's name or its whole path.
    #[must_use]
    pub fn by_command(&self, command: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| {
            let is_it =
                skill.command() == command || skill.listing().cli_path.as_deref() == Some(command);
            is_it && !skill.tools.is_empty()
        })
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
             --argjson; no def, reduce, foreach, assignments such as `|=`, del, path functions, \
             dates, @base64); no sed, awk, cut, tr, find. Each skill has a command: `<id>-cli \
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
        let flags = flags_of(tool);
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

// The flags of a skill's command: the description of a tool's arguments for a model.

/// Characters of a value or of a choice of values, in a flag's line.
const VALUES_CHARS_MAX: usize = 400;
/// Characters of the schema of one flag.
const SCHEMA_CHARS_MAX: usize = 4_000;
/// The bounds of a schema, with their descriptions.
const BOUNDS: [(&str, &str); 11] = [
    ("minimum", "at least"),
    ("exclusiveMinimum", "more than"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "less than"),
    ("multipleOf", "a multiple of"),
    ("minLength", "characters at least"),
    ("maxLength", "characters at most"),
    ("minItems", "items at least"),
    ("maxItems", "items at most"),
    ("pattern", "matches"),
    ("format", "written as"),
];

/// Returns the flags of a tool, a line each: name, type, need, values, bounds, default and
/// description.
#[must_use]
pub fn flags_of(tool: &ToolDefinition) -> String {
    let mut text = String::new();
    for (name, schema) in properties(tool) {
        let required = tool.arguments.get("required").and_then(Value::as_array);
        let is_needed = required.is_some_and(|all| all.iter().any(|it| it == name.as_str()));
        let need = if is_needed { ", required" } else { "" };
        let reported = schema.get("description").and_then(Value::as_str);
        let reported = reported
            .map(|reported| format!(": {reported}"))
            .unwrap_or_default();
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "- `--{name}` ({}{need}{}){reported}",
            kind_shown(schema),
            more_shown(schema)
        );
    }
    text
}

/// Returns the schemas of those arguments of a tool that are more than one word or number, with the
/// schemas that they refer to. Empty if there are no such arguments.
#[must_use]
pub fn schemas_of(tool: &ToolDefinition) -> String {
    let mut text = String::new();
    for (name, schema) in properties(tool) {
        let kinds = kinds_of(schema);
        let is_one = kinds
            .iter()
            .all(|kind| !matches!(*kind, "array" | "object"));
        if is_one && !kinds.is_empty() {
            continue;
        }
        let shown = visible(&schema.to_string(), SCHEMA_CHARS_MAX);
        let _ = writeln!(text, "--{name} takes JSON of this schema: {shown}");
    }
    for key in ["$defs", "definitions"] {
        if let Some(definitions) = tool.arguments.get(key).filter(|_| !text.is_empty()) {
            let shown = visible(&definitions.to_string(), SCHEMA_CHARS_MAX);
            let _ = writeln!(text, "{key}: {shown}");
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\n{text}")
    }
}

/// Returns the types that a schema allows, as far as it names them. Those of its alternatives and
/// values are included.
#[must_use]
pub fn kinds_of(schema: &Value) -> Vec<&str> {
    let mut kinds = Vec::new();
    match schema.get("type") {
        Some(Value::String(kind)) => kinds.push(kind.as_str()),
        Some(Value::Array(all)) => kinds.extend(all.iter().filter_map(Value::as_str)),
        _ => {}
    }
    if !kinds.is_empty() {
        return kinds;
    }
    for key in ["anyOf", "oneOf"] {
        let alternatives = schema.get(key).and_then(Value::as_array);
        for alternative in alternatives.into_iter().flatten() {
            let of_one = kinds_of(alternative);
            if of_one.is_empty() {
                // It may be anything.
                return Vec::new();
            }
            kinds.extend(of_one);
        }
    }
    let values = schema.get("enum").and_then(Value::as_array);
    let values = values.into_iter().flatten().chain(schema.get("const"));
    kinds.extend(values.map(|value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }));
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn properties(tool: &ToolDefinition) -> impl Iterator<Item = (&String, &Value)> {
    let properties = tool.arguments.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten()
}

/// Returns the types of an argument in words, with those of a list's items and an object's fields.
fn kind_shown(schema: &Value) -> String {
    let kinds = kinds_of(schema);
    if kinds.is_empty() {
        return "json".to_owned();
    }
    let shown = kinds.iter().map(|kind| match *kind {
        "array" => match schema.get("items").map(kinds_of) {
            Some(items) if !items.is_empty() => format!("array of {}", items.join(" or ")),
            _ => "array".to_owned(),
        },
        "object" => match schema.get("properties").and_then(Value::as_object) {
            Some(fields) if !fields.is_empty() => {
                let names: Vec<&str> = fields.keys().map(String::as_str).collect();
                format!("object with {}", names.join(", "))
            }
            _ => "object".to_owned(),
        },
        kind => kind.to_owned(),
    });
    shown.collect::<Vec<_>>().join(" or ")
}

/// Returns the values to choose from, the bounds and the default of an argument in words.
fn more_shown(schema: &Value) -> String {
    let mut shown = String::new();
    let items = schema.get("items");
    let values = |schema: &Value| {
        let all = schema.get("enum").and_then(Value::as_array)?;
        let all: Vec<String> = all.iter().map(Value::to_string).collect();
        Some(visible(&all.join(" "), VALUES_CHARS_MAX))
    };
    if let Some(values) = values(schema).or_else(|| items.and_then(values)) {
        let _ = write!(shown, ", one of {values}");
    }
    for (key, words) in BOUNDS {
        if let Some(bound) = schema.get(key) {
            let bound = visible(&bound.to_string(), VALUES_CHARS_MAX);
            let _ = write!(shown, ", {words} {bound}");
        }
    }
    if let Some(default) = schema.get("default") {
        let default = visible(&default.to_string(), VALUES_CHARS_MAX);
        let _ = write!(shown, ", {default} without it");
    }
    shown
}

#[cfg(test)]
mod tests;
