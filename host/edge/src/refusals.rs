//! Refusals of commands on triggers, each with its code and how to correct it.

use domain::refusal::{Refusal, RefusalKind};
use domain::trigger::{
    PENDING_MAX, SpecFault, TRIGGERS_MAX, TRIGGERS_OF_USER_MAX, TriggerKind, TriggerName,
};

/// The place in a request that says what a trigger is.
const SPEC: &str = "/spec";

pub(crate) fn trigger_not_found(name: &TriggerName) -> Refusal {
    let message = format!("there is no trigger `{name}`; GET /api/triggers lists them");
    Refusal::new(RefusalKind::NotFound, "TRIGGER_NOT_FOUND", message)
}

pub(crate) fn trigger_exists(name: &TriggerName) -> Refusal {
    let message = format!(
        "there is a trigger `{name}` already; change it with PUT /api/triggers/{name}, or choose \
         another name"
    );
    Refusal::new(RefusalKind::Conflict, "TRIGGER_EXISTS", message).at("/name")
}

/// The refusal to make, change or remove a trigger whose name is one of the configuration's.
pub(crate) fn trigger_configured(name: &TriggerName) -> Refusal {
    let message = format!(
        "`{name}` is a trigger of the configuration: change it there, or pause it with POST \
         /api/triggers/{name}/pause"
    );
    Refusal::new(RefusalKind::Conflict, "TRIGGER_CONFIGURED", message)
}

/// The refusal of a name that belongs to a webhook of the host's own.
pub(crate) fn trigger_name_taken(name: &TriggerName) -> Refusal {
    let message = format!("`{name}` is the name of a webhook of the host's own; choose another");
    Refusal::new(RefusalKind::Invalid, "INVALID", message).at("/name")
}

pub(crate) fn too_many_triggers_of_user() -> Refusal {
    let message = format!("one user has at most {TRIGGERS_OF_USER_MAX} triggers; remove one");
    Refusal::new(RefusalKind::Conflict, "TOO_MANY_TRIGGERS", message)
}

pub(crate) fn too_many_triggers() -> Refusal {
    let message = format!("this host has at most {TRIGGERS_MAX} triggers; remove one");
    Refusal::new(RefusalKind::Conflict, "TOO_MANY_TRIGGERS", message)
}

pub(crate) fn trigger_busy(name: &TriggerName) -> Refusal {
    let message = format!(
        "{PENDING_MAX} occasions of `{name}` wait already; try again when it has dealt with some"
    );
    Refusal::new(RefusalKind::Busy, "TRIGGER_BUSY", message)
}

/// The refusal to run a trigger by hand that is fired by something that somebody has to send.
pub(crate) fn not_run_by_hand(kind: &TriggerKind) -> Refusal {
    let message = format!(
        "only a schedule and a heartbeat are run by hand, and this one is fired by `{}`",
        kind.key()
    );
    Refusal::new(RefusalKind::Invalid, "INVALID", message).at("path:trigger")
}

pub(crate) fn component_not_found(name: &str) -> Refusal {
    let message = format!(
        "there is no component `{name}` that is a trigger; add it to `components` in the \
         configuration, or leave `component` out"
    );
    Refusal::new(RefusalKind::NotFound, "COMPONENT_NOT_FOUND", message)
        .at(format!("{SPEC}/component"))
}

/// The refusal of what a trigger is to be, for a fault in one of its fields.
pub(crate) fn invalid_spec(fault: &SpecFault) -> Refusal {
    invalid_field(&fault.field, fault.to_string())
}

/// The refusal of a field of what a trigger is to be, such as `files.folder`.
pub(crate) fn invalid_field(field: &str, message: impl Into<String>) -> Refusal {
    let field = format!("{SPEC}/{}", field.replace('.', "/"));
    Refusal::new(RefusalKind::Invalid, "INVALID", message).at(field)
}

pub(crate) fn key_malformed(bytes_max: usize) -> Refusal {
    let message = format!("an idempotency key has 1 to {bytes_max} bytes");
    Refusal::new(RefusalKind::Invalid, "INVALID", message).at("header:Idempotency-Key")
}

pub(crate) fn key_reused() -> Refusal {
    let message = "this idempotency key belongs to another request; use a new one";
    Refusal::new(RefusalKind::Conflict, "IDEMPOTENCY_KEY_REUSED", message)
        .at("header:Idempotency-Key")
}
