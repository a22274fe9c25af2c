//! One token (JWT, RFC 7519): read, checked against what its issuer is configured with, verified,
//! and only then believed.

use super::algorithm::Algorithm;
use super::config::IssuerConfig;
use super::jwk::KeySet;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::time::Timestamp;
use domain::user::Scope;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Bytes of a token.
pub(super) const TOKEN_BYTES_MAX: usize = 8 << 10;
/// Bytes of the claim that names the user.
const USER_CLAIM_BYTES_MAX: usize = 512;
/// The accepted values of a token's `typ` header, which may also be absent. Tokens of other types
/// serve other purposes.
const TYPES: &[&str] = &["jwt", "at+jwt", "application/at+jwt"];
/// The latest time that a token may name, in seconds: the end of the year 9999.
const SECONDS_MAX: f64 = 253_402_300_799.0;

/// The reason why a token is not trusted. It reveals nothing of the token's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Untrusted {
    #[error("it has more than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    #[error("it does not have the form of a signed token")]
    Malformed,
    #[error("its type is not one that the API accepts")]
    Type,
    #[error("it has unknown critical extensions (`crit`)")]
    Critical,
    #[error("its issuer is not trusted")]
    Issuer,
    #[error("its algorithm is not among those configured for its issuer")]
    Algorithm,
    #[error("its issuer has no key with its `kid` and type")]
    Key,
    #[error("its signature is wrong")]
    Signature,
    #[error("it is for another audience: its `aud` is not among the configured ones")]
    Audience,
    #[error("its `{0}` is missing or invalid")]
    Claim(&'static str),
    #[error("it has expired (`exp`)")]
    Expired,
    #[error("it is not valid yet (`nbf`)")]
    NotYet,
    #[error("it was issued in the future (`iat`)")]
    FromTheFuture,
    #[error("the configured claim names no user")]
    User,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

/// A token that was read, and is not believed.
pub(super) struct Token<'a> {
    header: Header,
    claims: Map<String, Value>,
    /// The signed part: header and claims as they were sent.
    signed: &'a str,
    signature: Vec<u8>,
}

/// A token whose signature is its issuer's.
pub(super) struct Verified(Map<String, Value>);

/// The claims of a token that the host uses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claims {
    /// The user, as the issuer names them.
    pub(super) user: String,
    /// The scopes that the token may be used for.
    pub(super) scopes: BTreeSet<Scope>,
    /// The time at which it expires, including the leeway.
    pub(super) expires_at: Timestamp,
}

impl<'a> Token<'a> {
    /// Reads a token.
    pub(super) fn read(token: &'a str) -> Result<Self, Untrusted> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Untrusted::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Untrusted::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(Untrusted::Malformed)?;
        // A third dot would be in the claims, which then do not decode.
        let decoded = |part: &str| {
            URL_SAFE_NO_PAD
                .decode(part)
                .map_err(|_| Untrusted::Malformed)
        };
        let header: Header =
            serde_json::from_slice(&decoded(header)?).map_err(|_| Untrusted::Malformed)?;
        let claims = serde_json::from_slice(&decoded(claims)?).map_err(|_| Untrusted::Malformed)?;
        if header
            .typ
            .as_ref()
            .is_some_and(|typ| !TYPES.contains(&typ.to_ascii_lowercase().as_str()))
        {
            return Err(Untrusted::Type);
        }
        if header.crit.is_some() {
            return Err(Untrusted::Critical);
        }
        Ok(Self {
            header,
            claims,
            signed,
            signature: decoded(signature)?,
        })
    }

    /// Returns whether the token names this issuer as its own.
    pub(super) fn is_from(&self, issuer: &str) -> bool {
        self.claims.get("iss").and_then(Value::as_str) == Some(issuer)
    }

    /// Returns the name of the key that the token claims to be signed with.
    pub(super) fn kid(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// Its algorithm, if it is one of its issuer's.
    pub(super) fn algorithm(&self, issuer: &IssuerConfig) -> Result<Algorithm, Untrusted> {
        Algorithm::named(&self.header.alg)
            .filter(|algorithm| issuer.algorithms.contains(algorithm))
            .ok_or(Untrusted::Algorithm)
    }

    /// Its times, before it costs anybody a signature or a request.
    pub(super) fn check_time(
        &self,
        issuer: &IssuerConfig,
        now: Timestamp,
    ) -> Result<(), Untrusted> {
        expires_at(&self.claims, issuer, now).map(drop)
    }

    /// Checks its signature by the issuer's keys.
    pub(super) fn verify(self, keys: &KeySet, algorithm: Algorithm) -> Result<Verified, Untrusted> {
        let candidates = keys.candidates(self.kid(), algorithm);
        if candidates.is_empty() {
            return Err(Untrusted::Key);
        }
        let signed = |key| algorithm.verifies(key, self.signed.as_bytes(), &self.signature);
        if candidates.into_iter().any(signed) {
            Ok(Verified(self.claims))
        } else {
            Err(Untrusted::Signature)
        }
    }
}

impl Verified {
    /// Returns the claims that the host uses.
    pub(super) fn claims(
        &self,
        issuer: &IssuerConfig,
        now: Timestamp,
    ) -> Result<Claims, Untrusted> {
        let Self(claims) = self;
        let is_ours = |audience: &str| issuer.audience.iter().any(|ours| ours == audience);
        let for_us = match claims.get("aud") {
            Some(Value::String(audience)) => is_ours(audience),
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).any(is_ours),
            _ => return Err(Untrusted::Claim("aud")),
        };
        if !for_us {
            return Err(Untrusted::Audience);
        }
        let expires_at = expires_at(claims, issuer, now)?;
        // An address that nobody has verified is a name that everybody can take.
        if issuer.user_claim == "email" && claims.get("email_verified") != Some(&Value::Bool(true))
        {
            return Err(Untrusted::User);
        }
        let user = claims.get(&issuer.user_claim).and_then(Value::as_str);
        let user = user
            .filter(|user| (1..=USER_CLAIM_BYTES_MAX).contains(&user.len()))
            .ok_or(Untrusted::User)?;
        Ok(Claims {
            user: user.to_owned(),
            scopes: scopes(claims, issuer),
            expires_at,
        })
    }
}

/// Checks the times of a token; when it ends, the leeway included.
fn expires_at(
    claims: &Map<String, Value>,
    issuer: &IssuerConfig,
    now: Timestamp,
) -> Result<Timestamp, Untrusted> {
    let leeway_ms = issuer.leeway_s.saturating_mul(1_000);
    let ends = time(claims, "exp")?
        .ok_or(Untrusted::Claim("exp"))?
        .plus_ms(leeway_ms);
    if ends <= now {
        return Err(Untrusted::Expired);
    }
    if time(claims, "nbf")?.is_some_and(|begins| begins > now.plus_ms(leeway_ms)) {
        return Err(Untrusted::NotYet);
    }
    if time(claims, "iat")?.is_some_and(|issued| issued > now.plus_ms(leeway_ms)) {
        return Err(Untrusted::FromTheFuture);
    }
    Ok(ends)
}

/// A time in seconds, perhaps with a fraction; none if the claim is not there.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it was found to be within bounds"
)]
fn time(claims: &Map<String, Value>, name: &'static str) -> Result<Option<Timestamp>, Untrusted> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let seconds = value
        .as_f64()
        .filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds))
        .ok_or(Untrusted::Claim(name))?;
    Ok(Some(Timestamp((seconds * 1_000.0) as u64)))
}

/// Returns the scopes of a token: those of its issuer, narrowed by the scopes claim where one is
/// configured.
fn scopes(claims: &Map<String, Value>, issuer: &IssuerConfig) -> BTreeSet<Scope> {
    let all = issuer.scopes.iter().copied();
    let Some(claim) = &issuer.scopes_claim else {
        return all.collect();
    };
    let said: Vec<&str> = match claims.get(claim) {
        Some(Value::String(words)) => words.split(' ').collect(),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    all.filter(|scope| said.contains(&scope.as_str())).collect()
}
