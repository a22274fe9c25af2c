//! Event streams that are asked for while the host starts: they wait until it is ready.
//!
//! A browser's `EventSource` comes back after a connection that was refused or that ended, but
//! gives up for good on any status other than 200. A 503 that passes in a second would therefore
//! silence a page until it is loaded again. So a stream is held, without an answer, and begins when
//! the host is ready; what it may not see is then refused as always. A host may take longer, as
//! after an upgrade whose components are compiled anew, and proxies give up on a request without an
//! answer, commonly after 30 to 60 seconds. Before that the client gets an empty stream that asks
//! it to come back.
//!
//! Everything else keeps its 503 with `Retry-After` while the host starts. Load balancers and
//! supervisors read `/healthz` and `/readyz` just then, so the port is open from the beginning; and
//! a request that is held would only fill its client's time limit, where an answer lets the client
//! decide.

use super::event_stream;
use super::frame::{self, View};
use crate::state::Api;
use axum::response::Response;
use http::Uri;
use std::time::Duration;

/// Milliseconds that a stream is held at most.
const WAIT_MS_MAX: u64 = 20_000;
/// Milliseconds after which a client is asked to come back when it was held that long, or when too
/// many are.
const COME_BACK_MS: u64 = 5_000;

/// The end of a stream's wait.
#[derive(Debug)]
pub(crate) enum StartupWait {
    /// The host is ready: the stream may begin.
    Ready,
    /// It is not yet. An empty stream asks the client to come back.
    ComeBack(Response),
}

/// Holds a stream until the host is ready, for a limited time.
pub(crate) async fn until_ready(api: &Api, uri: &Uri) -> StartupWait {
    if api.ready().is_cancelled() {
        return StartupWait::Ready;
    }
    let Some(_permit) = api.wait_permit() else {
        return StartupWait::ComeBack(come_back(uri));
    };
    tokio::select! {
        () = api.ready().cancelled() => StartupWait::Ready,
        () = api.stopping().cancelled() => StartupWait::ComeBack(come_back(uri)),
        () = tokio::time::sleep(Duration::from_millis(WAIT_MS_MAX)) => {
            StartupWait::ComeBack(come_back(uri))
        }
    }
}

/// A stream that says in the terms of its view that it ends, and when to come back.
fn come_back(uri: &Uri) -> Response {
    let is_log = uri
        .query()
        .is_some_and(|query| query.split('&').any(|field| field == "view=log"));
    let view = if is_log { View::Log } else { View::Session };
    let mut bytes = frame::GREETING.to_vec();
    bytes.extend(
        view.disconnected("the host is still starting; come back")
            .unwrap_or_default(),
    );
    bytes.extend(frame::retry(COME_BACK_MS));
    event_stream(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Access;
    use crate::server::Limits;
    use tokio_util::sync::CancellationToken;

    fn starting() -> Api {
        let access = Access::new("secret", "127.0.0.1:7777".parse().unwrap(), &[]);
        let stopping = CancellationToken::new();
        Api::new(access, Limits::default(), "backups".into(), stopping)
    }

    async fn text(startup_wait: StartupWait) -> String {
        let StartupWait::ComeBack(response) = startup_wait else {
            panic!("a host that never opened is ready");
        };
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let body = axum::body::to_bytes(response.into_body(), 1 << 10).await;
        String::from_utf8(body.unwrap().to_vec()).unwrap()
    }

    /// An `EventSource` that is held too long gets a stream that ends, after which it comes back.
    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_held_too_long_is_asked_to_come_back() {
        let api = starting();
        let begun = tokio::time::Instant::now();
        let reported = text(until_ready(&api, &"/s?session=x".parse().unwrap()).await).await;
        assert_eq!(begun.elapsed(), Duration::from_millis(WAIT_MS_MAX));
        assert!(
            reported.contains("event: disconnected\n") && reported.ends_with("retry: 5000\n\n"),
            "{reported}"
        );
        let log = text(until_ready(&api, &"/s?a=b&view=log".parse().unwrap()).await).await;
        assert_eq!(log, ": agent-host\n\nretry: 5000\n\n");
    }

    #[tokio::test(start_paused = true)]
    async fn of_too_many_streams_none_is_held() {
        let api = starting();
        let mut permits = Vec::new();
        while let Some(permit) = api.wait_permit() {
            permits.push(permit);
        }
        assert_eq!(permits.len(), 1_024);
        let begun = tokio::time::Instant::now();
        text(until_ready(&api, &Uri::from_static("/s")).await).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
