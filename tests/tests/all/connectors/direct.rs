//! A chat for web pages: visitors, what they say and hear, and which pages may use it.

use super::scene::choice;
use agent_host_tests::guests::root;
use agent_host_tests::patience::found;
use agent_host_tests::process::{
    Answer, Folder, Frame, Frames, Host, Line, Reply, puppet, puppets, shows, tells,
};
use agent_host_tests::skip::{WITHOUT_NODE, needed};
use reqwest::Method;
use serde_json::{Value, json};
use std::process::Command;

/// The page that may use the chat.
const PAGE: &str = "https://www.example.org";
/// A model that takes its time.
const SLOW: &str = "[[rule]]\nreply = { text = \"one two three\", delayMs = 300 }\n";

/// A host with a chat for web pages.
struct Site {
    host: Host,
    folder: Folder,
}

/// Somebody at a page.
struct Visitor {
    line: Line,
    id: String,
    token: String,
}

impl Site {
    async fn new(agent: &str) -> Self {
        let mut config = puppets(&json!([
            puppet(),
            { "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": [] },
        ]));
        config["connectors"]["site"] = json!({
            "component": "direct", "agent": agent,
            "configuration": { "origins": [PAGE], "visitorsMax": 3, "deltas": true },
        });
        let folder = Folder::new(config);
        std::fs::write(folder.path().join("script.toml"), SLOW).unwrap();
        folder.warm(&["puppet", "assistant"]).await;
        let host = folder.serve().await;
        Self { host, folder }
    }

    #[track_caller]
    fn come(&self) -> Reply {
        let request = self.host.bare(Method::POST, "/chat/site/visitors");
        self.host.send(request)
    }

    async fn visitor(&self) -> Visitor {
        let received = self.come().gives(201).await;
        Visitor {
            line: self.host.line().with_token(received.text("token")),
            id: received.text("visitor_id"),
            token: received.text("token"),
        }
    }
}

impl Visitor {
    fn post(&self, what: &str, body: &Value) -> Reply {
        self.line.post(&format!("/chat/site/{what}"), body)
    }

    async fn say(&self, text: &str) -> Answer {
        self.post("messages", &json!({ "id": text, "text": text }))
            .gives(202)
            .await
    }

    async fn follow(&self, last_event_id: Option<u64>) -> Frames {
        let frames = self.line.follow("/chat/site/events", last_event_id);
        frames.await.expect("a stream")
    }
}

fn last(frames: &[Frame]) -> &Frame {
    frames.last().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_is_answered_over_their_event_stream() {
    let site = Site::new("puppet").await;
    let visitor = site.visitor().await;
    let mut frames = visitor.follow(None).await;
    let connected = frames.until("connected").await;
    assert_eq!(last(&connected).data["visitor_id"], visitor.id.as_str());
    let said = visitor.say("hello").await;
    assert_eq!(said.body["replayed"], false);
    let reported = frames.until("message").await;
    assert_eq!(last(&reported).data["text"], "said hello");
    // The same again is the same message.
    let again = visitor.say("hello").await;
    let expected = json!({
        "replayed": true, "inbound_message_id": said.body["inbound_message_id"],
    });
    shows(&again.body, &expected);
    visitor.say("more").await;
    let reported = frames.until("message").await;
    assert_eq!(last(&reported).data["text"], "said more");
    let user = format!("visitor-{}", visitor.id);
    let keys = site
        .host
        .get(&format!("/api/users/{user}/connectors"))
        .await;
    let key = format!("site:{}", visitor.id);
    assert_eq!(keys.body["connectors"][0]["key"], key.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_comes_back_gets_exactly_what_it_missed() {
    let site = Site::new("puppet").await;
    let visitor = site.visitor().await;
    let mut frames = visitor.follow(None).await;
    visitor.say("one").await;
    let seen = last(&frames.until("message").await).id;
    drop(frames);
    for text in ["two", "three"] {
        visitor.say(text).await;
        found(async || {
            let path = "/api/connectors/site/outbound-messages";
            let all = site.host.get(path).await.body;
            let count = all["outbound_messages"].as_array().unwrap().len();
            (count == if text == "two" { 2 } else { 3 }).then_some(())
        })
        .await;
    }
    // A host that was killed meanwhile has it all too.
    let Site { host, folder } = site;
    host.kill().await;
    let host = folder.serve().await;
    let line = host.line().with_token(visitor.token);
    let mut back = line.follow("/chat/site/events", seen).await.unwrap();
    for missed in ["said two", "said three"] {
        assert_eq!(last(&back.until("message").await).data["text"], missed);
    }
    let mut anew = line.follow("/chat/site/events", None).await.unwrap();
    for all in ["said one", "said two", "said three"] {
        assert_eq!(last(&anew.until("message").await).data["text"], all);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_comes_anew_shows_both_sides_of_the_chat() {
    let site = Site::new("puppet").await;
    let visitor = site.visitor().await;
    let mut frames = visitor.follow(None).await;
    let said = visitor.say("hello").await;
    let heard = frames.until("message").await;
    let own = heard.iter().find(|frame| frame.event == "said").unwrap();
    shows(
        &own.data,
        &json!({ "text": "hello", "message_ids": [said.body["message_id"]] }),
    );
    visitor.say("more").await;
    frames.until("message").await;
    let other = site.visitor().await;
    other.say("of another").await;
    let mut anew = visitor.follow(None).await;
    let mut shown = anew.until("message").await;
    shown.extend(anew.until("message").await);
    let lines = |frames: &[Frame]| -> Vec<String> {
        let stay = frames.iter().filter(|frame| frame.id.is_some());
        stay.map(|frame| frame.data["text"].as_str().unwrap().to_owned())
            .collect()
    };
    let both = ["hello", "said hello", "more", "said more"];
    assert_eq!(lines(&shown), both);
    let mut back = visitor.follow(own.id).await;
    let mut rest = back.until("message").await;
    rest.extend(back.until("message").await);
    assert_eq!(lines(&rest), both[1..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_visitors_who_come_at_once_no_more_are_let_in_than_may() {
    let site = Site::new("puppet").await;
    let received = futures::future::join_all((0..8).map(|_| site.come())).await;
    // Whoever comes to a full chat gets the place of one who has said nothing yet.
    let mut heard = 0;
    for received in &received {
        assert!(
            received.status == 201 || received.text("code") == "BUSY",
            "{received:?}"
        );
        let line = site.host.line().with_token(received.text("token"));
        let words = json!({ "text": "here" });
        let said = line.post("/chat/site/messages", &words);
        heard += usize::from(said.await.status == 202);
    }
    assert_eq!(heard, 3, "{received:?}");
}

/// Places that somebody took and makes no use of would close a chat for ever.
#[tokio::test(flavor = "multi_thread")]
async fn places_of_visitors_who_say_nothing_go_to_others_and_those_in_use_do_not() {
    let site = Site::new("puppet").await;
    let visitor = site.visitor().await;
    visitor.say("hello").await;
    visitor.follow(None).await.until("message").await;
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(site.visitor().await);
    }
    // The first of them are gone, and are told so.
    for (index, other) in others.iter().enumerate() {
        let said = other.post("messages", &json!({ "text": "hello" })).await;
        let expected = if index < 3 { 401 } else { 202 };
        assert_eq!(said.status, expected, "{index}: {said:?}");
        if index >= 3 {
            other.follow(None).await.until("message").await;
        }
    }
    site.come().refused(409, "TOO_MANY_VISITORS").await;
    assert_eq!(visitor.say("still here").await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_answers_a_question_and_hears_that_it_is_closed() {
    let site = Site::new("puppet").await;
    let visitor = site.visitor().await;
    let mut frames = visitor.follow(None).await;
    visitor
        .say(&choice(&["tea", "coffee"].map(str::to_owned)))
        .await;
    let asked = frames.until("question").await;
    let asked = last(&asked).data.clone();
    let expected = json!({
        "text": "Tea or coffee?", "is_open": true, "choices/1/label": "coffee",
    });
    shows(&asked, &expected);
    // Somebody else who knows the button answers nothing with it.
    let other = site.visitor().await;
    let value = json!({ "value": asked["choices"][0]["value"] });
    let mut of_other = other.follow(None).await;
    other.post("answers", &value).gives(202).await;
    let reported = of_other.until("message").await;
    let reported = last(&reported).data["text"].as_str().unwrap().to_owned();
    tells(&reported, &["answered already"]);
    let value = json!({ "value": asked["choices"][1]["value"] });
    visitor.post("answers", &value).gives(202).await;
    let closed = frames.until("question_closed").await;
    assert_eq!(last(&closed).data["question_id"], asked["question_id"]);
    let reported = frames.until("message").await;
    let reported = last(&reported).data["text"].as_str().unwrap();
    tells(&reported, &["coffee"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_sees_a_reply_while_it_is_made_and_reads_nobody_elses() {
    let site = Site::new("assistant").await;
    let visitor = site.visitor().await;
    let other = site.visitor().await;
    let mut frames = visitor.follow(None).await;
    let mut of_other = other.follow(None).await;
    visitor.say("hello").await;
    let reported = frames.until("message").await;
    assert_eq!(last(&reported).data["text"], "one two three");
    let chunks = reported.iter().filter(|frame| frame.event == "delta");
    let chunks: String = chunks.map(|it| it.data["text"].as_str().unwrap()).collect();
    assert_eq!(chunks, "one two three");
    assert!(
        reported.iter().any(|frame| frame.event == "typing"),
        "{reported:?}"
    );
    other.say("and me?").await;
    let reported = of_other.until("message").await;
    let replies = reported.iter().filter(|it| it.event == "message").count();
    assert_eq!(replies, 1, "{reported:?}");
    let mallory = site
        .host
        .line()
        .with_token(format!("ahv_{}", "0".repeat(64)));
    let refused = mallory.follow("/chat/site/events", None).await.err();
    assert_eq!(refused, Some(Some(401)));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_pages_that_the_operator_lists_use_a_chat() {
    let site = Site::new("puppet").await;
    let from = async |method: Method, origin: &str| {
        let request = site.host.bare(method, "/chat/site/visitors");
        let asked = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
        ];
        let request = asked
            .iter()
            .fold(request, |it, (name, value)| it.header(*name, *value));
        let response = request.send().await.unwrap();
        let allowed = response.headers().get("access-control-allow-origin");
        let allowed = allowed.map(|it| it.to_str().unwrap().to_owned());
        (response.status().as_u16(), allowed)
    };
    let listed = Some(PAGE.to_owned());
    assert_eq!(from(Method::OPTIONS, PAGE).await, (204, listed.clone()));
    assert_eq!(from(Method::POST, PAGE).await, (201, listed));
    let others = ["https://evil.example", "http://www.example.org", "null"];
    for other in others {
        assert_eq!(from(Method::OPTIONS, other).await, (403, None), "{other}");
        assert_eq!(from(Method::POST, other).await, (403, None), "{other}");
    }
    let nowhere = site.host.bare(Method::POST, "/chat/nowhere/visitors");
    let nowhere = site.host.send(nowhere).await;
    assert_eq!(nowhere.text("code"), "CONNECTOR_NOT_FOUND");
}

/// Its tests stand beside it, in the language that it is in.
#[test]
fn the_page_of_the_example_loses_nothing_and_reads_nothing_as_html() {
    let node = Command::new("node").arg("--version").output();
    let node = node
        .map(drop)
        .map_err(|error| format!("it has no node: {error}"));
    if needed(node, WITHOUT_NODE).is_none() {
        return;
    }
    let tested = Command::new("node")
        .args(["--test", "--test-force-exit"])
        .current_dir(root().join("examples/web-chat"))
        .output()
        .unwrap();
    let reported = String::from_utf8_lossy(&tested.stdout);
    assert!(tested.status.success(), "{reported}");
    assert!(!reported.contains("# pass 0"), "{reported}");
}
