//! Webhooks: calls of `POST /hooks/<name>`, verified before any content is read.

mod body;
mod verify;

use super::{
    BytesMax, CALL_FIELD_BYTES_MAX, CALL_FIELDS_MAX, CALL_ID_BYTES_MAX, CALL_PATH_BYTES_MAX,
    CloudEvent, CloudEventError, FORM_FIELDS_MAX, HEADER_NAME_BYTES_MAX, PAYLOAD_BYTES_DEFAULT,
    PAYLOAD_BYTES_MAX, SpecFault, TOLERANCE_S_DEFAULT, TOLERANCE_S_MAX, check_line, note,
};
use crate::access::egress::CREDENTIALS;
use crate::access::secret::{NAME_BYTES_MAX, is_secret_name};
use crate::values::digest::Digest;
use crate::values::json::NotTaken;
use crate::values::text::words;
use body::payload;
pub(super) use body::{is_json, percent_decoded, read_body};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use verify::{NotVerified, TOKEN_HEADER};

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

// Credentials in a call: headers and parts of the query that are never stored and that no
// component sees.

/// Names of credentials, as headers and as parts of the query.
const NAMES: [&str; 12] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "auth",
    "key",
    "apikey",
    "sig",
    "hmac",
    "code",
    "jwt",
    "pass",
];
/// Parts of names that mark a credential.
const PARTS: [&str; 9] = [
    "token",
    "secret",
    "signature",
    "password",
    "passwd",
    "credential",
    "api-key",
    "api_key",
    "authorization",
];

/// Returns whether a header or a part of a query with this name is a credential, by its name.
#[must_use]
pub fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str())
        || CREDENTIALS.contains(&name.as_str())
        || PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod credentials_tests {
    use super::*;

    #[test]
    fn credentials_are_told_by_their_names() {
        for (name, expected) in [
            ("Authorization", true),
            ("Cookie", true),
            ("X-Hub-Signature-256", true),
            ("Stripe-Signature", true),
            ("X-AgentHost-Token", true),
            ("access_token", true),
            ("x-api-key", true),
            ("KEY", true),
            ("X-GitHub-Event", false),
            ("Content-Type", false),
            ("monkey", false),
            ("ce-id", false),
            ("user-agent", false),
        ] {
            assert_eq!(is_credential(name), expected, "{name}");
        }
    }
}

// A webhook call as it is stored: bounded, without credentials, under the sender's own id.

/// A call as received.
#[derive(Debug, Clone, Copy)]
pub struct WebhookRequest<'a> {
    /// The rest of its path, after the trigger's name.
    pub path: &'a str,
    /// Its headers.
    pub headers: &'a [(String, String)],
    /// Its query, decoded.
    pub query: &'a [(String, String)],
    /// Its body.
    pub body: &'a [u8],
}

/// A webhook call that was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookCall {
    /// The sender's own id of the call, under which it is accepted once within seven days.
    pub call_id: String,
    /// The rest of its path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Headers without credentials, names in lower case. The attributes of a CloudEvent are among
    /// them as `ce-…`, in either of its modes.
    pub headers: Vec<(String, String)>,
    /// The query, decoded, without credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<(String, String)>,
    /// The body: JSON if it was JSON, the fields of a form, otherwise a JSON string. The data of a
    /// CloudEvent.
    pub payload: Value,
}

/// The reason why a verified call is refused.
#[derive(Debug, thiserror::Error)]
pub enum NotACall {
    /// Its body is too large.
    #[error("the body has {bytes} bytes; {max} is the most")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The length that is allowed.
        max: usize,
    },
    /// Its path is too long.
    #[error("the path behind the trigger's name has more than {CALL_PATH_BYTES_MAX} bytes")]
    Path,
    /// Its body claims to be JSON and is not.
    #[error("the body cannot be taken")]
    Json(#[from] NotTaken),
    /// The type of its body is unsupported.
    #[error(
        "a body of the type `{0}` is not read; send `application/json`, \
         `application/x-www-form-urlencoded` or a text"
    )]
    Type(String),
    /// Its body is compressed.
    #[error("a body with `Content-Encoding: {0}` is not read; send it as it is")]
    Encoding(String),
    /// Its body has an unknown character set.
    #[error("the character set `{0}` of the body is not known; send UTF-8")]
    Charset(String),
    /// Its body is no text.
    #[error(
        "the body of the type `{0}` is no text in its character set; send JSON or text in UTF-8"
    )]
    NotText(String),
    /// Its body is a malformed form.
    #[error("a field of the form is not encoded as the form's type has it, in its character set")]
    Form,
    /// Its body is a form with too many fields.
    #[error("the form has more than {FORM_FIELDS_MAX} fields; send fewer")]
    Fields,
    /// Its body is no JSON, which the scheme's senders sign.
    #[error(
        "calls of the scheme `{scheme}` bring JSON, by itself or in the field `payload` of a form; \
         the body of the type `{said}` is neither: set its content type to `application/json`"
    )]
    NotJson {
        /// The scheme.
        scheme: HmacScheme,
        /// The content type.
        said: String,
    },
    /// It claims to be a CloudEvent and is not.
    #[error("the body cannot be taken as a CloudEvent")]
    CloudEvent(#[from] CloudEventError),
}

impl NotACall {
    /// Returns the HTTP status for it.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::TooLarge { .. } => 413,
            Self::Path
            | Self::Json(_)
            | Self::Type(_)
            | Self::Encoding(_)
            | Self::Charset(_)
            | Self::NotText(_)
            | Self::Form
            | Self::Fields
            | Self::NotJson { .. }
            | Self::CloudEvent(_) => 400,
        }
    }
}

impl WebhookSpec {
    /// Reads a call that was verified.
    ///
    /// # Errors
    /// It is too large, or its body does not match its type.
    pub fn read(&self, request: &WebhookRequest<'_>) -> Result<WebhookCall, NotACall> {
        if request.body.len() > self.bytes_max() {
            return Err(NotACall::TooLarge {
                bytes: request.body.len(),
                max: self.bytes_max(),
            });
        }
        if request.path.len() > CALL_PATH_BYTES_MAX {
            return Err(NotACall::Path);
        }
        request.check_encoding()?;
        let mut headers = self.kept(request.headers, str::to_ascii_lowercase);
        let (event, payload) = match CloudEvent::read(request)? {
            Some(mut event) => {
                let data = std::mem::take(&mut event.data);
                (Some(event), data)
            }
            None => (None, payload(request, self.auth.scheme())?),
        };
        if let Some(event) = &event {
            headers.retain(|(name, _)| !name.starts_with("ce-"));
            headers.extend(event.headers());
        }
        Ok(WebhookCall {
            call_id: self.call_id(request, event.as_ref(), &payload),
            path: request.path.to_owned(),
            headers,
            query: self.kept(request.query, str::to_owned),
            payload,
        })
    }

    /// The stored fields of a call, each with its name in the form that `named` returns.
    fn kept(
        &self,
        fields: &[(String, String)],
        named: fn(&str) -> String,
    ) -> Vec<(String, String)> {
        let fields = fields.iter().filter(|(name, _)| {
            name.len() <= CALL_FIELD_BYTES_MAX && !is_credential(name) && !self.is_proof(name)
        });
        fields
            .take(CALL_FIELDS_MAX)
            .map(|(name, value)| (named(name), cut(value).to_owned()))
            .collect()
    }

    /// Returns whether a header contains the signature.
    fn is_proof(&self, name: &str) -> bool {
        match &self.auth {
            WebhookAuth::Token { .. } => false,
            WebhookAuth::Hmac { header, .. } => {
                let header = header.as_deref();
                header.is_some_and(|header| header.eq_ignore_ascii_case(name))
            }
        }
    }

    /// The sender's own id of a call.
    ///
    /// GitHub and Stripe sign the body, and no header, path or query. With another id in one of
    /// those, the holder of a call could replay it. So their calls are identified by the signed
    /// content. Other calls have the header that the operator names, a known header, or the event's
    /// id, and are otherwise identified by their content.
    fn call_id(
        &self,
        request: &WebhookRequest<'_>,
        event: Option<&CloudEvent>,
        payload: &Value,
    ) -> String {
        let scheme = self.auth.scheme();
        let id = match scheme {
            Some(HmacScheme::Github) => None,
            Some(HmacScheme::Stripe) => stripe_id(payload),
            Some(HmacScheme::Plain) | None => self.id_of(request, event),
        };
        match id {
            Some(id) if id.len() <= CALL_ID_BYTES_MAX && !id.contains(char::is_control) => id,
            Some(id) => Digest::of_parts(&[b"call", id.as_bytes()]).hex(),
            None => match scheme {
                Some(HmacScheme::Github | HmacScheme::Stripe) => digest_of_body(request),
                Some(HmacScheme::Plain) | None => digest(request),
            },
        }
    }

    /// The id of a call by its headers or its event.
    fn id_of(&self, request: &WebhookRequest<'_>, event: Option<&CloudEvent>) -> Option<String> {
        let header = |name: &str| {
            let value = request.header(name).ok().flatten();
            value.map(str::trim).filter(|value| !value.is_empty())
        };
        let own = self.call_id.as_deref().and_then(header);
        own.or_else(|| header("x-github-delivery"))
            .or_else(|| header("webhook-id"))
            .or_else(|| header("idempotency-key"))
            .map(str::to_owned)
            .or_else(|| event.map(CloudEvent::key))
    }
}

/// The id of Stripe's event, which is signed with it.
fn stripe_id(payload: &Value) -> Option<String> {
    let id = payload.get("id").and_then(Value::as_str);
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}

/// The id of a call without its own: the same for the same path, query and body.
fn digest(request: &WebhookRequest<'_>) -> String {
    let mut parts: Vec<&[u8]> = vec![b"call", request.path.as_bytes()];
    for (name, value) in request.query {
        parts.extend([name.as_bytes(), value.as_bytes()]);
    }
    parts.push(request.body);
    Digest::of_parts(&parts).hex()
}

/// The id of a call with only its body signed: the same for the same body.
fn digest_of_body(request: &WebhookRequest<'_>) -> String {
    Digest::of_parts(&[b"body", request.body]).hex()
}

/// The stored beginning of a value.
fn cut(value: &str) -> &str {
    let end = value.floor_char_boundary(CALL_FIELD_BYTES_MAX);
    value.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests;
