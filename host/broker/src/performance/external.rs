//! Outbound messages to external agents: one try of one outbound message, through the one way out.
//!
//! Every attempt has the same idempotency key and the same body, and a signature of its own. The
//! response is judged by its status and `Retry-After` alone; its body is not read.

use crate::core::Core;
use crate::external::{Signed, name_of};
use crate::performance::result::{Performed, WorkOutcome};
use domain::egress::{EgressGrant, Method};
use domain::error_code::INVALID_ARGUMENTS;
use domain::event::{BoundaryVerdict, RunStarted};
use domain::external::{
    ExternalSettings, OUTBOUND_MESSAGE_BYTES_MAX, SIGNATURE_HEADER, SignedDirection, TIME_HEADER,
};
use domain::message::{Message, Part};
use domain::outbound_message::{
    DELIVER, DELIVERED, Try, is_delivered, judge, may_ask_for_time, undelivered,
};
use domain::ruling::Rule;
use domain::run::Open;
use domain::run::settle::Ended;
use domain::step::Failure;
use egress::{ByteBudget, Caller, Credentials, EgressError, Request};
use http::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use llm::retry_after_ms;
use runtime::CallAudit;
use serde_json::{Value, json};
use std::sync::Arc;

/// The header with the key under which a repeated outbound message is the same outbound message.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The beginning of the origin of a message that another agent sent.
const OF_AGENT: &str = "agent:";

/// One attempt at an outbound message.
pub(crate) struct OutboundMessage<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) started: &'a RunStarted,
    pub(crate) open: &'a Open,
    /// The messages that are delivered.
    pub(crate) messages: &'a [Arc<Message>],
    pub(crate) audit: &'a CallAudit,
}

/// A request that is ready to be sent.
struct Ready {
    request: Request,
    grants: [EgressGrant; 1],
}

/// The end of a try.
struct Sent {
    result: Try,
    /// The reason for people, if it was not taken.
    why: String,
    /// The milliseconds that the program asked to wait before the next try.
    asked_ms: Option<u64>,
}

impl OutboundMessage<'_> {
    pub(crate) async fn perform(self) -> Performed {
        if is_delivered(self.open.state.as_deref()) {
            // It was accepted before, and the time for its answer is over.
            return Performed::ended(Ended::TimedOut);
        }
        let served = self.core.served();
        let definition = served.catalogue.definition(&self.started.definition);
        let Some(program) = definition.and_then(|definition| definition.program()) else {
            let gone = "this agent is no longer configured as an external one";
            return failed(Failure::lasting("not-configured", gone));
        };
        let ready = match self.ready(program).await {
            Ok(ready) => ready,
            Err(failure) => return failed(failure),
        };
        self.audit.decided(
            DELIVER,
            BoundaryVerdict::Granted,
            Rule::Granted,
            &self.started.definition.0,
        );
        let Sent {
            result,
            why,
            asked_ms,
        } = self.send(ready).await;
        let tries = self.open.segment.saturating_add(1);
        match result {
            Try::Taken => later(program.answer_timeout_ms(), DELIVERED),
            Try::Refused => failed(undelivered(tries, &why)),
            Try::Again => match program.pause_ms(tries, asked_ms) {
                Some(pause_ms) => later(pause_ms, &[]),
                None => failed(undelivered(tries, &why)),
            },
        }
    }

    /// Sends the request.
    async fn send(&self, ready: Ready) -> Sent {
        let without = |result, why: &str| Sent {
            result,
            why: why.to_owned(),
            asked_ms: None,
        };
        let Some(egress) = self.core.runtime.http_egress() else {
            return without(Try::Refused, "this host has no way out");
        };
        // On the heap: it is large.
        match Box::pin(egress.send(ready.request, &ready.grants)).await {
            Ok(response) => {
                let status = response.status.as_u16();
                let header = |name: HeaderName| {
                    let value = response.headers.get(name)?;
                    value.to_str().ok()
                };
                let asked = header(RETRY_AFTER).filter(|_| may_ask_for_time(status));
                let asked_ms = asked.and_then(|asked| retry_after_ms(asked, header(DATE)));
                response.body.complete();
                Sent {
                    result: judge(status),
                    why: format!("it answered with the status {status}"),
                    asked_ms,
                }
            }
            Err(error @ EgressError::Refused(_)) => without(Try::Refused, error.code()),
            Err(error) => without(Try::Again, error.code()),
        }
    }

    /// Makes the request of this try.
    async fn ready(&self, program: &ExternalSettings) -> Result<Ready, Failure> {
        let unfit = |why: String| Failure::lasting("not-configured", why);
        let grant = program
            .grant()
            .map_err(|why| unfit(format!("external.inputUrl: {why}")))?;
        let secrets = self.core.runtime.secrets();
        let secret = secrets
            .get(&program.secret)
            .ok_or_else(|| unfit(format!("there is no secret `{}`", program.secret)))?;
        let session = self.session_name().await?;
        let body = self.body(program, &session)?.to_string();
        let time_s = self.core.clock.for_credentials().0 / 1_000;
        let signed = Signed {
            direction: SignedDirection::ToAgent,
            time_s,
            session: &session,
            message: Some(self.open.operation.id),
            body: body.as_bytes(),
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let key = self.open.operation.id.idempotency_key(0);
        for (name, value) in [
            (IDEMPOTENCY_KEY, key),
            (TIME_HEADER, time_s.to_string()),
            (SIGNATURE_HEADER, signed.signature(secret)),
        ] {
            let value = HeaderValue::try_from(value)
                .map_err(|_| unfit(format!("the header `{name}` cannot be made")))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        let request = Request {
            caller: Caller {
                component: format!("external:{}", self.started.definition),
                budget: ByteBudget::of(OUTBOUND_MESSAGE_BYTES_MAX),
                records: self.audit.records(),
                redactor: secrets.redactor().clone(),
            },
            method: Method::Post,
            url: program.input_url.clone(),
            headers,
            bound: Credentials::default(),
            body: body.into(),
        };
        Ok(Ready {
            request,
            grants: [grant],
        })
    }

    async fn session_name(&self) -> Result<String, Failure> {
        let session = self.started.session;
        let unreadable = || Failure::passing("unavailable", "the session could not be read");
        let row = self.core.store.session(session).await;
        let row = row.map_err(|_| unreadable())?.ok_or_else(unreadable)?;
        name_of(&self.core.store, &row)
            .await
            .map_err(|_| unreadable())
    }

    /// Returns the body of the request. It is the same for every attempt.
    fn body(&self, program: &ExternalSettings, session: &str) -> Result<Value, Failure> {
        let Some(first) = self.messages.first() else {
            let none = "there are no such messages in this turn";
            return Err(Failure::lasting(INVALID_ARGUMENTS, none));
        };
        let texts: Vec<String> = self.messages.iter().map(|message| message.text()).collect();
        let attached: Vec<Value> = self
            .messages
            .iter()
            .flat_map(|message| &message.parts)
            .filter_map(attachment)
            .collect();
        let kind = match first.origin.starts_with(OF_AGENT) {
            true => "agent",
            false => "user",
        };
        let message = self.open.operation.id.to_string();
        Ok(json!({
            "sessionId": session,
            "agentId": self.started.definition,
            "messageId": message,
            "callbackUrl": program.callback_url(session, &message),
            "message": {
                "type": kind,
                "text": texts.join("\n\n"),
                "attachments": attached,
                "createdAt": self.started.time.to_string(),
            },
        }))
    }
}

/// Returns a blob in the form that the program gets; none for any other part.
fn attachment(part: &Part) -> Option<Value> {
    match part {
        Part::Blob {
            digest,
            media_type,
            size,
        } => Some(json!({
            "digest": digest.reference(), "mediaType": media_type, "bytes": size,
        })),
        Part::Text { .. } | Part::Call { .. } | Part::Opaque { .. } => None,
    }
}

fn failed(failure: Failure) -> Performed {
    Performed::ended(Ended::Failed(failure))
}

fn later(after_ms: u64, state: &[u8]) -> Performed {
    Performed::finished(WorkOutcome::Later {
        after_ms,
        state: state.to_vec(),
    })
}
