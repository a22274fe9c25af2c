//! The built-in `web_fetch` and `web_send` under the limits that every component has: pages come as
//! text, none of them is too much, and what may change something is sent once.

use super::network::Server;
use agent_host_tests::patience::until;
use agent_host_tests::process::{puppet, tells};
use agent_host_tests::{Setup, World};
use domain::egress::{EgressGrant, Method};
use domain::grant::GuestLimits;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Bytes of a page that the tool reads.
const READ_BYTES_MAX: usize = 2 << 20;
/// Time limit of a call on a busy machine; the time of its processor is bounded by the host.
const CALL_MAX: Duration = Duration::from_secs(10);

fn answer(head: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn world(network: Vec<EgressGrant>, guest_limits: GuestLimits) -> World {
    let definitions = vec![puppet()];
    World::new(Setup {
        components: vec!["puppet", "web"],
        definitions,
        network,
        guest_limits,
        ..Setup::default()
    })
    .await
}

/// Makes a call and returns its result, as the puppet reports it.
async fn fetch(world: &World, arguments: Value) -> String {
    world
        .play(json!([{ "start": [{ "key": "t", "tool": "web_fetch", "args": arguments }] }]))
        .await
        .join("\n")
}

/// Returns the result of a fetch that a server answers so.
async fn fetched(answer: String, limits: GuestLimits) -> String {
    let server = Server::saying(Some(answer));
    let world = world(vec![server.grant()], limits).await;
    fetch(&world, json!({ "url": server.url("/open/a") })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_comes_as_markdown_through_the_grant() {
    let page =
        "<title>T</title><nav>Home</nav><h1>Hello</h1><p>caf\u{e9} &amp; <a href='../b'>more</a>";
    let server = Server::saying(Some(answer(
        "200 OK\r\ncontent-type: text/html; charset=utf-8",
        page,
    )));
    let world = world(vec![server.grant()], GuestLimits::default()).await;
    let reported = fetch(&world, json!({ "url": server.url("/open/a#part") })).await;
    let reported: Value = serde_json::from_str(
        reported
            .strip_prefix("t parts ")
            .unwrap_or_else(|| panic!("{reported}")),
    )
    .unwrap();
    let text = format!("# Hello\n\ncafé & [more]({})", server.url("/b"));
    let expected = json!({
        "url": server.url("/open/a"), "status": 200, "contentType": "text/html", "title": "T",
        "text": text,
    });
    assert_eq!(reported, expected);
    assert_eq!(
        fetch(&world, json!({ "url": server.url("/closed") })).await,
        "t denied"
    );
    assert_eq!(server.asked(), ["GET /open/a HTTP/1.1"]);
}

/// A page as there are many: paragraphs, links, lists, and scripts and styles around them.
fn ordinary(bytes: usize) -> String {
    let mut page = "<!doctype html><html><head><title>Long</title></head><body>".to_owned();
    let mut n = 0;
    while page.len() < bytes {
        n += 1;
        let _ = writeln!(
            page,
            "<div class='row c{n}' data-x='{n}'><h2 id=h{n}>Part {n}</h2><p class=text>Some \
             <b>words</b> &amp; <a href='/page/{n}?a=1'>a link</a>, \
             then more of them, enough for a \
             line.</p><ul><li>one<li>two</ul><script>track({n})</script></div>"
        );
    }
    page
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_megabyte_is_read_within_the_limits_of_every_component() {
    let begun = Instant::now();
    let reported = fetched(
        answer("200 OK\r\ncontent-type: text/html", &ordinary(1 << 20)),
        GuestLimits::default(),
    )
    .await;
    tells(
        &reported,
        &[
            "## Part 1\\n\\nSome words & [a link](",
            "these are the first 20000 characters of",
        ],
    );
    assert!(begun.elapsed() < CALL_MAX, "{:?}", begun.elapsed());
}

/// Different names of attributes.
fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("a{n:x}")).collect()
}

/// Each as long as the tool reads, and made to cost as much as it can: half a second of the
/// processor, which is more on a slow machine.
#[tokio::test(flavor = "multi_thread")]
async fn pages_made_to_be_costly_are_read_too_and_within_the_memory_of_every_component() {
    let patient = GuestLimits {
        cpu_ms_max: 5_000,
        ..GuestLimits::default()
    };
    let full = |chunk: &str| chunk.repeat(READ_BYTES_MAX / chunk.len());
    let numbered = (0..READ_BYTES_MAX / 16).fold(String::new(), |mut all, n| {
        let _ = write!(all, "<p><b c={n:05}>x");
        all
    });
    for (name, page) in [
        ("ordinary", ordinary(READ_BYTES_MAX)),
        ("nested", full("<div>")),
        ("paragraphs", full("<p>x")),
        ("tags", full("<b>")),
        ("misnested", full("<a><b><i><u><p></a></b>")),
        ("formatting", numbered),
        (
            "attributes",
            format!("<p {}>x", numbers(READ_BYTES_MAX / 7).join(" ")),
        ),
        (
            "attributes in quotes",
            format!("<p {}>x", numbers(READ_BYTES_MAX / 11).join("='>'")),
        ),
        (
            "tags of attributes",
            full(&format!("<p {}>x", numbers(500).join(" "))),
        ),
        (
            "attributes behind a comment",
            format!(
                "<!-- <a x=\" --><p {}>x",
                numbers(READ_BYTES_MAX / 8).join("/")
            ),
        ),
        ("tables", full("<table><tr><td>x")),
        ("entities", full("&amp;")),
        ("brackets", full("<")),
        (
            "deep paragraphs",
            format!("{}{}", "<div>".repeat(250), full("<p>x")),
        ),
    ] {
        let reported = fetched(answer("200 OK\r\ncontent-type: text/html", &page), patient).await;
        assert!(reported.starts_with("t parts {"), "{name}: {reported}");
    }
}

/// Has the puppet send a request with `POST`.
fn posts(url: &str) -> Value {
    let arguments = json!({ "url": url, "method": "POST" });
    json!([{ "start": [{ "key": "t", "tool": "web_send", "args": arguments }] }])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_may_change_something_needs_its_method_in_the_grant() {
    let server = Server::saying(Some(answer(
        "201 Created\r\ncontent-type: text/plain",
        "made",
    )));
    let reading = world(vec![server.grant()], GuestLimits::default()).await;
    let url = server.url("/open/a");
    assert_eq!(reading.play(posts(&url)).await, ["t denied"]);
    assert!(server.asked().is_empty());
    let ledger = reading.ledger().await;
    let hops: Vec<_> = ledger
        .iter()
        .flat_map(|decided| &decided.egress.hops)
        .map(|hop| (hop.method, hop.verdict.as_str()))
        .collect();
    assert_eq!(hops, [(Method::Post, "not-granted")]);

    let grant = EgressGrant {
        methods: vec![Method::Post],
        ..server.grant()
    };
    let posting = world(vec![grant], GuestLimits::default()).await;
    let reported = posting.play(posts(&url)).await.join("\n");
    tells(&reported, &[r#""status":201"#, r#""text":"made""#]);
    assert_eq!(server.asked(), ["POST /open/a HTTP/1.1"]);
    assert_eq!(fetch(&posting, json!({ "url": url })).await, "t denied");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_cut_off_by_a_restart_is_unknown_and_not_sent_again() {
    let server = Server::saying(None);
    let grant = EgressGrant {
        methods: vec![Method::Post],
        ..server.grant()
    };
    let world = world(vec![grant], GuestLimits::default()).await;
    let session = world.open("puppet").await;
    let steps = json!({ "steps": posts(&server.url("/open/a")) });
    world.say("puppet", session, &steps.to_string()).await;
    until(async || !server.asked().is_empty()).await;
    let world = world.restart(|_| ()).await;
    world.replies(session, "t unknown").await;
    assert_eq!(server.asked(), ["POST /open/a HTTP/1.1"]);
}
