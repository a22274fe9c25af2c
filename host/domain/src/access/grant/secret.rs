//! Secrets: which of the operator's secrets the host puts into which place of a component's
//! requests. This module has no values.

use crate::access::egress::{
    EgressGrant, Host, HostError, RequestHeader, Scheme, Target, request_header,
};
use serde::{Deserialize, Serialize};

/// Characters of the name of a slot.
const SLOT_CHARS_MAX: usize = 128;
/// Characters of a prefix.
const PREFIX_CHARS_MAX: usize = 128;

/// The only place in a request where a secret is inserted.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum SecretSlot {
    /// The value of this header, such as `authorization`.
    Header(String),
    /// The value of this parameter of the query.
    Query(String),
    /// The part of the path directly after this beginning, such as `/bot`, up to its end or the
    /// next `/`.
    Path(String),
}

/// A secret that is bound to a component, one port of one host and one slot. The component names it
/// as `{{secret.<name>}}`, and never sees its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretGrant {
    /// Its name in the config's `secrets`.
    pub secret: String,
    /// The host, exactly, such as `api.example.com`.
    pub host: String,
    /// The port of the host. Defaults to 443, that of `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: Option<u16>,
    /// The slot of the request that it goes to.
    pub slot: SecretSlot,
    /// Text before it in the slot, such as `Bearer `.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
}

/// A secret's grant with an obvious mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretGrantError {
    /// The host is a pattern, or no host at all.
    #[error(
        "`{host}` is not one plain host such as `api.example.com`; a secret is bound to one host"
    )]
    Host {
        /// The host as it was written.
        host: String,
        /// The error in it.
        #[source]
        source: HostError,
    },
    /// The component may send no request there.
    #[error(
        "the component is granted no request to `{host}` at this port, the secret's `port` or that \
         of the scheme; add it to `network`, name \
         the port, or take the secret away"
    )]
    NotGranted {
        /// The host.
        host: String,
    },
    /// The component may send unencrypted requests there.
    #[error(
        "the component may send plain `http` to `{host}`, and a secret goes over `https` \
             alone; take `http` out of the grant's `schemes`"
    )]
    InTheClear {
        /// The host.
        host: String,
    },
    /// A header that is invalid, or the host's own.
    #[error(
        "`{name}` is not a header that a secret can go to: it is no name of a header, or one \
             that the host sets itself"
    )]
    Header {
        /// The header's name as it was written.
        name: String,
    },
    /// A parameter whose name needs escaping.
    #[error(
        "`{name}` is not a parameter that a secret can go to: take 1 to {SLOT_CHARS_MAX} of \
             letters, digits, `-`, `.`, `_` and `~`"
    )]
    Parameter {
        /// The parameter's name as it was written.
        name: String,
    },
    /// The beginning of a path that needs escaping.
    #[error(
        "`{beginning}` is no beginning of a path that a secret can stand behind: take `/` and up \
             to {SLOT_CHARS_MAX} of letters, digits, `-`, `.`, `_`, `~` and `/`"
    )]
    Path {
        /// The beginning as it was written.
        beginning: String,
    },
    /// A prefix that is invalid in a header.
    #[error(
        "`prefix` must be at most {PREFIX_CHARS_MAX} visible ASCII characters and spaces, and \
             hold no placeholder; a slot in a path has its beginning and no prefix"
    )]
    Prefix,
}

impl SecretGrant {
    /// Returns the placeholder that a component writes in place of the secret.
    #[must_use]
    pub fn placeholder(&self) -> String {
        format!("{{{{secret.{}}}}}", self.secret)
    }

    /// Returns the placeholder as it is in a parsed path: with its braces escaped.
    #[must_use]
    pub fn placeholder_in_path(&self) -> String {
        format!("%7B%7Bsecret.{}%7D%7D", self.secret)
    }

    /// Returns whether it is bound to this host and port.
    #[must_use]
    pub fn is_for(&self, target: &Target) -> bool {
        let port = self.port.unwrap_or(target.scheme().default_port());
        port == target.port() && Host::parse(&self.host).is_ok_and(|bound| bound == *target.host())
    }

    /// Returns whether it has the same place as another.
    #[must_use]
    pub fn is_beside(&self, other: &Self) -> bool {
        let slots = match (&self.slot, &other.slot) {
            (SecretSlot::Header(one), SecretSlot::Header(other)) => one.eq_ignore_ascii_case(other),
            (SecretSlot::Query(one), SecretSlot::Query(other)) => one == other,
            (SecretSlot::Path(one), SecretSlot::Path(other)) => one == other,
            (SecretSlot::Header(_) | SecretSlot::Query(_) | SecretSlot::Path(_), _) => false,
        };
        let usual = |port: u16| {
            [Scheme::Http, Scheme::Https]
                .iter()
                .any(|scheme| scheme.default_port() == port)
        };
        let ports = match (self.port, other.port) {
            (Some(one), Some(other)) => one == other,
            (Some(port), None) | (None, Some(port)) => usual(port),
            (None, None) => true,
        };
        slots
            && ports
            && matches!((Host::parse(&self.host), Host::parse(&other.host)), (Ok(one), Ok(other)) if one == other)
    }

    /// Checks for obvious mistakes, given the requests that the same component is granted.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, network: &[EgressGrant]) -> Result<(), SecretGrantError> {
        let Self {
            host: written,
            slot,
            prefix,
            ..
        } = self;
        let host = Host::parse(written).map_err(|source| SecretGrantError::Host {
            host: written.clone(),
            source,
        })?;
        let mut covering = network.iter().filter(|grant| grant.host.matches(&host));
        let reached = |grant: &EgressGrant| {
            let port = |scheme: Scheme| self.port.unwrap_or(scheme.default_port());
            grant
                .schemes
                .iter()
                .any(|scheme| grant.has_port(port(*scheme), *scheme))
        };
        if !covering.clone().any(reached) {
            return Err(SecretGrantError::NotGranted {
                host: written.clone(),
            });
        }
        if !host.is_loopback() && covering.any(|grant| grant.schemes.contains(&Scheme::Http)) {
            return Err(SecretGrantError::InTheClear {
                host: written.clone(),
            });
        }
        match slot {
            SecretSlot::Header(name) if !is_free_header(name) => {
                return Err(SecretGrantError::Header { name: name.clone() });
            }
            SecretSlot::Query(name) if !is_plain_parameter(name) => {
                return Err(SecretGrantError::Parameter { name: name.clone() });
            }
            SecretSlot::Path(beginning) if !is_plain_beginning(beginning) => {
                return Err(SecretGrantError::Path {
                    beginning: beginning.clone(),
                });
            }
            SecretSlot::Path(_) if !prefix.is_empty() => return Err(SecretGrantError::Prefix),
            SecretSlot::Header(_) | SecretSlot::Query(_) | SecretSlot::Path(_) => {}
        }
        let plain = prefix.len() <= PREFIX_CHARS_MAX
            && prefix
                .bytes()
                .all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if plain && !prefix.contains("{{secret.") {
            Ok(())
        } else {
            Err(SecretGrantError::Prefix)
        }
    }
}

/// Returns whether it is a valid header name (RFC 9110, section 5.6.2) that the host does not set
/// itself.
fn is_free_header(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let named = (1..=SLOT_CHARS_MAX).contains(&name.len()) && name.bytes().all(token);
    named
        && matches!(
            request_header(name),
            RequestHeader::Sent | RequestHeader::Credential
        )
}

fn is_plain_parameter(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    (1..=SLOT_CHARS_MAX).contains(&name.len()) && name.bytes().all(plain)
}

/// Returns whether a secret can directly follow it in a path.
fn is_plain_beginning(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let dots = |part: &str| part == "." || part == "..";
    (1..=SLOT_CHARS_MAX).contains(&text.len())
        && text.starts_with('/')
        && text.bytes().all(plain)
        && !text.contains("//")
        && !text.split('/').any(dots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::egress::HostPattern;

    fn grant(host: &str, slot: SecretSlot, prefix: &str) -> SecretGrant {
        SecretGrant {
            secret: "s".to_owned(),
            host: host.to_owned(),
            port: None,
            slot,
            prefix: prefix.to_owned(),
        }
    }

    fn header(name: &str) -> SecretSlot {
        SecretSlot::Header(name.to_owned())
    }

    fn query(name: &str) -> SecretSlot {
        SecretSlot::Query(name.to_owned())
    }

    #[test]
    fn a_grant_that_cannot_be_meant_is_refused_with_the_reason() {
        let of = |host: &str, schemes: &[Scheme]| EgressGrant {
            schemes: schemes.to_vec(),
            ..EgressGrant::of(HostPattern::parse(host).unwrap())
        };
        let network = [
            of("*.a.com", &[Scheme::Https]),
            of("b.com", &[Scheme::Https]),
            of("b.com", &[Scheme::Http]),
            of("127.0.0.1", &[Scheme::Http]),
        ];
        let auth = || header("authorization");
        let no_host = Some("is not one plain host");
        let no_header = Some("is not a header");
        for (host, slot, prefix, expected) in [
            ("api.a.com", auth(), "Bearer ", None),
            ("API.a.com.", header("X-Api-Key"), "", None),
            ("api.a.com", query("key"), "", None),
            ("127.0.0.1", auth(), "", None),
            ("*.a.com", auth(), "", no_host),
            ("https://api.a.com", auth(), "", no_host),
            ("api.a.com:443", auth(), "", no_host),
            ("a.com", auth(), "", Some("is granted no request to")),
            ("b.com", auth(), "", Some("plain `http`")),
            ("api.a.com", header("host"), "", no_header),
            ("api.a.com", header("Content-Length"), "", no_header),
            ("api.a.com", header("transfer-encoding"), "", no_header),
            ("api.a.com", header("connection"), "", no_header),
            ("api.a.com", header("proxy-authorization"), "", no_header),
            ("api.a.com", header("two words"), "", no_header),
            ("api.a.com", header(""), "", no_header),
            ("api.a.com", query("a=b"), "", Some("is not a parameter")),
            ("api.a.com", auth(), "Bearer\r\n", Some("`prefix`")),
            ("api.a.com", auth(), "{{secret.other}}", Some("`prefix`")),
        ] {
            let reported = grant(host, slot.clone(), prefix)
                .check(&network)
                .err()
                .map(|error| error.to_string());
            let fits = match (&reported, expected) {
                (None, None) => true,
                (Some(reported), Some(expected)) => reported.contains(expected),
                _ => false,
            };
            assert!(fits, "{host} {slot:?} {prefix:?}: {reported:?}");
        }
    }

    #[test]
    fn a_secret_goes_to_one_port() {
        let at = |port| SecretGrant {
            port,
            ..grant("a.com", header("authorization"), "")
        };
        for (port, url, expected) in [
            (None, "https://a.com/", true),
            (None, "https://a.com:443/", true),
            (None, "http://a.com/", true),
            (None, "https://a.com:80/", false),
            (None, "https://a.com:8443/", false),
            (Some(8443), "https://a.com:8443/", true),
            (Some(8443), "https://a.com/", false),
            (Some(8443), "https://b.com:8443/", false),
        ] {
            assert_eq!(
                at(port).is_for(&Target::parse(url).unwrap()),
                expected,
                "{port:?} {url}"
            );
        }
        let network = |ports: Option<Vec<u16>>| {
            [EgressGrant {
                ports,
                ..EgressGrant::of(HostPattern::parse("a.com").unwrap())
            }]
        };
        for (port, ports, fits) in [
            (None, None, true),
            (None, Some(vec![8443]), false),
            (Some(8443), Some(vec![443, 8443]), true),
            (Some(8443), None, false),
        ] {
            let checked = at(port).check(&network(ports.clone()));
            assert_eq!(checked.is_ok(), fits, "{port:?} {ports:?}: {checked:?}");
        }
        for (one, other, beside) in [
            (None, None, true),
            (None, Some(443), true),
            (None, Some(8443), false),
            (Some(1), Some(2), false),
        ] {
            assert_eq!(at(one).is_beside(&at(other)), beside, "{one:?} {other:?}");
        }
    }

    #[test]
    fn two_grants_are_beside_each_other_if_they_would_fill_the_same_slot() {
        let one = grant("a.com", header("Authorization"), "");
        for (other, expected) in [
            (grant("A.com.", header("authorization"), "Bearer "), true),
            (grant("b.com", header("authorization"), ""), false),
            (grant("a.com", header("x-key"), ""), false),
            (grant("a.com", query("Authorization"), ""), false),
        ] {
            assert_eq!(one.is_beside(&other), expected, "{other:?}");
        }
    }
}
