//! Tests of API keys over HTTP: issued, used, listed, revoked and expired.

use super::host::{Answer, Frames, Host, TOKEN};
use super::issuer::Hands;
use super::scopes::key;
use domain::event::{Event, KeyIssued, NewEvent, Subject};
use domain::id::{EventId, Stream};
use domain::key::{ApiKey, KEYS_OF_A_USER_MAX, KeyId};
use domain::time::Timestamp;
use domain::user::{Scope, UserId};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use store::{Commit, Expected};
use uuid::Uuid;

async fn issue(host: &Host, credential: &str, wanted: Value) -> Value {
    let answer = host.post_with(credential, "/api/keys", &wanted).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer.json()
}

fn text(value: &Value, name: &str) -> String {
    value[name]
        .as_str()
        .unwrap_or_else(|| panic!("{name} of {value}"))
        .to_owned()
}

/// Status, code and field of an answer that is a problem.
pub(super) fn problem(answer: &Answer) -> (u16, String, Option<String>) {
    let json = answer.json();
    (
        answer.status,
        text(&json, "code"),
        json["field"].as_str().map(str::to_owned),
    )
}

async fn revoke(host: &Host, credential: &str, id: &str) -> Answer {
    host.send_with(credential, "DELETE", &format!("/api/keys/{id}"), &[], "")
        .await
}

/// Returns whether any file in a folder contains these bytes.
fn has(folder: &Path, needle: &[u8]) -> bool {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .any(|path| match path.is_dir() {
            true => has(&path, needle),
            false => std::fs::read(&path)
                .unwrap()
                .windows(needle.len())
                .any(|window| window == needle),
        })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_once_and_nothing_but_its_hash_is_kept() {
    let host = Host::start().await;
    let answer = host
        .post_with(
            TOKEN,
            "/api/keys",
            &json!({ "user": "alice", "name": "laptop", "scopes": ["write", "read"] }),
        )
        .await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let issued = answer.json();
    let key = text(&issued, "key");
    let id = text(&issued, "id");
    assert!(
        answer.has(&format!("location: /api/keys/{id}")) && answer.has("cache-control: no-store"),
        "{}",
        answer.head
    );
    assert!(key.starts_with(&format!("ahk_{id}_")), "{key}");
    let parsed = ApiKey::parse(&key).unwrap();
    assert_eq!(
        (
            issued["scopes"].clone(),
            text(&issued, "user_id"),
            text(&issued, "state")
        ),
        (json!(["read", "write"]), "alice".into(), "active".into())
    );

    let me = host.get_with(&key, "/api/me").await.json();
    assert_eq!(
        (
            text(&me, "user_id"),
            text(&me, "authenticated_by"),
            text(&me, "key_id")
        ),
        ("alice".into(), "api_key".into(), id.clone())
    );
    assert_eq!(
        (me["scopes"].clone(), text(&me, "expires_at")),
        (json!(["read", "write"]), text(&issued, "expires_at"))
    );
    let operator = host.get("/api/me").await.json();
    assert_eq!(
        (
            text(&operator, "user_id"),
            text(&operator, "authenticated_by")
        ),
        ("local".into(), "host_token".into())
    );
    assert_eq!(
        (operator["scopes"].clone(), operator["expires_at"].clone()),
        (json!(["read", "write", "keys", "admin"]), Value::Null)
    );

    let secret = key.rsplit('_').next().unwrap().to_owned();
    for path in [
        "/api/keys?all=true",
        "/api/keys?user=alice",
        "/api/events",
        "/api/audit",
    ] {
        let shown = host.get(path).await.body;
        assert!(
            !shown.contains(&secret) && !shown.contains(&parsed.hash().hex()),
            "{path}: {shown}"
        );
    }
    assert_eq!(
        host.get("/api/keys?user=alice").await.json()["keys"][0]["name"],
        "laptop"
    );
    let revoked = revoke(&host, TOKEN, &id).await;
    assert_eq!(revoked.status, 200, "{}", revoked.body);
    // The log is moved to the database, so that all that was ever written is looked at.
    host.store.close().await;
    let folder = host.data.path().join("data");
    assert!(
        has(&folder, &parsed.hash().0),
        "the search finds what is there"
    );
    let bytes: Vec<u8> = (0..32)
        .map(|at| u8::from_str_radix(&secret[at * 2..at * 2 + 2], 16).unwrap())
        .collect();
    for needle in [
        key.as_bytes(),
        secret.as_bytes(),
        secret.to_uppercase().as_bytes(),
        &bytes[..],
    ] {
        assert!(!has(&folder, needle));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_refused_at_its_very_next_request_and_for_good() {
    let host = Host::start().await;
    let first = issue(
        &host,
        TOKEN,
        json!({ "user": "alice", "scopes": ["read", "keys"] }),
    )
    .await;
    let second = issue(
        &host,
        &text(&first, "key"),
        json!({ "scopes": ["read"], "expires_in_s": 60 }),
    )
    .await;
    assert_eq!(
        (text(&second, "user_id"), text(&second, "issued_with")),
        ("alice".into(), text(&first, "id"))
    );
    let key = text(&second, "key");
    let id = text(&second, "id");
    assert_eq!(host.get_with(&key, "/api/agents").await.status, 200);
    let path = format!("/api/keys/{id}?reason=lost%20it");
    let revoked = host
        .send_with(&text(&first, "key"), "DELETE", &path, &[], "")
        .await
        .json();
    assert_eq!(
        (
            text(&revoked, "state"),
            text(&revoked, "reason"),
            text(&revoked, "revoked_by")
        ),
        ("revoked".into(), "lost it".into(), "alice".into())
    );
    let refused = host.get_with(&key, "/api/agents").await;
    assert_eq!(
        problem(&refused),
        (
            401,
            "UNAUTHORIZED".into(),
            Some("header:Authorization".into())
        )
    );
    assert!(
        refused.body.contains("was revoked") && refused.has("www-authenticate: Bearer"),
        "{}",
        refused.body
    );
    // Again, and by the operator: it stays as it was.
    let again = revoke(&host, TOKEN, &id).await;
    assert_eq!((again.status, again.json()), (200, revoked));
    assert_eq!(
        host.get_with(&text(&first, "key"), "/api/agents")
            .await
            .status,
        200,
        "the other one counts"
    );
    let events = host.get("/api/events").await.json();
    let kinds: Vec<&str> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "user.key.issued.v1",
            "user.key.issued.v1",
            "user.key.revoked.v1"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_ends_with_its_time() {
    let hands = Hands::at(crate::Clock::system().now().0);
    let host = Host::start_letting_in(|access| access.by(hands.clock())).await;
    let key = text(
        &issue(
            &host,
            TOKEN,
            json!({ "user": "alice", "scopes": ["read"], "expires_in_s": 600 }),
        )
        .await,
        "key",
    );
    hands.pass_s(590);
    assert_eq!(host.get_with(&key, "/api/agents").await.status, 200);
    hands.pass_s(20);
    let refused = host.get_with(&key, "/api/agents").await;
    assert_eq!(refused.status, 401);
    assert!(refused.body.contains("expired at"), "{}", refused.body);
    assert_eq!(
        host.get("/api/keys?user=alice").await.json()["keys"][0]["state"],
        "expired"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_key_that_is_asked_for_is_told_with_its_code_and_field() {
    let host = Host::start().await;
    let own = key(&host, "alice", &[Scope::Read, Scope::Keys]).await;
    let long: (&str, &str) = ("{long}", &"x".repeat(201));
    let operators = [
        r#"POST /api/keys {} => 422 MISSING_FIELD /scopes"#,
        r#"POST /api/keys {"scopes":[]} => 422 INVALID /scopes"#,
        r#"POST /api/keys {"scopes":["read","root"]} => 422 INVALID_FIELD /scopes/1"#,
        r#"POST /api/keys {"scopes":"read"} => 422 INVALID_FIELD /scopes"#,
        r#"POST /api/keys {"scopes":["read"],"user":"system"} => 422 INVALID_FIELD /user"#,
        r#"POST /api/keys {"scopes":["read"],"user":"a/b"} => 422 INVALID_FIELD /user"#,
        r#"POST /api/keys {"scopes":["read"],"name":"{long}"} => 422 INVALID /name"#,
        r#"POST /api/keys {"scopes":["read"],"expires_in_s":59} => 422 INVALID /expires_in_s"#,
        r#"POST /api/keys {"scopes":["read"],"expires_in_s":31622401} => 422 INVALID /expires_in_s"#,
        r#"POST /api/keys {"scopes":["read"],"expires_in_s":-1} => 422 INVALID_FIELD /expires_in_s"#,
        r#"POST /api/keys {"scopes":["read"],"expires":"90d"} => 422 UNKNOWN_FIELD /expires"#,
    ];
    host.refuses(TOKEN, &[("{long}", &"x".repeat(101))], &operators)
        .await;
    let users = [
        r#"POST /api/keys {"scopes":["read","write"],"expires_in_s":60} => 403 SCOPE_MISSING /scopes"#,
        r#"POST /api/keys {"scopes":["admin"],"expires_in_s":60} => 403 SCOPE_MISSING /scopes"#,
        r#"POST /api/keys {"scopes":["read"],"user":"bob","expires_in_s":60} => 403 SCOPE_MISSING /user"#,
        r#"POST /api/keys {"scopes":["read"],"expires_in_s":7200} => 422 INVALID /expires_in_s"#,
        "GET /api/keys?user= => 400 INVALID_QUERY query:user",
        "GET /api/keys?user=bob&all=true => 400 INVALID_QUERY query:all",
        "GET /api/keys?after=x => 400 INVALID_QUERY query:after",
        "GET /api/keys?user=bob => 403 SCOPE_MISSING query:user",
        "GET /api/keys?all=true => 403 SCOPE_MISSING query:all",
        "DELETE /api/keys/x => 400 INVALID_ID path:id",
        "DELETE /api/keys/aaaaaaaaaaaa?reason={long} => 422 INVALID query:reason",
    ];
    host.refuses(&own, &[long], &users).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_keys_are_theirs_alone_and_the_operators_to_see() {
    let host = Host::start().await;
    let alice = key(&host, "alice", &[Scope::Keys]).await;
    let bob = issue(&host, TOKEN, json!({ "user": "bob", "scopes": ["keys"] })).await;
    for _ in 0..3 {
        key(&host, "bob", &[Scope::Read]).await;
    }
    assert_eq!(
        problem(&revoke(&host, &alice, &text(&bob, "id")).await),
        (404, "KEY_NOT_FOUND".into(), None)
    );
    assert_eq!(
        problem(&revoke(&host, &alice, "aaaaaaaaaaaa").await),
        (404, "KEY_NOT_FOUND".into(), None)
    );
    let count = |answer: Answer| answer.json()["keys"].as_array().unwrap().len();
    assert_eq!(count(host.get_with(&alice, "/api/keys").await), 1);
    assert_eq!(
        count(host.get_with(&text(&bob, "key"), "/api/keys").await),
        4
    );
    assert_eq!(
        count(
            host.get_with(&text(&bob, "key"), "/api/keys?user=bob")
                .await
        ),
        4
    );
    assert_eq!(
        (
            count(host.get("/api/keys").await),
            count(host.get("/api/keys?all=true").await)
        ),
        (0, 5)
    );
    let mut ids = Vec::new();
    let mut after = String::new();
    loop {
        let page = host
            .get(&format!("/api/keys?user=bob&limit=3{after}"))
            .await
            .json();
        ids.extend(
            page["keys"]
                .as_array()
                .unwrap()
                .iter()
                .map(|key| text(key, "id")),
        );
        match page["next_after"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert!(ids.len() == 4 && ids.is_sorted(), "{ids:?}");
    assert_eq!(revoke(&host, TOKEN, &text(&bob, "id")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_looks_like_a_key_is_refused() {
    let host = Host::start().await;
    let key = key(&host, "alice", &[Scope::Read]).await;
    let (id, secret) = key.strip_prefix("ahk_").unwrap().split_once('_').unwrap();
    let other = if secret.starts_with('0') { "1" } else { "0" };
    for wrong in [
        format!(
            "ahk_{id}_{}",
            secret.to_uppercase().replace(char::is_numeric, "A")
        ),
        format!("ahk_{id}_{other}{}", &secret[1..]),
        format!("ahk_{id}_{}", &secret[1..]),
        format!("ahk_{id}_{secret}0"),
        format!("ahk_aaaaaaaaaaaa_{secret}"),
        format!("AHK_{id}_{secret}"),
        format!("ahk_{id}_"),
        format!("{id}_{secret}"),
        secret.to_owned(),
        id.to_owned(),
        "ahk_".to_owned(),
    ] {
        let answer = host.get_with(&wrong, "/api/agents").await;
        assert_eq!(answer.status, 401, "{wrong}");
        assert!(!answer.body.contains(secret), "{}", answer.body);
    }
    assert_eq!(host.get_with(&key, "/api/agents").await.status, 200);
    for scheme in ["Basic", "Token", ""] {
        let headers = [
            format!("authorization: {scheme} {key}"),
            "host: localhost".to_owned(),
        ];
        let answer = host
            .send_as_it_is("GET", "/api/agents", &[&headers[0], &headers[1]], "")
            .await;
        assert_eq!(answer.status, 401, "{scheme}");
    }
    let twice = [
        format!("authorization: Bearer {key}"),
        format!("authorization: Bearer {TOKEN}"),
        "host: localhost".to_owned(),
    ];
    let answer = host
        .send_as_it_is("GET", "/api/agents", &[&twice[0], &twice[1], &twice[2]], "")
        .await;
    assert_eq!(answer.status, 401, "which of the two is meant?");
}

/// Records a key as if it had been issued, with any expiry.
async fn put(host: &Host, user: &str, number: u8, expires_at: Timestamp) -> String {
    let key = ApiKey::new(KeyId::of([number; 12]), [number; 32]);
    let issued = KeyIssued {
        key_id: key.id().clone(),
        user_id: user.parse().unwrap(),
        name: String::new(),
        scopes: [Scope::Read, Scope::Keys].into(),
        hash: key.hash(),
        issued_by: UserId::local(),
        issued_with: None,
        issued_at: Timestamp(1),
        expires_at,
    };
    let event = NewEvent {
        id: EventId(Uuid::now_v7()),
        event: Event::KeyIssued(Box::new(issued)),
        subject: Subject::default(),
        actor: "user:local".to_owned(),
        causation: None,
        correlation: None,
        time: Timestamp(1),
        salt: Default::default(),
    };
    host.store
        .commit(Commit::new().append(Stream::Host, Expected::Any, vec![event]))
        .await
        .unwrap();
    key.expose()
}

/// Reads to the end of a stream.
async fn ends(frames: &mut Frames) {
    let ending = async { while frames.next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(10), ending)
        .await
        .expect("the stream goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_ends_when_its_key_is_revoked_and_no_other_does() {
    let host = Host::start().await;
    let (agent, _) = host.agent_with_session().await;
    let path = format!("/api/agents/{agent}/stream?view=log");
    let first = issue(&host, TOKEN, json!({ "scopes": ["read"] })).await;
    let second = issue(&host, TOKEN, json!({ "scopes": ["read"] })).await;
    let mut of_first = host.follow_with(&text(&first, "key"), &path, &[]).await;
    let mut of_second = host.follow_with(&text(&second, "key"), &path, &[]).await;
    let mut of_operator = host.follow(&path, &[]).await;
    assert_eq!(revoke(&host, TOKEN, &text(&first, "id")).await.status, 200);
    ends(&mut of_first).await;
    let position = host.happen(agent, None, "x").await;
    for frames in [&mut of_second, &mut of_operator] {
        assert_eq!(frames.next_event().await.unwrap().id(), Some(position));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_ends_with_the_time_of_its_key() {
    let host = Host::start().await;
    let (agent, _) = host.agent_with_session().await;
    let now = crate::Clock::system().now();
    let key = put(&host, "local", 1, now.plus_ms(1_500)).await;
    let mut frames = host
        .follow_with(&key, &format!("/api/agents/{agent}/stream?view=log"), &[])
        .await;
    ends(&mut frames).await;
    assert!(crate::Clock::system().now() >= now.plus_ms(1_500));
    assert_eq!(host.get_with(&key, "/api/agents").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_only_so_many_keys_that_count() {
    let host = Host::start().await;
    let later = crate::Clock::system().now().plus_ms(1_000_000);
    let mut first = String::new();
    // Ids repeat after 32 numbers, so the rest is issued.
    for number in 0..32 {
        first = put(&host, "alice", number, later).await;
    }
    for _ in 32..KEYS_OF_A_USER_MAX {
        key(&host, "alice", &[Scope::Read]).await;
    }
    let wanted = json!({ "user": "alice", "scopes": ["read"] });
    assert_eq!(
        problem(&host.post_with(TOKEN, "/api/keys", &wanted).await),
        (409, "TOO_MANY_KEYS".into(), None)
    );
    let id = first.split('_').nth(1).unwrap();
    assert_eq!(revoke(&host, TOKEN, id).await.status, 200);
    issue(&host, TOKEN, wanted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_revoked_meanwhile_issues_nothing() {
    let host = Host::start().await;
    let key = put(
        &host,
        "alice",
        1,
        crate::Clock::system().now().plus_ms(1_000_000),
    )
    .await;
    let id = ApiKey::parse(&key).unwrap().id().clone();
    let scopes: std::collections::BTreeSet<Scope> = [Scope::Read, Scope::Keys].into();
    let issuer = domain::key::Issuer {
        user: "alice".parse().unwrap(),
        scopes,
        key: Some((id.clone(), Timestamp(u64::MAX))),
    };
    host.broker.keys().revoke(&issuer, &id, None).await.unwrap();
    // It was let in before that.
    let asked = domain::key::NewKey {
        user: "alice".parse().unwrap(),
        name: String::new(),
        scopes: [Scope::Read].into(),
        lifetime_s: Some(60),
    };
    match host.broker.keys().issue(&issuer, asked, None).await {
        Err(broker::Error::Refused(refusal)) => assert_eq!(refusal.code.as_str(), "KEY_REVOKED"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_host_starts_a_key_is_neither_good_nor_bad() {
    let host = Host::starting(crate::Limits::default()).await;
    let key = key(&host, "alice", &[Scope::Read]).await;
    let answer = host.get_with(&key, "/api/agents").await;
    assert_eq!(
        (answer.status, answer.json()["code"].clone()),
        (503, json!("STARTING"))
    );
}
