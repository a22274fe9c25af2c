//! Shared parts of outbound messages to external agents and of their answers: signatures, and the
//! names by which the programs know their sessions.

use domain::digest::Digest;
use domain::error_code::ErrorCode;
use domain::external::{ExternalName, SIGNATURE_PREFIX, SignedDirection, signed_text};
use domain::id::{OperationId, SessionId};
use domain::secret::Secret;
use domain::time::Timestamp;
use ring::hmac::{HMAC_SHA256, Key, Tag, sign};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::{ReadError, SessionRow, Store};

/// The key of a session's configuration for the name by which an external program knows it.
pub(crate) const SESSION_NAME: &str = "external_session_id";
/// Refusals of signed answers within one minute that are put into the ledger, over all external
/// agents. The log has all of them.
const SIGNED_NOTED_MAX: usize = 60;
/// Refusals of one session among them.
const SESSION_NOTED_MAX: usize = 10;
/// Lines of the ledger within one minute about answers that anybody may have sent. They displace no
/// others.
const COLLECTED_NOTED_MAX: usize = 30;
/// Sessions and codes of which such answers are counted for a later line.
const COLLECTED_MAX: usize = 1_024;
/// Milliseconds of that minute.
const MINUTE_MS: u64 = 60_000;

/// A signed request: its way, the second of its signature, its session, its message and its body.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// The way of the request.
    pub direction: SignedDirection,
    /// The second at which it is signed, since 1970.
    pub time_s: u64,
    /// The session, as the program names it.
    pub session: &'a str,
    /// The message that is delivered or answered; none in an answer that names none.
    pub message: Option<OperationId>,
    /// The body.
    pub body: &'a [u8],
}

impl Signed<'_> {
    /// Returns the signature with a secret, as its header has it.
    #[must_use]
    pub fn signature(&self, secret: &Secret) -> String {
        let tag = sign(&key(secret), &self.text());
        format!("{SIGNATURE_PREFIX}{}", hex(&tag))
    }

    /// Returns whether a signature is right, in a time that does not depend on the result.
    #[must_use]
    pub fn is_signed_by(&self, secret: &Secret, signature: &str) -> bool {
        let given = signature.strip_prefix(SIGNATURE_PREFIX).and_then(bytes);
        given.is_some_and(|given| ring::hmac::verify(&key(secret), &self.text(), &given).is_ok())
    }

    fn text(&self) -> Vec<u8> {
        let message = self.message.map(|message| message.to_string());
        let message = message.unwrap_or_default();
        signed_text(
            self.direction,
            self.time_s,
            self.session,
            &message,
            self.body,
        )
    }
}

fn key(secret: &Secret) -> Key {
    Key::new(HMAC_SHA256, secret.expose().as_bytes())
}

fn hex(tag: &Tag) -> String {
    let bytes = tag.as_ref().try_into().unwrap_or_default();
    Digest(bytes).hex()
}

/// Reads 64 hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digest = Digest::from_hex(digits)?;
    Some(digest.0.to_vec())
}

/// Returns the name by which the program of an external agent knows a session: the one that it was
/// attached under, or its id.
pub(crate) async fn name_of(store: &Store, row: &SessionRow) -> Result<String, ReadError> {
    let config = match row.config {
        Some(digest) => store.blob(digest).await?,
        None => None,
    };
    let named = config.and_then(|bytes| {
        let config: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        let name: ExternalName = config.get(SESSION_NAME)?.as_str()?.parse().ok()?;
        (name.session() == row.id).then(|| name.to_string())
    });
    Ok(named.unwrap_or_else(|| row.id.to_string()))
}

/// Bounds how many refused answers of external agents go into the ledger.
#[derive(Debug, Default)]
pub(crate) struct NotedRefusals(Mutex<Noted>);

/// The refusals of the present minute that were noted, and those that wait for a line.
#[derive(Debug, Default)]
struct Noted {
    minute: Timestamp,
    signed: Vec<SessionId>,
    collected: BTreeSet<(SessionId, ErrorCode)>,
    waiting: BTreeMap<(SessionId, ErrorCode), u64>,
}

impl NotedRefusals {
    /// Returns whether the refusal of a signed answer may be noted now.
    pub(crate) fn take(&self, session: SessionId, now: Timestamp) -> bool {
        let mut noted = self.at(now);
        let of_session = noted.signed.iter().filter(|other| **other == session);
        if of_session.count() >= SESSION_NOTED_MAX || noted.signed.len() >= SIGNED_NOTED_MAX {
            return false;
        }
        noted.signed.push(session);
        true
    }

    /// Counts a refusal with a code of an answer that anyone may have sent. Returns the number for
    /// a log line now; none while they are collected for a later one.
    pub(crate) fn collect(
        &self,
        session: SessionId,
        code: ErrorCode,
        now: Timestamp,
    ) -> Option<u64> {
        let mut noted = self.at(now);
        let key = (session, code);
        if noted.collected.len() < COLLECTED_NOTED_MAX && noted.collected.insert(key) {
            let before = noted.waiting.remove(&key).unwrap_or_default();
            return Some(before.saturating_add(1));
        }
        if noted.waiting.len() < COLLECTED_MAX || noted.waiting.contains_key(&key) {
            let waiting = noted.waiting.entry(key).or_default();
            *waiting = waiting.saturating_add(1);
        }
        None
    }

    fn at(&self, now: Timestamp) -> MutexGuard<'_, Noted> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.since_ms(noted.minute) >= MINUTE_MS {
            noted.minute = now;
            noted.signed.clear();
            noted.collected.clear();
        }
        noted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn signed<'a>(session: &'a str, body: &'a [u8]) -> Signed<'a> {
        Signed {
            direction: SignedDirection::ToHost,
            time_s: 1_700_000_000,
            session,
            message: Some(OperationId(Digest([0x11; 32]))),
            body,
        }
    }

    #[test]
    fn a_signature_is_an_hmac_with_sha_256_over_way_time_session_message_and_body() {
        let secret = Secret::parse("correct-horse").unwrap();
        let it = signed("s-1", b"hello");
        let signature = it.signature(&secret);
        // M=$(printf '11%.0s' {1..32})
        // printf "host.1700000000.s-1.$M.hello" | openssl dgst -sha256 -hmac correct-horse
        assert_eq!(
            signature,
            "sha256=33610d827eb52b1a40be9d6da78a1c950a61e9fa785f3236a3e38a7087f05c54"
        );
        assert!(it.is_signed_by(&secret, &signature));
    }

    #[test]
    fn a_signature_with_another_secret_session_message_body_or_way_is_wrong() {
        let secret = Secret::parse("correct-horse").unwrap();
        let other = Secret::parse("battery-staple").unwrap();
        let it = signed("s-1", b"hello");
        let signature = it.signature(&secret);
        assert!(!it.is_signed_by(&other, &signature));
        assert!(!signed("s-2", b"hello").is_signed_by(&secret, &signature));
        assert!(!signed("s-1", b"hullo").is_signed_by(&secret, &signature));
        let back = Signed {
            direction: SignedDirection::ToAgent,
            ..it
        };
        assert!(!back.is_signed_by(&secret, &signature));
        for message in [None, Some(OperationId(Digest([0x22; 32])))] {
            let moved = Signed { message, ..it };
            assert!(!moved.is_signed_by(&secret, &signature), "{message:?}");
        }
        let bare = signature.trim_start_matches(SIGNATURE_PREFIX);
        for text in ["", "sha256=", "sha256=00", bare, "sha1=00"] {
            assert!(!it.is_signed_by(&secret, text), "{text}");
        }
    }

    const NOON: Timestamp = Timestamp(1_000_000);

    fn session(nth: u128) -> SessionId {
        SessionId(Uuid::from_u128(nth))
    }

    #[test]
    fn a_flood_of_refused_answers_does_not_flood_the_ledger() {
        let noted = NotedRefusals::default();
        let flood = |nth, now| (0..1_000).filter(|_| noted.take(session(nth), now)).count();
        assert_eq!(flood(0, NOON), 10);
        let rest: usize = (1..100).map(|nth| flood(nth, NOON)).sum();
        assert_eq!(rest, 50);
        assert_eq!(flood(7, NOON.plus_ms(59_999)), 0);
        assert_eq!(flood(7, NOON.plus_ms(60_000)), 10);
    }

    #[test]
    fn refusals_of_whoever_cannot_sign_are_one_line_a_minute_and_displace_no_others() {
        let noted = NotedRefusals::default();
        let collect = |nth, now| noted.collect(session(nth), ErrorCode::SignatureInvalid, now);
        assert_eq!(collect(0, NOON), Some(1));
        assert!((0..1_000).all(|_| collect(0, NOON).is_none()));
        let other = noted.collect(session(0), ErrorCode::SignatureStale, NOON);
        assert_eq!(other, Some(1));
        let lines = (1..10_000).filter(|nth| collect(*nth, NOON).is_some());
        assert_eq!(lines.count(), 28);
        assert!(noted.take(session(0), NOON));
        assert!(noted.0.lock().unwrap().waiting.len() <= COLLECTED_MAX);
        assert_eq!(collect(0, NOON.plus_ms(60_000)), Some(1_001));
        assert_eq!(collect(0, NOON.plus_ms(120_000)), Some(1));
    }
}
