//! The frames of an event stream, in the form of the log or in the form for a client that shows a
//! session.

use crate::wire::{self, EphemeralName, FrameName, SessionEvent, Spawned};
use broker::Frame;
use bytes::Bytes;
use domain::event::Recorded;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The first bytes of a stream.
pub(super) const GREETING: Bytes = Bytes::from_static(b": agent-host\n\n");

/// The form in which a stream shows events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum View {
    /// The form for a client that shows a session: `client_action`, `content_chunk`,
    /// `message_complete`, …
    #[default]
    Session,
    /// The form of the log: every event under its type.
    Log,
}

impl View {
    /// Returns the bytes sent when nothing happens.
    pub(super) fn heartbeat(self, count: u64) -> Bytes {
        match self {
            Self::Session => session_frame(&(FrameName::Heartbeat, json!({ "count": count }))),
            Self::Log => Bytes::from_static(b": heartbeat\n\n"),
        }
    }

    /// A stored event without the frames of it that a client has `seen`; empty when it means
    /// nothing in this view.
    pub(super) fn committed(
        self,
        recorded: &Recorded,
        spawned: Option<&Spawned>,
        seen: usize,
    ) -> Bytes {
        match self {
            Self::Log => committed(recorded, spawned.cloned()),
            Self::Session => session_frames(recorded, spawned, seen),
        }
    }

    /// Returns the frame of something ephemeral; none when this view does not show it.
    pub(super) fn shown(self, frame: &Frame, spawned: Option<&Spawned>) -> Option<Bytes> {
        let (name, data) = match self {
            Self::Log => wire::frame(frame),
            Self::Session => {
                wire::session_frame(frame).map(|(name, data)| (name.as_str(), data))?
            }
        };
        Some(written(name, &with_spawned(data, spawned)))
    }

    /// Returns the frame by which the stream restarts at a position, because the client's position
    /// is ahead of it.
    pub(super) fn reset(self, position: u64, asked: u64) -> Bytes {
        let name = match self {
            Self::Session => FrameName::Reset.as_str(),
            Self::Log => EphemeralName::Reset.as_str(),
        };
        let reason = format!(
            "position {asked} is ahead of the last event, {position}: this host was \
             restored from a backup, or is another one; read again what is shown"
        );
        Bytes::from(format!(
            "id: {position}\nevent: {name}\ndata: {}\n\n",
            json!({ "position": position, "reason": reason })
        ))
    }

    /// Returns the frame with the reason why the stream ends; none in a log, which says when to
    /// come back.
    pub(super) fn disconnected(self, reason: &str) -> Option<Bytes> {
        (self == Self::Session)
            .then(|| session_frame(&(FrameName::Disconnected, json!({ "reason": reason }))))
    }
}

/// A stored event as the log has it. JSON has no line breaks of its own, so its data is one line.
pub(super) fn committed(recorded: &Recorded, spawned: Option<Spawned>) -> Bytes {
    let data = serde_json::to_string(&wire::Event {
        spawned,
        ..wire::event(recorded)
    })
    .unwrap_or_default();
    Bytes::from(format!(
        "id: {}\nevent: {}\ndata: {data}\n\n",
        recorded.position, recorded.kind
    ))
}

/// Returns the frames of a stored event, without the first `seen`. Each has an id to continue from,
/// so that no frame is sent twice. The last has the event's position; those before it have the
/// position before it and a number, such as `41.1`.
fn session_frames(recorded: &Recorded, spawned: Option<&Spawned>, seen: usize) -> Bytes {
    let events = wire::session_events(recorded);
    let last = events.len().saturating_sub(1);
    let mut text = String::new();
    for (index, (name, data)) in events.into_iter().enumerate().skip(seen) {
        let position = recorded.position;
        // Writing to a text cannot fail.
        let _ = match index {
            _ if index == last => writeln!(text, "id: {position}"),
            _ => writeln!(text, "id: {}.{}", position.saturating_sub(1), index + 1),
        };
        let _ = write!(
            text,
            "event: {}\ndata: {}\n\n",
            name.as_str(),
            with_spawned(data, spawned)
        );
    }
    Bytes::from(text)
}

/// A frame without a position.
pub(super) fn session_frame((name, data): &SessionEvent) -> Bytes {
    written(name.as_str(), data)
}

fn written(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

/// Returns the frame of a question that is repeated.
pub(super) fn asked_again((name, data): SessionEvent, spawned: Option<&Spawned>) -> Bytes {
    session_frame(&(name, with_spawned(data, spawned)))
}

fn with_spawned(mut data: Value, spawned: Option<&Spawned>) -> Value {
    if let (Some(spawned), Some(data)) = (spawned, data.as_object_mut()) {
        data.insert("spawned".to_owned(), json!(spawned));
    }
    data
}

/// Returns the frame that tells after how many milliseconds a client may come back.
pub(super) fn retry(ms: u64) -> Bytes {
    Bytes::from(format!("retry: {ms}\n\n"))
}
