//! Connectors: how people at messaging services reach agents, and how agents reach them.
//!
//! **In.** The messages of a poll or of a service's call are stored first, with the cursor, in one
//! commit; the service gets its answer after that. Then the inbound messages of each chat are
//! handed over, in their order. Those of an unknown sender are settled at once, an answer to a
//! question goes to the operation that asks, and all others become an input of the agent at
//! `/<user>/<connector>`. Each handover has an idempotency key that is derived from the service's
//! id, so that it happens once, however often it is begun.
//!
//! **Out.** A message is queued in the commit that causes it. It is sent one chunk at a time, and
//! in a chat one message at a time. The start of sending a chunk is stored before it is sent, so
//! that after a crash "sent" can be distinguished from "never sent".
//!
//! **Lost without harm**: acknowledgements to a service, typing indicators, and a reply that grows
//! before it is final. The final text is the last edit of the growing message if its id is known,
//! and otherwise a message of its own; `connectors/previews.rs` explains why neither loses nor
//! doubles it.
//!
//! - the served connectors: `connectors/served.rs`; a new configuration: `connectors/serving.rs`;
//!   troubles: `connectors/health.rs`, `connectors/troubles.rs`
//! - calls of components: `connectors/calls.rs`; their purposes: `connectors/asked.rs`; their
//!   entries in the ledger: `connectors/ledger.rs`
//! - polls: `connectors/polling.rs`; calls of services: `connectors/webhook.rs`, and their bound:
//!   `connectors/bucket.rs`; storing from both: `connectors/intake.rs`
//! - the order in which inbound messages are handed over: `connectors/handover.rs`; one chat:
//!   `connectors/settling.rs`, `connectors/settlement.rs`, `connectors/sender.rs`; inbound messages
//!   that become one input: `connectors/gathering.rs`; the input: `connectors/posting.rs`, with
//!   files: `connectors/attachments.rs`; answers: `connectors/answering.rs`; work done before a
//!   crash: `connectors/before.rs`
//! - new ids of people and groups, and chats in which an agent takes part:
//!   `connectors/following.rs`
//! - unknown senders: `connectors/unknown_senders.rs`, `connectors/pairing.rs`,
//!   `connectors/expiring.rs`
//! - the order in which messages are sent: `connectors/outbox.rs`; one message:
//!   `connectors/sending.rs`; words of the host's own: `connectors/queueing.rs`
//! - typing: `connectors/presence.rs`, `connectors/typing.rs`; growing replies:
//!   `connectors/previews.rs`; services that wait for an acknowledgement:
//!   `connectors/acknowledging.rs`
//! - commands of operators and users: `connectors/commands.rs`, and their results:
//!   `connectors/view.rs`

mod acknowledging;
mod answering;
mod asked;
mod attachments;
mod before;
mod bucket;
mod calls;
mod commands;
mod expiring;
mod following;
mod gathering;
mod handover;
mod health;
mod intake;
mod ledger;
mod outbox;
mod pairing;
mod polling;
mod posting;
mod presence;
mod previews;
mod queueing;
mod sender;
mod sending;
mod served;
mod serving;
mod settlement;
mod settling;
mod troubles;
mod typing;
mod undelivered;
mod unknown_senders;
mod view;
mod webhook;

pub use commands::{AcceptedInboundMessage, TestTarget};
pub use view::{ConnectorCondition, ConnectorState, OutboundMessageQuery};
pub use webhook::{ReceivedCall, ServiceAnswer};

use crate::core::Core;
use crate::worker;
use broker::Error;
use futures::future::BoxFuture;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The crash points of connectors.
pub(crate) const CRASH_POINTS: &[&str] = &[
    "edge.received.before",
    "edge.received.after",
    "edge.file.after",
    "edge.handed.after",
    "edge.answered.after",
    "edge.settled.before",
    "edge.settled.after",
    "edge.pair.bound",
    "edge.pair.before",
    "edge.pair.after",
    "edge.started.before",
    "edge.started.after",
    "edge.sent",
    "edge.delivered.before",
    "edge.delivered.after",
    "edge.requeue.before",
    "edge.requeue.after",
];

/// The connectors of a host: commands on them, and the calls of their services. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Connectors {
    shared: Arc<Shared>,
}

/// The state that the connectors' tasks and commands share.
struct Shared {
    core: Arc<Core>,
    /// The connectors that are served now.
    served: served::Registry,
    /// The bounds on calls of components.
    permits: calls::Permits,
    /// Wakes the handover after an inbound message was stored.
    arrived: Notify,
    /// Wakes the outbox: a message may be sent now that could not before.
    outbox: Notify,
    /// The latest notices to unknown senders.
    reported: Mutex<unknown_senders::RecentNotices>,
    /// Wrong pairing codes of users lately.
    guesses: Mutex<pairing::Guesses>,
    /// The messages in which replies grow.
    previews: previews::Previews,
    /// Previews that a host which is killed leaves to the next one.
    stored_previews: previews::Stored,
    /// The stored messages that their services wait to have acknowledged.
    acknowledgements: acknowledging::Acknowledgements,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("served", &self.served)
            .finish_non_exhaustive()
    }
}

impl Connectors {
    /// Starts the configured connectors. They continue with all earlier inbound and queued
    /// messages.
    pub(crate) async fn start(core: Arc<Core>) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            core: core.clone(),
            served: served::Registry::default(),
            permits: calls::Permits::default(),
            arrived: Notify::new(),
            outbox: Notify::new(),
            reported: Mutex::default(),
            guesses: Mutex::default(),
            previews: previews::Previews::default(),
            stored_previews: previews::Stored::default(),
            acknowledgements: acknowledging::Acknowledgements::default(),
        });
        shared.serve().await?;
        let keep_up = |name, task: fn(Arc<Shared>) -> BoxFuture<'static, ()>| {
            let shared = shared.clone();
            core.keep_up(name, move |_| task(shared.clone()));
        };
        keep_up("the handover of inbound messages", |it| {
            Box::pin(worker::run(handover::Handover(it)))
        });
        keep_up("the outbox", |it| {
            Box::pin(worker::run(outbox::Outbox::new(it)))
        });
        keep_up("the watch over replies", |it| Box::pin(presence::run(it)));
        keep_up("the end of pairing codes", |it| Box::pin(expiring::run(it)));
        for _ in 0..acknowledging::AT_A_TIME {
            keep_up("the acknowledgement of inbound messages", |it| {
                Box::pin(acknowledging::run(it))
            });
        }
        Ok(Self { shared })
    }

    /// Serves the connectors of the new configuration. Unchanged ones continue; work under way ends
    /// as it began.
    pub(crate) async fn replaced(&self) -> Result<(), Error> {
        self.shared.serve().await
    }
}
