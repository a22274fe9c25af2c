//! One exchange with a provider on the network: a request out, a bounded reply in, every wait with
//! a limit.

use crate::config::Timeouts;
use crate::delta::Feed;
use crate::failure::{Failure, Reason, Refusal};
use crate::key::ApiKey;
use crate::outgoing;
use crate::peer::Peer;
use crate::provider::{Answer, Ask, Dialect};
use crate::retry::{AttemptError, Mode, Stage, given_ms, retry_after_ms};
use crate::sse::{Decoder, Malformed};
use crate::surrogates::Surrogates;
use bytes::Bytes;
use domain::compaction::text_tokens;
use domain::egress::{EgressGrant, Method};
use domain::json::{self, DEPTH_MAX};
use domain::limits::REPLY_BYTES_MAX;
use domain::message::Part;
use domain::redact::Redactor;
use egress::awake::{Instant, timeout, timeout_at};
use egress::{Body, ByteBudget, Caller, Credentials, Egress, Records, Request, Response};
use http::header::{
    ACCEPT_ENCODING, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use serde_json::Value;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a reply.
pub(crate) const RESPONSE_BYTES_MAX: usize = 32 << 20;
/// Bytes of the body of an answer that is an error.
const ERROR_BYTES_MAX: usize = 64 << 10;
/// Percentage of a model's window from which on a request may be refused for its length.
const FULL_PERCENT: u64 = 80;
/// Blanks with which a server may keep a connection open before its reply.
const BLANKS_MAX: usize = 64 << 10;
/// Bytes of garbage of which a sample is taken.
const SAMPLE_BYTES_MAX: usize = 4 << 10;

/// A provider on the network.
pub(crate) struct Remote {
    /// A way out of its own: its connections serve no other provider.
    pub(crate) egress: Egress,
    /// The grant for what may be sent on it: requests to this provider.
    pub(crate) grants: [EgressGrant; 1],
    pub(crate) url: String,
    /// The URL of the provider's list of models.
    pub(crate) list_url: String,
    pub(crate) key: Option<ApiKey>,
    /// The source of the key, for the ledger.
    pub(crate) key_place: String,
    /// The redactor that takes the key out of what the provider answers.
    pub(crate) redactor: Redactor,
    pub(crate) dialect: Box<dyn Dialect>,
    pub(crate) timeouts: Timeouts,
}

/// The outcome of waiting for more of a body.
enum Portion {
    More(Bytes),
    End,
}

impl Remote {
    pub(crate) fn key(&self) -> Option<&ApiKey> {
        self.key.as_ref()
    }

    /// The key is taken out of the body as it comes. A server may also cut it into chunks that are
    /// put together only here.
    fn without_key(&self, mut answer: Answer) -> Answer {
        answer
            .parts
            .iter_mut()
            .for_each(|part| self.redactor.part(part));
        answer
    }

    /// Asks once. A request that is refused for its form is sent again without what not every
    /// server takes, if it has any of that.
    pub(crate) async fn ask(
        &self,
        ask: &Ask<'_>,
        mode: Mode,
        feed: &Feed<'_>,
    ) -> Result<Answer, AttemptError> {
        let refused = match Box::pin(self.ask_as_is(ask, mode, feed)).await {
            Err(error) if error.is_about_form() => error,
            result => return result,
        };
        let bare = Ask { bare: true, ..*ask };
        if self.dialect.request(&bare, mode) == self.dialect.request(ask, mode) {
            return Err(refused);
        }
        tracing::info!(
            llm.provider = ask.provider,
            llm.model = ask.model,
            error = refused.failure.report(),
            "a request is sent again without what not every server takes"
        );
        match Box::pin(self.ask_as_is(&bare, mode, feed)).await {
            Err(error) if error.is_about_form() => Err(refused),
            result => result,
        }
    }

    /// Asks once: a streamed reply is put together here, and what breaks on the way is an attempt
    /// error that says how far it came.
    async fn ask_as_is(
        &self,
        ask: &Ask<'_>,
        mode: Mode,
        feed: &Feed<'_>,
    ) -> Result<Answer, AttemptError> {
        let request = outgoing::body(self.dialect.request(ask, mode));
        let exchange = Exchange {
            remote: self,
            ask,
            mode,
            tokens: text_tokens(request.len()),
            peer: Peer {
                provider: ask.provider,
                model: ask.model,
                key: self.key(),
            },
        };
        let patience = match mode {
            Mode::Stream => self.timeouts.first_token_ms,
            Mode::Whole => self.timeouts.whole_ms,
        };
        let first = Instant::now() + Duration::from_millis(patience);
        let response = exchange.send(request, first).await?;
        if !response.status.is_success() {
            return Err(exchange.refusal(response).await);
        }
        let answer = exchange.receive(response, first, feed).await?;
        feed.finish();
        let answer = self.without_key(answer);
        match unkept(&answer.parts) {
            None => Ok(answer),
            Some(problem) => {
                Err(exchange.failure(Stage::Begun, exchange.peer.garbage(problem, "")))
            }
        }
    }
}

/// Returns the reason why a reply could not be stored and read again.
pub(super) fn unkept(parts: &[Part]) -> Option<&'static str> {
    let deep = |part: &Part| matches!(part, Part::Opaque { value, .. } if json::is_deeper(value, DEPTH_MAX));
    if parts.iter().any(deep) {
        return Some("a field of it is nested deeper than 64 levels of lists and objects");
    }
    let mut counted = Counted(0);
    let is_small = serde_json::to_writer(&mut counted, parts).is_ok();
    (!is_small).then_some("it is larger than 8 MiB")
}

/// Counts bytes up to [`REPLY_BYTES_MAX`], and keeps none.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        if self.0 > REPLY_BYTES_MAX {
            Err(std::io::ErrorKind::FileTooLarge.into())
        } else {
            Ok(bytes.len())
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// One exchange under way.
struct Exchange<'a> {
    remote: &'a Remote,
    ask: &'a Ask<'a>,
    mode: Mode,
    /// Tokens of the request, estimated.
    tokens: u64,
    peer: Peer<'a>,
}

impl Exchange<'_> {
    fn failure(&self, stage: Stage, failure: Failure) -> AttemptError {
        let failure = if stage == Stage::Unsent {
            failure
        } else {
            self.judged(failure)
        };
        // What a stream reports before its end is not the final count.
        AttemptError::new(self.mode, stage, failure)
    }

    /// Takes a request that was refused in words that nobody knows for one that is too long, if it
    /// nearly fills its model's window.
    fn judged(&self, failure: Failure) -> Failure {
        let full = u128::from(self.ask.context_window) * u128::from(FULL_PERCENT);
        match failure {
            Failure::Refused {
                provider,
                model,
                status: 400 | 422,
                about: Refusal::Request,
                cause,
            } if u128::from(self.tokens) * 100 >= full => Failure::TooLong {
                provider,
                model,
                cause,
            },
            failure => failure,
        }
    }

    async fn send(&self, body: String, first: Instant) -> Result<Response, AttemptError> {
        let remote = self.remote;
        let mut headers = remote.dialect.headers(remote.key());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if remote.key().is_some() {
            self.ask.trail.key_used(&format!(
                "{} -> {}",
                remote.key_place, remote.grants[0].host
            ));
        }
        let request = Request {
            caller: caller(
                self.ask.provider,
                self.ask.trail.records(),
                &remote.redactor,
            ),
            method: Method::Post,
            url: remote.url.clone(),
            bound: credentials(&mut headers),
            headers,
            body: body.into(),
        };
        // On the heap: it is large.
        match timeout_at(first, Box::pin(remote.egress.send(request, &remote.grants))).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let (stage, failure) = self.peer.unsent(&error);
                Err(self.failure(stage, failure))
            }
            Err(_) => {
                Err(self.failure(Stage::Asked, self.peer.unavailable(Reason::FirstToken, "")))
            }
        }
    }

    /// An answer whose status is not success.
    async fn refusal(&self, response: Response) -> AttemptError {
        let status = response.status.as_u16();
        let header = |name: HeaderName| {
            response
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        // Some servers give it more exactly as well.
        let retry_after_ms = header(HeaderName::from_static("retry-after-ms"))
            .and_then(given_ms)
            .or_else(|| retry_after_ms(header(RETRY_AFTER)?, header(DATE)));
        let body = self.sample(response.body, ERROR_BYTES_MAX).await;
        let failure = self.peer.status(status, &body, retry_after_ms);
        let stage = match failure {
            // The model wrote something.
            Failure::Garbage { .. } => Stage::Asked,
            _ => Stage::of_status(status),
        };
        let failed = self.failure(stage, failure);
        AttemptError {
            retry_after_ms: retry_after_ms
                .and_then(NonZeroU64::new)
                .or(failed.retry_after_ms),
            ..failed
        }
    }

    /// Reads a reply in the form that it has, whatever it was asked for and says that it is.
    async fn receive(
        &self,
        response: Response,
        first: Instant,
        feed: &Feed<'_>,
    ) -> Result<Answer, AttemptError> {
        let declared = Form::declared(&response.headers);
        let mut body = response.body;
        let mut head = Vec::new();
        let form = loop {
            if let Some(form) = Form::of(&head) {
                break form;
            }
            if head.len() > BLANKS_MAX {
                break Form::Other;
            }
            let until = if head.is_empty() { first } else { self.idle() };
            match self.portion(&mut body, until, !head.is_empty()).await {
                Ok(Portion::More(bytes)) => head.extend_from_slice(&bytes),
                Ok(Portion::End) => break Form::Other,
                Err(failure) => {
                    let stage = if head.is_empty() && self.mode == Mode::Stream {
                        Stage::Asked
                    } else {
                        Stage::Begun
                    };
                    return Err(self.failure(stage, failure));
                }
            }
        };
        let started = Started { head, body };
        match (form, declared) {
            (Form::Events, _) | (Form::Other, Some(Form::Events)) => {
                self.stream(started, feed).await
            }
            (Form::Document, _) | (Form::Other, Some(Form::Document)) => {
                self.whole(started, feed).await
            }
            (Form::Other, None) if self.mode == Mode::Stream && started.head.is_empty() => {
                self.stream(started, feed).await
            }
            (Form::Other, _) => {
                let sample = self.sample(started.body, SAMPLE_BYTES_MAX).await;
                let sample = format!("{}{sample}", lossy(&started.head));
                let reported = self.peer.garbage("it has the wrong content type", &sample);
                Err(self.failure(Stage::Begun, reported))
            }
        }
    }

    /// The beginning of a body, as far as it comes in time.
    async fn sample(&self, mut body: Body, bytes_max: usize) -> String {
        let mut bytes = Vec::new();
        let reading = async {
            while let Ok(Some(chunk)) = body.chunk().await {
                bytes.extend(chunk.iter().take(bytes_max - bytes.len()));
                if bytes.len() >= bytes_max {
                    break;
                }
            }
        };
        // What has come by then will do.
        let _ = timeout(Duration::from_millis(self.remote.timeouts.idle_ms), reading).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    async fn portion(
        &self,
        body: &mut Body,
        until: Instant,
        begun: bool,
    ) -> Result<Portion, Failure> {
        match timeout_at(until, body.chunk()).await {
            Ok(Ok(Some(bytes))) => Ok(Portion::More(bytes)),
            Ok(Ok(None)) => Ok(Portion::End),
            Ok(Err(error)) => Err(self.peer.network(
                if begun {
                    Reason::CutShort
                } else {
                    Reason::Broken
                },
                &error,
            )),
            Err(_) => Err(self.peer.unavailable(
                if begun {
                    Reason::Idle
                } else {
                    Reason::FirstToken
                },
                "",
            )),
        }
    }

    fn idle(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.remote.timeouts.idle_ms)
    }

    async fn stream(&self, started: Started, feed: &Feed<'_>) -> Result<Answer, AttemptError> {
        let Started { head, mut body } = started;
        let mut assembly = self.remote.dialect.assembly(self.ask);
        let mut decoder = Decoder::default();
        let mut surrogates = Surrogates::default();
        let mut events = Vec::new();
        let mut total = 0_usize;
        let mut next = (!head.is_empty()).then(|| Bytes::from(head));
        let result = loop {
            let bytes = match next.take() {
                Some(bytes) => bytes,
                None => match self.portion(&mut body, self.idle(), total > 0).await {
                    Ok(Portion::More(bytes)) => bytes,
                    Ok(Portion::End) => {
                        let mut last = std::mem::take(&mut decoder).finish().into_iter();
                        break last
                            .try_for_each(|event| assembly.take(&surrogates.joined(event), feed))
                            .map_err(|broken| self.peer.broken(&broken));
                    }
                    Err(failure) => break Err(failure),
                },
            };
            total += bytes.len();
            if total > RESPONSE_BYTES_MAX {
                break Err(self.peer.garbage("it is larger than 32 MiB", ""));
            }
            if let Err(malformed) = decoder.push(&bytes, &mut events) {
                break Err(self.peer.garbage(said_of(malformed), &lossy(&bytes)));
            }
            let taken = events.drain(..).try_for_each(|event| {
                if assembly.ended() {
                    Ok(())
                } else {
                    assembly.take(&surrogates.joined(event), feed)
                }
            });
            if let Err(broken) = taken {
                break Err(self.peer.broken(&broken));
            }
            if assembly.ended() {
                break Ok(());
            }
        };
        let stage = if total > 0 {
            Stage::Begun
        } else {
            Stage::Asked
        };
        let answer = result
            .and_then(|()| {
                if total == 0 {
                    Err(self.peer.unavailable(Reason::CutShort, ""))
                } else {
                    Ok(())
                }
            })
            .and_then(|()| {
                assembly
                    .finish(feed)
                    .map_err(|broken| self.peer.broken(&broken))
            })
            .map_err(|failure| self.failure(stage, failure))?;
        body.complete();
        Ok(answer)
    }

    async fn whole(&self, started: Started, feed: &Feed<'_>) -> Result<Answer, AttemptError> {
        let Started {
            head: mut body,
            body: mut from,
        } = started;
        loop {
            match self.portion(&mut from, self.idle(), true).await {
                Ok(Portion::More(bytes)) if body.len() + bytes.len() > RESPONSE_BYTES_MAX => {
                    return Err(self.failure(
                        Stage::Begun,
                        self.peer.garbage("it is larger than 32 MiB", ""),
                    ));
                }
                Ok(Portion::More(bytes)) => body.extend_from_slice(&bytes),
                Ok(Portion::End) => break,
                Err(failure) => return Err(self.failure(Stage::Begun, failure)),
            }
        }
        let Some(value) = document(&body) else {
            return Err(self.failure(
                Stage::Begun,
                self.peer.garbage("it is not JSON", &lossy(&body)),
            ));
        };
        let read = self.remote.dialect.whole(self.ask, &value, feed);
        read.map_err(|broken| self.failure(Stage::Begun, self.peer.broken(&broken)))
    }
}

/// Reads a body of JSON; none when it is not that.
fn document(body: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(body)
        .ok()?
        .trim_start_matches('\u{feff}');
    serde_json::from_str(&Surrogates::default().join(text)).ok()
}

const _: () = assert!(
    DEPTH_MAX == 64 && REPLY_BYTES_MAX == 8 << 20,
    "what is told of a reply that is not kept names these"
);

/// The beginnings of lines of an event stream.
const EVENT_FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

/// A body of which the first bytes have come.
struct Started {
    head: Vec<u8>,
    body: Body,
}

/// The form of a body.
#[derive(Clone, Copy)]
enum Form {
    /// An event stream.
    Events,
    /// JSON in one piece.
    Document,
    /// Anything else.
    Other,
}

impl Form {
    /// Returns the form that the header gives, which may list several.
    fn declared(headers: &HeaderMap) -> Option<Self> {
        let text = headers
            .get(CONTENT_TYPE)?
            .to_str()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let mut kinds = text.split([',', ';']).map(str::trim);
        if kinds.clone().any(|kind| kind == "text/event-stream") {
            return Some(Self::Events);
        }
        let is_json = kinds.any(|kind| kind == "application/json" || kind.ends_with("+json"));
        Some(if is_json { Self::Document } else { Self::Other })
    }

    /// Returns the form that a body has, by its first bytes; none while they do not tell.
    fn of(head: &[u8]) -> Option<Self> {
        let head = head
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(head)
            .trim_ascii_start();
        match head {
            [] | [0xef] | [0xef, 0xbb] => None,
            [b'{' | b'[', ..] => Some(Self::Document),
            _ if EVENT_FIELDS.iter().any(|field| head.starts_with(field)) => Some(Self::Events),
            _ if EVENT_FIELDS.iter().any(|field| field.starts_with(head)) => None,
            _ => Some(Self::Other),
        }
    }
}

fn said_of(malformed: Malformed) -> &'static str {
    match malformed {
        Malformed::LineTooLong => "a line of it is longer than 1 MiB",
        Malformed::NotUtf8 => "it is not UTF-8",
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..SAMPLE_BYTES_MAX).unwrap_or(bytes)).into_owned()
}

/// The headers that are credentials, taken out of the others.
pub(super) fn credentials(headers: &mut HeaderMap) -> Credentials {
    let mut credentials = Credentials::default();
    let names: Vec<_> = headers
        .iter()
        .filter(|(_, value)| value.is_sensitive())
        .map(|(name, _)| name.clone())
        .collect();
    for name in names {
        if let Some(value) = headers.remove(&name) {
            credentials.header(name, value);
        }
    }
    credentials
}

/// The gateway as egress knows it. What comes back has no key in it, and neither has what fails.
pub(super) fn caller(provider: &str, records: Arc<dyn Records>, redactor: &Redactor) -> Caller {
    Caller {
        component: provider.to_owned(),
        budget: ByteBudget::of(u64::MAX),
        records,
        redactor: redactor.clone(),
    }
}
