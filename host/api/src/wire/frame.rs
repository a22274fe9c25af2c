//! Frames of event streams: how one is written, how it is described, and those of the view `log`
//! that are no stored events.
//!
//! A stream's frames are the variants of one enum. Serialised it is the name of the frame under
//! `event`, and what it has under `data`.

use super::spawned::Spawned;
use broker::{Frame, Show};
use domain::id::{AgentId, OperationId, RunId, SessionId};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AllOf, Object, Schema};

/// A frame in the view `log` that is no stored event.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "event", content = "data", rename_all = "kebab-case")]
pub(crate) enum LogFrame<'a> {
    /// Ephemeral output of an operation; void after `attempt-discarded` of its attempt.
    Delta {
        #[serde(flatten)]
        of: Ephemeral<'a>,
        /// `text`, `so_far`, `thinking`, `call_started`, `note` or `performing`. A client that
        /// comes in the middle of a reply gets `so_far`: its whole text up to the chunk `seq`,
        /// in place of what the client shows of this operation.
        kind: &'static str,
        /// The text, of `text`, `so_far`, `thinking` and `note`.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The tool, of `call_started`.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        /// The call that is performed, for `performing`: `model:<name>` or `tool:<name>`.
        #[serde(skip_serializing_if = "Option::is_none")]
        what: Option<&'a str>,
    },
    /// The stream starts over: the client's position is not one that this host has assigned, as
    /// after a restored backup. Its `id` replaces that position.
    Reset {
        /// The position from which the stream continues. Read everything again that was shown
        /// before.
        position: u64,
        /// The reason, for people.
        reason: &'a str,
    },
    /// All deltas of this attempt are void.
    AttemptDiscarded {
        #[serde(flatten)]
        of: Ephemeral<'a>,
    },
}

/// The subject of an ephemeral frame: shown while something happens, never stored, never repeated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub(crate) struct Ephemeral<'a> {
    /// True.
    ephemeral: bool,
    /// The agent.
    agent_id: AgentId,
    /// The session.
    session_id: SessionId,
    /// The run.
    run_id: RunId,
    /// The operation.
    operation_id: OperationId,
    /// The attempt at it.
    attempt: u32,
    /// Its place in the attempt.
    seq: u64,
    /// The place of its session below the followed one, with `spawned=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    spawned: Option<&'a Spawned>,
}

/// Returns the frame of something ephemeral in the view `log`.
pub(crate) fn log_frame<'a>(frame: &'a Frame, spawned: Option<&'a Spawned>) -> LogFrame<'a> {
    let of = Ephemeral {
        ephemeral: true,
        agent_id: frame.agent,
        session_id: frame.session,
        run_id: frame.run,
        operation_id: frame.operation,
        attempt: frame.attempt,
        seq: frame.seq,
        spawned,
    };
    let (kind, text, name, what) = match &frame.show {
        Show::Text(text) => ("text", Some(text.clone()), None, None),
        Show::SoFar(text) => ("so_far", Some(text.concat()), None, None),
        Show::Thinking(text) => ("thinking", Some(text.clone()), None, None),
        Show::CallStarted { name } | Show::OwnCall { name } => {
            ("call_started", None, Some(name.as_str()), None)
        }
        Show::Note(text) => ("note", Some(text.clone()), None, None),
        Show::Performing { what } => ("performing", None, None, Some(what.as_str())),
        Show::Discarded => return LogFrame::AttemptDiscarded { of },
    };
    LogFrame::Delta {
        of,
        kind,
        text,
        name,
        what,
    }
}

/// Returns a frame as a server-sent event, with an id to continue from if it has one. JSON has no
/// line breaks of its own, so its data is one line.
pub(crate) fn written(id: Option<&str>, frame: &impl Serialize) -> String {
    // Frames are made of text, numbers and lists: they always have a JSON form.
    let frame = serde_json::to_value(frame).unwrap_or_default();
    let mut text = String::new();
    // Writing to a text cannot fail.
    if let Some(id) = id {
        let _ = writeln!(text, "id: {id}");
    }
    let part = |key: &str| frame.get(key).unwrap_or(&serde_json::Value::Null);
    let name = part("event").as_str().unwrap_or_default();
    let _ = write!(text, "event: {name}\ndata: {}\n\n", part("data"));
    text
}

/// A schema that code describes, and not a route.
pub(crate) struct CodedSchema {
    /// The key under which it is referred to, such as the name of a frame on the stream.
    pub(crate) key: String,
    /// The name of the schema.
    pub(crate) name: String,
    /// The schema itself.
    pub(crate) schema: RefOr<Schema>,
    /// The schemas that it refers to.
    pub(crate) others: Vec<(String, RefOr<Schema>)>,
}

impl CodedSchema {
    /// Describes a type under a key and a name.
    pub(crate) fn new<T: ToSchema>(key: &str, name: &str) -> Self {
        let mut others = Vec::new();
        T::schemas(&mut others);
        Self {
            key: key.to_owned(),
            name: name.to_owned(),
            schema: T::schema(),
            others,
        }
    }

    /// Describes each frame of a stream under its name there. The names of the schemas begin with
    /// that of the stream.
    pub(crate) fn frames<T: ToSchema>(stream: &str) -> Vec<Self> {
        let mut others = Vec::new();
        T::schemas(&mut others);
        let RefOr::T(Schema::OneOf(frames)) = T::schema() else {
            return Vec::new();
        };
        let mut merged = BTreeSet::new();
        let mut described: Vec<Self> = frames
            .items
            .into_iter()
            .filter_map(|frame| {
                let RefOr::T(Schema::Object(mut frame)) = frame else {
                    return None;
                };
                let RefOr::T(Schema::Object(event)) = frame.properties.remove("event")? else {
                    return None;
                };
                let key = event.enum_values?.first()?.as_str()?.to_owned();
                let mut whole = Object::new();
                whole.description = frame.description;
                merge(
                    &mut whole,
                    frame.properties.remove("data")?,
                    &others,
                    &mut merged,
                );
                Some(Self {
                    name: format!("{stream}{}Frame", camel_case(&key)),
                    key,
                    schema: RefOr::T(Schema::Object(whole)),
                    others: Vec::new(),
                })
            })
            .collect();
        // What frames have in common is a part of each, and no schema unless one refers to it.
        let referring: Vec<&RefOr<Schema>> = described.iter().map(|frame| &frame.schema).collect();
        let referring = serde_json::to_string(&referring).unwrap_or_default();
        others.retain(|(name, _)| {
            !merged.contains(name) || referring.contains(&format!("/{name}\""))
        });
        if let Some(first) = described.first_mut() {
            first.others = others;
        }
        described
    }
}

/// Adds the fields of a schema, and of those that it is composed of, to an object.
fn merge(
    whole: &mut Object,
    part: RefOr<Schema>,
    named: &[(String, RefOr<Schema>)],
    merged: &mut BTreeSet<String>,
) {
    match part {
        RefOr::T(Schema::Object(Object {
            properties,
            required,
            ..
        })) => {
            whole.properties.extend(properties);
            whole.required.extend(required);
        }
        RefOr::T(Schema::AllOf(AllOf { items, .. })) => {
            for item in items {
                merge(whole, item, named, merged);
            }
        }
        RefOr::Ref(reference) => {
            let name = reference
                .ref_location
                .rsplit('/')
                .next()
                .unwrap_or_default();
            if let Some((name, schema)) = named.iter().find(|(known, _)| known == name) {
                merged.insert(name.clone());
                merge(whole, schema.clone(), named, merged);
            }
        }
        RefOr::T(_) => {}
    }
}

/// `StateChange` for `state_change`.
fn camel_case(name: &str) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at_checked(1).unwrap_or_default();
        first.to_uppercase() + rest
    };
    name.split(['_', '-']).map(capital).collect()
}
