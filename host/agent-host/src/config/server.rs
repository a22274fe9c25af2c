//! The address at which the host listens, the location of its data, its log, and the issuers of
//! tokens that it trusts.

use super::finding::{Finding, error, warning};
use crate::log;
use api::identity::{IssuerConfig, plain_again};
use domain::user::Scope;
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
    pub(crate) identity: Vec<IssuerConfig>,
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

/// Finds faulty issuers: entries that make no sense, that occur twice, or of which several have
/// plain users. Also warns of entries that are probably not meant: one that makes everybody an
/// administrator, and several that leave open how the user ids of each are derived.
pub(super) fn check_identity(issuers: &[IssuerConfig], findings: &mut Vec<Finding>) {
    for (index, issuer) in issuers.iter().enumerate() {
        let section = format!("server.identity[{index}]");
        findings.extend(
            issuer
                .problems()
                .into_iter()
                .map(|problem| error(format!("{section}.{}", problem.key), problem.message)),
        );
        if let Some(first) = issuers
            .iter()
            .take(index)
            .position(|earlier| earlier.issuer == issuer.issuer)
        {
            findings.push(error(
                format!("{section}.issuer"),
                format!("server.identity[{first}] is the same issuer"),
            ));
        }
        if issuer.scopes_claim.is_none() && issuer.scopes.contains(&Scope::Admin) {
            let message = "every token of this issuer makes its user an administrator; name the claim that \
                 says which with `scopesClaim`";
            findings.push(warning(format!("{section}.scopes"), message));
        }
    }
    let again = plain_again(issuers).map(|(index, problem)| {
        error(
            format!("server.identity[{index}].{}", problem.key),
            problem.message,
        )
    });
    findings.extend(again);
    findings.extend(unsaid(issuers));
}

/// Warns if none of several issuers is set to have plain users. Then none has them, not even one
/// that was the only issuer before.
fn unsaid(issuers: &[IssuerConfig]) -> Option<Finding> {
    if issuers.len() < 2
        || issuers
            .iter()
            .any(|issuer| issuer.plain_users == Some(true))
    {
        return None;
    }
    let index = issuers
        .iter()
        .position(|issuer| issuer.plain_users.is_none())?;
    let message = "of several issuers none has plain users unless one says so, and users whose \
                   only issuer this was until now are other \
                   users from now on; set it to true to keep them, and to false where there are \
                   none to keep";
    Some(warning(
        format!("server.identity[{index}].plainUsers"),
        message,
    ))
}

#[cfg(test)]
mod tests {
    use super::{IssuerConfig, check_identity, listen_address};
    use crate::config::{Finding, Severity};
    use serde_json::{Value, json};

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

    /// Returns the findings about an issuer with these entries besides the required ones.
    fn findings(more: &Value) -> Vec<Finding> {
        let mut issuer = json!({ "issuer": "https://id.example", "audience": ["agent-host"], "algorithms": ["RS256"] });
        issuer
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let mut findings = Vec::new();
        check_identity(&[serde_json::from_value(issuer).unwrap()], &mut findings);
        findings
    }

    #[test]
    fn an_issuer_that_cannot_be_meant_is_told_with_its_key() {
        assert_eq!(findings(&json!({})), []);
        for (more, key) in [
            (json!({ "issuer": "" }), "issuer"),
            (json!({ "issuer": "http://id.example" }), "issuer"),
            (json!({ "issuer": "id.example" }), "issuer"),
            (json!({ "audience": [] }), "audience"),
            (json!({ "audience": ["a", ""] }), "audience"),
            (json!({ "algorithms": [] }), "algorithms"),
            (json!({ "jwksUrl": "http://id.example/keys" }), "jwksUrl"),
            (json!({ "jwksUrl": "file:///keys" }), "jwksUrl"),
            (json!({ "userClaim": "" }), "userClaim"),
            (json!({ "scopesClaim": "" }), "scopesClaim"),
            (json!({ "scopes": [] }), "scopes"),
            (json!({ "refreshS": 100, "hardExpiryS": 99 }), "hardExpiryS"),
        ] {
            let found = findings(&more);
            assert_eq!(
                found
                    .iter()
                    .map(|found| found.key.as_str())
                    .collect::<Vec<_>>(),
                [format!("server.identity[0].{key}")],
                "{more}"
            );
            assert!(
                found.iter().all(|found| found.severity == Severity::Error),
                "{more}"
            );
        }
        // The keys of this machine may come in the clear, and what a token has in `iss` need not be
        // a URL.
        assert_eq!(
            findings(&json!({ "issuer": "accounts", "jwksUrl": "http://127.0.0.1:1/keys" })),
            []
        );
    }

    #[test]
    fn what_makes_everybody_an_administrator_is_warned_of() {
        let found = findings(&json!({ "scopes": ["read", "admin"] }));
        assert_eq!(
            found
                .iter()
                .map(|found| (found.severity, found.key.as_str()))
                .collect::<Vec<_>>(),
            [(Severity::Warning, "server.identity[0].scopes")]
        );
        assert_eq!(
            findings(&json!({ "scopes": ["read", "admin"], "scopesClaim": "scope" })),
            []
        );
    }

    #[test]
    fn one_issuer_at_most_has_plain_users_and_of_several_it_is_said_which() {
        let several = |plain: &[Option<bool>]| {
            let issuer = |(n, plain): (usize, &Option<bool>)| {
                let issuer = json!({ "issuer": format!("https://{n}.example"), "audience": ["a"], "algorithms": ["RS256"], "plainUsers": plain });
                serde_json::from_value(issuer).unwrap()
            };
            let mut findings = Vec::new();
            check_identity(
                &plain.iter().enumerate().map(issuer).collect::<Vec<_>>(),
                &mut findings,
            );
            findings
                .into_iter()
                .map(|found| (found.severity, found.key))
                .collect::<Vec<_>>()
        };
        let at = |severity, n: usize| (severity, format!("server.identity[{n}].plainUsers"));
        for fine in [
            &[None][..],
            &[Some(true)],
            &[Some(false)],
            &[Some(true), None],
            &[None, Some(true)],
            &[Some(false); 3],
        ] {
            assert_eq!(several(fine), [], "{fine:?}");
        }
        assert_eq!(several(&[Some(true), Some(true)]), [at(Severity::Error, 1)]);
        assert_eq!(
            several(&[Some(true), None, Some(true), Some(true)]),
            [at(Severity::Error, 2), at(Severity::Error, 3)]
        );
        assert_eq!(several(&[None, None]), [at(Severity::Warning, 0)]);
        assert_eq!(several(&[Some(false), None]), [at(Severity::Warning, 1)]);
    }

    #[test]
    fn no_symmetric_algorithm_and_no_none_can_be_chosen() {
        for wrong in ["HS256", "HS384", "HS512", "none", "ES512", "rs256", ""] {
            let issuer =
                json!({ "issuer": "https://id.example", "audience": ["a"], "algorithms": [wrong] });
            let refused = serde_json::from_value::<IssuerConfig>(issuer).unwrap_err();
            assert!(
                refused.to_string().starts_with("unknown variant"),
                "{wrong}: {refused}"
            );
        }
    }
}
