//! Words of the host's own that are queued for people: refusals, pairing codes, tests.

use super::served::Served;
use crate::journal::Context;
use domain::connector::Outbound;
use domain::event::{DeliveryCause, DeliveryQueued, Event, NewEvent};
use domain::id::DeliveryId;
use domain::time::Timestamp;
use store::ArrivalRow;

/// Returns the event by which words of the host's are queued that answer an arrival.
pub(super) fn hosts_words(
    served: &Served,
    arrival: &ArrivalRow,
    text: &str,
    now: Timestamp,
) -> NewEvent {
    let arrival_id = arrival.id;
    let cause = DeliveryCause::Host {
        arrival: arrival_id,
    };
    let chat = &arrival.message.chat;
    let named = format!("arrival:{arrival_id}");
    let delivery = DeliveryId::mint(served.id(), chat, &named, 0);
    let queued = DeliveryQueued {
        connector: served.name.clone(),
        delivery,
        chat: chat.clone(),
        text: within_bounds(text),
        choices: Vec::new(),
        without_buttons: None,
        cause,
        time: now,
    };
    Context::new(served.origin(), now).event(Event::DeliveryQueued(queued))
}

/// Returns a text as it is queued: no longer than what is sent at most.
pub(super) fn within_bounds(text: &str) -> String {
    Outbound::text(text).map_or_else(String::new, |outbound| outbound.text)
}
