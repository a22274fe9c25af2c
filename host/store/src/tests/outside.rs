//! A vocabulary for what comes from outside and goes there: triggers, connectors, outbound
//! messages.

use super::sample::{NOON, Sample, ada, agent, input, new, run, session};
use crate::{Commit, Expected};
use domain::connector::{Incoming, ReplyRoute, Said};
use domain::digest::Digest;
use domain::event::{
    ConnectorReceived, Event, InboundMessage, InboundMessageOutcome, InboundMessagesSettled,
    OutboundMessageCause, OutboundMessageOutcome, OutboundMessageQueued, OutboundMessageSettled,
    OutboundMessageStarted, PairingOffered, PostedMessage, ProviderTroubled, Received, Source,
    TriggerDefined, TriggerEventAccepted, TriggerEventFailed, TriggerFired, TriggerMessage,
    TriggerOrigin, TriggerPosted,
};
use domain::id::{ConnectorId, OutboundMessageId, Stream, TriggerEventId};
use domain::path::ConnectorName;
use domain::time::Timestamp;
use domain::trigger::{TriggerEvent, TriggerName, TriggerSpec, TriggerState};
use domain::trouble::ServiceTrouble;
use serde_json::{Value, json};
use uuid::Uuid;

/// So many milliseconds after noon.
pub(super) fn at(ms: u64) -> Timestamp {
    NOON.plus_ms(ms)
}

pub(super) fn trigger(n: u32) -> TriggerName {
    format!("trigger-{n:06}").parse().unwrap()
}

pub(super) fn of_trigger(n: u32) -> Stream {
    Stream::Trigger(trigger(n).id())
}

pub(super) fn trigger_event(n: u128) -> TriggerEventId {
    TriggerEventId(Uuid::from_u128(0xe000 + n))
}

pub(super) fn spec(on: &Value) -> TriggerSpec {
    let mut written = json!({ "target": { "agent": "assistant" } });
    for (key, value) in on.as_object().unwrap() {
        written[key] = value.clone();
    }
    serde_json::from_value(written).unwrap()
}

/// The specification of a trigger every hour.
pub(super) fn hourly() -> TriggerSpec {
    spec(&json!({ "schedule": { "every": "1h" } }))
}

pub(super) fn defined_as(n: u32, spec: TriggerSpec, due_ms: Option<u64>) -> Event {
    Event::TriggerDefined(TriggerDefined {
        name: trigger(n),
        spec: Box::new(spec),
        origin: TriggerOrigin::Api { user: ada() },
        next_due: due_ms.map(at),
        time: NOON,
    })
}

/// A trigger of Ada's, due at this time.
pub(super) fn defined(n: u32, due_ms: u64) -> Event {
    defined_as(n, hourly(), Some(due_ms))
}

/// A trigger event of the schedule, which goes on an hour later.
pub(super) fn due(n: u32, of: u128, due_ms: u64) -> Event {
    Event::TriggerEventAccepted(TriggerEventAccepted {
        name: trigger(n),
        trigger_event: trigger_event(of),
        what: Box::new(TriggerEvent::Due {
            due: at(due_ms),
            missed: 0,
        }),
        run_by: None,
        next_due: Some(at(due_ms + 3_600_000)),
        scheduled: true,
        time: at(due_ms),
    })
}

/// A call of a webhook with these words.
pub(super) fn called(n: u32, of: u128, words: &str) -> Event {
    let what = json!({ "kind": "webhook", "call_id": words, "path": "", "headers": [],
        "query": [], "payload": { "text": words } });
    Event::TriggerEventAccepted(TriggerEventAccepted {
        name: trigger(n),
        trigger_event: trigger_event(of),
        what: Box::new(serde_json::from_value(what).unwrap()),
        run_by: None,
        next_due: None,
        scheduled: false,
        time: at(1),
    })
}

pub(super) fn fired(n: u32, of: u128, messages: &[&str]) -> Event {
    let message = |(place, text): (usize, &&str)| TriggerMessage {
        target: None,
        text: (*text).to_owned(),
        key: format!("trigger:{n}:{of}:{place}"),
    };
    Event::TriggerFired(TriggerFired {
        name: trigger(n),
        trigger_event: trigger_event(of),
        component: Digest::of(b"schedule"),
        messages: messages.iter().enumerate().map(message).collect(),
        state: None,
        rejected: None,
        took_us: 5,
        time: at(2),
    })
}

/// The same, with something to keep.
pub(super) fn fired_keeping(n: u32, of: u128, message: &str, state: &[u8]) -> Event {
    let Event::TriggerFired(it) = fired(n, of, &[message]) else {
        panic!("a trigger run")
    };
    Event::TriggerFired(TriggerFired {
        state: Some(TriggerState {
            format: 1,
            bytes: state.to_vec(),
        }),
        ..it
    })
}

pub(super) fn failed(n: u32, of: u128, retry_ms: Option<u64>) -> Event {
    failed_with("it trapped", n, of, retry_ms)
}

pub(super) fn failed_with(error: &str, n: u32, of: u128, retry_ms: Option<u64>) -> Event {
    Event::TriggerEventFailed(TriggerEventFailed {
        name: trigger(n),
        trigger_event: trigger_event(of),
        attempt: 1,
        error: error.to_owned(),
        retry_at: retry_ms.map(at),
        time: at(2),
    })
}

/// The messages went to these sessions.
pub(super) fn posted(n: u32, of: u128, to: &[u128]) -> Event {
    let accepted = |to: &u128| PostedMessage::Accepted {
        input: input(*to),
        session: session(*to),
        agent: agent(1),
    };
    Event::TriggerPosted(TriggerPosted {
        name: trigger(n),
        trigger_event: trigger_event(of),
        results: to.iter().map(accepted).collect(),
        time: at(3),
    })
}

pub(super) fn source_of(n: u32, of: u128) -> Source {
    Source::Trigger {
        trigger: trigger(n),
        trigger_event: trigger_event(of),
        quiet: None,
        reply_to: None,
    }
}

pub(super) fn telegram() -> ConnectorName {
    "telegram".parse().unwrap()
}

pub(super) fn of_telegram() -> Stream {
    Stream::Connector(ConnectorId::of_name("telegram"))
}

pub(super) fn chat(chat: &str) -> ReplyRoute {
    ReplyRoute {
        connector: telegram(),
        chat: chat.to_owned(),
    }
}

pub(super) fn from_chat(name: &str) -> Source {
    Source::Connector {
        reply_to: chat(name),
        messages: vec!["m".to_owned()],
    }
}

/// A message of a chat.
pub(super) fn inbound_message(n: u128, chat: &str, text: &str) -> InboundMessage {
    InboundMessage {
        id: trigger_event(n),
        message: Incoming {
            id: format!("message-{n}"),
            sender: chat.to_owned(),
            sender_name: None,
            group: None,
            chat: chat.to_owned(),
            said: Said::Text {
                text: text.to_owned(),
            },
            quotations: Vec::new(),
            attachments: Vec::new(),
            sent_at: NOON,
        },
    }
}

fn received_as(what: Received, ms: u64) -> Event {
    Event::ConnectorReceived(ConnectorReceived {
        connector: telegram(),
        what,
        time: at(ms),
    })
}

pub(super) fn received(inbound_message: InboundMessage, ms: u64) -> Event {
    received_as(Received::InboundMessage(Box::new(inbound_message)), ms)
}

/// The cursor at which the next poll continues.
pub(super) fn polled(cursor: &str, ms: u64) -> Event {
    received_as(Received::Cursor(cursor.to_owned()), ms)
}

pub(super) fn settled_as(inbound_messages: &[u128], outcome: InboundMessageOutcome) -> Event {
    Event::InboundMessagesSettled(InboundMessagesSettled {
        connector: telegram(),
        inbound_messages: inbound_messages.iter().map(|n| trigger_event(*n)).collect(),
        outcome,
        time: at(5),
    })
}

/// A session took them.
pub(super) fn taken(inbound_messages: &[u128], by: u128) -> Event {
    settled_as(
        inbound_messages,
        InboundMessageOutcome::Accepted {
            user: ada(),
            input: input(by),
            session: session(by),
            agent: agent(1),
        },
    )
}

pub(super) fn outbound_message(n: u32) -> OutboundMessageId {
    OutboundMessageId::mint(ConnectorId::of_name("telegram"), "", "sample", n)
}

/// A reply of a run of a session.
pub(super) fn queued(n: u32, to: &str, of: u128, text: &str) -> Event {
    let cause = OutboundMessageCause::Turn {
        session: session(of),
        run: run(of),
    };
    queued_because(n, to, cause, text)
}

pub(super) fn queued_because(n: u32, to: &str, cause: OutboundMessageCause, text: &str) -> Event {
    Event::OutboundMessageQueued(OutboundMessageQueued {
        connector: telegram(),
        outbound_message: outbound_message(n),
        chat: to.to_owned(),
        text: text.to_owned(),
        choices: Vec::new(),
        without_buttons: None,
        cause,
        time: at(10),
    })
}

pub(super) fn sending(n: u32, attempt: u32, chunk: u32) -> Event {
    Event::OutboundMessageStarted(OutboundMessageStarted {
        connector: telegram(),
        outbound_message: outbound_message(n),
        attempt,
        chunk,
        edits: None,
        time: at(11),
    })
}

pub(super) fn sent(n: u32, outcome: OutboundMessageOutcome) -> Event {
    Event::OutboundMessageSettled(OutboundMessageSettled {
        connector: telegram(),
        outbound_message: outbound_message(n),
        outcome,
        edits: None,
        time: at(12),
    })
}

pub(super) fn delivered(n: u32) -> Event {
    sent(
        n,
        OutboundMessageOutcome::Delivered {
            service_ids: vec![format!("s{n}")],
        },
    )
}

/// A commit for a stream with one guard.
pub(super) fn guarded(guard: impl Into<crate::Guard>, stream: Stream, event: Event) -> Commit {
    Commit::new()
        .guard(guard)
        .append(stream, Expected::Any, vec![new(event)])
}

/// A trigger that an agent made.
pub(super) fn made_by(n: u32, by: u128) -> Event {
    let Event::TriggerDefined(it) = defined(n, 100) else {
        panic!("a definition")
    };
    Event::TriggerDefined(TriggerDefined {
        origin: TriggerOrigin::Agent {
            agent: agent(by),
            user: ada(),
            untrusted: false,
        },
        ..it
    })
}

pub(super) fn offered(key: &str, code: &str, ms: u64) -> Event {
    Event::PairingOffered(PairingOffered {
        key: key.parse().unwrap(),
        name: Some("Eve".to_owned()),
        chat: "a".to_owned(),
        code: code.to_owned(),
        expires: at(ms + 100),
        time: at(ms),
    })
}

/// Something for each table of what comes from outside and goes there.
pub(super) async fn some_of_each(sample: &Sample) {
    let of_trigger_1 = vec![
        made_by(1, 1),
        called(1, 1, "call"),
        fired(1, 1, &["x"]),
        posted(1, 1, &[1]),
    ];
    sample.append(of_trigger(1), of_trigger_1).await;
    let some = vec![
        received(inbound_message(5, "a", "hello"), 1),
        polled("c", 1),
        offered("telegram:1", "AA", 2),
        queued(1, "a", 1, "hello yourself"),
    ];
    sample.append(of_telegram(), some).await;
    let outage = Event::ProviderTroubled(ProviderTroubled {
        provider: "local".to_owned(),
        trouble: ServiceTrouble::Failing {
            reason: "no connection".to_owned(),
        },
        time: NOON,
    });
    sample.append(Stream::Host, vec![outage]).await;
}
