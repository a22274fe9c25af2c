//! An `EventSource` as the WHATWG's HTML standard defines it, as strict as a browser's.
//!
//! A lost connection, and the end of a stream, are followed by another attempt with
//! `Last-Event-ID`. Any status but 200, and any other media type, are the end for good: the
//! standard's "fail the connection".

use agent_host_tests::process::http;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// Milliseconds between two attempts, until the server says otherwise.
const RECONNECTION_MS: u64 = 20;

/// A thing that a page sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamItem {
    /// A connection was established.
    Open,
    /// An event was dispatched.
    Event {
        /// Its type.
        kind: String,
        /// Its data.
        data: String,
        /// The last event id of the source when it was dispatched.
        last_event_id: String,
    },
    /// The connection was lost; another attempt follows.
    Lost,
    /// The connection failed for good, with this reason.
    Failed(String),
}

/// See the module.
#[derive(Debug)]
pub(super) struct EventSource {
    seen: mpsc::UnboundedReceiver<StreamItem>,
    task: AbortHandle,
}

impl EventSource {
    /// Begins to follow a URL, with a credential if it needs one.
    #[expect(
        clippy::disallowed_methods,
        reason = "the task is aborted with its handle"
    )]
    pub(super) fn new(url: String, token: Option<String>) -> Self {
        let (sender, seen) = mpsc::unbounded_channel();
        let source = Source {
            url,
            token,
            sender,
            last_event_id: String::new(),
            reconnection_ms: RECONNECTION_MS,
        };
        let task = tokio::spawn(source.run()).abort_handle();
        Self { seen, task }
    }

    /// The next thing that a page sees; none when it has failed for good and all was seen.
    pub(super) async fn next(&mut self) -> Option<StreamItem> {
        self.seen.recv().await
    }
}

impl Drop for EventSource {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The state of a source.
struct Source {
    url: String,
    token: Option<String>,
    sender: mpsc::UnboundedSender<StreamItem>,
    last_event_id: String,
    reconnection_ms: u64,
}

impl Source {
    async fn run(mut self) {
        while let Err(reason) = self.connect().await {
            match reason {
                None => {
                    self.tell(StreamItem::Lost);
                    sleep(Duration::from_millis(self.reconnection_ms)).await;
                }
                Some(reason) => return self.tell(StreamItem::Failed(reason)),
            }
        }
    }

    fn tell(&self, seen: StreamItem) {
        // Nobody looks any more when the test is over.
        let _ = self.sender.send(seen);
    }

    /// Connects and reads to the end. The error has a reason when it is for good.
    async fn connect(&mut self) -> Result<(), Option<String>> {
        let mut request = http()
            .get(&self.url)
            .header("accept", "text/event-stream")
            .header("cache-control", "no-store");
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if !self.last_event_id.is_empty() {
            request = request.header("last-event-id", &self.last_event_id);
        }
        let mut response = request.send().await.map_err(|_| None)?;
        if response.status() != 200 {
            let status = response.status();
            let body = response.text().await.unwrap_or_default();
            return Err(Some(format!("{status}: {body}")));
        }
        let media_type = response.headers().get("content-type");
        let media_type = media_type.and_then(|it| it.to_str().ok()).unwrap_or("");
        if media_type.split(';').next().map(str::trim) != Some("text/event-stream") {
            return Err(Some(format!("the media type is `{media_type}`")));
        }
        self.tell(StreamItem::Open);
        let mut parser = Parser::new(&self.last_event_id);
        while let Ok(Some(chunk)) = response.chunk().await {
            for item in parser.push(&chunk) {
                match item {
                    Parsed::Retry(ms) => self.reconnection_ms = ms,
                    Parsed::Event {
                        kind,
                        data,
                        last_event_id,
                    } => {
                        self.last_event_id.clone_from(&last_event_id);
                        self.tell(StreamItem::Event {
                            kind,
                            data,
                            last_event_id,
                        });
                    }
                    Parsed::Id(last_event_id) => self.last_event_id = last_event_id,
                }
            }
        }
        Err(None)
    }
}

/// A thing that the stream says.
#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    Event {
        kind: String,
        data: String,
        last_event_id: String,
    },
    /// An event without data, which is not dispatched and has set the last id all the same.
    Id(String),
    Retry(u64),
}

/// The standard's parser of event streams.
struct Parser {
    bytes: Vec<u8>,
    at_start: bool,
    after_return: bool,
    data: String,
    kind: String,
    last_event_id: String,
}

impl Parser {
    fn new(last_event_id: &str) -> Self {
        Self {
            bytes: Vec::new(),
            at_start: true,
            after_return: false,
            data: String::new(),
            kind: String::new(),
            last_event_id: last_event_id.to_owned(),
        }
    }

    /// Takes bytes. Lines end with CR LF, LF or CR.
    fn push(&mut self, bytes: &[u8]) -> Vec<Parsed> {
        let mut parsed = Vec::new();
        for byte in bytes {
            let follows_return = std::mem::take(&mut self.after_return);
            match byte {
                b'\n' if follows_return => {}
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    let line = std::mem::take(&mut self.bytes);
                    let line = String::from_utf8_lossy(&line).into_owned();
                    let is_first = std::mem::take(&mut self.at_start);
                    let line = match line.strip_prefix('\u{feff}') {
                        Some(rest) if is_first => rest.to_owned(),
                        _ => line,
                    };
                    parsed.extend(self.line(&line));
                }
                byte => self.bytes.push(*byte),
            }
        }
        parsed
    }

    fn line(&mut self, line: &str) -> Option<Parsed> {
        if line.is_empty() {
            return Some(self.dispatch());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.kind),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            "id" if !value.contains('\0') => value.clone_into(&mut self.last_event_id),
            "retry" if !value.is_empty() && value.bytes().all(|it| it.is_ascii_digit()) => {
                return value.parse().ok().map(Parsed::Retry);
            }
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Parsed {
        let data = std::mem::take(&mut self.data);
        let kind = std::mem::take(&mut self.kind);
        let last_event_id = self.last_event_id.clone();
        if data.is_empty() {
            return Parsed::Id(last_event_id);
        }
        Parsed::Event {
            kind: if kind.is_empty() {
                "message".to_owned()
            } else {
                kind
            },
            data: data.strip_suffix('\n').unwrap_or(&data).to_owned(),
            last_event_id,
        }
    }
}

/// The examples of the standard.
#[test]
fn streams_are_read_as_the_standard_says() {
    let event = |kind: &str, data: &str, id: &str| Parsed::Event {
        kind: kind.to_owned(),
        data: data.to_owned(),
        last_event_id: id.to_owned(),
    };
    let read = |text: &str| Parser::new("").push(text.as_bytes());
    assert_eq!(
        read("data: YHOO\ndata: +2\ndata: 10\n\n"),
        [event("message", "YHOO\n+2\n10", "")]
    );
    assert_eq!(
        read("\u{feff}: test\r\n\r\ndata: first\r\nid: 1\r\n\r\ndata:second\rid\r\r"),
        [
            Parsed::Id(String::new()),
            event("message", "first", "1"),
            event("message", "second", ""),
        ]
    );
    assert_eq!(
        read("event: add\ndata\n\ndata\ndata\n\nretry: 10\nretry: x\ndata:"),
        [
            event("add", "", ""),
            event("message", "\n", ""),
            Parsed::Retry(10)
        ]
    );
}
