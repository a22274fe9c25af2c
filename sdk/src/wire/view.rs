//! The view of a turn, read from the host.

use crate::bindings::agent_plugin::agent_host::plugin::turn as wire;
use crate::content::{Message, MessageId};
use crate::tool::ToolDefinition;
use crate::turn::{LimitsLeft, Memo, Peer, View};
use crate::wire::content::definition_from_host;
use crate::wire::json_of_host;
use serde_json::Value;

impl View for wire::View {
    fn agent_id(&self) -> String {
        Self::agent_id(self)
    }

    fn path(&self) -> String {
        Self::path(self)
    }

    fn user(&self) -> String {
        Self::user(self)
    }

    fn session_type(&self) -> String {
        Self::session_type(self)
    }

    fn now_ms(&self) -> u64 {
        Self::now_ms(self)
    }

    fn left(&self) -> LimitsLeft {
        Self::left(self)
    }

    fn settings(&self) -> Value {
        json_of_host(&Self::settings(self))
    }

    fn preferences(&self) -> Value {
        json_of_host(&Self::preferences(self))
    }

    fn shared_preferences(&self) -> Value {
        json_of_host(&Self::shared_preferences(self))
    }

    fn session_config(&self) -> Value {
        json_of_host(&Self::session_config(self))
    }

    fn history(&self) -> Value {
        json_of_host(&Self::history(self))
    }

    fn session_state(&self) -> Value {
        json_of_host(&Self::session_state(self))
    }

    fn head(&self) -> Option<MessageId> {
        Self::head(self)
    }

    fn message(&self, id: MessageId) -> Option<Message> {
        Self::message(self, id)
    }

    fn read_blob(&self, handle: &str, offset: u64, length: u32) -> Option<Vec<u8>> {
        Self::read_blob(self, handle, offset, length)
    }

    fn tool_names(&self) -> Vec<String> {
        Self::tool_names(self)
    }

    fn tool(&self, name: &str) -> Option<ToolDefinition> {
        Self::tool(self, name).map(definition_from_host)
    }

    fn peers(&self) -> Vec<Peer> {
        Self::peers(self)
    }

    fn memo(&self) -> Option<Memo> {
        Self::memo(self)
    }
}
