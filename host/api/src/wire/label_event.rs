//! Events about a session's label, its queue, connector keys and users' definitions, in public
//! form.

use domain::event::Event;
use serde_json::{Value, json};

/// An event's data; null for one of another kind.
pub(super) fn data(event: &Event) -> Value {
    match event {
        Event::InputCancelled(it) => {
            json!({ "input_id": it.input, "cancelled_by": it.cancelled_by, "reason": it.reason })
        }
        Event::InputsDropped(it) => json!({ "input_ids": it.inputs, "overflow": it.overflow }),
        Event::SessionRenamed(it) => json!({ "name": it.name }),
        Event::SessionPinned(it) => json!({ "pinned": it.pinned }),
        Event::SessionAttributed(it) => json!({ "attributes": it.attributes }),
        Event::SessionCleared(it) => json!({ "revision": it.revision }),
        Event::SessionDeleted(it) => json!({ "deleted_by": it.deleted_by }),
        Event::QueueConfigured(it) => json!({ "queue": it.queue }),
        Event::ConnectorKeyBound(it) => {
            json!({ "key": it.key, "user_id": it.user_id, "bound_by": it.bound_by })
        }
        Event::ConnectorKeyUnbound(it) => {
            json!({ "key": it.key, "user_id": it.user_id, "unbound_by": it.unbound_by })
        }
        _ => Value::Null,
    }
}

/// The data of an event about a definition that a user makes; null for one of another kind.
pub(super) fn definition(event: &Event) -> Value {
    match event {
        // What a user says of an agent of theirs is shown with the definition, and to nobody else.
        Event::DefinitionMade(it) => {
            json!({ "definition": it.definition, "template": it.template, "user_id": it.user_id })
        }
        Event::DefinitionRemoved(it) => json!({
            "definition": it.definition,
            "user_id": it.user_id,
            "removed_by": it.removed_by,
        }),
        _ => Value::Null,
    }
}

/// The data of an event about a purge; null for one of another kind.
pub(super) fn purge(event: &Event) -> Value {
    match event {
        Event::PurgeBegun(it) => json!({ "begun_by": it.begun_by }),
        Event::Purged(it) => {
            json!({ "purged_by": it.purged_by, "erased": it.erased, "kept": it.kept })
        }
        _ => Value::Null,
    }
}
