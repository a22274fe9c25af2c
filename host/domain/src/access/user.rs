//! Users: their ids on this host, and the scopes of their credentials.

use crate::values::digest::Digest;
use crate::values::text::{serde_as_text, words, wrapped_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use utoipa::ToSchema;

/// The words with a meaning in paths. They are no names of users, agents, connectors or tags.
pub const RESERVED_WORDS: [&str; 8] = [
    "agent", "cron", "task", "subuser", "sub", "memory", "search", "system",
];

/// Bytes of a user's id.
pub(crate) const USER_BYTES_MAX: usize = 64;
/// The prefix of ids derived from claims.
const FOREIGN: &str = "oidc-";

/// A user's id: 1 to 64 of `a-z`, `A-Z`, `0-9`, `-`, `_`, `.` and `@`. It begins with a letter or a
/// digit, and is no reserved word of path segments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, ToSchema)]
#[schema(pattern = "^[a-zA-Z0-9][a-zA-Z0-9._@-]{0,63}$")]
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

/// The rule by which a host names the users of a token issuer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// The issuer's own names, if they are valid ids: its `alice` is the user who has an API key as
    /// `alice`. At most one issuer's users are named so, because the `alice` of two issuers need
    /// not be the same person.
    Plain,
    /// By an id derived from issuer and claim together, so that no other user has the same id.
    ByIssuer,
}

impl UserId {
    /// The only user of a host with a single user.
    #[must_use]
    pub fn local() -> Self {
        Self("local".to_owned())
    }

    /// The user for a claim of a token issuer: `oidc-` and 32 hexadecimal digits derived from
    /// issuer and claim. For an issuer with plain names it is the claim itself. The claim then has
    /// to be a valid id that looks neither like this host's own user nor like a derived one.
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

wrapped_text!(UserId);
serde_as_text!(UserId::from_str);

/// A permission of a credential. A user's roles decide which agents it applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(JsonSchema, ToSchema)]
pub enum Scope {
    /// Looking: agents, sessions, event streams.
    Read,
    /// Commands on agents and sessions.
    Write,
    /// Issuing, listing and revoking the user's own keys.
    Keys,
    /// All of the operator's actions: all events, the ledger, dead letters, backups, all users'
    /// keys.
    Admin,
}

words!(Scope { Read = "read", Write = "write", Keys = "keys", Admin = "admin" });

impl FromStr for Scope {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        Self::from_word(text).ok_or_else(|| format!("`{text}` is no scope; there are: {}", known()))
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
