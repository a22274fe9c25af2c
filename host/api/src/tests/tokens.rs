//! Tokens of trusted issuers over HTTP: who comes in with one, and what happens while their issuer
//! does not answer.

use super::host::{Host, TOKEN};
use super::issuer::{AUDIENCE, Hands, IssuerServer, Mint, Mood};
use crate::identity::{Algorithm, Identity, IssuerConfig};
use domain::user::Scope;
use egress::{Resolve, SystemResolver};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

async fn trusting(config: IssuerConfig, clock: crate::Clock) -> Host {
    trusting_all(vec![config], clock).await
}

async fn trusting_all(issuers: Vec<IssuerConfig>, clock: crate::Clock) -> Host {
    let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver);
    let identity = Identity::new(issuers, &resolver, clock.clone()).unwrap();
    Host::start_letting_in(|access| access.trusting(identity).by(clock)).await
}

fn claims(subject: &str, exp: u64) -> Value {
    json!({ "iss": "https://id.example", "sub": subject, "aud": AUDIENCE, "exp": exp })
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_a_trusted_issuer_vouches_for_comes_in_with_the_scopes_of_its_tokens() {
    let mint = Mint::new();
    let hands = Hands::at(1_700_000_000_000);
    let server = IssuerServer::with_keys(&mint).await;
    let host = trusting(
        IssuerConfig {
            scopes: vec![Scope::Read],
            ..server.config()
        },
        hands.clock(),
    )
    .await;
    let token = mint.token(Algorithm::Es256, &claims("alice", hands.seconds() + 600));
    let me = host.get_with(&token, "/api/me").await;
    assert_eq!(me.status, 200, "{}", me.body);
    assert_eq!(
        me.json(),
        json!({
            "user_id": "alice", "scopes": ["read"], "authenticated_by": "token", "key_id": null, "issuer": "https://id.example",
            "expires_at": "2023-11-14T22:24:20.000Z",
        })
    );
    assert_eq!(host.get_with(&token, "/api/agents").await.status, 200);
    let refused = host
        .post_with(&token, "/api/agents", &json!({ "definition": "a" }))
        .await;
    assert_eq!(
        (refused.status, refused.json()["code"].clone()),
        (403, json!("SCOPE_MISSING"))
    );
    assert_eq!(
        host.get("/api/agents").await.status,
        200,
        "the host's own token still counts"
    );
    // Nobody becomes the host's own user by the name alone.
    let local = mint.token(Algorithm::Es256, &claims("local", hands.seconds() + 600));
    assert!(
        host.get_with(&local, "/api/me").await.json()["user_id"]
            .as_str()
            .unwrap()
            .starts_with("oidc-")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_good_is_answered_with_401_and_why() {
    let mint = Mint::new();
    let hands = Hands::at(1_700_000_000_000);
    let server = IssuerServer::with_keys(&mint).await;
    let host = trusting(server.config(), hands.clock()).await;
    let good = mint.token(Algorithm::Rs256, &claims("alice", hands.seconds() + 600));
    let expired = mint.token(Algorithm::Rs256, &claims("alice", hands.seconds() - 600));
    for (token, why) in [
        (expired.as_str(), "it has expired"),
        (
            &format!("{}AAAAAAAA", &good[..good.len() - 8]),
            "its signature is wrong",
        ),
        ("a.b.c", "it does not have the form of a signed token"),
        (
            &format!("{good}.{good}"),
            "it does not have the form of a signed token",
        ),
    ] {
        let answer = host.get_with(token, "/api/me").await;
        let problem = answer.json();
        assert_eq!(
            (answer.status, &problem["code"], &problem["field"]),
            (401, &json!("UNAUTHORIZED"), &json!("header:Authorization"))
        );
        assert!(
            problem["detail"].as_str().unwrap().contains(why)
                && answer.has("www-authenticate: Bearer"),
            "{why}: {}",
            answer.body
        );
    }
    let headers = [
        format!("authorization: Bearer {good}"),
        format!("authorization: Bearer {good}"),
        "host: localhost".to_owned(),
    ];
    let twice = host
        .send_as_it_is(
            "GET",
            "/api/me",
            &[&headers[0], &headers[1], &headers[2]],
            "",
        )
        .await;
    assert_eq!(twice.status, 401, "{}", twice.body);
    let none = Host::start().await;
    assert_eq!(
        none.get_with(&good, "/api/me").await.status,
        401,
        "nobody is trusted unless the configuration says so"
    );
}

/// While an issuer is down its keys count until their hard expiry, and then the answer is 503.
#[tokio::test(flavor = "multi_thread")]
async fn the_keys_of_an_issuer_that_is_down_count_until_their_hard_expiry() {
    let mint = Mint::new();
    let hands = Hands::at(1_700_000_000_000);
    let server = IssuerServer::with_keys(&mint).await;
    let host = trusting(
        IssuerConfig {
            refresh_s: 600,
            hard_expiry_s: 3_600,
            ..server.config()
        },
        hands.clock(),
    )
    .await;
    let token = mint.token(
        Algorithm::Ps256,
        &claims("alice", hands.seconds() + 100_000),
    );
    assert_eq!(host.get_with(&token, "/api/me").await.status, 200);
    server.is(Mood::Answers(503, "x: y"));
    for _ in 0..5 {
        hands.pass_s(700);
        assert_eq!(
            host.get_with(&token, "/api/me").await.status,
            200,
            "from the cache"
        );
    }
    hands.pass_s(101);
    let answer = host.get_with(&token, "/api/me").await;
    assert_eq!(
        (answer.status, answer.json()["code"].clone()),
        (503, json!("IDENTITY_UNAVAILABLE")),
        "{}",
        answer.body
    );
    let wait: u64 = answer
        .head
        .lines()
        .find_map(|line| line.strip_prefix("retry-after: "))
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(
        host.get_with(TOKEN, "/api/me").await.status,
        200,
        "nobody else is held up"
    );
    server.is(Mood::Well);
    hands.pass_s(wait);
    assert_eq!(
        host.get_with(&token, "/api/me").await.status,
        200,
        "it is back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_ends_with_the_token_that_opened_it() {
    let mint = Mint::new();
    let server = IssuerServer::with_keys(&mint).await;
    let clock = crate::Clock::system();
    let host = trusting(
        IssuerConfig {
            leeway_s: 0,
            ..server.config()
        },
        clock.clone(),
    )
    .await;
    let (agent, _) = host.agent_with_session_of("alice".parse().unwrap()).await;
    let token = mint.token(
        Algorithm::EdDsa,
        &claims("alice", clock.now().0 / 1_000 + 5),
    );
    assert_eq!(host.get_with(&token, "/api/me").await.status, 200);
    let path = format!("/api/agents/{agent}/stream?view=log");
    let mut frames = host.follow_with(&token, &path, &[]).await;
    let ending = async { while frames.next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(10), ending)
        .await
        .expect("the stream goes on");
    assert_eq!(host.get_with(&token, "/api/me").await.status, 401);
}

/// Returns the user ids of tokens of each issuer, at a host that trusts them all.
async fn users(issuers: &[(&str, Option<bool>)], subject: &str) -> Vec<String> {
    let mint = Mint::new();
    let hands = Hands::at(1_700_000_000_000);
    let server = IssuerServer::with_keys(&mint).await;
    let config = |(issuer, plain_users): &(&str, Option<bool>)| IssuerConfig {
        issuer: (*issuer).to_owned(),
        plain_users: *plain_users,
        ..server.config()
    };
    let host = trusting_all(issuers.iter().map(config).collect(), hands.clock()).await;
    let mut users = Vec::new();
    for (issuer, _) in issuers {
        let claims =
            json!({ "iss": issuer, "sub": subject, "aud": AUDIENCE, "exp": hands.seconds() + 600 });
        let me = host
            .get_with(&mint.token(Algorithm::Es256, &claims), "/api/me")
            .await;
        assert_eq!(me.status, 200, "{}", me.body);
        users.push(me.json()["user_id"].as_str().unwrap().to_owned());
    }
    users
}

#[tokio::test(flavor = "multi_thread")]
async fn two_issuers_that_name_a_user_in_the_same_way_mean_two_users() {
    let a = "https://a.example";
    let b = "https://b.example";
    let of_two = users(&[(a, None), (b, None)], "alice").await;
    assert!(
        of_two
            .iter()
            .all(|user| user.starts_with("oidc-") && user.len() == 37),
        "{of_two:?}"
    );
    assert_ne!(of_two[0], of_two[1]);
    assert_eq!(
        users(&[(b, None), (a, Some(false))], "alice").await,
        [of_two[1].as_str(), &of_two[0]],
        "whatever their order"
    );
    // One of them may be plain; the other is called as before.
    assert_eq!(
        users(&[(a, None), (b, Some(true))], "alice").await,
        [of_two[0].as_str(), "alice"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_of_the_only_issuer_are_plain_unless_it_says_otherwise() {
    let only = "https://a.example";
    assert_eq!(users(&[(only, None)], "alice").await, ["alice"]);
    assert_eq!(users(&[(only, Some(true))], "alice").await, ["alice"]);
    let derived = users(&[(only, Some(false))], "alice").await;
    assert_eq!(
        derived,
        users(&[(only, None), ("https://b.example", None)], "alice").await[..1]
    );
    assert!(
        users(&[(only, Some(true))], "local").await[0].starts_with("oidc-"),
        "nobody becomes the host's own user"
    );
}
