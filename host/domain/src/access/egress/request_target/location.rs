//! The location of a redirect, as servers write it, converted to a reference.

use std::fmt::Write as _;
use url::{Host, Url};

/// Writes a location as a reference. Text that cannot be a reference stays unchanged, and is
/// refused later.
pub(super) fn written(location: &[u8]) -> String {
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
        (Some(Host::Domain(name)), None) => format!("{scheme}//{name}"),
        (Some(Host::Domain(name)), Some(port)) => format!("{scheme}//{name}:{port}"),
        _ => given,
    }
}
