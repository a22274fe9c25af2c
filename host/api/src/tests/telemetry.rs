//! The stream of telemetry: who may follow it, what is selected, and what a client is told that
//! does not read in time.

use super::host::{Frames, Host};
use super::keys::problem;
use super::scopes::key;
use crate::Limits;
use domain::user::Scope;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use store::EventFilter;

const PATH: &str = "/api/telemetry";
/// Messages of one commit.
const BURST: usize = 1_000;
/// Commits of as many messages.
const BURSTS: usize = 12;

/// The next event; the greeting and heartbeats are comments.
async fn event(frames: &mut Frames) -> Value {
    let frame = frames.next_event().await.unwrap();
    let data = frame.data();
    if frame.field("event") != Some("lag") {
        assert_eq!(frame.field("event"), data["type"].as_str(), "{data}");
        assert_eq!(frame.id(), None, "nothing can be resumed from it");
    }
    data
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_credential_of_the_operators_follows_telemetry() {
    let host = Host::start().await;
    for scopes in [
        &[Scope::Read][..],
        &[Scope::Read, Scope::Write, Scope::Keys],
    ] {
        let key = key(&host, "alice", scopes).await;
        let refused = host.get_with(&key, PATH).await;
        assert_eq!(refused.status, 403);
        assert_eq!(refused.json()["code"], "SCOPE_MISSING");
        assert_eq!(refused.json()["details"], json!({ "scopes": ["admin"] }));
    }
    let admin = key(&host, "olga", &[Scope::Admin]).await;
    let (agent, session) = host.agent_with_session().await;
    let mut frames = host.follow_with(&admin, PATH, &[]).await;
    host.hears(agent, session, 1).await;
    assert_eq!(event(&mut frames).await["type"], "message.received");
}

#[tokio::test(flavor = "multi_thread")]
async fn telemetry_begins_when_the_client_comes_and_has_what_it_asked_for() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    host.hears(agent, session, 3).await;
    let mut all = host.follow(PATH, &[]).await;
    let mut of_agent = host.follow(&format!("{PATH}?agent={agent}"), &[]).await;
    let mut opened = host
        .follow(&format!("{PATH}?type=session.*&type=agent.ready"), &[])
        .await;
    let (other, other_session) = host.agent_with_session().await;
    let mut of_session = host
        .follow(&format!("{PATH}?session={other_session}"), &[])
        .await;
    host.hears(other, other_session, 1).await;
    host.hears(agent, session, 1).await;
    let mut seen = Vec::new();
    while seen.last() != Some(&("message.received".to_owned(), agent.to_string())) {
        let event = event(&mut all).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        assert!(event["timestamp"].is_string(), "{event}");
        seen.push((text(&event["type"]), text(&event["data"]["agent_id"])));
    }
    let of_other = |kind: &str| (kind.to_owned(), other.to_string());
    assert_eq!(
        seen,
        [
            of_other("agent.initialized"),
            of_other("agent.registered"),
            of_other("agent.ready"),
            of_other("session.created"),
            of_other("message.received"),
            ("message.received".to_owned(), agent.to_string()),
        ]
    );
    let first = event(&mut of_agent).await;
    assert_eq!(first["data"]["agent_id"], json!(agent.to_string()));
    assert_eq!(first["data"]["source"], json!("api"));
    assert_eq!(event(&mut opened).await["type"], "agent.ready");
    assert_eq!(event(&mut opened).await["type"], "session.created");
    let first = event(&mut of_session).await;
    assert_eq!(
        (&first["type"], &first["data"]["session_id"]),
        (
            &json!("message.received"),
            &json!(other_session.to_string())
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn telemetry_of_an_agent_is_asked_for_by_its_id_or_its_path() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let (other, other_session) = host.agent_with_session().await;
    let path = format!("{PATH}?agent=%2Flocal%2Fagent%2F{}", agent.0.simple());
    let mut streams = Vec::new();
    for asked in [
        &format!("{PATH}?agent={agent}"),
        &path,
        &format!("{path}&content=true"),
    ] {
        streams.push(host.follow(asked, &[]).await);
    }
    host.hears(other, other_session, 1).await;
    host.hears(agent, session, 1).await;
    for frames in &mut streams {
        let first = event(frames).await;
        assert_eq!(first["data"]["agent_id"], json!(agent.to_string()));
    }
    let nowhere = host
        .get(&format!("{PATH}?agent=%2Flocal%2Fagent%2Fnone"))
        .await;
    assert_eq!(
        problem(&nowhere),
        (
            404,
            "AGENT_NOT_FOUND".to_owned(),
            Some("query:agent".to_owned())
        )
    );
}

/// A client that does not read keeps nobody waiting, and what it is sent and what it lost make the
/// whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_slowly_is_told_how_many_events_it_lost() {
    let host = Host::start_with(Limits {
        send_buffer_bytes: 16 << 10,
        stream_waiting_bytes_max: 16 << 10,
        stream_stall_ms_max: 60_000,
        ..Limits::default()
    })
    .await;
    let (agent, session) = host.agent_with_session().await;
    let mut slow = host.follow(PATH, &[]).await;
    let mut quick = host
        .follow(&format!("{PATH}?type=session.created"), &[])
        .await;
    let begun = Instant::now();
    for _ in 0..BURSTS {
        host.hears(agent, session, BURST).await;
    }
    host.agent_with_session().await;
    // Told after all of the messages, and before the slow client reads any of them.
    assert_eq!(event(&mut quick).await["type"], "session.created");
    assert!(begun.elapsed() < Duration::from_secs(30));
    let mut seen = 0;
    let mut lost = 0;
    let mut kinds = 0;
    // The messages, and four events of another agent and its session.
    while seen + lost < BURSTS * BURST + 4 {
        let event = event(&mut slow).await;
        match event["dropped"].as_u64() {
            Some(dropped) => {
                assert!(dropped > 0, "{event}");
                lost += usize::try_from(dropped).unwrap();
                kinds += 1;
            }
            None => seen += 1,
        }
    }
    assert!(
        lost > BURST && kinds > 0,
        "{seen} came and {lost} were lost"
    );
    assert_eq!(seen + lost, BURSTS * BURST + 4);
    // What happens now comes at once.
    host.hears(agent, session, 1).await;
    assert_eq!(event(&mut slow).await["type"], "message.received");
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_for_what_is_said_is_on_record_before_the_stream_begins() {
    let host = Host::start().await;
    let (agent, _) = host.agent_with_session_of("alice".parse().unwrap()).await;
    let readings = async || {
        let ledger = EventFilter {
            ledger: true,
            ..EventFilter::default()
        };
        let events = host.store.events(0, ledger, 100).await.unwrap();
        events
            .iter()
            .filter(|it| it.kind == "operator.read.v1" && it.subject.agent == Some(agent))
            .count()
    };
    let refused = host.get(&format!("{PATH}?content=true")).await;
    assert_eq!(
        (refused.status, refused.json()["field"].as_str()),
        (400, Some("query:content"))
    );
    let _plain = host.follow(&format!("{PATH}?agent={agent}"), &[]).await;
    assert_eq!(readings().await, 0);
    let _reading = host
        .follow(&format!("{PATH}?agent={agent}&content=true"), &[])
        .await;
    assert_eq!(readings().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_host_is_the_last_event_and_asks_the_client_to_come_back() {
    let host = Host::start().await;
    let mut frames = host
        .follow(&format!("{PATH}?type=agent.shutdown"), &[])
        .await;
    let mut others = host.follow(&format!("{PATH}?type=error"), &[]).await;
    host.api.stopping().cancel();
    let last = event(&mut frames).await;
    assert_eq!(
        (&last["type"], last.get("data")),
        (&json!("agent.shutdown"), None)
    );
    for frames in [&mut frames, &mut others] {
        let bye = frames.next_event().await.unwrap();
        assert!(bye.text.starts_with("retry: "), "{}", bye.text);
        assert_eq!(frames.next_event().await, None);
    }
}
