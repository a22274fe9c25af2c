//! Tokens of every kind, right and wrong, and the keys that they are checked by.

use super::jwk::KeySet;
use super::keys::UNKNOWN_KEY_MS_MIN;
use super::{Algorithm, Identity, IssuerConfig};
use crate::caller::{Caller, Credential};
use crate::problem::Problem;
use crate::tests::issuer::{ALGORITHMS, AUDIENCE, Hands, IssuerServer, Mint, Mood, encoded, name};
use domain::time::Timestamp;
use domain::user::Scope;
use egress::{Resolve, SystemResolver};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const NOON_MS: u64 = 1_700_000_000_000;

struct World {
    mint: Mint,
    server: IssuerServer,
    hands: Hands,
    identity: Arc<Identity>,
}

fn identity(config: IssuerConfig, hands: &Hands) -> Arc<Identity> {
    let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver);
    Arc::new(Identity::new(vec![config], &resolver, hands.clock()).unwrap())
}

impl World {
    async fn new() -> Self {
        Self::with(|config| config).await
    }

    async fn with(change: impl FnOnce(IssuerConfig) -> IssuerConfig) -> Self {
        let mint = Mint::new();
        let hands = Hands::at(NOON_MS);
        let server = IssuerServer::with_keys(&mint).await;
        let identity = identity(change(server.config()), &hands);
        Self {
            mint,
            server,
            hands,
            identity,
        }
    }

    /// Claims that are fine, with some changed, or taken out when they are null.
    fn claims(&self, changed: &Value) -> Value {
        let now = self.hands.seconds();
        let mut claims = json!({
            "iss": "https://id.example", "sub": "alice", "aud": AUDIENCE, "exp": now + 600, "nbf": now - 10, "iat": now - 10,
        });
        let fields = claims.as_object_mut().unwrap();
        fields.extend(changed.as_object().unwrap().clone());
        fields.retain(|_, value| !value.is_null());
        claims
    }

    async fn caller(&self, token: &str) -> Result<Caller, Problem> {
        self.identity.caller(token).await
    }

    /// Returns why a token is refused; "fine" when it is not.
    async fn why(&self, token: &str) -> String {
        match self.caller(token).await {
            Ok(_) => "fine".to_owned(),
            Err(problem) => format!(
                "{} {}",
                problem.code.status(),
                problem
                    .detail
                    .replace("the bearer token is not accepted: ", "")
            ),
        }
    }

    async fn good(&self) -> String {
        self.mint.token(Algorithm::Es256, &self.claims(&json!({})))
    }
}

#[tokio::test]
async fn each_algorithm_counts_where_it_is_pinned_and_nowhere_else() {
    for pinned in ALGORITHMS {
        let world = World::with(|config| IssuerConfig {
            algorithms: vec![pinned],
            ..config
        })
        .await;
        for algorithm in ALGORITHMS {
            let token = world.mint.token(algorithm, &world.claims(&json!({})));
            let expected = if algorithm == pinned {
                "fine"
            } else {
                "401 its algorithm is not among those configured for its issuer"
            };
            assert_eq!(
                world.why(&token).await,
                expected,
                "{} where {} is pinned",
                name(algorithm),
                name(pinned)
            );
        }
        let caller = world
            .caller(&world.mint.token(pinned, &world.claims(&json!({}))))
            .await
            .unwrap();
        let expires_at = Timestamp(NOON_MS + 660_000);
        assert_eq!(
            caller.credential,
            Credential::Token {
                issuer: "https://id.example".into(),
                expires_at
            }
        );
        assert_eq!(
            (caller.user.as_str(), caller.scopes.as_ref()),
            ("alice", &[Scope::Read, Scope::Write].into())
        );
    }
}

#[tokio::test]
async fn a_token_cannot_choose_how_it_is_checked() {
    let world = World::new().await;
    let claims = world.claims(&json!({}));
    let pinned = "401 its algorithm is not among those configured for its issuer";
    for alg in [
        "none", "None", "NONE", "", "HS256", "HS384", "HS512", "rs256", "ES512", "RS256 ",
    ] {
        let header = json!({ "alg": alg, "kid": "rsa" });
        let unsigned = format!(
            "{}.{}.",
            encoded(header.to_string()),
            encoded(claims.to_string())
        );
        assert_eq!(world.why(&unsigned).await, pinned, "{alg}");
        assert_eq!(
            world
                .why(&world.mint.forged(Algorithm::Rs256, &header, &claims))
                .await,
            pinned,
            "{alg}"
        );
    }
    // The public key as the secret of a symmetric signature.
    let header = json!({ "alg": "HS256", "kid": "rsa" });
    let signed = format!(
        "{}.{}",
        encoded(header.to_string()),
        encoded(claims.to_string())
    );
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &world.mint.modulus());
    let confused = format!(
        "{signed}.{}",
        encoded(ring::hmac::sign(&secret, signed.as_bytes()))
    );
    assert_eq!(world.why(&confused).await, pinned);
    // A header that says one algorithm of the list, and a signature by another.
    for (says, is, kid) in [
        (Algorithm::Rs256, Algorithm::Ps256, "rsa"),
        (Algorithm::Rs256, Algorithm::Rs512, "rsa"),
    ] {
        let token = world
            .mint
            .forged(is, &json!({ "alg": name(says), "kid": kid }), &claims);
        assert_eq!(
            world.why(&token).await,
            "401 its signature is wrong",
            "{}",
            name(says)
        );
    }
    // A key of another kind than the algorithm takes, whoever signed.
    for (alg, kid) in [
        ("RS256", "p256"),
        ("ES256", "rsa"),
        ("ES256", "p384"),
        ("EdDSA", "p256"),
        ("ES384", "ed25519"),
    ] {
        let token = world.mint.forged(
            Algorithm::Es256,
            &json!({ "alg": alg, "kid": kid }),
            &claims,
        );
        assert_eq!(
            world.why(&token).await,
            "401 its issuer has no key with its `kid` and type",
            "{alg} {kid}"
        );
    }
}

#[tokio::test]
async fn a_token_cannot_bring_or_point_to_a_key_of_its_own() {
    let world = World::new().await;
    let other = Mint::new();
    let asked = IssuerServer::start(json!({ "/keys": other.jwks() })).await;
    let jwk = other.jwks()["keys"][1].clone();
    for more in [
        json!({ "kid": "p256", "jwk": jwk }),
        json!({ "kid": "p256", "jku": format!("{}/keys", asked.url) }),
        json!({ "kid": "p256", "x5u": format!("{}/keys", asked.url), "x5c": ["MIIB"] }),
        json!({ "kid": format!("{}/keys", asked.url) }),
        json!({ "kid": "../../keys" }),
        json!({ "kid": "" }),
    ] {
        let mut header = json!({ "alg": "ES256" });
        header
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let why = world
            .why(&other.forged(Algorithm::Es256, &header, &world.claims(&json!({}))))
            .await;
        assert!(
            why.starts_with("401 its signature") || why.starts_with("401 its issuer has no key"),
            "{header}: {why}"
        );
    }
    assert_eq!(asked.asked(), 0);
    let foreign = world.claims(&json!({ "iss": asked.url }));
    assert_eq!(
        world.why(&other.token(Algorithm::Es256, &foreign)).await,
        "401 its issuer is not trusted"
    );
    assert_eq!(
        asked.asked(),
        0,
        "nobody is asked whom the configuration does not name"
    );
}

#[tokio::test]
async fn what_a_token_says_is_checked_before_it_is_believed() {
    let world = World::with(|config| IssuerConfig {
        audience: vec!["other".to_owned(), AUDIENCE.to_owned()],
        ..config
    })
    .await;
    let now = world.hands.seconds();
    let audience = "401 it is for another audience: its `aud` is not among the configured ones";
    let expired = "401 it has expired (`exp`)";
    let not_yet = "401 it is not valid yet (`nbf`)";
    let future = "401 it was issued in the future (`iat`)";
    let claim = |name: &str| format!("401 its `{name}` is missing or invalid");
    let user = "401 the configured claim names no user";
    for (changed, expected) in [
        (json!({}), "fine"),
        (json!({ "aud": ["x", AUDIENCE] }), "fine"),
        (json!({ "aud": "x" }), audience),
        (json!({ "aud": ["x", 7] }), audience),
        (json!({ "aud": [] }), audience),
        (json!({ "aud": null }), &claim("aud")),
        (json!({ "aud": { "x": AUDIENCE } }), &claim("aud")),
        // A minute of leeway, and no second more.
        (json!({ "exp": now - 59 }), "fine"),
        (json!({ "exp": now - 60 }), expired),
        (json!({ "exp": 0 }), expired),
        (json!({ "exp": null }), &claim("exp")),
        (json!({ "exp": "9999999999" }), &claim("exp")),
        (json!({ "exp": -1 }), &claim("exp")),
        (json!({ "exp": 1e300 }), &claim("exp")),
        (json!({ "nbf": now + 60 }), "fine"),
        (json!({ "nbf": now + 61 }), not_yet),
        (json!({ "nbf": "0" }), &claim("nbf")),
        (json!({ "nbf": null, "iat": null }), "fine"),
        (json!({ "iat": now + 60 }), "fine"),
        (json!({ "iat": now + 61 }), future),
        (json!({ "iat": true }), &claim("iat")),
        (json!({ "exp": now as f64 + 0.5 }), "fine"),
        (
            json!({ "iss": "https://id.example/" }),
            "401 its issuer is not trusted",
        ),
        (
            json!({ "iss": ["https://id.example"] }),
            "401 its issuer is not trusted",
        ),
        (json!({ "iss": null }), "401 its issuer is not trusted"),
        (json!({ "sub": null }), user),
        (json!({ "sub": "" }), user),
        (json!({ "sub": 7 }), user),
        (json!({ "sub": "x".repeat(513) }), user),
    ] {
        let token = world.mint.token(Algorithm::Es256, &world.claims(&changed));
        assert_eq!(world.why(&token).await, expected, "{changed}");
    }
}

#[tokio::test]
async fn a_token_that_was_changed_cut_or_blown_up_is_refused() {
    let world = World::new().await;
    let good = world.good().await;
    assert_eq!(world.why(&good).await, "fine");
    let [header, claims, signature] = good.split('.').collect::<Vec<_>>().try_into().unwrap();
    let other = encoded(world.claims(&json!({ "sub": "bob" })).to_string());
    let malformed = "401 it does not have the form of a signed token";
    let unsigned = "401 its signature is wrong";
    for (token, expected) in [
        (format!("{header}.{other}.{signature}"), unsigned),
        (format!("{header}.{claims}."), unsigned),
        (format!("{header}.{claims}.{}", encoded([0; 64])), unsigned),
        (format!("{header}.{claims}.{signature}AA"), unsigned),
        (format!("{header}.{claims}"), malformed),
        (
            format!("{header}.{claims}.{signature}.{signature}"),
            malformed,
        ),
        (format!("{header}.{claims}.{signature}=="), malformed),
        (format!("{header}.{claims}.{signature}+"), malformed),
        (format!("{header}..{signature}"), malformed),
        (format!(".{claims}.{signature}"), malformed),
        (
            format!(
                "{}.{claims}.{signature}",
                encoded("{\"alg\":\"ES256\",\"alg\":\"none\"}")
            ),
            malformed,
        ),
        (
            format!("{}.{claims}.{signature}", encoded("{\"alg\":7}")),
            malformed,
        ),
        (format!("{header}.{}.{signature}", encoded("[]")), malformed),
        ("...".to_owned(), malformed),
        (".".repeat(100), malformed),
        (
            format!("{good}{}", "A".repeat(8 << 10)),
            "401 it has more than 8192 bytes",
        ),
    ] {
        assert_eq!(world.why(&token).await, expected, "{token}");
    }
    for (more, expected) in [
        (json!({ "typ": "at+jwt" }), "fine"),
        (json!({ "typ": "application/at+JWT" }), "fine"),
        (
            json!({ "typ": "dpop+jwt" }),
            "401 its type is not one that the API accepts",
        ),
        (
            json!({ "crit": [] }),
            "401 it has unknown critical extensions (`crit`)",
        ),
        (
            json!({ "crit": ["b64"], "b64": false }),
            "401 it has unknown critical extensions (`crit`)",
        ),
    ] {
        let mut header = json!({ "alg": "ES256", "kid": "p256" });
        header
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let token = world
            .mint
            .forged(Algorithm::Es256, &header, &world.claims(&json!({})));
        assert_eq!(world.why(&token).await, expected, "{more}");
    }
}

#[tokio::test]
async fn a_token_says_who_and_at_most_what_for() {
    let by_email = World::with(|config| IssuerConfig {
        user_claim: "email".to_owned(),
        ..config
    })
    .await;
    for (claims, expected) in [
        (
            json!({ "email": "a@example.org", "email_verified": true }),
            Some("a@example.org"),
        ),
        (
            json!({ "email": "a@example.org", "email_verified": false }),
            None,
        ),
        (
            json!({ "email": "a@example.org", "email_verified": "true" }),
            None,
        ),
        (json!({ "email": "a@example.org" }), None),
        (json!({ "email_verified": true }), None),
    ] {
        let caller = by_email
            .caller(
                &by_email
                    .mint
                    .token(Algorithm::EdDsa, &by_email.claims(&claims)),
            )
            .await;
        assert_eq!(
            caller.ok().map(|caller| caller.user.to_string()).as_deref(),
            expected,
            "{claims}"
        );
    }
    let odd = by_email.claims(&json!({ "email": "auth0|5f7c", "email_verified": true }));
    let caller = by_email
        .caller(&by_email.mint.token(Algorithm::EdDsa, &odd))
        .await
        .unwrap();
    assert!(
        caller.user.as_str().starts_with("oidc-") && caller.user.as_str().len() == 37,
        "{}",
        caller.user
    );

    let scopes = vec![Scope::Read, Scope::Write, Scope::Keys];
    let by_scope = World::with(|config| IssuerConfig {
        scopes_claim: Some("scope".to_owned()),
        scopes,
        ..config
    })
    .await;
    for (said, expected) in [
        (json!("openid read keys"), vec![Scope::Read, Scope::Keys]),
        (json!(["write", "admin", 7]), vec![Scope::Write]),
        (json!("admin"), vec![]),
        (json!("reader READ"), vec![]),
        (json!(null), vec![]),
        (json!(7), vec![]),
    ] {
        let token = by_scope.mint.token(
            Algorithm::EdDsa,
            &by_scope.claims(&json!({ "scope": said })),
        );
        assert_eq!(
            by_scope.caller(&token).await.unwrap().scopes.as_ref(),
            &expected.into_iter().collect(),
            "{said}"
        );
    }
}

#[tokio::test]
async fn without_a_key_name_the_only_key_that_fits_is_meant() {
    let world = World::new().await;
    let nameless = |alg: Algorithm| {
        world
            .mint
            .forged(alg, &json!({ "alg": name(alg) }), &world.claims(&json!({})))
    };
    assert_eq!(world.why(&nameless(Algorithm::Es384)).await, "fine");
    let mut keys = world.mint.jwks();
    let mut twin = Mint::new().jwks()["keys"][1].clone();
    twin["kid"] = json!("twin");
    keys["keys"].as_array_mut().unwrap().push(twin);
    world.server.publish(json!({ "/keys": keys }));
    let again = World {
        identity: identity(world.server.config(), &world.hands),
        ..World::new().await
    };
    assert_eq!(again.why(&nameless(Algorithm::Es384)).await, "fine");
    assert_eq!(
        again.why(&nameless(Algorithm::Es256)).await,
        "401 its issuer has no key with its `kid` and type",
        "which of the two?"
    );
}

#[test]
fn keys_that_are_weak_or_for_something_else_are_passed_over() {
    let mint = Mint::new();
    let rsa = mint.jwks()["keys"][0].clone();
    let p256 = mint.jwks()["keys"][1].clone();
    let with = |key: &Value, more: Value| {
        let mut key = key.clone();
        key.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        key
    };
    // 1,024 bits.
    let small = "zzRjVFb-w23OqBsmTx8YbtgcR1h9Z_EuBbrC51qvD7OrdnBGyiFljthD8uWZagVDqcEsvysHPCrg4OoR43ZSxEBy1-zAtXHYui6SxKQNFxqiUhGblek96YSvkbMgKh3Po6DsTtSmbZl1pRomi5iuUH-eQjfhtPiBC2l9E8PYsK8";
    let padded = encoded([vec![0; 256], vec![0xff; 128]].concat());
    for (key, is_usable) in [
        (rsa.clone(), true),
        (with(&rsa, json!({ "n": small })), false),
        (with(&rsa, json!({ "n": padded })), false),
        (with(&rsa, json!({ "n": "" })), false),
        (with(&rsa, json!({ "n": "!" })), false),
        (with(&rsa, json!({ "use": "enc" })), false),
        (with(&rsa, json!({ "key_ops": ["sign"] })), false),
        (with(&rsa, json!({ "key_ops": ["verify"] })), true),
        (with(&rsa, json!({ "alg": "RS256" })), true),
        (with(&rsa, json!({ "alg": "RSA-OAEP" })), false),
        (with(&p256, json!({ "crv": "secp256k1" })), false),
        (with(&p256, json!({ "crv": "P-384" })), false),
        (with(&p256, json!({ "y": null })), false),
        (with(&p256, json!({ "x": encoded([1; 31]) })), false),
        (json!({ "kty": "oct", "k": encoded([7; 32]) }), false),
        (
            json!({ "kty": "OKP", "crv": "X25519", "x": encoded([7; 32]) }),
            false,
        ),
        (json!({ "kty": 7 }), false),
        (json!("x"), false),
    ] {
        let set = KeySet::read(json!({ "keys": [key] }).to_string().as_bytes());
        assert_eq!(set.is_some(), is_usable, "{key}");
        let beside = KeySet::read(json!({ "keys": [key, p256] }).to_string().as_bytes());
        assert!(beside.is_some(), "{key}");
    }
    for nonsense in ["", "{}", "[]", "{\"keys\":7}", "{\"keys\":[]}", "<html>"] {
        assert_eq!(KeySet::read(nonsense.as_bytes()), None, "{nonsense}");
    }
    // A key that is for one algorithm is for no other.
    let only = KeySet::read(
        json!({ "keys": [with(&rsa, json!({ "alg": "RS256" }))] })
            .to_string()
            .as_bytes(),
    )
    .unwrap();
    assert_eq!(
        (
            only.candidates(Some("rsa"), Algorithm::Rs256).len(),
            only.candidates(Some("rsa"), Algorithm::Ps256).len()
        ),
        (1, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_who_come_at_once_share_one_request_for_keys() {
    let world = World::new().await;
    let token = world.good().await;
    let callers = (0..64).map(|_| world.caller(&token));
    assert!(
        futures::future::join_all(callers)
            .await
            .iter()
            .all(Result::is_ok)
    );
    assert_eq!(world.server.asked(), 1);
    // The same when it fails.
    world.server.is(Mood::Answers(500, "x: y"));
    world.hands.pass_s(3_601);
    let token = world.good().await;
    let callers = (0..64).map(|_| world.caller(&token));
    assert!(
        futures::future::join_all(callers)
            .await
            .iter()
            .all(|caller| caller.as_ref().is_err_and(|it| it.code.status() == 503))
    );
    assert_eq!(world.server.asked(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_key_name_leads_to_one_request_at_most_now_and_then() {
    let world = World::new().await;
    assert_eq!(
        (
            world.why(&world.good().await).await.as_str(),
            world.server.asked()
        ),
        ("fine", 1)
    );
    let header = json!({ "alg": "ES256", "kid": "new" });
    let token = |world: &World| {
        world
            .mint
            .forged(Algorithm::Es256, &header, &world.claims(&json!({})))
    };
    let unknown = "401 its issuer has no key with its `kid` and type";
    for _ in 0..20 {
        assert_eq!(world.why(&token(&world)).await, unknown);
    }
    assert_eq!(world.server.asked(), 2);
    let mut keys = world.mint.jwks();
    keys["keys"][1]["kid"] = json!("new");
    world.server.publish(json!({ "/keys": keys }));
    assert_eq!(
        world.why(&token(&world)).await,
        unknown,
        "it was asked for a moment ago"
    );
    world.hands.pass_s(UNKNOWN_KEY_MS_MIN / 1_000);
    assert_eq!(
        world.why(&token(&world)).await,
        "fine",
        "the issuer has changed its keys"
    );
    assert_eq!(
        world.why(&world.good().await).await,
        unknown,
        "the old one counts no longer"
    );
    // While the issuer is down, nobody can tell.
    world.server.is(Mood::Answers(500, "x: y"));
    world.hands.pass_s(UNKNOWN_KEY_MS_MIN / 1_000);
    assert!(world.why(&world.good().await).await.starts_with("503 "));
    assert_eq!(world.why(&token(&world)).await, "fine");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_asked_for_again_while_nobody_waits_and_less_often_while_that_fails() {
    let world = World::new().await;
    assert_eq!(world.why(&world.good().await).await, "fine");
    // It hangs: whoever comes meanwhile is served from what is here.
    world.server.is(Mood::Hangs);
    world.hands.pass_s(601);
    let begun = Instant::now();
    for _ in 0..10 {
        assert_eq!(world.why(&world.good().await).await, "fine");
    }
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    until(|| world.server.asked() == 2).await;

    // It fails: seconds pass between tries, more and more of them.
    let world = World::new().await;
    assert_eq!(world.why(&world.good().await).await, "fine");
    world.server.is(Mood::Answers(500, "x: y"));
    world.hands.pass_s(601);
    let mut tried = Vec::new();
    for second in 0..300 {
        let before = world.server.asked();
        assert_eq!(world.why(&world.good().await).await, "fine");
        tokio::time::sleep(Duration::from_millis(3)).await;
        tried.extend((world.server.asked() > before).then_some(second));
        world.hands.pass_s(1);
    }
    assert!((7..=12).contains(&tried.len()), "{tried:?}");
    assert!(
        tried
            .windows(2)
            .last()
            .is_some_and(|pair| pair[1] - pair[0] >= 60),
        "{tried:?}"
    );
    // It is back, and nobody waits for that either.
    world.server.is(Mood::Well);
    world.hands.pass_s(61);
    let before = world.server.asked();
    assert_eq!(world.why(&world.good().await).await, "fine");
    until(|| world.server.asked() == before + 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_keeps_no_keys_for_longer_and_no_try_away() {
    let world = World::new().await;
    assert_eq!(world.why(&world.good().await).await, "fine");
    world.server.is(Mood::Answers(500, "x: y"));
    world.hands.set_back_s(8 * 3_600);
    assert_eq!(world.why(&world.good().await).await, "fine");
    world.hands.pass_s(601);
    assert_eq!(world.why(&world.good().await).await, "fine");
    until(|| world.server.asked() == 2).await;
    world.hands.set_back_s(8 * 3_600);
    assert_eq!(world.why(&world.good().await).await, "fine");
    world.hands.pass_s(3_000);
    assert!(
        world.why(&world.good().await).await.starts_with("503 "),
        "an hour and a second after they came"
    );
    world.server.is(Mood::Well);
    world.hands.pass_s(61);
    assert_eq!(world.why(&world.good().await).await, "fine");
}

async fn until(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_says_itself_where_its_keys_are_and_nobody_says_it_for_another() {
    let mint = Mint::new();
    let hands = Hands::at(NOON_MS);
    let server = IssuerServer::start(json!({})).await;
    let issuer = format!("{}/realm", server.url);
    let document = |issuer: &str, keys: &str| json!({ "/realm/.well-known/openid-configuration": { "issuer": issuer, "jwks_uri": keys }, "/certs": mint.jwks() });
    let config = IssuerConfig {
        issuer: issuer.clone(),
        jwks_url: None,
        ..server.config()
    };
    let token = mint.token(
        Algorithm::Rs256,
        &json!({ "iss": issuer, "sub": "alice", "aud": AUDIENCE, "exp": hands.seconds() + 600 }),
    );
    for (documents, expected) in [
        (document(&issuer, &format!("{}/certs", server.url)), None),
        (
            document(&format!("{issuer}/"), &format!("{}/certs", server.url)),
            Some(503),
        ),
        (
            document("https://other.example", &format!("{}/certs", server.url)),
            Some(503),
        ),
        (document(&issuer, "http://keys.example/certs"), Some(503)),
        (document(&issuer, "file:///certs"), Some(503)),
        (
            document(&issuer, &format!("{}/nothing", server.url)),
            Some(503),
        ),
        (
            json!({ "/realm/.well-known/openid-configuration": { "jwks_uri": "x" } }),
            Some(503),
        ),
        (json!({}), Some(503)),
    ] {
        server.publish(documents.clone());
        let reported = identity(config.clone(), &hands)
            .caller(&token)
            .await
            .map(drop)
            .map_err(|problem| problem.code.status());
        assert_eq!(reported.err(), expected, "{documents}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_come_from_one_place_and_are_not_many() {
    let world = World::new().await;
    let elsewhere = IssuerServer::with_keys(&world.mint).await;
    let header: &'static str =
        Box::leak(format!("location: {}/keys", elsewhere.url).into_boxed_str());
    world.server.is(Mood::Answers(302, header));
    assert!(world.why(&world.good().await).await.starts_with("503 "));
    assert_eq!(elsewhere.asked(), 0, "a redirect is not followed");
    let huge = World::new().await;
    let mut keys = huge.mint.jwks();
    keys["padding"] = json!("x".repeat(256 << 10));
    huge.server.publish(json!({ "/keys": keys }));
    assert!(huge.why(&huge.good().await).await.starts_with("503 "));
}
