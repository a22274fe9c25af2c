//! Connector keys: the names that services have for users. They are bound, unbound and listed.
//!
//! An administrator assigns senders to users.

use super::once::{Once, lands};
use super::{By, Connectors, Error, Request};
use crate::boxed::boxed;
use crate::journal::Context;
use crate::refusals::busy;
use domain::connector::{VISITORS_INSPECTED_MAX, VisitorPlace, given_back};
use domain::error_code::ErrorCode;
use domain::event::{ConnectorKeyBound, ConnectorKeyUnbound, Event, NewEvent};
use domain::id::Stream;
use domain::path::ConnectorKey;
use domain::refusal::Refusal;
use domain::time::Timestamp;
use domain::user::{Scope, UserId};
use serde_json::json;
use std::collections::BTreeSet;
use store::{Commit, ConnectorRow, Expected, Guard, KeyGuard, VisitorRow};

/// Number of connector keys of one user.
pub(super) const CONNECTOR_KEYS_OF_A_USER_MAX: usize = 100;
/// Number of tries of a command while others bind the same key at the same time.
const TRIES_MAX: u32 = 8;

/// A visitor who opens a chat for the first time.
pub struct Coming<'a> {
    /// The user that they are.
    pub user: &'a UserId,
    /// The connector key that they get.
    pub key: &'a ConnectorKey,
    /// The beginning of the ids of users who are visitors.
    pub prefix: &'a str,
    /// Number of visitors that the chat may have.
    pub visitors_max: u32,
    /// Returns the number of places taken from the network address of the visitor with a key.
    pub of_address: &'a (dyn Fn(&ConnectorKey) -> usize + Sync),
}

/// The fate of the key under which a person's service knew them before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyBefore {
    /// It stays bound, if there is room: the service never reassigns the id.
    Stays,
    /// It is unbound.
    Ends,
}

impl std::fmt::Debug for Coming<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coming")
            .field("key", self.key)
            .finish_non_exhaustive()
    }
}

impl Connectors<'_> {
    /// Binds a connector key to a user. Does nothing for a key that is already bound to this user.
    ///
    /// From now on all messages from the sender with this key belong to the user.
    ///
    /// # Errors
    /// It is bound to somebody else; the user has too many.
    #[boxed]
    pub async fn bind<'a>(
        &'a self,
        by: By<'a>,
        user: &UserId,
        key: &ConnectorKey,
    ) -> Result<ConnectorRow, Error> {
        let request = Request::of(by, &json!({ "bind": key, "user": user }))?;
        let act = self.try_binding(by.user, user, key, request.as_ref());
        match self.requests().once(request.as_ref(), act).await? {
            Once::Now(row) => Ok(row),
            Once::Before(bound_at) => Ok(ConnectorRow {
                key: key.clone(),
                user: user.clone(),
                bound_at,
            }),
        }
    }

    /// Binds a connector's key to a user who comes for the first time. In a chat with the maximum
    /// of visitors, they replace a visitor who does not use their place ([`given_back`]). Returns
    /// the key of that visitor.
    ///
    /// # Errors
    /// Each place is in use; the key is bound to somebody.
    #[boxed]
    pub async fn admit_visitor<'a>(
        &'a self,
        coming: Coming<'a>,
    ) -> Result<Option<ConnectorKey>, Error> {
        let Coming { user, key, .. } = coming;
        let connector = key.connector();
        let visitors_max = u64::from(coming.visitors_max);
        for _ in 0..TRIES_MAX {
            let row = ConnectorRow {
                key: key.clone(),
                user: user.clone(),
                bound_at: self.core.now(),
            };
            let mut commit = binding(user, &row).guard(room_for_one_more(user));
            let mut gone = None;
            // Most of a crowd before a full chat costs no commit.
            if self.store().connector_keys_of(connector).await? >= visitors_max {
                let left = self.left_alone(&coming).await?;
                let left = left.ok_or_else(too_many_visitors)?;
                commit = commit.guard(KeyGuard::ConnectorKeyOf {
                    key: left.key.clone(),
                    user: Some(left.user.clone()),
                });
                let unbound = unbinding(user, &left.user, &left.key, row.bound_at);
                for append in &mut commit.appends {
                    append.events.insert(0, unbound.clone());
                }
                gone = Some(left.key);
            }
            let at_most = KeyGuard::KeysOfConnectorAtMost {
                connector: connector.clone(),
                max: visitors_max.saturating_sub(u64::from(gone.is_none())),
            };
            if lands(self.store().commit(commit.guard(at_most)).await)? {
                return Ok(gone);
            }
        }
        Err(busy("too many come at this moment; try again shortly").into())
    }

    /// Returns the visitor of a full chat who loses their place to a new one.
    async fn left_alone(&self, coming: &Coming<'_>) -> Result<Option<VisitorRow>, Error> {
        let prefix = coming.prefix;
        let connector = coming.key.connector();
        let visitors = self
            .store()
            .visitors(connector, prefix, VISITORS_INSPECTED_MAX)
            .await?;
        let places: Vec<VisitorPlace> = visitors
            .iter()
            .map(|visitor| VisitorPlace {
                bound_at: visitor.bound_at,
                active_at: visitor.active_at,
                of_address: (coming.of_address)(&visitor.key),
            })
            .collect();
        let index = given_back(&places, (coming.of_address)(coming.key), self.core.now());
        Ok(index.and_then(|index| visitors.into_iter().nth(index)))
    }

    async fn try_binding(
        &self,
        by: &UserId,
        user: &UserId,
        key: &ConnectorKey,
        request: Option<&Request>,
    ) -> Result<ConnectorRow, Error> {
        for _ in 0..TRIES_MAX {
            match self.store().connector_key(key).await? {
                Some(row) if row.user == *user => {
                    self.requests().note(request, &row.bound_at).await?;
                    return Ok(row);
                }
                Some(row) => {
                    let message = format!(
                        "`{key}` stands for the user `{}`; unbind it there first",
                        row.user
                    );
                    return Err(Refusal::new(ErrorCode::ConnectorKeyBound, message).into());
                }
                None => {}
            }
            self.check_key_count(user).await?;
            let row = ConnectorRow {
                key: key.clone(),
                user: user.clone(),
                bound_at: self.core.now(),
            };
            let mut commit = binding(by, &row).guard(room_for_one_more(user));
            commit.key = request.map(|request| request.answered(&row.bound_at));
            if lands(self.store().commit(commit).await)? {
                return Ok(row);
            }
        }
        Err(busy("the key is changing hands at this moment; try again shortly").into())
    }

    /// Binds the present key of a person to the user to whom their previous key is bound. Returns
    /// the user. None if nothing is done, because the previous key is unbound or the present one is
    /// bound to somebody else. The number of the user's keys stays the same, or grows by one if
    /// there is room.
    ///
    /// # Errors
    /// It cannot be stored now.
    #[boxed]
    pub async fn follow_key<'a>(
        &'a self,
        before: &'a ConnectorKey,
        now: &'a ConnectorKey,
        key_before: KeyBefore,
    ) -> Result<Option<UserId>, Error> {
        for _ in 0..TRIES_MAX {
            let Some(ConnectorRow { user, .. }) = self.store().connector_key(before).await? else {
                return Ok(None);
            };
            match self.store().connector_key(now).await? {
                // Another binding was quicker. The previous key is no longer valid all the same.
                Some(row) if row.user == user && key_before == KeyBefore::Ends => {
                    self.try_unbinding(&user, &user, before, None).await?;
                    return Ok(Some(user));
                }
                Some(_) => return Ok(None),
                None => {}
            }
            let row = ConnectorRow {
                key: now.clone(),
                user: user.clone(),
                bound_at: self.core.now(),
            };
            let mut commit = binding(&user, &row).guard(KeyGuard::ConnectorKeyOf {
                key: before.clone(),
                user: Some(user.clone()),
            });
            // Without room for another key, it replaces the previous one: no visitor is lost.
            if key_before == KeyBefore::Ends || !self.has_room_for_key(&user).await? {
                let unbound = unbinding(&user, &user, before, row.bound_at);
                for append in &mut commit.appends {
                    append.events.insert(0, unbound.clone());
                }
            } else {
                commit = commit.guard(room_for_one_more(&user));
            }
            if lands(self.store().commit(commit).await)? {
                return Ok(Some(user));
            }
        }
        Err(busy("the key is changing hands at this moment; try again shortly").into())
    }

    /// Returns whether a user may have one more connector key.
    async fn has_room_for_key(&self, user: &UserId) -> Result<bool, Error> {
        let keys = self
            .store()
            .keys_of_user(user, CONNECTOR_KEYS_OF_A_USER_MAX)
            .await?;
        Ok(keys.len() < CONNECTOR_KEYS_OF_A_USER_MAX)
    }

    /// Checks that a user may have one more connector key.
    async fn check_key_count(&self, user: &UserId) -> Result<(), Error> {
        if !self.has_room_for_key(user).await? {
            let message = format!(
                "`{user}` has {CONNECTOR_KEYS_OF_A_USER_MAX} connector keys; unbind one first"
            );
            return Err(Refusal::new(ErrorCode::TooManyConnectorKeys, message).into());
        }
        Ok(())
    }

    /// Unbinds a connector key of a user. It then belongs to nobody.
    ///
    /// # Errors
    /// It is not bound to the user.
    #[boxed]
    pub async fn unbind<'a>(
        &'a self,
        by: By<'a>,
        user: &UserId,
        key: &ConnectorKey,
    ) -> Result<(), Error> {
        let request = Request::of(by, &json!({ "unbind": key, "user": user }))?;
        let act = self.try_unbinding(by.user, user, key, request.as_ref());
        self.requests()
            .once(request.as_ref(), act)
            .await
            .map(Once::either)
    }

    async fn try_unbinding(
        &self,
        by: &UserId,
        user: &UserId,
        key: &ConnectorKey,
        request: Option<&Request>,
    ) -> Result<(), Error> {
        let now = self.core.now();
        let event = unbinding(by, user, key, now);
        let guard = Guard::Key(KeyGuard::ConnectorKeyOf {
            key: key.clone(),
            user: Some(user.clone()),
        });
        let mut commit =
            Commit::new()
                .guard(guard)
                .append(Stream::Host, Expected::Any, vec![event]);
        commit.key = request.map(|request| request.answered(&()));
        if lands(self.store().commit(commit).await)? {
            return Ok(());
        }
        let message = format!("`{user}` has no connector key `{key}`");
        Err(Refusal::new(ErrorCode::ConnectorKeyNotFound, message)
            .at("path:key")
            .into())
    }

    /// Returns a user's connector keys, in the order of their texts.
    ///
    /// Users list their own, administrators anybody's.
    ///
    /// # Errors
    /// The keys are another user's, and the caller is no administrator.
    #[boxed]
    pub async fn list(
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
            return Err(Refusal::new(ErrorCode::ScopeMissing, message)
                .at("path:user")
                .into());
        }
        Ok(self
            .store()
            .keys_of_user(user, CONNECTOR_KEYS_OF_A_USER_MAX)
            .await?)
    }
}

/// The refusal of a visitor to a chat that has the maximum of visitors.
fn too_many_visitors() -> Refusal {
    let message = "this chat has as many visitors as it may have, and all of them use it; its \
                   operator can have more, or unbind some";
    Refusal::new(ErrorCode::TooManyVisitors, message)
}

/// Returns the event that unbinds a connector key.
fn unbinding(by: &UserId, user: &UserId, key: &ConnectorKey, now: Timestamp) -> NewEvent {
    let unbound = ConnectorKeyUnbound {
        key: key.clone(),
        user_id: user.clone(),
        unbound_by: by.clone(),
        time: now,
    };
    Context::by(by, now).event(Event::ConnectorKeyUnbound(unbound))
}

/// Returns the condition that a user may have one more connector key.
fn room_for_one_more(user: &UserId) -> KeyGuard {
    KeyGuard::ConnectorKeysAtMost {
        user: user.clone(),
        max: CONNECTOR_KEYS_OF_A_USER_MAX as u64 - 1,
    }
}

/// Returns the commit that binds a connector key, if it is not bound.
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
        .append(Stream::Host, Expected::Any, vec![event])
}
