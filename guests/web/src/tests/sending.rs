//! Requests with methods, headers and bodies, as the network gets them.

use super::{URL, answers, call};
use crate::request::{HEADERS_MAX, SENT_BYTES_MAX};
use crate::{Answer, Network, Request, Unanswered, Web};
use agent_host_sdk::{EffectClass, ToolError, harness::Bench};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::Cursor;
use std::rc::Rc;

/// The lines of the requests that were sent: method, address, headers, and the body.
type Log = Rc<RefCell<Vec<String>>>;

/// A network that keeps what it is asked, and always gives the same answer.
#[derive(Debug)]
struct Noted {
    log: Log,
    status: u16,
    headers: Vec<(String, String)>,
    body: &'static [u8],
}

impl Network for Noted {
    fn send(&self, request: &Request<'_>) -> Result<Answer, Unanswered> {
        let headers: Vec<String> = request
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        self.log.borrow_mut().push(format!(
            "{} {} [{}] {}",
            request.method,
            request.url,
            headers.join(", "),
            String::from_utf8_lossy(request.body)
        ));
        Ok(Answer {
            status: self.status,
            headers: self.headers.clone(),
            body: Box::new(Cursor::new(self.body)),
        })
    }
}

fn noted(status: u16, headers: &[(&str, &str)], body: &'static [u8]) -> (Noted, Log) {
    let log = Log::default();
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let network = Noted {
        log: Rc::clone(&log),
        status,
        headers: headers.iter().map(owned).collect(),
        body,
    };
    (network, log)
}

fn send(network: impl Network + 'static, arguments: Value) -> Result<Value, ToolError> {
    Bench::new(Web::over(network))
        .text("web_send", arguments)
        .map(|text| serde_json::from_str(&text).unwrap())
}

/// The message of arguments that make no sense.
fn invalid(result: Result<Value, ToolError>) -> String {
    match result.unwrap_err() {
        ToolError::InvalidArguments(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn sending_runs_once_and_may_destroy_something() {
    let definition = Bench::new(Web::granted()).definition("web_send");
    assert_eq!(
        (definition.effect, definition.destructive),
        (EffectClass::NonIdempotent, true)
    );
    assert_eq!(definition.capabilities, ["net.http"]);
    assert_eq!(definition.arguments["additionalProperties"], false);
}

#[test]
fn a_request_goes_out_with_its_method_headers_and_body() {
    for (arguments, expected) in [
        (
            json!({ "url": URL, "method": "post", "body": "{\"a\": 1}" }),
            "POST https://example.com/a/page?q=1 [accept: application/json, text/plain;q=0.9, \
             text/html;q=0.8, */*;q=0.1, content-type: application/json] {\"a\": 1}",
        ),
        (
            json!({
                "url": URL, "method": "PUT", "body": "a=1",
                "headers": { "Accept": "*/*", "Content-Type": "application/x-www-form-urlencoded" },
            }),
            "PUT https://example.com/a/page?q=1 [accept: */*, content-type: \
             application/x-www-form-urlencoded] a=1",
        ),
        (
            json!({ "url": URL, "method": "PATCH", "body": "{no json", "headers": { "accept": "*/*" } }),
            "PATCH https://example.com/a/page?q=1 [accept: */*, content-type: text/plain; \
             charset=utf-8] {no json",
        ),
        (
            json!({ "url": URL, "method": "DELETE", "headers": { "accept": "*/*" }, "body": null }),
            "DELETE https://example.com/a/page?q=1 [accept: */*] ",
        ),
    ] {
        let (network, log) = noted(200, &[("content-type", "application/json")], b"{\"ok\": 1}");
        let answer = send(network, arguments).unwrap();
        assert_eq!(*log.borrow(), [expected]);
        assert_eq!(
            (&answer["status"], &answer["text"]),
            (&json!(200), &json!("{\"ok\": 1}"))
        );
    }
}

#[test]
fn fetching_sends_its_headers_and_asks_for_a_head_alone() {
    let (network, log) = noted(
        200,
        &[
            ("content-type", "image/png"),
            ("content-length", "7\u{1b}0"),
        ],
        b"",
    );
    let arguments = json!({ "url": URL, "method": "head", "headers": { "Accept": "image/png" } });
    let head = call(network, arguments).unwrap();
    assert_eq!(
        *log.borrow(),
        ["HEAD https://example.com/a/page?q=1 [accept: image/png] "]
    );
    assert_eq!(
        head,
        json!({
            "url": URL, "status": 200, "contentType": "image/png", "text": "",
            "headers": { "content-type": "image/png", "content-length": "70" },
        })
    );
}

#[test]
fn headers_that_are_not_a_callers_to_set_are_refused_by_name() {
    for (name, why) in [
        ("Host", "the host sets it itself"),
        ("content-length", "the host sets it itself"),
        ("Connection", "belongs to the connection"),
        ("Transfer-Encoding", "belongs to the connection"),
        ("proxy-authorization", "belongs to the connection"),
        ("Authorization", "carries credentials"),
        ("COOKIE", "carries credentials"),
        ("x-api-key", "carries credentials"),
        ("X-Forwarded-For", "another method, address or sender"),
        ("X_Forwarded_For", "another method, address or sender"),
        ("true-client-ip", "another method, address or sender"),
        ("x-client-ip", "another method, address or sender"),
        ("cf-connecting-ip", "another method, address or sender"),
        ("x-original-host", "another method, address or sender"),
        ("x_api-key", "carries credentials"),
        ("content_length", "the host sets it itself"),
        (
            "x-http-method-override",
            "another method, address or sender",
        ),
    ] {
        let (network, log) = noted(200, &[], b"");
        let arguments = json!({ "url": URL, "method": "POST", "headers": { name: "x" } });
        let message = invalid(send(network, arguments));
        assert!(
            message.contains(&format!("`{}`", name.to_ascii_lowercase())) && message.contains(why),
            "{message}"
        );
        let fetched = call(
            answers("text/plain", ""),
            json!({ "url": URL, "headers": { name: "x" } }),
        );
        assert_eq!(invalid(fetched), message);
        assert!(log.borrow().is_empty());
    }
}

#[test]
fn headers_and_bodies_that_cannot_be_sent_are_refused() {
    let many: serde_json::Map<String, Value> = (0..=HEADERS_MAX)
        .map(|number| (format!("x-{number}"), json!("1")))
        .collect();
    for (arguments, words) in [
        (json!({ "headers": { "a b": "x" } }), "no name of a header"),
        (json!({ "headers": { "": "x" } }), "no name of a header"),
        (json!({ "headers": { "x": "a\r\nhost: b" } }), "one line"),
        (json!({ "headers": { "x": "a".repeat(5_000) } }), "one line"),
        (
            json!({ "headers": { "x": "{{secret.brave}}" } }),
            "asks for a secret",
        ),
        (
            json!({ "headers": { "x": "1", "X": "2" } }),
            "has `x` twice",
        ),
        (json!({ "headers": many }), "more than 32 headers"),
        (json!({ "method": "GET" }), "GET and HEAD are for web_fetch"),
        (
            json!({ "method": "BREW" }),
            "must be POST, PUT, PATCH or DELETE",
        ),
        (
            json!({ "body": "x".repeat(SENT_BYTES_MAX + 1) }),
            "1048576 is the most",
        ),
        (json!({ "url": "ftp://a" }), "must begin with `https://`"),
    ] {
        let (network, log) = noted(200, &[], b"");
        let mut whole = json!({ "url": URL, "method": "POST" });
        whole
            .as_object_mut()
            .unwrap()
            .extend(arguments.as_object().unwrap().clone());
        let message = invalid(send(network, whole));
        assert!(message.contains(words), "{message}");
        assert!(log.borrow().is_empty());
    }
    let (network, log) = noted(204, &[], b"");
    let body = "x".repeat(SENT_BYTES_MAX);
    let sent = send(
        network,
        json!({ "url": URL, "method": "POST", "body": body }),
    )
    .unwrap();
    assert_eq!((&sent["status"], log.borrow().len()), (&json!(204), 1));
}

#[test]
fn a_request_that_was_taken_succeeds_although_its_answer_cannot_be_shown() {
    let (network, _) = noted(201, &[("content-type", "image/png")], b"PNG");
    let sent = send(network, json!({ "url": URL, "method": "POST" })).unwrap();
    assert_eq!(
        (&sent["status"], &sent["contentType"], &sent["text"]),
        (&json!(201), &json!("image/png"), &json!(""))
    );
    assert!(
        sent["cut"]
            .as_str()
            .unwrap()
            .starts_with("the server took the request")
    );
    let (network, _) = noted(200, &[("content-type", "text/plain")], b"a long answer");
    let arguments = json!({ "url": URL, "method": "POST", "maxChars": 6 });
    let sent = send(network, arguments).unwrap();
    assert_eq!(sent["text"], "a long");
    assert!(
        sent["cut"]
            .as_str()
            .unwrap()
            .contains("do not send the request again")
    );
}

#[test]
fn a_redirect_of_a_sent_request_says_whether_it_was_carried_out() {
    for (status, words) in [
        (
            303,
            "The server refers to https://example.com/b . To read what is there",
        ),
        (
            307,
            "The request was not carried out: its place is https://example.com/b",
        ),
        (308, "The request was not carried out"),
    ] {
        let (network, _) = noted(status, &[("location", "/b")], b"");
        let sent = send(network, json!({ "url": URL, "method": "POST" })).unwrap();
        assert!(sent["text"].as_str().unwrap().starts_with(words), "{sent}");
        assert_eq!(sent["redirect"], "https://example.com/b");
    }
}

#[test]
fn a_request_that_may_have_been_carried_out_says_so() {
    let error = |unanswered| {
        send(
            super::Silent(unanswered),
            json!({ "url": URL, "method": "POST" }),
        )
        .unwrap_err()
    };
    for unanswered in [
        Unanswered::TimedOut,
        Unanswered::Broken,
        Unanswered::TooLarge,
    ] {
        let ToolError::Failed(message) = error(unanswered) else {
            panic!("{unanswered:?}")
        };
        assert!(
            message.contains("may have carried the request out"),
            "{message}"
        );
    }
    for unanswered in [Unanswered::Unreachable, Unanswered::RequestTooLarge] {
        let ToolError::Failed(message) = error(unanswered) else {
            panic!("{unanswered:?}")
        };
        assert!(!message.contains("carried"), "{message}");
    }
    for status in [408, 500, 502, 503, 504] {
        let (network, _) = noted(status, &[("content-type", "text/plain")], b"no answer");
        assert_eq!(
            send(network, json!({ "url": URL, "method": "POST" })).unwrap_err(),
            ToolError::Failed(format!(
                "`{URL}` answers with status {status}; the server may have carried the request \
                 out, so look before you send it again: no answer"
            ))
        );
    }
    assert_eq!(error(Unanswered::Denied), ToolError::Denied);
    assert_eq!(error(Unanswered::Busy), ToolError::RetryLater(1_000));
    let (network, _) = noted(409, &[("content-type", "text/plain")], b"taken already");
    assert_eq!(
        send(network, json!({ "url": URL, "method": "PUT" })).unwrap_err(),
        ToolError::Failed(format!("`{URL}` answers with status 409: taken already"))
    );
}
