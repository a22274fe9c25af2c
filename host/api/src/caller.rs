//! The caller: the user behind a request, and the permitted uses of the credential that it came
//! with.

use crate::problem::Problem;
use axum::extract::FromRequestParts;
use domain::error_code::ErrorCode;
use domain::key::{Issuer, KeyId};
use domain::time::Timestamp;
use domain::user::{Scope, UserId};
use http::request::Parts;
use std::collections::BTreeSet;
use std::sync::Arc;

/// See the module. The access check puts it into each admitted request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) user: UserId,
    /// The permitted uses of the credential.
    pub(crate) scopes: Arc<BTreeSet<Scope>>,
    pub(crate) credential: Credential,
    /// The reading that is on record if the operator reads here without a role of their own.
    /// [`Self::user`] is then the user as whom they read.
    pub(crate) operator: Option<OperatorReading>,
}

/// A reading of the operator's, as the ledger names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OperatorReading {
    /// The operator's own user.
    pub(crate) by: UserId,
    /// The request, such as `GET /api/agents/{id}/stream`.
    pub(crate) request: String,
}

/// The credential of a caller. Its expiry is as it was at the time of the request: see
/// [`crate::standing`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credential {
    /// The host's own token. It is valid as long as the host runs.
    HostToken,
    Key {
        id: KeyId,
        /// The time at which it expires.
        expires_at: Timestamp,
    },
    /// A token of an issuer that the host trusts.
    Token {
        issuer: Arc<str>,
        /// The time at which it expires.
        expires_at: Timestamp,
    },
}

impl Credential {
    /// Returns the API key that it is; none for any other credential.
    pub(crate) fn key(&self) -> Option<&KeyId> {
        match self {
            Self::Key { id, .. } => Some(id),
            Self::HostToken | Self::Token { .. } => None,
        }
    }

    /// Returns the time at which it expires; none if it does not expire.
    pub(crate) fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::HostToken => None,
            Self::Key { expires_at, .. } | Self::Token { expires_at, .. } => Some(*expires_at),
        }
    }
}

impl Caller {
    /// The holder of the host's own token: its operator, who administers the host, and whose
    /// readings of what users say are recorded.
    pub(crate) fn local() -> Self {
        Self {
            user: UserId::local(),
            scopes: Arc::new(Scope::ALL.into()),
            credential: Credential::HostToken,
            operator: None,
        }
    }

    /// Checks that the credential has one of these scopes.
    pub(crate) fn needs_any(&self, scopes: &[Scope]) -> Result<(), Problem> {
        if scopes.iter().any(|scope| self.scopes.contains(scope)) {
            return Ok(());
        }
        let names: Vec<String> = scopes
            .iter()
            .map(|scope| format!("`{}`", scope.as_str()))
            .collect();
        let detail = format!(
            "this credential lacks the required scope: {}",
            names.join(" or ")
        );
        let words: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
        let problem = Problem::new(ErrorCode::ScopeMissing, detail);
        Err(problem.with("scopes", words))
    }

    /// Returns the caller as an issuer of keys.
    pub(crate) fn issuer(&self) -> Issuer {
        let key = match &self.credential {
            Credential::Key { id, expires_at } => Some((id.clone(), *expires_at)),
            Credential::HostToken | Credential::Token { .. } => None,
        };
        Issuer {
            user: self.user.clone(),
            scopes: self.scopes.as_ref().clone(),
            key,
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| Problem::new(ErrorCode::Unauthorized, "send a credential"))
    }
}
