//! The system that this one replaces: its sessions API under `/api/session/`, and the import of its
//! sessions.
//!
//! Nothing else in this crate uses it. Deleting it takes this file, its folder, `mod legacy;` in
//! `lib.rs`, and `use crate::legacy;` and `.merge(legacy::routes())` in `routes.rs`: 811 lines.
//! Three small functions have no other user then: `StreamParams::for_session`, and `naming_of` of
//! `Access` and `Identity`. The tests' lists of routes name its eight routes.

mod import;
mod sessions;
mod view;

use crate::routing::routes;
use crate::state::Api;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;

/// Every route of the old system, and the one that imports its sessions.
pub(crate) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(sessions::create, sessions::list))
        .routes(routes!(sessions::show, sessions::terminate))
        .routes(routes!(sessions::state))
        .routes(routes!(sessions::respond))
        .routes(routes!(sessions::follow))
        .routes(routes!(import::import))
        // The old server had a slash at the end, and sent whoever left it out to where it is.
        .route("/api/session/", get(sessions::list).post(sessions::create))
}
