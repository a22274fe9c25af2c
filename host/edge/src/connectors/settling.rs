//! The inbound messages of one chat, processed one batch after the other, each to its settlement.

use super::sender::Sender;
use super::served::Served;
use super::settlement::Settlement;
use super::{Shared, gathering, queueing};
use crate::journal::Context;
use crate::worker::Next;
use broker::Error;
use domain::backoff::Backoff;
use domain::connector::{Reception, kept_reason, key_of, receive};
use domain::error_code::ErrorKind;
use domain::event::{Event, InboundMessageOutcome, InboundMessagesSettled, NewEvent, Subject};
use domain::id::TriggerEventId;
use domain::refusal::Refusal;
use domain::time::Timestamp;
use store::{Commit, CommitError, ConnectorGuard, Expected, InboundMessageRow};

/// Tries of inbound messages that the host has no place for.
const TRIES_MAX: u32 = 20;
/// Tries of files that the service does not give.
const FILE_TRIES_MAX: u32 = 5;
/// Pauses between two tries.
const AGAIN: Backoff = Backoff {
    first_ms: 500,
    most_ms: 30_000,
};

/// The notice for a message that was not accepted for lack of a place.
const BUSY: &str = "There is too much to do at the moment. Please try again later.";
/// The words for a message that was refused.
const REFUSED: &str = "Your message could not be taken.";

/// Deals with inbound messages of a chat after so many failures in a row.
pub(super) async fn settle(
    shared: &Shared,
    served: &Served,
    inbound_messages: Vec<InboundMessageRow>,
    failures: u32,
) -> Next {
    let mut rest = inbound_messages.as_slice();
    let mut failures_of_first = failures;
    while !rest.is_empty() {
        let is_last_try = failures_of_first >= TRIES_MAX;
        let dealt_with = match deal_with(shared, served, rest, failures_of_first).await {
            Err(Error::Refused(refusal)) if refusal.kind() != ErrorKind::Busy || is_last_try => {
                Ok(refused(shared, served, rest, &refusal))
            }
            dealt_with => dealt_with,
        };
        let stored = match dealt_with {
            Ok(settlement) => store_settlement(shared, served, rest, settlement).await,
            Err(error) => Err(error),
        };
        match stored {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) => {
                tracing::info!(
                    connector.name = %served.name,
                    failures,
                    error = &error as &dyn std::error::Error,
                    "inbound messages cannot be handed over now; it will be tried again"
                );
                return Next::Again {
                    ms: AGAIN.pause_ms(failures.saturating_add(1)),
                };
            }
        }
        failures_of_first = 0;
    }
    Next::GoOn
}

/// Processes the first inbound messages after so many failures in a row, and returns their outcome.
async fn deal_with(
    shared: &Shared,
    served: &Served,
    inbound_messages: &[InboundMessageRow],
    failures: u32,
) -> Result<Settlement, Error> {
    let Some(first) = inbound_messages.first() else {
        return Ok(Settlement::new(0, InboundMessageOutcome::Ignored));
    };
    let key = match key_of(&served.name, &first.message) {
        Ok(key) => key,
        Err(fault) => {
            let reason = kept_reason(&fault.to_string());
            return Ok(Settlement::new(
                1,
                InboundMessageOutcome::Refused { reason },
            ));
        }
    };
    let bound = shared.core.store().connector_key(&key).await?;
    let user = bound.as_ref().map(|row| &row.user);
    match receive(&served.spec, &served.name, &first.message, user) {
        Reception::Ignore => {
            let count = gathering::same_sender_len(inbound_messages);
            Ok(Settlement::new(count, InboundMessageOutcome::Ignored))
        }
        Reception::Refuse { text } => Ok(shared.refuse(served, &key, inbound_messages, &text)),
        Reception::Pair => shared.offer_pairing(served, &key, inbound_messages).await,
        Reception::Accept {
            user,
            path,
            own_words,
        } => {
            let sender = Sender {
                user,
                path,
                own_words,
                without_late_files: failures >= FILE_TRIES_MAX,
            };
            take(shared, served, &sender, inbound_messages).await
        }
    }
}

/// Processes inbound messages of a known sender. Work done before a crash is not repeated, an
/// answer to a question goes to it, and all others become an input.
async fn take(
    shared: &Shared,
    served: &Served,
    sender: &Sender,
    inbound_messages: &[InboundMessageRow],
) -> Result<Settlement, Error> {
    let batch = inbound_messages
        .get(..gathering::batch_len(inbound_messages))
        .unwrap_or_default();
    let Some(first) = batch.first() else {
        return Ok(Settlement::new(0, InboundMessageOutcome::Ignored));
    };
    let answered = match shared.answered_before(served, sender, first).await? {
        None if shared.is_posted(served, first).await? => None,
        None => shared.answer(served, sender, first).await?,
        answered => answered,
    };
    if let Some(settlement) = answered {
        return Ok(settlement);
    }
    let reminder = shared.reminder(served, sender, first).await?;
    let mut settlement = shared.post(served, sender, batch).await?;
    // An inbound message gets at most one notice.
    if settlement.also.is_empty() {
        settlement.also.extend(reminder);
    }
    Ok(settlement)
}

/// Returns the settlement of inbound messages that were refused for good, with words that say so.
fn refused(
    shared: &Shared,
    served: &Served,
    inbound_messages: &[InboundMessageRow],
    refusal: &Refusal,
) -> Settlement {
    let count = gathering::batch_len(inbound_messages).max(1);
    let reason = kept_reason(&refusal.message);
    let is_in_group = inbound_messages
        .first()
        .is_some_and(|first| first.message.group.is_some());
    // In a group it would reach people whom it does not concern.
    let text = match refusal.kind() {
        ErrorKind::Busy => BUSY.to_owned(),
        _ if is_in_group => REFUSED.to_owned(),
        _ => format!("{REFUSED} {reason}"),
    };
    let also = inbound_messages
        .first()
        .map(|first| queueing::hosts_words(served, first, &text, shared.core.now()));
    Settlement {
        count,
        outcome: InboundMessageOutcome::Refused { reason },
        also: also.into_iter().collect(),
    }
}

/// Stores the outcomes of inbound messages. Returns their number.
async fn store_settlement(
    shared: &Shared,
    served: &Served,
    inbound_messages: &[InboundMessageRow],
    settlement: Settlement,
) -> Result<usize, Error> {
    let Settlement {
        count,
        outcome,
        also,
    } = settlement;
    let now = shared.core.now();
    let ids: Vec<TriggerEventId> = inbound_messages
        .iter()
        .take(count)
        .map(|it| it.id)
        .collect();
    let has_words = !also.is_empty();
    let mut events = also;
    events.push(settled(served, ids.clone(), outcome, now));
    let mut commit = Commit::new().append(served.stream(), Expected::Any, events);
    commit.guards.extend(ids.iter().map(|inbound_message| {
        ConnectorGuard::InboundMessageOpen {
            connector: served.name.clone(),
            inbound_message: *inbound_message,
        }
        .into()
    }));
    store::point("edge.settled.before");
    match shared.core.store().commit(commit).await {
        // A conflict: they were settled, or erased, meanwhile.
        Ok(_) | Err(CommitError::Conflict(_)) => {}
        Err(error) => return Err(error.into()),
    }
    store::point("edge.settled.after");
    served.lasting.settled(count);
    if has_words {
        shared.outbox.notify_one();
    }
    Ok(count)
}

/// Returns the event of inbound messages that are settled, which goes with the session that took
/// them.
fn settled(
    served: &Served,
    inbound_messages: Vec<TriggerEventId>,
    outcome: InboundMessageOutcome,
    now: Timestamp,
) -> NewEvent {
    let subject = match &outcome {
        InboundMessageOutcome::Accepted { session, agent, .. } => Subject {
            agent: Some(*agent),
            session: Some(*session),
            run: None,
        },
        InboundMessageOutcome::Configured { session, .. } => Subject {
            session: Some(*session),
            ..Subject::default()
        },
        InboundMessageOutcome::Answered { .. }
        | InboundMessageOutcome::Ignored
        | InboundMessageOutcome::Unknown
        | InboundMessageOutcome::Paired
        | InboundMessageOutcome::Refused { .. } => Subject::default(),
    };
    let event = Event::InboundMessagesSettled(InboundMessagesSettled {
        connector: served.name.clone(),
        inbound_messages,
        outcome,
        time: now,
    });
    NewEvent {
        subject,
        ..Context::new(served.origin(), now).event(event)
    }
}
