//! Calls of services: verified before a component sees a byte, read, stored, and only then
//! answered.

use super::calls::CallFailure;
use super::intake::{Brought, TakenIn};
use super::served::{ConnectorLink, Served};
use super::{Connectors, Shared};
use broker::Error;
use domain::connector::{
    CALL_BYTES_MAX, CallMethod, ConnectorFailure, Intake, ServiceCall, Verified, WebhookCheck,
    WebhookSecrets,
};
use domain::path::ConnectorName;
use runtime::VerifiedCall;
use std::sync::PoisonError;
use tokio::time::Instant;

/// Milliseconds after which a service that calls too often, or for which there is no place, may
/// call again.
const CROWDED_MS: u64 = 1_000;
/// The longest time after which a service may call again, in milliseconds.
const CROWDED_MS_MAX: u64 = 60_000;
/// Milliseconds after which a service may repeat a call that could not be processed.
const TROUBLE_MS: u64 = 10_000;
/// The secret that calls are compared with that are for no connector.
const NOBODYS: &[u8] = b"no call is ever signed with this";
/// The header with the signature of such a call.
const SIGNATURE: &str = "x-hub-signature-256";
/// The parameter of a query that holds the secret of a handshake.
const HANDSHAKE: &str = "hub.verify_token";

/// A call as it was received.
#[derive(Debug, Clone)]
pub struct ReceivedCall {
    /// Its method.
    pub method: CallMethod,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its query, decoded.
    pub query: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceAnswer {
    /// It was accepted, and all its messages are stored (200).
    Answer {
        /// The body as text; none for an empty one.
        body: Option<String>,
    },
    /// It is not verified, or the connector does not exist (401).
    Unverified,
    /// The component cannot read it (400).
    Malformed {
        /// The reason.
        detail: String,
    },
    /// It is too large (413).
    TooLarge {
        /// Bytes that a call may have.
        bytes_max: usize,
    },
    /// There are too many calls (429).
    Crowded {
        /// Milliseconds after which it may be repeated.
        retry_after_ms: u64,
    },
    /// It cannot be processed now (503).
    Unavailable {
        /// Milliseconds after which it may be repeated.
        retry_after_ms: u64,
    },
}

impl Connectors {
    /// Handles a call of a connector's service. When it is answered, all its messages are durable.
    /// A repeated call adds nothing, and gets the same answer.
    ///
    /// # Errors
    /// Nothing can be recorded at the moment; the service should call again later.
    pub async fn webhook(
        &self,
        name: &ConnectorName,
        call: ReceivedCall,
    ) -> Result<ServiceAnswer, Error> {
        self.shared.called(name, call).await
    }
}

impl Shared {
    async fn called(
        &self,
        name: &ConnectorName,
        call: ReceivedCall,
    ) -> Result<ServiceAnswer, Error> {
        if call.body.len() > CALL_BYTES_MAX {
            let bytes_max = CALL_BYTES_MAX;
            return Ok(ServiceAnswer::TooLarge { bytes_max });
        }
        let served = self.served.at_work(name).filter(|served| is_called(served));
        // A caller does not learn which connectors exist.
        let Some((served, check)) = served
            .as_ref()
            .and_then(|served| Some((served, served.spec.webhook.as_ref()?)))
        else {
            pretend_to_verify(&call, self);
            return Ok(ServiceAnswer::Unverified);
        };
        match self.verify(served, check, &call) {
            None => return Ok(ServiceAnswer::Unverified),
            Some(Verified::Handshake { challenge }) => {
                let body = Some(challenge);
                return Ok(ServiceAnswer::Answer { body });
            }
            Some(Verified::Call) => {}
        }
        // Only verified calls of the service count: nobody else can use them up.
        if !may_call(served) || self.room(served).await? == 0 {
            let retry_after_ms = CROWDED_MS;
            return Ok(ServiceAnswer::Crowded { retry_after_ms });
        }
        self.read(served, without_credentials(check, call)).await
    }

    /// Returns the verified call, if it is the service's own.
    fn verify(
        &self,
        served: &Served,
        check: &WebhookCheck,
        call: &ReceivedCall,
    ) -> Option<Verified> {
        let settings = self.core.settings();
        let value = |name: &str| settings.secrets.get(name).map(|it| it.expose().as_bytes());
        let verify_token = check.verify_token().map(value);
        let secrets = WebhookSecrets {
            secret: value(check.secret())?,
            // A handshake whose secret has no value cannot be verified.
            verify_token: match verify_token {
                Some(token) => Some(token?),
                None => None,
            },
        };
        // No doubt about the clock makes a signature count for longer.
        let now = self.core.broker.clock().for_credentials();
        let verified = check.verify(secrets, &call.as_service_call(), now);
        if let Err(error) = &verified {
            tracing::debug!(
                connector.name = %served.name,
                error = error as &dyn std::error::Error,
                "a call of a connector is nobody's"
            );
        }
        verified.ok()
    }

    /// Makes the component read a verified call, and stores its messages.
    async fn read(&self, served: &Served, call: VerifiedCall) -> Result<ServiceAnswer, Error> {
        let read = self.read_call(served, call).await;
        let batch = match read.result {
            Ok(batch) => batch,
            Err(failure) => {
                self.note(served, read.entry).await;
                return Ok(self.not_read(served, failure).await);
            }
        };
        let answer = batch.answer;
        let brought = Brought {
            messages: batch.messages,
            cursor: batch.cursor,
            polled_from: None,
            entry: read.entry,
            key: None,
            acknowledgements: batch.acknowledgements,
            overheard: batch.overheard,
            replies: batch.replies,
            moved: batch.moved,
            undelivered: batch.undelivered,
        };
        match self.take_in(served, brought).await? {
            TakenIn::New(_) => {
                self.note_success(served).await;
                Ok(ServiceAnswer::Answer { body: answer })
            }
            TakenIn::Crowded | TakenIn::Overtaken => Ok(ServiceAnswer::Crowded {
                retry_after_ms: CROWDED_MS,
            }),
        }
    }

    /// Returns the answer to a call that the component could not read.
    async fn not_read(&self, served: &Served, failure: CallFailure) -> ServiceAnswer {
        if let CallFailure::Failed(ConnectorFailure::Rejected(detail)) = failure {
            return ServiceAnswer::Malformed { detail };
        }
        let retry_after_ms = retry_after_ms(&failure);
        // The service repeats the call, endlessly if this lasts: an operator has to know.
        self.note_intake_failure(served, failure).await;
        ServiceAnswer::Unavailable { retry_after_ms }
    }
}

impl ReceivedCall {
    fn as_service_call(&self) -> ServiceCall<'_> {
        ServiceCall {
            method: self.method,
            headers: &self.headers,
            query: &self.query,
            body: &self.body,
        }
    }
}

/// Returns the milliseconds after which a call that was not read may be repeated.
fn retry_after_ms(failure: &CallFailure) -> u64 {
    match failure {
        CallFailure::NoPlace { after_ms, .. }
        | CallFailure::Failed(ConnectorFailure::RetryLater { after_ms, .. }) => {
            (*after_ms).clamp(CROWDED_MS, CROWDED_MS_MAX)
        }
        CallFailure::Failed(
            ConnectorFailure::Rejected(_)
            | ConnectorFailure::Unauthorised(_)
            | ConnectorFailure::Unknown(_)
            | ConnectorFailure::Moved { .. },
        ) => TROUBLE_MS,
    }
}

/// Returns whether a connector's service calls the host.
fn is_called(served: &Served) -> bool {
    matches!(served.link, ConnectorLink::Component(_)) && served.spec.intake() == Intake::Webhook
}

/// Counts a call of a service. Returns false if it calls too often.
fn may_call(served: &Served) -> bool {
    let mut calls = served
        .lasting
        .calls
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    calls.take(Instant::now())
}

/// Does the work of a verification, so that the time of an answer does not say whether there is a
/// connector.
fn pretend_to_verify(call: &ReceivedCall, shared: &Shared) {
    let check = WebhookCheck::Meta {
        secret: String::new(),
        verify_token: String::new(),
    };
    let secrets = WebhookSecrets {
        secret: NOBODYS,
        verify_token: Some(NOBODYS),
    };
    // A signature of the right form, whatever headers the caller sends.
    let headers = [(SIGNATURE.to_owned(), format!("sha256={}", "00".repeat(32)))];
    let pretended = ServiceCall {
        headers: &headers,
        ..call.as_service_call()
    };
    // The result does not matter: it is not returned.
    let _ = check.verify(secrets, &pretended, shared.core.now());
}

/// Returns a call as its component reads it.
fn without_credentials(check: &WebhookCheck, call: ReceivedCall) -> VerifiedCall {
    let ReceivedCall {
        mut headers,
        mut query,
        body,
        ..
    } = call;
    headers.retain(|(name, _)| !check.is_credential(name));
    query.retain(|(name, _)| name != HANDSHAKE);
    VerifiedCall {
        headers,
        query,
        body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_calls_again_within_a_minute() {
        let no_place = |after_ms| CallFailure::NoPlace {
            after_ms,
            reason: "no place",
        };
        assert_eq!(retry_after_ms(&no_place(1)), CROWDED_MS);
        assert_eq!(retry_after_ms(&no_place(u64::MAX)), CROWDED_MS_MAX);
        let lost = ConnectorFailure::Unknown("no answer".to_owned());
        assert_eq!(retry_after_ms(&CallFailure::Failed(lost)), TROUBLE_MS);
    }

    #[test]
    fn a_component_sees_no_proof_of_a_call() {
        let check = WebhookCheck::Token {
            secret: "hook".to_owned(),
            header: Some("X-Token".to_owned()),
        };
        let pair = |name: &str| (name.to_owned(), "value".to_owned());
        let call = ReceivedCall {
            method: CallMethod::Post,
            headers: ["x-token", "authorization", "x-slack-signature", "x-kind"]
                .map(pair)
                .to_vec(),
            query: ["hub.verify_token", "page"].map(pair).to_vec(),
            body: b"{}".to_vec(),
        };
        let seen = without_credentials(&check, call);
        assert_eq!(seen.headers, [pair("x-kind")]);
        assert_eq!(seen.query, [pair("page")]);
        assert_eq!(seen.body, b"{}");
    }
}
