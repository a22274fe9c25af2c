//! The event stream of a chat's visitor: what was said to them and by them, from the store, and
//! between that what is shown while it happens.
//!
//! The `id` of a frame is the position at which its message was queued, or at which an agent got
//! what the visitor said, so that a page that comes back with `Last-Event-ID` gets exactly what it
//! missed. A page that comes without one gets the chat from its beginning. Frames without an id are
//! ephemeral: nothing is lost with them.

mod feed;
mod frames;
mod page;
mod presence;

use super::outbox;
use super::{event_stream, resume_point};
use crate::chat::{Chat, Visitor};
use crate::problem::Problem;
use crate::server::Connected;
use crate::state::Api;
use axum::body::Body;
use axum::response::Response;
use domain::connector::ReplyRoute;
use feed::Feed;
pub(crate) use frames::VisitorFrame;
use http::HeaderMap;
use presence::Presence;
use std::time::Duration;

/// Outbound messages, and words of the visitor, that are read at a time.
const PAGE: usize = 32;
/// The share of all event streams that visitors may have together: one in so many.
const SHARE_OF_STREAMS: usize = 2;

/// A request to follow a chat.
#[derive(Debug)]
pub(crate) struct VisitorRequest {
    pub(crate) chat: Chat,
    pub(crate) visitor: Visitor,
    /// The `after` of its query.
    pub(crate) after: Option<String>,
    /// The connection on which it came.
    pub(crate) connected: Connected,
    pub(crate) headers: HeaderMap,
}

/// Starts the stream of a visitor.
///
/// # Errors
/// 400: the position to continue from is none. 429: too many streams are open.
pub(crate) async fn follow_chat(api: &Api, request: VisitorRequest) -> Result<Response, Problem> {
    let VisitorRequest {
        chat,
        visitor,
        after,
        connected,
        headers,
    } = request;
    let limits = api.limits();
    let streams_max = (limits.streams_max / SHARE_OF_STREAMS).max(1);
    let place = api.visits().follow(&visitor.key, streams_max)?;
    let after = resume_point(&headers, after.as_deref())?;
    let broker = api.broker()?;
    let tail = api.tail()?.clone();
    let presence = Presence::find(broker, &visitor.user).await?;
    // Position and frames fit together: nothing is missed between them, and nothing comes twice.
    let joined = broker
        .live()
        .join(|_, session| chat.spec.deltas && presence.has(session));
    let last = joined.position;
    let seen = after.map_or(0, |after| after.position);
    let patience = Duration::from_millis(limits.stream_stall_ms_max);
    let (out, body) = outbox::channel(limits.stream_waiting_bytes_max, patience, connected.hang_up);
    let feed = Feed {
        broker: broker.clone(),
        route: ReplyRoute {
            connector: chat.connector.clone(),
            chat: visitor.id().to_owned(),
        },
        chat,
        visitor,
        ahead: (seen > last).then_some(seen),
        position: seen.min(last),
        presence,
        tail,
        joined,
        out,
        heartbeat: Duration::from_millis(limits.heartbeat_ms),
        stopping: api.stopping().clone(),
    };
    api.tasks().spawn(async move {
        feed.run().await;
        drop(place);
    });
    Ok(event_stream(Body::from_stream(body)))
}
