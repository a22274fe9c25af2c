//! Connector keys: the names that services have for users. They are bound, unbound and listed.
//!
//! An administrator assigns senders to users.

use super::once::Plan;
use super::{By, Connectors, Error, Request};
use crate::boxed::boxed;
use crate::journal::Context;
use domain::connector::{VISITORS_INSPECTED_MAX, VisitorPlace, given_back, visitors_bytes_since};
use domain::error_code::ErrorCode;
use domain::event::{ConnectorKeyBound, ConnectorKeyUnbound, Event, NewEvent};
use domain::id::Stream;
use domain::path::{ConnectorKey, ConnectorName};
use domain::refusal::Refusal;
use domain::time::Timestamp;
use domain::user::{Scope, UserId};
use serde_json::json;
use std::collections::BTreeSet;
use store::{Commit, ConnectorRow, Expected, KeyGuard, PairingRow, VisitorRow};

/// Number of connector keys of one user.
pub(super) const CONNECTOR_KEYS_OF_A_USER_MAX: usize = 100;

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
        let plan = || async {
            match self.store().connector_key(key).await? {
                Some(row) if row.user == *user => {
                    return Ok(Plan::new(Commit::new(), row.bound_at));
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
            let row = self.bound_now(key, user);
            let commit = binding(by.user, &row).guard(room_for_one_more(user));
            Ok(Plan::new(commit, row.bound_at))
        };
        let bound_at = self
            .requests()
            .carry_out(request.as_ref(), "the connector key", plan)
            .await?;
        Ok(ConnectorRow {
            bound_at,
            ..self.bound_now(key, user)
        })
    }

    fn bound_now(&self, key: &ConnectorKey, user: &UserId) -> ConnectorRow {
        ConnectorRow {
            key: key.clone(),
            user: user.clone(),
            bound_at: self.core.now(),
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
        let plan = || async {
            let row = self.bound_now(key, user);
            let mut commit = binding(user, &row).guard(room_for_one_more(user));
            let mut gone = None;
            // Most of a crowd before a full chat costs no commit.
            if self.store().connector_keys_of(connector).await? >= visitors_max {
                let left = self.left_alone(&coming).await?;
                let left = left.ok_or_else(too_many_visitors)?;
                commit = commit.guard(bound_to(&left.key, &left.user));
                let unbound = unbinding(user, &left.user, &left.key, row.bound_at);
                unbind_first(&mut commit, &unbound);
                gone = Some(left.key);
            }
            let at_most = KeyGuard::KeysOfConnectorAtMost {
                connector: connector.clone(),
                max: visitors_max.saturating_sub(u64::from(gone.is_none())),
            };
            Ok(Plan::new(commit.guard(at_most), gone))
        };
        self.requests().attempt("the chat", plan).await
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
        let plan = || async {
            let nothing = |user| Ok(Plan::new(Commit::new(), user));
            let Some(ConnectorRow { user, .. }) = self.store().connector_key(before).await? else {
                return nothing(None);
            };
            let bound_to_before = bound_to(before, &user);
            match self.store().connector_key(now).await? {
                // Another binding was quicker. The previous key is no longer valid all the same.
                Some(row) if row.user == user && key_before == KeyBefore::Ends => {
                    let unbound = unbinding(&user, &user, before, self.core.now());
                    let commit = on_host(unbound).guard(bound_to_before);
                    return Ok(Plan::new(commit, Some(user)));
                }
                Some(_) => return nothing(None),
                None => {}
            }
            let row = self.bound_now(now, &user);
            let mut commit = binding(&user, &row).guard(bound_to_before);
            // Without room for another key, it replaces the previous one: no visitor is lost.
            if key_before == KeyBefore::Ends || !self.has_room_for_key(&user).await? {
                let unbound = unbinding(&user, &user, before, row.bound_at);
                unbind_first(&mut commit, &unbound);
            } else {
                commit = commit.guard(room_for_one_more(&user));
            }
            Ok(Plan::new(commit, Some(user)))
        };
        self.requests().attempt("the connector key", plan).await
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
        let plan = || async {
            let bound = self.store().connector_key(key).await?;
            if bound.is_none_or(|row| row.user != *user) {
                let message = format!("`{user}` has no connector key `{key}`");
                let absent = Refusal::new(ErrorCode::ConnectorKeyNotFound, message);
                return Err(absent.at("path:key").into());
            }
            let unbound = unbinding(by.user, user, key, self.core.now());
            Ok(Plan::new(on_host(unbound).guard(bound_to(key, user)), ()))
        };
        self.requests()
            .carry_out(request.as_ref(), "the connector key", plan)
            .await
    }

    /// Returns the binding of a connector key; none of a key that is not bound.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn get(&self, key: &ConnectorKey) -> Result<Option<ConnectorRow>, Error> {
        Ok(self.store().connector_key(key).await?)
    }

    /// Returns the pairings that wait at present, of one connector or of all.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn pairings(
        &self,
        connector: Option<&ConnectorName>,
        limit: usize,
    ) -> Result<Vec<PairingRow>, Error> {
        let now = self.core.now();
        Ok(self.store().pairings(connector, now, limit).await?)
    }

    /// Returns the bytes that visitors of a chat said in the last days, of which only so many are
    /// taken.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn bytes_of_visitors(&self, connector: &ConnectorName) -> Result<u64, Error> {
        let since = visitors_bytes_since(self.core.now());
        Ok(self.store().bytes_received(connector, since).await?)
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

/// Returns the condition that a connector key is bound to a user.
fn bound_to(key: &ConnectorKey, user: &UserId) -> KeyGuard {
    KeyGuard::ConnectorKeyOf {
        key: key.clone(),
        user: Some(user.clone()),
    }
}

/// Puts an event before those of a commit.
fn unbind_first(commit: &mut Commit, unbound: &NewEvent) {
    for append in &mut commit.appends {
        append.events.insert(0, unbound.clone());
    }
}

fn on_host(event: NewEvent) -> Commit {
    Commit::new().append(Stream::Host, Expected::Any, vec![event])
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
    on_host(event).guard(KeyGuard::ConnectorKeyOf {
        key: row.key.clone(),
        user: None,
    })
}
