//! The program behind an external agent: a server on loopback that keeps what it is sent. It goes
//! with the test's process.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Time in which a program hears of something.
const PATIENCE: Duration = Duration::from_secs(20);

/// The answer to a delivery.
#[derive(Debug, Clone, Copy)]
pub(super) enum Says {
    /// A status without a body.
    Status(u16),
    /// A status with the seconds after which to come again.
    Later(u16, u32),
    /// Nothing, while the other side waits.
    Nothing,
    /// A body of so many megabytes.
    Megabytes(usize),
}

/// A delivery as it was heard.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    pub(super) line: String,
    pub(super) head: String,
    /// The body as it came.
    pub(super) bytes: String,
    pub(super) body: Value,
}

impl Heard {
    /// A header; empty when it is not there.
    pub(super) fn header(&self, name: &str) -> String {
        let headers = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut values = headers.filter(|(own, _)| own.eq_ignore_ascii_case(name));
        values
            .next()
            .map(|(_, value)| value.to_owned())
            .unwrap_or_default()
    }
}

/// A program.
pub(super) struct Peer {
    port: u16,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Peer {
    /// One that gives this answer to its nth delivery, counted from 0.
    pub(super) fn new(says: impl Fn(usize) -> Says + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let peer = Self {
            port: listener.local_addr().unwrap().port(),
            heard: Arc::default(),
        };
        let heard = peer.heard.clone();
        let says = Arc::new(says);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let heard = heard.clone();
                let says = says.clone();
                thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let delivery = read(&mut stream);
                    let nth = {
                        let mut heard = heard.lock().unwrap();
                        heard.push(delivery);
                        heard.len() - 1
                    };
                    say(&mut stream, says(nth));
                });
            }
        });
        peer
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/in", self.port)
    }

    /// Number of deliveries so far.
    pub(super) fn count(&self) -> usize {
        self.heard.lock().unwrap().len()
    }

    /// Waits for so many deliveries, and returns all there are.
    pub(super) async fn heard(&self, count: usize) -> Vec<Heard> {
        let waiting = async {
            while self.count() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .unwrap_or_else(|_| panic!("{} of {count} deliveries came", self.count()));
        self.heard.lock().unwrap().clone()
    }
}

fn read(stream: &mut TcpStream) -> Heard {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let lower = head.to_ascii_lowercase();
    let mut lines = lower.lines();
    let length = lines
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    let bytes = String::from_utf8_lossy(&body).into_owned();
    Heard {
        line: head.lines().next().unwrap_or_default().to_owned(),
        head,
        body: serde_json::from_str(&bytes).unwrap_or_default(),
        bytes,
    }
}

fn say(stream: &mut TcpStream, says: Says) {
    match says {
        Says::Status(status) => {
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
            _ = stream.write_all(answer.as_bytes());
        }
        Says::Later(status, after_s) => {
            let head = format!("HTTP/1.1 {status} X\r\nretry-after: {after_s}\r\n");
            _ = stream.write_all(format!("{head}content-length: 0\r\n\r\n").as_bytes());
        }
        Says::Nothing => {
            _ = stream.set_read_timeout(Some(PATIENCE));
            _ = stream.read(&mut [0]);
        }
        Says::Megabytes(count) => {
            let length = count << 20;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            _ = stream.write_all(head.as_bytes());
            // The other side may hang up meanwhile.
            _ = stream.write_all(&vec![b'x'; length]);
        }
    }
}
