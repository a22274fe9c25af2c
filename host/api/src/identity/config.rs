//! The configuration of an issuer.

use super::algorithm::Algorithm;
use super::fetch::place;
use domain::egress::AddressRange;
use domain::user::{Naming, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default for the seconds by which clocks may differ.
const LEEWAY_S: u64 = 60;
/// Default for the seconds after which keys are fetched again: an hour.
const REFRESH_S: u64 = 3_600;
/// Default for the seconds after which keys that could not be fetched again are no longer trusted:
/// a day.
const HARD_EXPIRY_S: u64 = 86_400;

/// An issuer of tokens (JWT, OpenID Connect) that the host trusts to say who its users are. Two
/// issuers never mean the same user: what the users of one are called is for `plainUsers` to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IssuerConfig {
    /// The `iss` claim of its tokens, compared exactly. Without `jwksUrl`, its keys are found
    /// through `<issuer>/.well-known/openid-configuration`.
    pub issuer: String,
    /// The values accepted in the `aud` claim of its tokens. A token for this host has one of them.
    #[schemars(length(min = 1))]
    pub audience: Vec<String>,
    /// The algorithms that its tokens are signed with. Any other is refused, whatever a token
    /// declares.
    #[schemars(length(min = 1))]
    pub algorithms: Vec<Algorithm>,
    /// The URL of its keys. `https`, except on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
    /// The claim that names the user. With `email`, only addresses that the issuer has verified are
    /// accepted.
    #[serde(default = "user_claim")]
    pub user_claim: String,
    /// True if the value of the user claim is the user id itself, where it can be one. The issuer's
    /// `alice` is then the user `alice` here, who may also have API keys. If false, user ids are
    /// derived from issuer and claim: `oidc-` and 32 hexadecimal digits. At most one issuer may
    /// have plain users. By default a single issuer has them; of several issuers, none has. Set it
    /// before a second issuer is added: users whose ids change are other users, with other agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain_users: Option<bool>,
    /// The claim that names a token's scopes, as space-separated words or as a list. It can only
    /// narrow `scopes`. Without it, every token may be used for all of `scopes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_claim: Option<String>,
    /// The scopes that its tokens may be used for.
    #[serde(default = "scopes")]
    pub scopes: Vec<Scope>,
    /// Seconds by which its clock may differ from this machine's.
    #[serde(default = "leeway_s")]
    #[schemars(range(min = 0, max = 300))]
    pub leeway_s: u64,
    /// Seconds after which its keys are fetched again.
    #[serde(default = "refresh_s")]
    #[schemars(range(min = 1, max = 86_400))]
    pub refresh_s: u64,
    /// Seconds after which keys that could not be fetched again are no longer trusted. Tokens are
    /// then refused with 503.
    #[serde(default = "hard_expiry_s")]
    #[schemars(range(min = 1, max = 604_800))]
    pub hard_expiry_s: u64,
    /// Addresses that may be asked for its keys although they are not public, such as
    /// `10.1.0.0/16`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private_addresses: Vec<AddressRange>,
}

fn user_claim() -> String {
    "sub".to_owned()
}

fn scopes() -> Vec<Scope> {
    vec![Scope::Read, Scope::Write]
}

fn leeway_s() -> u64 {
    LEEWAY_S
}

fn refresh_s() -> u64 {
    REFRESH_S
}

fn hard_expiry_s() -> u64 {
    HARD_EXPIRY_S
}

/// A problem with the configuration of an issuer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct IssuerProblem {
    /// The key of its entry.
    pub key: &'static str,
    /// A description of the problem.
    pub message: String,
}

impl IssuerProblem {
    pub(super) fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self {
            key,
            message: message.into(),
        }
    }
}

/// The issuers that have plain users although one before them has, each by its place in the list.
pub fn plain_again(issuers: &[IssuerConfig]) -> impl Iterator<Item = (usize, IssuerProblem)> {
    let mut plain = issuers
        .iter()
        .enumerate()
        .filter(|(_, issuer)| issuer.plain_users == Some(true))
        .map(|(index, _)| index);
    let first = plain.next();
    plain.zip(std::iter::repeat(first)).map(|(index, first)| {
        let first = first.unwrap_or_default();
        let message = format!(
            "server.identity[{first}] has plain users already, and the `alice` of one would be the \
             `alice` of the other; set it to false \
             here or there"
        );
        (index, IssuerProblem::new("plainUsers", message))
    })
}

/// Returns how the user ids of one of these issuers are derived; none for an issuer that is not
/// among them.
#[must_use]
pub fn naming(issuers: &[IssuerConfig], issuer: &str) -> Option<Naming> {
    let of_the_only_one = issuers.len() == 1;
    let config = issuers.iter().find(|config| config.issuer == issuer)?;
    Some(if config.plain_users.unwrap_or(of_the_only_one) {
        Naming::Plain
    } else {
        Naming::ByIssuer
    })
}

impl IssuerConfig {
    /// Returns all its problems, except numbers that are out of their ranges.
    #[must_use]
    pub fn problems(&self) -> Vec<IssuerProblem> {
        let mut problems = Vec::new();
        let mut find = |wrong: bool, key, message: &str| {
            problems.extend(wrong.then(|| IssuerProblem::new(key, message)))
        };
        let empty = |list: &[String]| list.is_empty() || list.iter().any(String::is_empty);
        find(self.issuer.is_empty(), "issuer", "it names nobody");
        find(
            empty(&self.audience),
            "audience",
            "say for whom its tokens are; without, those that it issues for others would count \
             here",
        );
        find(
            self.algorithms.is_empty(),
            "algorithms",
            "say which ones its tokens are signed with",
        );
        find(self.user_claim.is_empty(), "userClaim", "it names no claim");
        find(
            self.scopes_claim.as_ref().is_some_and(String::is_empty),
            "scopesClaim",
            "it names no claim",
        );
        find(
            self.scopes.is_empty(),
            "scopes",
            "its tokens could be used for nothing; take the issuer out, or name a scope",
        );
        find(
            self.hard_expiry_s < self.refresh_s,
            "hardExpiryS",
            "keys must be good for longer than until they are asked for again (`refreshS`)",
        );
        let (key, url) = self
            .jwks_url
            .as_ref()
            .map_or(("issuer", &self.issuer), |url| ("jwksUrl", url));
        if !url.is_empty() {
            problems.extend(
                place(url)
                    .err()
                    .map(|message| IssuerProblem::new(key, message)),
            );
        }
        problems
    }
}
