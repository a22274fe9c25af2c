//! Bodies of webhook calls as values: JSON, forms and text, in their declared character sets.

use super::super::FORM_FIELDS_MAX;
use super::{HmacScheme, NotACall, WebhookRequest};
use crate::values::json;
use crate::values::shown::escaped;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use serde_json::map::Entry;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The media type of a form without files.
const FORM: &str = "application/x-www-form-urlencoded";
/// The form field in which senders put their JSON.
const PAYLOAD: &str = "payload";

impl WebhookRequest<'_> {
    /// Returns the content type of its body; none if there is none, or more than one.
    pub(in super::super) fn content_type(&self) -> Option<&str> {
        let value = self.header("content-type").ok().flatten()?.trim();
        (!value.is_empty()).then_some(value)
    }

    /// Returns the media type of its body, in lower case and without parameters; none if there is
    /// none, or more than one.
    #[must_use]
    pub fn media_type(&self) -> Option<String> {
        self.content_type().map(media_type)
    }

    /// Checks that its body is not compressed.
    pub(super) fn check_encoding(&self) -> Result<(), NotACall> {
        let encoding = match self.header("content-encoding") {
            Ok(encoding) => encoding.unwrap_or_default().trim(),
            Err(_) => "two at once",
        };
        if encoding.is_empty() || encoding.eq_ignore_ascii_case("identity") {
            return Ok(());
        }
        Err(NotACall::Encoding(escaped(encoding)))
    }
}

/// Reads the body of a call that is no event. A body that claims to be JSON has to be JSON. An
/// object is read as JSON whatever its type.
pub(super) fn payload(
    request: &WebhookRequest<'_>,
    scheme: Option<HmacScheme>,
) -> Result<Value, NotACall> {
    let content_type = request.content_type();
    let read = match read_body(request.body, content_type)? {
        Value::String(text) if !request.media_type().is_some_and(|it| is_json(&it)) => {
            object(&text).unwrap_or(Value::String(text))
        }
        read => read,
    };
    match scheme {
        Some(scheme @ (HmacScheme::Github | HmacScheme::Stripe))
            if !matches!(read, Value::Object(_) | Value::Array(_)) =>
        {
            let said = said(content_type);
            Err(NotACall::NotJson { scheme, said })
        }
        _ => Ok(read),
    }
}

/// Reads a body by its content type.
pub(in super::super) fn read_body(
    body: &[u8],
    content_type: Option<&str>,
) -> Result<Value, NotACall> {
    let media_type = content_type.map(media_type);
    let media_type = media_type.as_deref();
    if media_type.is_some_and(|media_type| media_type.starts_with("multipart/")) {
        return Err(NotACall::Type(said(content_type)));
    }
    let encoding = charset(content_type)?;
    let text = decoded(body, encoding).ok_or_else(|| NotACall::NotText(said(content_type)))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match media_type {
        None => Ok(json::parse_exact(text).unwrap_or_else(|_| Value::String(text.to_owned()))),
        Some(media_type) if is_json(media_type) && !text.trim().is_empty() => {
            Ok(json::parse_exact(text)?)
        }
        // No form begins so: some senders do not declare their JSON.
        Some(FORM) if text.trim_start().starts_with('{') => Ok(json::parse_exact(text)?),
        Some(FORM) => form(text, encoding),
        Some(_) => Ok(Value::String(text.to_owned())),
    }
}

/// Returns whether a media type is that of JSON.
pub(in super::super) fn is_json(media_type: &str) -> bool {
    media_type == "application/json" || media_type == "text/json" || media_type.ends_with("+json")
}

/// Decodes `%` and two hexadecimal digits; none if another text follows a `%`.
pub(in super::super) fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let mut byte = [0];
        hex::decode_to_slice(digits, &mut byte).ok()?;
        bytes.extend(byte);
        rest = after;
    }
    Some(bytes)
}

/// The media type in a content type.
fn media_type(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// The character set that a content type names; default UTF-8.
fn charset(content_type: Option<&str>) -> Result<&'static Encoding, NotACall> {
    let parameters = content_type.unwrap_or_default().split(';').skip(1);
    let mut named = parameters.filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_named = name.trim().eq_ignore_ascii_case("charset");
        is_named.then(|| value.trim().trim_matches(['"', '\'']))
    });
    let Some(label) = named.next() else {
        return Ok(UTF_8);
    };
    Encoding::for_label(label.as_bytes()).ok_or_else(|| NotACall::Charset(escaped(label)))
}

/// The text of bytes in a character set; none if they are invalid in it. Senders that declare the
/// oldest sets, ASCII and Latin-1, often send UTF-8.
fn decoded<'a>(bytes: &'a [u8], encoding: &'static Encoding) -> Option<Cow<'a, str>> {
    if encoding == UTF_8 || encoding == WINDOWS_1252 {
        let utf8 = std::str::from_utf8(bytes).ok();
        if let Some(text) = utf8 {
            return Some(Cow::Borrowed(text));
        }
    }
    encoding.decode_without_bom_handling_and_without_replacement(bytes)
}

/// Reads the fields of a form. A repeated field becomes a list, and JSON in `payload` becomes the
/// whole if it is the only field.
fn form(text: &str, encoding: &'static Encoding) -> Result<Value, NotACall> {
    let read = |text: &str| {
        let bytes = percent_decoded(&text.replace('+', " "));
        let text = bytes.as_deref().and_then(|bytes| decoded(bytes, encoding));
        text.map(Cow::into_owned).ok_or(NotACall::Form)
    };
    let mut fields = Map::new();
    let pairs = text.trim().split('&').filter(|pair| !pair.is_empty());
    for (count, pair) in pairs.enumerate() {
        if count == FORM_FIELDS_MAX {
            return Err(NotACall::Fields);
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = Value::String(read(value)?);
        match fields.entry(read(name)?) {
            Entry::Vacant(entry) => {
                entry.insert(value);
            }
            Entry::Occupied(mut entry) => match entry.get_mut() {
                Value::Array(values) => values.push(value),
                first => *first = Value::Array(vec![first.take(), value]),
            },
        }
    }
    match fields.get(PAYLOAD).and_then(Value::as_str) {
        Some(json) if fields.len() == 1 && json.trim_start().starts_with(['{', '[']) => {
            Ok(json::parse_exact(json)?)
        }
        _ => Ok(Value::Object(fields)),
    }
}

/// Reads a JSON object; none for any other text.
fn object(text: &str) -> Option<Value> {
    let read = json::parse_exact(text).ok();
    read.filter(Value::is_object)
}

/// Returns the declared type of a body, for a refusal.
fn said(content_type: Option<&str>) -> String {
    escaped(content_type.unwrap_or("none"))
}
