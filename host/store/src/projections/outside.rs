//! Events of triggers, connectors and providers of models: the tables of each.

use super::{intake, outbound_messages, pairings, providers, trigger_events, triggers};
use crate::sql::{self, Sql};
use domain::event::{Event, Recorded};

/// Something happened to a trigger, a connector or a provider of models.
pub(super) fn changed(sql: &Sql<'_>, recorded: &Recorded, event: &Event) -> sql::Result<()> {
    let position = recorded.position;
    match event {
        Event::TriggerDefined(it) => triggers::defined(sql, it, position),
        Event::TriggerRemoved(it) => triggers::removed(sql, it, position),
        Event::TriggerPaused(it) => triggers::paused(sql, it),
        Event::TriggerResumed(it) => triggers::resumed(sql, it, position),
        Event::TriggerEventAccepted(it) => triggers::accepted(sql, it, position),
        Event::TriggerEventsSkipped(it) => triggers::skipped(sql, it, position),
        Event::TriggerFired(it) => triggers::fired(sql, it, position),
        Event::TriggerEventFailed(it) => triggers::failed(sql, it, position),
        Event::TriggerPosted(it) => trigger_events::posted(sql, it, position),
        Event::TriggerTroubled(it) => triggers::troubled(sql, it),
        Event::ConnectorReceived(it) => intake::received(sql, it, position),
        Event::InboundMessagesSettled(it) => intake::settled(sql, it, recorded),
        Event::ConnectorTroubled(it) => intake::troubled(sql, it),
        Event::PairingOffered(it) => pairings::offered(sql, it),
        Event::PairingSettled(it) => pairings::settled(sql, it),
        Event::OutboundMessageQueued(it) => outbound_messages::queued(sql, it, position),
        Event::OutboundMessageStarted(it) => outbound_messages::started(sql, it, position),
        Event::OutboundMessageSettled(it) => outbound_messages::settled(sql, it, position),
        Event::OutboundMessageRequeued(it) => outbound_messages::requeued(sql, it, position),
        Event::ProviderTroubled(it) => providers::troubled(sql, it),
        // The others have projections of their own.
        _ => Ok(()),
    }
}
