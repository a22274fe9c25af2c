//! Users: their ids on this host, and the scopes of their credentials.

use crate::values::digest::Digest;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The words that give segments of a path their meaning. They name no user, no agent, no connector
/// and no tag.
pub const RESERVED_WORDS: [&str; 8] = [
    "agent", "cron", "task", "subuser", "sub", "memory", "search", "system",
];

/// Bytes of a user's id.
pub(crate) const USER_BYTES_MAX: usize = 64;
/// The beginning of ids that are made of claims.
const FOREIGN: &str = "oidc-";

/// A user's id: 1 to 64 of `a-z`, `A-Z`, `0-9`, `-`, `_`, `.` and `@`. It begins with a letter or a
/// digit, and is none of the words that give segments of paths their meaning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UserId(String);

/// A text that is no user's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{given}` is no user id: 1 to {USER_BYTES_MAX} letters, digits, `-`, `_`, `.` and `@`, \
     beginning with a letter or a digit, and none of: \
     {reserved}",
    reserved = RESERVED_WORDS.join(", ")
)]
pub struct NotAUser {
    given: String,
}

/// The rule by which a host names the users of an issuer of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// As the issuer does, where that can be an id: its `alice` is the user who has an API key as
    /// `alice`. At most one issuer's users are named so, because two that know an `alice` need not
    /// mean the same person.
    Plain,
    /// By what follows from issuer and claim together, so that no other user has the same id.
    ByIssuer,
}

impl UserId {
    /// The user of a host that has no other.
    #[must_use]
    pub fn local() -> Self {
        Self("local".to_owned())
    }

    /// The user that an issuer of tokens means by a claim: `oidc-` and 32 hexadecimal digits that
    /// follow from issuer and claim. Of an issuer with plain names it is the claim itself, if that
    /// can be an id and passes neither for this host's own user nor for one that was made here.
    #[must_use]
    pub fn of_claim(issuer: &str, claim: &str, naming: Naming) -> Self {
        let may_be_plain = |user: &Self| *user != Self::local() && !user.0.starts_with(FOREIGN);
        let plain = match naming {
            Naming::Plain => claim.parse().ok().filter(may_be_plain),
            Naming::ByIssuer => None,
        };
        let made = || {
            Self(format!(
                "{FOREIGN}{}",
                Digest::of_parts(&[issuer.as_bytes(), claim.as_bytes()]).short()
            ))
        };
        plain.unwrap_or_else(made)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for UserId {
    type Err = NotAUser;
    fn from_str(text: &str) -> Result<Self, NotAUser> {
        let well_formed = (1..=USER_BYTES_MAX).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.@".contains(c))
            && !RESERVED_WORDS.contains(&text);
        if well_formed {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAUser {
                given: text.chars().take(USER_BYTES_MAX).collect(),
            })
        }
    }
}

impl TryFrom<String> for UserId {
    type Error = NotAUser;
    fn try_from(text: String) -> Result<Self, NotAUser> {
        text.parse()
    }
}

impl From<UserId> for String {
    fn from(user: UserId) -> Self {
        user.0
    }
}

/// A permission of a credential. A user's roles decide which agents it reaches.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Looking: agents, sessions, event streams.
    Read,
    /// Commands on agents and sessions.
    Write,
    /// Issuing, listing and revoking the user's own keys.
    Keys,
    /// Everything that the operator does: all events, the ledger, dead letters, backups, all users'
    /// keys.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Keys, Self::Admin];

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Keys => "keys",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Scope {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| format!("`{text}` is no scope; there are: {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Naming, UserId};

    #[test]
    fn a_user_id_can_stand_in_a_path() {
        for good in ["local", "alice", "Bob.2", "carol@example.org", "0-a_b"] {
            assert!(good.parse::<UserId>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "-a",
            ".hidden",
            "a/b",
            "a b",
            "agent",
            "system",
            "ä",
            "a\n",
            &"x".repeat(65),
        ] {
            assert!(bad.parse::<UserId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_claim_never_passes_for_the_hosts_own_user_or_for_an_id_that_was_made() {
        let user =
            |issuer: &str, claim: &str| UserId::of_claim(issuer, claim, Naming::Plain).to_string();
        for plain in ["alice", "00u1b2c3", "alice@example.org"] {
            assert_eq!(user("https://a.example", plain), plain);
        }
        for odd in [
            "local",
            "auth0|5f7c",
            "system",
            "",
            "oidc-0123",
            "a b",
            &"x".repeat(65),
        ] {
            let made = user("https://a.example", odd);
            assert!(
                made.starts_with("oidc-") && made.len() == 37 && made.parse::<UserId>().is_ok(),
                "{odd}: {made}"
            );
            assert_eq!(
                made,
                user("https://a.example", odd),
                "the same whenever it is made"
            );
            assert_ne!(made, user("https://b.example", odd), "{odd}");
            assert_ne!(
                made,
                user("https://b.example", &made),
                "nobody else says what was made"
            );
        }
    }

    #[test]
    fn two_issuers_never_mean_the_same_user_by_one_claim_unless_one_of_them_is_plain() {
        let user = |issuer: &str, claim: &str| UserId::of_claim(issuer, claim, Naming::ByIssuer);
        for claim in ["alice", "local", "auth0|5f7c", "oidc-0123"] {
            let of_a = user("https://a.example", claim);
            let of_b = user("https://b.example", claim);
            assert!(of_a != of_b && of_a.as_str() != claim, "{claim}: {of_a}");
            assert_eq!(
                of_a,
                user("https://a.example", claim),
                "the same whenever it is made"
            );
            assert!(of_a.as_str().parse::<UserId>().is_ok(), "{of_a}");
            assert_ne!(
                of_a,
                UserId::of_claim("https://b.example", claim, Naming::Plain),
                "{claim}"
            );
        }
        // What is long or has separators in it cannot be shifted from one to the other.
        assert_ne!(
            user("https://a.example", "b|c"),
            user("https://a.example|b", "c")
        );
        // An odd claim is called the same by either rule.
        assert_eq!(
            user("https://a.example", "a b"),
            UserId::of_claim("https://a.example", "a b", Naming::Plain)
        );
    }
}
