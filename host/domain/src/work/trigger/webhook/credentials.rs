//! Credentials in a call: headers and parts of the query that are never stored and that no
//! component sees.

use crate::access::egress::CREDENTIALS;

/// Names of credentials, as headers and as parts of the query.
const NAMES: [&str; 12] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "auth",
    "key",
    "apikey",
    "sig",
    "hmac",
    "code",
    "jwt",
    "pass",
];
/// Parts of names that mark a credential.
const PARTS: [&str; 9] = [
    "token",
    "secret",
    "signature",
    "password",
    "passwd",
    "credential",
    "api-key",
    "api_key",
    "authorization",
];

/// Returns whether a header or a part of a query with this name is a credential, by its name.
#[must_use]
pub fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str())
        || CREDENTIALS.contains(&name.as_str())
        || PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_told_by_their_names() {
        for (name, expected) in [
            ("Authorization", true),
            ("Cookie", true),
            ("X-Hub-Signature-256", true),
            ("Stripe-Signature", true),
            ("X-AgentHost-Token", true),
            ("access_token", true),
            ("x-api-key", true),
            ("KEY", true),
            ("X-GitHub-Event", false),
            ("Content-Type", false),
            ("monkey", false),
            ("ce-id", false),
            ("user-agent", false),
        ] {
            assert_eq!(is_credential(name), expected, "{name}");
        }
    }
}
