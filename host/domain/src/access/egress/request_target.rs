//! The target of a request: a URL that is parsed once, strictly, into the value that is checked and
//! dialled.

use super::host::{Host, HostError};
use super::path::normalised;
use crate::values::text::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use shapes::limits::tool::URL_BYTES_MAX;
use std::fmt;
use std::fmt::Write as _;
use url::Url;

/// A scheme that a request may have.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Plain HTTP, without encryption.
    Http,
    /// Over TLS.
    Https,
}

words!(Scheme { Http = "http", Https = "https" });

impl Scheme {
    /// The port that needs no writing.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A method that a request may have. `CONNECT` and `TRACE` and all other unlisted methods are
/// unsupported.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Reads.
    Get,
    /// Reads the headers of a `GET`.
    Head,
    /// Hands something over.
    Post,
    /// Puts something in a place.
    Put,
    /// Changes a part.
    Patch,
    /// Removes.
    Delete,
    /// Asks for the supported methods.
    Options,
}

/// Text that is not a supported method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not one of GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS")]
pub struct NotAMethod;

words!(Method {
    Get = "GET",
    Head = "HEAD",
    Post = "POST",
    Put = "PUT",
    Patch = "PATCH",
    Delete = "DELETE",
    Options = "OPTIONS",
});

impl Method {
    /// Reads a method as a request has it: in upper case.
    ///
    /// # Errors
    /// The method is not in the list.
    pub fn parse(text: &str) -> Result<Self, NotAMethod> {
        Self::from_word(text).ok_or(NotAMethod)
    }
}

/// The target of a request. [`Target::parse`] makes it and nothing changes it: the value that was
/// checked is the one that is dialled.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Target {
    scheme: Scheme,
    host: Host,
    port: u16,
    path: String,
    query: Option<String>,
}

/// A URL that is not accepted. Unusual URLs are refused and not interpreted, because parsers
/// interpret them differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// More than [`URL_BYTES_MAX`].
    #[error("the URL is longer than {URL_BYTES_MAX} bytes")]
    TooLong,
    /// A character that is not printable ASCII, or a backslash. Other characters must be escaped,
    /// and names must be in punycode.
    #[error("the URL has a character that is not printable ASCII, or a backslash")]
    Character,
    /// Not `http://` or `https://`.
    #[error("the URL does not begin with http:// or https://")]
    Scheme,
    /// A name or password before the host.
    #[error("the URL has a user or password in it")]
    UserInfo,
    /// A percent sign before the path, or a fragment directly after the host.
    #[error("the URL's host is not written plainly")]
    Authority,
    /// The host is not accepted.
    #[error("the URL's host is not accepted")]
    Host(#[source] HostError),
    /// Not a number from 1 to 65535 without leading zeros.
    #[error("the URL's port is not a number from 1 to 65535")]
    Port,
    /// A percent sign that begins no escape.
    #[error("the URL's path or query has a percent sign that is not part of an escape")]
    Escape,
    /// A second parser, the `url` crate, reads this URL differently; invalid punycode is one cause.
    #[error("the URL means different things to different readers")]
    Ambiguous,
    /// A reference to an unsupported scheme.
    #[error("the reference leads to another scheme than http and https")]
    ForeignScheme,
}

impl Target {
    /// Reads a URL. Scheme and host become lower case, one trailing dot of a name is removed, and a
    /// default port is filled in. Dot segments are resolved, escapes are normalised, and a fragment
    /// is left out.
    ///
    /// # Errors
    /// The fault of the URL, as one of [`TargetError`].
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        if text.len() > URL_BYTES_MAX {
            return Err(TargetError::TooLong);
        }
        if !text.bytes().all(|b| b.is_ascii_graphic() && b != b'\\') {
            return Err(TargetError::Character);
        }
        let (scheme, rest) = text.split_once("://").ok_or(TargetError::Scheme)?;
        let scheme = [Scheme::Http, Scheme::Https]
            .into_iter()
            .find(|known| scheme.eq_ignore_ascii_case(known.as_str()));
        let scheme = scheme.ok_or(TargetError::Scheme)?;
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(TargetError::UserInfo);
        }
        if authority.contains('%') || rest.starts_with('#') {
            return Err(TargetError::Authority);
        }
        let (host, port) = host_and_port(authority, scheme)?;
        let (rest, _fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (path, query) = rest
            .split_once('?')
            .map_or((rest, None), |(path, query)| (path, Some(query)));
        let path = normalised(path).ok_or(TargetError::Escape)?;
        let query = query
            .map(|query| normalised(query).ok_or(TargetError::Escape))
            .transpose()?;
        let path = if path.is_empty() {
            "/".to_owned()
        } else {
            path
        };
        Self {
            scheme,
            host,
            port,
            path,
            query,
        }
        .agreed()
    }

    /// The URL with dot segments resolved by the `url` crate, if the crate reads it the same way.
    fn agreed(self) -> Result<Self, TargetError> {
        let url = Url::parse(&self.url()).map_err(|_| TargetError::Ambiguous)?;
        let same_origin = url.scheme() == self.scheme.as_str()
            && url.host_str() == Some(self.host.to_string().as_str())
            && url.port_or_known_default() == Some(self.port);
        let plain =
            url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        if !same_origin || !plain {
            return Err(TargetError::Ambiguous);
        }
        let agreed = Self {
            path: url.path().to_owned(),
            query: url.query().map(ToOwned::to_owned),
            ..self
        };
        if agreed.url().len() > URL_BYTES_MAX {
            Err(TargetError::TooLong)
        } else {
            Ok(agreed)
        }
    }

    /// Resolves a reference in a response from here, such as that of a redirect (RFC 3986, section
    /// 5.2).
    ///
    /// # Errors
    /// The reference leads to another scheme, or the resulting URL is not accepted.
    pub fn join(&self, reference: &str) -> Result<Self, TargetError> {
        let head = reference.split(['/', '?', '#']).next().unwrap_or_default();
        if head.contains(':') {
            let foreign = !reference.contains("://")
                || ![Scheme::Http, Scheme::Https]
                    .iter()
                    .any(|s| head.eq_ignore_ascii_case(&format!("{}:", s.as_str())));
            return if foreign {
                Err(TargetError::ForeignScheme)
            } else {
                Self::parse(reference)
            };
        }
        let scheme = self.scheme.as_str();
        let authority = self.authority();
        let path = &self.path;
        let query = || {
            self.query
                .as_ref()
                .map(|query| format!("?{query}"))
                .unwrap_or_default()
        };
        Self::parse(&match reference.bytes().next() {
            None | Some(b'#') => format!("{scheme}://{authority}{path}{}{reference}", query()),
            Some(b'/') if reference.starts_with("//") => format!("{scheme}:{reference}"),
            Some(b'/') => format!("{scheme}://{authority}{reference}"),
            Some(b'?') => format!("{scheme}://{authority}{path}{reference}"),
            Some(_) => {
                let folder = path
                    .rfind('/')
                    .and_then(|at| path.get(..=at))
                    .unwrap_or("/");
                format!("{scheme}://{authority}{folder}{reference}")
            }
        })
    }

    /// Resolves the location of a redirect from here, as browsers do. Invalid URL characters after
    /// the host are escaped, a backslash in a path is `/`, a name is written as punycode, and a
    /// fragment is left out. Host and port are checked as strictly as in a request.
    ///
    /// # Errors
    /// As for [`Target::join`].
    pub fn follow(&self, location: &[u8]) -> Result<Self, TargetError> {
        self.join(&written(location))
    }

    /// The scheme.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host, in the normal form in which it is compared, resolved, dialled and sent to the
    /// server.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port, written or not.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path, with a leading `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The query, without the question mark.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// Returns the path and the query, as in the request line.
    #[must_use]
    pub fn path_and_query(&self) -> String {
        match &self.query {
            None => self.path.clone(),
            Some(query) => format!("{}?{query}", self.path),
        }
    }

    /// Returns the value of the `host` header: the host, and the port unless it is the scheme's.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The whole URL, in the normal form that reads as this target again.
    #[must_use]
    pub fn url(&self) -> String {
        format!(
            "{}://{}{}",
            self.scheme.as_str(),
            self.authority(),
            self.path_and_query()
        )
    }

    /// Returns whether scheme, host and port are the same. Content for one may then be shown to the
    /// other.
    #[must_use]
    pub fn is_same_origin(&self, other: &Self) -> bool {
        self.scheme == other.scheme && self.host == other.host && self.port == other.port
    }
}

impl fmt::Display for Target {
    /// Without the query, which may contain data that must not be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}://{}{}",
            self.scheme.as_str(),
            self.authority(),
            self.path
        )
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

fn host_and_port(authority: &str, scheme: Scheme) -> Result<(Host, u16), TargetError> {
    // The colons of an IPv6 address are inside brackets.
    let behind_host = authority.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match authority.get(behind_host..).and_then(|rest| rest.find(':')) {
        None => (authority, None),
        Some(at) => (
            authority.get(..behind_host + at).unwrap_or_default(),
            authority.get(behind_host + at + 1..),
        ),
    };
    let host = Host::parse(host).map_err(TargetError::Host)?;
    let port = match port {
        None => scheme.default_port(),
        Some(digits) => digits
            .parse()
            .ok()
            .filter(|port: &u16| *port > 0 && port.to_string() == digits)
            .ok_or(TargetError::Port)?,
    };
    Ok((host, port))
}

// The location of a redirect, as servers write it, converted to a reference.

/// Writes a location as a reference. Text that cannot be a reference stays unchanged, and is
/// refused later.
fn written(location: &[u8]) -> String {
    let location = location.trim_ascii();
    let end = location.iter().position(|byte| *byte == b'#');
    let location = location.get(..end.unwrap_or(location.len()));
    let location = location.unwrap_or_default();
    let head = authority_end(location);
    let (head, rest) = location.split_at(head);
    let mut reference = head_written(head);
    if head.is_empty() && needs_dot(rest) {
        reference.push_str("./");
    }
    // After two of either, browsers read a host, and other parsers a path.
    let names_host = head.is_empty()
        && matches!(rest, [b'/' | b'\\', b'/' | b'\\', ..])
        && !rest.starts_with(b"//");
    let mut in_query = false;
    for (at, byte) in rest.iter().enumerate() {
        in_query |= *byte == b'?';
        let is_escape = || {
            let digits = rest.get(at + 1..at + 3);
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        match byte {
            b'\t' => {}
            b'\\' if names_host => reference.push('\\'),
            b'\\' if !in_query => reference.push('/'),
            b'%' if is_escape() => reference.push('%'),
            byte if byte.is_ascii_graphic() && !b"%\\".contains(byte) => {
                reference.push(char::from(*byte));
            }
            byte => {
                // Writing to a text does not fail.
                let _ = write!(reference, "%{byte:02X}");
            }
        }
    }
    reference
}

/// The length of scheme, separator and host; zero if there are none.
fn authority_end(location: &[u8]) -> usize {
    let is_end = |byte: &u8| matches!(byte, b'/' | b'?');
    let scheme = location
        .windows(3)
        .position(|window| window == b"://")
        .filter(|at| is_scheme(location.get(..*at).unwrap_or_default()));
    let host = match scheme {
        Some(at) => at + 3,
        None if location.starts_with(b"//") => 2,
        None => return 0,
    };
    let behind = location.get(host..).unwrap_or_default();
    host + behind.iter().position(is_end).unwrap_or(behind.len())
}

fn is_scheme(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_alphabetic)
        && text
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
}

/// Returns true if a path would be read as a scheme because of a colon in its first name.
fn needs_dot(path: &[u8]) -> bool {
    let name = path.split(|byte| matches!(byte, b'/' | b'?')).next();
    let mut parts = name.unwrap_or_default().split(|byte| *byte == b':');
    let first = parts.next().unwrap_or_default();
    parts.next().is_some() && !is_scheme(first)
}

/// Scheme and host, with the name as punycode. An address in another script stays unchanged, and is
/// refused later.
fn head_written(head: &[u8]) -> String {
    let given = String::from_utf8_lossy(head).into_owned();
    if given.is_ascii() || given.contains(['@', '%', '\\']) {
        return given;
    }
    let (scheme, _) = given.split_once("//").unwrap_or_default();
    let whole = if scheme.is_empty() { "https:" } else { "" };
    let Ok(url) = Url::parse(&format!("{whole}{given}/")) else {
        return given;
    };
    match (url.host(), url.port()) {
        (Some(url::Host::Domain(name)), None) => format!("{scheme}//{name}"),
        (Some(url::Host::Domain(name)), Some(port)) => format!("{scheme}//{name}:{port}"),
        _ => given,
    }
}

#[cfg(test)]
mod tests;
