//! Webhooks: calls of `POST /hooks/<name>`, verified before any content is read.

mod body;
mod call;
mod credentials;
mod verify;

pub(super) use body::{is_json, percent_decoded, read_body};
pub use call::{NotACall, WebhookCall, WebhookRequest};
pub use credentials::is_credential;
pub use verify::{NotVerified, TOKEN_HEADER};

use super::{
    BytesMax, HEADER_NAME_BYTES_MAX, PAYLOAD_BYTES_DEFAULT, PAYLOAD_BYTES_MAX, SpecFault,
    TOLERANCE_S_DEFAULT, TOLERANCE_S_MAX, check_line, note,
};
use crate::access::secret::{NAME_BYTES_MAX, is_secret_name};
use crate::values::text::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookSpec {
    /// The method by which its callers authenticate.
    pub auth: WebhookAuth,
    /// The header with the sender's own id of a call, under which it is accepted once within seven
    /// days. Known headers are found without it: `X-GitHub-Delivery`, `webhook-id`,
    /// `Idempotency-Key` and those of CloudEvents. Otherwise the id is a digest of the call. It is
    /// not allowed with the schemes `github` and `stripe`, whose calls are identified by the signed
    /// content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The status of an accepted call: 202 for `accepted`, which is the default, 200 for `now`, for
    /// senders that require it.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub answer: WebhookAnswer,
    /// Bytes of a call's body, at most 1048576; default 262144.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub bytes_max: Option<u32>,
}

/// The way in which callers prove who they are. Secrets are named as they are in `secrets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum WebhookAuth {
    /// The secret itself, as `Authorization: Bearer …` or in `X-AgentHost-Token`; never in the
    /// query.
    Token {
        /// The name of the secret.
        secret: String,
    },
    /// A signature of the call by HMAC-SHA256.
    Hmac {
        /// The name of the secret.
        secret: String,
        /// The scheme.
        scheme: HmacScheme,
        /// The header with the signature in hexadecimal digits or in base64, for `plain`; with or
        /// without the prefix `sha256=`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        header: Option<String>,
        /// The header with the seconds of the signature, for `plain`: then time, `.` and body are
        /// signed. Without it only the body is signed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timestamp_header: Option<String>,
        /// Seconds by which the time of a signature may be off, from 1 to 3600; default 300.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 3_600))]
        tolerance_s: Option<u32>,
    },
}

/// A scheme of signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HmacScheme {
    /// `X-Hub-Signature-256`, of the body.
    Github,
    /// `Stripe-Signature`, of time and body.
    Stripe,
    /// A header of the sender's own.
    Plain,
}

words!(HmacScheme { Github = "github", Stripe = "stripe", Plain = "plain" });

/// The response to an accepted call. It is sent after the call is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebhookAnswer {
    /// The status 202.
    #[default]
    Accepted,
    /// The status 200.
    Now,
}

words!(WebhookAnswer { Accepted = "accepted", Now = "now" });

impl WebhookAnswer {
    /// Returns the HTTP status.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Accepted => 202,
            Self::Now => 200,
        }
    }
}

impl WebhookAuth {
    /// Returns the name of the secret.
    #[must_use]
    pub fn secret(&self) -> &str {
        match self {
            Self::Token { secret } | Self::Hmac { secret, .. } => secret,
        }
    }

    /// Returns the scheme of its signatures; none for a token.
    fn scheme(&self) -> Option<HmacScheme> {
        match self {
            Self::Token { .. } => None,
            Self::Hmac { scheme, .. } => Some(*scheme),
        }
    }

    /// Returns the milliseconds by which the time of a signature may be off; none for signatures
    /// without a time.
    fn tolerance_ms(&self) -> Option<u64> {
        match self {
            Self::Token { .. } => None,
            Self::Hmac {
                scheme,
                timestamp_header,
                tolerance_s,
                ..
            } => {
                let has_time = *scheme == HmacScheme::Stripe || timestamp_header.is_some();
                let seconds = tolerance_s.unwrap_or(TOLERANCE_S_DEFAULT);
                has_time.then_some(u64::from(seconds) * 1_000)
            }
        }
    }

    fn faults(&self) -> Vec<SpecFault> {
        let mut faults = Vec::new();
        let key = match self {
            Self::Token { .. } => "token",
            Self::Hmac { .. } => "hmac",
        };
        if !is_secret_name(self.secret()) {
            let fix = format!(
                "write the name of an entry of `secrets`: 1 to {NAME_BYTES_MAX} of `a-z`, \
                 `0-9`, `-` and `_`"
            );
            faults.push(SpecFault::new(
                format!("auth.{key}.secret"),
                "names no secret",
                fix,
            ));
        }
        if let Self::Hmac {
            scheme,
            header,
            timestamp_header,
            tolerance_s,
            ..
        } = self
        {
            let is_plain = *scheme == HmacScheme::Plain;
            if is_plain && header.is_none() {
                let fix = "write the header that the sender puts the signature in";
                faults.push(SpecFault::new("auth.hmac.header", "is missing", fix));
            }
            let unused = [
                ("auth.hmac.header", header.is_some() && !is_plain),
                (
                    "auth.hmac.timestampHeader",
                    timestamp_header.is_some() && !is_plain,
                ),
                (
                    "auth.hmac.toleranceS",
                    tolerance_s.is_some() && self.tolerance_ms().is_none(),
                ),
            ];
            for (field, _) in unused.into_iter().filter(|(_, is_unused)| *is_unused) {
                let message = format!("has no meaning with the scheme `{scheme}`");
                faults.push(SpecFault::new(field, message, "leave it out"));
            }
            let headers = [
                ("auth.hmac.header", header),
                ("auth.hmac.timestampHeader", timestamp_header),
            ];
            for (field, header) in headers {
                note(&mut faults, check_header(field, header.as_deref()));
            }
            if tolerance_s.is_some_and(|seconds| !(1..=TOLERANCE_S_MAX).contains(&seconds)) {
                let fix = format!("write a number from 1 to {TOLERANCE_S_MAX}");
                faults.push(SpecFault::new(
                    "auth.hmac.toleranceS",
                    "is out of range",
                    fix,
                ));
            }
        }
        faults
    }
}

impl WebhookSpec {
    /// Returns the most bytes of a call's body.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        let asked = self.bytes_max.and_then(|bytes| usize::try_from(bytes).ok());
        asked
            .unwrap_or(PAYLOAD_BYTES_DEFAULT)
            .min(PAYLOAD_BYTES_MAX)
    }

    /// Returns the faults in it.
    pub(super) fn faults(&self) -> Vec<SpecFault> {
        let mut faults = self.auth.faults();
        note(&mut faults, self.check_call_id());
        let is_in_range = self.bytes_max.is_none_or(|bytes| {
            usize::try_from(bytes).is_ok_and(|bytes| (1..=PAYLOAD_BYTES_MAX).contains(&bytes))
        });
        if !is_in_range {
            let fix = format!("write a number from 1 to {PAYLOAD_BYTES_MAX}");
            faults.push(SpecFault::new("bytesMax", "is out of range", fix));
        }
        faults
    }

    /// Checks the header with the sender's id. If headers are not signed and the body identifies
    /// the call, such a header would only help to replay a call.
    fn check_call_id(&self) -> Result<(), SpecFault> {
        let scheme = self.auth.scheme();
        if let Some(scheme @ (HmacScheme::Github | HmacScheme::Stripe)) = scheme
            && self.call_id.is_some()
        {
            let message = format!(
                "has no meaning with the scheme `{scheme}`, whose calls are told by what is signed"
            );
            return Err(SpecFault::new("callId", message, "leave it out"));
        }
        check_header("callId", self.call_id.as_deref())
    }
}

/// Checks the name of a header.
fn check_header(field: &str, name: Option<&str>) -> Result<(), SpecFault> {
    let Some(name) = name else {
        return Ok(());
    };
    check_line(field, name, BytesMax(HEADER_NAME_BYTES_MAX))?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.bytes().all(fits) {
        return Ok(());
    }
    let fix = "write a name such as `X-Signature`";
    Err(SpecFault::new(field, "is no name of a header", fix))
}

#[cfg(test)]
mod tests;
