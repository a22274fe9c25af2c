//! Tests of webhook calls: who is believed, and what is kept.

use super::super::FORM_FIELDS_MAX;
use super::*;
use crate::values::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

const SECRET: &[u8] = b"It's a Secret to Everybody";
const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn auth(value: Value) -> WebhookAuth {
    serde_json::from_value(value).unwrap()
}

fn spec(value: Value) -> WebhookSpec {
    WebhookSpec {
        auth: auth(value),
        call_id: None,
        answer: WebhookAnswer::default(),
        bytes_max: None,
    }
}

fn token() -> Value {
    json!({ "token": { "secret": "hook" } })
}

fn hmac(scheme: &str) -> Value {
    json!({ "hmac": { "secret": "hook", "scheme": scheme } })
}

fn signature(parts: &[&[u8]]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).unwrap();
    for part in parts {
        mac.update(part);
    }
    hex::encode(mac.finalize().into_bytes())
}

fn fields(given: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = given.iter();
    owned
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn post<'a>(headers: &'a [(String, String)], body: &'a [u8]) -> WebhookRequest<'a> {
    WebhookRequest {
        path: "",
        headers,
        query: &[],
        body,
    }
}

/// The result of verifying a call with these headers.
fn verify(auth: &WebhookAuth, headers: &[(&str, &str)], body: &[u8]) -> Result<(), NotVerified> {
    let headers = fields(headers);
    let request = post(&headers, body);
    auth.verify(SECRET, &request, NOW)
}

fn read(spec: &WebhookSpec, headers: &[(&str, &str)], body: &[u8]) -> WebhookCall {
    let headers = fields(headers);
    let query = fields(&[("page", "2"), ("token", "secret"), ("access_token", "x")]);
    let request = WebhookRequest {
        path: "a/b",
        headers: &headers,
        query: &query,
        body,
    };
    spec.read(&request).unwrap()
}

#[test]
fn a_token_is_believed_in_its_headers_only() {
    let auth = auth(token());
    let secret = std::str::from_utf8(SECRET).unwrap();
    let bearer = format!("Bearer {secret}");
    let lower = format!("bearer  {secret}");
    let wrong = format!("Bearer {secret}x");
    for (headers, expected) in [
        (vec![("Authorization", bearer.as_str())], Ok(())),
        (vec![("authorization", lower.as_str())], Ok(())),
        (vec![("X-AgentHost-Token", secret)], Ok(())),
        (
            vec![
                ("Authorization", bearer.as_str()),
                ("X-AgentHost-Token", secret),
            ],
            Ok(()),
        ),
        (
            vec![
                ("Authorization", "Basic YTpi"),
                ("X-AgentHost-Token", secret),
            ],
            Ok(()),
        ),
        (
            vec![],
            Err(NotVerified::Missing("authorization".to_owned())),
        ),
        (
            vec![("Authorization", wrong.as_str())],
            Err(NotVerified::Wrong),
        ),
        (vec![("X-AgentHost-Token", "")], Err(NotVerified::Wrong)),
        (
            vec![
                ("Authorization", bearer.as_str()),
                ("X-AgentHost-Token", "other"),
            ],
            Err(NotVerified::Wrong),
        ),
        (
            vec![("Authorization", secret)],
            Err(NotVerified::Malformed("authorization".to_owned())),
        ),
        (
            vec![("X-AgentHost-Token", "x"), ("x-agenthost-token", secret)],
            Err(NotVerified::Twice("x-agenthost-token".to_owned())),
        ),
    ] {
        assert_eq!(verify(&auth, &headers, b""), expected, "{headers:?}");
    }
    let query = fields(&[("token", secret)]);
    let request = WebhookRequest {
        query: &query,
        ..post(&[], b"")
    };
    assert!(auth.verify(SECRET, &request, NOW).is_err());
}

/// The example of GitHub's documentation.
#[test]
fn a_signature_of_github_is_that_of_the_body() {
    let auth = auth(hmac("github"));
    let header = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let name = "X-Hub-Signature-256";
    assert_eq!(verify(&auth, &[(name, header)], b"Hello, World!"), Ok(()));
    for (headers, body) in [
        (vec![(name, header)], b"Hello, World?".as_slice()),
        (vec![(name, &header[7..])], b"Hello, World!"),
        (vec![(name, &header[..70])], b"Hello, World!"),
        (vec![(name, "sha256=")], b"Hello, World!"),
        (
            vec![(name, "sha1=757107ea0eb2509fc211221cce984b8a37570b6d")],
            b"Hello, World!",
        ),
        (vec![(name, header), (name, header)], b"Hello, World!"),
        (vec![], b"Hello, World!"),
    ] {
        assert!(verify(&auth, &headers, body).is_err(), "{headers:?}");
    }
}

#[test]
fn a_signature_of_stripe_counts_for_five_minutes() {
    let auth = auth(hmac("stripe"));
    let name = "Stripe-Signature";
    let signed = |seconds: u64| {
        let text = seconds.to_string();
        format!("t={text},v1={}", signature(&[text.as_bytes(), b".", b"{}"]))
    };
    let stale = |off_s| Err(NotVerified::Stale { off_s, max_s: 300 });
    for (seconds, expected) in [
        (1_700_000_000, Ok(())),
        (1_699_999_700, Ok(())),
        (1_700_000_300, Ok(())),
        (1_699_999_699, stale(301)),
        (1_700_000_301, stale(301)),
    ] {
        assert_eq!(
            verify(&auth, &[(name, &signed(seconds))], b"{}"),
            expected,
            "{seconds}"
        );
    }
    let right = signed(1_700_000_000);
    let rolled = right.replace(",v1=", &format!(",v0=abc,v1={},v1=", "00".repeat(32)));
    assert_eq!(verify(&auth, &[(name, &rolled)], b"{}"), Ok(()));
    let moved = right.replace("t=1700000000", "t=1700000001");
    let many = format!("{right}{}", ",v1=00".repeat(9));
    for wrong in [
        moved.as_str(),
        "t=1700000000",
        "v1=00",
        "",
        "t=1700000000,t=1700000000,v1=00",
        many.as_str(),
    ] {
        assert!(verify(&auth, &[(name, wrong)], b"{}").is_err(), "{wrong}");
    }
    assert!(verify(&auth, &[(name, &right)], b"{ }").is_err());
}

#[test]
fn a_plain_signature_stands_in_the_header_that_the_operator_names() {
    let body = b"{}".as_slice();
    let digits = signature(&[body]);
    let plain = auth(json!({ "hmac": {
        "secret": "hook", "scheme": "plain", "header": "X-Sign"
    } }));
    let prefixed = format!("sha256={digits}");
    let upper = digits.to_ascii_uppercase();
    let mac = hex::decode(&digits).unwrap();
    let padded = STANDARD.encode(&mac);
    let prefixed_too = format!("SHA256={padded}");
    let bare = padded.trim_end_matches('=');
    let url_safe = URL_SAFE_NO_PAD.encode(&mac);
    for right in [
        digits.as_str(),
        prefixed.as_str(),
        upper.as_str(),
        padded.as_str(),
        prefixed_too.as_str(),
        bare,
        url_safe.as_str(),
    ] {
        assert_eq!(
            verify(&plain, &[("x-sign", right)], body),
            Ok(()),
            "{right}"
        );
    }
    assert!(verify(&plain, &[("x-other", &digits)], body).is_err());
    let timed = auth(json!({ "hmac": {
        "secret": "hook", "scheme": "plain", "header": "X-Sign", "timestampHeader": "X-Time",
        "toleranceS": 10,
    } }));
    let signed = |seconds: &str| signature(&[seconds.as_bytes(), b".", body]);
    for (seconds, is) in [
        ("1700000000", true),
        ("1699999990", true),
        ("1699999989", false),
        ("+1700000000", false),
        ("", false),
        ("99999999999999999999", false),
    ] {
        let digits = signed(seconds);
        let headers = [("X-Sign", digits.as_str()), ("X-Time", seconds)];
        assert_eq!(verify(&timed, &headers, body).is_ok(), is, "{seconds}");
    }
    let untimed = [("X-Sign", digits.as_str()), ("X-Time", "1700000000")];
    assert_eq!(verify(&timed, &untimed, body), Err(NotVerified::Wrong));
}

#[test]
fn an_empty_secret_verifies_nobody() {
    let headers = fields(&[("X-AgentHost-Token", "")]);
    let request = post(&headers, b"");
    assert_eq!(
        auth(token()).verify(b"", &request, NOW),
        Err(NotVerified::Wrong)
    );
}

#[test]
fn what_is_kept_of_a_call_has_no_credentials_and_is_bounded() {
    let plain = spec(json!({ "hmac": {
        "secret": "hook", "scheme": "plain", "header": "X-Proof"
    } }));
    let long = "é".repeat(4_000);
    let call = read(
        &plain,
        &[
            ("Authorization", "Bearer x"),
            ("Cookie", "a=b"),
            ("X-Proof", "00"),
            ("X-Hub-Signature-256", "sha256=00"),
            ("X-Event", "push"),
            ("X-Long", &long),
            ("Content-Type", "application/json; charset=utf-8"),
        ],
        br#"{"a":1}"#,
    );
    let names: Vec<&str> = call.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x-event", "x-long", "content-type"]);
    assert_eq!(call.headers[1].1.len(), 4_096);
    assert_eq!(call.query, fields(&[("page", "2")]));
    assert_eq!(
        (call.path.as_str(), &call.payload),
        ("a/b", &json!({ "a": 1 }))
    );
    let many: Vec<(String, String)> = (0..200)
        .map(|number| (format!("x-{number}"), String::new()))
        .collect();
    let request = post(&many, b"");
    assert_eq!(plain.read(&request).unwrap().headers.len(), 64);
}

/// Words that a webhook takes from a body of a content type.
fn taken(spec: &WebhookSpec, headers: &[(&str, &str)], body: &[u8]) -> Result<Value, NotACall> {
    let headers = fields(headers);
    let request = post(&headers, body);
    spec.read(&request).map(|call| call.payload)
}

#[test]
fn a_body_is_what_it_says_or_the_json_that_it_is() {
    const JSON: &str = "{\"a\":1}";
    const FORM: &str = "application/x-www-form-urlencoded";
    for (media_type, body, expected) in [
        (Some("application/json"), JSON, Some(json!({ "a": 1 }))),
        (Some("application/vnd.api+json"), "[1]", Some(json!([1]))),
        (Some("Application/JSON; charset=utf-8"), "1", Some(json!(1))),
        (
            Some("application/json"),
            "\u{feff}{\"a\":1}",
            Some(json!({ "a": 1 })),
        ),
        (Some("application/json"), "", Some(json!(""))),
        (Some("application/json"), "{", None),
        (Some("application/json"), "{\"a\":1,\"a\":2}", None),
        (
            Some("application/json"),
            r#"{"id":123456789012345678901234567890}"#,
            Some(json!({ "id": "123456789012345678901234567890" })),
        ),
        (Some("text/plain"), JSON, Some(json!({ "a": 1 }))),
        (Some("text/plain"), "{\"a\":1", Some(json!("{\"a\":1"))),
        (Some("text/plain"), "7", Some(json!("7"))),
        (
            Some("application/csp-report"),
            JSON,
            Some(json!({ "a": 1 })),
        ),
        (
            Some("application/octet-stream"),
            JSON,
            Some(json!({ "a": 1 })),
        ),
        (Some("application/json"), "\"{}\"", Some(json!("{}"))),
        (Some("application/xml"), "<a/>", Some(json!("<a/>"))),
        (Some(FORM), JSON, Some(json!({ "a": 1 }))),
        (Some(FORM), "{\"a\":", None),
        (
            Some(FORM),
            "a=1&b=x+y%21&a=2&c&a=3&%C3%A9=%E2%82%AC",
            Some(json!({ "a": ["1", "2", "3"], "b": "x y!", "c": "", "é": "€" })),
        ),
        (
            Some("application/x-www-form-urlencoded; charset=windows-1251"),
            "a=%EF%F0",
            Some(json!({ "a": "пр" })),
        ),
        (
            Some(FORM),
            "payload=%7B%22action%22%3A%22opened%22%7D",
            Some(json!({ "action": "opened" })),
        ),
        (Some(FORM), "payload=%7B%22action", None),
        (Some(FORM), "payload=a", Some(json!({ "payload": "a" }))),
        (
            Some(FORM),
            "payload=%7B%7D&a=1",
            Some(json!({ "payload": "{}", "a": "1" })),
        ),
        (Some(FORM), "a=%E9", None),
        (Some(FORM), "a=100%", None),
        (None, JSON, Some(json!({ "a": 1 }))),
        (None, "hello", Some(json!("hello"))),
    ] {
        let headers = media_type.map(|media_type| ("Content-Type", media_type));
        let read = taken(&spec(token()), headers.as_slice(), body.as_bytes());
        match expected {
            Some(payload) => assert_eq!(read.unwrap(), payload, "{media_type:?} {body}"),
            None => assert_eq!(read.unwrap_err().status(), 400, "{body}"),
        }
    }
    let many = "a&".repeat(FORM_FIELDS_MAX + 1);
    let read = taken(&spec(token()), &[("Content-Type", FORM)], many.as_bytes());
    assert!(matches!(read, Err(NotACall::Fields)), "{read:?}");
}

#[test]
fn a_text_is_read_in_the_character_set_that_it_names() {
    for (charset, body, expected) in [
        ("iso-8859-1", b"caf\xe9".as_slice(), Some("café")),
        ("iso-8859-1", "café".as_bytes(), Some("café")),
        ("us-ascii", "café".as_bytes(), Some("café")),
        ("\"Shift_JIS\"", b"\x93\xfa", Some("日")),
        ("UTF-16LE", b"h\0i\0", Some("hi")),
        ("'utf8'", "café".as_bytes(), Some("café")),
        ("utf-8", b"caf\xe9", None),
        ("klingon", b"a", None),
    ] {
        let content_type = format!("text/plain; format=flowed; charset={charset}");
        let headers = [("Content-Type", content_type.as_str())];
        let read = taken(&spec(token()), &headers, body);
        match expected {
            Some(text) => assert_eq!(read.unwrap(), json!(text), "{charset}"),
            None => assert_eq!(read.unwrap_err().status(), 400, "{charset}"),
        }
    }
}

/// A sender sees its refusal, and takes a call that was taken for one that was understood.
#[test]
fn a_body_that_cannot_be_read_is_refused_by_its_type_and_encoding() {
    let multipart = "multipart/form-data; boundary=x";
    let text = "text/plain";
    for (scheme, headers, named) in [
        ("plain", vec![("Content-Type", multipart)], multipart),
        (
            "plain",
            vec![
                ("Content-Type", "application/json"),
                ("Content-Encoding", "gzip"),
            ],
            "gzip",
        ),
        ("github", vec![("Content-Type", text)], text),
        ("stripe", vec![("Content-Type", text)], text),
        ("github", vec![], "none"),
        (
            "github",
            vec![
                ("Content-Type", "application/json"),
                ("Content-Encoding", "br"),
            ],
            "br",
        ),
    ] {
        let proof = json!({ "hmac": { "secret": "hook", "scheme": scheme } });
        let refusal = taken(&spec(proof), &headers, b"hello").unwrap_err();
        assert_eq!(refusal.status(), 400, "{scheme} {headers:?}");
        let refusal = refusal.to_string();
        assert!(refusal.contains(named), "{scheme} {headers:?}: {refusal}");
    }
    let headers = [
        ("Content-Type", "image/png"),
        ("Content-Encoding", "identity"),
    ];
    let refusal = taken(&spec(token()), &headers, b"\x89PNG").unwrap_err();
    assert!(refusal.to_string().contains("image/png"), "{refusal}");
}

/// GitHub offers a form in the same selection as JSON, and signs it as it is sent.
#[test]
fn a_call_of_github_is_the_same_as_json_and_as_a_form() {
    let github = spec(hmac("github"));
    let body = br#"{"action":"opened"}"#;
    let json = taken(&github, &[("Content-Type", "application/json")], body).unwrap();
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let body = b"payload=%7B%22action%22%3A%22opened%22%7D";
    assert_eq!(taken(&github, &form, body).unwrap(), json);
}

#[test]
fn a_call_that_is_too_large_or_no_text_is_refused() {
    let mut small = spec(token());
    small.bytes_max = Some(4);
    let long_path = "x".repeat(1_025);
    for (path, body, status) in [
        ("", b"12345".as_slice(), 413),
        ("", b"\xff\xfe", 400),
        (long_path.as_str(), b"1", 400),
    ] {
        let request = WebhookRequest {
            path,
            ..post(&[], body)
        };
        assert_eq!(small.read(&request).unwrap_err().status(), status);
    }
    assert_eq!(spec(token()).bytes_max(), 262_144);
    assert_eq!(WebhookAnswer::default().status(), 202);
    assert_eq!(WebhookAnswer::Now.status(), 200);
}

#[test]
fn a_call_has_the_senders_own_id() {
    let own = WebhookSpec {
        call_id: Some("X-Own".to_owned()),
        ..spec(token())
    };
    let stripe = spec(hmac("stripe"));
    let event = [
        ("ce-specversion", "1.0"),
        ("ce-id", "7"),
        ("ce-source", "/s"),
        ("ce-type", "t"),
    ];
    for (spec, headers, expected) in [
        (&own, vec![("X-Own", "1"), ("X-GitHub-Delivery", "2")], "1"),
        (
            &own,
            vec![("X-GitHub-Delivery", "2"), ("webhook-id", "3")],
            "2",
        ),
        (
            &own,
            vec![("webhook-id", " msg_3 "), ("Idempotency-Key", "4")],
            "msg_3",
        ),
        (&own, vec![("Idempotency-Key", "4")], "4"),
        (
            &stripe,
            vec![("X-GitHub-Delivery", "2"), ("Idempotency-Key", "4")],
            "evt_1",
        ),
        (&own, event.to_vec(), "/s 7"),
    ] {
        let call = read(spec, &headers, br#"{"id":"evt_1"}"#);
        assert_eq!(call.call_id, expected, "{headers:?}");
    }
    let long = "x".repeat(300);
    assert_eq!(read(&own, &[("X-Own", &long)], b"").call_id.len(), 64);
    let digest = read(&own, &[], b"a").call_id;
    assert_eq!(digest.len(), 64);
    assert_eq!(read(&own, &[("Date", "today")], b"a").call_id, digest);
    assert_ne!(read(&own, &[], b"b").call_id, digest);
}

/// The body alone is signed: whoever holds a call cannot make it once more under another header,
/// path or query.
#[test]
fn a_call_of_which_the_body_is_signed_is_told_by_its_body() {
    for (scheme, body) in [
        ("github", r#"{"id":"evt_1"}"#),
        ("stripe", r#"{"id":"evt_1"}"#),
        ("stripe", "{}"),
        ("stripe", r#"{"id":""}"#),
    ] {
        let spec = spec(hmac(scheme));
        let id = |path: &str, query: &str, header: &str| {
            let headers = fields(&[
                ("X-GitHub-Delivery", header),
                ("webhook-id", header),
                ("Idempotency-Key", header),
            ]);
            let query = fields(&[("again", query)]);
            let request = WebhookRequest {
                path,
                headers: &headers,
                query: &query,
                body: body.as_bytes(),
            };
            spec.read(&request).unwrap().call_id
        };
        let first = id("", "1", "1");
        assert_eq!(id("other", "1", "1"), first, "{scheme} {body}");
        assert_eq!(id("", "2", "1"), first, "{scheme} {body}");
        assert_eq!(id("", "1", "2"), first, "{scheme} {body}");
        let other = read(&spec, &[], b"{\"id\":\"evt_2\"}").call_id;
        assert_ne!(other, first, "{scheme} {body}");
    }
}

#[test]
fn a_header_with_the_senders_id_is_refused_where_it_is_not_signed() {
    for (proof, is_refused) in [
        (token(), false),
        (hmac("github"), true),
        (hmac("stripe"), true),
        (
            json!({ "hmac": { "secret": "hook", "scheme": "plain", "header": "X-Sign" } }),
            false,
        ),
    ] {
        let spec = WebhookSpec {
            call_id: Some("X-Own".to_owned()),
            ..spec(proof.clone())
        };
        let faults = spec.faults();
        let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields.contains(&"callId"), is_refused, "{proof}");
    }
}
