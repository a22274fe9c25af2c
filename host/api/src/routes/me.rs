//! The caller, as the host sees it.

use crate::caller::{Caller, Credential};
use domain::user::Scope;
use serde::Serialize;

/// The caller.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Me {
    /// The user.
    user_id: String,
    /// The scopes that the credential may be used for.
    scopes: Vec<&'static str>,
    /// `host_token`, `api_key`, or `token` of an issuer that the host trusts.
    authenticated_by: &'static str,
    /// The key.
    key_id: Option<String>,
    /// The issuer.
    issuer: Option<String>,
    /// The time at which the credential expires, ISO 8601; none for the host's own token.
    expires_at: Option<String>,
}

/// Shows the user that your credential stands for, and its scopes.
#[utoipa::path(
    get, path = "/api/me", tag = "keys",
    operation_id = "getMe",
    security(("token" = [])),
    responses((status = 200, description = "You.", body = Me)),
)]
pub(super) async fn show(caller: Caller) -> axum::Json<Me> {
    let expires_at = caller.credential.expires_at().map(|time| time.to_string());
    let (authenticated_by, key_id, issuer) = match caller.credential {
        Credential::HostToken => ("host_token", None, None),
        Credential::Key { id, .. } => ("api_key", Some(id.to_string()), None),
        Credential::Token { issuer, .. } => ("token", None, Some(issuer.to_string())),
    };
    let scopes = caller.scopes.iter().copied().map(Scope::as_str).collect();
    axum::Json(Me {
        user_id: caller.user.to_string(),
        scopes,
        authenticated_by,
        key_id,
        issuer,
        expires_at,
    })
}
