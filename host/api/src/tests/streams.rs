//! Event streams: resumed exactly, marked where they are ephemeral, and parted from those who do
//! not read.

use super::host::{Frames, Host};
use crate::Limits;
use broker::{Frame, Show};
use domain::digest::Digest;
use domain::id::{AgentId, OperationId, RunId, SessionId};
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

async fn ids(frames: &mut Frames, count: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(frames.next_event().await.unwrap().id().unwrap());
    }
    ids
}

fn shown(agent: AgentId, session: SessionId, show: Show) -> Frame {
    Frame {
        agent,
        session,
        run: RunId(Uuid::nil()),
        operation: OperationId(Digest([1; 32])),
        attempt: 1,
        seq: 0,
        show,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_comes_back_gets_exactly_what_it_missed() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let (other, _) = host.agent_with_session().await;
    let mut expected = Vec::new();
    for number in 0..300 {
        expected.push(
            host.happen(agent, (number % 2 == 0).then_some(session), "x")
                .await,
        );
        host.happen(other, None, "not yours").await;
    }
    let path = format!("/api/agents/{agent}/stream?view=log");
    let all = ids(&mut host.follow(&format!("{path}&after=0"), &[]).await, 302).await;
    assert_eq!(all[2..], expected);
    // From the header, which goes before the query, at every place that a connection may have
    // broken at.
    for cut in [0, 1, 31, 32, 33, 200, 298] {
        let header = format!("last-event-id: {}", expected[cut]);
        let mut frames = host.follow(&format!("{path}&after=0"), &[&header]).await;
        let live = host.happen(agent, None, "now").await;
        let rest = ids(&mut frames, expected.len() - cut).await;
        assert_eq!(rest, [&expected[cut + 1..], &[live]].concat());
        expected.push(live);
    }
    let of_session = ids(
        &mut host
            .follow(
                &format!("{path}&session={session}&after={}", expected[0]),
                &[],
            )
            .await,
        149,
    )
    .await;
    assert!(
        of_session
            .iter()
            .all(|id| expected.iter().position(|expected| expected == id).unwrap() % 2 == 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_ahead_of_the_last_event_begins_anew() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let last = host.happen(agent, Some(session), "before").await;
    for view in ["log", "session"] {
        for (query, header) in [("", "last-event-id: 1000000"), ("&after=1000000", "x: y")] {
            let mut frames = host
                .follow(
                    &format!("/api/agents/{agent}/stream?view={view}{query}"),
                    &[header],
                )
                .await;
            let reset = loop {
                let frame = frames.next_event().await.unwrap();
                if frame.field("event") == Some("reset") {
                    break frame;
                }
                assert_eq!(frame.field("event"), Some("connected"));
            };
            assert_eq!(
                (reset.id(), &reset.data()["position"]),
                (Some(last), &serde_json::json!(last))
            );
            assert!(reset.data()["reason"].as_str().unwrap().contains("1000000"));
        }
    }
    // With the id of that frame it goes on as if nothing had been.
    let header = format!("last-event-id: {last}");
    let mut again = host
        .follow(&format!("/api/agents/{agent}/stream?view=log"), &[&header])
        .await;
    let next = host.happen(agent, Some(session), "after").await;
    assert_eq!(again.next_event().await.unwrap().id(), Some(next));
}

/// A follower that dies before it notes what it saw gets it again, under the same ids.
#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_dies_gets_what_it_had_not_noted_again_under_the_same_ids() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let path = format!("/api/agents/{agent}/stream?view=log");
    let mut live = host.follow(&path, &[]).await;
    let mut seen = Vec::new();
    for number in 0..3 {
        host.happen(agent, Some(session), &format!("number {number}"))
            .await;
        seen.push(live.next_event().await.unwrap());
    }
    // It noted the first alone, and nobody noticed that it died.
    let header = format!("last-event-id: {}", seen[0].id().unwrap());
    let mut again = host.follow(&path, &[&header]).await;
    for before in &seen[1..] {
        let frame = again.next_event().await.unwrap();
        assert_eq!((frame.id(), frame.data()), (before.id(), before.data()));
    }
    let next = host.happen(agent, Some(session), "and on").await;
    assert_eq!(
        [
            again.next_event().await.unwrap().id(),
            live.next_event().await.unwrap().id()
        ],
        [Some(next), Some(next)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_with_spawned_sessions_goes_on_exactly_and_says_what_is_whose() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let (other, others) = host.agent_with_session().await;
    let (below, first) = host
        .spawn_below(agent, session, "/local/agent/gone/sub/0")
        .await;
    host.spawn_below(other, others, "/local/agent/other/sub/0")
        .await;
    let path = format!("/api/agents/{agent}/stream?view=log&session={session}&spawned=true");
    let mut opened = host.follow(&path, &[]).await;
    let mut expected = Vec::new();
    for number in 0..100 {
        expected.push(host.happen(agent, Some(session), "x").await);
        expected.push(host.happen(below, Some(first), "y").await);
        host.happen(other, Some(others), "not yours").await;
        if number == 50 {
            let last = *host.store.durable().borrow();
            host.spawn_below(below, first, "/local/agent/gone/sub/0/sub/0")
                .await;
            expected.extend(last + 1..=last + 4);
        }
    }
    assert_eq!(ids(&mut opened, expected.len()).await, expected);
    for cut in [0, 1, 31, 32, 33, 100, 102, 103, 104, 150, 202] {
        let header = format!("last-event-id: {}", expected[cut]);
        let mut frames = host.follow(&path, &[&header]).await;
        let live = host.happen(below, Some(first), "now").await;
        assert_eq!(
            ids(&mut frames, expected.len() - cut).await,
            [&expected[cut + 1..], &[live]].concat()
        );
        expected.push(live);
    }
    let alone = ids(
        &mut host
            .follow(
                &format!(
                    "/api/agents/{agent}/stream?view=log&session={session}&after={}",
                    expected[0]
                ),
                &[],
            )
            .await,
        99,
    )
    .await;
    assert!(alone.windows(2).all(|pair| pair[0] < pair[1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_spawned_session_shows_and_stores_is_marked_with_its_agent_and_depth() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let (below, first) = host
        .spawn_below(agent, session, "/local/agent/gone/sub/0")
        .await;
    let mut frames = host
        .follow(
            &format!("/api/agents/{agent}/stream?view=log&session={session}&spawned=true"),
            &[],
        )
        .await;
    let (deeper, second) = host
        .spawn_below(below, first, "/local/agent/gone/sub/0/sub/0")
        .await;
    let mark = |path: &str, by: SessionId, depth: u64| serde_json::json!({ "agent_path": path, "by_session_id": by, "depth": depth });
    let mut marks = Vec::new();
    for _ in 0..4 {
        marks.push(frames.next_event().await.unwrap().data()["spawned"].clone());
    }
    let of_first = mark("/local/agent/gone/sub/0", session, 1);
    let of_second = mark("/local/agent/gone/sub/0/sub/0", first, 2);
    assert_eq!(
        marks,
        [
            of_first.clone(),
            of_second.clone(),
            of_second.clone(),
            of_second.clone()
        ]
    );
    for (of, within, expected) in [
        (agent, session, None),
        (below, first, Some(&of_first)),
        (deeper, second, Some(&of_second)),
    ] {
        host.broker
            .live()
            .show(shown(of, within, Show::Note("reading".to_owned())));
        let shown = frames.next_event().await.unwrap();
        assert_eq!(
            (
                shown.id(),
                shown.data().get("spawned"),
                shown.data()["text"].as_str()
            ),
            (None, expected, Some("reading"))
        );
        host.happen(of, Some(within), "x").await;
        assert_eq!(
            frames.next_event().await.unwrap().data().get("spawned"),
            expected
        );
    }
    // Followed by itself, a session is nobody's.
    let alone = host
        .follow(
            &format!("/api/agents/{below}/stream?view=log&session={first}&spawned=true&after=0"),
            &[],
        )
        .await
        .next_event()
        .await
        .unwrap();
    assert_eq!(alone.data().get("spawned"), None);
}

/// A new client gets what happens from now on, with what is shown before it is stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_client_gets_what_happens_from_now_on_stored_or_not() {
    let host = Host::start_with(Limits {
        heartbeat_ms: 100,
        ..Limits::default()
    })
    .await;
    let (agent, session) = host.agent_with_session().await;
    host.happen(agent, Some(session), "before").await;
    let mut frames = host
        .follow(
            &format!("/api/agents/{agent}/stream?view=log&session={session}"),
            &[],
        )
        .await;
    assert!(frames.next().await.unwrap().text.starts_with(':'));
    host.broker
        .live()
        .show(shown(agent, session, Show::Text("Hel".to_owned())));
    host.broker.live().show(shown(
        agent,
        SessionId(Uuid::new_v4()),
        Show::Text("elsewhere".to_owned()),
    ));
    host.broker
        .live()
        .show(shown(agent, session, Show::Discarded));
    let position = host.happen(agent, Some(session), "after").await;

    let delta = frames.next_event().await.unwrap();
    assert_eq!((delta.field("event"), delta.id()), (Some("delta"), None));
    assert_eq!(
        (
            delta.data()["ephemeral"].as_bool(),
            delta.data()["text"].as_str()
        ),
        (Some(true), Some("Hel"))
    );
    let discarded = frames.next_event().await.unwrap();
    assert_eq!(
        (discarded.field("event"), discarded.id()),
        (Some("attempt-discarded"), None)
    );
    let event = frames.next_event().await.unwrap();
    assert_eq!(
        (event.field("event"), event.id()),
        (Some("agent.preferences.updated.v1"), Some(position))
    );
    assert_eq!(event.data()["data"]["preferences"]["payload"], "after");
    assert_eq!(frames.next().await.unwrap().text, ": heartbeat");
}

/// A model is asked once its call is stored, so that its first word comes after the result of the
/// call before it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_after_a_commit_comes_after_the_events_of_it() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let path = format!("/api/agents/{agent}/stream?view=log&session={session}");
    let mut frames = host.follow(&path, &[]).await;
    assert!(frames.next().await.unwrap().text.starts_with(':'));
    for number in 0..200 {
        let position = host.happen(agent, Some(session), "result").await;
        let word = Show::Text(number.to_string());
        host.broker.live().show(shown(agent, session, word));
        assert_eq!(frames.next_event().await.unwrap().id(), Some(position));
        let word = frames.next_event().await.unwrap().data();
        assert_eq!(word["text"], number.to_string());
    }
}

/// Returns a frame of a run's reply.
fn said(of: (AgentId, SessionId, RunId), seq: u64, show: Show) -> Frame {
    let (agent, session, run) = of;
    Frame {
        run,
        seq,
        ..shown(agent, session, show)
    }
}

/// Whoever comes in the middle of a reply, for the first time or again, has each word once.
#[tokio::test(flavor = "multi_thread")]
async fn who_comes_in_the_middle_of_a_reply_begins_with_what_was_said_so_far() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let (other, elsewhere) = host.agent_with_session().await;
    let run = host.begin_run(agent, session).await;
    let over = host.begin_run(other, elsewhere).await;
    let live = host.broker.live();
    let of = (agent, session, run);
    live.show(said(of, 0, Show::Text("one ".to_owned())));
    live.show(said(of, 1, Show::Text("two ".to_owned())));
    let operation = OperationId(Digest([2; 32]));
    live.show(Frame {
        operation,
        ..said(
            (other, elsewhere, over),
            0,
            Show::Text("not yours".to_owned()),
        )
    });
    for (view, event, text) in [
        ("session", "content_so_far", "content"),
        ("log", "delta", "text"),
    ] {
        let path = format!("/api/agents/{agent}/stream?session={session}&view={view}");
        let mut frames = host.follow(&path, &["last-event-id: 0"]).await;
        let so_far = loop {
            let frame = frames.next_event().await.unwrap();
            if frame.field("event") == Some(event) {
                break frame;
            }
            let is_before = frame.field("event") == Some("connected") || frame.id().is_some();
            assert!(is_before, "it comes after what is stored: {frame:?}");
        };
        let data = so_far.data();
        assert_eq!(so_far.id(), None, "it cannot be resumed from");
        assert_eq!(
            (&data[text], &data["seq"], &data["attempt"], &data["run_id"]),
            (
                &"one two ".into(),
                &1.into(),
                &1.into(),
                &run.to_string().into()
            )
        );
        if view == "log" {
            assert_eq!(data["kind"], "so_far");
        }
        live.show(said(of, 2, Show::Text("three".to_owned())));
        let next = frames.next_event().await.unwrap().data();
        assert_eq!((&next[text], &next["seq"]), (&"three".into(), &2.into()));
        // As it was, for the other view.
        live.show(said(of, 0, Show::Discarded));
        live.show(said(of, 0, Show::Text("one ".to_owned())));
        live.show(said(of, 1, Show::Text("two ".to_owned())));
    }
}

/// Deltas that were missed because too much was shown at once are made good with the whole text.
#[tokio::test(flavor = "multi_thread")]
async fn who_falls_behind_in_a_reply_gets_its_whole_text() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let run = host.begin_run(agent, session).await;
    let path = format!("/api/agents/{agent}/stream?session={session}");
    let mut frames = host.follow(&path, &[]).await;
    assert_eq!(
        frames.next_event().await.unwrap().field("event"),
        Some("connected")
    );
    let words = 50_000;
    // At once, so that the stream cannot keep up.
    for seq in 0..words {
        let frame = said((agent, session, run), seq, Show::Text(format!("{seq} ")));
        host.broker.live().show(frame);
    }
    let mut text = String::new();
    let mut jumps = 0;
    loop {
        let frame = frames.next_event().await.unwrap();
        let data = frame.data();
        let content = data["content"].as_str().unwrap();
        match frame.field("event") {
            Some("content_chunk") => text.push_str(content),
            Some("content_so_far") => {
                jumps += 1;
                text = content.to_owned();
            }
            other => panic!("{other:?}"),
        }
        if data["seq"] == words - 1 {
            break;
        }
    }
    let expected: String = (0..words).map(|seq| format!("{seq} ")).collect();
    assert!(jumps > 0, "nothing was missed");
    assert!(
        text == expected,
        "{} of {} bytes",
        text.len(),
        expected.len()
    );
}

/// Of a run that has ended nothing is being said, whatever its work still shows.
#[tokio::test(flavor = "multi_thread")]
async fn of_a_run_that_is_not_open_nothing_was_said_so_far() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let nobody = RunId(Uuid::now_v7());
    let frame = said((agent, session, nobody), 0, Show::Text("late".to_owned()));
    host.broker.live().show(frame);
    let path = format!("/api/agents/{agent}/stream?view=log&session={session}");
    let mut frames = host.follow(&path, &[]).await;
    let after = host.happen(agent, Some(session), "after").await;
    assert_eq!(frames.next_event().await.unwrap().id(), Some(after));
}

/// A browser's `EventSource` gives up for good on any other status than 200.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_held_while_the_host_starts_and_everything_else_is_told_to_wait() {
    let host = Host::starting(Limits::default()).await;
    let (agent, session) = host.agent_with_session().await;
    let missed = host.happen(agent, Some(session), "missed").await;
    let path = format!("/api/agents/{agent}/stream?view=log&session={session}");
    let header = format!("last-event-id: {}", missed - 1);
    let headers = [header.as_str()];
    let opened = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = host.get("/api/agents").await;
        let alive = host.get("/healthz").await;
        assert_eq!((now.status, alive.status), (503, 200));
        assert!(now.has("retry-after: "));
        // Without a credential nobody is held.
        let unknown_sender = host.send_with("wrong", "GET", &path, &[], "").await;
        assert_eq!(unknown_sender.status, 401);
        host.api.open(host.broker.clone(), host.edge.clone());
        Instant::now()
    };
    let answered = async {
        let frames = host.follow(&path, &headers).await;
        (frames, Instant::now())
    };
    let (opened, (mut frames, answered)) = tokio::join!(opened, answered);
    assert!(
        answered >= opened,
        "it was answered before the host was ready"
    );
    assert_eq!(frames.next_event().await.unwrap().id(), Some(missed));
    // What it may not follow is refused as always.
    let gone = format!("/api/agents/{agent}/stream?session={}", Uuid::new_v4());
    assert_eq!(host.get(&gone).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_a_time_to_come_back_after() {
    let host = Host::start().await;
    let (agent, _) = host.agent_with_session().await;
    let mut frames = host
        .follow(&format!("/api/agents/{agent}/stream?view=log"), &[])
        .await;
    assert!(frames.next().await.is_some());
    host.stopper.stop(Duration::from_secs(5)).await;
    let last = frames.next().await.unwrap();
    assert_eq!(last.field("retry"), Some("2000"));
    assert_eq!(frames.next().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_disconnected_and_the_others_are_not() {
    let limits = Limits {
        send_buffer_bytes: 16 << 10,
        stream_stall_ms_max: 300,
        streams_max: 2,
        ..Limits::default()
    };
    let host = Host::start_with(limits).await;
    let (agent, session) = host.agent_with_session().await;
    let path = format!("/api/agents/{agent}/stream?view=log&session={session}");
    let mut slow = host.follow(&path, &[]).await;
    let mut quick = host.follow(&path, &[]).await;
    // The quick client reads each event before the next one happens: however slow this machine is,
    // nothing ever waits for it for long.
    for _ in 0..40 {
        let written = host
            .happen(agent, Some(session), &"x".repeat(64 << 10))
            .await;
        let read = quick
            .next_event()
            .await
            .expect("the quick client was disconnected");
        assert_eq!(
            read.id(),
            Some(written),
            "{}",
            read.text.get(..200).unwrap_or(&read.text)
        );
    }
    // When the slow client is gone its place is free.
    let patience = Instant::now() + Duration::from_secs(10);
    while host.get(&format!("{path}&after=x")).await.status == 429 {
        assert!(
            Instant::now() < patience,
            "the slow client was never disconnected"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut seen = 0;
    while slow.next_event().await.is_some() {
        seen += 1;
    }
    assert!(
        seen < 40,
        "everything was kept for a client that did not read"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_missed_much_may_take_its_time_to_read_it() {
    let host = Host::start_with(Limits {
        send_buffer_bytes: 16 << 10,
        stream_waiting_bytes_max: 64 << 10,
        ..Limits::default()
    })
    .await;
    let (agent, _) = host.agent_with_session().await;
    for _ in 0..100 {
        host.happen(agent, None, &"x".repeat(32 << 10)).await;
    }
    let mut frames = host
        .follow(&format!("/api/agents/{agent}/stream?view=log&after=0"), &[])
        .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(ids(&mut frames, 102).await, (1..=102).collect::<Vec<u64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_over_the_limit_are_refused_and_places_come_free_again() {
    let host = Host::start_with(Limits {
        streams_max: 1,
        ..Limits::default()
    })
    .await;
    let (agent, _) = host.agent_with_session().await;
    let path = format!("/api/agents/{agent}/stream?view=log");
    let leased = host.follow(&path, &[]).await;
    let refused = host.get(&path).await;
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (429, Some("TOO_MANY_STREAMS"))
    );
    assert!(refused.has("retry-after: "));
    drop(leased);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(host.follow(&path, &[]).await.next().await.is_some());
}
