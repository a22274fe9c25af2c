//! The trigger that the path of a request names, if its caller may see or use it.

use crate::caller::Caller;
use crate::input::{Idempotency, read_path};
use crate::problem::Problem;
use crate::state::Api;
use domain::error_code::ErrorCode;
use domain::trigger::TriggerName;
use domain::user::Scope;
use store::TriggerRow;

/// Reads the name of a trigger in a path.
pub(super) fn named(name: &str) -> Result<TriggerName, Problem> {
    read_path("trigger", name)
}

/// Returns the trigger of a name: the operator any, others one that speaks on their behalf.
///
/// # Errors
/// 404: there is none, or it is another user's.
pub(super) async fn owned(api: &Api, caller: &Caller, name: &str) -> Result<TriggerRow, Problem> {
    let name = named(name)?;
    let row = api.edge()?.triggers().get(&name).await?;
    row.filter(|row| is_theirs(caller, row))
        .ok_or_else(|| not_found(&name))
}

/// Returns the name of a trigger that the caller may pause, resume and run.
///
/// # Errors
/// 404: there is none, or it is another user's.
pub(super) async fn usable(api: &Api, caller: &Caller, name: &str) -> Result<TriggerName, Problem> {
    api.command()?;
    Ok(owned(api, caller, name).await?.name)
}

/// Returns the name of a trigger that the caller may remove.
///
/// A request that was made before under the same idempotency key is let through: it is answered as
/// it was then, although the trigger is gone, and does nothing.
///
/// # Errors
/// 404: there is none, or it is another user's.
pub(super) async fn removable(
    api: &Api,
    caller: &Caller,
    name: &str,
    key: &Idempotency,
) -> Result<TriggerName, Problem> {
    if api
        .command()?
        .requests()
        .is_remembered(key.by(&caller.user))
        .await?
    {
        return named(name);
    }
    usable(api, caller, name).await
}

/// Returns a trigger whose history the caller may see; none for the operator if there is none now:
/// the history of one that was removed stays.
///
/// # Errors
/// 404: there is none, or it is another user's.
pub(super) async fn with_history(
    api: &Api,
    caller: &Caller,
    name: &str,
) -> Result<Option<TriggerRow>, Problem> {
    match owned(api, caller, name).await {
        Ok(row) => Ok(Some(row)),
        Err(problem) if problem.code == ErrorCode::TriggerNotFound && is_operator(caller) => {
            Ok(None)
        }
        Err(problem) => Err(problem),
    }
}

/// Returns whether a trigger is for this caller to see and use.
fn is_theirs(caller: &Caller, row: &TriggerRow) -> bool {
    is_operator(caller) || row.user.as_ref() == Some(&caller.user)
}

fn is_operator(caller: &Caller) -> bool {
    caller.scopes.contains(&Scope::Admin)
}

pub(super) fn not_found(name: &TriggerName) -> Problem {
    let detail = format!("there is no trigger `{name}` of yours; GET /api/triggers lists them");
    Problem::new(ErrorCode::TriggerNotFound, detail)
}
