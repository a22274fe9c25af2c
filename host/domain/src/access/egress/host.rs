//! Hosts: the normal form in which a host is compared, resolved and dialled, and operators'
//! patterns for hosts.

use crate::values::text::serde_as_text;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Characters of a name (RFC 1035, section 2.3.4, less the root's label).
const NAME_BYTES_MAX: usize = 253;
/// Characters of one label of a name.
const LABEL_BYTES_MAX: usize = 63;

/// The host of a target. Only [`Host::parse`] makes it, so that equal values mean the same host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name: lower case, ASCII, without the trailing dot. Punycode is kept as given and never
    /// decoded.
    Name(String),
    /// A literal IPv4 or IPv6 address.
    Address(IpAddr),
}

/// Text that is not a host in normal form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// A name, or a label of it, is too long.
    #[error(
        "it is longer than {NAME_BYTES_MAX} characters, or a part of it longer than \
             {LABEL_BYTES_MAX}"
    )]
    TooLong,
    /// A part is empty, begins or ends with a hyphen, or has an invalid character. Letters, digits,
    /// hyphens and underscores are valid.
    #[error(
        "a name is made of ASCII letters, digits, hyphens and underscores with single dots between"
    )]
    Character,
    /// It ends like an IPv4 address and is not four plain decimal numbers. Parsers disagree on
    /// octal, hexadecimal, short and long forms.
    #[error("an IPv4 address is four decimal numbers without leading zeros")]
    OddIpv4,
    /// It is in brackets but no IPv6 address, or has a zone.
    #[error("in brackets stands an IPv6 address without a zone")]
    Ipv6,
}

impl Host {
    /// Reads the host of a URL: a name, four decimal numbers, or an IPv6 address in brackets. Upper
    /// case and one trailing dot of a name are normalised. Other spellings are not interpreted.
    ///
    /// # Errors
    /// It is in another form, or is too long.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(HostError::Ipv6)?;
            return inner
                .parse()
                .map(|v6: Ipv6Addr| Self::Address(v6.into()))
                .map_err(|_| HostError::Ipv6);
        }
        if ends_in_a_number(text) {
            return text
                .parse()
                .map(|v4: Ipv4Addr| Self::Address(v4.into()))
                .map_err(|_| HostError::OddIpv4);
        }
        name(text).map(Self::Name)
    }

    /// The name to resolve; none for an address.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Address(_) => None,
        }
    }

    /// Returns whether it is this machine: by its address, or by the reserved name for it (RFC
    /// 6761, section 6.3).
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::Address(address) => address.is_loopback(),
        }
    }
}

impl fmt::Display for Host {
    /// Writes it as in a URL and in the `host` header.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(v4)) => v4.fmt(f),
            // By the URL standard: std writes an embedded IPv4 address in dotted form.
            Self::Address(IpAddr::V6(v6)) => url::Host::<&str>::Ipv6(*v6).fmt(f),
        }
    }
}

/// Returns whether some parsers would read it as an IPv4 address. Its last part is then a number,
/// decimal or hexadecimal (WHATWG URL, "ends in a number").
fn ends_in_a_number(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let last = text.rsplit('.').next().unwrap_or_default();
    let hexadecimal = || {
        last.strip_prefix("0x")
            .or_else(|| last.strip_prefix("0X"))
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    !last.is_empty() && (last.bytes().all(|b| b.is_ascii_digit()) || hexadecimal())
}

fn name(text: &str) -> Result<String, HostError> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.len() > NAME_BYTES_MAX || text.split('.').any(|label| label.len() > LABEL_BYTES_MAX) {
        return Err(HostError::TooLong);
    }
    let plain = |label: &str| {
        let edges = label.starts_with('-') || label.ends_with('-');
        !label.is_empty()
            && !edges
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    if !text.split('.').all(plain) {
        return Err(HostError::Character);
    }
    Ok(text.to_ascii_lowercase())
}

/// An address in its canonical form, without brackets. None for other text, and for an address in
/// another form.
pub(super) fn canonical_ip(text: &str) -> Option<IpAddr> {
    text.parse()
        .ok()
        .filter(|address: &IpAddr| address.to_string() == text)
}

/// The hosts that a grant covers.
///
/// `example.com` is that name and nothing else; `*.example.com` is every name below it, at any
/// depth, and not `example.com` itself; a literal address is that address, an IPv6 one in brackets.
/// A star elsewhere, or in the middle of a part, is invalid. `*` alone is every name and address,
/// and the grant must confirm it (`anyHost`). A star over a whole top-level domain, `*.com`, needs
/// the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, schemars::JsonSchema)]
#[schemars(with = "String")]
pub struct HostPattern(Pattern);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Pattern {
    Any,
    Below(String),
    Exactly(Host),
}

/// Text that is not a pattern for hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a host such as `example.com`, `*.example.com`, `192.0.2.1` or \
     `[2001:db8::1]`{}",
    fix(text)
)]
pub struct HostPatternError {
    /// The text as it was written.
    pub text: String,
    /// The fault in its host.
    #[source]
    pub source: HostError,
}

/// Returns the fix of a frequent mistake in a host.
fn fix(text: &str) -> String {
    let host = |rest: &str| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let authority = rest.get(..end).unwrap_or(rest);
        let without_port = authority
            .rsplit_once(':')
            .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        without_port.map_or(authority, |(host, _)| host).to_owned()
    };
    let meant = match text.split_once("://") {
        Some((_, rest)) => host(rest),
        None => host(text),
    };
    if meant != text && HostPattern::parse(&meant).is_ok() {
        return format!(
            "; write `host = \"{meant}\"`, and what else a request must have in `schemes`, `ports` \
             and `path`"
        );
    }
    if text.contains('*') {
        return "; a `*` stands alone or for the parts in front, as in `*.example.com`".to_owned();
    }
    String::new()
}

impl HostPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// The pattern without a leading `*.` is no host. The star is allowed for names only.
    pub fn parse(text: &str) -> Result<Self, HostPatternError> {
        let refused = |source| HostPatternError {
            text: text.to_owned(),
            source,
        };
        if text == "*" {
            return Ok(Self(Pattern::Any));
        }
        match text.strip_prefix("*.") {
            None => Host::parse(text)
                .map(|host| Self(Pattern::Exactly(host)))
                .map_err(refused),
            Some(rest) => match Host::parse(rest).map_err(refused)? {
                Host::Name(name) => Ok(Self(Pattern::Below(name))),
                Host::Address(_) => Err(refused(HostError::Character)),
            },
        }
    }

    /// Returns whether the pattern covers the host.
    #[must_use]
    pub fn matches(&self, host: &Host) -> bool {
        match (&self.0, host) {
            (Pattern::Any, _) => true,
            (Pattern::Exactly(exactly), host) => exactly == host,
            (Pattern::Below(_), Host::Address(_)) => false,
            // The dot is required, or `evilexample.com` would be below `example.com`.
            (Pattern::Below(above), Host::Name(name)) => name
                .strip_suffix(above.as_str())
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|rest| !rest.is_empty()),
        }
    }

    /// Returns whether it covers unrelated names: everything, or a whole top-level domain.
    #[must_use]
    pub fn is_boundless(&self) -> bool {
        match &self.0 {
            Pattern::Any => true,
            Pattern::Below(above) => !above.contains('.'),
            Pattern::Exactly(_) => false,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Pattern::Any => f.write_str("*"),
            Pattern::Below(above) => write!(f, "*.{above}"),
            Pattern::Exactly(host) => host.fmt(f),
        }
    }
}

serde_as_text!(HostPattern::parse);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_its_host_or_all_below_it_and_nothing_that_only_looks_like_it() {
        for (pattern, host, expected) in [
            ("a.com", "a.com", true),
            ("A.com.", "a.COM", true),
            ("a.com", "a.com.", true),
            ("a.com", "www.a.com", false),
            ("a.com", "evila.com", false),
            ("a.com", "a.com.evil.com", false),
            ("*.a.com", "www.a.com", true),
            ("*.a.com", "x.y.a.com", true),
            ("*.a.com", "a.com", false),
            ("*.a.com", "evila.com", false),
            ("*.a.com", "a.com.evil.com", false),
            ("*.a.com", "www.a.com.evil.com", false),
            ("*.com", "a.com", true),
            ("*", "a.com", true),
            ("*", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.10", false),
            ("[2001:db8:0::1]", "[2001:DB8::0001]", true),
            ("xn--bcher-kva.example", "xn--bcher-kva.example", true),
            ("bcher-kva.example", "xn--bcher-kva.example", false),
        ] {
            let matches = HostPattern::parse(pattern)
                .unwrap()
                .matches(&Host::parse(host).unwrap());
            assert_eq!(matches, expected, "{pattern} on {host}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "",
            "*.",
            "*a.com",
            "a.*.com",
            "**.a.com",
            "*.*.com",
            "*.192.0.2.1",
            "a.com:443",
            "https://a.com",
            "a.com/x",
            "a com",
            "*.[::1]",
        ] {
            assert!(HostPattern::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_a_star_over_everything_or_a_whole_top_level_domain_is_boundless() {
        for (pattern, expected) in [
            ("*", true),
            ("*.com", true),
            ("*.example.com", false),
            ("localhost", false),
        ] {
            assert_eq!(
                HostPattern::parse(pattern).unwrap().is_boundless(),
                expected,
                "{pattern}"
            );
        }
    }
}
