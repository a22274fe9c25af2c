//! A small web on loopback, so that agents can search and read without a network: the pages of a
//! folder, and a search in them that answers as SearXNG does.
//!
//! `GET /<name>` is the page `<name>.html` of the folder, and `GET /search?q=…&format=json` lists
//! the pages that have a word of the query, those with most of its words first. It is for the demo
//! and for tests: it speaks plain HTTP/1.1, closes each connection after one answer, and limits
//! what it reads.

mod search;

use serde_json::json;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Bytes of the head of a request.
const HEAD_BYTES_MAX: u64 = 16 << 10;
/// Bytes of a page.
const PAGE_BYTES_MAX: u64 = 1 << 20;
/// Pages of a folder.
const PAGES_MAX: usize = 1_000;
/// Connections at the same time. One more is closed unanswered.
const CONNECTIONS_MAX: usize = 64;
/// Time limit of one read or write.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause after a connection that could not be taken.
const REST: Duration = Duration::from_millis(50);

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The name: its path without the slash.
    pub name: String,
    /// The title, as its `<title>` says.
    pub title: String,
    /// The HTML.
    pub html: String,
}

/// The pages.
#[derive(Debug, Clone, Default)]
pub struct Site {
    pages: Vec<Page>,
}

/// An answer before it is written.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Site {
    /// Reads the `.html` files of a folder, 1,000 at most, each of 1 MiB at most.
    ///
    /// # Errors
    /// The folder or one of the files cannot be read.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut pages = Vec::new();
        for entry in std::fs::read_dir(folder)?.take(PAGES_MAX) {
            let path = entry?.path();
            let name = path.file_stem().and_then(|name| name.to_str());
            let Some(name) = name.filter(|_| path.extension().is_some_and(|end| end == "html"))
            else {
                continue;
            };
            let mut html = String::new();
            std::fs::File::open(&path)?
                .take(PAGE_BYTES_MAX)
                .read_to_string(&mut html)?;
            pages.push(Page {
                name: name.to_owned(),
                title: search::title(&html).unwrap_or_else(|| name.to_owned()),
                html,
            });
        }
        pages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { pages })
    }

    /// Serves the pages to whoever connects, each in a thread, for as long as the process lives.
    pub fn serve(self, listener: &TcpListener) {
        let site = Arc::new(self);
        let open = Arc::new(AtomicUsize::new(0));
        let base = listener
            .local_addr()
            .map(|address| format!("http://{address}"))
            .unwrap_or_default();
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                thread::sleep(REST);
                continue;
            };
            if open.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MAX {
                open.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let site = Arc::clone(&site);
            let counted = Arc::clone(&open);
            let base = base.clone();
            thread::spawn(move || {
                // Whoever hangs up early has what it wanted.
                let _ = site.exchange(&stream, &base);
                counted.fetch_sub(1, Ordering::SeqCst);
            });
        }
    }

    fn exchange(&self, mut stream: &TcpStream, base: &str) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut head = BufReader::new(stream).take(HEAD_BYTES_MAX);
        let mut first = String::new();
        head.read_line(&mut first)?;
        // The rest of the head, so that nothing of the request is left unread.
        let mut line = String::new();
        while head.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
            line.clear();
        }
        let answer = self.answer(first.trim_end(), base);
        write!(
            stream,
            "HTTP/1.1 {}\r\ncontent-type: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            answer.status,
            answer.kind,
            answer.body.len()
        )?;
        if !first.starts_with("HEAD ") {
            stream.write_all(answer.body.as_bytes())?;
        }
        stream.flush()
    }

    /// Returns the answer to the first line of a request.
    fn answer(&self, first: &str, base: &str) -> Answer {
        let mut words = first.split(' ');
        let method = words.next().unwrap_or_default();
        let target = words.next().unwrap_or_default();
        if !matches!(method, "GET" | "HEAD") {
            return text("405 Method Not Allowed", "This site only answers GET.");
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path == "/search" {
            return self.search(query, base);
        }
        let page = self
            .pages
            .iter()
            .find(|page| path.strip_prefix('/') == Some(page.name.as_str()));
        match page {
            Some(page) => Answer {
                status: "200 OK",
                kind: "text/html; charset=utf-8",
                body: page.html.clone(),
            },
            None => text("404 Not Found", "There is no such page."),
        }
    }

    fn search(&self, query: &str, base: &str) -> Answer {
        let words = search::parameter(query, "q").unwrap_or_default();
        if search::parameter(query, "format").as_deref() != Some("json") {
            return text(
                "403 Forbidden",
                "This search only speaks JSON: format=json.",
            );
        }
        let results: Vec<_> = search::ranked(&self.pages, &words)
            .into_iter()
            .map(|found| {
                json!({
                    "title": found.page.title,
                    "url": format!("{base}/{}", found.page.name),
                    "content": found.snippet,
                })
            })
            .collect();
        Answer {
            status: "200 OK",
            kind: "application/json",
            body: json!({ "query": words, "results": results }).to_string(),
        }
    }
}

fn text(status: &'static str, body: &str) -> Answer {
    Answer {
        status,
        kind: "text/plain; charset=utf-8",
        body: body.to_owned(),
    }
}

#[cfg(test)]
mod tests;
