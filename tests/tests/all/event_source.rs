//! Clients of event streams that come back by the standard's rules, over restarts and kills of the
//! host: none of them gives up, and none misses or repeats a word.

mod client;
mod gateway;
use agent_host_tests::process::{Folder, Host, puppet, scripted};
use agent_host_tests::skip::{WITHOUT_NODE, needed};
use client::{EventSource, StreamItem};
use gateway::Gateway;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

/// Time in which everything that a test waits for comes.
const PATIENCE: Duration = Duration::from_secs(60);
/// A model that takes its time for each word.
const SCRIPT: &str = r#"
[[rule]]
reply = { text = "one two three four five six seven eight", delayMs = 120 }
"#;
/// Its words.
const WORDS: &str = "one two three four five six seven eight";

fn config(port: u16) -> Value {
    let mut config = scripted(&json!([puppet()]), &[]);
    config["server"] = json!({ "listen": format!("127.0.0.1:{port}"), "dataDir": "data" });
    config
}

/// A folder for hosts that all listen at one port, and that port.
async fn folder() -> (Folder, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let port = port.unwrap().port();
    let folder = Folder::new(config(port));
    std::fs::write(folder.path().join("script.toml"), SCRIPT).unwrap();
    folder.warm(&["puppet"]).await;
    (folder, port)
}

/// A session: the path of its agent, and its id.
struct ChatSession {
    agent: String,
    id: String,
}

impl ChatSession {
    async fn open(host: &Host) -> Self {
        let opened = host.post("/api/agents/puppet/sessions", &json!({})).await;
        Self {
            agent: format!("/api/agents/{}", opened.text("agent_id")),
            id: opened.text("session_id"),
        }
    }

    fn stream(&self) -> String {
        format!("{}/stream?session={}", self.agent, self.id)
    }

    /// Makes the agent ask the model, and returns the id of the message.
    async fn ask(&self, host: &Host) -> String {
        let steps = json!({ "steps": [{ "start": [{ "key": "m", "model": "be brief" }] }] });
        let message = json!({ "content": steps.to_string() });
        let path = format!("{}/sessions/{}/messages", self.agent, self.id);
        host.post(&path, &message).await.text("input_id")
    }
}

/// A page that shows what an `EventSource` sees.
#[derive(Default)]
struct Page {
    /// The text of each reply in the making, by operation, with its attempt.
    shown: BTreeMap<String, (u64, String)>,
    /// Replies that were complete, as they had been shown.
    complete: Vec<String>,
    /// Inputs that were answered.
    answered: Vec<String>,
    /// Ids of events, to see that none comes twice.
    ids: BTreeSet<String>,
    connections: usize,
    so_far: usize,
    /// Replies of which nothing was shown before they were complete.
    away: usize,
}

impl Page {
    /// Shows the next thing, and returns its kind.
    fn see(&mut self, seen: StreamItem) -> String {
        let (kind, data, id) = match seen {
            StreamItem::Open => {
                self.connections += 1;
                return "open".to_owned();
            }
            StreamItem::Lost => return "lost".to_owned(),
            StreamItem::Failed(why) => panic!("it gave up for good: {why}"),
            StreamItem::Event {
                kind,
                data,
                last_event_id,
            } => (kind, data, last_event_id),
        };
        let data: Value = serde_json::from_str(&data).unwrap();
        self.frame(&kind, &data);
        if ["message_complete", "stream_complete"].contains(&kind.as_str()) {
            assert!(self.ids.insert(id.clone()), "{kind} {id} came twice");
        }
        kind
    }

    fn frame(&mut self, kind: &str, data: &Value) {
        let operation = data["operation_id"].as_str().unwrap_or_default().to_owned();
        let attempt = data["attempt"].as_u64().unwrap_or_default();
        let content = data["content"].as_str().unwrap_or_default();
        match kind {
            "content_chunk" => {
                let shown = self.shown.entry(operation).or_default();
                if shown.0 != attempt {
                    *shown = (attempt, String::new());
                }
                shown.1.push_str(content);
            }
            "content_so_far" => {
                self.so_far += 1;
                self.shown.insert(operation, (attempt, content.to_owned()));
            }
            "content_discarded" => {
                self.shown.remove(&operation);
            }
            "content_complete" if data["origin"] == "model:m" => {
                let shown = std::mem::take(&mut self.shown);
                let mut text: String = shown.into_values().map(|(_, text)| text).collect();
                assert_eq!(content, WORDS);
                if text.is_empty() {
                    // It was made while the connection was lost.
                    content.clone_into(&mut text);
                    self.away += 1;
                }
                self.complete.push(text);
            }
            "stream_complete" => self.answered.extend(texts_of(&data["input_ids"])),
            _ => {}
        }
    }
}

fn texts_of(list: &Value) -> impl Iterator<Item = String> {
    let texts = list.as_array().unwrap().iter();
    texts.map(|text| text.as_str().unwrap().to_owned())
}

/// Shows things on a page until one of a kind.
async fn until(source: &mut EventSource, page: &mut Page, kind: &str) {
    let looking = async { while page.see(source.next().await.unwrap()) != kind {} };
    let found = timeout(PATIENCE, looking).await;
    found.unwrap_or_else(|_| panic!("no {kind} came"));
}

/// Shows things on a page until so many inputs are answered.
async fn answered(source: &mut EventSource, page: &mut Page, inputs: usize) {
    while page.answered.len() < inputs {
        until(source, page, "stream_complete").await;
    }
}

/// Starts the next host, and asks `/readyz` meanwhile. Returns how often it said that it starts.
async fn start(folder: &Folder, port: u16) -> (Host, usize) {
    let http = agent_host_tests::process::http();
    let mut starting = 0;
    let watching = async {
        loop {
            let probe = http.get(format!("http://127.0.0.1:{port}/readyz"));
            if let Ok(answer) = probe.send().await
                && answer.status() == 503
            {
                starting += 1;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let host = tokio::select! {
        host = folder.start(None) => host.unwrap(),
        () = watching => unreachable!(),
    };
    (host, starting)
}

/// It is stopped and killed, between answers and in the middle of them.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_source_survives_restarts_and_kills_and_shows_each_word_once() {
    let (folder, port) = folder().await;
    let (mut host, _) = start(&folder, port).await;
    let exchange = ChatSession::open(&host).await;
    let url = format!("http://127.0.0.1:{port}{}", exchange.stream());
    let mut source = EventSource::new(url, Some(host.token.clone()));
    let mut page = Page::default();
    until(&mut source, &mut page, "connected").await;
    let mut asked = Vec::new();
    let mut starting = 0;
    // After a stop the host wants two seconds between attempts, so the kills come first.
    for (is_killed, in_the_middle) in [(true, false), (true, true), (false, false), (false, true)] {
        asked.push(exchange.ask(&host).await);
        if in_the_middle {
            until(&mut source, &mut page, "content_chunk").await;
        } else {
            answered(&mut source, &mut page, asked.len()).await;
        }
        if is_killed {
            host.kill().await;
        } else {
            assert!(host.stop().await.success(), "{}", folder.log());
        }
        let (next, times) = start(&folder, port).await;
        (host, starting) = (next, starting + times);
        until(&mut source, &mut page, "connected").await;
        answered(&mut source, &mut page, asked.len()).await;
    }
    asked.push(exchange.ask(&host).await);
    answered(&mut source, &mut page, asked.len()).await;
    assert!(starting > 0, "no host was ever seen starting");
    assert!(page.connections >= 5, "{} connections", page.connections);
    assert_eq!(
        page.answered, asked,
        "each input is answered once, in order"
    );
    assert_eq!(page.complete, vec![WORDS.to_owned(); asked.len()]);
    assert!(page.away <= 1, "{} replies were never shown", page.away);
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// One comes in the middle of an answer, and one loses its connection there and comes back.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_opened_in_the_middle_of_an_answer_shows_all_of_it() {
    let (folder, port) = folder().await;
    let (host, _) = start(&folder, port).await;
    let exchange = ChatSession::open(&host).await;
    let gateway = Gateway::start(port, host.token.clone()).await;
    let mut source = EventSource::new(gateway.url(&exchange.stream()), None);
    let mut page = Page::default();
    until(&mut source, &mut page, "connected").await;
    exchange.ask(&host).await;
    for _ in 0..3 {
        until(&mut source, &mut page, "content_chunk").await;
    }
    let url = format!("http://127.0.0.1:{port}{}", exchange.stream());
    let mut late = EventSource::new(url, Some(host.token.clone()));
    let mut late_page = Page::default();
    gateway.cut();
    until(&mut source, &mut page, "lost").await;
    until(&mut source, &mut page, "stream_complete").await;
    until(&mut late, &mut late_page, "stream_complete").await;
    for page in [page, late_page] {
        assert_eq!(page.complete, [WORDS], "so far came {} times", page.so_far);
        assert!(page.so_far > 0, "it came too late to see the middle");
    }
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// The page of another client: Node's own `EventSource`, which prints what it sees.
const NODE_PAGE: &str = r#"
const source = new EventSource(process.argv[1]);
const print = (line) => console.log(JSON.stringify(line));
// It does not keep the process alive while it waits to connect again.
setInterval(() => {}, 60000);
source.onopen = () => print({ kind: "open" });
source.onerror = () => print({ kind: source.readyState === 2 ? "failed" : "lost" });
for (const kind of ["connected", "content_chunk", "content_so_far", "content_discarded",
                    "content_complete", "message_complete", "stream_complete"]) {
  source.addEventListener(kind, (event) =>
    print({ kind, data: event.data, id: event.lastEventId }));
}
"#;

/// A process of Node that follows a stream.
struct Node {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Node {
    fn start(url: &str) -> Self {
        let mut command = tokio::process::Command::new("node");
        command
            .args([
                "--experimental-eventsource",
                "--input-type=module",
                "-e",
                NODE_PAGE,
                url,
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            _child: child,
            lines,
        }
    }

    /// Shows things on a page until one of a kind.
    async fn until(&mut self, page: &mut Page, kind: &str) {
        let looking = async {
            loop {
                let line = self.lines.next_line().await.unwrap().expect("a line");
                let line: Value = serde_json::from_str(&line).unwrap();
                let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
                let seen = match text("kind").as_str() {
                    "open" => StreamItem::Open,
                    "lost" => StreamItem::Lost,
                    "failed" => StreamItem::Failed("its state is CLOSED".to_owned()),
                    kind => StreamItem::Event {
                        kind: kind.to_owned(),
                        data: text("data"),
                        last_event_id: text("id"),
                    },
                };
                if page.see(seen) == kind {
                    return;
                }
            }
        };
        let found = timeout(PATIENCE, looking).await;
        found.unwrap_or_else(|_| panic!("no {kind} came"));
    }
}

/// Returns an error if there is no Node with an `EventSource`.
fn node() -> Result<(), String> {
    let asked = Command::new("node")
        .args([
            "--experimental-eventsource",
            "-e",
            "new EventSource('http://127.0.0.1:1').close()",
        ])
        .output();
    match asked {
        Ok(answer) if answer.status.success() => Ok(()),
        Ok(answer) => Err(format!(
            "its node has no EventSource: {}",
            String::from_utf8_lossy(&answer.stderr)
        )),
        Err(error) => Err(format!("it has no node: {error}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_event_source_of_node_survives_a_restart_and_a_kill() {
    if needed(node(), WITHOUT_NODE).is_none() {
        return;
    }
    let (folder, port) = folder().await;
    let (host, _) = start(&folder, port).await;
    let exchange = ChatSession::open(&host).await;
    // An `EventSource` sends no credential of its own, as behind every web application.
    let gateway = Gateway::start(port, host.token.clone()).await;
    let mut source = Node::start(&gateway.url(&exchange.stream()));
    let mut page = Page::default();
    source.until(&mut page, "connected").await;
    let mut asked = vec![exchange.ask(&host).await];
    source.until(&mut page, "stream_complete").await;
    assert!(host.stop().await.success(), "{}", folder.log());
    source.until(&mut page, "lost").await;
    let (host, _) = start(&folder, port).await;
    asked.push(exchange.ask(&host).await);
    source.until(&mut page, "stream_complete").await;
    asked.push(exchange.ask(&host).await);
    source.until(&mut page, "content_chunk").await;
    host.kill().await;
    let (host, _) = start(&folder, port).await;
    source.until(&mut page, "stream_complete").await;
    assert_eq!(page.answered, asked);
    assert_eq!(page.complete.len(), asked.len());
    assert!(host.stop().await.success(), "{}", folder.log());
}
