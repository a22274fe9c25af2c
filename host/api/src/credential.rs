//! The step from the credential of a request to its caller.

use crate::access::{Presented, unauthorized};
use crate::caller::{Caller, Credential};
use crate::problem::Problem;
use crate::state::Api;
use domain::key::{ApiKey, Ended};
use std::sync::Arc;

/// Returns the caller behind a credential. Keys are looked up each time, so that a revoked one is
/// refused at its next request.
///
/// # Errors
/// 401 for a credential that is not or no longer valid; 503 while that cannot be determined.
pub(crate) async fn caller(api: &Api, presented: Presented<'_>) -> Result<Caller, Problem> {
    match presented {
        Presented::HostToken => Ok(Caller::local()),
        Presented::Key(key) => of_key(api, &key).await,
        Presented::Token(identity, token) => identity.caller(token).await,
    }
}

async fn of_key(api: &Api, key: &ApiKey) -> Result<Caller, Problem> {
    let row = api.broker()?.keys().get(key.id()).await?;
    // Whoever has only the id learns nothing of the key.
    let row = row
        .filter(|row| row.hash.is_secretly(&key.hash()))
        .ok_or_else(|| unauthorized("there is no such API key"))?;
    match row.ended(api.access().clock().now()) {
        None => {}
        Some(Ended::Revoked) => {
            return Err(unauthorized(format!(
                "the API key `{}` was revoked",
                row.id
            )));
        }
        Some(Ended::Expired) => {
            return Err(unauthorized(format!(
                "the API key `{}` expired at {}",
                row.id, row.expires_at
            )));
        }
    }
    let credential = Credential::Key {
        id: row.id,
        expires_at: row.expires_at,
    };
    Ok(Caller {
        user: row.user,
        scopes: Arc::new(row.scopes),
        credential,
        operator: None,
    })
}
