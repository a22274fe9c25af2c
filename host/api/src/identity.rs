//! Users vouched for by issuers: signed tokens (JWT) of the issuers that the operator trusts.
//!
//! A token says by itself who issued it, with which key and by which algorithm. None of that is
//! believed: the issuer must be configured, the algorithm must be one of that issuer's and fit the
//! key's kind, and the key must be one of those that the issuer publishes where the configuration
//! says. Signatures are checked by ring, which TLS brings along; what else there is to a JWT is
//! read here, because the crates for it bring a second set of the same algorithms with them. Never
//! in here: keys that a token carries or points to, symmetric algorithms, `none`.

mod algorithm;
mod config;
mod fetch;
mod jwk;
mod jwt;
mod keys;
#[cfg(test)]
mod tests;

pub use algorithm::Algorithm;
pub use config::{IssuerConfig, IssuerProblem, naming, plain_again};

use crate::access::unauthorized;
use crate::caller::{Caller, Credential};
use crate::clock::Clock;
use crate::problem::Problem;
use domain::error_code::ErrorCode;
use domain::user::{Naming, UserId};
use egress::Resolve;
use fetch::Source;
use jwt::{Token, Untrusted};
use keys::{Keys, Unavailable};
use std::sync::Arc;

/// The issuers that a host trusts.
#[derive(Debug)]
pub struct Identity {
    issuers: Vec<Issuer>,
    clock: Clock,
}

/// One of them.
#[derive(Debug)]
struct Issuer {
    name: Arc<str>,
    config: IssuerConfig,
    naming: Naming,
    keys: Arc<Keys>,
}

impl Identity {
    /// Trusts these issuers. Nothing is fetched before the first token comes.
    ///
    /// # Errors
    /// The first of them that makes no sense, by its place in the list; two with plain users.
    pub fn new(
        issuers: Vec<IssuerConfig>,
        resolver: &Arc<dyn Resolve>,
        clock: Clock,
    ) -> Result<Self, (usize, IssuerProblem)> {
        if let Some(again) = plain_again(&issuers).next() {
            return Err(again);
        }
        let namings: Vec<Naming> = issuers
            .iter()
            .map(|config| naming(&issuers, &config.issuer).unwrap_or(Naming::ByIssuer))
            .collect();
        let trusted =
            issuers
                .into_iter()
                .zip(namings)
                .enumerate()
                .map(|(index, (config, naming))| {
                    if let Some(problem) = config.problems().into_iter().next() {
                        return Err((index, problem));
                    }
                    let source = Source::new(&config, Arc::clone(resolver))
                        .map_err(|problem| (index, problem))?;
                    let keys = Keys::new(source, &config, clock.clone());
                    Ok(Issuer {
                        name: config.issuer.as_str().into(),
                        config,
                        naming,
                        keys: Arc::new(keys),
                    })
                });
        Ok(Self {
            issuers: trusted.collect::<Result<_, _>>()?,
            clock,
        })
    }

    /// Returns whether no issuer is trusted.
    pub(crate) fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }

    /// Returns how user ids are derived for an issuer; none for one that is not trusted.
    pub(crate) fn naming_of(&self, issuer: &str) -> Option<Naming> {
        self.issuers
            .iter()
            .find(|trusted| trusted.config.issuer == issuer)
            .map(|trusted| trusted.naming)
    }

    /// The user that a token vouches for.
    ///
    /// # Errors
    /// 401 for a token that is not good, with what is wrong; 503 when its issuer's keys cannot be
    /// had.
    pub(crate) async fn caller(&self, token: &str) -> Result<Caller, Problem> {
        let refused =
            |wrong: Untrusted| unauthorized(format!("the bearer token is not accepted: {wrong}"));
        let token = Token::read(token).map_err(refused)?;
        let issuer = self
            .issuers
            .iter()
            .find(|issuer| token.is_from(&issuer.config.issuer));
        let issuer = issuer.ok_or(Untrusted::Issuer).map_err(refused)?;
        // Before anything is fetched on its behalf.
        let algorithm = token.algorithm(&issuer.config).map_err(refused)?;
        token
            .check_time(&issuer.config, self.clock.now())
            .map_err(refused)?;
        let keys = issuer
            .keys
            .for_kid(token.kid())
            .await
            .map_err(|unavailable| unavailable_problem(&issuer.name, unavailable))?;
        let verified = token.verify(&keys, algorithm).map_err(refused)?;
        let claims = verified
            .claims(&issuer.config, self.clock.now())
            .map_err(refused)?;
        Ok(Caller {
            user: UserId::of_claim(&issuer.name, &claims.user, issuer.naming),
            scopes: Arc::new(claims.scopes),
            credential: Credential::Token {
                issuer: Arc::clone(&issuer.name),
                expires_at: claims.expires_at,
            },
            operator: None,
        })
    }
}

fn unavailable_problem(issuer: &str, Unavailable { retry_after_s }: Unavailable) -> Problem {
    let detail = format!(
        "the keys of `{issuer}` cannot be fetched at the moment, so the token cannot be \
         verified; try again later"
    );
    Problem::new(ErrorCode::IdentityUnavailable, detail).retry_after(retry_after_s)
}
