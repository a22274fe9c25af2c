//! A client of a running host, as the commands need one.
//!
//! Before each request, the host proves that it runs on the data folder: whoever else listens at
//! its address, while it does not run, is sent no credential.

use crate::answer::{list, number};
use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use crate::serve::ADDRESS_FILE;
use crate::{invocation, terminal, token};
use anyhow::anyhow;
use bytes::Bytes;
use domain::error_code::ErrorCode;
use domain::proof::proof;
use futures::{Stream, StreamExt};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use sse_stream::{Sse, SseByteStream};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Seconds until a host must have taken the connection.
const CONNECT_S: u64 = 5;
/// Seconds without a byte, heartbeats included, after which an event stream counts as dead.
const SILENCE_S: u64 = 60;
/// Entries on a page of a log.
const LOG_PAGE: u64 = 500;
/// Bytes of the answer in which a host proves itself.
const PROOF_BYTES_MAX: usize = 4_096;
/// Milliseconds between two polls for new entries of a log.
const POLL_MS: u64 = 300;

/// A refusal by the host.
#[derive(Debug, thiserror::Error)]
#[error("{title}: {detail}{}", field.as_ref().map(|field| format!(" (at `{field}`)")).unwrap_or_default())]
pub(crate) struct Refused {
    /// The code; none of a host that has codes which this program does not know.
    pub(crate) code: Option<ErrorCode>,
    title: String,
    detail: String,
    /// The part of the request that is at fault.
    pub(crate) field: Option<String>,
}

/// Returns the code of a refusal by the host; none of any other failure.
pub(crate) fn code_of(failure: &Failure) -> Option<ErrorCode> {
    failure.error.downcast_ref::<Refused>()?.code
}

/// A client of a running host. Its token is never printed.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
    start: String,
    /// None where the command line trusts the address.
    expected: Option<Expected>,
}

/// The host that must prove itself.
#[derive(Clone)]
struct Expected {
    key: String,
    /// The address at which it listens, as it says itself.
    listens: String,
    data: PathBuf,
}

/// A log of the host, of which entries are read page by page.
pub(crate) struct Log<'a> {
    pub(crate) path: &'a str,
    /// Further parameters, each with its `&`.
    pub(crate) filter: &'a str,
    /// The JSON pointer to a page's entries.
    pub(crate) pointer: &'a str,
    /// The position after which it is read.
    pub(crate) after: u64,
    /// True to go on as entries are added.
    pub(crate) follow: bool,
}

/// The frames of an event stream.
pub(crate) type Frames = Pin<Box<dyn Stream<Item = Result<Sse, Failure>> + Send>>;

impl Client {
    /// A client of the host that the configuration describes. Connects to nothing yet.
    pub(crate) fn new(loaded: &Loaded) -> Result<Self, Failure> {
        let start = invocation::command(loaded, "serve");
        let token = match token::of_environment()? {
            Some(token) => token,
            None => of_file(loaded, &start)?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        // Nobody is trusted: the API of a host on this machine speaks plain HTTP.
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(CONNECT_S))
            .read_timeout(Duration::from_secs(SILENCE_S))
            .build()?;
        let expected = if loaded.trusts_address {
            None
        } else {
            Some(expected(loaded)?)
        };
        Ok(Self {
            http,
            base: format!("http://{}", address(loaded)),
            token,
            start,
            expected,
        })
    }

    /// Reads something.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.answer(self.request(Method::GET, path)).await
    }

    /// Returns a session without its messages.
    pub(crate) async fn session(&self, id: &str) -> Result<Value, Failure> {
        let path = format!("/api/sessions/{}?from=1&to=0", segment(id));
        self.get(&path).await
    }

    /// Reads a list of several pages. The path has parameters already, to which the page's is
    /// added.
    pub(crate) async fn get_all(&self, path: &str, pointer: &str) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.get(&format!("{path}{after}")).await?;
            all.extend_from_slice(list(&page, pointer));
            after = match page.get("next_after") {
                Some(Value::String(next)) if !next.is_empty() => {
                    format!("&after={}", segment(next))
                }
                Some(Value::Number(next)) => format!("&after={next}"),
                _ => return Ok(all),
            };
        }
    }

    /// Reads all definitions, and those that are left out, as one page would have them.
    pub(crate) async fn definitions(&self) -> Result<Value, Failure> {
        let first = self.get("/api/definitions?limit=1").await?;
        let all = self.get_all("/api/definitions?limit=500", "/definitions");
        Ok(json!({ "definitions": all.await?, "left_out": list(&first, "/left_out") }))
    }

    /// Shows the entries of a log that grows.
    pub(crate) async fn read_log(
        &self,
        log: Log<'_>,
        mut show: impl FnMut(&Value),
    ) -> Result<(), Failure> {
        let Log {
            path,
            filter,
            pointer,
            mut after,
            follow,
        } = log;
        loop {
            let page = self
                .get(&format!("{path}?after={after}&limit={LOG_PAGE}{filter}"))
                .await?;
            list(&page, pointer).iter().for_each(&mut show);
            terminal::written()?;
            after = number(&page, "/next_after").max(after);
            if after < number(&page, "/last_position") {
                continue;
            }
            if !follow {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
        }
    }

    /// Sends something.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.answer(self.request(Method::POST, path).json(body))
            .await
    }

    /// Sends a PUT request without a body.
    pub(crate) async fn put(&self, path: &str) -> Result<Value, Failure> {
        self.answer(self.request(Method::PUT, path)).await
    }

    /// Changes something.
    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.answer(self.request(Method::PATCH, path).json(body))
            .await
    }

    /// Deletes something.
    pub(crate) async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.answer(self.request(Method::DELETE, path)).await
    }

    /// Reads something that is no JSON document, as it is.
    pub(crate) async fn get_bytes(&self, path: &str) -> Result<Bytes, Failure> {
        Ok(self
            .send(self.request(Method::GET, path))
            .await?
            .bytes()
            .await?)
    }

    /// Sends a file as it is.
    pub(crate) async fn post_bytes(&self, path: &str, bytes: Vec<u8>) -> Result<Value, Failure> {
        self.answer(
            self.request(Method::POST, path)
                .header("content-type", "application/jsonl")
                .body(bytes),
        )
        .await
    }

    /// Follows an event stream.
    pub(crate) async fn follow(&self, path: &str) -> Result<Frames, Failure> {
        let response = self.send(self.request(Method::GET, path)).await?;
        let frames = SseByteStream::<_>::new(Box::pin(response.bytes_stream())
            as Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>);
        Ok(Box::pin(frames.map(|frame| {
            frame.map_err(|error| Failure::from(anyhow!("the event stream broke: {error}")))
        })))
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(&self.token)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        self.check_host().await?;
        let sent = request.send().await;
        let response = sent.map_err(|error| self.unanswered(error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let problem: Value = response.json().await.unwrap_or_default();
        let text = |name: &str| Some(problem.get(name)?.as_str()?.to_owned());
        let refused = Refused {
            code: text("code").and_then(|code| ErrorCode::from_word(&code)),
            title: text("title").unwrap_or_else(|| status.to_string()),
            detail: text("detail").unwrap_or_default(),
            field: text("field"),
        };
        let exit = if status.is_client_error() {
            Exit::Refused
        } else {
            Exit::Failed
        };
        Err(Failure::new(exit, refused))
    }

    /// Has the host prove that it runs on the data folder.
    async fn check_host(&self) -> Result<(), Failure> {
        let Some(expected) = &self.expected else {
            return Ok(());
        };
        let challenge = token::random()?;
        let asked = format!("{}/proof?challenge={challenge}", self.base);
        let answer = self.http.get(asked).send().await;
        let mut answer = answer.map_err(|error| self.unanswered(error))?;
        let mut body = Vec::new();
        // Whoever it is may say anything, and for ever.
        while let Ok(Some(part)) = answer.chunk().await {
            body.extend_from_slice(&part);
            if body.len() > PROOF_BYTES_MAX {
                break;
            }
        }
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        let proof = proof(&expected.key, &expected.listens, &challenge);
        if said.get("proof") == Some(&Value::String(proof)) {
            return Ok(());
        }
        let reason = format!(
            "whoever listens there did not prove to run on `{}`",
            expected.data.display()
        );
        Err(unproved(&self.base, &reason))
    }

    fn unanswered(&self, error: reqwest::Error) -> Failure {
        if error.is_connect() {
            let error = not_running(&self.base);
            return Failure::new(Exit::Unreachable, error).advise(self.start.clone());
        }
        Failure::from(error)
    }

    /// Returns the document of an answer; nothing of one without a document.
    async fn answer(&self, request: RequestBuilder) -> Result<Value, Failure> {
        let response = self.send(request).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        Ok(response.json().await?)
    }
}

/// Returns the host that must prove itself.
///
/// # Errors
/// The key in the data folder cannot be read.
fn expected(loaded: &Loaded) -> Result<Expected, Failure> {
    let key = token::read(&loaded.proof_file());
    let key = key.map_err(|failure| {
        let reason = format!("{:#}", failure.error);
        unproved(&format!("http://{}", address(loaded)), &reason)
    })?;
    Ok(Expected {
        key,
        listens: listens(loaded).to_string(),
        data: loaded.data_dir(),
    })
}

fn unproved(base: &str, reason: &str) -> Failure {
    let error = anyhow!("the host at {base} could not be proved, and was sent nothing: {reason}");
    Failure::new(Exit::Unreachable, error)
        .advise("start the host; or, if nobody else can listen at its address, say --trust-address")
}

/// The host's own token.
fn of_file(loaded: &Loaded, start: &str) -> Result<String, Failure> {
    let file = loaded.token_file();
    if !file.exists() {
        let error = anyhow!(
            "there is no token at `{}`: the host has never been started",
            file.display()
        );
        return Err(Failure::new(Exit::Unreachable, error).advise(start));
    }
    token::read(&file)
}

/// Returns the address at which a client reaches the host.
pub(crate) fn address(loaded: &Loaded) -> SocketAddr {
    let mut address = listens(loaded);
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    address
}

/// Returns the address at which the host listens. The host that runs on this data folder records
/// its own, which its command line may have set; otherwise it is the configured one.
fn listens(loaded: &Loaded) -> SocketAddr {
    let configured = loaded.config.server.listen;
    let said = || {
        std::fs::read_to_string(loaded.data_dir().join(ADDRESS_FILE))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    said().unwrap_or(configured)
}

/// Parameters of a query that follow on others; one without a value is left out.
pub(crate) fn parameters<'a>(named: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let parameter =
        |(name, value): (&str, Option<String>)| Some(format!("&{name}={}", segment(&value?)));
    named.into_iter().filter_map(parameter).collect()
}

/// A path with these parameters alone.
pub(crate) fn query<'a>(
    path: &str,
    named: impl IntoIterator<Item = (&'a str, Option<String>)>,
) -> String {
    match parameters(named).strip_prefix('&') {
        Some(parameters) => format!("{path}?{parameters}"),
        None => path.to_owned(),
    }
}

/// A segment of a path, with everything escaped that is not plain.
pub(crate) fn segment(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// Returns the error of a client that finds no host. With port 0, a host chooses one at its start,
/// and only a running host is known by it.
fn not_running(base: &str) -> anyhow::Error {
    if base.ends_with(":0") {
        anyhow!("no host is running with this configuration")
    } else {
        anyhow!("no host is running at {base}")
    }
}

#[cfg(test)]
mod tests {
    use super::not_running;

    #[test]
    fn a_port_that_no_host_has_chosen_yet_is_not_told() {
        let reported = |base: &str| not_running(base).to_string();
        assert!(!reported("http://127.0.0.1:0").contains("127.0.0.1"));
        assert!(reported("http://127.0.0.1:70").ends_with("http://127.0.0.1:70"));
    }
}
