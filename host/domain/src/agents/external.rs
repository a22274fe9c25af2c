//! External agents: programs outside this host that take part like any other agent.
//!
//! The host posts each message to the program, signed with the agent's secret. The program answers
//! later with its own request, signed with the same secret. This module has the settings of such an
//! agent, the names of its sessions, the signed texts, and the retry times of an outbound message.

use crate::access::egress::{
    AddressRange, EgressGrant, HostPattern, Method, PathPattern, Target, TargetError, ceiling,
};
use crate::values::backoff::Backoff;
use crate::values::digest::Digest;
use crate::values::id::{NotAnId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// The built-in component that drives external agents.
pub const COMPONENT: &str = "external";
/// Characters of the name of an external session.
pub const NAME_CHARS_MAX: usize = 128;
/// Seconds by which the time of a signed answer may differ from the host's.
pub const SIGNATURE_AGE_S_MAX: u64 = 300;
/// The longest pause before an outbound message is tried again, in milliseconds.
pub const RETRY_MS_MAX: u64 = 3_600_000;
/// The most bytes of a request that posts a message to an external agent, envelope included.
pub const REQUEST_BYTES_MAX: u64 = 4 << 20;
/// Bytes that one outbound message may send and receive, headers included. The response's body is
/// not read.
pub const OUTBOUND_MESSAGE_BYTES_MAX: u64 = 5 << 20;
/// The header with the second at which a request was signed, since 1970.
pub const TIME_HEADER: &str = "x-agent-host-time";
/// The header with the signature: `sha256=` and 64 hexadecimal digits.
pub const SIGNATURE_HEADER: &str = "x-agent-host-signature";
/// The prefix of a signature.
pub const SIGNATURE_PREFIX: &str = "sha256=";

/// The program behind an external agent, and how the host reaches it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExternalSettings {
    /// The URL to which messages are posted. It begins with `https://`, or with `http://` for an
    /// address of your own.
    pub input_url: String,
    /// The name of a secret in `secrets`. Requests in both directions are signed with it, and each
    /// external agent has its own.
    pub secret: String,
    /// The URL at which the program reaches this host, such as `https://agents.example`. Defaults
    /// to `http://` and the address of `server.listen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_base: Option<String>,
    /// Addresses that may be dialled although they are not public, such as `127.0.0.1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub private_addresses: Vec<AddressRange>,
    /// Milliseconds for one outbound message, from 100 to 60,000; default 5,000.
    #[serde(default = "timeout_ms")]
    #[schemars(range(min = 100, max = 60_000))]
    pub timeout_ms: u32,
    /// Retries of an outbound message that was not accepted, from 0 to 20; none without. Every
    /// attempt has the same idempotency key.
    #[serde(default)]
    #[schemars(range(min = 0, max = 20))]
    pub retries: u32,
    /// Milliseconds before the first retry, from 10 to 3,600,000; default 1,000. Each pause is
    /// twice the one before, and an hour at most.
    #[serde(default = "retry_base_ms")]
    #[schemars(range(min = 10, max = 3_600_000))]
    pub retry_base_ms: u32,
    /// Seconds within which a message has to be answered, from 1 to 2,592,000 (30 days); default
    /// 86,400 (a day).
    #[serde(default = "answer_timeout_s")]
    #[schemars(range(min = 1, max = 2_592_000))]
    pub answer_timeout_s: u32,
    /// Bytes of an answer, from 1 to 1,048,576; default 262,144.
    #[serde(default = "answer_bytes_max")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub answer_bytes_max: u32,
}

fn timeout_ms() -> u32 {
    5_000
}

fn retry_base_ms() -> u32 {
    1_000
}

fn answer_timeout_s() -> u32 {
    86_400
}

fn answer_bytes_max() -> u32 {
    256 << 10
}

/// The reason why a URL cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnfitUrl {
    /// It is no URL, or no accepted URL.
    #[error("it must begin with https:// or http:// and name a host")]
    NotAUrl,
    /// It contains a name or a password.
    #[error("a user or password does not belong in it; requests are signed with `secret`")]
    UserInfo,
    /// Its path is not in plain form.
    #[error("its path must be a plain one, without `*`")]
    Path,
    /// It has more than a path.
    #[error("it must end with its path, without `?` and `#`")]
    Tail,
}

impl ExternalSettings {
    /// Returns the target of outbound messages.
    ///
    /// # Errors
    /// `inputUrl` cannot be used.
    pub fn target(&self) -> Result<Target, UnfitUrl> {
        parse(&self.input_url)
    }

    /// Returns the grant of outbound messages: one URL, no redirects.
    ///
    /// # Errors
    /// `inputUrl` cannot be used.
    pub fn grant(&self) -> Result<EgressGrant, UnfitUrl> {
        let target = self.target()?;
        if target.path().contains('*') {
            return Err(UnfitUrl::Path);
        }
        let host = HostPattern::parse(&target.host().to_string()).map_err(|_| UnfitUrl::NotAUrl)?;
        let path = PathPattern::parse(target.path()).map_err(|_| UnfitUrl::Path)?;
        Ok(EgressGrant {
            schemes: vec![target.scheme()],
            ports: Some(vec![target.port()]),
            methods: vec![Method::Post],
            path,
            private_addresses: self.private_addresses.clone(),
            request_bytes_max: REQUEST_BYTES_MAX,
            response_bytes_max: ceiling::RESPONSE_BYTES_MAX,
            total_ms_max: u64::from(self.timeout_ms),
            ..EgressGrant::of(host)
        })
    }

    /// Checks `callbackBase`, if it is there.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn check_callback(&self) -> Result<(), UnfitUrl> {
        let Some(base) = &self.callback_base else {
            return Ok(());
        };
        if base.contains(['?', '#']) {
            return Err(UnfitUrl::Tail);
        }
        parse(base).map(drop)
    }

    /// Returns the URL at which the answer to a message is expected.
    #[must_use]
    pub fn callback_url(&self, session: &str, message: &str) -> String {
        let base = self.callback_base.as_deref().unwrap_or_default();
        let base = base.trim_end_matches('/');
        format!("{base}/external/sessions/{session}/messages?message={message}")
    }

    /// Returns the pause after this many attempts at an outbound message, in milliseconds. It is at
    /// least what the program asked for, and at most an hour. None when no attempt is left.
    #[must_use]
    pub fn pause_ms(&self, tries: u32, asked_ms: Option<u64>) -> Option<u64> {
        let backoff = Backoff {
            first_ms: u64::from(self.retry_base_ms),
            most_ms: RETRY_MS_MAX,
        };
        let asked_ms = asked_ms.unwrap_or(0).min(RETRY_MS_MAX);
        (1..=self.retries)
            .contains(&tries)
            .then(|| backoff.pause_ms(tries).max(asked_ms))
    }

    /// Returns the milliseconds within which a message has to be answered.
    #[must_use]
    pub fn answer_timeout_ms(&self) -> u64 {
        u64::from(self.answer_timeout_s).saturating_mul(1_000)
    }
}

fn parse(url: &str) -> Result<Target, UnfitUrl> {
    Target::parse(url).map_err(|error| match error {
        TargetError::UserInfo => UnfitUrl::UserInfo,
        _ => UnfitUrl::NotAUrl,
    })
}

/// A session's name for an external program: 1 to 128 of `A-Z`, `a-z`, `0-9`, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExternalName(String);

impl ExternalName {
    /// Returns the session that it names. A UUID names the session with that id.
    #[must_use]
    pub fn session(&self) -> SessionId {
        if let Ok(id) = self.0.parse() {
            return id;
        }
        let digest = Digest::of_parts(&[b"external session", self.0.as_bytes()]);
        let half = digest.0.first_chunk::<16>().copied().unwrap_or_default();
        SessionId(Uuid::from_bytes(half))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ExternalName {
    type Err = NotAnId;
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (1..=NAME_CHARS_MAX).contains(&text.len()) && text.bytes().all(fits) {
            return Ok(Self(text.to_owned()));
        }
        Err(NotAnId {
            text: text.chars().take(NAME_CHARS_MAX).collect(),
            expected: "the name of an external session: 1 to 128 of A-Z, a-z, 0-9, `_` and `-`",
        })
    }
}

impl fmt::Display for ExternalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The direction of a signed request. The direction is signed too, so that neither side can replay
/// the other's request to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedDirection {
    /// From the host to the program.
    ToAgent,
    /// From the program to the host.
    ToHost,
}

/// Returns the signed text: direction, second, session, message and body. A signature is thus valid
/// for one session, one message, one body and a short time. The message is empty in an answer that
/// names none.
#[must_use]
pub fn signed_text(
    direction: SignedDirection,
    time_s: u64,
    session: &str,
    message: &str,
    body: &[u8],
) -> Vec<u8> {
    let direction = match direction {
        SignedDirection::ToAgent => "agent",
        SignedDirection::ToHost => "host",
    };
    let mut text = format!("{direction}.{time_s}.{session}.{message}.").into_bytes();
    text.extend_from_slice(body);
    text
}

/// Returns whether a request signed at one second may be accepted at another.
#[must_use]
pub fn is_fresh(signed_s: u64, now_s: u64) -> bool {
    signed_s.abs_diff(now_s) <= SIGNATURE_AGE_S_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::egress::{Scheme, permit};
    use crate::values::id::OperationId;
    use serde_json::json;

    fn settings(url: &str) -> ExternalSettings {
        serde_json::from_value(json!({ "inputUrl": url, "secret": "peer" })).unwrap()
    }

    #[test]
    fn an_outbound_message_has_five_seconds_and_is_tried_once_unless_more_is_asked_for() {
        let plain = settings("https://peer.example/in");
        assert_eq!((plain.timeout_ms, plain.retries), (5_000, 0));
        assert_eq!(plain.pause_ms(1, None), None);
        assert_eq!(plain.grant().unwrap().total_ms_max, 5_000);
    }

    #[test]
    fn pauses_between_tries_double_or_are_as_asked_up_to_an_hour_and_end() {
        let patient = ExternalSettings {
            retries: 20,
            retry_base_ms: 1_000,
            ..settings("https://peer.example/in")
        };
        for (tries, pause) in [
            (0, None),
            (1, Some(1_000)),
            (2, Some(2_000)),
            (20, Some(RETRY_MS_MAX)),
            (21, None),
            (u32::MAX, None),
        ] {
            assert_eq!(patient.pause_ms(tries, None), pause, "{tries}");
        }
        for (asked_ms, pause) in [
            (0, 2_000),
            (1_999, 2_000),
            (7_000, 7_000),
            (u64::MAX, RETRY_MS_MAX),
        ] {
            assert_eq!(patient.pause_ms(2, Some(asked_ms)), Some(pause));
        }
        assert_eq!(patient.pause_ms(21, Some(7_000)), None);
    }

    #[test]
    fn the_grant_of_outbound_messages_has_one_url_and_nothing_beside_it() {
        let grants = [settings("https://peer.example:8443/in/box")
            .grant()
            .unwrap()];
        for (url, method, allowed) in [
            ("https://peer.example:8443/in/box", Method::Post, true),
            ("https://peer.example:8443/in/box", Method::Get, false),
            ("https://peer.example:8443/in", Method::Post, false),
            ("https://peer.example:8443/in/box/x", Method::Post, false),
            ("https://peer.example/in/box", Method::Post, false),
            ("http://peer.example:8443/in/box", Method::Post, false),
            ("https://other.example:8443/in/box", Method::Post, false),
        ] {
            let target = Target::parse(url).unwrap();
            assert_eq!(
                permit(&target, method, &grants).is_ok(),
                allowed,
                "{method:?} {url}"
            );
        }
        let [grant] = &grants;
        assert_eq!(
            (grant.redirects, grant.schemes.as_slice()),
            (0, [Scheme::Https].as_slice())
        );
    }

    #[test]
    fn urls_that_cannot_be_meant_are_refused_with_the_reason() {
        for (url, why) in [
            ("peer.example", UnfitUrl::NotAUrl),
            ("ftp://peer.example/", UnfitUrl::NotAUrl),
            ("https://me:secret@peer.example/", UnfitUrl::UserInfo),
            ("https://peer.example/*", UnfitUrl::Path),
        ] {
            assert_eq!(settings(url).grant().map(drop), Err(why), "{url}");
        }
        let with_base = |base: &str| ExternalSettings {
            callback_base: Some(base.to_owned()),
            ..settings("https://peer.example/in")
        };
        assert_eq!(with_base("https://h.example/a/").check_callback(), Ok(()));
        assert_eq!(
            with_base("https://h.example/?x").check_callback(),
            Err(UnfitUrl::Tail)
        );
        assert_eq!(
            with_base("https://h.example/a/").callback_url("s-1", "m"),
            "https://h.example/a/external/sessions/s-1/messages?message=m"
        );
    }

    #[test]
    fn names_of_sessions_are_bounded_as_the_design_bounds_them() {
        for (text, is_one) in [
            ("a", true),
            ("A_z-09", true),
            ("", false),
            ("a b", false),
            ("a/b", false),
            ("a.b", false),
            ("ä", false),
        ] {
            assert_eq!(text.parse::<ExternalName>().is_ok(), is_one, "{text}");
        }
        assert!("x".repeat(128).parse::<ExternalName>().is_ok());
        assert!("x".repeat(129).parse::<ExternalName>().is_err());
    }

    #[test]
    fn a_name_always_means_the_same_session_and_a_uuid_means_itself() {
        let session = |text: &str| text.parse::<ExternalName>().unwrap().session();
        assert_eq!(session("one"), session("one"));
        assert_ne!(session("one"), session("two"));
        assert_ne!(session("one"), session("ONE"));
        let id = "00000000-0000-4000-8000-0000000000b1";
        assert_eq!(session(id).to_string(), id);
    }

    #[test]
    fn what_is_signed_differs_with_way_time_session_message_and_body() {
        let text = |direction, time, session, message, body: &str| {
            signed_text(direction, time, session, message, body.as_bytes())
        };
        let one = text(SignedDirection::ToHost, 1, "s", "m", "b");
        assert_eq!(one, b"host.1.s.m.b");
        for other in [
            text(SignedDirection::ToAgent, 1, "s", "m", "b"),
            text(SignedDirection::ToHost, 2, "s", "m", "b"),
            text(SignedDirection::ToHost, 1, "t", "m", "b"),
            text(SignedDirection::ToHost, 1, "s", "n", "b"),
            text(SignedDirection::ToHost, 1, "s", "", "m.b"),
            text(SignedDirection::ToHost, 1, "s", "m", "c"),
        ] {
            assert_ne!(one, other);
        }
        // Names and ids have no dot, so that nothing else makes the same text.
        assert!("s.m".parse::<ExternalName>().is_err());
        assert!("m.b".parse::<OperationId>().is_err());
    }

    #[test]
    fn a_signature_is_good_for_five_minutes_in_both_directions() {
        for (signed, now, fresh) in [
            (1_000, 1_000, true),
            (1_000, 1_300, true),
            (1_300, 1_000, true),
            (1_000, 1_301, false),
            (1_301, 1_000, false),
            (0, u64::MAX, false),
        ] {
            assert_eq!(is_fresh(signed, now), fresh, "{signed} {now}");
        }
    }
}
