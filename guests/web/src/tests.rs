//! The tools over scripted answers.

mod pages;
mod searching;
mod sending;

use crate::fetch::{BODY_BYTES_MAX, TEXT_CHARS, TEXT_CHARS_MAX};
use crate::{Answer, Network, Request, Unanswered, Web};
use agent_host_sdk::{EffectClass, ToolError, harness::Bench};
use serde_json::{Value, json};
use std::io::{self, Cursor, Read};

/// A network in which every address has the same answer.
#[derive(Debug, Clone)]
struct Scripted {
    status: u16,
    content_type: Option<&'static str>,
    location: Option<&'static str>,
    body: Vec<u8>,
    breaks: Option<Unanswered>,
}

fn answers(content_type: &'static str, body: impl Into<Vec<u8>>) -> Scripted {
    Scripted {
        status: 200,
        content_type: Some(content_type),
        location: None,
        body: body.into(),
        breaks: None,
    }
}

/// Fails where the body ends.
struct Breaks(Option<Unanswered>);

impl Read for Breaks {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.map_or(Ok(0), |error| Err(error.into()))
    }
}

impl Network for Scripted {
    fn send(&self, request: &Request<'_>) -> Result<Answer, Unanswered> {
        let accepts = |(name, value): &(String, String)| name == "accept" && !value.is_empty();
        assert!(request.headers.iter().any(accepts), "{request:?}");
        let body = Cursor::new(self.body.clone()).chain(Breaks(self.breaks));
        let header = |name: &str, value: Option<&str>| {
            value.map(|value| (name.to_owned(), value.to_owned()))
        };
        let headers = [
            header("content-type", self.content_type),
            header("location", self.location),
        ];
        Ok(Answer {
            status: self.status,
            headers: headers.into_iter().flatten().collect(),
            body: Box::new(body),
        })
    }
}

/// A network without any server.
#[derive(Debug)]
struct Silent(Unanswered);

impl Network for Silent {
    fn send(&self, _: &Request<'_>) -> Result<Answer, Unanswered> {
        Err(self.0)
    }
}

const URL: &str = "https://example.com/a/page?q=1";

fn call(network: impl Network + 'static, arguments: Value) -> Result<Value, ToolError> {
    Bench::new(Web::over(network))
        .text("web_fetch", arguments)
        .map(|text| serde_json::from_str(&text).unwrap())
}

fn fetched(network: Scripted) -> Value {
    call(network, json!({ "url": URL })).unwrap()
}

fn failed(network: Scripted) -> String {
    match call(network, json!({ "url": URL })).unwrap_err() {
        ToolError::Failed(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn fetching_reads_and_needs_the_network() {
    let definition = Bench::new(Web::granted()).definition("web_fetch");
    assert_eq!(
        (definition.effect, definition.destructive),
        (EffectClass::ReadOnly, false)
    );
    assert_eq!(definition.capabilities, ["net.http"]);
    assert_eq!(
        definition.arguments["properties"]["maxChars"]["maximum"],
        TEXT_CHARS_MAX
    );
    assert_eq!(definition.arguments["additionalProperties"], false);
}

#[test]
fn a_page_comes_with_its_address_status_type_title_and_text() {
    let page = fetched(answers(
        "text/html; charset=utf-8",
        "<title>A \n title</title><h1>Hello</h1><p>World",
    ));
    let expected = json!({ "url": URL, "status": 200, "contentType": "text/html", "title": "A \
        title", "text": "# Hello\n\nWorld" });
    assert_eq!(page, expected);
}

#[test]
fn what_is_text_already_passes_through() {
    for (content_type, body) in [
        ("text/plain", "  two\n  lines <b>"),
        ("application/json; charset=utf-8", "{\"a\": [1, 2]}"),
        ("text/markdown", "# Title\n\n<script>x</script>"),
        ("application/atom+xml", "<feed/>"),
        ("application/octet-stream", "only text"),
    ] {
        let page = fetched(answers(content_type, body));
        assert_eq!(
            (&page["text"], &page["title"]),
            (&json!(body), &Value::Null),
            "{content_type}"
        );
    }
}

#[test]
fn a_page_without_a_type_is_looked_at() {
    let nameless = |body: &[u8]| Scripted {
        content_type: None,
        ..answers("", body)
    };
    assert_eq!(
        fetched(nameless(b"<!doctype html><h2>Hi</h2>"))["text"],
        "## Hi"
    );
    assert_eq!(fetched(nameless(b"<h1>x</h1>"))["text"], "# x");
    assert_eq!(fetched(nameless(b"<!doctype><p>Hi"))["text"], "Hi");
    assert_eq!(fetched(nameless(b"just words"))["text"], "just words");
    assert!(failed(nameless(b"\x7fELF\0\0")).contains("is binary data"));
}

#[test]
fn no_control_character_comes_through_but_tabs_and_ends_of_lines() {
    let page = fetched(answers(
        "text/html",
        "<title>a&#27;[2J</title><p>b&#27;[31m\u{9b}0m<pre>c\td\r\ne\u{7}</pre>",
    ));
    assert_eq!(
        (&page["title"], &page["text"]),
        (&json!("a[2J"), &json!("b[31m0m\n\n```\nc\td\ne\n```"))
    );
    assert_eq!(
        fetched(answers("text/plain", "a\u{8}b\r\nc\u{1b}]0;x\u{7}"))["text"],
        "ab\nc]0;x"
    );
    let missing = Scripted {
        status: 500,
        ..answers("text/plain", "o\u{1b}[2Jps")
    };
    assert_eq!(
        failed(missing),
        format!("`{URL}` answers with status 500: o[2Jps")
    );
    assert!(failed(answers("text/plain", "a\0b")).contains("is binary data"));
}

#[test]
fn what_is_not_text_is_refused_by_its_name_and_not_read() {
    let picture = Scripted {
        breaks: Some(Unanswered::Broken),
        ..answers("image/png; x=y", "")
    };
    let message = failed(picture);
    assert!(
        message.starts_with(
            "`https://example.com/a/page?q=1` is image/png, which this tool cannot read"
        ),
        "{message}"
    );
}

#[test]
fn raw_html_comes_as_it_is() {
    let source = "<p>a &amp; b<script>x</script>";
    assert_eq!(
        call(
            answers("text/html", source),
            json!({ "url": URL, "raw": true })
        )
        .unwrap()["text"],
        source
    );
}

#[test]
fn charsets_are_taken_from_the_header_or_the_page() {
    assert_eq!(
        fetched(answers("text/plain; charset=ISO-8859-1", b"caf\xe9"))["text"],
        "café"
    );
    assert_eq!(
        fetched(answers(
            "text/html",
            b"<meta charset='iso-8859-1'><p>caf\xe9"
        ))["text"],
        "café"
    );
    assert_eq!(
        fetched(answers(
            "text/html; charset=shift_jis",
            b"<p>\x93\xfa\x96\x7b"
        ))["text"],
        "日本"
    );
    assert_eq!(fetched(answers("text/html", "<p>日本"))["text"], "日本");
    // What says so may stand behind words in the charset.
    let late = b"<title>\x93\xfa</title><meta charset=shift_jis><p>\x93\xfa\x96{";
    let page = fetched(answers("text/html", late));
    assert_eq!(
        (&page["title"], &page["text"]),
        (&json!("日"), &json!("日本"))
    );
}

#[test]
fn a_page_that_was_not_modified_is_told_as_such() {
    let page = fetched(Scripted {
        status: 304,
        ..answers("text/html", "")
    });
    assert_eq!(page["status"], 304);
    let text = page["text"].as_str().unwrap();
    assert!(text.contains("not modified"), "{text}");
}

#[test]
fn a_redirect_is_told_and_not_followed() {
    let moved = Scripted {
        status: 301,
        location: Some("../new#part"),
        ..answers("text/html", "moved")
    };
    let page = fetched(moved);
    assert_eq!(
        (&page["status"], &page["redirect"]),
        (&json!(301), &json!("https://example.com/new#part"))
    );
    assert!(
        page["text"]
            .as_str()
            .unwrap()
            .starts_with("The page is not here but at https://example.com/new#part")
    );
    let nowhere = Scripted {
        status: 303,
        ..answers("text/html", "")
    };
    assert!(
        failed(nowhere).ends_with("answers with status 303 and does not say where the page is")
    );
}

#[test]
fn a_page_that_browsers_leave_at_once_names_the_next_one() {
    for (content, next) in [
        ("0; url=/new", Some("https://example.com/new")),
        ("0;URL='b?x=100%'", Some("https://example.com/a/b?x=100%25")),
        (
            " 3.5 , https://other.example/#x",
            Some("https://other.example/"),
        ),
        ("30; url=/new", None),
        ("0", None),
        ("5; url=page?q=1#top", None),
        ("0; url=javascript:alert(1)", None),
    ] {
        let body = format!("<meta http-equiv=Refresh content=\"{content}\"><p>Moved");
        let page = fetched(answers("text/html", body));
        assert_eq!(page["redirect"].as_str(), next, "{content}");
        assert_eq!(page["text"], "Moved");
    }
}

/// The URL that is asked.
#[derive(Debug)]
struct Asked(&'static str);

impl Network for Asked {
    fn send(&self, request: &Request<'_>) -> Result<Answer, Unanswered> {
        assert_eq!(request.url.as_str(), self.0);
        answers("text/plain", "yes").send(request)
    }
}

#[test]
fn a_percent_sign_that_begins_no_escape_is_sent_as_one() {
    for (url, asked) in [
        ("https://example.com/100%", "https://example.com/100%25"),
        (
            "https://example.com/a%20b?y=5%&z=%zz",
            "https://example.com/a%20b?y=5%25&z=%25zz",
        ),
        ("https://example.com/%", "https://example.com/%25"),
        (
            "https://example.com/%C3%A9?q=ä",
            "https://example.com/%C3%A9?q=%C3%A4",
        ),
        ("https://example.com", "https://example.com/"),
    ] {
        call(Asked(asked), json!({ "url": url })).unwrap();
    }
    let moved = Scripted {
        status: 302,
        location: Some("/ok?q=100%"),
        ..answers("text/html", "")
    };
    assert_eq!(
        fetched(moved)["redirect"],
        "https://example.com/ok?q=100%25"
    );
}

#[test]
fn errors_of_servers_come_with_what_they_say() {
    let missing = Scripted {
        status: 404,
        ..answers("text/html", "<nav>x</nav><p>No <b>such</b> page")
    };
    let error = call(missing, json!({ "url": URL })).unwrap_err();
    assert_eq!(
        error,
        ToolError::NotFound(format!(
            "there is nothing at `{URL}` (status 404): No such page"
        ))
    );
    let broken = Scripted {
        status: 500,
        ..answers("application/json", "{\"error\": \"oops\"}")
    };
    assert_eq!(
        failed(broken),
        format!("`{URL}` answers with status 500: {{\"error\": \"oops\"}}")
    );
    let long = Scripted {
        status: 403,
        ..answers("text/plain", "é".repeat(100_000))
    };
    assert!(failed(long).chars().count() < 600);
    let binary = Scripted {
        status: 503,
        ..answers("image/gif", "GIF89a")
    };
    assert_eq!(failed(binary), format!("`{URL}` answers with status 503"));
}

#[test]
fn a_request_that_is_not_answered_says_why() {
    let error = |unanswered| call(Silent(unanswered), json!({ "url": URL })).unwrap_err();
    assert_eq!(error(Unanswered::Denied), ToolError::Denied);
    assert_eq!(error(Unanswered::Busy), ToolError::RetryLater(1_000));
    for (unanswered, words) in [
        (Unanswered::Unreachable, "cannot be reached"),
        (Unanswered::TimedOut, "took too long"),
        (Unanswered::TooLarge, "larger than the operator allows"),
        (Unanswered::Broken, "broke off"),
        (Unanswered::HeaderRefused, "lets no tool send"),
    ] {
        let ToolError::Failed(message) = error(unanswered) else {
            panic!("{unanswered:?}")
        };
        assert!(message.contains(words), "{message}");
    }
    assert!(
        failed(Scripted {
            breaks: Some(Unanswered::TooLarge),
            ..answers("text/plain", "half")
        })
        .contains("larger than")
    );
    assert_eq!(
        call(super::network::Granted, json!({ "url": URL })).unwrap_err(),
        ToolError::Denied
    );
}

#[test]
fn arguments_that_make_no_sense_are_named() {
    let long = format!("https://example.com/{}", "x".repeat(3_000));
    for (arguments, words) in [
        (
            json!({ "url": "example.com" }),
            "`url` is not a whole address",
        ),
        (
            json!({ "url": "file:///etc/passwd" }),
            "`url` must begin with `https://`",
        ),
        (
            json!({ "url": "https://me:secret@example.com/" }),
            "`url` must not carry a user name",
        ),
        (
            json!({ "url": long }),
            "`url` is longer than 2048 characters",
        ),
        (
            json!({ "url": URL, "maxChars": 0 }),
            "`maxChars` must be from 1 to 200000",
        ),
        (
            json!({ "url": URL, "maxChars": 200_001 }),
            "`maxChars` must be from 1 to 200000",
        ),
        (
            json!({ "url": URL, "method": "POST" }),
            "`method` must be GET or HEAD; a request with POST",
        ),
        (json!({ "url": URL, "body": "x" }), "unknown field `body`"),
    ] {
        match call(answers("text/plain", ""), arguments).unwrap_err() {
            ToolError::InvalidArguments(message) => assert!(message.contains(words), "{message}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn text_that_is_cut_says_so() {
    let default = TEXT_CHARS as usize;
    let page = fetched(answers("text/plain", "é".repeat(default + 5)));
    assert_eq!(page["text"].as_str().unwrap().chars().count(), default);
    assert_eq!(
        page["cut"],
        "these are the first 20000 characters of 20005; ask with a larger maxChars, up to 200000"
    );
    assert_eq!(
        fetched(answers("text/plain", "é".repeat(default)))["cut"],
        Value::Null
    );
    let most = call(
        answers("text/plain", "x".repeat(300_000)),
        json!({ "url": URL, "maxChars": 200_000 }),
    )
    .unwrap();
    assert_eq!(
        most["cut"],
        "these are the first 200000 characters of 300000; the rest cannot be had with this tool"
    );
}

#[test]
fn a_body_beyond_what_is_read_says_so() {
    let page = fetched(answers("text/plain", "x".repeat(BODY_BYTES_MAX + 1)));
    assert!(
        page["cut"]
            .as_str()
            .unwrap()
            .starts_with("these are the first 20000 characters of at least 2097152;")
    );
    let hidden = format!(
        "<p>short<script>{}</script><p>lost",
        "x".repeat(BODY_BYTES_MAX)
    );
    let page = fetched(answers("text/html", hidden));
    assert_eq!(
        (&page["text"], &page["cut"]),
        (
            &json!("short"),
            &json!("the page is longer than this tool reads; its end is missing")
        )
    );
}
