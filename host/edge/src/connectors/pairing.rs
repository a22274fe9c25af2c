//! Pairings: a sender gets a code, and is identified when the operator or a user enters it.

use super::{Connectors, Shared};
use crate::journal::Context;
use crate::once::{Once, once};
use broker::{By, Error};
use domain::connector::PairingCode;
use domain::error_code::ErrorCode;
use domain::event::{Event, PairingSettled};
use domain::id::{ConnectorId, Stream};
use domain::path::ConnectorKey;
use domain::refusal::Refusal;
use domain::time::Timestamp;
use domain::user::UserId;
use serde_json::json;
use std::collections::HashMap;
use std::sync::PoisonError;
use store::{Commit, CommitError, ConnectorGuard, ConnectorRow, Expected, Key, PairingRow};

/// Codes that are none and that a user may enter within an hour.
const GUESSES_MAX: u32 = 10;
/// Milliseconds of that hour.
const HOUR_MS: u64 = 3_600_000;
/// Users whose wrong codes are remembered.
const USERS_MAX: usize = 10_000;

/// Wrong codes that users entered lately. Nothing depends on it: a start clears it.
#[derive(Debug, Default)]
pub(super) struct Guesses(HashMap<UserId, Hour>);

#[derive(Debug, Clone, Copy)]
struct Hour {
    began: Timestamp,
    guesses: u32,
}

impl Guesses {
    fn may_guess(&self, user: &UserId, now: Timestamp) -> bool {
        self.0
            .get(user)
            .is_none_or(|hour| hour.guesses < GUESSES_MAX || hour.is_over(now))
    }

    fn note(&mut self, user: &UserId, now: Timestamp) {
        if self.0.len() >= USERS_MAX {
            self.0.retain(|_, hour| !hour.is_over(now));
        }
        if self.0.len() >= USERS_MAX {
            return;
        }
        let fresh = Hour {
            began: now,
            guesses: 0,
        };
        let hour = self.0.entry(user.clone()).or_insert(fresh);
        if hour.is_over(now) {
            *hour = fresh;
        }
        hour.guesses += 1;
    }
}

impl Hour {
    fn is_over(self, now: Timestamp) -> bool {
        now.since_ms(self.began) >= HOUR_MS
    }
}

impl Connectors {
    /// Confirms a pairing: from now on the sender who got the code is this user. Their earlier
    /// messages are not passed on.
    ///
    /// The API checks whether the caller may confirm it for this user: users may do so for
    /// themselves, operators for anyone.
    ///
    /// # Errors
    /// The code has expired or never existed; the sender is bound to somebody else; the user has
    /// too many connector keys; a caller who is no operator has entered too many wrong codes.
    pub async fn confirm(
        &self,
        by: By<'_>,
        is_operator: bool,
        code: &str,
        user: UserId,
    ) -> Result<ConnectorRow, Error> {
        let shared = &*self.shared;
        let asked = json!({ "pair": code, "user": user });
        let key = match once(&shared.core, by, &asked, "").await? {
            Once::New(key) => key,
            Once::Before(reply) => return shared.paired_before(&reply).await,
        };
        let now = shared.core.now();
        if !is_operator {
            shared.may_guess(by.user, now)?;
        }
        let pairing = match shared.pairing(code).await {
            Err(Error::Refused(refusal)) if !is_operator => {
                let mut guesses = shared
                    .guesses
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                guesses.note(by.user, now);
                return Err(refusal.into());
            }
            found => found?,
        };
        let bound = shared
            .core
            .broker
            .connectors()
            .bind(By::from(by.user), &user, &pairing.key)
            .await?;
        store::point("edge.pair.bound");
        let key = key.map(|key| Key {
            reply: pairing.key.to_string().into_bytes(),
            ..key
        });
        let context = Context::by(by.user, shared.core.now());
        shared
            .settle_pairing(&context, &pairing, Some(user), key)
            .await?;
        Ok(bound)
    }

    /// Declines a pairing: its code counts no longer.
    ///
    /// # Errors
    /// The code counts no longer, or never did.
    pub async fn decline(&self, by: By<'_>, code: &str) -> Result<(), Error> {
        let shared = &*self.shared;
        let asked = json!({ "decline_pairing": code });
        let key = match once(&shared.core, by, &asked, "").await? {
            Once::New(key) => key,
            Once::Before(_) => return Ok(()),
        };
        let pairing = shared.pairing(code).await?;
        let context = Context::by(by.user, shared.core.now());
        shared.settle_pairing(&context, &pairing, None, key).await
    }
}

impl Shared {
    /// Returns the pairing with a code, as people write it.
    async fn pairing(&self, code: &str) -> Result<PairingRow, Error> {
        let found = match code.parse::<PairingCode>() {
            Ok(code) => {
                let now = self.core.now();
                self.core.store().pairing(code.as_str(), now).await?
            }
            Err(_) => None,
        };
        found.ok_or_else(|| not_found().into())
    }

    fn may_guess(&self, user: &UserId, now: Timestamp) -> Result<(), Refusal> {
        let guesses = self.guesses.lock().unwrap_or_else(PoisonError::into_inner);
        if guesses.may_guess(user, now) {
            return Ok(());
        }
        let reported = format!(
            "{GUESSES_MAX} codes within an hour were none; try again later, or ask the operator"
        );
        Err(Refusal::new(ErrorCode::TooManyGuesses, reported))
    }

    async fn paired_before(&self, reply: &[u8]) -> Result<ConnectorRow, Error> {
        let key: Option<ConnectorKey> = String::from_utf8_lossy(reply).parse().ok();
        let row = match key {
            Some(key) => self.core.store().connector_key(&key).await?,
            None => None,
        };
        // It was unbound since.
        row.ok_or_else(|| not_found().into())
    }

    /// Stores the outcome of a pairing: the sender's user, or nobody if it was declined or has
    /// expired.
    pub(super) async fn settle_pairing(
        &self,
        context: &Context,
        pairing: &PairingRow,
        user: Option<UserId>,
        key: Option<Key>,
    ) -> Result<(), Error> {
        let now = self.core.now();
        let settled = Event::PairingSettled(PairingSettled {
            key: pairing.key.clone(),
            user,
            time: now,
        });
        let stream = Stream::Connector(ConnectorId::of_name(pairing.key.connector().as_str()));
        let mut commit = Commit::new()
            .guard(ConnectorGuard::PairingIs {
                key: pairing.key.clone(),
                code: Some(pairing.code.clone()),
            })
            .append(stream, Expected::Any, vec![context.event(settled)]);
        commit.key = key;
        store::point("edge.pair.before");
        let stored = self.core.store().commit(commit).await;
        store::point("edge.pair.after");
        match stored {
            // A conflict: it was settled meanwhile, or the sender got another code.
            Ok(_) | Err(CommitError::Conflict(_) | CommitError::Replayed { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn not_found() -> Refusal {
    let reported = "there is no pairing with this code that counts; have the sender write again for \
                another one";
    Refusal::new(ErrorCode::PairingNotFound, reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_may_enter_so_many_wrong_codes_within_an_hour() {
        let mut guesses = Guesses::default();
        let mallory: UserId = "mallory".parse().unwrap();
        for _ in 0..GUESSES_MAX {
            assert!(guesses.may_guess(&mallory, Timestamp(0)));
            guesses.note(&mallory, Timestamp(0));
        }
        assert!(!guesses.may_guess(&mallory, Timestamp(HOUR_MS - 1)));
        assert!(guesses.may_guess(&"ada".parse().unwrap(), Timestamp(0)));
        assert!(guesses.may_guess(&mallory, Timestamp(HOUR_MS)));
        guesses.note(&mallory, Timestamp(HOUR_MS));
        assert!(guesses.may_guess(&mallory, Timestamp(HOUR_MS)));
    }
}
