//! Chats of web pages: who may use them, and what is shown to visitors again.

use super::host::{Answer, Host};
use crate::routes::description;
use domain::connector::INCOMING_TEXT_BYTES_MAX;
use domain::digest::Salt;
use domain::event::{Event, NewEvent, OutboundMessageCause, OutboundMessageQueued, Subject};
use domain::id::{ConnectorId, EventId, OutboundMessageId, Stream, TriggerEventId};
use domain::path::ConnectorKey;
use domain::time::Timestamp;
use edge::EdgeSettings;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::{Commit, Expected};
use uuid::Uuid;

const PAGE: &str = "https://www.example.org";
const JSON: &str = "content-type: application/json";

/// A host with the chat `site`.
async fn host() -> Host {
    let site = json!({
        "component": "direct", "agent": "assistant",
        "configuration": { "origins": [PAGE] },
    });
    let site = serde_json::from_value(site).unwrap();
    Host::start_with_edge(EdgeSettings {
        connectors: BTreeMap::from([("site".parse().unwrap(), site)]),
        ..EdgeSettings::default()
    })
    .await
}

async fn come(host: &Host) -> (String, String) {
    let path = "/chat/site/visitors";
    let come = host.send_as_it_is("POST", path, &["host: localhost"], "");
    let received = come.await;
    assert_eq!(received.status, 201, "{}", received.body);
    assert!(received.has("cache-control: no-store"), "{}", received.head);
    let text = |name: &str| received.json()[name].as_str().unwrap().to_owned();
    (text("visitor_id"), text("token"))
}

async fn say(host: &Host, token: &str, message: &Value) -> Answer {
    let path = "/chat/site/messages";
    host.send_with(token, "POST", path, &[JSON], &message.to_string())
        .await
}

/// Queues a message to a visitor, as the end of a turn does.
async fn tell(host: &Host, visitor: &str, text: &str) -> u64 {
    let id = ConnectorId::of_name("site");
    let cause = Uuid::now_v7().to_string();
    let queued = Event::OutboundMessageQueued(OutboundMessageQueued {
        connector: "site".parse().unwrap(),
        outbound_message: OutboundMessageId::mint(id, visitor, &cause, 0),
        chat: visitor.to_owned(),
        text: text.to_owned(),
        choices: Vec::new(),
        without_buttons: None,
        cause: OutboundMessageCause::Host {
            inbound_message: TriggerEventId(Uuid::now_v7()),
        },
        time: Timestamp(1),
    });
    let event = NewEvent {
        id: EventId(Uuid::now_v7()),
        event: queued,
        subject: Subject::default(),
        actor: "connector:site".to_owned(),
        causation: None,
        correlation: None,
        time: Timestamp(1),
        salt: Salt([1; 16]),
    };
    let commit = Commit::new().append(Stream::Connector(id), Expected::Any, vec![event]);
    host.store.commit(commit).await.unwrap().last_position
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_is_known_by_a_token_of_which_nothing_is_kept() {
    let host = host().await;
    let (visitor, token) = come(&host).await;
    let key: ConnectorKey = format!("site:{visitor}").parse().unwrap();
    let bound = host.store.connector_key(&key).await.unwrap().unwrap();
    assert_eq!(bound.user.to_string(), format!("visitor-{visitor}"));
    let message = json!({ "id": "1", "text": "hello" });
    let wrong = format!("ahv_{}", "0".repeat(64));
    for credential in ["", "ahv_1", wrong.as_str()] {
        let refused = say(&host, credential, &message).await;
        assert_eq!(refused.status, 401, "{credential}: {}", refused.body);
    }
    let said = say(&host, &token, &message).await;
    assert_eq!(said.status, 202, "{}", said.body);
    assert_eq!(said.json()["replayed"], false);
    let again = say(&host, &token, &message).await;
    assert_eq!(
        (
            &again.json()["inbound_message_id"],
            &again.json()["replayed"]
        ),
        (&said.json()["inbound_message_id"], &json!(true))
    );
    // A visitor's token opens nothing else, and no other chat.
    assert_eq!(host.get_with(&token, "/api/agents").await.status, 401);
    let operator = "local".parse().unwrap();
    let user = bound.user.clone();
    host.broker
        .connectors()
        .unbind(broker::By::from(&operator), &user, &key)
        .await
        .unwrap();
    assert_eq!(say(&host, &token, &message).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_pages_that_the_operator_lists_use_a_chat() {
    let host = host().await;
    let ask = async |method: &str, name: &str, origin: &str| {
        let origin = format!("origin: {origin}");
        let headers = ["host: localhost", origin.as_str()];
        let path = format!("/chat/{name}/visitors");
        host.send_as_it_is(method, &path, &headers, "").await
    };
    let asked = ask("OPTIONS", "site", PAGE).await;
    assert_eq!(asked.status, 204);
    for header in [
        "access-control-allow-origin: https://www.example.org",
        "access-control-allow-headers: authorization, content-type, last-event-id",
        "access-control-allow-methods: GET, POST",
        "vary: origin",
    ] {
        assert!(asked.has(header), "{header}: {}", asked.head);
    }
    let received = ask("POST", "site", PAGE).await;
    assert!(
        received.status == 201
            && received.has("access-control-allow-origin: https://www.example.org"),
        "{}",
        received.head
    );
    for method in ["OPTIONS", "POST"] {
        let refused = ask(method, "site", "https://evil.example").await;
        assert_eq!(refused.json()["code"], "ORIGIN_NOT_ALLOWED", "{method}");
        assert!(!refused.has("access-control-allow-origin"), "{method}");
        let unknown = ask(method, "other", PAGE).await;
        assert_eq!(unknown.json()["code"], "CONNECTOR_NOT_FOUND", "{method}");
    }
    let get = ask("GET", "site", PAGE).await;
    assert_eq!(get.status, 405, "{}", get.body);
}

/// Without the header a page is told only that its request failed, and not that it may come again.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_told_that_the_host_starts_before_it_is_known_which_pages_may_ask() {
    let host = Host::starting(crate::Limits::default()).await;
    let origin = format!("origin: {PAGE}");
    let headers = ["host: localhost", origin.as_str()];
    let path = "/chat/site/visitors";
    let asked = host.send_as_it_is("OPTIONS", path, &headers, "").await;
    let come = host.send_as_it_is("POST", path, &headers, "").await;
    assert_eq!(asked.status, 204, "{}", asked.head);
    assert_eq!(
        (come.status, come.json()["code"].as_str()),
        (503, Some("STARTING"))
    );
    assert!(come.has("retry-after: "), "{}", come.head);
    for answer in [asked, come] {
        let allowed = format!("access-control-allow-origin: {PAGE}");
        assert!(answer.has(&allowed), "{}", answer.head);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_to_a_visitor_is_shown_again_and_only_to_them() {
    let host = host().await;
    let (visitor, token) = come(&host).await;
    let (other, others) = come(&host).await;
    let first = tell(&host, &visitor, "one").await;
    tell(&host, &other, "not yours").await;
    let path = "/chat/site/events";
    let mut frames = host.follow_with(&token, path, &[]).await;
    let connected = frames.next_event().await.unwrap();
    assert_eq!(connected.field("event"), Some("connected"));
    assert_eq!(connected.data()["visitor_id"], visitor.as_str());
    let shown = frames.next_event().await.unwrap();
    assert_eq!(
        (shown.field("event"), shown.id()),
        (Some("message"), Some(first))
    );
    assert_eq!(shown.data()["text"], "one");
    let second = tell(&host, &visitor, "two").await;
    let shown = frames.next_event().await.unwrap();
    assert_eq!(
        (shown.id(), &shown.data()["text"]),
        (Some(second), &json!("two"))
    );

    let last = format!("last-event-id: {first}");
    let mut again = host.follow_with(&token, path, &[&last]).await;
    assert_eq!(
        again.next_event().await.unwrap().field("event"),
        Some("connected")
    );
    assert_eq!(again.next_event().await.unwrap().id(), Some(second));
    let mut beside = host.follow_with(&others, path, &[]).await;
    beside.next_event().await.unwrap();
    assert_eq!(
        beside.next_event().await.unwrap().data()["text"],
        "not yours"
    );

    // After a restored backup the page is ahead of everything, and begins anew.
    let ahead = "last-event-id: 900000";
    let mut reset = host.follow_with(&token, path, &[ahead]).await;
    reset.next_event().await.unwrap();
    let frame = reset.next_event().await.unwrap();
    assert_eq!((frame.field("event"), frame.id()), (Some("reset"), Some(0)));
    assert_eq!(reset.next_event().await.unwrap().id(), Some(first));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_is_bounded_in_words_and_bytes() {
    let host = host().await;
    let (_, token) = come(&host).await;
    for (message, status, field) in [
        (json!({ "text": " " }), 422, Some("/text")),
        (
            json!({ "text": "a".repeat(INCOMING_TEXT_BYTES_MAX + 1) }),
            422,
            Some("/text"),
        ),
        (
            json!({ "text": "a".repeat(2 * INCOMING_TEXT_BYTES_MAX) }),
            413,
            None,
        ),
        (json!({ "id": "", "text": "a" }), 422, Some("/id")),
        (json!({ "text": "a", "more": 1 }), 422, Some("/more")),
        (json!({}), 422, Some("/text")),
    ] {
        let refused = say(&host, &token, &message).await;
        assert_eq!(refused.status, status, "{}", refused.body);
        assert_eq!(refused.json()["field"].as_str(), field, "{}", refused.body);
    }
    let mut limited = None;
    for number in 0..30 {
        let message = json!({ "id": number.to_string(), "text": "again" });
        let answer = say(&host, &token, &message).await;
        if answer.status == 429 {
            limited = Some(answer);
            break;
        }
    }
    let limited = limited.expect("a visitor says as much as they like");
    assert_eq!(limited.json()["code"], "VISITOR_LIMIT");
    assert!(limited.has("retry-after: "), "{}", limited.head);
}

#[test]
fn the_frames_of_a_chat_are_described_with_its_stream() {
    let document = description();
    let stream = &document["paths"]["/chat/{connector}/events"]["get"];
    let events = stream["x-events"].as_object().unwrap();
    let names: Vec<&str> = events.keys().map(String::as_str).collect();
    for name in [
        "connected",
        "message",
        "question",
        "question_closed",
        "typing",
        "delta",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let described = &document["components"]["schemas"]["VisitorQuestionFrame"]["properties"];
    assert!(described["choices"].is_object(), "{described}");
}
