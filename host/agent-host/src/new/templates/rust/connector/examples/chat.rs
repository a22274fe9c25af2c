//! A chat service in a terminal, to try the connector with: what is typed here, `you` say, and what
//! is sent to you is shown. It keeps nothing.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// The address that `agent-host.toml` names; another one may be given on the command line.
const ADDRESS: &str = "127.0.0.1:7788";
/// The person who types.
const PERSON: &str = "you";
/// Bytes of a request's body.
const BODY_BYTES_MAX: usize = 1 << 20;

/// The messages of the service.
#[derive(Debug, Default)]
struct Chat {
    /// The messages that were typed.
    said: Vec<Value>,
    /// Ids of what was sent, by their keys.
    sent: HashMap<String, u64>,
    /// The last id. An id is a time, so that none comes again after a restart.
    last_id: u64,
}

/// A request, as far as it is read.
struct Request {
    /// Its method and its target, such as `GET /messages?after=7`.
    line: String,
    key: String,
    body: Vec<u8>,
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or(ADDRESS))?;
    println!("listening at {}; type what you say", listener.local_addr()?);
    let chat = Arc::new(Mutex::new(Chat::default()));
    let typed = Arc::clone(&chat);
    thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            locked(&typed).say(&line);
        }
    });
    for stream in listener.incoming() {
        let stream = stream?;
        let chat = Arc::clone(&chat);
        thread::spawn(move || {
            if let Err(error) = answer(stream, &chat) {
                eprintln!("a request failed: {error}");
            }
        });
    }
    Ok(())
}

impl Chat {
    /// Adds what a person typed.
    fn say(&mut self, text: &str) {
        if !text.trim().is_empty() {
            let id = self.next_id();
            let message = json!({ "id": id, "from": PERSON, "text": text, "sent_ms": id });
            self.said.push(message);
        }
    }

    /// Returns what was said after a message.
    fn after(&self, last: u64) -> Vec<&Value> {
        let is_new = |message: &&Value| message["id"].as_u64() > Some(last);
        self.said.iter().filter(is_new).collect()
    }

    /// Shows a message, once for each key, and returns its id.
    fn show(&mut self, key: String, message: &Value) -> u64 {
        if let Some(id) = self.sent.get(&key) {
            return *id;
        }
        println!(
            "to {}: {}",
            message["to"].as_str().unwrap_or("nobody"),
            message["text"].as_str().unwrap_or_default()
        );
        let id = self.next_id();
        self.sent.insert(key, id);
        id
    }

    fn next_id(&mut self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        self.last_id = now_ms.max(self.last_id + 1);
        self.last_id
    }
}

fn locked(chat: &Mutex<Chat>) -> MutexGuard<'_, Chat> {
    chat.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers the one request of a connection.
fn answer(mut stream: TcpStream, chat: &Mutex<Chat>) -> io::Result<()> {
    let found = reply(read(&stream)?, &mut locked(chat))?;
    let status = if found.is_some() { 200 } else { 404 };
    let answer = found.unwrap_or_default().to_string();
    write!(
        stream,
        "HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{answer}",
        answer.len()
    )
}

/// Returns the answer to a request; none to one that this service does not know.
fn reply(request: Request, chat: &mut Chat) -> io::Result<Option<Value>> {
    let Request { line, key, body } = request;
    if let Some(after) = line.strip_prefix("GET /messages?after=") {
        return Ok(Some(json!(chat.after(after.parse().unwrap_or(0)))));
    }
    if line == "POST /messages" {
        let message = serde_json::from_slice(&body).map_err(io::Error::other)?;
        return Ok(Some(json!({ "id": chat.show(key, &message) })));
    }
    Ok(None)
}

fn read(stream: &TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut key = String::new();
    let mut bytes = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => bytes = value.parse().map_err(io::Error::other)?,
            "idempotency-key" => key = value.to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; BODY_BYTES_MAX.min(bytes)];
    reader.read_exact(&mut body)?;
    let line = line.trim().trim_end_matches(" HTTP/1.1").to_owned();
    Ok(Request { line, key, body })
}
