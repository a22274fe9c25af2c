//! Messages to chats at messaging services, from commands and drivers.

use crate::journal::Context;
use domain::connector::{Destination, ReplyRoute};
use domain::event::{Event, InputAccepted, OutboundMessageQueued, Source};
use domain::id::{ConnectorId, Stream};
use std::collections::BTreeSet;
use store::{Commit, Expected};

/// Adds an event to a commit, behind those that its stream has in it already.
pub(crate) fn add(commit: &mut Commit, stream: Stream, context: &Context, event: Event) {
    let event = context.event(event);
    match commit
        .appends
        .iter_mut()
        .find(|append| append.stream == stream)
    {
        Some(append) => append.events.push(event),
        None => commit.appends.push(store::Append {
            stream,
            expected: Expected::Any,
            events: vec![event],
        }),
    }
}

/// Reports to the chats of inputs that no turn will begin with them, once for each chat.
pub(crate) fn tell_of_dead(commit: &mut Commit, dead: &[InputAccepted], context: &Context) {
    let mut reported = BTreeSet::new();
    for input in dead {
        let Destination::Chat(recipient) = Source::destination([&input.source]) else {
            continue;
        };
        if !reported.insert(recipient.route.clone()) {
            continue;
        }
        let time = context.time;
        let queued = OutboundMessageQueued::of_dead(&recipient, input.session, input.input, time);
        if let Some(queued) = queued {
            let stream = outbox(&recipient.route);
            add(
                commit,
                stream,
                context,
                Event::OutboundMessageQueued(queued),
            );
        }
    }
}

/// Returns the stream of the messages to a chat.
pub(crate) fn outbox(route: &ReplyRoute) -> Stream {
    Stream::Connector(ConnectorId::of_name(route.connector.as_str()))
}
