//! Calls of webhooks: verified, read, and accepted under the sender's own id of them, before they
//! are answered.
//!
//! A caller that cannot prove to know the secret learns nothing, not even whether a webhook of the
//! name exists: the answer is the same, after the same work, at the same time after the call.

use super::{Triggers, recording};
use crate::journal::{self, Context};
use broker::{Error, refused_late};
use bytes::Bytes;
use domain::digest::Digest;
use domain::event::TriggerEventAccepted;
use domain::id::TriggerEventId;
use domain::time::Timestamp;
use domain::trigger::{
    HmacScheme, NotACall, NotVerified, TriggerEvent, TriggerKind, TriggerName, WebhookAnswer,
    WebhookAuth, WebhookCall, WebhookRequest, WebhookSpec,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use store::{Clash, Commit, CommitError, Guard, Key, TriggerGuard};

/// Calls that are stored at a time. Further ones wait for their turn, so that a storm of calls
/// takes only its share of the store.
pub(super) const ACCEPTING_MAX: usize = 128;
/// Milliseconds that a call waits for its turn.
const TURN_MS_MAX: u64 = 5_000;
/// Milliseconds after which a sender may try again whose call was not taken.
const RETRY_AFTER_MS: u64 = 5_000;
/// Milliseconds between two lines of the log about unverified calls of a webhook.
const REPORTED_EVERY_MS: u64 = 60_000;
/// A secret that belongs to no webhook, for calls of webhooks that do not exist.
const NOBODYS: &[u8] = b"there is no webhook of this name";
/// The header of the signature of such calls.
const NOBODYS_HEADER: &str = "x-hub-signature-256";
/// Hexadecimal digits of a signature.
const DIGITS: usize = 64;

/// A call as it was received, with all its headers.
#[derive(Debug, Clone)]
pub struct HookCall {
    /// The rest of its path, after the trigger's name and the slash.
    pub path: String,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its query, decoded.
    pub query: Vec<(String, String)>,
    /// Its body: [`domain::trigger::PAYLOAD_BYTES_MAX`] at most.
    pub body: Bytes,
    /// The form that its body has to have.
    pub form: HookForm,
}

/// The form that the body of a call has to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookForm {
    /// Anything.
    Any,
    /// The body of `/hooks/wake`: an object with `text`.
    Wake,
    /// The body of `/hooks/agent`: an object with `message`.
    Agent,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookAnswer {
    /// It is stored, and will be processed.
    Accepted {
        /// Its trigger event.
        trigger_event: TriggerEventId,
        /// The answer that the trigger's definition asks for.
        answer: WebhookAnswer,
    },
    /// It was stored before, under the same id.
    Before {
        /// The trigger event that it was then.
        trigger_event: TriggerEventId,
    },
    /// The caller does not know the secret, or there is no such webhook.
    Unverified,
    /// It is malformed.
    Malformed {
        /// The fault.
        detail: String,
    },
    /// Its body is too large.
    TooLarge {
        /// The length that is allowed, in bytes.
        bytes_max: u64,
    },
    /// Too many calls wait already.
    Crowded {
        /// Milliseconds after which it may be tried again.
        retry_after_ms: u64,
    },
}

/// The unverified calls, which are logged from time to time.
#[derive(Debug, Default)]
pub(super) struct Unverified(Mutex<BTreeMap<TriggerName, Untold>>);

/// The calls of a webhook that are not logged yet.
#[derive(Debug, Default)]
struct Untold {
    calls: u64,
    reported: Option<Timestamp>,
}

impl Unverified {
    /// Counts a call. Returns the number for a log line now.
    fn count(&self, name: &TriggerName, now: Timestamp) -> Option<u64> {
        let Self(untold) = self;
        let mut untold = untold.lock().unwrap_or_else(PoisonError::into_inner);
        let untold = untold.entry(name.clone()).or_default();
        untold.calls += 1;
        let is_due = |reported: Timestamp| now >= reported.plus_ms(REPORTED_EVERY_MS);
        if !untold.reported.is_none_or(is_due) {
            return None;
        }
        untold.reported = Some(now);
        Some(std::mem::take(&mut untold.calls))
    }
}

impl Triggers {
    /// Handles a call of a webhook. When this returns [`HookAnswer::Accepted`] it is durable.
    ///
    /// # Errors
    /// The store cannot be read, or takes nothing now.
    pub async fn hook(&self, name: &str, call: HookCall) -> Result<HookAnswer, Error> {
        let is_refusal = |answer: &Result<_, _>| matches!(answer, Ok(HookAnswer::Unverified));
        refused_late(self.take(name, call), is_refusal).await
    }

    async fn take(&self, name: &str, call: HookCall) -> Result<HookAnswer, Error> {
        let request = WebhookRequest {
            path: &call.path,
            headers: &call.headers,
            query: &call.query,
            body: &call.body,
        };
        let Ok(name) = name.parse::<TriggerName>() else {
            self.refuse(&request);
            return Ok(HookAnswer::Unverified);
        };
        let trigger = self.shared.core.store().fired_trigger(&name).await?;
        let spec = trigger.as_ref().and_then(|spec| match &spec.on {
            TriggerKind::Webhook(spec) => Some(spec),
            _ => None,
        });
        let Some(spec) = self.verified(&name, spec, &request) else {
            return Ok(HookAnswer::Unverified);
        };
        let read = match spec.read(&request) {
            Ok(read) => read,
            Err(NotACall::TooLarge { max, .. }) => {
                return Ok(HookAnswer::TooLarge {
                    bytes_max: u64::try_from(max).unwrap_or(u64::MAX),
                });
            }
            Err(error) => {
                let detail = with_source(&error);
                return Ok(HookAnswer::Malformed { detail });
            }
        };
        if let Err(detail) = check_form(call.form, &read.payload) {
            return Ok(HookAnswer::Malformed { detail });
        }
        self.accept(&name, read, spec.answer).await
    }

    /// Returns the webhook, if it exists and the caller proves to know its secret. Otherwise it
    /// fails after the same time.
    fn verified<'a>(
        &self,
        name: &TriggerName,
        spec: Option<&'a WebhookSpec>,
        request: &WebhookRequest<'_>,
    ) -> Option<&'a WebhookSpec> {
        let Some(spec) = spec else {
            self.refuse(request);
            return None;
        };
        let core = &self.shared.core;
        let settings = core.settings();
        let secret = settings.secrets.get(spec.auth.secret());
        let secret = secret.map_or(NOBODYS, |secret| secret.expose().as_bytes());
        let now = core.broker.clock().for_credentials();
        let verified = spec.auth.verify(secret, request, now);
        if let Err(error) = &verified {
            // Anybody may send them: the log has one line a minute of each webhook.
            if let Some(calls) = self.shared.unverified.count(name, core.now()) {
                tracing::info!(
                    trigger.name = %name,
                    calls,
                    error = error as &dyn std::error::Error,
                    "webhook calls are not verified"
                );
            }
            let is_hashed = matches!(spec.auth, WebhookAuth::Hmac { .. })
                && matches!(error, NotVerified::Wrong | NotVerified::Stale { .. });
            if !is_hashed {
                self.refuse(request);
            }
        }
        (verified.is_ok() && secret != NOBODYS).then_some(spec)
    }

    /// Does the work of a verification that always fails.
    fn refuse(&self, request: &WebhookRequest<'_>) {
        let proof = [(
            NOBODYS_HEADER.to_owned(),
            format!("sha256={}", "0".repeat(DIGITS)),
        )];
        let pretended = WebhookRequest {
            headers: &proof,
            ..*request
        };
        let auth = WebhookAuth::Hmac {
            secret: String::new(),
            scheme: HmacScheme::Github,
            header: None,
            timestamp_header: None,
            tolerance_s: None,
        };
        let now = self.shared.core.broker.clock().for_credentials();
        // Whatever the result, the caller is refused.
        let _ = auth.verify(NOBODYS, &pretended, now);
    }

    /// Stores a call.
    async fn accept(
        &self,
        name: &TriggerName,
        call: WebhookCall,
        answer: WebhookAnswer,
    ) -> Result<HookAnswer, Error> {
        let crowded = HookAnswer::Crowded {
            retry_after_ms: RETRY_AFTER_MS,
        };
        let turn = self.shared.accepting.acquire();
        let Ok(turn) = tokio::time::timeout(Duration::from_millis(TURN_MS_MAX), turn).await else {
            return Ok(crowded);
        };
        let core = &self.shared.core;
        let trigger_event = journal::trigger_event();
        let commit = accepting(name, call, trigger_event, core.now());
        store::point("edge.webhook.before");
        let committed = core.store().commit(commit).await;
        store::point("edge.webhook.after");
        drop(turn);
        match committed {
            Ok(_) => {
                self.shared.open.notify_one();
                Ok(HookAnswer::Accepted {
                    trigger_event,
                    answer,
                })
            }
            Err(CommitError::Replayed { reply }) => Ok(HookAnswer::Before {
                trigger_event: before(&reply).unwrap_or(trigger_event),
            }),
            Err(CommitError::Busy) => Ok(crowded),
            Err(CommitError::Conflict(conflict)) => match &conflict.clash {
                Clash::Guard(Guard::Trigger(TriggerGuard::PendingAtMost { .. })) => Ok(crowded),
                // It was paused or removed meanwhile.
                Clash::Guard(Guard::Trigger(TriggerGuard::NextDue { .. })) => {
                    Ok(HookAnswer::Unverified)
                }
                _ => Err(CommitError::Conflict(conflict).into()),
            },
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the commit that stores a call, once under the sender's id of it.
fn accepting(
    name: &TriggerName,
    call: WebhookCall,
    trigger_event: TriggerEventId,
    now: Timestamp,
) -> Commit {
    let key = Key {
        source: format!("hook:{name}"),
        request: Digest::of(call.call_id.as_bytes()),
        key: call.call_id.clone(),
        reply: trigger_event.to_string().into_bytes(),
        about: None,
    };
    let accepted = TriggerEventAccepted {
        trigger_event,
        ..recording::accepted(name, TriggerEvent::Webhook(call), now)
    };
    let context = Context::new(format!("hook:{name}"), now);
    recording::accept(recording::if_active(name), &context, accepted).key(key)
}

/// Returns the trigger event that a call was before.
fn before(reply: &[u8]) -> Option<TriggerEventId> {
    std::str::from_utf8(reply).ok()?.parse().ok()
}

/// Checks the payload of a webhook of the host's own.
fn check_form(form: HookForm, payload: &Value) -> Result<(), String> {
    let field = match form {
        HookForm::Any => return Ok(()),
        HookForm::Wake => "text",
        HookForm::Agent => "message",
    };
    let says = payload.get(field).and_then(Value::as_str);
    match says {
        Some(text) if !text.trim().is_empty() => Ok(()),
        Some(_) => Err(format!(
            "`{field}` says nothing; write what the agent is told"
        )),
        None => Err(format!("the body is no object with the text `{field}`")),
    }
}

/// Returns an error with its cause, for a verified caller.
fn with_source(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_log_has_one_line_a_minute_of_calls_that_anybody_may_send() {
        let unverified = Unverified::default();
        let [name, other]: [TriggerName; 2] = ["push", "pull"].map(|name| name.parse().unwrap());
        let at = |ms| Timestamp(1_000_000 + ms);
        assert_eq!(unverified.count(&name, at(0)), Some(1));
        for ms in 1..100 {
            assert_eq!(unverified.count(&name, at(ms)), None);
        }
        assert_eq!(unverified.count(&other, at(50)), Some(1));
        assert_eq!(unverified.count(&name, at(REPORTED_EVERY_MS)), Some(100));
    }

    #[test]
    fn the_hosts_own_webhooks_take_words_and_nothing_else() {
        for (form, payload, is_taken) in [
            (HookForm::Any, json!(null), true),
            (HookForm::Wake, json!({ "text": "wake up" }), true),
            (HookForm::Wake, json!({ "text": " " }), false),
            (HookForm::Wake, json!({ "message": "a" }), false),
            (
                HookForm::Agent,
                json!({ "message": "a", "name": "b" }),
                true,
            ),
            (HookForm::Agent, json!("a"), false),
        ] {
            assert_eq!(check_form(form, &payload).is_ok(), is_taken, "{payload}");
        }
    }

    #[test]
    fn a_trigger_event_is_read_from_the_reply_that_is_remembered() {
        let trigger_event = journal::trigger_event();
        let reply = trigger_event.to_string().into_bytes();
        assert_eq!(before(&reply), Some(trigger_event));
        assert_eq!(before(b"?"), None);
    }
}
