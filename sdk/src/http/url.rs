//! The URL of a request, read as strictly as the host reads it, so that a fault is named instead of
//! refused.

use super::URL_BYTES_MAX;

/// A URL in the parts that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) scheme: Scheme,
    /// Host and port, as written.
    pub(crate) authority: String,
    /// Path and query; begins with a slash.
    pub(crate) path_and_query: String,
}

/// A scheme that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl Url {
    /// Reads a URL and adds parameters to its query. A fragment is left out. The error says which
    /// rule is broken.
    pub(crate) fn parse(text: &str, query: &[(String, String)]) -> Result<Self, &'static str> {
        if text.len() > URL_BYTES_MAX {
            return Err("it is longer than 8 KiB");
        }
        if !text.bytes().all(|b| b.is_ascii_graphic() && b != b'\\') {
            return Err(
                "it has a character that is not printable ASCII, or a backslash; \
                 write others as percent escapes",
            );
        }
        let scheme = "it does not begin with `https://` or `http://`";
        let (name, rest) = text.split_once("://").ok_or(scheme)?;
        let scheme = [Scheme::Http, Scheme::Https]
            .into_iter()
            .find(|known| name.eq_ignore_ascii_case(known.as_str()))
            .ok_or(scheme)?;
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        check_authority(authority)?;
        let (rest, _fragment) = rest.split_once('#').unwrap_or((rest, ""));
        if !has_whole_escapes(rest) {
            return Err("it has a percent sign that begins no escape");
        }
        let slash = if rest.starts_with('/') { "" } else { "/" };
        let mut path_and_query = format!("{slash}{rest}");
        for (name, value) in query {
            let joint = if path_and_query.contains('?') {
                '&'
            } else {
                '?'
            };
            path_and_query.push(joint);
            push_encoded(&mut path_and_query, name);
            path_and_query.push('=');
            push_encoded(&mut path_and_query, value);
        }
        let url = Self {
            scheme,
            authority: authority.to_owned(),
            path_and_query,
        };
        if url.text().len() > URL_BYTES_MAX {
            return Err("it is longer than 8 KiB with its query");
        }
        Ok(url)
    }

    /// The URL as text.
    pub(crate) fn text(&self) -> String {
        format!(
            "{}://{}{}",
            self.scheme.as_str(),
            self.authority,
            self.path_and_query
        )
    }

    /// The host and the port, where one is written.
    pub(crate) fn host_and_port(&self) -> (&str, Option<&str>) {
        split_port(&self.authority)
    }

    /// The path, without the query.
    pub(crate) fn path(&self) -> &str {
        self.path_and_query
            .split_once('?')
            .map_or(&self.path_and_query, |(path, _)| path)
    }

    /// The parameters of the query, decoded.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = (String, String)> {
        let query = self.path_and_query.split_once('?').map(|(_, query)| query);
        query
            .into_iter()
            .flat_map(|query| query.split('&'))
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decoded(name), decoded(value))
            })
    }
}

/// Splits off the port. An IPv6 address has colons of its own, in brackets.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn check_authority(authority: &str) -> Result<(), &'static str> {
    if authority.contains('@') {
        return Err("it has a user or a password in it");
    }
    let (host, port) = split_port(authority);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if host.is_empty() || !host.bytes().all(plain) {
        return Err("it names no host");
    }
    let is_port = |port: &str| {
        !port.starts_with('0')
            && port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok()
    };
    if port.is_some_and(|port| !is_port(port)) {
        return Err("its port is not a number from 1 to 65535");
    }
    Ok(())
}

/// Returns true if every percent sign begins an escape.
fn has_whole_escapes(text: &str) -> bool {
    let mut chunks = text.split('%');
    chunks.next();
    chunks.all(|chunk| {
        chunk
            .as_bytes()
            .get(..2)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

fn push_encoded(text: &mut String, part: &str) {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
    ];
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.extend(DIGITS.get(usize::from(byte >> 4)));
            text.extend(DIGITS.get(usize::from(byte & 15)));
        }
    }
}

fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut chunks = part.split('%');
    bytes.extend(chunks.next().unwrap_or_default().bytes());
    for chunk in chunks {
        let escape = chunk
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escape {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(chunk.bytes().skip(2));
            }
            None => {
                bytes.push(b'%');
                bytes.extend(chunk.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
