//! A server on loopback in a service's place: it answers as a test wants, keeps what it was asked,
//! and can be down. It goes with the test's process.

use agent_host_tests::process::PATIENCE;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks at whether somebody connects.
const LOOK: Duration = Duration::from_millis(2);

/// One request.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Its path.
    pub(super) path: String,
    /// Its head, with names of headers in lower case.
    pub(super) head: String,
    /// Its body; null if that is no JSON.
    pub(super) body: Value,
    /// The time at which it came.
    pub(super) at: Instant,
}

/// The answer to one.
pub(super) enum Answer {
    /// A status and a document.
    Json(u16, Value),
    /// A file.
    File(Vec<u8>),
    /// The connection is closed without one.
    Cut,
    /// None comes, however long the other side waits.
    Silence,
}

/// A server.
#[derive(Debug)]
pub(super) struct Server {
    /// Its port.
    pub(super) port: u16,
    is_down: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// One that gives these answers.
    pub(super) fn new(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = listening(0);
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            is_down: Arc::default(),
            asked: Arc::default(),
        };
        let port = server.port;
        let is_down = Arc::clone(&server.is_down);
        let asked = Arc::clone(&server.asked);
        let answer = Arc::new(answer);
        thread::spawn(move || {
            let mut listener = Some(listener);
            loop {
                if is_down.load(Ordering::SeqCst) {
                    listener = None;
                    thread::sleep(LOOK);
                    continue;
                }
                let Ok((stream, _)) = listener.get_or_insert_with(|| listening(port)).accept()
                else {
                    thread::sleep(LOOK);
                    continue;
                };
                let asked = Arc::clone(&asked);
                let is_down = Arc::clone(&is_down);
                let answer = Arc::clone(&answer);
                thread::spawn(move || {
                    let answer = |request: &Asked| {
                        asked.lock().unwrap().push(request.clone());
                        let answer = answer(request);
                        // It may have gone down meanwhile.
                        match is_down.load(Ordering::SeqCst) {
                            true => Answer::Cut,
                            false => answer,
                        }
                    };
                    serve(stream, answer);
                });
            }
        });
        server
    }

    /// Returns its address as a component's configuration has it.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns all that it was asked so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Goes down: nobody can connect any more when this returns.
    pub(super) fn go_down(&self) {
        self.is_down.store(true, Ordering::SeqCst);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        while TcpStream::connect(address).is_ok() {
            thread::sleep(LOOK);
        }
    }

    /// Comes up again.
    pub(super) fn come_up(&self) {
        self.is_down.store(false, Ordering::SeqCst);
    }
}

fn listening(port: u16) -> TcpListener {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

fn serve(mut stream: TcpStream, answer: impl Fn(&Asked) -> Answer) {
    stream.set_nonblocking(false).unwrap();
    let Some(request) = read(&mut stream) else {
        return;
    };
    let (status, content_type, body) = match answer(&request) {
        Answer::Json(status, body) => (status, "application/json", body.to_string().into_bytes()),
        Answer::File(bytes) => (200, "application/octet-stream", bytes),
        Answer::Cut => return,
        Answer::Silence => {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            // It ends when the other side hangs up.
            _ = stream.read(&mut [0]);
            return;
        }
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    // The other side may be gone: hosts are killed here.
    _ = stream.write_all(&[head.as_bytes(), &body].concat());
}

/// Reads a request; none if the other side hung up.
fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let whole = String::from_utf8_lossy(&head);
    let mut lines = whole.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let head: Vec<String> = lines
        .filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            Some(format!("{}: {value}", name.to_ascii_lowercase()))
        })
        .collect();
    let length = head
        .iter()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Asked {
        path,
        head: head.join("\n"),
        body: serde_json::from_slice(&body).unwrap_or_default(),
        at: Instant::now(),
    })
}
