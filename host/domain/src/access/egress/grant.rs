//! Egress grants: the network access that an operator grants a component.

use super::address::AddressRange;
use super::host::HostPattern;
use super::path::PathPattern;
use super::request_target::{Method, Scheme};
use serde::{Deserialize, Serialize};

/// The highest values in a grant.
pub mod ceiling {
    /// Redirects that are followed.
    pub const REDIRECTS_MAX: u8 = 5;
    /// Bytes of a request's body: 16 MiB.
    pub const REQUEST_BYTES_MAX: u64 = 16 << 20;
    /// Bytes of a response's body, before and after decompression: 256 MiB.
    pub const RESPONSE_BYTES_MAX: u64 = 256 << 20;
    /// Milliseconds from the request to the last byte of the response: ten minutes, which a model
    /// may need.
    pub const TOTAL_MS_MAX: u64 = 600_000;
    /// Ranges of addresses.
    pub const PRIVATE_ADDRESSES_MAX: usize = 64;
}

/// The default bytes of a request's body: 1 MiB.
const REQUEST_BYTES: u64 = 1 << 20;
/// The default bytes of a response's body: 8 MiB.
const RESPONSE_BYTES: u64 = 8 << 20;
/// The default milliseconds from the request to the last byte.
const TOTAL_MS: u64 = 30_000;

/// Requests that a component may send. A request that no grant of its list allows is denied; an
/// empty list in a grant allows nothing.
///
/// All of it must match: scheme, host, port, method and path. The addresses of the host must be
/// public, or in `privateAddresses`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EgressGrant {
    /// The host: `example.com` (that name alone), `*.example.com` (all names below it, without
    /// itself), an address, or `*`.
    pub host: HostPattern,
    /// Confirms that any host is meant. It is required for `*` and for a star over a whole
    /// top-level domain, and refused otherwise.
    #[serde(default)]
    pub any_host: bool,
    /// The schemes. Missing is `https` alone.
    #[serde(default = "https_only")]
    pub schemes: Vec<Scheme>,
    /// The ports. The default is the scheme's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<u16>>,
    /// The methods. The default is `GET` and `HEAD`.
    #[serde(default = "reading")]
    pub methods: Vec<Method>,
    /// The path, part by part: `*` inside a part, `**` for any number of parts. The default is
    /// every path.
    #[serde(default)]
    pub path: PathPattern,
    /// Redirects that are followed, at most 5. The default is none: the component sees the
    /// redirect. Each hop needs its own grant.
    #[serde(default)]
    #[schemars(range(max = 5))]
    pub redirects: u8,
    /// Addresses that may be dialled although they are not public, such as `127.0.0.1` or
    /// `10.1.0.0/16`. An address of a cloud's metadata must be named itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub private_addresses: Vec<AddressRange>,
    /// Bytes of a request's body, at most 16 MiB.
    #[serde(default = "request_bytes")]
    #[schemars(range(max = 16_777_216))]
    pub request_bytes_max: u64,
    /// Bytes of a response's body, before and after decompression, at most 256 MiB.
    #[serde(default = "response_bytes")]
    #[schemars(range(min = 1, max = 268_435_456))]
    pub response_bytes_max: u64,
    /// Milliseconds from the request to the last byte of the answer, redirects included, at most
    /// 600,000.
    #[serde(default = "total_ms")]
    #[schemars(range(min = 1, max = 600_000))]
    pub total_ms_max: u64,
}

fn https_only() -> Vec<Scheme> {
    vec![Scheme::Https]
}

fn reading() -> Vec<Method> {
    vec![Method::Get, Method::Head]
}

fn request_bytes() -> u64 {
    REQUEST_BYTES
}

fn response_bytes() -> u64 {
    RESPONSE_BYTES
}

fn total_ms() -> u64 {
    TOTAL_MS
}

/// Sizes and times of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Bytes of the request's body.
    pub request_bytes_max: u64,
    /// Bytes of the response's body, before and after decompression.
    pub response_bytes_max: u64,
    /// Milliseconds from the request to the last byte of the answer.
    pub total_ms_max: u64,
}

/// A grant with an obvious mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// Any host, without `anyHost`.
    #[error(
        "`host = \"{host}\"` reaches hosts that nobody named: name them; if all are meant, set \
         `anyHost = true` beside it"
    )]
    Boundless {
        /// The pattern.
        host: HostPattern,
    },
    /// `anyHost` together with a host that is not any.
    #[error(
        "`anyHost` stands beside `host = \"{host}\"`, which is not any host: take one of them away"
    )]
    Contradiction {
        /// The pattern.
        host: HostPattern,
    },
    /// A list is empty, so that the grant allows nothing.
    #[error("`{field}` is empty, so this grants nothing: name something or take the grant away")]
    Empty {
        /// The list.
        field: &'static str,
    },
    /// A list has a duplicate.
    #[error("`{field}` names something twice")]
    Twice {
        /// The list.
        field: &'static str,
    },
    /// A value out of its range.
    #[error("`{field}` is {value}; it goes from {min} to {max}")]
    Range {
        /// The key.
        field: &'static str,
        /// The value as it was written.
        value: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
}

impl EgressGrant {
    /// A grant of one host, with defaults for everything else.
    #[must_use]
    pub fn of(host: HostPattern) -> Self {
        Self {
            host,
            any_host: false,
            schemes: https_only(),
            ports: None,
            methods: reading(),
            path: PathPattern::default(),
            redirects: 0,
            private_addresses: Vec::new(),
            request_bytes_max: REQUEST_BYTES,
            response_bytes_max: RESPONSE_BYTES,
            total_ms_max: TOTAL_MS,
        }
    }

    /// Checks for obvious mistakes, before anything runs under the grant. An unchecked grant is no
    /// danger: it never opens every host without `anyHost`, and never exceeds the ceilings.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), GrantError> {
        match (self.host.is_boundless(), self.any_host) {
            (true, false) => {
                return Err(GrantError::Boundless {
                    host: self.host.clone(),
                });
            }
            (false, true) => {
                return Err(GrantError::Contradiction {
                    host: self.host.clone(),
                });
            }
            (true, true) | (false, false) => {}
        }
        list("schemes", &self.schemes)?;
        list("methods", &self.methods)?;
        if let Some(ports) = &self.ports {
            list("ports", ports)?;
            ports
                .iter()
                .try_for_each(|&port| range("ports", port.into(), 1, u16::MAX.into()))?;
        }
        if !self.private_addresses.is_empty() {
            list("privateAddresses", &self.private_addresses)?;
        }
        range(
            "privateAddresses",
            self.private_addresses.len() as u64,
            0,
            ceiling::PRIVATE_ADDRESSES_MAX as u64,
        )?;
        range(
            "redirects",
            self.redirects.into(),
            0,
            ceiling::REDIRECTS_MAX.into(),
        )?;
        range(
            "requestBytesMax",
            self.request_bytes_max,
            0,
            ceiling::REQUEST_BYTES_MAX,
        )?;
        range(
            "responseBytesMax",
            self.response_bytes_max,
            1,
            ceiling::RESPONSE_BYTES_MAX,
        )?;
        range("totalMsMax", self.total_ms_max, 1, ceiling::TOTAL_MS_MAX)
    }

    /// Returns whether the grant covers the port, for this scheme.
    #[must_use]
    pub fn has_port(&self, port: u16, scheme: Scheme) -> bool {
        self.ports.as_ref().map_or_else(
            || port == scheme.default_port(),
            |ports| ports.contains(&port),
        )
    }

    /// The sizes and times, never above the ceilings.
    #[must_use]
    pub fn limits(&self) -> RequestLimits {
        RequestLimits {
            request_bytes_max: self.request_bytes_max.min(ceiling::REQUEST_BYTES_MAX),
            response_bytes_max: self.response_bytes_max.min(ceiling::RESPONSE_BYTES_MAX),
            total_ms_max: self.total_ms_max.min(ceiling::TOTAL_MS_MAX),
        }
    }

    /// The redirects that are followed, never above the ceiling.
    #[must_use]
    pub fn redirects(&self) -> u8 {
        self.redirects.min(ceiling::REDIRECTS_MAX)
    }
}

fn list<T: PartialEq>(field: &'static str, entries: &[T]) -> Result<(), GrantError> {
    if entries.is_empty() {
        return Err(GrantError::Empty { field });
    }
    let twice = entries
        .iter()
        .enumerate()
        .any(|(at, entry)| entries.iter().skip(at + 1).any(|other| other == entry));
    if twice {
        Err(GrantError::Twice { field })
    } else {
        Ok(())
    }
}

fn range(field: &'static str, value: u64, min: u64, max: u64) -> Result<(), GrantError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(GrantError::Range {
            field,
            value,
            min,
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn grant(value: Value) -> EgressGrant {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_not_written_is_the_least() {
        let grant = grant(json!({"host": "example.com"}));
        assert_eq!(
            grant,
            EgressGrant::of(HostPattern::parse("example.com").unwrap())
        );
        assert_eq!(
            (grant.schemes.as_slice(), grant.methods.as_slice()),
            (&[Scheme::Https][..], &[Method::Get, Method::Head][..])
        );
        assert_eq!(
            (
                grant.redirects(),
                grant.any_host,
                grant.private_addresses.len()
            ),
            (0, false, 0)
        );
        assert!(
            grant.has_port(443, Scheme::Https)
                && grant.has_port(80, Scheme::Http)
                && !grant.has_port(80, Scheme::Https)
        );
        assert_eq!(grant.check(), Ok(()));
    }

    #[test]
    fn a_grant_reads_as_it_was_written() {
        let written = json!({
            "host": "*.example.com", "anyHost": false, "schemes": ["https", "http"], "ports": [8443], "methods": ["GET", "POST"], "path": "/v1/**",
            "redirects": 5, "privateAddresses": ["10.0.0.0/8", "::1"], "requestBytesMax": 1, "responseBytesMax": 2, "totalMsMax": 3,
        });
        let grant = grant(written.clone());
        assert_eq!(grant.check(), Ok(()));
        assert_eq!(serde_json::to_value(&grant).unwrap(), written);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_key() {
        for (value, expected) in [
            (
                json!({"host": "*"}),
                "`host = \"*\"` reaches hosts that nobody named: name them; if all are meant, set \
             `anyHost = true` beside it",
            ),
            (
                json!({"host": "*.com"}),
                "`host = \"*.com\"` reaches hosts that nobody named: name them; if all are meant, set \
             `anyHost = true` beside it",
            ),
            (
                json!({"host": "a.com", "anyHost": true}),
                "`anyHost` stands beside `host = \"a.com\"`, which is not any host: take one of them away",
            ),
            (
                json!({"host": "a.com", "methods": []}),
                "`methods` is empty, so this grants nothing: name something or take the grant away",
            ),
            (
                json!({"host": "a.com", "ports": []}),
                "`ports` is empty, so this grants nothing: name something or take the grant away",
            ),
            (
                json!({"host": "a.com", "schemes": ["https", "https"]}),
                "`schemes` names something twice",
            ),
            (
                json!({"host": "a.com", "ports": [0]}),
                "`ports` is 0; it goes from 1 to 65535",
            ),
            (
                json!({"host": "a.com", "redirects": 6}),
                "`redirects` is 6; it goes from 0 to 5",
            ),
            (
                json!({"host": "a.com", "responseBytesMax": 268_435_457}),
                "`responseBytesMax` is 268435457; it goes from 1 to 268435456",
            ),
            (
                json!({"host": "a.com", "totalMsMax": 0}),
                "`totalMsMax` is 0; it goes from 1 to 600000",
            ),
        ] {
            assert_eq!(
                grant(value.clone()).check().unwrap_err().to_string(),
                expected,
                "{value}"
            );
        }
        assert_eq!(grant(json!({"host": "*", "anyHost": true})).check(), Ok(()));
    }

    #[test]
    fn what_does_not_read_is_no_grant() {
        for value in [
            json!({}),
            json!({"host": "a.com", "hosts": ["b.com"]}),
            json!({"host": "https://a.com"}),
            json!({"host": "a.com", "schemes": ["file"]}),
            json!({"host": "a.com", "methods": ["CONNECT"]}),
            json!({"host": "a.com", "methods": ["get"]}),
            json!({"host": "a.com", "ports": [70_000]}),
            json!({"host": "a.com", "path": "v1"}),
            json!({"host": "a.com", "privateAddresses": ["0.0.0.0/0"]}),
            json!({"host": "a.com", "privateAddresses": ["8.8.8.8"]}),
        ] {
            assert!(
                serde_json::from_value::<EgressGrant>(value.clone()).is_err(),
                "{value}"
            );
        }
    }

    #[test]
    fn a_grant_that_nobody_checked_gives_no_more_than_the_ceilings() {
        let mut grant = EgressGrant::of(HostPattern::parse("a.com").unwrap());
        (
            grant.request_bytes_max,
            grant.response_bytes_max,
            grant.total_ms_max,
            grant.redirects,
        ) = (u64::MAX, u64::MAX, u64::MAX, u8::MAX);
        let limits = grant.limits();
        assert_eq!(limits.request_bytes_max, ceiling::REQUEST_BYTES_MAX);
        assert_eq!(limits.response_bytes_max, ceiling::RESPONSE_BYTES_MAX);
        assert_eq!(limits.total_ms_max, ceiling::TOTAL_MS_MAX);
        assert_eq!(grant.redirects(), ceiling::REDIRECTS_MAX);
    }

    #[test]
    fn the_schema_knows_every_key_and_no_other() {
        let schema = serde_json::to_value(schemars::schema_for!(EgressGrant)).unwrap();
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["required"], json!(["host"]));
        assert_eq!(schema["properties"].as_object().unwrap().len(), 11);
    }
}
