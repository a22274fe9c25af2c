//! Refusals of commands on triggers, each with its code and how to correct it.

use domain::error_code::ErrorCode;
use domain::refusal::Refusal;
use domain::trigger::{
    PENDING_MAX, SpecFault, TRIGGERS_MAX, TRIGGERS_OF_USER_MAX, TriggerKind, TriggerName,
};

/// The place of a trigger's definition in a request.
const SPEC: &str = "/spec";

domain::refusals! {
    trigger_not_found(name: &TriggerName) = TriggerNotFound:
        "there is no trigger `{name}`; GET /api/triggers lists them";
    trigger_exists(name: &TriggerName) = TriggerExists:
        "there is a trigger `{name}` already; change it with PUT /api/triggers/{name}, or choose \
         another name";
    /// The refusal to make, change or remove a trigger whose name belongs to the configuration.
    trigger_configured(name: &TriggerName) = TriggerConfigured:
        "`{name}` is a trigger of the configuration: change it there, or pause it with POST \
         /api/triggers/{name}/pause";
    /// The refusal of a name that belongs to a webhook of the host's own.
    trigger_name_taken(name: &TriggerName) = Invalid at "/name":
        "`{name}` is the name of a webhook of the host's own; choose another";
    too_many_triggers_of_user() = TooManyTriggers:
        "one user has at most {TRIGGERS_OF_USER_MAX} triggers; remove one";
    too_many_triggers() = TooManyTriggers:
        "this host has at most {TRIGGERS_MAX} triggers; remove one";
    trigger_busy(name: &TriggerName) = TriggerBusy:
        "{PENDING_MAX} trigger events of `{name}` wait already; try again when it has dealt with some";
    component_not_found(name: &str) = ComponentNotFound:
        "there is no component `{name}` that is a trigger; add it to `components` in the \
         configuration, or leave `component` out";
    key_malformed(bytes_max: usize) = Invalid at "header:Idempotency-Key":
        "an idempotency key has 1 to {bytes_max} bytes";
    key_reused() = IdempotencyKeyReused:
        "this idempotency key belongs to another request; use a new one";
}

/// The refusal to run a trigger by hand whose trigger events have to be sent by a caller.
pub(crate) fn not_run_by_hand(kind: &TriggerKind) -> Refusal {
    let message = format!(
        "only a schedule and a heartbeat are run by hand, and this one is fired by `{}`",
        kind.key()
    );
    Refusal::new(ErrorCode::Invalid, message).at("path:trigger")
}

/// The refusal of a trigger's definition, for a fault in one of its fields.
pub(crate) fn invalid_spec(fault: &SpecFault) -> Refusal {
    invalid_field(&fault.field, fault.to_string())
}

/// The refusal of a field of a trigger's definition, such as `files.folder`.
pub(crate) fn invalid_field(field: &str, message: impl Into<String>) -> Refusal {
    let field = format!("{SPEC}/{}", field.replace('.', "/"));
    Refusal::new(ErrorCode::Invalid, message).at(field)
}
