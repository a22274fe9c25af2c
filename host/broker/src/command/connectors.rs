//! Connector keys: the names that services have for users. They are bound, unbound and listed.
//!
//! An administrator says who is who.

use super::once::Once;
use super::{Broker, By, Error, Request};
use crate::boxed::boxed;
use crate::journal::Context;
use crate::refusals::{busy, conflict, forbidden, not_found};
use domain::event::{ConnectorKeyBound, ConnectorKeyUnbound, Event};
use domain::id::Stream;
use domain::path::ConnectorKey;
use domain::refusal::Refusal;
use domain::user::{Scope, UserId};
use serde_json::json;
use std::collections::BTreeSet;
use store::{Clash, Commit, CommitError, ConnectorRow, Expected, Guard, KeyGuard};

/// Number of connector keys of one user.
pub(super) const CONNECTOR_KEYS_OF_A_USER_MAX: usize = 100;
/// Number of tries of a command while others bind the same key at the same time.
const TRIES_MAX: u32 = 8;

impl Broker {
    /// Binds a connector key to a user. A key that is bound to this user already stays as it was.
    ///
    /// From now on everything that comes from the sender with this key belongs to the user.
    ///
    /// # Errors
    /// It stands for somebody else; the user has too many.
    #[boxed]
    pub async fn bind_connector<'a>(
        &'a self,
        by: By<'a>,
        user: &UserId,
        key: &ConnectorKey,
    ) -> Result<ConnectorRow, Error> {
        let request = Request::of(by, &json!({ "bind": key, "user": user }))?;
        let act = self.bind(by.user, user, key, request.as_ref());
        match self.once(request.as_ref(), act).await? {
            Once::Now(row) => Ok(row),
            Once::Before(bound_at) => Ok(ConnectorRow {
                key: key.clone(),
                user: user.clone(),
                bound_at,
            }),
        }
    }

    /// Makes a key of a connector's stand for a user who comes for the first time, unless the
    /// connector has as many keys as it may have.
    ///
    /// # Errors
    /// It has; the key stands for somebody.
    #[boxed]
    pub async fn admit_visitor(
        &self,
        user: &UserId,
        key: &ConnectorKey,
        visitors_max: u32,
    ) -> Result<(), Error> {
        let connector = key.connector();
        // Most of a crowd before a full chat costs no commit.
        if self.store().connector_keys_of(connector).await? >= u64::from(visitors_max) {
            return Err(too_many_visitors().into());
        }
        let row = ConnectorRow {
            key: key.clone(),
            user: user.clone(),
            bound_at: self.core.now(),
        };
        let at_most = KeyGuard::KeysOfConnectorAtMost {
            connector: connector.clone(),
            max: u64::from(visitors_max).saturating_sub(1),
        };
        match self
            .store()
            .commit(binding(user, &row).guard(at_most))
            .await
        {
            Ok(_) => Ok(()),
            Err(CommitError::Conflict(conflict))
                if matches!(
                    conflict.clash,
                    Clash::Guard(Guard::Key(KeyGuard::KeysOfConnectorAtMost { .. }))
                ) =>
            {
                Err(too_many_visitors().into())
            }
            Err(CommitError::Conflict(_)) => {
                Err(busy("somebody comes at this moment; try again shortly").into())
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn bind(
        &self,
        by: &UserId,
        user: &UserId,
        key: &ConnectorKey,
        request: Option<&Request>,
    ) -> Result<ConnectorRow, Error> {
        for _ in 0..TRIES_MAX {
            match self.store().connector_key(key).await? {
                Some(row) if row.user == *user => {
                    self.note(request, &row.bound_at).await?;
                    return Ok(row);
                }
                Some(row) => {
                    let message = format!(
                        "`{key}` stands for the user `{}`; unbind it there first",
                        row.user
                    );
                    return Err(conflict("CONNECTOR_KEY_BOUND", message)
                        .at("path:key")
                        .into());
                }
                None => {}
            }
            self.check_key_count(user).await?;
            let row = ConnectorRow {
                key: key.clone(),
                user: user.clone(),
                bound_at: self.core.now(),
            };
            let mut commit = binding(by, &row);
            commit.key = request.map(|request| request.answered(&row.bound_at));
            match self.store().commit(commit).await {
                Ok(_) => return Ok(row),
                Err(CommitError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy("the key is changing hands at this moment; try again shortly").into())
    }

    /// Checks that a user may have one more connector key.
    async fn check_key_count(&self, user: &UserId) -> Result<(), Error> {
        let keys = self
            .store()
            .keys_of_user(user, CONNECTOR_KEYS_OF_A_USER_MAX)
            .await?;
        if keys.len() >= CONNECTOR_KEYS_OF_A_USER_MAX {
            let message = format!(
                "`{user}` has {CONNECTOR_KEYS_OF_A_USER_MAX} connector keys; unbind one first"
            );
            return Err(conflict("TOO_MANY_CONNECTOR_KEYS", message).into());
        }
        Ok(())
    }

    /// Unbinds a connector key of a user's. It then stands for nobody.
    ///
    /// # Errors
    /// It does not stand for the user.
    #[boxed]
    pub async fn unbind_connector<'a>(
        &'a self,
        by: By<'a>,
        user: &UserId,
        key: &ConnectorKey,
    ) -> Result<(), Error> {
        let request = Request::of(by, &json!({ "unbind": key, "user": user }))?;
        let act = self.unbind(by.user, user, key, request.as_ref());
        self.once(request.as_ref(), act).await.map(Once::either)
    }

    async fn unbind(
        &self,
        by: &UserId,
        user: &UserId,
        key: &ConnectorKey,
        request: Option<&Request>,
    ) -> Result<(), Error> {
        let now = self.core.now();
        let unbound = ConnectorKeyUnbound {
            key: key.clone(),
            user_id: user.clone(),
            unbound_by: by.clone(),
            time: now,
        };
        let event = Context::by(by, now).event(Event::ConnectorKeyUnbound(unbound));
        let guard = Guard::Key(KeyGuard::ConnectorKeyOf {
            key: key.clone(),
            user: Some(user.clone()),
        });
        let mut commit =
            Commit::new()
                .guard(guard)
                .append(Stream::Host, Expected::Any, vec![event]);
        commit.key = request.map(|request| request.answered(&()));
        match self.store().commit(commit).await {
            Ok(_) => Ok(()),
            Err(CommitError::Conflict(_)) => {
                let message = format!("`{user}` has no connector key `{key}`");
                Err(not_found("CONNECTOR_KEY_NOT_FOUND", message)
                    .at("path:key")
                    .into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns a user's connector keys, in the order of their texts.
    ///
    /// Users list their own, administrators anybody's.
    ///
    /// # Errors
    /// The keys are another user's, and the caller is no administrator.
    #[boxed]
    pub async fn connectors(
        &self,
        asking: &UserId,
        scopes: &BTreeSet<Scope>,
        user: &UserId,
    ) -> Result<Vec<ConnectorRow>, Error> {
        if user != asking && !scopes.contains(&Scope::Admin) {
            let message = format!(
                "only the scope `{}` lists connector keys of others than `{asking}`",
                Scope::Admin.as_str()
            );
            return Err(forbidden("SCOPE_MISSING", message).at("path:user").into());
        }
        Ok(self
            .store()
            .keys_of_user(user, CONNECTOR_KEYS_OF_A_USER_MAX)
            .await?)
    }
}

/// The refusal of a visitor to a chat that has as many as it may have.
fn too_many_visitors() -> Refusal {
    let message = "this chat has as many visitors as it may have; its operator can have more, or \
                   unbind some";
    conflict("TOO_MANY_VISITORS", message)
}

/// Returns the commit that binds a connector key, if it stands for nobody.
fn binding(by: &UserId, row: &ConnectorRow) -> Commit {
    let bound = ConnectorKeyBound {
        key: row.key.clone(),
        user_id: row.user.clone(),
        bound_by: by.clone(),
        time: row.bound_at,
    };
    let event = Context::by(by, row.bound_at).event(Event::ConnectorKeyBound(bound));
    Commit::new()
        .guard(KeyGuard::ConnectorKeyOf {
            key: row.key.clone(),
            user: None,
        })
        .guard(KeyGuard::ConnectorKeysAtMost {
            user: row.user.clone(),
            max: CONNECTOR_KEYS_OF_A_USER_MAX as u64 - 1,
        })
        .append(Stream::Host, Expected::Any, vec![event])
}
