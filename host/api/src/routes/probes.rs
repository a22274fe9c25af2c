//! Whether the host is alive, whether it takes requests, and what it serves.

use crate::problem::Problem;
use crate::state::{Api, Readiness};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;

/// Whether the process is alive. Touches nothing.
#[utoipa::path(get, path = "/healthz", tag = "probes", security(()), responses((status = 200, description = "It is.", body = String)))]
pub(super) async fn healthz() -> &'static str {
    "ok"
}

/// Whether the host takes requests: not while it starts or stops, not while nothing can be recorded, because the disk is full, fails
/// or does not answer, or because somebody else holds the database, and not while reads fail.
#[utoipa::path(
    get, path = "/readyz", tag = "probes", security(()),
    responses((status = 200, description = "It does.", body = String), (status = 503, description = "Not now; `code` says why."))
)]
pub(super) async fn readyz(State(api): State<Api>) -> Result<&'static str, Problem> {
    match api.readiness().await {
        Readiness::Ready => Ok("ready"),
        Readiness::Starting => Err(Problem::starting()),
        Readiness::Draining => Err(Problem::shutting_down()),
        Readiness::DiskFull => Err(Problem::disk_full()),
        Readiness::NotRecording => Err(Problem::not_recording()),
        Readiness::NotReading => Err(Problem::not_reading()),
    }
}

/// This description.
#[utoipa::path(
    get, path = "/openapi.json", tag = "probes", security(()),
    responses((status = 200, description = "OpenAPI 3.1.", body = Object, content_type = "application/json"))
)]
pub(super) async fn openapi(State(api): State<Api>) -> Response {
    ([(CONTENT_TYPE, "application/json")], api.document()).into_response()
}
