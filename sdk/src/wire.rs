//! The one place where the SDK's types and the bindings meet: what the export macros call, and what
//! reads from the host.
//!
//! Nothing here is for authors. JSON travels as text; the host guarantees that what it hands out is
//! JSON, so text that is not is a defect of the host and traps.

mod agent;
mod connector;
mod content;
pub(crate) mod http;
pub(crate) mod keyvalue;
mod tools;
mod trigger;
mod view;

pub use self::agent::{WireDescription, WireNewsList, WireStep, describe_agent, step_agent};
pub use self::connector::{
    WireBatch, WireConnectorDescription, WireFetched, WireIncomingCall, WireOutgoing, WireSent,
    describe_connector, fetch, poll, receive, send,
};
pub use self::tools::{WireContext, WireDefinitions, WireProgress, call_tool, describe_tools};
pub use self::trigger::{
    WireFireContext, WireTriggerDescription, WireTriggerEvent, WireTriggerRun, WireTriggerState,
    describe_trigger, fire_trigger,
};
pub use crate::bindings::agent_plugin::agent_host::plugin::turn::View as WireView;
pub use crate::bindings::agent_plugin::exports::agent_host::plugin::agent::Guest as AgentExports;
pub use crate::bindings::connector_plugin::exports::agent_host::plugin::connector::Guest as ConnectorExports;
pub use crate::bindings::tool_plugin::exports::agent_host::plugin::tools::Guest as ToolExports;
pub use crate::bindings::trigger_plugin::exports::agent_host::plugin::trigger::Guest as TriggerExports;

use crate::log::Level;
use serde_json::Value;

/// Reads JSON that the host handed out.
fn json_of_host(text: &str) -> Value {
    serde_json::from_str(text).expect("the host hands out JSON")
}

/// Writes a message to the host's log; in a native test, to the harness.
pub(crate) fn log(level: Level, context: &str, message: &str) {
    #[cfg(target_family = "wasm")]
    {
        use crate::bindings::agent_plugin::wasi::logging::logging::{self, Level as WireLevel};
        let level = match level {
            Level::Trace => WireLevel::Trace,
            Level::Debug => WireLevel::Debug,
            Level::Info => WireLevel::Info,
            Level::Warn => WireLevel::Warn,
            Level::Error => WireLevel::Error,
            Level::Critical => WireLevel::Critical,
        };
        logging::log(level, context, message);
    }
    #[cfg(not(target_family = "wasm"))]
    {
        let _ = context;
        crate::harness::keep_logged(level, message);
    }
}

/// Shows how a tool's call is getting on; in a native test, to the harness.
pub(crate) fn note(message: &str) {
    #[cfg(target_family = "wasm")]
    crate::bindings::tool_plugin::agent_host::plugin::progress::note(message);
    #[cfg(not(target_family = "wasm"))]
    crate::harness::keep_note(message);
}
