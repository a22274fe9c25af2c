//! API keys: issue, list, revoke.
//!
//! The secret is made here, goes to the caller, and is stored nowhere.

use super::once::Once;
use super::{By, Error, Keys, Request};
use crate::boxed::boxed;
use crate::core::fresh;
use crate::journal::Context;
use domain::error_code::ErrorCode;
use domain::event::{Event, KeyIssued, KeyRevoked};
use domain::id::Stream;
use domain::key::{
    ApiKey, Issuer, KEY_REASON_CHARS_MAX, KEYS_OF_A_USER_MAX, KeyId, NewKey, may_issue,
};
use domain::refusal::Refusal;
use domain::user::{Scope, UserId};
use serde_json::json;
use store::{Clash, Commit, CommitError, Committed, Expected, Guard, KeyGuard, KeyRow};
use tokio::sync::oneshot;

/// A key that was just issued. Its secret is never shown again.
#[derive(Debug, Clone)]
pub struct IssuedKey {
    /// The whole key.
    pub key: ApiKey,
    /// Its stored row.
    pub row: KeyRow,
}

/// The users whose keys are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeysOf {
    /// The keys of one user.
    User(UserId),
    /// The keys of all users.
    Everybody,
}

impl Keys<'_> {
    /// Issues a key, once under an idempotency key.
    ///
    /// A repeated request does not get the secret again, because it is not stored. The refusal
    /// names the key to revoke if it was lost.
    ///
    /// # Errors
    /// It exceeds the issuer's rights, one of its fields is invalid, its user has too many already,
    /// or the same request has issued it before.
    #[boxed]
    pub async fn issue(
        &self,
        issuer: &Issuer,
        asked: NewKey,
        idempotency_key: Option<&str>,
    ) -> Result<IssuedKey, Error> {
        let by = By {
            user: &issuer.user,
            key: idempotency_key,
        };
        let request = json!({
            "issue": asked.user,
            "name": asked.name,
            "scopes": asked.scopes,
            "lifetime_s": asked.lifetime_s,
        });
        let request = Request::of(by, &request)?;
        let act = self.try_issuing(issuer, asked, request.as_ref());
        match self.requests().once(request.as_ref(), act).await? {
            Once::Now(issued) => Ok(issued),
            Once::Before(id) => Err(shown_once(&id)),
        }
    }

    async fn try_issuing(
        &self,
        issuer: &Issuer,
        asked: NewKey,
        request: Option<&Request>,
    ) -> Result<IssuedKey, Error> {
        let now = self.core.now();
        // Based on the clock by which it will expire, so that it lasts as long as requested.
        let counted_from = self.core.clock.for_credentials();
        may_issue(issuer, &asked, counted_from)?;
        let _one_at_a_time = self.core.issuing.lock().await;
        if self
            .store()
            .keys_that_count(&asked.user, counted_from)
            .await?
            >= KEYS_OF_A_USER_MAX
        {
            let message = format!(
                "`{}` has {KEYS_OF_A_USER_MAX} keys that count; revoke one first",
                asked.user
            );
            return Err(Refusal::new(ErrorCode::TooManyKeys, message).into());
        }
        let key = fresh::api_key().map_err(Error::unavailable)?;
        let with = issuer.key.as_ref().map(|(key, _)| key.clone());
        let expires_at = asked.expires_at(issuer, counted_from);
        let issued = KeyIssued {
            key_id: key.id().clone(),
            user_id: asked.user,
            name: asked.name,
            scopes: asked.scopes,
            hash: key.hash(),
            issued_by: issuer.user.clone(),
            issued_with: with.clone(),
            issued_at: now,
            expires_at,
        };
        let context = Context::by(&issuer.user, now);
        let event = context.event(Event::KeyIssued(Box::new(issued)));
        let mut commit = Commit::new().append(Stream::Host, Expected::Any, vec![event]);
        // Only the key's id is remembered: the secret is in no other answer.
        commit.key = request.map(|request| request.answered(key.id()));
        // Revoking a key also covers a key that it is about to issue.
        commit
            .guards
            .extend(with.map(KeyGuard::NotRevoked).map(Guard::from));
        match self.store().commit(commit).await {
            Err(CommitError::Conflict(conflict))
                if matches!(
                    conflict.clash,
                    Clash::Guard(Guard::Key(KeyGuard::NotRevoked(_)))
                ) =>
            {
                return Err(
                    Refusal::new(ErrorCode::KeyRevoked, "the key that asks was revoked").into(),
                );
            }
            committed => committed?,
        };
        let row = self.store().key(key.id()).await?;
        let row = row.ok_or_else(|| not_there(key.id()))?;
        Ok(IssuedKey { key, row })
    }

    /// Returns a key, whoever owns it; none without one.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn get(&self, id: &KeyId) -> Result<Option<KeyRow>, Error> {
        Ok(self.store().key(id).await?)
    }

    /// Returns whether a user has a key that counts, or is a sender at a connector.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn knows(&self, user: &UserId) -> Result<bool, Error> {
        let now = self.core.clock.for_credentials();
        Ok(self.store().keys_that_count(user, now).await? > 0
            || !self.store().keys_of_user(user, 1).await?.is_empty())
    }

    /// Returns keys ordered by id, after one of them, at most `limit`. Expired and revoked keys are
    /// included.
    ///
    /// # Errors
    /// The keys are another user's, and the caller is no administrator.
    #[boxed]
    pub async fn list(
        &self,
        asking: &Issuer,
        of: &KeysOf,
        after: Option<&KeyId>,
        limit: usize,
    ) -> Result<Vec<KeyRow>, Error> {
        let (user, field) = match of {
            KeysOf::User(user) => (Some(user), "query:user"),
            KeysOf::Everybody => (None, "query:all"),
        };
        if user != Some(&asking.user) && !asking.scopes.contains(&Scope::Admin) {
            let message = format!(
                "only the scope `{}` lists keys of others than `{}`",
                Scope::Admin.as_str(),
                asking.user
            );
            return Err(Refusal::new(ErrorCode::ScopeMissing, message)
                .at(field)
                .into());
        }
        Ok(self.store().keys(user, after, limit).await?)
    }

    /// Revokes a key, for good and from the next request on. Does nothing for a revoked key.
    ///
    /// # Errors
    /// The key does not exist, or it belongs to another user and the caller is no administrator.
    #[boxed]
    pub async fn revoke(
        &self,
        asking: &Issuer,
        id: &KeyId,
        reason: Option<String>,
    ) -> Result<KeyRow, Error> {
        if reason.as_ref().is_some_and(|reason| {
            reason.chars().count() > KEY_REASON_CHARS_MAX || reason.chars().any(char::is_control)
        }) {
            let message = format!(
                "a reason has at most {KEY_REASON_CHARS_MAX} characters, none of them a \
                         control character"
            );
            return Err(Refusal::new(ErrorCode::Invalid, message)
                .at("query:reason")
                .into());
        }
        let row = self.store().key(id).await?;
        // Another user's key looks absent.
        let row = row
            .filter(|row| row.user == asking.user || asking.scopes.contains(&Scope::Admin))
            .ok_or_else(|| not_there(id))?;
        if row.revoked.is_some() {
            return Ok(row);
        }
        let now = self.core.now();
        let revoked = KeyRevoked {
            key_id: id.clone(),
            revoked_by: asking.user.clone(),
            revoked_at: now,
            reason,
        };
        let event = Context::by(&asking.user, now).event(Event::KeyRevoked(revoked));
        self.commit_revocation(Commit::new().append(Stream::Host, Expected::Any, vec![event]))
            .await?;
        self.store().key(id).await?.ok_or_else(|| not_there(id))
    }

    /// Runs the commit of a revocation to its end, even if its caller is dropped. Then it notifies
    /// everything that the key has open.
    async fn commit_revocation(&self, commit: Commit) -> Result<Committed, CommitError> {
        let core = self.core.clone();
        let key = store::api_key_here();
        let (reply, answer) = oneshot::channel();
        self.core.spawn(async move {
            let committed = store::under_api_key(key, core.store.commit(commit)).await;
            if committed.is_ok() {
                core.revocations.send_modify(|count| *count += 1);
            }
            // The caller may have been dropped.
            let _ = reply.send(committed);
        });
        answer.await.unwrap_or(Err(CommitError::Closed))
    }
}

fn shown_once(id: &KeyId) -> Error {
    let message = format!(
        "this request has issued the key `{id}` before, and a key is shown once; if it was lost, \
         revoke it and issue another one under a new \
         idempotency key"
    );
    Refusal::new(ErrorCode::KeyIssuedBefore, message).into()
}

fn not_there(id: &KeyId) -> Error {
    Refusal::new(ErrorCode::KeyNotFound, format!("there is no key `{id}`")).into()
}
