//! A request as it leaves the component: complete and checked.

use super::Method;
use super::error::HttpError;
use super::url::{Scheme, Url};
use serde::de::DeserializeOwned;
use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;

/// The addresses that `localhost` leads to.
const LOOPBACK: [&str; 2] = ["127.0.0.1", "::1"];
/// The end of the lines that grant a request to a name.
const UNKNOWN_ADDRESS: &str =
    "; where the name leads to an address that is not public, its `privateAddresses` are missing";

/// A request as it leaves the component. A test's server answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) body_bytes_max: usize,
}

impl Outgoing {
    /// Its method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// Its URL, with the query and without a fragment. A secret in it is a placeholder still.
    #[must_use]
    pub fn url(&self) -> String {
        self.url.text()
    }

    /// The host, with the port where one is written.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.url.authority
    }

    /// The path, as it is escaped in the URL.
    #[must_use]
    pub fn path(&self) -> &str {
        self.url.path()
    }

    /// The value of the first parameter of that name in the query, decoded.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<String> {
        self.url
            .parameters()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value)
    }

    /// The value of the first header of that name, in whatever case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// Its body; empty when there is none.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Its body, read as JSON.
    ///
    /// # Errors
    /// The body is not JSON of the type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// The limit of time that it was given.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// The headers in their order.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// The parameters of the query in their order, decoded.
    #[must_use]
    pub fn parameters(&self) -> Vec<(String, String)> {
        self.url.parameters().collect()
    }

    /// The host's error for the request when it is not granted, for a test's server too.
    #[must_use]
    pub fn refused(&self) -> HttpError {
        // The query may be long.
        let scheme = self.url.scheme.as_str();
        let asked = format!(
            "`{} {scheme}://{}{}`",
            self.method,
            self.authority(),
            self.path()
        );
        HttpError::Refused {
            asked,
            grants: self.grants(),
        }
    }

    /// The lines of the config that grant the request and the secrets that it names, without what
    /// they say by default.
    fn grants(&self) -> String {
        let (host, port) = self.url.host_and_port();
        // The names may be a stranger's: quoted, they cannot end the text in which they stand.
        let mut network = format!("host = {host:?}");
        if self.url.scheme == Scheme::Http {
            network.push_str(", schemes = [\"http\"]");
        }
        if let Some(port) = port {
            // Writing to a `String` cannot fail.
            let _ = write!(network, ", ports = [{port}]");
        }
        let behind = behind(host);
        if let Behind::Private(addresses) = &behind {
            let _ = write!(network, ", privateAddresses = {addresses:?}");
        }
        if !matches!(self.method, Method::Get | Method::Head) {
            let _ = write!(network, ", methods = [\"{}\"]", self.method);
        }
        let mut lines = format!("network = [{{ {network} }}]");
        let headers = self.headers.iter().filter_map(|(name, value)| {
            secret_in(value).map(|secret| self.secret_grant(secret, "header", name))
        });
        let parameters = self.url.parameters().filter_map(|(name, value)| {
            secret_in(&value).map(|secret| self.secret_grant(secret, "query", &name))
        });
        let secrets: Vec<String> = headers.chain(parameters).collect();
        if !secrets.is_empty() {
            let _ = write!(lines, " and secrets = [{}]", secrets.join(", "));
        }
        if matches!(behind, Behind::Unknown) {
            lines.push_str(UNKNOWN_ADDRESS);
        }
        lines
    }

    /// An entry of the config's `secrets` for one slot.
    pub(crate) fn secret_grant(&self, secret: &str, slot: &str, name: &str) -> String {
        let (host, port) = self.url.host_and_port();
        let port = port.map_or_else(String::new, |port| format!(", port = {port}"));
        format!("{{ secret = {secret:?}, host = {host:?}{port}, slot = {{ {slot} = {name:?} }} }}")
    }
}

/// The addresses behind a host, as far as its name tells.
enum Behind<'a> {
    /// Addresses of this machine or of a private network, which a grant has to name once more.
    Private(Vec<&'a str>),
    /// A public address.
    Public,
    /// An address that only a lookup of the name tells.
    Unknown,
}

fn behind(host: &str) -> Behind<'_> {
    let address = host.trim_matches(['[', ']']);
    match address.parse::<IpAddr>() {
        Ok(parsed) if is_private(parsed) => Behind::Private(vec![address]),
        Ok(_) => Behind::Public,
        Err(_) if is_localhost(host) => Behind::Private(LOOPBACK.to_vec()),
        Err(_) => Behind::Unknown,
    }
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_loopback() || address.is_private() || address.is_link_local()
        }
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
    }
}

fn is_localhost(host: &str) -> bool {
    let last = host.rsplit('.').next();
    last.is_some_and(|last| last.eq_ignore_ascii_case("localhost"))
}

/// The name of the secret whose placeholder ends a value.
pub(crate) fn secret_in(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("{{secret.")?;
    rest.strip_suffix("}}")
}

/// The value of the first header of a name, in whatever case.
pub(crate) fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(other, _)| other.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}
