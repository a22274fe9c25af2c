//! The proof that the caller knows the secret. Comparisons take constant time: it does not depend
//! on where two values differ.

use super::{HmacScheme, WebhookAuth, WebhookRequest};
use crate::values::digest::Digest;
use crate::values::time::Timestamp;
use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The alternative header for a token, besides `Authorization`.
pub const TOKEN_HEADER: &str = "x-agenthost-token";
const AUTHORIZATION: &str = "authorization";
const GITHUB_SIGNATURE: &str = "x-hub-signature-256";
const STRIPE_SIGNATURE: &str = "stripe-signature";
/// The name of the digest, which may precede a signature.
const SHA256: &str = "sha256=";
/// Signatures in base64 are accepted with and without padding.
const BASE64: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
/// Signatures of one call that are checked: Stripe sends two while a secret is being replaced.
const SIGNATURES_MAX: usize = 8;

/// The reason why a call is not accepted as one by a holder of the secret. It is not revealed to
/// the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotVerified {
    /// The proof is missing.
    #[error("the header `{0}` is missing")]
    Missing(String),
    /// The proof occurs more than once.
    #[error("the header `{0}` is there more than once")]
    Twice(String),
    /// The proof cannot be read.
    #[error("the header `{0}` is not as the scheme has it")]
    Malformed(String),
    /// It is no proof.
    #[error("token or signature do not fit the secret")]
    Wrong,
    /// Its time differs too much from the present.
    #[error("the signature's time is off by {off_s} s; {max_s} s are allowed")]
    Stale {
        /// Seconds between it and now.
        off_s: u64,
        /// Seconds that are allowed.
        max_s: u64,
    },
}

impl WebhookAuth {
    /// Verifies a call.
    ///
    /// # Errors
    /// The proof is invalid.
    pub fn verify(
        &self,
        secret: &[u8],
        request: &WebhookRequest<'_>,
        now: Timestamp,
    ) -> Result<(), NotVerified> {
        if secret.is_empty() {
            return Err(NotVerified::Wrong);
        }
        match self {
            Self::Token { .. } => verify_token(secret, request),
            Self::Hmac {
                scheme: HmacScheme::Github,
                ..
            } => {
                let given = needed(request, GITHUB_SIGNATURE)?;
                let digits = given
                    .strip_prefix(SHA256)
                    .ok_or_else(|| NotVerified::Malformed(GITHUB_SIGNATURE.to_owned()))?;
                verify_one(secret, &[request.body], [digits])
            }
            Self::Hmac {
                scheme: HmacScheme::Stripe,
                ..
            } => self.verify_stripe(secret, request, now),
            Self::Hmac {
                scheme: HmacScheme::Plain,
                header,
                timestamp_header,
                ..
            } => {
                let header = header.as_deref().unwrap_or_default();
                let given = needed(request, header)?;
                let digits = match given.split_at_checked(SHA256.len()) {
                    Some((name, digits)) if name.eq_ignore_ascii_case(SHA256) => digits,
                    _ => given,
                };
                let Some(timestamp_header) = timestamp_header else {
                    return verify_one(secret, &[request.body], [digits]);
                };
                let seconds = needed(request, timestamp_header)?;
                let parts = [seconds.as_bytes(), b".", request.body];
                verify_one(secret, &parts, [digits])?;
                self.check_time(timestamp_header, seconds, now)
            }
        }
    }

    fn verify_stripe(
        &self,
        secret: &[u8],
        request: &WebhookRequest<'_>,
        now: Timestamp,
    ) -> Result<(), NotVerified> {
        let given = needed(request, STRIPE_SIGNATURE)?;
        let malformed = || NotVerified::Malformed(STRIPE_SIGNATURE.to_owned());
        let mut seconds = None;
        let mut signatures = Vec::new();
        for part in given.split(',') {
            match part.trim().split_once('=').ok_or_else(malformed)? {
                ("t", _) if seconds.is_some() => return Err(malformed()),
                ("t", value) => seconds = Some(value),
                ("v1", value) => signatures.push(value),
                _ => {}
            }
        }
        let seconds = seconds.ok_or_else(malformed)?;
        if signatures.is_empty() || signatures.len() > SIGNATURES_MAX {
            return Err(malformed());
        }
        let parts = [seconds.as_bytes(), b".", request.body];
        verify_one(secret, &parts, signatures)?;
        self.check_time(STRIPE_SIGNATURE, seconds, now)
    }

    /// Checks the time of a matching signature, which is valid for some minutes only.
    fn check_time(&self, header: &str, seconds: &str, now: Timestamp) -> Result<(), NotVerified> {
        let is_number = seconds.bytes().all(|byte| byte.is_ascii_digit());
        let signed_ms = seconds
            .parse::<u64>()
            .ok()
            .filter(|_| is_number)
            .and_then(|seconds| seconds.checked_mul(1_000))
            .ok_or_else(|| NotVerified::Malformed(header.to_owned()))?;
        let off_ms = now.0.abs_diff(signed_ms);
        match self.tolerance_ms() {
            Some(max_ms) if off_ms > max_ms => Err(NotVerified::Stale {
                off_s: off_ms / 1_000,
                max_s: max_ms / 1_000,
            }),
            _ => Ok(()),
        }
    }
}

fn verify_token(secret: &[u8], request: &WebhookRequest<'_>) -> Result<(), NotVerified> {
    let bearer = request.header(AUTHORIZATION)?;
    let plain = request.header(TOKEN_HEADER)?;
    let bearer = match bearer.map(|value| value.split_once(' ')) {
        Some(Some((scheme, token))) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim()),
        // Other authorization schemes may be meant for a proxy.
        Some(_) if plain.is_some() => None,
        Some(_) => return Err(NotVerified::Malformed(AUTHORIZATION.to_owned())),
        None => None,
    };
    let given: Vec<&str> = [bearer, plain].into_iter().flatten().collect();
    if given.is_empty() {
        return Err(NotVerified::Missing(AUTHORIZATION.to_owned()));
    }
    let expected = Digest::of(secret);
    let fits = |token: &&str| Digest::of(token.as_bytes()).is_secretly(&expected);
    if given.iter().all(fits) {
        Ok(())
    } else {
        Err(NotVerified::Wrong)
    }
}

/// Checks that one of some signatures matches the parts.
fn verify_one<'a>(
    secret: &[u8],
    parts: &[&[u8]],
    signatures: impl IntoIterator<Item = &'a str>,
) -> Result<(), NotVerified> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| NotVerified::Wrong)?;
    for part in parts {
        mac.update(part);
    }
    let is_signature = |digits: &str| {
        signature_of(digits.trim()).is_some_and(|bytes| mac.clone().verify_slice(&bytes).is_ok())
    };
    // All are tried, so that the time does not depend on which one fits.
    let fitting = signatures
        .into_iter()
        .filter(|digits| is_signature(digits))
        .count();
    if fitting > 0 {
        Ok(())
    } else {
        Err(NotVerified::Wrong)
    }
}

/// The bytes of a signature, in hexadecimal digits or in base64.
fn signature_of(digits: &str) -> Option<Vec<u8>> {
    let in_base64 = |alphabet| GeneralPurpose::new(alphabet, BASE64).decode(digits).ok();
    hex::decode(digits)
        .ok()
        .or_else(|| in_base64(&STANDARD))
        .or_else(|| in_base64(&URL_SAFE))
}

fn needed<'a>(request: &WebhookRequest<'a>, header: &str) -> Result<&'a str, NotVerified> {
    let value = request.header(header)?;
    value.ok_or_else(|| NotVerified::Missing(header.to_owned()))
}

impl<'a> WebhookRequest<'a> {
    /// Returns the value of a header, if any.
    ///
    /// # Errors
    /// It occurs more than once: readers of the first and readers of the last would differ.
    pub fn header(&self, name: &str) -> Result<Option<&'a str>, NotVerified> {
        let mut values = self
            .headers
            .iter()
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(NotVerified::Twice(name.to_owned())),
        }
    }
}
