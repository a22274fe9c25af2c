//! Words of the host's own that are queued for people: refusals, pairing codes, tests.

use super::served::Served;
use crate::journal::Context;
use domain::connector::Outbound;
use domain::event::{Event, NewEvent, OutboundMessageCause, OutboundMessageQueued};
use domain::id::OutboundMessageId;
use domain::time::Timestamp;
use store::InboundMessageRow;

/// Returns the event by which words of the host's are queued that answer an inbound message.
pub(super) fn hosts_words(
    served: &Served,
    inbound_message: &InboundMessageRow,
    text: &str,
    now: Timestamp,
) -> NewEvent {
    let inbound_message_id = inbound_message.id;
    let cause = OutboundMessageCause::Host {
        inbound_message: inbound_message_id,
    };
    let chat = &inbound_message.message.chat;
    let named = format!("inbound_message:{inbound_message_id}");
    let outbound_message = OutboundMessageId::mint(served.id(), chat, &named, 0);
    let queued = OutboundMessageQueued {
        connector: served.name.clone(),
        outbound_message,
        chat: chat.clone(),
        text: within_bounds(text),
        choices: Vec::new(),
        without_buttons: None,
        cause,
        time: now,
    };
    Context::new(served.origin(), now).event(Event::OutboundMessageQueued(queued))
}

/// Returns a text as it is queued, truncated to the maximum of a message.
pub(super) fn within_bounds(text: &str) -> String {
    Outbound::text(text).map_or_else(String::new, |outbound| outbound.text)
}
