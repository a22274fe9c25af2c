//! API keys: issue, list, revoke. The secret is made here, goes to whoever asked, and stays nowhere.

use super::{Broker, Error};
use crate::core::fresh;
use crate::journal::Context;
use domain::event::{Event, KeyIssued, KeyRevoked};
use domain::id::Stream;
use domain::key::{ApiKey, Issuer, KEY_REASON_CHARS_MAX, KEYS_OF_A_USER_MAX, KeyId, NewKey, may_issue};
use domain::refusal::{Kind, Refusal};
use domain::user::{Scope, UserId};
use store::{Clash, Commit, CommitError, Committed, Expected, Guard, KeyRow};
use tokio::sync::oneshot;

/// A key that was just issued. Nobody can ask for it again.
#[derive(Debug, Clone)]
pub struct IssuedKey {
    /// The whole key.
    pub key: ApiKey,
    /// What is stored of it.
    pub row: KeyRow,
}

/// Whose keys are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeysOf {
    /// One user's.
    User(UserId),
    /// All users'.
    Everybody,
}

impl Broker {
    /// Issues a key.
    ///
    /// # Errors
    /// It is more than its issuer may give, something about it makes no sense, or its user has too many already.
    pub async fn issue_key(&self, issuer: &Issuer, asked: NewKey) -> Result<IssuedKey, Error> {
        let now = self.core.now();
        may_issue(issuer, &asked, now)?;
        if self.core.store.keys_that_count(&asked.user, now).await? >= KEYS_OF_A_USER_MAX {
            let message = format!("`{}` has {KEYS_OF_A_USER_MAX} keys that count; revoke one first", asked.user);
            return Err(Refusal::new(Kind::Conflict, "TOO_MANY_KEYS", message).into());
        }
        let key = fresh::api_key().map_err(Error::unavailable)?;
        let with = issuer.key.as_ref().map(|(key, _)| key.clone());
        let expires_at = asked.expires_at(now);
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
        let context = Context::new(format!("user:{}", issuer.user), now);
        let event = context.event(Event::KeyIssued(Box::new(issued)));
        let mut commit = Commit::new().append(Stream::Host, Expected::Any, vec![event]);
        // Whoever revokes a key means what it is about to issue as well.
        commit.guards.extend(with.map(Guard::KeyNotRevoked));
        match self.core.store.commit(commit).await {
            Err(CommitError::Conflict(conflict)) if matches!(conflict.clash, Clash::Guard(Guard::KeyNotRevoked(_))) => {
                return Err(Refusal::new(Kind::Forbidden, "KEY_REVOKED", "the key that asks was revoked").into());
            }
            committed => committed?,
        };
        let row = self.core.store.key(key.id()).await?.ok_or_else(|| not_there(key.id()))?;
        Ok(IssuedKey { key, row })
    }

    /// Keys in the order of their ids, after one of them, at most `limit`. Also those that have ended.
    ///
    /// # Errors
    /// They are another user's, and whoever asks is no administrator.
    pub async fn keys(&self, asking: &Issuer, of: &KeysOf, after: Option<&KeyId>, limit: usize) -> Result<Vec<KeyRow>, Error> {
        let (user, field) = match of {
            KeysOf::User(user) => (Some(user), "query:user"),
            KeysOf::Everybody => (None, "query:all"),
        };
        if user != Some(&asking.user) && !asking.scopes.contains(&Scope::Admin) {
            let message = format!("only the scope `{}` lists keys of others than `{}`", Scope::Admin.word(), asking.user);
            return Err(Refusal::new(Kind::Forbidden, "SCOPE_MISSING", message).at(field).into());
        }
        Ok(self.core.store.keys(user, after, limit).await?)
    }

    /// Revokes a key, for good and from the next request on; one that was revoked before stays as it was.
    ///
    /// # Errors
    /// There is no such key, or it is another user's and whoever asks is no administrator.
    pub async fn revoke_key(&self, asking: &Issuer, id: &KeyId, reason: Option<String>) -> Result<KeyRow, Error> {
        if reason.as_ref().is_some_and(|reason| reason.chars().count() > KEY_REASON_CHARS_MAX || reason.chars().any(char::is_control)) {
            let message = format!("a reason has at most {KEY_REASON_CHARS_MAX} characters, none of them a control character");
            return Err(Refusal::new(Kind::Invalid, "INVALID", message).at("query:reason").into());
        }
        let row = self.core.store.key(id).await?;
        // What is not yours is not there.
        let row = row.filter(|row| row.user == asking.user || asking.scopes.contains(&Scope::Admin)).ok_or_else(|| not_there(id))?;
        if row.revoked.is_some() {
            return Ok(row);
        }
        let now = self.core.now();
        let revoked = KeyRevoked { key_id: id.clone(), revoked_by: asking.user.clone(), revoked_at: now, reason };
        let event = Context::new(format!("user:{}", asking.user), now).event(Event::KeyRevoked(revoked));
        self.commit_revocation(Commit::new().append(Stream::Host, Expected::Any, vec![event])).await?;
        self.core.store.key(id).await?.ok_or_else(|| not_there(id))
    }

    /// To the end, also if whoever asked for it goes away meanwhile: what the key has open is told of it.
    async fn commit_revocation(&self, commit: Commit) -> Result<Committed, CommitError> {
        let core = self.core.clone();
        let (reply, answer) = oneshot::channel();
        self.core.spawn(async move {
            let committed = core.store.commit(commit).await;
            if committed.is_ok() {
                core.revocations.send_modify(|count| *count += 1);
            }
            // Whoever asked may have gone.
            let _ = reply.send(committed);
        });
        answer.await.unwrap_or(Err(CommitError::Closed))
    }
}

fn not_there(id: &KeyId) -> Error {
    Refusal::new(Kind::NotFound, "KEY_NOT_FOUND", format!("there is no key `{id}`")).into()
}
