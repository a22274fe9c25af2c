//! Commands of users and operators on triggers, and the data shown to them.
//!
//! The rights of a caller to another user's trigger are checked by the API, which knows the callers
//! ([`Triggers::get`] returns its owner). Triggers of the configuration are changed there, and can
//! be paused, resumed and run here like all others.

use super::definitions::{defined, next_due};
use super::{Triggers, by_hand, checks, heartbeat, recording};
use crate::journal::{self, Context};
use crate::once::{Once, once};
use crate::refusals::{
    invalid_field, not_run_by_hand, too_many_triggers, too_many_triggers_of_user, trigger_busy,
    trigger_configured, trigger_exists, trigger_name_taken, trigger_not_found,
};
use broker::{By, Error};
use domain::event::{
    Event, PauseReason, TriggerEventAccepted, TriggerOrigin, TriggerRemoved, TriggerResumed,
};
use domain::id::TriggerEventId;
use domain::refusal::Refusal;
use domain::time::Timestamp;
use domain::trigger::{
    TRIGGERS_MAX, TRIGGERS_OF_USER_MAX, TriggerEvent, TriggerKind, TriggerName, TriggerSpec,
};
use domain::user::UserId;
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;
use std::str::FromStr;
use store::{
    Clash, Commit, CommitError, Guard, Key, TriggerFilter, TriggerGuard, TriggerRecord, TriggerRow,
};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Names of webhooks of the host's own, which the configuration makes.
const OWN_NAMES: [&str; 2] = ["wake", "agent"];
/// The kinds of triggers, by the keys under which they are written.
const KINDS: [&str; 5] = ["schedule", "heartbeat", "webhook", "files", "events"];

/// A kind of triggers, by its key in a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KindName(&'static str);

/// A word that is no kind of triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a kind of triggers is schedule, heartbeat, webhook, files or events")]
pub struct UnknownKind;

impl KindName {
    /// Returns the key of a trigger's kind.
    #[must_use]
    pub fn of(kind: &TriggerKind) -> Self {
        Self(kind.key())
    }
}

impl PartialSchema for KindName {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(KINDS))
            .description(Some("The kind of a trigger."))
            .into()
    }
}

impl ToSchema for KindName {
    fn name() -> Cow<'static, str> {
        "TriggerKind".into()
    }
}

impl FromStr for KindName {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let found = KINDS.into_iter().find(|kind| *kind == text);
        found.map(Self).ok_or(UnknownKind)
    }
}

/// A filter for triggers. A trigger has to match every field that is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TriggerQuery {
    /// The owner of the triggers.
    pub user: Option<UserId>,
    /// The kind of the triggers.
    pub kind: Option<KindName>,
    /// The name after which the page begins.
    pub after: Option<TriggerName>,
    /// Maximum number of triggers.
    pub limit: usize,
}

impl Triggers {
    /// Returns triggers, by name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self, query: TriggerQuery) -> Result<Vec<TriggerRow>, Error> {
        let filter = TriggerFilter {
            user: query.user,
            kind: query.kind.map(|KindName(kind)| kind.to_owned()),
        };
        let store = self.shared.core.store();
        Ok(store.triggers(filter, query.after, query.limit).await?)
    }

    /// Returns a trigger; none if it does not exist.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn get(&self, name: &TriggerName) -> Result<Option<TriggerRow>, Error> {
        let row = self.shared.core.store().trigger(name).await?;
        Ok(row.filter(|row| row.removed.is_none()))
    }

    /// Returns the history of a trigger, also of a removed one, the newest first. It contains the
    /// entries before a position, or all of them without one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn history(
        &self,
        name: &TriggerName,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TriggerRecord>, Error> {
        let store = self.shared.core.store();
        Ok(store.trigger_events_of(name, before, limit).await?)
    }

    /// Makes a trigger. It works for the user that it names, or else for the caller.
    ///
    /// # Errors
    /// Its name is taken; its definition is invalid; there are too many.
    pub async fn create(
        &self,
        by: By<'_>,
        name: TriggerName,
        spec: TriggerSpec,
    ) -> Result<TriggerRow, Error> {
        let asked = json!({ "create_trigger": name, "spec": spec });
        let key = match once(&self.shared.core, by, &asked, name.as_str()).await? {
            Once::New(key) => key,
            Once::Before(_) => return self.there(&name).await,
        };
        let user = spec.user.clone().unwrap_or_else(|| by.user.clone());
        let made = Made {
            by: by.user,
            name: &name,
            spec,
            origin: TriggerOrigin::Api { user },
            key,
        };
        self.make(made).await?;
        self.there(&name).await
    }

    /// Makes a trigger, for any kind of caller.
    async fn make(&self, made: Made<'_>) -> Result<(), Error> {
        let Made {
            by,
            name,
            spec,
            origin,
            key,
        } = made;
        let core = &self.shared.core;
        if OWN_NAMES.contains(&name.as_str()) {
            return Err(trigger_name_taken(name).into());
        }
        // No other request takes the name until it is recorded.
        let _defining = self.shared.defining.lock().await;
        if core.settings().triggers.contains_key(name) {
            return Err(trigger_configured(name).at("/name").into());
        }
        if self.get(name).await?.is_some() {
            return Err(trigger_exists(name).into());
        }
        let (user, spec) = for_user(&origin, spec);
        checks::check(core, &spec).await?;
        let now = core.now();
        to_come(name, &spec, now)?;
        let events = defined(name, &spec, origin, now);
        let commit = Commit::new().guard(TriggerGuard::AtMost {
            max: TRIGGERS_MAX as u64 - 1,
        });
        let mut commit = recording::append(commit, name, &Context::by(by, now), events);
        // The operator's own have no limit but that of the host.
        if user != UserId::local() {
            commit = commit.guard(TriggerGuard::OfUserAtMost {
                user,
                max: TRIGGERS_OF_USER_MAX as u64 - 1,
            });
        }
        commit.key = key;
        self.commit_definition(commit).await
    }

    /// Replaces a trigger's definition as a whole. Its state stays.
    ///
    /// # Errors
    /// It does not exist, or belongs to the configuration; its definition is invalid.
    pub async fn change(
        &self,
        by: By<'_>,
        name: &TriggerName,
        spec: TriggerSpec,
    ) -> Result<TriggerRow, Error> {
        let asked = json!({ "change_trigger": name, "spec": spec });
        let key = match once(&self.shared.core, by, &asked, name.as_str()).await? {
            Once::New(key) => key,
            Once::Before(_) => return self.there(name).await,
        };
        let core = &self.shared.core;
        let defining = self.shared.defining.lock().await;
        let row = self.there(name).await?;
        let origin = match row.origin {
            TriggerOrigin::Configuration => return Err(trigger_configured(name).into()),
            TriggerOrigin::Api { user } => TriggerOrigin::Api {
                user: spec.user.clone().unwrap_or(user),
            },
            origin @ TriggerOrigin::Agent { .. } => origin,
        };
        let (_, spec) = for_user(&origin, spec);
        checks::check(core, &spec).await?;
        let now = core.now();
        to_come(name, &spec, now)?;
        let context = Context::by(by.user, now);
        let events = defined(name, &spec, origin, now);
        let mut commit = recording::append(Commit::new(), name, &context, events);
        commit.key = key;
        self.commit_definition(commit).await?;
        drop(defining);
        self.there(name).await
    }

    /// Removes a trigger. Its open trigger events are given up, and its history stays.
    ///
    /// # Errors
    /// It does not exist, or belongs to the configuration.
    pub async fn remove(&self, by: By<'_>, name: &TriggerName) -> Result<(), Error> {
        let asked = json!({ "remove_trigger": name });
        let key = match once(&self.shared.core, by, &asked, name.as_str()).await? {
            Once::New(key) => key,
            Once::Before(_) => return Ok(()),
        };
        let _defining = self.shared.defining.lock().await;
        let row = self.there(name).await?;
        if row.origin == TriggerOrigin::Configuration {
            return Err(trigger_configured(name).into());
        }
        let now = self.shared.core.now();
        let removed = Event::TriggerRemoved(TriggerRemoved {
            name: name.clone(),
            by: Some(by.user.clone()),
            time: now,
        });
        let context = Context::by(by.user, now);
        let mut commit = recording::append(Commit::new(), name, &context, [removed]);
        commit.key = key;
        self.commit_definition(commit).await
    }

    /// Pauses a trigger: it is not fired until it is resumed. Does nothing for a paused one.
    ///
    /// # Errors
    /// It is not there.
    pub async fn pause(&self, by: By<'_>, name: &TriggerName) -> Result<TriggerRow, Error> {
        let asked = json!({ "pause_trigger": name });
        let key = match once(&self.shared.core, by, &asked, name.as_str()).await? {
            Once::New(key) => key,
            Once::Before(_) => return self.there(name).await,
        };
        let row = self.there(name).await?;
        let now = self.shared.core.now();
        let paused = row.paused.is_none().then(|| {
            let user = by.user.clone();
            recording::paused(name, PauseReason::User { user }, now)
        });
        self.note(by.user, name, paused, key).await?;
        self.there(name).await
    }

    /// Resumes a trigger, whatever the reason of its pause, or ends the rest of one that failed.
    /// Its schedule continues from now.
    ///
    /// # Errors
    /// It is not there, or the next time of its schedule cannot be computed.
    pub async fn resume(&self, by: By<'_>, name: &TriggerName) -> Result<TriggerRow, Error> {
        let asked = json!({ "resume_trigger": name });
        let key = match once(&self.shared.core, by, &asked, name.as_str()).await? {
            Once::New(key) => key,
            Once::Before(_) => return self.there(name).await,
        };
        let row = self.there(name).await?;
        let now = self.shared.core.now();
        let is_blocked = row.paused.is_some() || row.failures.open_until.is_some();
        let resumed = if is_blocked {
            Some(Event::TriggerResumed(TriggerResumed {
                name: name.clone(),
                by: by.user.clone(),
                next_due: resumed_due(&row, now)
                    .map_err(|error| invalid_field("schedule", error))?,
                time: now,
            }))
        } else {
            None
        };
        self.note(by.user, name, resumed, key).await?;
        self.there(name).await
    }

    /// Fires a trigger now, regardless of its schedule, which does not change. When this returns
    /// the trigger event is durable.
    ///
    /// # Errors
    /// It does not exist; its trigger events have to be sent by a caller; too many trigger events
    /// wait.
    pub async fn run(&self, by: By<'_>, name: &TriggerName) -> Result<TriggerEventId, Error> {
        let core = &self.shared.core;
        let trigger_event = journal::trigger_event();
        let asked = json!({ "run_trigger": name });
        let key = match once(core, by, &asked, &trigger_event.to_string()).await? {
            Once::New(key) => key,
            Once::Before(reply) => return Ok(remembered(&reply).unwrap_or(trigger_event)),
        };
        let row = self.there(name).await?;
        let now = core.now();
        let what = match &row.spec.on {
            TriggerKind::Schedule(_) => TriggerEvent::Due {
                due: now,
                missed: 0,
            },
            TriggerKind::Heartbeat(spec) => TriggerEvent::Heartbeat {
                due: now,
                checklist: heartbeat::checklist(core, &row.spec, spec).await,
            },
            kind @ (TriggerKind::Webhook(_) | TriggerKind::Files(_) | TriggerKind::Events(_)) => {
                return Err(not_run_by_hand(kind).into());
            }
        };
        let accepted = TriggerEventAccepted {
            trigger_event,
            run_by: Some(by.user.clone()),
            ..recording::accepted(name, what, now)
        };
        let mut commit = recording::accept(Commit::new(), &Context::by(by.user, now), accepted);
        commit.key = key;
        match core.store().commit(commit).await {
            Ok(_) => {
                self.fire_by_hand(&row, trigger_event);
                Ok(trigger_event)
            }
            Err(CommitError::Replayed { reply }) => Ok(remembered(&reply).unwrap_or(trigger_event)),
            Err(error) => Err(refused(error, || trigger_busy(name))),
        }
    }

    /// Has a trigger event processed that was requested by hand, even if the trigger is not active
    /// now.
    fn fire_by_hand(&self, row: &TriggerRow, trigger_event: TriggerEventId) {
        if by_hand::is_blocked(row, self.shared.core.now()) {
            by_hand::begin(&self.shared, trigger_event);
        } else {
            self.shared.open.notify_one();
        }
    }

    /// Returns a trigger that is there.
    async fn there(&self, name: &TriggerName) -> Result<TriggerRow, Error> {
        self.get(name)
            .await?
            .ok_or_else(|| trigger_not_found(name).into())
    }

    /// Records the effect of a pause, if any, under the key of its request.
    async fn note(
        &self,
        user: &UserId,
        name: &TriggerName,
        event: Option<Event>,
        key: Option<Key>,
    ) -> Result<(), Error> {
        if event.is_none() && key.is_none() {
            return Ok(());
        }
        let now = self.shared.core.now();
        let mut commit = Commit::new();
        if event.is_some() {
            commit = recording::append(commit, name, &Context::by(user, now), event);
        }
        commit.key = key;
        self.commit_definition(commit).await
    }

    /// Commits a change of a trigger's definition, once under its key, and notifies the tasks.
    async fn commit_definition(&self, commit: Commit) -> Result<(), Error> {
        store::point("edge.define.before");
        let committed = self.shared.core.store().commit(commit).await;
        store::point("edge.define.after");
        match committed {
            Ok(_) | Err(CommitError::Replayed { .. }) => {
                self.shared.changed();
                Ok(())
            }
            Err(error) => Err(refused(error, too_many_triggers)),
        }
    }
}

/// A trigger that is made.
struct Made<'a> {
    by: &'a UserId,
    name: &'a TriggerName,
    spec: TriggerSpec,
    origin: TriggerOrigin,
    key: Option<Key>,
}

/// Checks that a schedule has a time in the future. A caller of the API expects one; in a
/// configuration a past time may stay.
fn to_come(name: &TriggerName, spec: &TriggerSpec, now: Timestamp) -> Result<(), Refusal> {
    let wrong = |message: String| invalid_field("schedule", message);
    let TriggerKind::Schedule(schedule) = &spec.on else {
        return next_due(name, spec, now).map(drop).map_err(wrong);
    };
    match next_due(name, spec, now).map_err(wrong)? {
        Some(_) => Ok(()),
        None => {
            let field = if schedule.at.is_some() {
                "schedule.at"
            } else {
                "schedule"
            };
            let message = format!(
                "no time of it is to come: it is {now} here; write one that is, with its offset"
            );
            Err(invalid_field(field, message))
        }
    }
}

/// Returns the user for whom a trigger works, and its definition with that user.
fn for_user(origin: &TriggerOrigin, mut spec: TriggerSpec) -> (UserId, TriggerSpec) {
    let maker = match origin {
        TriggerOrigin::Configuration => None,
        TriggerOrigin::Api { user } | TriggerOrigin::Agent { user, .. } => Some(user),
    };
    let user = maker.or(spec.user.as_ref()).cloned();
    let user = user.unwrap_or_else(UserId::local);
    spec.user = Some(user.clone());
    (user, spec)
}

/// Returns the next time of a trigger that is resumed.
fn resumed_due(row: &TriggerRow, now: Timestamp) -> Result<Option<Timestamp>, String> {
    let schedule = row.spec.schedule().map_err(|error| error.to_string())?;
    let Some(schedule) = schedule else {
        return Ok(None);
    };
    schedule
        .next(&row.name, row.defined, now)
        .map_err(|error| error.to_string())
}

/// Returns the trigger event that a request led to before.
fn remembered(reply: &[u8]) -> Option<TriggerEventId> {
    std::str::from_utf8(reply).ok()?.parse().ok()
}

/// Returns the error for a commit that did not land: the refusal of a guard on numbers, or the
/// store's error.
fn refused(error: CommitError, crowded: impl FnOnce() -> Refusal) -> Error {
    let CommitError::Conflict(conflict) = &error else {
        return error.into();
    };
    match &conflict.clash {
        Clash::Guard(Guard::Trigger(TriggerGuard::OfUserAtMost { .. })) => {
            too_many_triggers_of_user().into()
        }
        Clash::Guard(Guard::Trigger(
            TriggerGuard::AtMost { .. } | TriggerGuard::PendingAtMost { .. },
        )) => crowded().into(),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_one_of_five_words() {
        for kind in KINDS {
            assert_eq!(kind.parse(), Ok(KindName(kind)));
        }
        assert_eq!("cron".parse::<KindName>(), Err(UnknownKind));
    }

    #[test]
    fn a_trigger_works_for_the_user_who_made_it() {
        let spec = json!({ "events": { "on": ["input.dead"] }, "target": { "agent": "a" } });
        let spec: TriggerSpec = serde_json::from_value(spec).unwrap();
        let ada: UserId = "ada".parse().unwrap();
        let origin = TriggerOrigin::Api { user: ada.clone() };
        let (user, spec) = for_user(&origin, spec);
        assert_eq!((&user, spec.user.as_ref()), (&ada, Some(&ada)));
    }
}
