#![doc = include_str!("../README.md")]

mod agent;
#[doc(hidden)]
pub mod bindings;
mod client;
mod connector;
mod content;
#[cfg(not(target_family = "wasm"))]
pub mod harness;
pub mod http;
pub mod keyvalue;
pub mod log;
pub mod manifest;
mod news;
mod operation;
mod step;
mod tool;
pub mod tool_loop;
mod trigger;
mod turn;
#[doc(hidden)]
pub mod wire;

pub use crate::agent::{Agent, Calls, Description};
pub use crate::client::{Answer, ClientAction, UploadedFile};
pub use crate::connector::{
    Attachment, Batch, Body, Choice, Connector, ConnectorDescription, ConnectorError, Incoming,
    IncomingCall, Intake, Moved, OutgoingMessage, Quotation, QuotationKind, Said, Undelivered,
    configured,
};
pub use crate::content::{
    Blob, CutOff, IntoParts, Message, MessageId, ModelCall, Part, Role, fenced, shortened, text_of,
};
pub use crate::news::{Failure, News, Outcome, Settlement};
pub use crate::operation::{
    Audience, Call, Context, Dispatch, ModelRequest, Operation, Toolset, Work,
};
pub use crate::step::{Decision, Effect, Item, Step, Until, Wait};
pub use crate::tool::{
    ArtifactItem, ArtifactItems, CallContext, EffectClass, IntoProgress, Json, Progress, Tool,
    ToolDefinition, ToolError, Tools, call_by_name, folder, schema_of,
};
pub use crate::trigger::{
    ChangeKind, Due, FileChange, FileChanges, FireContext, Heartbeat, HostEvent, Trigger,
    TriggerDescription, TriggerError, TriggerEvent, TriggerEventKind, TriggerMessage, TriggerRun,
    TriggerState, WebhookCall,
};
pub use crate::turn::{LimitsLeft, Memo, PastSession, Peer, Turn, Unreadable, View};
