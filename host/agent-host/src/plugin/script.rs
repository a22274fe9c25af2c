//! The scripts of a test of an agent: what a model, a tool, a peer and a user answer.

use super::samples;
use super::view::{PEER, TOOL};
use broker::Catalogue;
use domain::message::Part;
use domain::model::{Reply, Stop};
use domain::operation::{Operation, Performer};
use domain::run::Run;
use domain::run::decide::{Resolved, find_call};
use domain::run::intake::Intake;
use domain::run::settle::Ended;
use domain::step::{Call, Failure, ModelRequest, OperationOutcome, Toolset, Work};
use domain::time::Timestamp;
use domain::tool::{EffectClass, ToolDefinition};
use serde_json::{Value, json};

/// The course of a scripted conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    /// The model answers at once.
    Plain,
    /// The model first calls a tool.
    ToolCall,
    /// It is not known what became of the first operation.
    Unknown,
    /// The first operation fails.
    Failed,
}

impl Script {
    pub(crate) const ALL: [Self; 4] = [Self::Plain, Self::ToolCall, Self::Unknown, Self::Failed];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Plain => "a conversation in which the model answers",
            Self::ToolCall => "a conversation in which the model calls a tool",
            Self::Unknown => "a conversation with an operation of unknown outcome",
            Self::Failed => "a conversation with an operation that fails",
        }
    }

    /// Returns the end of an operation, of which `number` ended before it.
    pub(crate) fn end(self, operation: &Operation, number: usize) -> Ended {
        match (self, number) {
            (Self::Unknown, 0) => return Ended::Unknown(Failure::interrupted()),
            (Self::Failed, 0) => {
                return Ended::Failed(Failure::lasting("sample", "it failed, as scripted"));
            }
            _ => {}
        }
        match &operation.performer {
            Performer::Model { request, .. } => Ended::Replied(self.reply(request, number)),
            Performer::Client { action } => {
                let schema = action.response_schema.as_ref();
                Ended::Value(schema.map_or(json!("yes"), samples::fitting_any))
            }
            Performer::Timer { .. } => Ended::Elapsed,
            Performer::Recall { .. } => Ended::Recalled {
                hits: json!({ "hits": [] }),
                untrusted: false,
            },
            Performer::Refused { outcome, .. } => refused(outcome),
            _ => Ended::Gave {
                parts: vec![Part::text("done, as scripted")],
                untrusted: false,
            },
        }
    }

    fn reply(self, request: &ModelRequest, number: usize) -> Reply {
        let may_call = match &request.tools {
            Toolset::All => Some(TOOL),
            Toolset::Named(names) => names.first().map(String::as_str),
            Toolset::None => None,
        };
        let part = match (self, may_call, &request.reply_schema) {
            (Self::ToolCall, Some(tool), None) if number == 0 => Part::Call {
                call_id: "sample".to_owned(),
                name: tool.to_owned(),
                arguments: "{}".to_owned(),
            },
            (_, _, Some(schema)) => Part::text(samples::fitting_any(schema).to_string()),
            _ => Part::text("As you say."),
        };
        Reply {
            parts: vec![part],
            stop: Stop::End,
            provider: "scripted".to_owned(),
            model: "scripted".to_owned(),
            own_calls: Vec::new(),
            untrusted: false,
        }
    }
}

fn refused(outcome: &OperationOutcome) -> Ended {
    match outcome {
        OperationOutcome::Denied => Ended::Denied,
        OperationOutcome::Failed { failure } => Ended::Failed(failure.clone()),
        _ => Ended::Cancelled,
    }
}

/// A step whose requests get their performers.
pub(crate) struct Requests<'a> {
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) run: &'a Run,
    pub(crate) intake: &'a Intake,
    pub(crate) tools: &'a [ToolDefinition],
    pub(crate) now: Timestamp,
}

impl Requests<'_> {
    /// Returns the performer of a request, or the reason why a host makes nothing of it.
    ///
    /// # Errors
    /// The fault of the request.
    pub(crate) async fn resolve(&self, work: &Work) -> Result<Resolved, String> {
        Ok(match work {
            Work::Model(request) => {
                self.check_tools(request)?;
                let request = request.clone();
                let performer = Performer::Model {
                    request,
                    through: 0,
                    reserved_tokens: 0,
                    reserved_micros: None,
                };
                by(performer, EffectClass::Idempotent)
            }
            Work::Tool { call } => self.tool(call),
            Work::Client(action) => {
                let action = self.catalogue.question(action).await?;
                by(Performer::Client { action }, EffectClass::ReadOnly)
            }
            Work::Agent(dispatch) if dispatch.target == PEER => by(
                // A stand-in: what hands work over in earnest makes agents and sessions.
                Performer::Tool {
                    component: self.run.component,
                    tool: PEER.to_owned(),
                    arguments: "{}".to_owned(),
                    capabilities: Vec::new(),
                },
                EffectClass::NonIdempotent,
            ),
            Work::Agent(_) => by(
                Performer::Refused {
                    outcome: OperationOutcome::Denied,
                    untrusted: false,
                    of_delegate: false,
                    address: None,
                },
                EffectClass::ReadOnly,
            ),
            Work::Recall { query, limit } => by(
                Performer::Recall {
                    query: query.clone(),
                    limit: *limit,
                    of: None,
                    notes: false,
                    own: false,
                },
                EffectClass::ReadOnly,
            ),
            Work::Timer { ms } => by(
                Performer::Timer {
                    due: self.now.plus_ms(*ms),
                },
                EffectClass::Idempotent,
            ),
        })
    }

    fn check_tools(&self, request: &ModelRequest) -> Result<(), String> {
        let Toolset::Named(names) = &request.tools else {
            return Ok(());
        };
        match names.iter().find(|name| !self.may_use(name)) {
            None => Ok(()),
            Some(name) => Err(format!(
                "model: it gives the model the tool `{name}`, which is not among those of its view"
            )),
        }
    }

    fn may_use(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    fn tool(&self, call: &Call) -> Resolved {
        let (name, arguments) = match call {
            Call::Own { name, arguments } => (name.as_str(), arguments.as_str()),
            Call::OfModel { message, index } => {
                match find_call(self.run, self.intake, *message, *index) {
                    Some((_, name, arguments)) => (name, arguments),
                    None => ("", "{}"),
                }
            }
        };
        let fault = match serde_json::from_str::<Value>(arguments) {
            Ok(Value::Object(_)) if self.may_use(name) => None,
            Ok(Value::Object(_)) => Some(("not-found", format!("there is no tool `{name}`"))),
            _ => Some((
                "invalid-arguments",
                "the arguments are not an object".to_owned(),
            )),
        };
        let performer = match fault {
            Some((code, message)) => Performer::Refused {
                outcome: OperationOutcome::Failed {
                    failure: Failure::lasting(code, message),
                },
                untrusted: false,
                of_delegate: false,
                address: None,
            },
            None => Performer::Tool {
                component: self.run.component,
                tool: name.to_owned(),
                arguments: arguments.to_owned(),
                capabilities: Vec::new(),
            },
        };
        by(performer, EffectClass::ReadOnly)
    }
}

/// An operation that fails, in the place of one that a host does not start.
pub(crate) fn failing(fault: &str) -> Resolved {
    let performer = Performer::Refused {
        outcome: OperationOutcome::Failed {
            failure: Failure::lasting("refused", fault),
        },
        untrusted: false,
        of_delegate: false,
        address: None,
    };
    by(performer, EffectClass::ReadOnly)
}

fn by(performer: Performer, effect: EffectClass) -> Resolved {
    Resolved {
        performer,
        effect,
        time_limit_ms: None,
        deadline: None,
        reserved: Default::default(),
        approval: None,
    }
}
