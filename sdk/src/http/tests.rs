//! Requests against a test's server, and what becomes of their errors in a tool.

use super::{BODY_BYTES_MAX, HttpError, Method, Request, Response, URL_BYTES_MAX, placeholder};
use crate::harness::{Bench, logged, serve_http};
use crate::log::Level;
use crate::{Tool, ToolError, Tools};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

fn anything() -> Result<Response, HttpError> {
    Ok(Response::new(200))
}

fn fault(url: &str) -> String {
    let _server = serve_http(|_| anything());
    match Request::get(url).send() {
        Err(HttpError::InvalidUrl { fault, .. }) => fault.to_owned(),
        other => panic!("{url}: {other:?}"),
    }
}

/// The host for errors that have one.
fn authority() -> String {
    "a.com".to_owned()
}

#[test]
fn a_request_goes_out_with_its_query_headers_and_body_in_place() {
    let server =
        serve_http(|request| Ok(Response::new(201).with_json(&json!({ "at": request.path() }))));
    let response = Request::post("https://api.example.com:8443/v1/notes?draft#top")
        .query("tag", "a b&c=ä")
        .header("X-Trace", "7")
        .json(&json!({ "text": "hello" }))
        .timeout(Duration::from_secs(5))
        .send()
        .unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.json::<Value>().unwrap()["at"], "/v1/notes");
    let [request] = &server.requests()[..] else {
        panic!("one request was sent");
    };
    assert_eq!(request.method(), Method::Post);
    assert_eq!(
        request.url(),
        "https://api.example.com:8443/v1/notes?draft&tag=a%20b%26c%3D%C3%A4"
    );
    assert_eq!(request.authority(), "api.example.com:8443");
    assert_eq!(request.parameter("tag").as_deref(), Some("a b&c=ä"));
    assert_eq!(request.parameter("draft").as_deref(), Some(""));
    assert_eq!(request.parameter("none"), None);
    assert_eq!(request.header("x-trace"), Some("7"));
    assert_eq!(request.header("Content-Type"), Some("application/json"));
    assert!(
        request
            .header("user-agent")
            .is_some_and(|name| name.starts_with("agent-host-sdk/"))
    );
    assert_eq!(request.json::<Value>().unwrap(), json!({ "text": "hello" }));
    assert_eq!(request.timeout(), Some(Duration::from_secs(5)));
}

#[test]
fn a_client_may_name_itself() {
    let server = serve_http(|_| anything());
    Request::get("https://a.com")
        .header("User-Agent", "poet/1")
        .send()
        .unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.header("user-agent"), Some("poet/1"));
    assert_eq!(request.headers().len(), 1);
    assert_eq!(request.url(), "https://a.com/");
}

#[test]
fn a_url_that_makes_no_sense_is_told_with_the_rule_that_it_breaks() {
    for (url, expected) in [
        ("a.com/x", "does not begin with `https://`"),
        ("ftp://a.com/", "does not begin with `https://`"),
        ("https:///x", "names no host"),
        ("https://:80/x", "names no host"),
        ("https://a.com\"},{host=\"*/", "names no host"),
        ("https://me:secret@a.com/", "a user or a password"),
        ("https://a.com:0/", "its port"),
        ("https://a.com:65536/", "its port"),
        ("https://a.com:/", "its port"),
        ("https://a.com/ä", "printable ASCII"),
        ("https://a.com/a b", "printable ASCII"),
        ("https://a.com/\r\nx: y", "printable ASCII"),
        ("https://a.com/50%", "begins no escape"),
        ("https://a.com/?q=%zz", "begins no escape"),
    ] {
        let fault = fault(url);
        assert!(fault.contains(expected), "{url}: {fault}");
    }
    let long = format!("https://a.com/{}", "x".repeat(URL_BYTES_MAX));
    assert!(fault(&long).contains("8 KiB"));
    let _server = serve_http(|_| anything());
    let with_query = Request::get("https://a.com/").query("q", "x".repeat(URL_BYTES_MAX));
    assert!(matches!(
        with_query.send(),
        Err(HttpError::InvalidUrl { .. })
    ));
    for url in [
        "HTTPS://a.com",
        "http://[::1]:8080/x",
        "http://[::1]",
        "https://a.com?q=%20",
    ] {
        Request::get(url).send().unwrap();
    }
}

#[test]
fn a_header_that_could_begin_another_one_is_not_sent() {
    let server = serve_http(|_| anything());
    for (name, value) in [("x-a", "1\r\nx-b: 2"), ("x a", "1"), ("", "1"), ("x:", "1")] {
        let sent = Request::get("https://a.com").header(name, value).send();
        assert!(
            matches!(sent, Err(HttpError::InvalidHeader { .. })),
            "{name}: {sent:?}"
        );
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_body_without_a_json_form_is_not_sent() {
    let server = serve_http(|_| anything());
    let odd = BTreeMap::from([(vec![1_u8], 1)]);
    let sent = Request::put("https://a.com").json(&odd).send();
    assert!(
        matches!(sent, Err(HttpError::Unwritable { .. })),
        "{sent:?}"
    );
    assert!(server.requests().is_empty());
}

#[test]
fn an_answer_is_read_up_to_the_limit_of_the_request() {
    let _server = serve_http(|request| {
        let bytes = request.parameter("bytes").unwrap().parse().unwrap();
        Ok(Response::new(200).with_body(vec![b'x'; bytes]))
    });
    let get = |bytes: usize| Request::get("https://a.com").query("bytes", bytes.to_string());
    assert_eq!(
        get(BODY_BYTES_MAX).send().unwrap().bytes().len(),
        BODY_BYTES_MAX
    );
    let sent = get(BODY_BYTES_MAX + 1).send();
    assert!(matches!(
        &sent,
        Err(HttpError::ResponseTooLarge { bytes_max: Some(BODY_BYTES_MAX), authority })
            if authority == "a.com"
    ));
    get(4).body_bytes_max(4).send().unwrap();
    let sent = get(5).body_bytes_max(4).send();
    assert_eq!(
        sent.unwrap_err().to_string(),
        "the answer of `a.com` has more than 4 bytes"
    );
}

#[test]
fn a_body_that_is_not_what_was_expected_is_an_error_with_the_host() {
    let _server = serve_http(|_| Ok(Response::new(200).with_body(*b"\xff[")));
    let response = Request::get("https://a.com").send().unwrap();
    let text = response.text().unwrap_err();
    assert_eq!(text.to_string(), "the answer of `a.com` is not text");
    let json = response.json::<Value>().unwrap_err();
    assert!(matches!(&json, HttpError::NotJson { authority, .. } if authority == "a.com"));
    let ToolError::Failed(reported) = ToolError::from(json) else {
        panic!("it is for the caller");
    };
    assert!(
        reported.contains("not the JSON that was expected: expected value"),
        "{reported}"
    );
}

#[test]
fn only_a_status_of_success_passes_and_others_repeat_what_the_server_says() {
    let _server = serve_http(|request| {
        let status = request.path().trim_start_matches('/').parse().unwrap();
        Ok(Response::new(status)
            .with_text(&format!("\u{7}no\n{}", "x".repeat(400)))
            .with_header("Retry-After", "7"))
    });
    let get = |status: u16| {
        let response = Request::get(format!("https://a.com/{status}")).send();
        response.unwrap().error_for_status()
    };
    for status in [200, 204, 299] {
        assert!(get(status).is_ok());
    }
    for (status, expected) in [
        (302, None),
        (400, None),
        (403, None),
        (404, None),
        (429, Some(ToolError::RetryLater(7_000))),
        (500, None),
        (503, Some(ToolError::RetryLater(7_000))),
    ] {
        let error = get(status).unwrap_err();
        let reported = error.to_string();
        assert!(
            reported.starts_with(&format!("`a.com` answers with status {status}: no x")),
            "{reported}"
        );
        assert!(reported.chars().count() < 400, "{reported}");
        let expected = expected.unwrap_or_else(|| match status {
            404 => ToolError::NotFound(reported.clone()),
            _ => ToolError::Failed(reported.clone()),
        });
        assert_eq!(ToolError::from(error), expected);
    }
}

#[test]
fn what_a_server_asks_to_be_left_alone_for_is_at_most_an_hour() {
    let after = |seconds: &str| {
        let response = Response::new(503).with_header("retry-after", seconds);
        ToolError::from(response.error_for_status().unwrap_err())
    };
    assert_eq!(
        after("999999999999999999"),
        ToolError::RetryLater(3_600_000)
    );
    assert_eq!(
        after("Wed, 21 Oct 2026 07:28:00 GMT"),
        ToolError::RetryLater(1_000)
    );
}

#[test]
fn only_what_was_not_carried_out_is_to_be_tried_again() {
    let failed = |error: HttpError| {
        let reported = error.to_string();
        assert_eq!(ToolError::from(error), ToolError::Failed(reported));
    };
    let request = Request::get("https://a.com").checked().unwrap();
    assert_eq!(ToolError::from(request.refused()), ToolError::Denied);
    assert_eq!(
        ToolError::from(HttpError::Busy),
        ToolError::RetryLater(1_000)
    );
    failed(HttpError::Unreachable {
        authority: authority(),
    });
    failed(HttpError::TimedOut {
        authority: authority(),
    });
    failed(HttpError::Broken {
        authority: authority(),
    });
    failed(HttpError::RequestTooLarge {
        authority: authority(),
    });
    failed(HttpError::ResponseTooLarge {
        authority: authority(),
        bytes_max: None,
    });
}

#[test]
fn a_refusal_is_logged_with_the_line_that_grants_the_request() {
    let _server = serve_http(|request| Err(request.refused()));
    let sent = Request::get("https://a.com").send();
    assert!(matches!(sent, Err(HttpError::Refused { .. })));
    let logged = logged();
    let [(Level::Warn, message)] = &logged[..] else {
        panic!("{logged:?}");
    };
    assert_eq!(
        message,
        "the host refused `GET https://a.com/`; the lines of the component's entry that grant it: \
         network = [{ host = \"a.com\" }]; where the name leads to an address that is not public, \
         its `privateAddresses` are missing"
    );
}

fn grants(request: Request) -> String {
    match request.checked().unwrap().refused() {
        HttpError::Refused { grants, .. } => grants,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_line_that_grants_a_request_to_this_machine_names_its_addresses() {
    for host in ["localhost", "LocalHost", "api.localhost"] {
        assert_eq!(
            grants(Request::get(format!("http://{host}:8080/"))),
            format!(
                "network = [{{ host = \"{host}\", schemes = [\"http\"], ports = [8080], \
                 privateAddresses = [\"127.0.0.1\", \"::1\"] }}]"
            )
        );
    }
    assert_eq!(
        grants(Request::get("https://[::1]/")),
        "network = [{ host = \"[::1]\", privateAddresses = [\"::1\"] }]"
    );
    assert_eq!(
        grants(Request::get("https://9.9.9.9/")),
        "network = [{ host = \"9.9.9.9\" }]"
    );
    for host in ["localhost.example.com", "mylocalhost", "nas"] {
        let reported = grants(Request::get(format!("https://{host}/")));
        assert!(
            reported.ends_with("its `privateAddresses` are missing"),
            "{reported}"
        );
    }
}

#[test]
fn the_lines_that_grant_a_request_say_what_is_not_so_by_default() {
    // What is said of any name is left out here.
    let of_name = |grants: String| {
        let (lines, _) = grants.split_once("; where the name leads to").unwrap();
        lines.to_owned()
    };
    assert_eq!(
        of_name(grants(Request::get("https://a.com/x?q=1"))),
        "network = [{ host = \"a.com\" }]"
    );
    assert_eq!(
        grants(Request::post("http://127.0.0.1:8080/x")),
        "network = [{ host = \"127.0.0.1\", schemes = [\"http\"], ports = [8080], \
         privateAddresses = [\"127.0.0.1\"], methods = [\"POST\"] }]"
    );
    assert_eq!(
        of_name(grants(
            Request::get("https://a.com:8443/")
                .secret_header("authorization", "key")
                .secret_query("token", "other")
        )),
        "network = [{ host = \"a.com\", ports = [8443] }] and secrets = \
         [{ secret = \"key\", host = \"a.com\", port = 8443, slot = { header = \"authorization\" } }, \
         { secret = \"other\", host = \"a.com\", port = 8443, slot = { query = \"token\" } }]"
    );
}

#[test]
fn a_strangers_name_stays_within_its_quotes_in_the_line_that_grants() {
    let request = Request::get("https://a.com/").query("q", "{{secret.a\" }, { b}}");
    let refused = request.checked().unwrap().refused().to_string();
    assert!(
        refused.contains("secret = \"a\\\" }, { b\", host = \"a.com\""),
        "{refused}"
    );
}

#[test]
fn a_secret_stands_as_its_placeholder_in_a_header_or_a_parameter() {
    let server = serve_http(|_| anything());
    Request::get("https://a.com/")
        .secret_header("authorization", "key")
        .secret_query("token", "other")
        .send()
        .unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some("{{secret.key}}"));
    assert_eq!(
        request.parameter("token").as_deref(),
        Some("{{secret.other}}")
    );
    assert_eq!(placeholder("key"), "{{secret.key}}");
}

#[test]
#[should_panic(expected = "`.secret_header(\"Authorization\", …)`")]
fn a_credential_that_is_not_a_secret_of_the_host_breaks_a_rule() {
    let _server = serve_http(|_| anything());
    let _ = Request::get("https://a.com")
        .header("Authorization", "Bearer abc")
        .send();
}

#[test]
#[should_panic(expected = "is the whole value of `x-note`")]
fn a_placeholder_within_a_text_breaks_a_rule() {
    let _server = serve_http(|_| anything());
    let _ = Request::get("https://a.com")
        .header("x-note", "{{secret.key}} and more")
        .send();
}

#[test]
#[should_panic(expected = "is the end of one part of it")]
fn a_placeholder_within_a_part_of_the_path_breaks_a_rule() {
    let _server = serve_http(|_| anything());
    let _ = Request::get("https://a.com/bot{{secret.key}}x/me").send();
}

#[test]
fn a_placeholder_is_the_end_of_a_part_of_the_path() {
    let server = serve_http(|_| anything());
    Request::get("https://a.com/bot{{secret.key}}/me")
        .send()
        .unwrap();
    assert_eq!(server.requests()[0].path(), "/bot{{secret.key}}/me");
}

#[test]
fn a_server_answers_until_it_is_dropped_and_the_last_one_first() {
    let unscripted = |sent: Result<Response, HttpError>| {
        let Err(error @ HttpError::Unscripted { .. }) = sent else {
            panic!("{sent:?}");
        };
        assert!(error.to_string().contains("harness::serve_http"), "{error}");
    };
    let get = || Request::get("https://a.com").send();
    unscripted(get());
    let first = serve_http(|_| Ok(Response::new(201)));
    let second = serve_http(|_| Ok(Response::new(202)));
    assert_eq!(get().unwrap().status(), 202);
    drop(second);
    assert_eq!(get().unwrap().status(), 201);
    assert_eq!(first.requests().len(), 1);
    drop(first);
    unscripted(get());
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A tool that sends one request, declaring this capability.
struct Fetches(&'static str);

impl Tools for Fetches {
    fn tools(&self) -> Vec<Tool> {
        let fetch = |_: &_, Nothing {}| {
            let request = Request::get("https://a.com").secret_header("x-key", "key");
            Ok(request.send()?.error_for_status()?.text()?.to_owned())
        };
        vec![Tool::new("fetch", "Fetches.", fetch).needs(self.0)]
    }
}

#[test]
#[should_panic(expected = "add `.needs(\"net.http\")`")]
fn a_tool_that_does_not_declare_the_network_breaks_a_rule_when_it_sends() {
    let _server = serve_http(|_| anything());
    let _ = Bench::new(Fetches("secrets.use")).text("fetch", json!({}));
}

#[test]
#[should_panic(expected = "add `.needs(\"secrets.use\")`")]
fn a_tool_that_does_not_declare_secrets_breaks_a_rule_when_it_names_one() {
    let _server = serve_http(|_| anything());
    let _ = Bench::new(Fetches("net.http")).text("fetch", json!({}));
}
