//! Requests as callers ask for them: address, method, headers and body, checked before anything is
//! sent.
//!
//! The host refuses what is not a caller's to send in any case. The checks here make errors that a
//! model can act on.

use crate::network::{BUSY_MS, Unanswered};
use agent_host_sdk::ToolError;
use agent_host_sdk::http::Method;
use std::collections::BTreeMap;
use url::Url;

/// Characters of a URL.
pub(crate) const URL_CHARS_MAX: usize = 2_048;
/// Bytes of a request's body. A grant allows as many unless it says otherwise.
pub(crate) const SENT_BYTES_MAX: usize = 1 << 20;
/// Headers of a request.
pub(crate) const HEADERS_MAX: usize = 32;
/// Bytes of a header's value.
const VALUE_BYTES_MAX: usize = 4_096;
/// The beginning of every placeholder of a secret.
const PLACEHOLDER: &str = "{{secret.";

/// Headers of the connection.
const CONNECTION: [&str; 8] = [
    "connection",
    "expect",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Headers that the host sets.
const HOSTS_OWN: [&str; 3] = ["accept-encoding", "content-length", "host"];
/// Headers that tell a server another method, address or sender.
const MISLEADING: [&str; 13] = [
    "cf-connecting-ip",
    "forwarded",
    "true-client-ip",
    "via",
    "x-client-ip",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-host",
    "x-original-method",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
];
/// Headers that carry credentials.
const CREDENTIALS: [&str; 13] = [
    "api-key",
    "authorization",
    "cookie",
    "cookie2",
    "ocp-apim-subscription-key",
    "private-token",
    "x-access-token",
    "x-amz-security-token",
    "x-api-key",
    "x-auth-token",
    "x-functions-key",
    "x-goog-api-key",
    "x-vault-token",
];

/// Reads the address of a request.
pub(crate) fn address(text: &str) -> Result<Url, ToolError> {
    if text.chars().count() > URL_CHARS_MAX {
        return Err(ToolError::invalid(
            "url",
            format_args!("is longer than {URL_CHARS_MAX} characters"),
        ));
    }
    let mut url = Url::parse(text.trim()).map_err(|error| {
        ToolError::invalid(
            "url",
            format_args!("is not a whole address such as `https://example.com/page`: {error}"),
        )
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ToolError::invalid(
            "url",
            format_args!(
                "must begin with `https://` or `http://`, not `{}:`",
                url.scheme()
            ),
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ToolError::invalid(
            "url",
            "must not carry a user name or a password",
        ));
    }
    url.set_fragment(None);
    Ok(plain(url))
}

/// The same address with an escape for each percent sign that begins none, as browsers send it on
/// and servers read it.
pub(crate) fn plain(mut url: Url) -> Url {
    let path = escaped(url.path());
    url.set_path(&path);
    let query = url.query().map(escaped);
    url.set_query(query.as_deref());
    url
}

fn escaped(text: &str) -> String {
    let mut parts = text.split('%');
    let mut escaped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.as_bytes().get(..2).unwrap_or_default();
        let is_escape = digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
        escaped.push_str(if is_escape { "%" } else { "%25" });
        escaped.push_str(part);
    }
    escaped
}

/// Reads a method that only reads; `GET` when there is none.
pub(crate) fn reading_method(text: Option<&str>) -> Result<Method, ToolError> {
    one_of(text.unwrap_or("GET"), &[Method::Get, Method::Head]).ok_or_else(|| {
        ToolError::invalid(
            "method",
            "must be GET or HEAD; a request with POST, PUT, PATCH or DELETE is sent with web_send",
        )
    })
}

/// Reads a method that may change something.
pub(crate) fn changing_method(text: &str) -> Result<Method, ToolError> {
    let changing = [Method::Post, Method::Put, Method::Patch, Method::Delete];
    one_of(text, &changing).ok_or_else(|| {
        ToolError::invalid(
            "method",
            "must be POST, PUT, PATCH or DELETE; GET and HEAD are for web_fetch",
        )
    })
}

fn one_of(text: &str, methods: &[Method]) -> Option<Method> {
    let is_named = |method: &&Method| method.as_str().eq_ignore_ascii_case(text.trim());
    methods.iter().find(is_named).copied()
}

/// Reads the headers that the caller wants, with names in lower case.
pub(crate) fn headers(
    wanted: Option<&BTreeMap<String, String>>,
) -> Result<Vec<(String, String)>, ToolError> {
    let invalid = |fix: String| ToolError::invalid("headers", fix);
    let mut headers: Vec<(String, String)> = Vec::new();
    for (written, value) in wanted.into_iter().flatten() {
        let name = written.trim().to_ascii_lowercase();
        if !is_name(&name) {
            return Err(invalid(format!(
                "has `{}`, which is no name of a header",
                written.escape_debug()
            )));
        }
        if let Some(why) = refusal(&name) {
            return Err(invalid(format!(
                "cannot have `{name}`: {why}; leave it out"
            )));
        }
        if value.len() > VALUE_BYTES_MAX || value.chars().any(|c| c != '\t' && c.is_control()) {
            return Err(invalid(format!(
                "has a value for `{name}` that cannot be sent: a value is one line of at most \
                 {VALUE_BYTES_MAX} bytes"
            )));
        }
        if value.contains(PLACEHOLDER) {
            return Err(invalid(format!(
                "asks for a secret in `{name}`, and this tool sends none; leave it out"
            )));
        }
        if headers.iter().any(|(other, _)| *other == name) {
            return Err(invalid(format!("has `{name}` twice")));
        }
        headers.push((name, value.clone()));
    }
    if headers.len() > HEADERS_MAX {
        return Err(invalid(format!("has more than {HEADERS_MAX} headers")));
    }
    Ok(headers)
}

/// Adds a header unless the caller has set it.
pub(crate) fn set_default(headers: &mut Vec<(String, String)>, name: &str, value: &str) {
    if !headers.iter().any(|(other, _)| other == name) {
        headers.push((name.to_owned(), value.to_owned()));
    }
}

/// Returns the reason why a header is not the caller's to set; none for all others.
fn refusal(name: &str) -> Option<&'static str> {
    // Servers hand headers to programs as variables, in whose names both signs are the same.
    let name = name.replace('_', "-");
    let name = name.as_str();
    if CONNECTION.contains(&name) || name.starts_with("proxy-") {
        Some("it belongs to the connection, which the host makes")
    } else if HOSTS_OWN.contains(&name) {
        Some("the host sets it itself")
    } else if CREDENTIALS.contains(&name) {
        Some("it carries credentials, which no caller of this tool may send")
    } else if MISLEADING.contains(&name) || name.starts_with("x-forwarded-") {
        Some("it tells the server another method, address or sender than the request has")
    } else {
        None
    }
}

/// Returns true for a token as RFC 9110 has it, in section 5.6.2.
fn is_name(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(token)
}

/// The error of a request that has no answer.
pub(crate) fn error_of(url: &Url, error: Unanswered) -> ToolError {
    match error {
        Unanswered::Denied => ToolError::Denied,
        Unanswered::Busy => ToolError::RetryLater(BUSY_MS),
        _ => ToolError::Failed(format!("`{url}` {error}")),
    }
}
