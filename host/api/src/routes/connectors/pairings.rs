//! Pairings of senders with users: list the codes that count, confirm one, decline one.

use super::{check_configured, named};
use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{Idempotency, IdempotencyKey, InPath, OptionalJson, Params, limit, read_field};
use crate::problem::{Problem, RequestPart};
use crate::state::Api;
use crate::wire::{self, PairingView};
use axum::extract::State;
use domain::path::ConnectorKey;
use domain::user::{Scope, UserId};
use http::StatusCode;
use serde::{Deserialize, Serialize};

error_codes! {
    ListErrors = [ConnectorNotFound];
    ConfirmErrors = [
        ConnectorKeyBound, PairingNotFound, TooManyConnectorKeys, TooManyGuesses,
    ] + Recording;
    DeclineErrors = [PairingNotFound] + Recording;
}

/// Pairings in one list unless asked for others, and at most.
const LIST: (usize, usize) = (100, 1_000);

/// Query that selects pairings.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct PairingParams {
    /// Only those of this connector.
    connector: Option<String>,
    /// Maximum number of results, from 1 to 1,000; 100 by default.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
}

/// Pairings that are offered.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(in crate::routes) struct PairingList {
    /// The pairings; the first to expire comes first.
    pairings: Vec<PairingView>,
}

/// Lists the pairings that are offered now: senders whom nobody knows, with the codes that they
/// were told.
#[utoipa::path(
    get, path = "/api/pairings", tag = "connectors",
    operation_id = "listPairings",
    security(("token" = ["admin"])),
    params(PairingParams),
    responses((status = 200, description = "The pairings.", body = PairingList)),
)]
pub(in crate::routes) async fn list(
    State(api): State<Api>,
    Params(params): Params<PairingParams>,
) -> Result<axum::Json<PairingList>, Refused<ListErrors>> {
    let limit = limit(params.limit, LIST.0, LIST.1)?;
    let connector = match params.connector.as_deref() {
        Some(name) => {
            let asked = named(name);
            Some(asked.map_err(|problem| Problem::invalid_query("connector", problem.detail))?)
        }
        None => None,
    };
    let broker = api.broker()?;
    let rows = broker
        .connectors()
        .pairings(connector.as_ref(), limit)
        .await?;
    // A connector that is configured no longer may have some.
    if let Some(name) = connector.as_ref().filter(|_| rows.is_empty()) {
        check_configured(&api, name, RequestPart::Query("connector")).await?;
    }
    Ok(axum::Json(PairingList {
        pairings: rows.iter().map(wire::pairing).collect(),
    }))
}

/// The user whom a pairing is with.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct PairedUser {
    /// The user that the sender is; you without. For another user than you the scope `admin` is
    /// needed.
    user: Option<String>,
}

/// A sender who is a user now.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(in crate::routes) struct Paired {
    /// The connector key that is bound.
    #[schema(value_type = String)]
    key: ConnectorKey,
    /// The user for whom it stands.
    user_id: UserId,
}

/// Confirms a pairing: the sender who was told the code is you, or the user that the operator
/// names.
///
/// From now on the sender's messages are that user's own. Codes that are tried and are none are
/// counted, and too many are refused for a while.
#[utoipa::path(
    post, path = "/api/pairings/{code}", tag = "connectors",
    operation_id = "confirmPairing",
    security(("token" = ["write"]), ("token" = ["admin"])),
    params(
        ("code" = String, Path, description = "The code, as it was told in the chat."),
        IdempotencyKey,
    ),
    request_body(content = PairedUser, description = "Whom the sender is. It may be missing."),
    responses((status = 200, description = "The sender is that user.", body = Paired)),
)]
pub(in crate::routes) async fn confirm(
    State(api): State<Api>,
    caller: Caller,
    InPath(code): InPath<String>,
    key: Idempotency,
    OptionalJson(paired): OptionalJson<PairedUser>,
) -> Result<axum::Json<Paired>, Refused<ConfirmErrors>> {
    let is_operator = caller.scopes.contains(&Scope::Admin);
    let user: UserId = match paired.user {
        Some(user) => read_field("/user", &user)?,
        None => caller.user.clone(),
    };
    if user != caller.user {
        caller.needs_any(&[Scope::Admin])?;
    }
    let by = key.by(&caller.user);
    let connectors = api.commanded_edge()?.connectors();
    let row = connectors.confirm(by, is_operator, &code, user).await?;
    Ok(axum::Json(Paired {
        key: row.key,
        user_id: row.user,
    }))
}

/// Declines a pairing: the code counts no more.
#[utoipa::path(
    delete, path = "/api/pairings/{code}", tag = "connectors",
    operation_id = "deletePairing",
    security(("token" = ["admin"])),
    params(("code" = String, Path, description = "The code."), IdempotencyKey),
    responses((status = 204, description = "It counts no more.")),
)]
pub(in crate::routes) async fn decline(
    State(api): State<Api>,
    caller: Caller,
    InPath(code): InPath<String>,
    key: Idempotency,
) -> Result<StatusCode, Refused<DeclineErrors>> {
    let by = key.by(&caller.user);
    api.commanded_edge()?
        .connectors()
        .decline(by, &code)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
