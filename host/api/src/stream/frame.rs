//! The frames of an event stream, in the form of the log or in the form for a client that shows a
//! session.

use crate::wire::{self, LogFrame, SessionFrame, Spawned, written};
use broker::Frame;
use bytes::Bytes;
use domain::event::Recorded;
use serde::Deserialize;

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
            Self::Session => bytes(&SessionFrame::Heartbeat { count }),
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
        match self {
            Self::Log => Some(written(None, &wire::log_frame(frame, spawned)).into()),
            Self::Session => wire::ephemeral_frame(frame, spawned).map(|frame| bytes(&frame)),
        }
    }

    /// Returns the frame by which the stream restarts at a position, because the client's position
    /// is ahead of it.
    pub(super) fn reset(self, position: u64, asked: u64) -> Bytes {
        let reason = &format!(
            "position {asked} is ahead of the last event, {position}: this host was \
             restored from a backup, or is another one; read again what is shown"
        );
        let id = position.to_string();
        let frame = match self {
            Self::Session => written(Some(&id), &SessionFrame::Reset { position, reason }),
            Self::Log => written(Some(&id), &LogFrame::Reset { position, reason }),
        };
        frame.into()
    }

    /// Returns the frame with the reason why the stream ends; none in a log, which says when to
    /// come back.
    pub(super) fn disconnected(self, reason: &str) -> Option<Bytes> {
        (self == Self::Session).then(|| bytes(&SessionFrame::Disconnected { reason }))
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
    let frames = wire::session_frames(recorded, spawned);
    let last = frames.len().saturating_sub(1);
    let position = recorded.position;
    let text: String = frames
        .iter()
        .enumerate()
        .skip(seen)
        .map(|(index, frame)| {
            let id = match index {
                _ if index == last => position.to_string(),
                _ => format!("{}.{}", position.saturating_sub(1), index + 1),
            };
            written(Some(&id), frame)
        })
        .collect();
    text.into()
}

/// A frame without a position.
pub(super) fn bytes(frame: &SessionFrame<'_>) -> Bytes {
    written(None, frame).into()
}

/// Returns the frame that tells after how many milliseconds a client may come back.
pub(super) fn retry(ms: u64) -> Bytes {
    Bytes::from(format!("retry: {ms}\n\n"))
}
