//! Checks that the targets of a trigger exist now, by the routing of its messages, and that its
//! model may answer there.
//!
//! A target that disappears later is refused when the trigger is fired.

use super::posting::{address, agent_of, path_of};
use crate::core::Core;
use crate::refusals::invalid_field;
use broker::Error;
use domain::error_code::{ErrorCode, ErrorKind};
use domain::refusal::Refusal;
use domain::trigger::{TriggerSpec, TriggerTarget};
use domain::user::UserId;
use std::iter;

/// Codes of refusals that name the existing alternatives.
const TELLING: [ErrorCode; 2] = [ErrorCode::DefinitionNotFound, ErrorCode::PersonaNotFound];

/// Checks the targets of a trigger. A definition is valid even if its user has no agent of it yet.
///
/// # Errors
/// The first that its user could not write to now, with its field and the fix.
pub(super) async fn check(core: &Core, spec: &TriggerSpec) -> Result<(), Error> {
    let Some(user) = &spec.user else {
        return Ok(());
    };
    check_one(core, user, "target", &spec.target).await?;
    for (name, target) in &spec.targets {
        check_one(core, user, &format!("targets.{name}"), target).await?;
    }
    let Some(model) = &spec.model else {
        return Ok(());
    };
    for target in iter::once(&spec.target).chain(spec.targets.values()) {
        let agent = agent_of(target);
        let broker = &core.broker;
        let refused = match broker
            .models()
            .unnameable(user, agent.as_ref(), model)
            .await
        {
            // The agent is made when the trigger first fires.
            Err(Error::Refused(refusal)) if refusal.kind() == ErrorKind::NotFound => {
                broker.models().unnameable(user, None, model).await?
            }
            refused => refused?,
        };
        if let Some(message) = refused {
            return Err(invalid_field("model", message).into());
        }
    }
    Ok(())
}

async fn check_one(
    core: &Core,
    user: &UserId,
    field: &str,
    target: &TriggerTarget,
) -> Result<(), Error> {
    match core
        .broker
        .messages()
        .where_to(user, &address(target), "")
        .await
    {
        Ok(_) => Ok(()),
        // There may be a thread on the topic when the trigger is fired.
        Err(Error::Refused(refusal)) if refusal.code == ErrorCode::NoThreadFound => Ok(()),
        Err(Error::Refused(refusal)) => {
            // It is made when the trigger first fires.
            let is_own = path_of(target).is_some_and(|path| {
                let definition = core.broker.definitions().of_own_path(&path);
                definition.is_some() && path.user() == Some(user)
            });
            if is_own && refusal.kind() == ErrorKind::NotFound {
                return Ok(());
            }
            let key = key_at_fault(target, &refusal);
            let message = message(&refusal, key, user);
            Err(invalid_field(&format!("{field}.{key}"), message).into())
        }
        Err(error) => Err(error),
    }
}

/// Returns the key of a target that is at fault.
fn key_at_fault(target: &TriggerTarget, refusal: &Refusal) -> &'static str {
    match (target, refusal.field.as_deref()) {
        (TriggerTarget::Smart { .. }, Some("/to/smart/agent")) => "smart.agent",
        (TriggerTarget::Smart { .. }, Some("/to/persona")) => "smart.persona",
        _ => target.key(),
    }
}

/// Returns the reason why a user cannot write to the target in a key, with the fix.
fn message(refusal: &Refusal, key: &str, user: &UserId) -> String {
    let reason = &refusal.message;
    if TELLING.contains(&refusal.code) {
        return reason.clone();
    }
    let fix = match key {
        "turn" => format!("name a turn of a session of `{user}`"),
        "session" => format!("name a session of `{user}` that is open"),
        "agent" => format!(
            "name a definition, or the id or the path of an agent that `{user}` may write to"
        ),
        "path" | "smart.agent" => {
            format!("name the id or the path of an agent that `{user}` may write to")
        }
        "persona" | "smart.persona" => format!("name a persona that `{user}` may write to"),
        _ => "name another".to_owned(),
    };
    format!("{reason}; {fix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusals::trigger_busy;
    use serde_json::json;

    #[test]
    fn the_key_at_fault_is_named_also_within_a_target_by_topic() {
        let busy = || trigger_busy(&"a".parse().unwrap());
        let smart = json!({ "smart": { "agent": "assistant", "persona": "home" } });
        for (target, field, key) in [
            (json!({ "agent": "assistant" }), "/to/agent", "agent"),
            (json!({ "persona": "home" }), "/to/persona", "persona"),
            (smart.clone(), "/to/smart/agent", "smart.agent"),
            (smart.clone(), "/to/persona", "smart.persona"),
            (smart, "/to/smart", "smart"),
        ] {
            let target: TriggerTarget = serde_json::from_value(target).unwrap();
            assert_eq!(key_at_fault(&target, &busy().at(field)), key);
        }
    }

    #[test]
    fn a_refusal_that_names_no_other_target_is_told_with_the_fix() {
        let user: UserId = "ada".parse().unwrap();
        let busy = trigger_busy(&"a".parse().unwrap());
        let reported = message(&busy, "agent", &user);
        assert!(
            reported.ends_with("an agent that `ada` may write to"),
            "{reported}"
        );
        let telling = Refusal {
            code: ErrorCode::DefinitionNotFound,
            ..busy
        };
        assert_eq!(message(&telling, "agent", &user), telling.message);
    }
}
