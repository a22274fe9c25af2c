//! Calls of a messaging service: their authentication, before a component sees a byte of them.

use crate::access::egress::CREDENTIALS;
use crate::values::digest::Digest;
use crate::values::time::Timestamp;
use crate::work::trigger::SpecFault;
use hmac::{Hmac, Mac};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Seconds by which the time of a signed call may differ from the host's.
pub const CALL_AGE_S_MAX: u64 = 300;
/// Bytes of a challenge that is sent back.
pub const CHALLENGE_BYTES_MAX: usize = 1 << 10;
/// The header in which Telegram sends the secret.
const TELEGRAM_HEADER: &str = "x-telegram-bot-api-secret-token";
/// The header in which Meta sends its signature.
const META_HEADER: &str = "x-hub-signature-256";
/// The header in which Slack sends its signature.
const SLACK_HEADER: &str = "x-slack-signature";
/// The header in which Slack sends the second of the call.
const SLACK_TIME_HEADER: &str = "x-slack-request-timestamp";
/// The default header of a token.
const TOKEN_HEADER: &str = "authorization";

/// The method by which a service's calls are authenticated. Secrets are named as they are in
/// `secrets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "lowercase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum WebhookCheck {
    /// As Telegram does: the secret itself, in `X-Telegram-Bot-Api-Secret-Token`.
    Telegram {
        /// The name of the secret for `setWebhook`.
        secret: String,
    },
    /// As WhatsApp and other services of Meta do: a signature of the body, in
    /// `X-Hub-Signature-256`, after a handshake.
    Meta {
        /// The name of the app's secret.
        secret: String,
        /// The name of the secret in the handshake.
        verify_token: String,
    },
    /// As Slack does: a signature of time and body, in `X-Slack-Signature`.
    Slack {
        /// The name of the signing secret.
        secret: String,
    },
    /// The secret itself in a header, for your own services.
    Token {
        /// The name of the secret.
        secret: String,
        /// The header; default `Authorization`, with `Bearer` before the secret.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        header: Option<String>,
    },
}

/// The method of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallMethod {
    /// A handshake.
    Get,
    /// Messages.
    Post,
}

/// One call by a service, or by somebody else.
#[derive(Debug, Clone, Copy)]
pub struct ServiceCall<'a> {
    /// Its method.
    pub method: CallMethod,
    /// Its headers, names in lower case.
    pub headers: &'a [(String, String)],
    /// Its query, decoded.
    pub query: &'a [(String, String)],
    /// Its body.
    pub body: &'a [u8],
}

/// The values of the secrets that a [`WebhookCheck`] names.
#[derive(Clone, Copy)]
pub struct WebhookSecrets<'a> {
    /// The value of `secret`.
    pub secret: &'a [u8],
    /// The value of `verifyToken`, if any.
    pub verify_token: Option<&'a [u8]>,
}

impl std::fmt::Debug for WebhookSecrets<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecrets")
    }
}

/// An authentic call of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// The component reads it.
    Call,
    /// It gets this text as its response, and no component reads it.
    Handshake {
        /// The text.
        challenge: String,
    },
}

/// The reason why a call is not authentic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotVerified {
    /// The service makes no calls with this method.
    #[error("the service makes no calls with this method")]
    Method,
    /// The proof is missing, or occurs several times.
    #[error("the call has not exactly one `{0}`")]
    Missing(&'static str),
    /// The proof is wrong.
    #[error("the signature or token of the call is wrong")]
    Wrong,
    /// Its time is too far in the past or in the future.
    #[error("the call was signed more than {CALL_AGE_S_MAX} s before or after the host's time")]
    Stale,
    /// The secret is empty, so that anybody could sign.
    #[error("the secret is empty, and nothing is signed with that")]
    EmptySecret,
}

impl WebhookCheck {
    /// Returns the name of the secret.
    #[must_use]
    pub fn secret(&self) -> &str {
        match self {
            Self::Telegram { secret }
            | Self::Meta { secret, .. }
            | Self::Slack { secret }
            | Self::Token { secret, .. } => secret,
        }
    }

    /// Returns the name of the secret in the handshake, if any.
    #[must_use]
    pub fn verify_token(&self) -> Option<&str> {
        match self {
            Self::Meta { verify_token, .. } => Some(verify_token),
            _ => None,
        }
    }

    /// Returns the fault in its names, if any.
    pub(super) fn fault(&self) -> Option<SpecFault> {
        let secret = match self {
            Self::Telegram { .. } => "telegram.secret",
            Self::Meta { .. } => "meta.secret",
            Self::Slack { .. } => "slack.secret",
            Self::Token { .. } => "token.secret",
        };
        let token = "meta.verifyToken";
        let fix = "write the name of a secret in `secrets`";
        match self {
            _ if self.secret().trim().is_empty() => Some(SpecFault::new(secret, "is empty", fix)),
            Self::Meta { verify_token, .. } if verify_token.trim().is_empty() => {
                Some(SpecFault::new(token, "is empty", fix))
            }
            Self::Meta {
                secret,
                verify_token,
            } if secret == verify_token => {
                let message = "is the same secret as `secret`, and the handshake sends it in the \
                               address";
                Some(SpecFault::new(token, message, "name another one"))
            }
            Self::Token {
                header: Some(header),
                ..
            } if !is_header(header) => {
                let shown: String = header.chars().take(64).collect();
                let message = format!("is `{shown}`, which is no header");
                Some(SpecFault::new(
                    "token.header",
                    message,
                    "write one such as `x-token`",
                ))
            }
            _ => None,
        }
    }

    /// Checks that a call is the service's own, in constant time with regard to secrets.
    ///
    /// # Errors
    /// The reason why it is not, which is not revealed to the caller.
    pub fn verify(
        &self,
        secrets: WebhookSecrets<'_>,
        call: &ServiceCall<'_>,
        now: Timestamp,
    ) -> Result<Verified, NotVerified> {
        if secrets.secret.is_empty() || secrets.verify_token.is_some_and(<[u8]>::is_empty) {
            return Err(NotVerified::EmptySecret);
        }
        if call.method == CallMethod::Get {
            return match self {
                Self::Meta { .. } => handshake(secrets, call),
                Self::Telegram { .. } | Self::Slack { .. } | Self::Token { .. } => {
                    Err(NotVerified::Method)
                }
            };
        }
        match self {
            Self::Telegram { .. } => {
                let token = call.header(TELEGRAM_HEADER, "x-telegram-bot-api-secret-token")?;
                is_token(token.as_bytes(), secrets.secret)
            }
            Self::Meta { .. } => {
                let signature = call.header(META_HEADER, "x-hub-signature-256")?;
                is_signed(
                    secrets.secret,
                    signature.strip_prefix("sha256="),
                    &[call.body],
                )
            }
            Self::Slack { .. } => slack(secrets.secret, call, now),
            Self::Token { header: None, .. } => {
                let value = call.header(TOKEN_HEADER, "authorization")?;
                let token = bearer(value).ok_or(NotVerified::Wrong)?;
                is_token(token.as_bytes(), secrets.secret)
            }
            Self::Token {
                header: Some(header),
                ..
            } => {
                let token = call.header(&header.to_ascii_lowercase(), "token")?;
                is_token(token.as_bytes(), secrets.secret)
            }
        }
        .map(|()| Verified::Call)
    }

    /// Returns whether a header of a call contains a secret that a component must not see.
    #[must_use]
    pub fn is_credential(&self, header: &str) -> bool {
        let own = match self {
            Self::Token {
                header: Some(own), ..
            } => own.eq_ignore_ascii_case(header),
            Self::Telegram { .. } | Self::Meta { .. } | Self::Slack { .. } | Self::Token { .. } => {
                false
            }
        };
        own || [TELEGRAM_HEADER, META_HEADER, SLACK_HEADER]
            .iter()
            .chain(CREDENTIALS)
            .any(|known| known.eq_ignore_ascii_case(header))
    }
}

impl<'a> ServiceCall<'a> {
    /// The value of a header that occurs once.
    fn header(&self, name: &str, reported: &'static str) -> Result<&'a str, NotVerified> {
        once(self.headers, name).ok_or(NotVerified::Missing(reported))
    }
}

fn once<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = pairs.iter().filter(|(known, _)| known == name);
    let (_, value) = found.next()?;
    found.next().is_none().then_some(value.as_str())
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn is_header(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

fn is_token(given: &[u8], secret: &[u8]) -> Result<(), NotVerified> {
    // Digests have equal lengths, so that the time does not reveal the secret's length either.
    if Digest::of(given).is_secretly(&Digest::of(secret)) {
        Ok(())
    } else {
        Err(NotVerified::Wrong)
    }
}

fn is_signed(secret: &[u8], signature: Option<&str>, signed: &[&[u8]]) -> Result<(), NotVerified> {
    let signature = signature.ok_or(NotVerified::Wrong)?;
    let signature = hex::decode(signature).map_err(|_| NotVerified::Wrong)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| NotVerified::EmptySecret)?;
    for part in signed {
        mac.update(part);
    }
    mac.verify_slice(&signature).map_err(|_| NotVerified::Wrong)
}

fn slack(secret: &[u8], call: &ServiceCall<'_>, now: Timestamp) -> Result<(), NotVerified> {
    let time = call.header(SLACK_TIME_HEADER, "x-slack-request-timestamp")?;
    let signature = call.header(SLACK_HEADER, "x-slack-signature")?;
    let text = [b"v0:", time.as_bytes(), b":", call.body];
    is_signed(secret, signature.strip_prefix("v0="), &text)?;
    let signed_s: u64 = time.parse().map_err(|_| NotVerified::Stale)?;
    if signed_s.abs_diff(now.0 / 1_000) > CALL_AGE_S_MAX {
        return Err(NotVerified::Stale);
    }
    Ok(())
}

/// Meta's handshake: the call has the token and a challenge, which is returned.
fn handshake(secrets: WebhookSecrets<'_>, call: &ServiceCall<'_>) -> Result<Verified, NotVerified> {
    let of = |name: &'static str| once(call.query, name).ok_or(NotVerified::Missing(name));
    let token = of("hub.verify_token")?;
    is_token(
        token.as_bytes(),
        secrets.verify_token.ok_or(NotVerified::EmptySecret)?,
    )?;
    let challenge = of("hub.challenge")?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if of("hub.mode")? != "subscribe"
        || challenge.len() > CHALLENGE_BYTES_MAX
        || !challenge.bytes().all(fits)
    {
        return Err(NotVerified::Wrong);
    }
    Ok(Verified::Handshake {
        challenge: challenge.to_owned(),
    })
}

#[cfg(test)]
mod tests;
