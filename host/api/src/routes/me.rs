//! The caller, as the host sees it.

use crate::caller::{Caller, Credential};
use crate::wire::Time;
use domain::key::KeyId;
use domain::user::{Scope, UserId};
use serde::Serialize;
use std::collections::BTreeSet;

/// The caller.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Me {
    /// The user.
    user_id: UserId,
    /// The scopes that the credential may be used for.
    scopes: BTreeSet<Scope>,
    /// `host_token`, `api_key`, or `token` of an issuer that the host trusts.
    authenticated_by: CredentialKind,
    /// The key.
    key_id: Option<KeyId>,
    /// The issuer.
    issuer: Option<String>,
    /// The time at which the credential expires, ISO 8601; none for the host's own token.
    expires_at: Option<Time>,
}

/// The kind of a credential.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
enum CredentialKind {
    /// The token of the host itself.
    HostToken,
    /// An API key.
    ApiKey,
    /// The token of an issuer that the host trusts.
    Token,
}

/// Shows the user that your credential stands for, and its scopes.
#[utoipa::path(
    get, path = "/api/me", tag = "keys",
    operation_id = "getMe",
    security(("token" = [])),
    responses((status = 200, description = "You.", body = Me)),
)]
pub(super) async fn show(caller: Caller) -> axum::Json<Me> {
    let expires_at = caller.credential.expires_at().map(Time);
    let (authenticated_by, key_id, issuer) = match caller.credential {
        Credential::HostToken => (CredentialKind::HostToken, None, None),
        Credential::Key { id, .. } => (CredentialKind::ApiKey, Some(id), None),
        Credential::Token { issuer, .. } => (CredentialKind::Token, None, Some(issuer.to_string())),
    };
    axum::Json(Me {
        user_id: caller.user,
        scopes: caller.scopes.as_ref().clone(),
        authenticated_by,
        key_id,
        issuer,
        expires_at,
    })
}
