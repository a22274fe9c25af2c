//! The built-in `web_search` with a search service on loopback: it is asked as the operator
//! configured, and no answer of it is too much.

use agent_host_tests::process::{puppet, tells};
use agent_host_tests::{Setup, World};
use domain::egress::{AddressRange, EgressGrant, HostPattern, Method, PathPattern, Scheme};
use domain::event::BoundaryVerdict;
use domain::grant::{Grant, SecretGrant, SecretSlot, capability};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Bytes of an answer that is far too long.
const FLOOD_BYTES: usize = 100 << 20;
/// The key of the search service.
const KEY: &str = "BRAVE-KEY-6b1f0c2d";

/// One request as a server on loopback got it.
#[derive(Debug, Clone)]
pub(super) struct SearchRequest {
    /// Method and path with its query.
    pub(super) line: String,
    /// The whole head, with names of headers in lower case.
    pub(super) head: String,
    /// The body.
    pub(super) body: String,
}

/// A site on loopback: a page, a list that takes items, and search services. It goes with the
/// test's process.
pub(super) struct Site {
    port: u16,
    asked: Arc<Mutex<Vec<SearchRequest>>>,
}

impl Site {
    pub(super) fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<SearchRequest>>> = Arc::default();
        let heard = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let heard = Arc::clone(&heard);
                thread::spawn(move || {
                    let request = request(&mut stream);
                    heard.lock().unwrap().push(request.clone());
                    // Whoever has read enough hangs up.
                    _ = answer(&mut stream, &request.line);
                });
            }
        });
        Self { port, asked }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Takes the requests that it got, one by one.
    pub(super) fn asked(&self) -> Vec<SearchRequest> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// Lets requests with these methods through to these paths.
    pub(super) fn grant(&self, methods: &[Method], path: &str) -> EgressGrant {
        EgressGrant {
            schemes: vec![Scheme::Http],
            ports: Some(vec![self.port]),
            methods: methods.to_vec(),
            path: PathPattern::parse(path).unwrap(),
            private_addresses: vec![AddressRange::parse("127.0.0.1").unwrap()],
            ..EgressGrant::of(HostPattern::parse("127.0.0.1").unwrap())
        }
    }
}

fn request(stream: &mut TcpStream) -> SearchRequest {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    let line = head.lines().next().unwrap_or_default();
    SearchRequest {
        line: line.trim_end_matches(" http/1.1").to_owned(),
        body: String::from_utf8_lossy(&body).into_owned(),
        head,
    }
}

/// Answers by the path, which is in lower case as all of the head is.
fn answer(stream: &mut TcpStream, line: &str) -> std::io::Result<()> {
    let path = line.split('?').next().unwrap_or_default();
    match path {
        "get /open/page" => whole(
            stream,
            "200 OK",
            "text/html",
            "<title>Tides</title><h1>Tides</h1><p>High at <b>noon</b>",
        ),
        "head /open/page" => stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 57\r\n\
              etag: \"tides-1\"\r\nconnection: close\r\n\r\n",
        ),
        "post /open/items" => whole(stream, "201 Created", "application/json", "{\"id\": 7}"),
        "get /search" => whole(
            stream,
            "200 OK",
            "application/json",
            &json!({ "results": results(3) }).to_string(),
        ),
        "get /brave/res/v1/web/search" => whole(
            stream,
            "200 OK",
            "application/json",
            &json!({ "web": { "results": [{
                "title": "Found", "url": "https://found.example/", "description": "by its key",
            }] } })
            .to_string(),
        ),
        "get /many/search" => whole(
            stream,
            "200 OK",
            "application/json",
            &json!({ "results": results(10_000) }).to_string(),
        ),
        "get /flood/search" => flood(stream),
        "get /closed/search" => whole(stream, "403 Forbidden", "text/html", "<h1>Forbidden</h1>"),
        _ => whole(stream, "404 Not Found", "text/plain", "nothing"),
    }
}

fn whole(
    stream: &mut TcpStream,
    status: &str,
    content_type: &str,
    body: &str,
) -> std::io::Result<()> {
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes())
}

/// So many results, with characters in them that nobody sees.
fn results(count: usize) -> Vec<Value> {
    (1..=count)
        .map(|number| {
            json!({
                "title": format!("Tide\u{200b}s <b>{number}</b>"),
                "url": format!("https://tides.example/{number}#top"),
                "content": "High\u{202e} water &amp; low\u{e0041}",
            })
        })
        .collect()
}

/// An answer whose length nobody states and that does not end for long.
fn flood(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\
          {\"results\": [",
    )?;
    let chunk = [b' '; 64 << 10];
    for _ in 0..FLOOD_BYTES / chunk.len() {
        stream.write_all(&chunk)?;
    }
    Ok(())
}

/// The settings of a search service.
pub(super) fn settings(backend: &str, base: String) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("WEB_SEARCH_BACKEND".to_owned(), backend.to_owned()),
        ("WEB_SEARCH_URL".to_owned(), base),
    ])
}

/// A world whose puppet may call the tools of `web` under this grant.
async fn world(grant: Grant) -> World {
    let definitions = vec![puppet()];
    World::new(Setup {
        components: vec!["puppet", "web"],
        definitions,
        secrets: vec![("brave", KEY)],
        grants: vec![("web", grant)],
        ..Setup::default()
    })
    .await
}

/// Searches, and returns what the puppet reports.
async fn search(world: &World, arguments: Value) -> String {
    let call = json!({ "key": "t", "tool": "web_search", "args": arguments });
    world.play(json!([{ "start": [call] }])).await.join("\n")
}

/// Searches at a service below a path of the site.
async fn searched_at(site: &Site, path: &str, arguments: Value) -> String {
    let world = world(Grant {
        network: vec![site.grant(&[Method::Get], "/**")],
        environment: settings("searxng", site.url(path)),
        ..Grant::default()
    })
    .await;
    search(&world, arguments).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_at_searxng_comes_as_plain_text_through_the_grant() {
    let site = Site::new();
    let reported = searched_at(
        &site,
        "/",
        json!({ "query": "tides & winds", "maxResults": 2 }),
    )
    .await;
    let reported: Value = serde_json::from_str(
        reported
            .strip_prefix("t parts ")
            .unwrap_or_else(|| panic!("{reported}")),
    )
    .unwrap();
    let hit = |number: usize| {
        json!({
            "title": format!("Tides {number}"), "url": format!("https://tides.example/{number}"),
            "snippet": "High water & low",
        })
    };
    assert_eq!(reported, json!([hit(1), hit(2)]));
    let asked = site.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        asked[0].line,
        "get /search?q=tides+%26+winds&format=json&pageno=1"
    );
    let reported = searched_at(&site, "/closed", json!({ "query": "tides" })).await;
    tells(&reported, &["adds `json` to `search.formats`"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn brave_gets_its_key_from_the_host_and_nobody_else_does() {
    let site = Site::new();
    let grant = Grant {
        network: vec![site.grant(&[Method::Get, Method::Post], "/**")],
        environment: settings("brave", site.url("/brave")),
        secrets: vec![SecretGrant {
            secret: "brave".to_owned(),
            host: "127.0.0.1".to_owned(),
            port: Some(site.port),
            slot: SecretSlot::Header("X-Subscription-Token".to_owned()),
            prefix: String::new(),
        }],
        ..Grant::default()
    };
    let without = Grant {
        secrets: Vec::new(),
        ..grant.clone()
    };
    let world_with = world(grant).await;
    let reported = search(&world_with, json!({ "query": "tides" })).await;
    tells(
        &reported,
        &[r#""url":"https://found.example/","snippet":"by its key""#],
    );
    let asked = site.asked();
    assert_eq!(
        asked[0].line,
        "get /brave/res/v1/web/search?q=tides&count=5"
    );
    let key = format!("x-subscription-token: {}\r\n", KEY.to_ascii_lowercase());
    assert!(asked[0].head.contains(&key), "{asked:?}");
    let ledger = world_with.ledger().await;
    let used = ledger
        .iter()
        .filter(|decided| decided.tool.as_deref() == Some("web_search"))
        .flat_map(|decided| &decided.decisions)
        .any(|decision| {
            decision.capability == capability::SECRETS_USE
                && decision.verdict == BoundaryVerdict::Granted
        });
    assert!(used);
    // The other tools of the component have no way to ask for it.
    for (tool, method) in [("web_fetch", "GET"), ("web_send", "POST")] {
        let arguments = json!({
            "url": site.url("/open/page"), "method": method,
            "headers": { "x-subscription-token": "{{secret.brave}}" },
        });
        let call = json!({ "key": "t", "tool": tool, "args": arguments });
        let reported = world_with
            .play(json!([{ "start": [call] }]))
            .await
            .join("\n");
        tells(&reported, &["asks for a secret"]);
    }
    let reported = search(&world(without).await, json!({ "query": "tides" })).await;
    tells(&reported, &["and its key with `secrets`"]);
    assert!(site.asked().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_without_a_service_says_what_the_operator_sets() {
    let reported = search(&world(Grant::default()).await, json!({ "query": "tides" })).await;
    tells(
        &reported,
        &["no search service is chosen: `WEB_SEARCH_BACKEND`"],
    );
}

/// Both within the memory and the time that every component has.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_hundred_megabytes_or_ten_thousand_results_is_not_too_much() {
    let site = Site::new();
    let reported = searched_at(&site, "/flood", json!({ "query": "tides" })).await;
    tells(&reported, &["answers with more than 2097152 bytes"]);
    let reported = searched_at(
        &site,
        "/many",
        json!({ "query": "tides", "maxResults": 20 }),
    )
    .await;
    let reported: Value = serde_json::from_str(reported.strip_prefix("t parts ").unwrap()).unwrap();
    let results = reported.as_array().unwrap();
    assert_eq!(results.len(), 20);
    assert_eq!(
        results[19],
        json!({
            "title": "Tides 20", "url": "https://tides.example/20",
            "snippet": "High water & low",
        })
    );
}
