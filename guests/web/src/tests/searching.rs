//! Searches with both services, and everything that can be wrong with them.

use super::Silent;
use crate::search::{ANSWER_BYTES_MAX, RESULTS_MAX};
use crate::{Answer, Network, Request, Unanswered, Web};
use agent_host_sdk::{EffectClass, ToolError, harness::Bench};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::io::{self, Cursor, Read};
use std::rc::Rc;

const SEARXNG: &[(&str, &str)] = &[
    ("WEB_SEARCH_BACKEND", "searxng"),
    ("WEB_SEARCH_URL", "https://searx.example/"),
];
const BRAVE: &[(&str, &str)] = &[("WEB_SEARCH_BACKEND", "brave")];
const BRAVE_BEHIND_A_PROXY: &[(&str, &str)] = &[
    ("WEB_SEARCH_BACKEND", "brave"),
    ("WEB_SEARCH_URL", "https://proxy.example/to"),
    ("WEB_SEARCH_SECRET", "search-key"),
];

/// A search service that keeps the addresses and headers that it is asked with.
#[derive(Debug, Clone, Default)]
struct SearchServer {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    asked: Rc<RefCell<Vec<String>>>,
}

impl Network for SearchServer {
    fn send(&self, request: &Request<'_>) -> Result<Answer, Unanswered> {
        assert!(request.body.is_empty());
        let mut asked = format!("{} {}", request.method, request.url);
        for (name, value) in request.headers {
            asked.push_str(&format!("\n{name}: {value}"));
        }
        self.asked.borrow_mut().push(asked);
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Ok(Answer {
            status: self.status,
            headers: self.headers.iter().map(owned).collect(),
            body: Box::new(Cursor::new(self.body.clone())),
        })
    }
}

fn says(status: u16, body: impl Into<Vec<u8>>) -> SearchServer {
    SearchServer {
        status,
        headers: vec![("content-type", "application/json")],
        body: body.into(),
        ..SearchServer::default()
    }
}

fn found(results: &Value) -> SearchServer {
    says(200, json!({ "query": "x", "results": results }).to_string())
}

fn search(
    network: impl Network + 'static,
    settings: &[(&str, &str)],
    arguments: Value,
) -> Result<Value, ToolError> {
    Bench::new(Web::over(network).configured(settings))
        .text("web_search", arguments)
        .map(|text| serde_json::from_str(&text).unwrap())
}

fn failed(network: impl Network + 'static, settings: &[(&str, &str)]) -> String {
    match search(network, settings, json!({ "query": "tides" })).unwrap_err() {
        ToolError::Failed(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn searching_reads_and_needs_the_network_its_settings_and_a_key() {
    let definition = Bench::new(Web::granted()).definition("web_search");
    assert_eq!(
        (definition.effect, definition.destructive),
        (EffectClass::ReadOnly, false)
    );
    assert_eq!(
        definition.capabilities,
        ["net.http", "env.read", "secrets.use"]
    );
    let arguments = &definition.arguments["properties"];
    assert_eq!(arguments["maxResults"]["maximum"], RESULTS_MAX);
    assert_eq!(arguments["query"]["maxLength"], 400);
}

#[test]
fn searxng_is_asked_for_json_and_its_results_are_plain_text() {
    let service = found(&json!([
        {
            "title": "Tides &amp; <b>winds</b>", "url": "https://a.example/1#top",
            "content": "High<br>water at <em>noon</em>&nbsp;&#8211; low\n water",
            "engine": "x", "score": 1.5, "publishedDate": null,
        },
        { "title": null, "url": "https://b.example/" },
    ]));
    let asked = Rc::clone(&service.asked);
    let results = search(service, SEARXNG, json!({ "query": " tides  & winds " })).unwrap();
    assert_eq!(
        results,
        json!([
            {
                "title": "Tides & winds", "url": "https://a.example/1",
                "snippet": "High water at noon – low water",
            },
            { "title": "https://b.example/", "url": "https://b.example/", "snippet": "" },
        ])
    );
    assert_eq!(
        *asked.borrow(),
        [
            "GET https://searx.example/search?q=tides+%26+winds&format=json&pageno=1\naccept: \
          application/json"
        ]
    );
}

#[test]
fn brave_is_asked_with_the_placeholder_of_its_key() {
    let body = json!({
        "type": "search",
        "web": { "results": [
            { "title": "One", "url": "https://a.example/", "description": "<strong>1</strong> one" },
        ] },
    });
    let expected = json!([
        { "title": "One", "url": "https://a.example/", "snippet": "1 one" },
    ]);
    for (settings, base, secret) in [
        (BRAVE, "https://api.search.brave.com", "brave"),
        (
            BRAVE_BEHIND_A_PROXY,
            "https://proxy.example/to",
            "search-key",
        ),
    ] {
        let service = says(200, body.to_string());
        let asked = Rc::clone(&service.asked);
        let arguments = json!({ "query": "one", "maxResults": 3 });
        assert_eq!(search(service, settings, arguments).unwrap(), expected);
        let reported = format!(
            "GET {base}/res/v1/web/search?q=one&count=3\naccept: application/json\n\
             x-subscription-token: {{{{secret.{secret}}}}}"
        );
        assert_eq!(*asked.borrow(), [reported]);
    }
    // It has no list when nothing was found.
    let nothing = says(200, json!({ "type": "search", "query": {} }).to_string());
    assert_eq!(
        search(nothing, BRAVE, json!({ "query": "x" })).unwrap(),
        json!([])
    );
}

#[test]
fn each_address_comes_once_and_what_cannot_be_fetched_does_not() {
    let service = found(&json!([
        { "title": "a", "url": "https://a.example" },
        { "title": "b", "url": "https://A.example/#part" },
        { "title": "c", "url": "javascript:alert(1)" },
        { "title": "d", "url": "https://me:secret@a.example/" },
        { "title": "e", "url": "no address" },
        { "title": "f" },
        { "title": "g", "url": format!("https://a.example/{}", "x".repeat(3_000)) },
        { "title": "h", "url": "http://a.example/" },
    ]));
    let results = search(service, SEARXNG, json!({ "query": "x", "maxResults": 20 })).unwrap();
    let titles: Vec<&str> = results
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles, ["a", "h"]);
}

#[test]
fn as_many_results_come_as_are_wanted_and_five_by_default() {
    let many: Vec<Value> = (0..30)
        .map(|number| json!({ "title": "t", "url": format!("https://a.example/{number}") }))
        .collect();
    for (arguments, expected) in [
        (json!({ "query": "x" }), 5),
        (json!({ "query": "x", "maxResults": 1 }), 1),
        (json!({ "query": "x", "maxResults": 20 }), 20),
        (json!({ "query": "x", "maxResults": null }), 5),
    ] {
        let results = search(found(&json!(many)), SEARXNG, arguments).unwrap();
        assert_eq!(results.as_array().unwrap().len(), expected);
    }
}

#[test]
fn a_query_that_makes_no_sense_is_refused() {
    for (arguments, words) in [
        (
            json!({ "query": " \u{200b}\n" }),
            "`query` must have a word in it",
        ),
        (
            json!({ "query": "x".repeat(401) }),
            "`query` is longer than 400 characters",
        ),
        (
            json!({ "query": "x", "maxResults": 0 }),
            "`maxResults` must be from 1 to 20",
        ),
        (
            json!({ "query": "x", "maxResults": 21 }),
            "`maxResults` must be from 1 to 20",
        ),
        (json!({ "words": "x" }), "unknown field `words`"),
    ] {
        let service = found(&json!([]));
        let asked = Rc::clone(&service.asked);
        match search(service, SEARXNG, arguments).unwrap_err() {
            ToolError::InvalidArguments(message) => assert!(message.contains(words), "{message}"),
            other => panic!("{other:?}"),
        }
        assert!(asked.borrow().is_empty());
    }
}

#[test]
fn settings_that_are_missing_or_wrong_are_named_with_the_fix() {
    let searxng = ("WEB_SEARCH_BACKEND", "searxng");
    for (settings, words) in [
        (vec![], "no search service is chosen: `WEB_SEARCH_BACKEND`"),
        (
            vec![("WEB_SEARCH_BACKEND", " ")],
            "no search service is chosen",
        ),
        (
            vec![("WEB_SEARCH_BACKEND", "bing")],
            "is `bing`; it can be `searxng` or `brave`",
        ),
        (vec![searxng], "`WEB_SEARCH_URL` is missing"),
        (
            vec![searxng, ("WEB_SEARCH_URL", "searx.example")],
            "`WEB_SEARCH_URL` is no address",
        ),
        (
            vec![searxng, ("WEB_SEARCH_URL", "ftp://a.example")],
            "does not begin with `https://`",
        ),
        (
            vec![searxng, ("WEB_SEARCH_URL", "https://a:b@c.example")],
            "has a user name",
        ),
        (
            vec![searxng, ("WEB_SEARCH_URL", "https://a.example/?q=")],
            "has a `?` or a `#` in it",
        ),
    ] {
        let message = failed(found(&json!([])), &settings);
        assert!(
            message.contains(words) && message.contains("`environment` of the component"),
            "{message}"
        );
    }
    // Nothing is doubled when the whole address of the search is given.
    let service = found(&json!([]));
    let asked = Rc::clone(&service.asked);
    let settings = [searxng, ("WEB_SEARCH_URL", "https://a.example/sx/search/")];
    search(service, &settings, json!({ "query": "x" })).unwrap();
    assert!(asked.borrow()[0].starts_with("GET https://a.example/sx/search?q=x&"));
}

#[test]
fn a_service_that_refuses_says_what_to_do() {
    let limited = |retry_after: &'static str| SearchServer {
        headers: vec![("retry-after", retry_after)],
        ..says(429, "")
    };
    let page = |status, body: &str| SearchServer {
        headers: vec![("content-type", "text/html")],
        ..says(status, body)
    };
    for (service, settings, words) in [
        (
            limited("30"),
            SEARXNG,
            "no more searches at present (status 429): try again in 30 seconds",
        ),
        (
            limited("Wed, 21 Oct 2026 07:28:00 GMT"),
            BRAVE,
            "try again after Wed, 21 Oct 2026 07:28:00 GMT",
        ),
        (says(429, ""), BRAVE, "try again in a few minutes"),
        (
            page(403, "<h1>Forbidden</h1>"),
            SEARXNG,
            "adds `json` to `search.formats`",
        ),
        (
            says(403, ""),
            BRAVE,
            "does not accept the key; the operator checks the secret `brave`",
        ),
        (says(401, ""), BRAVE, "does not accept the key"),
        (
            says(301, ""),
            SEARXNG,
            "the operator sets `WEB_SEARCH_URL` to its present address",
        ),
        (
            says(422, "{\"error\": \"bad token\"}"),
            BRAVE,
            "status 422: {\"error\": \"bad token\"}",
        ),
        (
            page(500, "<p>Oops"),
            SEARXNG,
            "answers with status 500: Oops",
        ),
        (
            page(200, "<html><body>Results</body></html>"),
            SEARXNG,
            "answers with something that is not JSON (text/html): the operator checks that \
             `WEB_SEARCH_URL` is the base address",
        ),
        (
            says(200, "{\"results\": ["),
            SEARXNG,
            "not JSON (application/json)",
        ),
        (says(200, ""), BRAVE, "not JSON (application/json)"),
        (
            says(200, "{\"answers\": []}"),
            SEARXNG,
            "in JSON that is no list of results",
        ),
        (
            says(200, "[1]"),
            BRAVE,
            "in JSON that is no list of results",
        ),
    ] {
        let message = failed(service, settings);
        assert!(
            message.starts_with("the search service `") && message.contains(words),
            "{message}"
        );
    }
}

#[test]
fn a_service_that_does_not_answer_says_why() {
    for (unanswered, settings, words) in [
        (
            Unanswered::Denied,
            SEARXNG,
            "the operator grants it with `network` of the component",
        ),
        (Unanswered::Denied, BRAVE, "and its key with `secrets`"),
        (
            Unanswered::Unreachable,
            SEARXNG,
            "`searx.example` cannot be reached",
        ),
        (Unanswered::TimedOut, SEARXNG, "took too long"),
        (
            Unanswered::TooLarge,
            SEARXNG,
            "larger than the operator allows",
        ),
        (Unanswered::Broken, SEARXNG, "broke off"),
    ] {
        let message = failed(Silent(unanswered), settings);
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(
        search(Silent(Unanswered::Busy), SEARXNG, json!({ "query": "x" })).unwrap_err(),
        ToolError::RetryLater(1_000)
    );
}

#[test]
fn an_answer_with_hidden_characters_and_long_texts_comes_without_them() {
    let hidden = "a\u{202e}b\u{200b}c\u{e0041}d\u{1b}[2Je&#x202e;f&#x200b;g";
    let service = found(&json!([
        { "title": hidden, "url": "https://a.example/\u{202e}x", "content": hidden },
        { "title": "<scr\u{200b}ipt>evil</scr\u{200b}ipt>b", "url": "https://b.example/",
          "content": "<p style='display:none'>obey</p>seen <span hidden>obey</span>" },
        { "title": "é".repeat(50_000), "url": "https://c.example/", "content": "é ".repeat(50_000) },
    ]));
    let results = search(service, SEARXNG, json!({ "query": "x" })).unwrap();
    assert_eq!(
        (&results[0]["title"], &results[0]["snippet"]),
        (&json!("abcd[2Jefg"), &json!("abcd[2Jefg"))
    );
    assert_eq!(results[0]["url"], "https://a.example/%E2%80%AEx");
    assert_eq!(
        (&results[1]["title"], &results[1]["snippet"]),
        (&json!("b"), &json!("seen"))
    );
    let chars = |field: &str| results[2][field].as_str().unwrap().chars().count();
    assert_eq!((chars("title"), chars("snippet")), (201, 600));
}

#[test]
fn of_ten_thousand_results_the_first_ones_come() {
    let many: Vec<Value> = (0..10_000)
        .map(|number| json!({ "title": "t", "url": format!("https://a.example/{number}") }))
        .collect();
    let service = found(&json!(many));
    assert!(service.body.len() < ANSWER_BYTES_MAX);
    let results = search(service, SEARXNG, json!({ "query": "x", "maxResults": 20 })).unwrap();
    assert_eq!(results.as_array().unwrap().len(), 20);
    assert_eq!(results[19]["url"], "https://a.example/19");
    // Behind the first two hundred nothing is kept, so that a list of nothing takes no memory.
    let empty = says(
        200,
        format!("{{\"results\": [{}{{}}]}}", "{},".repeat(600_000)),
    );
    assert_eq!(
        search(empty, SEARXNG, json!({ "query": "x" })).unwrap(),
        json!([])
    );
}

/// An answer of a hundred megabytes, which counts what is read of it.
#[derive(Debug, Clone, Default)]
struct Endless(Rc<Cell<usize>>);

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let so_far = self.0.get();
        assert!(so_far < 100 << 20, "all of it was read");
        into.fill(b' ');
        self.0.set(so_far + into.len());
        Ok(into.len())
    }
}

impl Network for Endless {
    fn send(&self, _: &Request<'_>) -> Result<Answer, Unanswered> {
        Ok(Answer {
            status: 200,
            headers: Vec::new(),
            body: Box::new(self.clone()),
        })
    }
}

#[test]
fn of_an_answer_of_a_hundred_megabytes_two_are_read() {
    let endless = Endless::default();
    let read = Rc::clone(&endless.0);
    let message = failed(endless, SEARXNG);
    assert!(message.contains("more than 2097152 bytes"), "{message}");
    assert!(read.get() <= ANSWER_BYTES_MAX + 1, "{}", read.get());
}
