//! The response to a request that made something.

use crate::wire;
use axum::response::{IntoResponse, Response};
use broker::SessionView;
use http::StatusCode;
use http::header::LOCATION;
use serde::Serialize;

/// 201, with the place of the new thing and its view.
pub(crate) struct Created<T> {
    /// Its path.
    pub(crate) location: String,
    /// The body.
    pub(crate) view: T,
}

impl Created<wire::SessionView> {
    /// Makes the response to a request that opened a session.
    pub(crate) fn session(view: &SessionView) -> Self {
        Self {
            location: format!("/api/agents/{}/sessions/{}", view.row.agent, view.row.id),
            view: wire::session(view),
        }
    }
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        let location = [(LOCATION, self.location)];
        (StatusCode::CREATED, location, axum::Json(self.view)).into_response()
    }
}
