//! The peer: axum and its server-sent events, fed from one broadcast channel, and nothing else.

use super::Followed;
use crate::again::Again;
use crate::report;
use agent_host_tests::process::Frame;
use axum::Router;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::{get, post};
use futures::{Stream, stream};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::broadcast::{self, Sender};

/// Asks for [`serve`].
pub(crate) const FLAG: &str = "--bare-streams";
const STREAM: &str = "/stream";
const EVENTS: &str = "/events";
/// Events that a client may be behind.
const BEHIND_MAX: usize = 64;
/// As often as the host does it.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The server in a process of its own.
#[derive(Debug)]
pub(super) struct Bare {
    again: Again,
    address: SocketAddr,
}

impl Bare {
    /// Starts one that sends a frame like this one.
    pub(super) async fn start(like: &Frame) -> anyhow::Result<Self> {
        let mut again =
            Again::start(&[FLAG.to_owned(), like.event.clone(), like.data.to_string()])?;
        let address = again.line().await?.parse()?;
        Ok(Self { again, address })
    }

    pub(super) fn followed(&self) -> anyhow::Result<Followed<'_>> {
        Ok(Followed {
            process: self.again.process()?,
            address: self.address,
            path: STREAM,
            happens: EVENTS,
            token: "",
        })
    }
}

/// Serves until this process is killed.
///
/// # Errors
/// The system's error.
pub(crate) async fn serve(name: &str, data: &str) -> anyhow::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    report::say(&listener.local_addr()?.to_string());
    let event = Event::default().id("1").event(name).data(data);
    let (sender, _) = broadcast::channel::<Event>(BEHIND_MAX);
    let happens = move |State(sender): State<Sender<Event>>| async move {
        sender.send(event).map_or(0, |clients| clients).to_string()
    };
    let router = Router::new()
        .route(STREAM, get(follow))
        .route(EVENTS, post(happens))
        .with_state(sender);
    Ok(axum::serve(listener, router).await?)
}

async fn follow(
    State(sender): State<Sender<Event>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = stream::unfold(sender.subscribe(), async |mut events| {
        let event = events.recv().await.ok()?;
        Some((Ok(event), events))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT))
}
