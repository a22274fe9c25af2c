//! A server that does what a test says: one act for each request, the last one again and again.

use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// The end of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// It ends as it should.
    Clean,
    /// The connection is cut.
    Cut,
    /// Nothing comes any more.
    Stall,
}

/// The server's treatment of a request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// It is answered in one piece: status, headers, body.
    Answer(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// It is answered with an event stream in these portions.
    Stream(Vec<Vec<u8>>, End),
    /// It is answered with these bytes, so many at a time: status, content type, body, portion.
    Bytes(u16, Option<String>, Vec<u8>, usize),
    /// It is not answered at all.
    Hang,
    /// The connection is closed without an answer.
    Close,
    /// A line without an end.
    Flood,
    /// The act is performed after this pause.
    Slow(Duration, Box<Self>),
}

impl Act {
    /// JSON with a status.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::Answer(
            status,
            vec![("content-type", "application/json".to_owned())],
            body.to_string().into_bytes(),
        )
    }

    /// A stream of events, each in a portion of its own.
    pub(crate) fn events<'a>(events: impl IntoIterator<Item = &'a str>, end: End) -> Self {
        Self::Stream(
            events
                .into_iter()
                .map(|event| format!("data: {event}\n\n").into_bytes())
                .collect(),
            end,
        )
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    #[expect(
        clippy::disallowed_methods,
        reason = "the tasks end with the test's runtime"
    )]
    pub(crate) async fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(stream, acts.clone(), Arc::clone(&seen)));
            }
        });
        Self { url, requests }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

async fn connection(mut stream: TcpStream, acts: Vec<Act>, seen: Arc<Mutex<Vec<Request>>>) {
    let Some(request) = read(&mut stream).await else {
        return;
    };
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push(request);
        seen.len() - 1
    };
    let act = acts.get(number).or(acts.last()).unwrap().clone();
    perform(&mut stream, act).await;
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length: ")?
                .parse::<usize>()
                .ok()
        });
        if body.len() >= length.unwrap_or(0) {
            return Some(Request {
                head: head.to_owned(),
                body: serde_json::from_str(body).unwrap_or_default(),
            });
        }
    }
}

async fn perform(stream: &mut TcpStream, act: Act) {
    match act {
        Act::Answer(status, headers, body) => {
            let mut head = format!(
                "HTTP/1.1 {status} Whatever\r\nconnection: close\r\ncontent-length: {}\r\n",
                body.len()
            );
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            let _ = stream.write_all(format!("{head}\r\n").as_bytes()).await;
            let _ = stream.write_all(&body).await;
        }
        Act::Stream(portions, end) => {
            start_stream(stream).await;
            for portion in portions {
                chunk(stream, &portion).await;
            }
            match end {
                End::Clean => drop(stream.write_all(b"0\r\n\r\n").await),
                End::Cut => {}
                End::Stall => sleep(Duration::from_secs(60)).await,
            }
        }
        Act::Bytes(status, content_type, body, portion) => {
            let kind = content_type.map(|kind| format!("content-type: {kind}\r\n"));
            let head = format!(
                "HTTP/1.1 {status} Whatever\r\n{}connection: close\r\ntransfer-encoding: \
                 chunked\r\n\r\n",
                kind.unwrap_or_default()
            );
            let _ = stream.write_all(head.as_bytes()).await;
            for part in body.chunks(portion) {
                chunk(stream, part).await;
            }
            let _ = stream.write_all(b"0\r\n\r\n").await;
        }
        Act::Hang => sleep(Duration::from_secs(60)).await,
        Act::Close => {}
        Act::Flood => {
            start_stream(stream).await;
            chunk(stream, b"data: ").await;
            let part = vec![b'x'; 1 << 20];
            for _ in 0..100 {
                if !chunk(stream, &part).await {
                    break;
                }
            }
        }
        Act::Slow(pause, act) => {
            sleep(pause).await;
            Box::pin(perform(stream, *act)).await;
        }
    }
}

async fn start_stream(stream: &mut TcpStream) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: \
                close\r\ntransfer-encoding: chunked\r\n\r\n";
    let _ = stream.write_all(head.as_bytes()).await;
}

async fn chunk(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    let head = format!("{:x}\r\n", bytes.len());
    let whole = [head.as_bytes(), bytes, b"\r\n"].concat();
    stream.write_all(&whole).await.is_ok() && stream.flush().await.is_ok()
}
