//! The bindings of the four worlds, made once for all programs.

/// The world of agents.
pub mod agent {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "agent-plugin",
        pub_export_macro: true,
        default_bindings_module: "plugin::agent",
        generate_all,
    });

    pub use self::agent_host::plugin::turn::{Memo, View};
    pub use self::agent_host::plugin::types::Part;
    pub use self::exports::agent_host::plugin::agent::*;

    /// A description that says nothing but the name.
    pub fn named(id: &str) -> Description {
        Description {
            id: id.to_owned(),
            display_name: id.to_owned(),
            summary: String::new(),
            session_types: Vec::new(),
            wants: Vec::new(),
            memo_formats: Vec::new(),
        }
    }

    /// The end of the turn with some text.
    pub fn reply(text: impl Into<String>) -> StepResult {
        StepResult {
            decision: Decision::Reply(vec![Part::Text(text.into())]),
            effects: Vec::new(),
            memo: None,
        }
    }
}

/// The world of tools.
pub mod tool {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "tool-plugin",
        pub_export_macro: true,
        default_bindings_module: "plugin::tool",
        generate_all,
    });

    pub use self::agent_host::plugin::progress::note;
    pub use self::agent_host::plugin::types::{EffectClass, Part, ToolDefinition};
    pub use self::exports::agent_host::plugin::tools::*;

    /// A tool that takes any object.
    pub fn named(name: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            arguments: r#"{"type":"object"}"#.to_owned(),
            results: None,
            capabilities: Vec::new(),
            effect: EffectClass::ReadOnly,
            destructive: false,
            time_limit_ms: None,
        }
    }

    /// The result of a call that is done.
    pub fn done(text: impl Into<String>) -> Result<Progress, ToolError> {
        Ok(Progress::Done(vec![Part::Text(text.into())]))
    }
}

/// The world of triggers.
pub mod trigger {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "trigger-plugin",
        pub_export_macro: true,
        default_bindings_module: "plugin::trigger",
        generate_all,
    });

    pub use self::agent_host::plugin::types::Part;
    pub use self::exports::agent_host::plugin::trigger::*;

    /// A description that says nothing but the name, and that all trigger events are heard.
    pub fn named(id: &str) -> Description {
        Description {
            id: id.to_owned(),
            summary: String::new(),
            configuration: r#"{"type":"object"}"#.to_owned(),
            trigger_events: ["clock", "heartbeat", "webhook", "files", "events"]
                .map(str::to_owned)
                .to_vec(),
            state_formats: vec![1],
        }
    }

    /// A message for the configured target.
    pub fn message(text: impl Into<String>) -> Message {
        Message {
            target: None,
            content: vec![Part::Text(text.into())],
            idempotency_key: String::new(),
        }
    }

    /// A trigger run that keeps nothing.
    pub fn trigger_run(messages: Vec<Message>) -> TriggerRun {
        TriggerRun {
            messages,
            state: None,
            done: false,
        }
    }
}

/// The world of connectors.
pub mod connector {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "connector-plugin",
        pub_export_macro: true,
        default_bindings_module: "plugin::connector",
        generate_all,
    });

    pub use self::exports::agent_host::plugin::connector::*;

    /// A description that says nothing but the name, and that both ways in are open.
    pub fn named(id: &str) -> Description {
        Description {
            id: id.to_owned(),
            summary: String::new(),
            configuration: r#"{"type":"object"}"#.to_owned(),
            intake: vec![Intake::Webhook, Intake::Polling],
            text_limit: 4_096,
            buttons_max: 8,
            edits: true,
            typing: true,
            idempotent: false,
        }
    }

    /// A message of one person in a chat of two.
    pub fn incoming(id: impl Into<String>, text: impl Into<String>) -> Incoming {
        Incoming {
            id: id.into(),
            sender: "anna".to_owned(),
            sender_name: None,
            group: None,
            chat: "7".to_owned(),
            said: Said::Text(text.into()),
            quotations: Vec::new(),
            attachments: Vec::new(),
            sent_ms: 1_700_000_000_000,
            acknowledge: None,
            overheard: false,
            replies_to: None,
        }
    }

    /// A batch of messages and nothing else.
    pub fn batch(messages: Vec<Incoming>) -> Batch {
        Batch {
            messages,
            moved: Vec::new(),
            undelivered: Vec::new(),
            cursor: None,
            next_ms: 1_000,
            answer: None,
        }
    }
}
