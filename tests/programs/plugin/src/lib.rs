//! The bindings of both worlds, made once for all programs.

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
