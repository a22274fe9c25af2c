//! The address at which the host listens, the location of its data, and its log.

use crate::log;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The port of a host whose configuration names none.
const PORT: u16 = 7777;

/// The address at which the host listens, the location of its data, and its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("x-read" = "start"))]
pub(crate) struct ServerConfig {
    /// Address and port. The API speaks plain HTTP: on anything but loopback, put a proxy in front
    /// that speaks TLS.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "listen")]
    pub(crate) listen: SocketAddr,
    /// The folder for everything that the host remembers, relative to the config file's;
    /// `$XDG_STATE_HOME/agent-host` without.
    pub(crate) data_dir: Option<PathBuf>,
    /// The file with the bearer token, made when it is not there; `token` in the data folder
    /// without.
    pub(crate) token_file: Option<PathBuf>,
    /// The way in which a changed configuration file is put in force: by itself, or on demand.
    pub(crate) reload: ReloadMode,
    /// Names, besides those of loopback, under which clients may address the host.
    pub(crate) hosts: Vec<String>,
    /// The filter of the log: `off`, `error`, `warn`, `info`, `debug` or `trace`, and parts of the
    /// program with their own level, such as `warn,broker=debug`. The variable `RUST_LOG` goes
    /// before it.
    #[serde(deserialize_with = "log_filter")]
    pub(crate) log: String,
    /// Issuers of tokens (JWT, OpenID Connect) that say who the users are, beside the keys that the
    /// host issues itself.
    pub(crate) identity: Vec<api::identity::IssuerConfig>,
    /// Limits for clients.
    pub(crate) limits: api::server::Limits,
}

/// The way in which a changed configuration file is put in force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReloadMode {
    /// As soon as the file is saved.
    #[default]
    Auto,
    /// Once somebody asks for it: by `config apply`, `reload`, SIGHUP or the API. A start takes the
    /// file as it is.
    Manual,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            data_dir: None,
            token_file: None,
            reload: ReloadMode::default(),
            hosts: Vec::new(),
            log: log::SERVING.to_owned(),
            identity: Vec::new(),
            limits: api::server::Limits::default(),
        }
    }
}

impl ServerConfig {
    /// Returns the URL at which programs on this machine, or in its network, reach the host.
    pub(super) fn base(&self) -> String {
        let ip = match self.listen.ip() {
            ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            ip => ip,
        };
        format!("http://{}", SocketAddr::new(ip, self.listen.port()))
    }
}

fn listen<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    listen_address(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

fn log_filter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    log::parse(&text).map_err(D::Error::custom)?;
    Ok(text)
}

/// Reads an address to listen at.
///
/// # Errors
/// It is none; the message has the address that was probably meant.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let text = text.trim();
    let bare = text.strip_prefix("http://").unwrap_or(text);
    let bare = bare.trim_end_matches('/');
    let address = |host: &str| match host.trim_matches(['[', ']']) {
        "" | "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        "*" => Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        host => host.parse().ok(),
    };
    let with_port = || {
        let (host, port) = bare.rsplit_once(':').unwrap_or(("", bare));
        Some(SocketAddr::new(address(host)?, port.parse().ok()?))
    };
    let without = || Some(SocketAddr::new(address(bare)?, PORT));
    let meant = bare.parse().ok().or_else(with_port).or_else(without);
    let fix = match meant {
        Some(meant) => format!("write `{meant}`"),
        None => "write the address in numbers, and a port from 0 to 65535".to_owned(),
    };
    Err(format!(
        "`{text}` is not an address with a port, such as `127.0.0.1:{PORT}` or `[::1]:{PORT}`; \
         {fix}"
    ))
}

#[cfg(test)]
mod tests {
    use super::listen_address;

    #[test]
    fn an_address_that_is_none_is_told_with_the_one_that_was_meant() {
        for (text, meant) in [
            ("127.0.0.1", "write `127.0.0.1:7777`"),
            ("localhost:8080", "write `127.0.0.1:8080`"),
            ("localhost", "write `127.0.0.1:7777`"),
            ("8080", "write `127.0.0.1:8080`"),
            (":8080", "write `127.0.0.1:8080`"),
            ("::1", "write `[::1]:7777`"),
            ("*:80", "write `0.0.0.0:80`"),
            ("http://127.0.0.1:8080/", "write `127.0.0.1:8080`"),
            ("my-host:80", "in numbers"),
            ("127.0.0.1:99999", "in numbers"),
            ("", "write `127.0.0.1:7777`"),
        ] {
            let reported = listen_address(text).unwrap_err();
            assert!(reported.contains(meant), "{text}: {reported}");
        }
        assert!(listen_address("[::1]:80").is_ok());
    }
}
