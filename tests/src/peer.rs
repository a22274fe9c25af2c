//! A server on loopback in the place of a service, of a program or of a model's provider: it
//! answers by a rule, keeps what it was asked, and can be down. It goes with the test's process.

use crate::process::PATIENCE;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two polls at whether somebody connects.
const POLL: Duration = Duration::from_millis(2);
/// Time for which a connection without an answer stays open at most.
const OPEN_MAX: Duration = Duration::from_secs(60);

/// A request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// Its method.
    pub method: String,
    /// Its path with the query.
    pub path: String,
    /// Its headers, a line each, with their names in lower case.
    pub head: String,
    /// Its body as text.
    pub text: String,
    /// Its body; null when it is not JSON.
    pub body: Value,
    /// The time at which it came.
    pub at: Instant,
}

impl ReceivedRequest {
    /// A header; empty when it is not there.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers
            .find(|(own, _)| *own == name)
            .map_or("", |(_, value)| value)
    }
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub enum Says {
    /// A status without a body.
    Status(u16),
    /// A status and a document.
    Json(u16, Value),
    /// A status, a media type, and a body of that.
    Body(u16, &'static str, Vec<u8>),
    /// These bytes, head and all. Then the connection is closed.
    Raw(Vec<u8>),
    /// These bytes, and no more while the other side waits.
    Open(Vec<u8>),
    /// The connection is closed without an answer.
    Cut,
}

/// A server.
#[derive(Debug)]
pub struct Peer {
    /// Its port.
    pub port: u16,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    is_down: Arc<AtomicBool>,
}

impl Peer {
    /// One that answers its nth request, counted from 0, by this rule.
    ///
    /// # Panics
    /// There is no port.
    #[must_use]
    pub fn new(says: impl Fn(&ReceivedRequest, usize) -> Says + Send + Sync + 'static) -> Self {
        let listener = listening(0);
        let port = listener.local_addr().expect("an address").port();
        let peer = Self {
            port,
            asked: Arc::default(),
            is_down: Arc::default(),
        };
        let asked = Arc::clone(&peer.asked);
        let is_down = Arc::clone(&peer.is_down);
        let says = Arc::new(says);
        thread::spawn(move || {
            let mut listener = Some(listener);
            loop {
                if is_down.load(Ordering::SeqCst) {
                    listener = None;
                    thread::sleep(POLL);
                    continue;
                }
                let open = listener.get_or_insert_with(|| listening(port));
                let Ok((stream, _)) = open.accept() else {
                    thread::sleep(POLL);
                    continue;
                };
                let asked = Arc::clone(&asked);
                let is_down = Arc::clone(&is_down);
                let says = Arc::clone(&says);
                thread::spawn(move || {
                    serve(stream, |request| {
                        let nth = {
                            let mut asked = lock(&asked);
                            asked.push(request.clone());
                            asked.len() - 1
                        };
                        let answer = says(request, nth);
                        // It may have gone down meanwhile.
                        if is_down.load(Ordering::SeqCst) {
                            return Says::Cut;
                        }
                        answer
                    })
                });
            }
        });
        peer
    }

    /// A URL at it.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// All requests so far.
    #[must_use]
    pub fn asked(&self) -> Vec<ReceivedRequest> {
        lock(&self.asked).clone()
    }

    /// The number of requests so far.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.asked).len()
    }

    /// Takes the requests so far away.
    #[must_use]
    pub fn take(&self) -> Vec<ReceivedRequest> {
        std::mem::take(&mut *lock(&self.asked))
    }

    /// The bodies of the requests for a model so far.
    #[must_use]
    pub fn prompts(&self, model: &str) -> Vec<Value> {
        let asked = lock(&self.asked);
        let bodies = asked.iter().map(|asked| &asked.body);
        bodies
            .filter(|body| body["model"] == model)
            .cloned()
            .collect()
    }

    /// Waits for so many requests, and returns all there are.
    ///
    /// # Panics
    /// They do not come in time.
    pub async fn heard(&self, count: usize) -> Vec<ReceivedRequest> {
        let waiting = async {
            while self.count() < count {
                tokio::time::sleep(POLL).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("{} of {count} requests came", self.count()));
        self.asked()
    }

    /// Goes down: nobody can connect any more when this returns.
    pub fn go_down(&self) {
        self.is_down.store(true, Ordering::SeqCst);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        while TcpStream::connect(address).is_ok() {
            thread::sleep(POLL);
        }
    }

    /// Comes up again.
    pub fn come_up(&self) {
        self.is_down.store(false, Ordering::SeqCst);
    }
}

fn lock(asked: &Mutex<Vec<ReceivedRequest>>) -> MutexGuard<'_, Vec<ReceivedRequest>> {
    asked.lock().expect("no panic")
}

fn listening(port: u16) -> TcpListener {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a port");
    listener
        .set_nonblocking(true)
        .expect("a socket that does not block");
    listener
}

fn serve(mut stream: TcpStream, answer: impl Fn(&ReceivedRequest) -> Says) {
    stream.set_nonblocking(false).expect("a socket that blocks");
    let Some(request) = read(&mut stream) else {
        return;
    };
    let (status, kind, body) = match answer(&request) {
        Says::Status(status) => (status, "", Vec::new()),
        Says::Json(status, body) => (status, "application/json", body.to_string().into_bytes()),
        Says::Body(status, kind, body) => (status, kind, body),
        Says::Raw(bytes) => {
            // Whoever has read enough hangs up, and hosts are killed here.
            _ = stream.write_all(&bytes);
            return;
        }
        Says::Open(bytes) => {
            _ = stream.write_all(&bytes);
            _ = stream.set_read_timeout(Some(OPEN_MAX));
            // It ends when the other side hangs up.
            _ = stream.read(&mut [0]);
            return;
        }
        Says::Cut => return,
    };
    let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
    if !kind.is_empty() {
        _ = write!(head, "content-type: {kind}\r\n");
    }
    head += "connection: close\r\n\r\n";
    _ = stream.write_all(&[head.as_bytes(), &body].concat());
}

/// Reads a request; none if the other side hung up.
fn read(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    let whole = String::from_utf8_lossy(&head);
    let mut lines = whole.lines();
    let mut first = lines.next()?.split(' ').map(str::to_owned);
    let mut asked = ReceivedRequest {
        method: first.next()?,
        path: first.next()?,
        head: String::new(),
        text: String::new(),
        body: Value::Null,
        at: Instant::now(),
    };
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        _ = writeln!(asked.head, "{}: {value}", name.to_ascii_lowercase());
    }
    let mut body = vec![0; asked.header("content-length").parse().unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    asked.text = String::from_utf8_lossy(&body).into_owned();
    asked.body = serde_json::from_slice(&body).unwrap_or_default();
    Some(asked)
}
