//! A webhook call as it is stored: bounded, without credentials, under the sender's own id.

use super::super::{
    CALL_FIELD_BYTES_MAX, CALL_FIELDS_MAX, CALL_ID_BYTES_MAX, CALL_PATH_BYTES_MAX, CloudEvent,
    CloudEventError, FORM_FIELDS_MAX,
};
use super::body::payload;
use super::{HmacScheme, WebhookAuth, WebhookSpec, is_credential};
use crate::values::digest::Digest;
use crate::values::json::NotTaken;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
