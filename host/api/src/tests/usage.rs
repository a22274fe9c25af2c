//! Usage over HTTP: who sees whose, by which key, for which days, and page by page.

use super::host::{Host, TOKEN};
use super::keys::problem;
use super::scopes::key;
use domain::time::Timestamp;
use domain::usage::Day;
use domain::user::Scope;
use serde_json::{Value, json};

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

fn today() -> Timestamp {
    crate::clock::Clock::system().now()
}

fn days_ago(days: u64) -> Timestamp {
    Timestamp(today().0 - days * DAY_MS)
}

/// The keys with their active times.
fn listed(page: &Value) -> Vec<(Value, u64)> {
    let lines = page["usage"].as_array().unwrap().iter();
    lines
        .map(|line| (line["key"].clone(), line["active_ms"].as_u64().unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_sees_their_own_usage_and_the_operator_that_of_all() {
    let host = Host::start().await;
    let (_, session) = host.agent_with_session().await;
    host.works(session, "alice", today(), 5).await;
    host.works(session, "bob", today(), 30).await;
    let alice = key(&host, "alice", &[Scope::Read]).await;
    let own = host.get_with(&alice, "/api/usage?by=user").await.json();
    assert_eq!(listed(&own), [(json!("alice"), 5)]);
    assert_eq!(own["total"]["active_ms"], 5);
    for path in ["/api/usage?by=session", "/api/usage?by=agent&user=alice"] {
        let own = host.get_with(&alice, path).await.json();
        assert_eq!(own["total"]["active_ms"], 5, "{path}");
        assert!(own["usage"][0]["agent_path"].is_string(), "{path}");
    }
    let refused = host.get_with(&alice, "/api/usage?user=bob").await;
    assert_eq!(
        problem(&refused),
        (
            403,
            "SCOPE_MISSING".to_owned(),
            Some("query:user".to_owned())
        )
    );
    let all = host.get("/api/usage?by=user").await.json();
    assert_eq!(listed(&all), [(json!("alice"), 5), (json!("bob"), 30)]);
    let bobs = host.get("/api/usage?by=user&user=bob").await.json();
    assert_eq!(
        (listed(&bobs).len(), &bobs["total"]["active_ms"]),
        (1, &json!(30))
    );
    let auditor = key(&host, "carol", &[Scope::Admin]).await;
    let seen = host.get_with(&auditor, "/api/usage").await.json();
    assert_eq!(seen["total"], all["total"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_of_an_agent_is_asked_for_by_its_id_or_its_path() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session_of("alice".parse().unwrap()).await;
    let (_, other) = host.agent_with_session().await;
    host.works(session, "alice", today(), 5).await;
    host.works(other, "alice", today(), 30).await;
    let alice = key(&host, "alice", &[Scope::Read]).await;
    let bob = key(&host, "bob", &[Scope::Read]).await;
    let auditor = key(&host, "carol", &[Scope::Admin]).await;
    let by_id = format!("/api/usage?agent={agent}");
    let by_path = format!("/api/usage?agent=%2Flocal%2Fagent%2F{}", agent.0.simple());
    for credential in [&alice, &auditor] {
        for path in [&by_id, &by_path] {
            let seen = host.get_with(credential, path).await.json();
            assert_eq!(seen["total"]["active_ms"], 5, "{path}: {seen}");
        }
    }
    let not_found = |part: Option<&str>| {
        let part = part.map(str::to_owned);
        (404, "AGENT_NOT_FOUND".to_owned(), part)
    };
    let hidden = host.get_with(&bob, &by_path).await;
    assert_eq!(problem(&hidden), not_found(None));
    let nowhere = host.get("/api/usage?agent=%2Flocal%2Fagent%2Fnone").await;
    assert_eq!(problem(&nowhere), not_found(Some("query:agent")));
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_of_the_last_thirty_days_unless_others_are_named() {
    let host = Host::start().await;
    let (_, session) = host.agent_with_session().await;
    for (days, active_ms) in [(0, 1), (29, 10), (30, 100), (400, 1_000)] {
        host.works(session, "alice", days_ago(days), active_ms)
            .await;
    }
    let day = |days| Day::from_time(days_ago(days)).to_string();
    let recent = host.get("/api/usage").await.json();
    assert_eq!(listed(&recent), [(json!(day(29)), 10), (json!(day(0)), 1)]);
    assert_eq!(
        (&recent["by"], &recent["from"], &recent["to"]),
        (&json!("day"), &json!(day(29)), &json!(day(0)))
    );
    let path = format!("/api/usage?from={}&to={}", day(400), day(30));
    let before = host.get(&path).await.json();
    assert_eq!(
        listed(&before),
        [(json!(day(400)), 1_000), (json!(day(30)), 100)]
    );

    let mut paged = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("/api/usage?from={}&limit=1{after}", day(400));
        let page = host.get(&path).await.json();
        paged.extend(listed(&page));
        assert_eq!(page["total"]["active_ms"], 1_111, "of all pages");
        match page["next_after"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    let sums: Vec<u64> = paged.iter().map(|(_, active_ms)| *active_ms).collect();
    assert_eq!(sums, [1_000, 100, 10, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_for_usage_that_makes_no_sense_names_the_parameter() {
    let host = Host::start().await;
    let (_, session) = host.agent_with_session().await;
    host.works(session, "alice", today(), 5).await;
    host.works(session, "bob", today(), 5).await;
    let page = host.get("/api/usage?by=user&limit=1").await.json();
    let of_users = page["next_after"].as_str().unwrap();
    let rows = [
        "GET /api/usage?by=cost => 400 INVALID_QUERY query:by",
        "GET /api/usage?from=yesterday => 400 INVALID_QUERY query:from",
        "GET /api/usage?to=2026-02-30 => 400 INVALID_QUERY query:to",
        "GET /api/usage?from=2026-11-02&to=2026-11-01 => 400 INVALID_QUERY query:from",
        "GET /api/usage?agent=assistant => 400 INVALID_QUERY query:agent",
        "GET /api/usage?session=x => 400 INVALID_QUERY query:session",
        "GET /api/usage?user= => 400 INVALID_QUERY query:user",
        "GET /api/usage?limit=0 => 400 INVALID_QUERY query:limit",
        "GET /api/usage?limit=1001 => 400 INVALID_QUERY query:limit",
        "GET /api/usage?after=x => 400 INVALID_QUERY query:after",
        "GET /api/usage?by=day&after={of_users} => 400 INVALID_QUERY query:after",
    ];
    host.refuses(TOKEN, &[("{of_users}", of_users)], &rows)
        .await;
    let unknown = host.get("/api/usage?by=user&colour=red").await;
    assert_eq!(unknown.status, 400);
}
