//! Admission of requests to the API: the credential of a request, and the names under which the
//! host may be addressed.
//!
//! The names guard against DNS rebinding: a web page that points its own name at this machine still
//! sends that name, and is refused.

use crate::clock::Clock;
use crate::identity::Identity;
use crate::problem::Problem;
use domain::digest::Digest;
use domain::error_code::ErrorCode;
use domain::key::{ApiKey, KEY_PREFIX};
use domain::proof::proof;
use domain::user::Naming;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Uri};
use std::net::{IpAddr, SocketAddr};

/// The rules that decide whether a request is let in.
#[derive(Debug)]
pub struct Access {
    token: Digest,
    listen: SocketAddr,
    proof_key: Option<String>,
    hosts: Vec<String>,
    identity: Option<Identity>,
    clock: Clock,
}

/// The credential of a request, by its form. Only the host's own token has been verified;
/// [`crate::credential`] verifies the others.
pub(crate) enum Presented<'a> {
    /// The host's own token, the right one.
    HostToken,
    Key(ApiKey),
    /// A token that may come from an issuer that the host trusts.
    Token(&'a Identity, &'a str),
}

impl Access {
    /// Admits callers that have the token and address the host by one of its names. Those are a
    /// loopback name, the address that it listens at, and `hosts`.
    #[must_use]
    pub fn new(token: &str, listen: SocketAddr, hosts: &[String]) -> Self {
        Self {
            token: Digest::of(token.as_bytes()),
            listen,
            proof_key: None,
            hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            identity: None,
            clock: Clock::system(),
        }
    }

    /// Also admits users that these issuers vouch for.
    #[must_use]
    pub fn trusting(self, identity: Identity) -> Self {
        Self {
            identity: Some(identity),
            ..self
        }
    }

    /// Also proves to clients, by a key that lies in the data folder, that it is the host of it.
    #[must_use]
    pub fn proving_by(self, key: String) -> Self {
        Self {
            proof_key: Some(key),
            ..self
        }
    }

    /// Returns the answer to a client's challenge; none without a key.
    pub(crate) fn proof(&self, challenge: &str) -> Option<String> {
        let key = self.proof_key.as_ref()?;
        Some(proof(key, &self.listen.to_string(), challenge))
    }

    /// Uses another clock than the machine's.
    #[must_use]
    pub fn by(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Returns how user ids are derived for an issuer; none for one that is not trusted.
    pub(crate) fn naming_of(&self, issuer: &str) -> Option<Naming> {
        self.identity.as_ref()?.naming_of(issuer)
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Checks a request.
    ///
    /// # Errors
    /// 403 for a name that is not this host's, 401 for a token that is missing, twice there, or of
    /// no form that is known.
    pub(crate) fn check<'a>(
        &'a self,
        uri: &Uri,
        headers: &'a HeaderMap,
    ) -> Result<Presented<'a>, Problem> {
        self.check_names(uri, headers)?;
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let first = given.next();
        if given.next().is_some() {
            return Err(unauthorized(
                "there is more than one `authorization`; send the one that is meant",
            ));
        }
        let Some(token) = first.map(http::HeaderValue::as_bytes).and_then(bearer) else {
            return Err(unauthorized(
                "send `authorization: Bearer <token>`; `agent-host token show` prints the token",
            ));
        };
        // Digests are compared, so that not even the length of the token shows.
        if Digest::of(token).is_secretly(&self.token) {
            return Ok(Presented::HostToken);
        }
        let text = std::str::from_utf8(token).unwrap_or_default();
        if text.starts_with(KEY_PREFIX) {
            let key = ApiKey::parse(text).ok_or_else(|| {
                unauthorized("the API key is malformed: a part of it is missing or was changed")
            })?;
            return Ok(Presented::Key(key));
        }
        match &self.identity {
            Some(identity) if !identity.is_empty() && text.contains('.') => {
                Ok(Presented::Token(identity, text))
            }
            Some(_) | None => Err(unauthorized(
                "the bearer token is wrong; `agent-host token show` prints the right one",
            )),
        }
    }

    fn check_names(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let host = headers.get(HOST).and_then(|value| value.to_str().ok());
        let named = uri
            .authority()
            .cloned()
            .or_else(|| host.and_then(|host| host.parse().ok()));
        if !named
            .as_ref()
            .is_some_and(|authority| self.is_ours(authority))
        {
            let detail = format!(
                "`{}` is not a name of this host; add it to `server.hosts` in the configuration if \
                 it is",
                named
                    .as_ref()
                    .map_or_else(|| host.unwrap_or_default(), Authority::as_str)
            );
            return Err(Problem::new(ErrorCode::HostNotAllowed, detail));
        }
        let Some(origin) = headers.get(ORIGIN) else {
            return Ok(());
        };
        let origin = origin.to_str().unwrap_or_default();
        let ours = origin
            .parse::<Uri>()
            .ok()
            .and_then(|uri| uri.authority().cloned())
            .is_some_and(|authority| self.is_ours(&authority));
        if ours {
            return Ok(());
        }
        let detail = format!("pages from `{origin}` may not use this host");
        Err(Problem::new(ErrorCode::OriginNotAllowed, detail))
    }

    fn is_ours(&self, authority: &Authority) -> bool {
        let host = authority.host().trim_end_matches('.').to_ascii_lowercase();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            // A number cannot be rebound. Where the host listens everywhere, it may be any of the
            // machine's addresses.
            let listen = self.listen.ip();
            return address.is_loopback() || address == listen || listen.is_unspecified();
        }
        host == "localhost" || host.ends_with(".localhost") || self.hosts.contains(&host)
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

/// 401.
pub(crate) fn unauthorized(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::Unauthorized, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, origin: Option<&str>, authorization: Option<&str>) -> u16 {
        let access = Access::new(
            "secret",
            "127.0.0.1:7777".parse().unwrap(),
            &["agents.example".to_owned()],
        );
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        origin.map(|origin| headers.insert(ORIGIN, origin.parse().unwrap()));
        authorization.map(|value| headers.insert(AUTHORIZATION, value.parse().unwrap()));
        access
            .check(&Uri::from_static("/api/agents"), &headers)
            .map_or_else(|problem| problem.code.status(), |_| 200)
    }

    #[test]
    fn only_the_right_token_is_let_in() {
        for (authorization, status) in [
            (Some("Bearer secret"), 200),
            (Some("bearer  secret "), 200),
            (Some("Bearer secre"), 401),
            (Some("Bearer secret2"), 401),
            (Some("Bearer "), 401),
            (Some("Basic secret"), 401),
            (Some("secret"), 401),
            (Some("Bearer a.b.c"), 401),
            (Some("Bearer ahk_x_y"), 401),
            (None, 401),
        ] {
            assert_eq!(
                check("localhost:7777", None, authorization),
                status,
                "{authorization:?}"
            );
        }
    }

    #[test]
    fn a_host_proves_itself_by_its_key_and_a_host_without_one_does_not() {
        let access = || Access::new("secret", "127.0.0.1:7777".parse().unwrap(), &[]);
        assert_eq!(access().proof("a"), None);
        let given = access().proving_by("key".to_owned()).proof("a");
        assert_eq!(given, Some(proof("key", "127.0.0.1:7777", "a")));
    }

    #[test]
    fn a_name_that_was_pointed_at_this_machine_is_refused() {
        for (host, origin, status) in [
            ("localhost:7777", None, 200),
            ("LOCALHOST.", None, 200),
            ("127.0.0.1:7777", Some("http://localhost:3000"), 200),
            ("[::1]:7777", None, 200),
            ("agents.example", Some("https://agents.example"), 200),
            ("evil.example", None, 403),
            ("localhost.evil.example", None, 403),
            ("10.0.0.1", None, 403),
            ("", None, 403),
            ("localhost", Some("https://evil.example"), 403),
            ("localhost", Some("null"), 403),
        ] {
            assert_eq!(
                check(host, origin, Some("Bearer secret")),
                status,
                "{host} from {origin:?}"
            );
        }
    }
}
