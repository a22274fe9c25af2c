//! Definitions: the agents that an operator configures, as templates of agents that
//! run.

mod extend;
mod own;
#[cfg(test)]
mod tests;

pub use extend::{Extended, UnfitKey, Wider};
pub use own::{OwnDefinition, OwnLists, check_appearance};

use crate::access::confirm::Confirm;
use crate::access::grant::PatternList;
use crate::access::user::UserId;
use crate::agents::external::{self, ExternalSettings};
use crate::agents::prompt_section::SectionName;
use crate::thread::sampling::GenerationSettings;
use crate::values::error_code::ErrorCode;
use crate::values::limits::TurnLimits;
use crate::values::refusal::Refusal;
use crate::values::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use utoipa::ToSchema;

/// A definition's id, such as `reading-list`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[derive(JsonSchema, ToSchema)]
pub struct DefinitionId(pub String);

impl fmt::Display for DefinitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The driver of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgentType {
    /// A component on this host drives it.
    #[default]
    Chat,
    /// An external program drives it, as `external` says.
    External,
}

/// The form in which an agent sees tools.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ToolExposure {
    /// As tools.
    #[default]
    Tools,
    /// As skills: components on the skill lists. Others are not offered.
    Skills,
    /// Components on the skill lists as skills, the others as tools.
    Mixed,
}

/// The form in which models see the operations that an agent may delegate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Operations {
    /// As one tool, `delegate`.
    #[default]
    One,
    /// As a tool each.
    ByOperation,
    /// As the model's `operations` says; one tool if the model does not say.
    Auto,
}

/// Chat settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ChatSettings {
    /// The provider whose model it uses: its name in `providers`, or its kind, such as `openai`.
    /// Needed only without `model`. It suffices when the provider has the default model or a single
    /// model.
    pub provider: Option<String>,
}

/// The longest structured session in seconds: a year.
pub const SESSION_TIME_LIMIT_S_MAX: u32 = 31_536_000;

/// The default number of messages of one agent that are processed at the same time.
pub const CONCURRENT_MESSAGES_DEFAULT: u32 = 5;
/// The default number of seconds without progress after which a turn fails.
pub const MESSAGE_TIMEOUT_S_DEFAULT: u32 = 120;

/// Milliseconds by which the default timeout of a turn exceeds the longest silence of its models.
/// The model's own time limit thus ends the attempt first, and the attempt is repeated.
const SILENCE_ROOM_MS: u64 = 10_000;

/// Limits of a structured session. A missing number means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SessionPolicy {
    /// Time limit of the session in seconds, from 1 to 31,536,000 (a year). After it the session is
    /// terminated as expired.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub time_limit_s: Option<u32>,
    /// Time limit of one client action in seconds, from 1 to 31,536,000. It applies to actions of
    /// the agent and of its tools. After it the agent learns that the action timed out.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub item_time_limit_s: Option<u32>,
    /// The most items on its record, from 1 to 10,000. After that the agent sends no further client
    /// action.
    #[schemars(range(min = 1, max = 10_000))]
    pub items_max: Option<u32>,
}

impl SessionPolicy {
    /// Returns the time at which a question asked now expires. None if it expires only with its
    /// session.
    #[must_use]
    pub fn item_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        self.item_time_limit_s
            .map(|seconds| now.plus_ms(u64::from(seconds) * 1_000))
    }

    /// Returns the default limits for a session type.
    #[must_use]
    pub fn of_type(session_type: &str) -> Self {
        match session_type {
            "learning" => Self {
                time_limit_s: Some(3_600),
                ..Self::default()
            },
            "validation" => Self {
                time_limit_s: Some(1_800),
                item_time_limit_s: Some(120),
                items_max: Some(20),
            },
            _ => Self::default(),
        }
    }

    /// Returns the time limit in milliseconds, if the session was requested with a limit of `asked`
    /// seconds.
    #[must_use]
    pub fn time_limit_ms(&self, asked: Option<u32>) -> Option<u64> {
        let limit = match (self.time_limit_s, asked) {
            (Some(limit), Some(asked)) => Some(limit.min(asked)),
            (limit, asked) => limit.or(asked),
        };
        limit.map(|seconds| u64::from(seconds) * 1_000)
    }
}

/// One entry of the config's `agents` array, with the additions of this host.
///
/// In allow lists `null` or a missing list means everything and `[]` means nothing. Deny lists are
/// applied after them and always win.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Definition {
    /// The agent's id: 1 to 64 of `a-z`, `0-9`, `-` and `_`. It is not a UUID, and not a keyword of
    /// path segments.
    pub agent_id: DefinitionId,
    /// Its name for people.
    pub display_name: String,
    /// Purpose of the agent.
    #[serde(default)]
    pub description: String,
    /// The icon for people: one symbol, such as an emoji, or the name of an image that clients
    /// have. 1 to 64 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// Its colour for people: `#` and six hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// The definition that this one extends: another of `agents`, or one of the built-in `coach`,
    /// `planner` and `wellness`. Missing keys are inherited, and so is each missing key of
    /// `settings`. Lists can only become narrower: each entry of an allow list has to be within an
    /// entry of the base. Deny lists, `confirm` and `fixedSettings` add up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<DefinitionId>,
    /// True if its own lists replace those of the definition that it extends, even where they allow
    /// more.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub widens: bool,
    /// Users who may make their own agents from this definition, such as `["ada"]`, or `["*"]` for
    /// all. Without it, nobody may. A user's definition is narrower than this one, and visible to
    /// that user only. This key is not inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_for: Option<PatternList>,
    /// The user who made the definition. The host sets it; the configuration has no such key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub made_by: Option<UserId>,
    /// The driver of the agent.
    #[serde(default, rename = "type")]
    pub agent_type: AgentType,
    /// Chat settings.
    #[serde(default)]
    pub chat: ChatSettings,
    /// The system prompt. If it is missing or empty: "You are {displayName}. {description}".
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// Tools that it may use.
    #[serde(default)]
    pub tool_allowlist: Option<PatternList>,
    /// Tools that it may not use.
    #[serde(default)]
    pub tool_denylist: Option<PatternList>,
    /// The form in which components' tools are offered to the agent. Skills are described in files
    /// and called by commands, through the tool `bash`; the model sees no schemas of them.
    #[serde(default)]
    pub tool_exposure: ToolExposure,
    /// The form in which models see the operations of `delegate`. It does not change which calls
    /// are allowed: a call by an operation's name is a call of `delegate` in each form.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub operations: Operations,
    /// Skills that it may use, by names of components and of `skills`.
    #[serde(default)]
    pub skill_allowlist: Option<PatternList>,
    /// Skills that it may not use.
    #[serde(default)]
    pub skill_denylist: Option<PatternList>,
    /// Capabilities that its tools may use on its behalf.
    #[serde(default)]
    pub capability_allowlist: Option<PatternList>,
    /// Capabilities that they may not use.
    #[serde(default)]
    pub capability_denylist: Option<PatternList>,
    /// Agents that it may dispatch to.
    #[serde(default)]
    pub agent_allowlist: Option<PatternList>,
    /// Agents that it may not dispatch to.
    #[serde(default)]
    pub agent_denylist: Option<PatternList>,
    /// Aliases of further models that a message, a session, a trigger or its component may name.
    /// The definition's `model` and its fallbacks are always allowed. Without this list, only the
    /// default model is allowed in addition. A model that is a program (`claude-cli` and the like)
    /// is allowed only by its whole alias, not by a pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_allowlist: Option<PatternList>,
    /// The model names in the list of the definition that this one extends. The host sets it; it is
    /// no key of the configuration. No other name in its own list counts as a program's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub model_names: Option<PatternList>,
    /// Tools that the agent calls only after a user has agreed to that very call. The value is
    /// `"destructive"`, for all tools that declare themselves destructive, or a list of patterns
    /// such as `["delete_*"]`. It also applies to agents that work for this one. It does not apply
    /// to the host's own tools, by which agents message each other.
    #[serde(default, skip_serializing_if = "Confirm::is_nothing")]
    pub confirm: Confirm,
    /// True if users and other agents see it. A hidden definition appears only in lists of all
    /// definitions. Users who name it can still see it and message it; other agents cannot.
    #[serde(default = "yes")]
    pub ui_visible: bool,
    /// Kept from the design's format, which does not use it; has no effect here either.
    #[serde(default)]
    pub api_exposed: bool,

    /// The agent component, by its name in `components`; default: the built-in `assistant`.
    #[serde(default = "assistant")]
    pub component: String,
    /// The model or alias that it uses; defaults to the host's default.
    #[serde(default)]
    pub model: Option<String>,
    /// Given to the component as `settings`, overridden by those of the agent.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// Names of settings that are fixed to the values here: an agent's own values are ignored and
    /// refused. An example is `exam` of an evaluator, whose user shall not choose the questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed_settings: Vec<String>,
    /// Settings of its models' replies, such as `temperature` and `stop`.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub generation: GenerationSettings,
    /// False if its models return whole replies instead of streams, and its calls run one at a
    /// time. Each call then begins when the call before it has its outcome.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub enable_streaming: bool,
    /// Messages of one agent that are processed at the same time, over all its sessions, from 1 to
    /// 100,000; default 5. Further sessions wait. A session whose turn waits for people, timers or
    /// other agents does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_concurrent_messages: Option<u32>,
    /// Seconds without progress after which a turn fails (`message-timed-out`), from 1 to 604,800.
    /// The default is 120, or ten seconds more than the longer of `timeouts.firstTokenMs` and
    /// `timeouts.idleMs`, if that is more. So a slow model has its own time. The clock runs while a
    /// model or a tool works. It restarts with every attempt at a model's reply, every chunk of a
    /// reply and every outcome. Waiting for people, timers and other agents does not count. Neither
    /// does a tool call within its time limit, or a whole reply of a model within
    /// `timeouts.wholeMs`. `limits.activeMsMax` bounds the sum of all of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub message_timeout: Option<u32>,
    /// The most messages in the thread of one session, from 1 to 1,000,000; no limit without.
    /// Messages of tools and waiting messages count. Further messages are refused (`SESSION_FULL`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_session_messages: Option<u32>,
    /// Seconds of inactivity after which a chat refuses messages that name it (`SESSION_EXPIRED`),
    /// from 1 to 31,536,000 (a year); no limit without. Structured sessions have
    /// `sessions.<type>.timeLimitS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 31_536_000))]
    pub session_timeout: Option<u32>,
    /// Tokens of prompt and reply together, from 1,000 on, if less than the model's own
    /// `contextWindow`. Threads are compacted to fit, and a larger prompt is not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1_000, max = 1_000_000_000_u64))]
    pub context_window_size: Option<u64>,
    /// Limits of each turn.
    #[serde(default)]
    pub limits: TurnLimits,
    /// The type of its agents, such as `tutor`, by which agents are filtered and found. Defaults to
    /// the id that the component declares.
    #[serde(default, rename = "agentType")]
    pub type_tag: Option<String>,
    /// Limits of its structured sessions, by type. Defaults for a type that is not named here:
    /// `learning` lasts an hour at most; `validation` half an hour, 120 seconds an item, 20 items;
    /// all others have no limits.
    #[serde(default)]
    pub sessions: BTreeMap<String, SessionPolicy>,
    /// The agent that reads its chats and keeps notes of them. Without it, no notes are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySettings>,
    /// Notes that are added to the prompt beside the user's words. Without it, none are added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_hints: Option<HintSettings>,
    /// Sections that are left out of its prompts. A prompt begins with `systemPrompt`, followed by
    /// sections about `tools`, `skills`, `artifactItems`, `messageContext`, `artifactsPanels` and
    /// `availableAgents`. Sections inform a model and grant nothing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub prompt_sections_off: BTreeSet<SectionName>,
    /// The program behind an agent of the type `external`, and how the host reaches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalSettings>,
}

/// The settings for reading a definition's chats into notes, and for agents that search them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MemorySettings {
    /// The definition of the agent at `<agent>/memory` that reads. It needs the tools
    /// `memory_search` and `memory_save` in its `toolAllowlist`.
    pub agent: DefinitionId,
    /// Seconds of inactivity after which a chat is read, from 1 to 31,536,000 (a year).
    #[schemars(range(min = 1, max = 31_536_000))]
    pub idle_s: u32,
    /// True if a chat is also read before its thread is compacted. The compaction does not wait for
    /// it.
    pub before_compaction: bool,
    /// The definition of the agents at `<agent>/search/<n>`. One is made for each `deep` search of
    /// `memory_search`. Without it, `deep` searches do not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<DefinitionId>,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            agent: DefinitionId("memory-agent".to_owned()),
            idle_s: 600,
            before_compaction: true,
            search: None,
        }
    }
}

/// The notes that are added to a prompt beside the user's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HintSettings {
    /// Number of notes, from 1 to 20.
    #[schemars(range(min = 1, max = 20))]
    pub max: u32,
    /// Bytes of their texts together, from 64 to 65,536. A note that does not fit is left out.
    #[schemars(range(min = 64, max = 65_536))]
    pub bytes_max: u32,
}

impl Default for HintSettings {
    fn default() -> Self {
        Self {
            max: 3,
            bytes_max: 2_048,
        }
    }
}

fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_yes(value: &bool) -> bool {
    *value
}

fn assistant() -> String {
    "assistant".to_owned()
}

impl Definition {
    /// Returns the component that drives the agent. The default for an external agent is built in.
    #[must_use]
    pub fn driver(&self) -> &str {
        match self.agent_type {
            AgentType::External if self.component == assistant() => external::COMPONENT,
            AgentType::External | AgentType::Chat => &self.component,
        }
    }

    /// Returns the program behind it, if it is an external agent.
    #[must_use]
    pub fn program(&self) -> Option<&ExternalSettings> {
        match self.agent_type {
            AgentType::External => self.external.as_ref(),
            AgentType::Chat => None,
        }
    }

    /// The limits of its structured sessions of a type.
    #[must_use]
    pub fn session_policy(&self, session_type: &str) -> SessionPolicy {
        self.sessions
            .get(session_type)
            .copied()
            .unwrap_or_else(|| SessionPolicy::of_type(session_type))
    }

    /// Returns the number of messages of one agent that are processed at the same time.
    #[must_use]
    pub fn messages_at_once(&self) -> usize {
        let messages = self
            .max_concurrent_messages
            .unwrap_or(CONCURRENT_MESSAGES_DEFAULT);
        usize::try_from(messages).unwrap_or(usize::MAX)
    }

    /// Returns the milliseconds without progress after which a turn fails.
    #[must_use]
    pub fn message_timeout_ms(&self) -> u64 {
        u64::from(self.message_timeout.unwrap_or(MESSAGE_TIMEOUT_S_DEFAULT)) * 1_000
    }

    /// Returns the same for agents whose models may be silent for this long. The default timeout is
    /// longer than this silence.
    #[must_use]
    pub fn message_timeout_ms_beside(&self, silence_ms_max: u64) -> u64 {
        let of_models = match self.message_timeout {
            Some(_) => 0,
            None => silence_ms_max.saturating_add(SILENCE_ROOM_MS),
        };
        self.message_timeout_ms().max(of_models)
    }

    /// Returns the window of a model for its agents, in tokens.
    #[must_use]
    pub fn window(&self, of_model: u64) -> u64 {
        self.context_window_size
            .map_or(of_model, |size| size.min(of_model))
    }

    /// Checks whether an agent may have these own settings.
    ///
    /// # Errors
    /// A key of `settings` is fixed here. `null`, which removes a key, is not refused.
    pub fn check_own_settings(&self, settings: &Map<String, Value>) -> Result<(), Refusal> {
        let set = settings
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, _)| name);
        match set
            .into_iter()
            .find(|name| self.fixed_settings.contains(name))
        {
            None => Ok(()),
            Some(name) => {
                let message = format!(
                    "`{name}` is fixed by the configuration (`fixedSettings` of `{}`)",
                    self.agent_id
                );
                Err(Refusal::new(ErrorCode::SettingFixed, message).at(format!(
                    "/settings/{}",
                    name.replace('~', "~0").replace('/', "~1")
                )))
            }
        }
    }

    /// Returns whether it describes its agents by a name only, with neither a prompt nor a
    /// description.
    #[must_use]
    pub fn says_nothing(&self) -> bool {
        let prompt = self.system_prompt.as_deref().unwrap_or_default();
        prompt.trim().is_empty() && self.description.trim().is_empty()
    }

    /// The prompt that it starts from.
    #[must_use]
    pub fn prompt(&self) -> String {
        match self.said_prompt() {
            Some(prompt) => prompt.to_owned(),
            None if self.description.is_empty() => format!("You are {}.", self.display_name),
            None => format!("You are {}. {}", self.display_name, self.description),
        }
    }

    /// Returns the prompt of an agent with its own purpose, in place of the definition's prompt.
    /// None if the definition has a prompt, which a purpose does not replace.
    #[must_use]
    pub fn prompt_for(&self, purpose: &str) -> Option<String> {
        let is_reported = self.said_prompt().is_none() && !purpose.trim().is_empty();
        is_reported.then(|| format!("You are {}. {purpose}", self.display_name))
    }

    fn said_prompt(&self) -> Option<&str> {
        let own = self.system_prompt.as_deref();
        own.filter(|prompt| !prompt.trim().is_empty())
    }
}
