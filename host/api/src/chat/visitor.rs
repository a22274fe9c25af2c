//! Visitors of a chat, and the tokens by which they are known.
//!
//! A token is kept nowhere: a visitor's id is a digest of it, and the visitor is there if a
//! connector key with that id is bound. So a copy of the store is good for nobody's words, and an
//! operator who unbinds the key has shut the visitor out.

use crate::access::unauthorized;
use crate::problem::Problem;
use crate::state::Api;
use domain::connector::DirectSpec;
use domain::digest::Digest;
use domain::error_code::ErrorCode;
use domain::path::{ConnectorKey, ConnectorName};
use domain::user::UserId;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;

/// The beginning of every token of a visitor.
const TOKEN_PREFIX: &str = "ahv_";
/// Random bytes of a token.
const SECRET_BYTES: usize = 32;
/// The beginning of the users that visitors are.
pub(crate) const USER_PREFIX: &str = "visitor-";

/// A chat that is served.
#[derive(Debug, Clone)]
pub(crate) struct Chat {
    /// Its connector.
    pub(crate) connector: ConnectorName,
    /// The operator's configuration of it.
    pub(crate) spec: DirectSpec,
    /// True if visitors are shown that a reply is in the making.
    pub(crate) shows_typing: bool,
    /// False while the operator has it stand still: then it can be read, and takes nothing.
    is_enabled: bool,
}

impl Chat {
    /// Checks that it takes visitors and what they say.
    ///
    /// # Errors
    /// 409: it stands still.
    pub(crate) fn takes(&self) -> Result<(), Problem> {
        if self.is_enabled {
            return Ok(());
        }
        let detail = format!(
            "the chat `{}` is closed for now; come back later",
            self.connector
        );
        Err(Problem::new(ErrorCode::ConnectorDisabled, detail))
    }
}

/// The secret of a visitor, which shows itself to nobody but them.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct VisitorToken(String);

impl fmt::Debug for VisitorToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VisitorToken")
    }
}

impl VisitorToken {
    /// A new one.
    ///
    /// # Errors
    /// The machine has no randomness.
    pub(crate) fn random() -> Result<Self, Problem> {
        let mut secret = [0; SECRET_BYTES];
        SystemRandom::new().fill(&mut secret).map_err(|_| {
            tracing::error!("the system gives no random bytes");
            Problem::new(
                ErrorCode::NoRandomness,
                "the system gives no random bytes; the host's log says more",
            )
        })?;
        Ok(Self::of_secret(secret))
    }

    fn of_secret(secret: [u8; SECRET_BYTES]) -> Self {
        let digits = secret.iter().map(|byte| format!("{byte:02x}"));
        Self(TOKEN_PREFIX.to_owned() + &digits.collect::<String>())
    }

    /// Reads a token of a request; none if it has another form.
    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(TOKEN_PREFIX)?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (digits.len() == 2 * SECRET_BYTES && digits.bytes().all(is_digit))
            .then(|| Self(text.to_owned()))
    }

    /// Returns the text, to be told to the visitor once.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the visitor's id, from which nothing of the token follows.
    pub(crate) fn visitor_id(&self) -> String {
        Digest::of_parts(&[b"visitor", self.0.as_bytes()]).short()
    }
}

/// A visitor of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Visitor {
    /// The connector key under which they are known. Its external id is the visitor's id, and the
    /// chat that they have.
    pub(crate) key: ConnectorKey,
    /// The user that they are.
    pub(crate) user: UserId,
}

impl Visitor {
    /// A visitor who comes for the first time.
    ///
    /// # Errors
    /// 400: the connector's name makes no key.
    pub(crate) fn new(connector: &ConnectorName, token: &VisitorToken) -> Result<Self, Problem> {
        let id = token.visitor_id();
        let no_key = |error: &dyn fmt::Display| Problem::invalid_id("connector", error.to_string());
        Ok(Self {
            user: format!("{USER_PREFIX}{id}")
                .parse()
                .map_err(|error| no_key(&error))?,
            key: ConnectorKey::new(connector.clone(), &id).map_err(|error| no_key(&error))?,
        })
    }

    /// Returns the visitor's id.
    pub(crate) fn id(&self) -> &str {
        self.key.external_id()
    }
}

/// Returns the chat of a name.
///
/// # Errors
/// 404: there is no connector of that name that is a chat.
pub(crate) fn chat_named(api: &Api, name: &str) -> Result<Chat, Problem> {
    let edge = api.edge()?;
    let chat = name.parse::<ConnectorName>().ok().and_then(|connector| {
        let spec = edge.connectors().spec(&connector)?;
        Some(Chat {
            connector,
            // The configuration was checked before it was served.
            spec: DirectSpec::of(&spec)?.ok()?,
            shows_typing: spec.typing,
            is_enabled: spec.enabled,
        })
    });
    chat.ok_or_else(|| {
        let shown: String = name.chars().take(64).collect();
        let detail = format!("there is no chat `{shown}`");
        Problem::new(ErrorCode::ConnectorNotFound, detail)
    })
}

/// Returns the chat of a name, and the visitor whose token a request has. Without a token nobody
/// learns which chats there are.
///
/// # Errors
/// 401: there is no token, or nobody whom it belongs to; 404: there is no such chat.
pub(crate) async fn visiting(
    api: &Api,
    name: &str,
    headers: &HeaderMap,
) -> Result<(Chat, Visitor), Problem> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let token = match (given.next(), given.next()) {
        (Some(value), None) => value.to_str().ok().and_then(bearer),
        (None, _) | (Some(_), Some(_)) => None,
    };
    let token = token.and_then(VisitorToken::parse).ok_or_else(|| {
        let detail = "send `authorization: Bearer <token>` with the token that POST \
                      /chat/{connector}/visitors gave";
        unauthorized(detail)
    })?;
    let chat = chat_named(api, name)?;
    let Visitor { key, .. } = Visitor::new(&chat.connector, &token)?;
    let row = api.broker()?.connectors().get(&key).await?;
    let row = row.ok_or_else(|| {
        unauthorized("there is no such visitor any more; come again as a new one")
    })?;
    let user = row.user;
    Ok((chat, Visitor { key, user }))
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_again_and_nothing_else_is_one() {
        let token = VisitorToken::of_secret([7; SECRET_BYTES]);
        assert_eq!(VisitorToken::parse(token.expose()), Some(token.clone()));
        let text = token.expose();
        for other in [
            "",
            "ahv_",
            &text[1..],
            &text[..text.len() - 1],
            &format!("{text}0"),
            &text.to_uppercase(),
            &text.replace("07", "0g"),
        ] {
            assert_eq!(VisitorToken::parse(other), None, "{other}");
        }
        assert_eq!(format!("{token:?}"), "VisitorToken");
    }

    #[test]
    fn a_visitor_is_a_user_whose_id_says_nothing_of_the_token() {
        let token = VisitorToken::of_secret([7; SECRET_BYTES]);
        let connector = "site".parse().unwrap();
        let visitor = Visitor::new(&connector, &token).unwrap();
        assert_eq!(visitor.id().len(), 32);
        assert_eq!(
            visitor.user.to_string(),
            format!("visitor-{}", visitor.id())
        );
        assert_eq!(visitor.key.to_string(), format!("site:{}", visitor.id()));
        assert!(!token.expose().contains(visitor.id()));
    }
}
