//! API keys: issue, list, revoke.

use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{
    Idempotency, IdempotencyKey, InPath, Json, Params, page_query, read_path, read_query,
};
use crate::problem::Problem;
use crate::state::Api;
use crate::wire::{self, KeyView};
use axum::extract::State;
use broker::KeysOf;
use domain::key::{KeyId, NewKey};
use domain::user::{Scope, UserId};
use http::header::{CACHE_CONTROL, LOCATION};
use http::{HeaderName, StatusCode};
use serde::{Deserialize, Serialize};

error_codes! {
    IssueErrors = [Invalid, KeyIssuedBefore, KeyRevoked, TooManyKeys] + Recording;
    RevokeErrors = [Invalid, KeyNotFound] + Recording;
}

/// A new key.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewKey)]
pub(super) struct Wanted {
    /// The user that the key is for; you by default. Only an administrator issues keys for others.
    user: Option<UserId>,
    /// A name by which you recognise it: at most 100 characters.
    #[serde(default)]
    name: String,
    /// The scopes that it may be used for: `read`, `write`, `keys`, `admin`. They cannot exceed
    /// those of the credential that you ask with.
    scopes: Vec<Scope>,
    /// The lifetime in seconds, from 60 to 31,622,400 (366 days). A key that is issued with another
    /// key must not outlive it. By default it is valid for 90 days, or as long as the key that it
    /// is issued with.
    #[schema(minimum = 60, maximum = 31_622_400)]
    expires_in_s: Option<u64>,
}

/// A key that was just issued.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct IssuedKey {
    /// The key itself. Keep it: it is shown this once, and the host has only its hash.
    key: String,
    /// The public details of the key.
    #[serde(flatten)]
    view: KeyView,
}

/// Issues an API key. The key is in the answer to this request and nowhere else: the same request
/// under the same `Idempotency-Key` issues no second one, and because the secret is not kept it is
/// refused, with the id of the key that it issued.
#[utoipa::path(
    post, path = "/api/keys", tag = "keys",
    operation_id = "createKey",
    security(("token" = ["keys"]), ("token" = ["admin"])),
    params(IdempotencyKey),
    request_body = Wanted,
    responses(
        (
            status = 201,
            description = "It is valid from now on.",
            body = IssuedKey,
            headers(("Location" = String, description = "Where it is revoked.")),
        ),
    ),
)]
pub(super) async fn issue(
    State(api): State<Api>,
    caller: Caller,
    Idempotency(key): Idempotency,
    Json(wanted): Json<Wanted>,
) -> Result<(StatusCode, [(HeaderName, String); 2], axum::Json<IssuedKey>), Refused<IssueErrors>> {
    let asked = NewKey {
        user: wanted.user.unwrap_or_else(|| caller.user.clone()),
        name: wanted.name,
        scopes: wanted.scopes.into_iter().collect(),
        lifetime_s: wanted.expires_in_s,
    };
    let issued = api
        .command()?
        .keys()
        .issue(&caller.issuer(), asked, key.as_deref())
        .await?;
    let headers = [
        (LOCATION, format!("/api/keys/{}", issued.row.id)),
        (CACHE_CONTROL, "no-store".to_owned()),
    ];
    let view = wire::key(&issued.row, api.access().clock().now());
    Ok((
        StatusCode::CREATED,
        headers,
        axum::Json(IssuedKey {
            key: issued.key.expose(),
            view,
        }),
    ))
}

page_query! {
    /// Query that selects a page of keys.
    pub(super) struct Page: String, 200 of 200 {
        /// This user's keys; yours without. Only an administrator lists those of others.
        user: Option<String>,
        /// The keys of all users, for an administrator.
        #[serde(default)]
        all: bool,
    }
}

/// One page of keys.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct KeyList {
    /// The keys in the order of their ids, revoked and expired ones included.
    keys: Vec<KeyView>,
    /// The `after` of the next page; none on the last.
    next_after: Option<String>,
}

/// Lists API keys.
#[utoipa::path(
    get, path = "/api/keys", tag = "keys",
    operation_id = "listKeys",
    security(("token" = ["keys"]), ("token" = ["admin"])),
    params(Page),
    responses((status = 200, description = "A page.", body = KeyList)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<axum::Json<KeyList>, Problem> {
    let user = read_query("user", page.user.as_deref())?;
    let of = match (user, page.all) {
        (Some(_), true) => {
            let detail = "name one user, or ask for all of them";
            return Err(Problem::invalid_query("all", detail));
        }
        (Some(user), false) => KeysOf::User(user),
        (None, true) => KeysOf::Everybody,
        (None, false) => KeysOf::User(caller.user.clone()),
    };
    let after: Option<KeyId> = read_query("after", page.after.as_deref())?;
    let limit = page.limit()?;
    let rows = api
        .broker()?
        .keys()
        .list(&caller.issuer(), &of, after.as_ref(), limit)
        .await?;
    let next_after = rows
        .last()
        .filter(|_| rows.len() == limit)
        .map(|row| row.id.to_string());
    let now = api.access().clock().now();
    Ok(axum::Json(KeyList {
        keys: rows.iter().map(|row| wire::key(row, now)).collect(),
        next_after,
    }))
}

/// The reason for a revocation.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RevocationReason {
    /// The reason, for the record: at most 200 characters.
    reason: Option<String>,
}

/// Revokes an API key permanently.
///
/// Its next request is refused, and the event streams opened with it end. A key that was revoked
/// before stays as it was.
#[utoipa::path(
    delete, path = "/api/keys/{id}", tag = "keys",
    operation_id = "revokeKey",
    security(("token" = ["keys"]), ("token" = ["admin"])),
    params(("id" = KeyId, Path, description = "The key's id."), RevocationReason),
    responses((status = 200, description = "It is not valid any more.", body = KeyView)),
)]
pub(super) async fn revoke(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath<String>,
    Params(why): Params<RevocationReason>,
) -> Result<axum::Json<KeyView>, Refused<RevokeErrors>> {
    let id: KeyId = read_path("id", &id)?;
    let row = api
        .command()?
        .keys()
        .revoke(&caller.issuer(), &id, why.reason)
        .await?;
    Ok(axum::Json(wire::key(&row, api.access().clock().now())))
}
