//! Calls of services, forged and replayed ones among them.

use super::*;

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const BODY: &[u8] = br#"{"update_id":1}"#;
const SECRET: &[u8] = b"a-secret";

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn service_call<'a>(
    method: CallMethod,
    headers: &'a [(String, String)],
    body: &'a [u8],
) -> ServiceCall<'a> {
    ServiceCall {
        method,
        headers,
        query: &[],
        body,
    }
}

fn secrets(secret: &[u8]) -> WebhookSecrets<'_> {
    WebhookSecrets {
        secret,
        verify_token: None,
    }
}

fn posted(
    check: &WebhookCheck,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Verified, NotVerified> {
    let headers = pairs(headers);
    let call = service_call(CallMethod::Post, &headers, body);
    check.verify(secrets(SECRET), &call, NOW)
}

fn telegram() -> WebhookCheck {
    WebhookCheck::Telegram {
        secret: "telegram-hook".to_owned(),
    }
}

fn meta() -> WebhookCheck {
    WebhookCheck::Meta {
        secret: "app".to_owned(),
        verify_token: "handshake".to_owned(),
    }
}

fn slack() -> WebhookCheck {
    WebhookCheck::Slack {
        secret: "signing".to_owned(),
    }
}

fn token(header: Option<&str>) -> WebhookCheck {
    WebhookCheck::Token {
        secret: "token".to_owned(),
        header: header.map(str::to_owned),
    }
}

fn signature(parts: &[&[u8]]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    hex::encode(mac.finalize().into_bytes())
}

fn slack_headers(time_s: u64, body: &[u8]) -> (String, String) {
    let time = time_s.to_string();
    let signed = signature(&[b"v0:", time.as_bytes(), b":", body]);
    (time, format!("v0={signed}"))
}

#[test]
fn a_call_of_telegram_has_the_secret() {
    let with = |value: &str| posted(&telegram(), &[(TELEGRAM_HEADER, value)], BODY);
    assert_eq!(with("a-secret"), Ok(Verified::Call));
    for wrong in ["", "a-secre", "a-secret ", "A-SECRET"] {
        assert_eq!(with(wrong), Err(NotVerified::Wrong), "{wrong}");
    }
    assert!(matches!(
        posted(&telegram(), &[], BODY),
        Err(NotVerified::Missing(_))
    ));
}

#[test]
fn a_call_of_meta_is_signed_as_a_whole() {
    let signed = format!("sha256={}", signature(&[BODY]));
    let with = |value: &str, body: &[u8]| posted(&meta(), &[(META_HEADER, value)], body);
    assert_eq!(with(&signed, BODY), Ok(Verified::Call));
    assert_eq!(with(&signed, b"{}"), Err(NotVerified::Wrong));
    let bare = signature(&[BODY]);
    for wrong in ["", "sha256=", "sha256=zz", &bare, &signed[..40]] {
        assert_eq!(with(wrong, BODY), Err(NotVerified::Wrong), "{wrong}");
    }
}

/// The example in Slack's own documentation of its signatures.
#[test]
fn a_signature_of_slacks_own_example_is_right() {
    let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&\
        channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&\
        command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands\
        %2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&\
        trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let headers = pairs(&[
        (SLACK_TIME_HEADER, "1531420618"),
        (
            SLACK_HEADER,
            "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        ),
    ]);
    let call = service_call(CallMethod::Post, &headers, body);
    let secret = secrets(b"8f742231b10e8888abcd99yyyzzz85a5");
    let then = Timestamp(1_531_420_618_000);
    assert_eq!(slack().verify(secret, &call, then), Ok(Verified::Call));
}

#[test]
fn a_call_of_slack_counts_for_five_minutes() {
    let now_s = NOW.0 / 1_000;
    let at = |time_s: u64| {
        let (time, signed) = slack_headers(time_s, BODY);
        let headers = [
            (SLACK_TIME_HEADER, time.as_str()),
            (SLACK_HEADER, signed.as_str()),
        ];
        posted(&slack(), &headers, BODY)
    };
    for fresh in [now_s, now_s - 300, now_s + 300] {
        assert_eq!(at(fresh), Ok(Verified::Call), "{fresh}");
    }
    for stale in [now_s - 301, now_s + 301, 0] {
        assert_eq!(at(stale), Err(NotVerified::Stale), "{stale}");
    }
    // A fresh time does not go with an old signature.
    let (_, signed) = slack_headers(now_s - 900, BODY);
    let now = now_s.to_string();
    let replayed = [
        (SLACK_TIME_HEADER, now.as_str()),
        (SLACK_HEADER, signed.as_str()),
    ];
    assert_eq!(posted(&slack(), &replayed, BODY), Err(NotVerified::Wrong));
}

#[test]
fn a_token_is_in_the_header_that_is_named() {
    let bearer = |value: &str| posted(&token(None), &[("authorization", value)], BODY);
    assert_eq!(bearer("Bearer a-secret"), Ok(Verified::Call));
    assert_eq!(bearer("bearer a-secret"), Ok(Verified::Call));
    for wrong in ["a-secret", "Basic a-secret", "Bearer ", "Bearer b"] {
        assert_eq!(bearer(wrong), Err(NotVerified::Wrong), "{wrong}");
    }
    let named = |header: &str| posted(&token(Some("X-Mail")), &[(header, "a-secret")], BODY);
    assert_eq!(named("x-mail"), Ok(Verified::Call));
    assert!(named("authorization").is_err());
}

#[test]
fn a_proof_that_is_there_twice_is_none() {
    let twice = [(TELEGRAM_HEADER, "a-secret"), (TELEGRAM_HEADER, "a-secret")];
    assert!(matches!(
        posted(&telegram(), &twice, BODY),
        Err(NotVerified::Missing(_))
    ));
}

#[test]
fn nothing_is_signed_with_an_empty_secret() {
    let mut mac = Hmac::<Sha256>::new_from_slice(b"").unwrap();
    mac.update(BODY);
    let signed = format!("sha256={}", hex::encode(mac.finalize().into_bytes()));
    let headers = pairs(&[
        (META_HEADER, &signed),
        (TELEGRAM_HEADER, ""),
        ("authorization", "Bearer "),
    ]);
    let call = service_call(CallMethod::Post, &headers, BODY);
    for check in [telegram(), meta(), slack(), token(None)] {
        assert_eq!(
            check.verify(secrets(b""), &call, NOW),
            Err(NotVerified::EmptySecret),
            "{check:?}"
        );
    }
}

#[test]
fn the_handshake_of_meta_sends_its_challenge_back() {
    let with = |query: &[(&str, &str)]| {
        let query = pairs(query);
        let call = ServiceCall {
            query: &query,
            ..service_call(CallMethod::Get, &[], b"")
        };
        let secrets = WebhookSecrets {
            secret: SECRET,
            verify_token: Some(b"hand"),
        };
        meta().verify(secrets, &call, NOW)
    };
    let mode = ("hub.mode", "subscribe");
    let right = ("hub.verify_token", "hand");
    let challenge = ("hub.challenge", "1158201444");
    assert_eq!(
        with(&[mode, right, challenge]),
        Ok(Verified::Handshake {
            challenge: "1158201444".to_owned()
        })
    );
    for wrong in [
        vec![mode, challenge],
        vec![mode, ("hub.verify_token", "other"), challenge],
        vec![mode, right],
        vec![("hub.mode", "unsubscribe"), right, challenge],
        vec![mode, right, ("hub.challenge", "<script>")],
        vec![mode, right, right, challenge],
    ] {
        assert!(with(&wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn other_services_make_no_handshake() {
    let call = service_call(CallMethod::Get, &[], b"");
    for check in [telegram(), slack(), token(None)] {
        let answer = check.verify(secrets(SECRET), &call, NOW);
        assert_eq!(answer, Err(NotVerified::Method));
    }
}

#[test]
fn a_component_sees_no_proof() {
    for header in [
        TELEGRAM_HEADER,
        META_HEADER,
        SLACK_HEADER,
        "Authorization",
        "cookie",
    ] {
        assert!(telegram().is_credential(header), "{header}");
    }
    assert!(token(Some("X-Mail")).is_credential("x-mail"));
    assert!(!telegram().is_credential("x-mail"));
    assert!(!slack().is_credential("content-type"));
}

#[test]
fn a_check_that_cannot_be_used_is_refused_with_its_field() {
    let empty = WebhookCheck::Slack {
        secret: " ".to_owned(),
    };
    let same = WebhookCheck::Meta {
        secret: "a".to_owned(),
        verify_token: "a".to_owned(),
    };
    let no_token = WebhookCheck::Meta {
        secret: "a".to_owned(),
        verify_token: String::new(),
    };
    for (check, field) in [
        (empty, "`slack.secret` "),
        (same, "`meta.verifyToken` "),
        (no_token, "`meta.verifyToken` "),
        (token(Some("a b")), "`token.header` "),
        (token(Some("")), "`token.header` "),
    ] {
        let error = check.fault().unwrap().to_string();
        assert!(error.starts_with(field), "{error}");
    }
    for check in [telegram(), meta(), slack(), token(None), token(Some("x"))] {
        assert_eq!(check.fault(), None);
    }
}
