//! The setup of a world.

use broker::{Clock, Limits};
use domain::egress::EgressGrant;
use domain::grant::{BucketGrant, Grant, GuestLimits};
use domain::skill::SkillFolder;
use serde_json::{Value, json};

/// The setup of a world.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Components by name; `name=file` for one whose file is called otherwise.
    pub components: Vec<&'static str>,
    /// Definitions, as the config file writes them.
    pub definitions: Vec<Value>,
    /// The scripted model's rules, TOML.
    pub script: String,
    /// The price of a million of the scripted model's tokens, of prompt or reply; none for a model
    /// without a price.
    pub price: Option<f64>,
    /// Tokens of a reply of the scripted model, at most; none for a model without a limit.
    pub max_tokens: Option<u32>,
    /// Calls of the scripted model at the same time.
    pub concurrent_max: Option<u32>,
    /// Limits of the broker.
    pub limits: Limits,
    /// The operator's settings of agents by their paths.
    pub paths: broker::PathSettings,
    /// Requests that components are granted.
    pub network: Vec<EgressGrant>,
    /// Secrets of the host, by name.
    pub secrets: Vec<(&'static str, &'static str)>,
    /// Buckets that components are granted.
    pub key_value: Vec<BucketGrant>,
    /// The limits of one call of a tool.
    pub guest_limits: GuestLimits,
    /// Changes the grant of a component of this name.
    pub change_grant: fn(&str, &mut Grant),
    /// Components that are no built programs, by name.
    pub made: Vec<(&'static str, Vec<u8>)>,
    /// Components that are granted this and nothing else, by name.
    pub grants: Vec<(&'static str, Grant)>,
    /// True if the code of all components is pinned.
    pub is_pinned: bool,
    /// Personas, as the config file writes them.
    pub personas: Vec<Value>,
    /// The operator's folders of skills.
    pub skills: Vec<SkillFolder>,
    /// Patterns of the host's tools for reaching agents that are switched off.
    pub agent_tools_disabled: Vec<&'static str>,
    /// Guests that are at work at once.
    pub instances_max: u32,
    /// Clock of the host.
    pub clock: Clock,
    /// The options with which its store is opened.
    pub store: store::Options,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            components: vec!["puppet", "effects", "assistant", "worker", "tutor", "files"],
            definitions: vec![
                json!({ "agentId": "puppet", "displayName": "Puppet", "component": "puppet" }),
                json!({ "agentId": "other", "displayName": "Other", "component": "puppet" }),
                json!({
                    "agentId": "assistant", "displayName": "Assistant",
                    "toolAllowlist": ["delegate"],
                }),
                json!({ "agentId": "worker", "displayName": "Worker", "component": "worker",
                        "toolAllowlist": ["*_file", "*_files"], "agentAllowlist": [] }),
                json!({
                    "agentId": "tutor", "displayName": "Tutor", "component": "tutor",
                    "toolAllowlist": [],
                }),
            ],
            script: SCRIPT.to_owned(),
            price: None,
            max_tokens: None,
            concurrent_max: None,
            limits: Limits::default(),
            paths: broker::PathSettings::default(),
            network: Vec::new(),
            secrets: Vec::new(),
            key_value: Vec::new(),
            guest_limits: GuestLimits::default(),
            change_grant: |_, _| {},
            made: Vec::new(),
            grants: Vec::new(),
            is_pinned: false,
            personas: Vec::new(),
            skills: Vec::new(),
            agent_tools_disabled: Vec::new(),
            instances_max: 32,
            clock: Clock::system(),
            store: store::Options::default(),
        }
    }
}

/// A model that delegates reading and writing, calls tools by name, and otherwise repeats its
/// input.
pub const SCRIPT: &str = r#"
[[rule]]
when = { last = "tool" }
reply = { text = "It says: {result}" }

[[rule]]
when = { user = "^read (\\S+)$", tools = ["delegate"] }
[rule.reply]
text = "Let me look."
[[rule.reply.calls]]
tool = "delegate"
arguments = { target = "worker", operation = "read_file", parameters = { path = "$1" } }

[[rule]]
when = { user = "call:(\\w+),(\\w+)" }
reply = { calls = [{ tool = "$1", arguments = {} }, { tool = "$2", arguments = {} }] }

[[rule]]
when = { user = "call:(\\w+)" }
reply = { calls = [{ tool = "$1", arguments = {} }] }

[[rule]]
when = { user = "structured" }
reply = { text = "not json" }

[[rule]]
reply = { text = "hello from the model" }
"#;
