//! The address at which the host listens, and the location of its data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The port of a host whose configuration names none.
const PORT: u16 = 7777;

/// The address at which the host listens, and the location of its data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ServerConfig {
    /// Address and port. The API speaks plain HTTP: on anything but loopback, put a proxy in front
    /// that speaks TLS.
    #[schemars(with = "String")]
    pub(crate) listen: SocketAddr,
    /// The folder for everything that the host remembers, relative to the config file's;
    /// `$XDG_STATE_HOME/agent-host` without.
    pub(crate) data_dir: Option<PathBuf>,
    /// The file with the bearer token, made when it is not there; `token` in the data folder
    /// without.
    pub(crate) token_file: Option<PathBuf>,
    /// Names, besides those of loopback, under which clients may address the host.
    pub(crate) hosts: Vec<String>,
    /// Issuers of tokens (JWT, OpenID Connect) that say who the users are, beside the keys that the
    /// host issues itself.
    pub(crate) identity: Vec<api::identity::IssuerConfig>,
    /// Limits for clients.
    pub(crate) limits: api::server::Limits,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            data_dir: None,
            token_file: None,
            hosts: Vec::new(),
            identity: Vec::new(),
            limits: api::server::Limits::default(),
        }
    }
}
