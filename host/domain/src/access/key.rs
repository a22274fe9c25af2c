//! API keys: their parts, the stored part, who may issue which, and their expiry.
//!
//! A key is `ahk_<key id>_<secret>`. The id identifies it in lists and in the log; the secret is 32
//! random bytes. Only the SHA-256 of those bytes is stored. A fast hash is right for them. Slow
//! hashes make guesses of *passwords* expensive, of which people choose some billions. 256 random
//! bits cannot be guessed, however fast the hash, and a slow one would cost time at every request.

use crate::access::user::{Scope, UserId};
use crate::values::digest::Digest;
use crate::values::error_code::ErrorCode;
use crate::values::id::NotAnId;
use crate::values::refusal::Refusal;
use crate::values::text::{serde_as_text, wrapped_text};
use crate::values::time::Timestamp;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use utoipa::ToSchema;

/// The prefix of every key.
pub const KEY_PREFIX: &str = "ahk_";
/// Characters of a key's id.
pub const KEY_ID_CHARS: usize = 12;
/// Random bytes of a key's secret.
pub const KEY_SECRET_BYTES: usize = 32;
/// Characters of a key's name.
pub const KEY_NAME_CHARS_MAX: usize = 100;
/// Characters of the reason for revoking a key.
pub const KEY_REASON_CHARS_MAX: usize = 200;
/// Lifetime of a key in seconds: least, default, most. 60 seconds, 90 days, 366 days.
pub const KEY_LIFETIME_S: (u64, u64, u64) = (60, 90 * DAY_S, 366 * DAY_S);
/// Valid keys of one user.
pub const KEYS_OF_A_USER_MAX: u64 = 100;

const DAY_S: u64 = 24 * 3_600;
/// The characters of ids: no capitals, and no digits that look like letters.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The id of a key: 12 of `a-z` and `2-7`. It reveals nothing of the secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, ToSchema)]
#[schema(pattern = "^[a-z2-7]{12}$")]
pub struct KeyId(String);

impl KeyId {
    /// The id from random bytes.
    #[must_use]
    pub fn of(random: [u8; KEY_ID_CHARS]) -> Self {
        let letter = |byte: &u8| {
            ALPHABET
                .get(usize::from(byte % 32))
                .copied()
                .map_or('a', char::from)
        };
        Self(random.iter().map(letter).collect())
    }
}

impl FromStr for KeyId {
    type Err = NotAnId;
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let well_formed =
            text.len() == KEY_ID_CHARS && text.bytes().all(|byte| ALPHABET.contains(&byte));
        // The text may be a whole key, which must not be repeated.
        let shown = || text.chars().take(KEY_ID_CHARS).collect();
        if well_formed {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAnId {
                text: shown(),
                expected: "the id of a key: 12 of a-z and 2-7",
            })
        }
    }
}

wrapped_text!(KeyId);
serde_as_text!(KeyId::from_str);

/// A whole key. Never printed, never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    id: KeyId,
    secret: [u8; KEY_SECRET_BYTES],
}

impl ApiKey {
    /// The key from an id and random bytes.
    #[must_use]
    pub fn new(id: KeyId, secret: [u8; KEY_SECRET_BYTES]) -> Self {
        Self { id, secret }
    }

    /// Reads what [`Self::expose`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (id, digits) = text.strip_prefix(KEY_PREFIX)?.split_once('_')?;
        let lower = digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let mut secret = [0; KEY_SECRET_BYTES];
        hex::decode_to_slice(digits, &mut secret)
            .ok()
            .filter(|()| lower)?;
        Some(Self {
            id: id.parse().ok()?,
            secret,
        })
    }

    /// Returns the key in the form for its user. It is shown once, to the user for whom it is
    /// issued.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("{KEY_PREFIX}{}_{}", self.id, hex::encode(self.secret))
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &KeyId {
        &self.id
    }

    /// Returns the hash of the secret, which is stored.
    #[must_use]
    pub fn hash(&self) -> Digest {
        Digest::of(&self.secret)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}, …)", self.id)
    }
}

/// The issuer of a key: a user, with a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// The user.
    pub user: UserId,
    /// The scopes of the credential.
    pub scopes: BTreeSet<Scope>,
    /// The key that is the issuer's credential, with its end; none for other credentials.
    pub key: Option<(KeyId, Timestamp)>,
}

/// A key that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// The user of the new key.
    pub user: UserId,
    /// Its name; may be empty.
    pub name: String,
    /// The scopes of the new key.
    pub scopes: BTreeSet<Scope>,
    /// Lifetime in seconds. Without it, the default of [`KEY_LIFETIME_S`] applies, but no longer
    /// than the issuing key lasts.
    pub lifetime_s: Option<u64>,
}

impl NewKey {
    /// Returns the time at which it ends if this issuer issues it now.
    #[must_use]
    pub fn expires_at(&self, issuer: &Issuer, now: Timestamp) -> Timestamp {
        let after = |seconds: u64| now.plus_ms(seconds.saturating_mul(1_000));
        match (self.lifetime_s, &issuer.key) {
            (Some(seconds), _) => after(seconds),
            (None, Some((_, ends))) => after(KEY_LIFETIME_S.1).min(*ends),
            (None, None) => after(KEY_LIFETIME_S.1),
        }
    }
}

/// Checks that a key may be issued. It never has more scopes than its issuer's own credential. A
/// key issued with another key never lasts longer than that key. Only an administrator issues keys
/// for another user.
///
/// # Errors
/// The reason why not, with the field at fault.
pub fn may_issue(issuer: &Issuer, asked: &NewKey, now: Timestamp) -> Result<(), Refusal> {
    let invalid = |message: String, field| Err(Refusal::new(ErrorCode::Invalid, message).at(field));
    let missing =
        |message: String, field| Err(Refusal::new(ErrorCode::ScopeMissing, message).at(field));
    if asked.user != issuer.user && !issuer.scopes.contains(&Scope::Admin) {
        return missing(
            format!(
                "only the scope `{}` issues keys for another user than `{}`",
                Scope::Admin.as_str(),
                issuer.user
            ),
            "/user",
        );
    }
    if asked.name.chars().count() > KEY_NAME_CHARS_MAX || asked.name.chars().any(char::is_control) {
        return invalid(
            format!(
                "a name has at most {KEY_NAME_CHARS_MAX} characters, none of them a control \
                     character"
            ),
            "/name",
        );
    }
    if asked.scopes.is_empty() {
        return invalid(
            format!(
                "name at least one of the scopes {}",
                Scope::ALL.map(Scope::as_str).join(", ")
            ),
            "/scopes",
        );
    }
    if let Some(scope) = asked.scopes.difference(&issuer.scopes).next() {
        let has: Vec<&str> = issuer.scopes.iter().map(|scope| scope.as_str()).collect();
        return missing(
            format!(
                "`{}` is more than the credential that asks has: {}",
                scope.as_str(),
                has.join(", ")
            ),
            "/scopes",
        );
    }
    let (least, _, most) = KEY_LIFETIME_S;
    if let Some(seconds) = asked
        .lifetime_s
        .filter(|seconds| !(least..=most).contains(seconds))
    {
        return invalid(
            format!("{seconds} is out of its range: it must be from {least} to {most}"),
            "/expires_in_s",
        );
    }
    match &issuer.key {
        Some((_, ends)) if *ends < asked.expires_at(issuer, now) => invalid(
            format!("a key that is issued with a key ends no later than that one, at {ends}"),
            "/expires_in_s",
        ),
        _ => Ok(()),
    }
}

/// The reason why a key is no longer valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was revoked.
    Revoked,
    /// Its time is over.
    Expired,
}

/// Returns whether a key has ended, and how.
#[must_use]
pub fn ended(
    expires_at: Timestamp,
    revoked_at: Option<Timestamp>,
    now: Timestamp,
) -> Option<Ended> {
    match revoked_at {
        Some(_) => Some(Ended::Revoked),
        None => (expires_at <= now).then_some(Ended::Expired),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000);

    fn key() -> ApiKey {
        ApiKey::new(
            KeyId::of([0, 1, 25, 26, 31, 32, 255, 7, 8, 9, 10, 11]),
            [0xab; KEY_SECRET_BYTES],
        )
    }

    #[test]
    fn a_key_reads_what_it_writes_and_nothing_else() {
        let text = key().expose();
        assert_eq!(text, format!("ahk_abz27a7hijkl_{}", "ab".repeat(32)));
        assert_eq!(ApiKey::parse(&text), Some(key()));
        for wrong in [
            String::new(),
            "ahk_".to_owned(),
            "ahk_abz27a7hijkl_".to_owned(),
            text.to_uppercase(),
            text.replace("ahk_", "key_"),
            text.replace("abz27a7hijkl", "abz27a7hijk"),
            text.replace("abz27a7hijkl", "abz27a7hijk1"),
            text.replace("_ab", "_AB"),
            format!("{text}0"),
            format!("{text} "),
            text.trim_end_matches('b').to_owned(),
        ] {
            assert_eq!(ApiKey::parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nothing_prints_the_secret_of_a_key() {
        let printed = format!(
            "{:?} {:#?} {:?}",
            key(),
            key(),
            key().expose().parse::<KeyId>().unwrap_err().to_string()
        );
        assert!(
            printed.contains("abz27a7hijkl") && !printed.contains("abab"),
            "{printed}"
        );
        assert_eq!(key().hash(), Digest::of(&[0xab; 32]));
    }

    fn issuer(scopes: &[Scope]) -> Issuer {
        Issuer {
            user: "alice".parse().unwrap(),
            scopes: scopes.iter().copied().collect(),
            key: None,
        }
    }

    fn asked(scopes: &[Scope]) -> NewKey {
        let user = "alice".parse().unwrap();
        let scopes = scopes.iter().copied().collect();
        NewKey {
            user,
            name: "laptop".to_owned(),
            scopes,
            lifetime_s: Some(KEY_LIFETIME_S.1),
        }
    }

    /// The code and the field of the refusal.
    fn refused(issuer: &Issuer, asked: &NewKey) -> Option<(&'static str, String)> {
        may_issue(issuer, asked, NOW)
            .err()
            .map(|refusal| (refusal.code.as_str(), refusal.field.unwrap()))
    }

    #[test]
    fn a_key_is_never_good_for_more_than_what_issued_it() {
        let all = Scope::ALL;
        let sets = |bits: usize| -> Vec<Scope> {
            (0..4)
                .filter(|bit| bits & (1 << bit) != 0)
                .map(|bit| all[bit])
                .collect()
        };
        for (has, wants) in (0..16).flat_map(|has| (1..16).map(move |wants| (has, wants))) {
            let refused = refused(&issuer(&sets(has)), &asked(&sets(wants)));
            let expected = (wants & !has != 0).then(|| ("SCOPE_MISSING", "/scopes".to_owned()));
            assert_eq!(refused, expected, "{has:04b} issues {wants:04b}");
        }
    }

    #[test]
    fn only_an_administrator_issues_keys_for_others() {
        let other = NewKey {
            user: "bob".parse().unwrap(),
            ..asked(&[Scope::Read])
        };
        let user = || Some(("SCOPE_MISSING", "/user".to_owned()));
        assert_eq!(
            refused(&issuer(&[Scope::Read, Scope::Write, Scope::Keys]), &other),
            user()
        );
        assert_eq!(refused(&issuer(&[Scope::Read, Scope::Admin]), &other), None);
        let more = NewKey {
            scopes: [Scope::Write].into(),
            ..other
        };
        assert_eq!(
            refused(&issuer(&[Scope::Read, Scope::Admin]), &more),
            Some(("SCOPE_MISSING", "/scopes".to_owned()))
        );
    }

    #[test]
    fn what_is_wrong_with_a_key_that_is_asked_for_is_told_with_its_field() {
        let by = issuer(&Scope::ALL);
        let fine = || asked(&[Scope::Read]);
        let named = |name: &str| NewKey {
            name: name.to_owned(),
            ..fine()
        };
        let lasting = |lifetime_s| NewKey {
            lifetime_s: Some(lifetime_s),
            ..fine()
        };
        let scopeless = NewKey {
            scopes: BTreeSet::new(),
            ..fine()
        };
        let (least, _, most) = KEY_LIFETIME_S;
        for (key, field) in [
            (scopeless, Some("/scopes")),
            (named(&"x".repeat(101)), Some("/name")),
            (named("a\nb"), Some("/name")),
            (lasting(0), Some("/expires_in_s")),
            (lasting(least - 1), Some("/expires_in_s")),
            (lasting(least), None),
            (lasting(most), None),
            (lasting(u64::MAX), Some("/expires_in_s")),
        ] {
            let expected = field.map(|field| ("INVALID", field.to_owned()));
            assert_eq!(refused(&by, &key), expected, "{key:?}");
        }
    }

    #[test]
    fn a_key_that_is_issued_with_a_key_does_not_outlast_it() {
        let fine = asked(&[Scope::Read]);
        let with = |ends| Issuer {
            key: Some((key().id().clone(), ends)),
            ..issuer(&Scope::ALL)
        };
        let by = issuer(&Scope::ALL);
        assert_eq!(refused(&with(fine.expires_at(&by, NOW)), &fine), None);
        let earlier = Timestamp(fine.expires_at(&by, NOW).0 - 1);
        assert_eq!(
            refused(&with(earlier), &fine),
            Some(("INVALID", "/expires_in_s".to_owned()))
        );
        // Whoever does not say how long gets as long as there is.
        let unsaid = NewKey {
            lifetime_s: None,
            ..fine
        };
        assert_eq!(
            (
                refused(&with(earlier), &unsaid),
                unsaid.expires_at(&with(earlier), NOW)
            ),
            (None, earlier)
        );
        let days = NOW.plus_ms(KEY_LIFETIME_S.1 * 1_000);
        assert_eq!(
            (
                unsaid.expires_at(&by, NOW),
                unsaid.expires_at(&with(days.plus_ms(1)), NOW)
            ),
            (days, days)
        );
    }

    #[test]
    fn a_key_ends_with_its_time_or_before() {
        assert_eq!(ended(Timestamp(10), None, Timestamp(9)), None);
        assert_eq!(
            ended(Timestamp(10), None, Timestamp(10)),
            Some(Ended::Expired)
        );
        assert_eq!(
            ended(Timestamp(10), Some(Timestamp(5)), Timestamp(6)),
            Some(Ended::Revoked)
        );
        assert_eq!(
            ended(Timestamp(10), Some(Timestamp(5)), Timestamp(11)),
            Some(Ended::Revoked)
        );
    }
}
