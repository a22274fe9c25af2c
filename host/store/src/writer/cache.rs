//! Cache of the rows that every acceptance asks for, so that they are read once and not for each
//! commit.
//!
//! It is exact: only the writer changes these rows while it lasts. Each event that the writer
//! appends is applied here, and rows that it changes in any other way are dropped. All rows are
//! dropped after a rollback, after any other work on this connection that changed rows, and after a
//! write of another connection. Tests compare each answer with the rows.

use crate::guard::{self, AcceptanceStatus, TriggerStatus};
use crate::read::runs::session_of;
use crate::sql::{self, Sql};
use crate::sqlite::DATA_VERSION;
use crate::streams;
use crate::user_storage::{self, Brought, NumberedKey};
use domain::event::{Event, Recorded, TriggerEventAccepted};
use domain::id::{AgentId, SessionId, Stream};
use domain::key::KeyId;
use domain::role::AgentRole;
use domain::trigger::TriggerName;
use domain::user::UserId;
use std::collections::HashMap;

/// Maximum number of cached rows of one kind. Before it is exceeded, all of them are dropped.
const ROWS_MAX: usize = 16_384;

#[cfg(test)]
thread_local! {
    /// Number of times that this thread's caches were forgotten.
    pub(crate) static FORGOTTEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The rows that guards of an acceptance read, with the last version of each stream and the numbers
/// by which rows name streams.
#[derive(Debug, Default)]
pub(super) struct Cache {
    versions: HashMap<Stream, u64>,
    /// The number of each stream; none while it has none.
    numbers: HashMap<Stream, Option<i64>>,
    sessions: HashMap<SessionId, Option<AcceptanceStatus>>,
    roles: HashMap<AgentId, HashMap<UserId, Option<AgentRole>>>,
    triggers: HashMap<TriggerName, Option<TriggerStatus>>,
    /// Bytes that users have brought in this transaction and that their rows do not have yet.
    brought: HashMap<String, u64>,
    /// The same of API keys.
    brought_with: HashMap<KeyId, u64>,
    key_numbers: HashMap<KeyId, i64>,
    /// SQLite's data version, which changes when another connection has written.
    data_version: i64,
}

impl Cache {
    /// Records that a transaction has begun, so no other connection can write. Drops everything if
    /// one has written since the last transaction.
    pub(super) fn begin(&mut self, sql: &Sql<'_>) -> sql::Result<()> {
        self.brought.clear();
        self.brought_with.clear();
        let data_version: i64 = sql.one(DATA_VERSION, [])?.unwrap_or_default();
        if data_version != self.data_version {
            self.data_version = data_version;
            self.forget();
        }
        Ok(())
    }

    /// Drops all rows: applied changes were not stored, or rows changed in another way.
    pub(super) fn forget(&mut self) {
        #[cfg(test)]
        FORGOTTEN.set(FORGOTTEN.get() + 1);
        self.versions.clear();
        self.numbers.clear();
        self.key_numbers.clear();
        self.forget_rows();
    }

    /// The version of a stream; 0 before its first event.
    pub(super) fn version(&mut self, sql: &Sql<'_>, stream: Stream) -> sql::Result<u64> {
        if let Some(version) = self.versions.get(&stream) {
            #[cfg(test)]
            assert_eq!(
                *version,
                read_version(sql, streams::number(sql, stream)?)?,
                "the version of {stream}"
            );
            return Ok(*version);
        }
        let version = read_version(sql, self.known_number(sql, stream)?)?;
        self.set_version(stream, version);
        Ok(version)
    }

    /// The number of a stream, which it gets here if it has none.
    pub(super) fn number(&mut self, sql: &Sql<'_>, stream: Stream) -> sql::Result<i64> {
        if let Some(number) = self.known_number(sql, stream)? {
            return Ok(number);
        }
        let number = streams::add(sql, stream)?;
        keep(&mut self.numbers, stream, Some(number));
        Ok(number)
    }

    /// The number of a stream, if it has one.
    fn known_number(&mut self, sql: &Sql<'_>, stream: Stream) -> sql::Result<Option<i64>> {
        if let Some(number) = self.numbers.get(&stream) {
            #[cfg(test)]
            assert_eq!(
                *number,
                streams::number(sql, stream)?,
                "the number of {stream}"
            );
            return Ok(*number);
        }
        let number = streams::number(sql, stream)?;
        keep(&mut self.numbers, stream, number);
        Ok(number)
    }

    /// A stream has this version now.
    pub(super) fn set_version(&mut self, stream: Stream, version: u64) {
        keep(&mut self.versions, stream, version);
    }

    /// A session; none when there is no such session.
    pub(super) fn session_status(
        &mut self,
        sql: &Sql<'_>,
        session: SessionId,
    ) -> sql::Result<Option<AcceptanceStatus>> {
        if let Some(session_status) = self.sessions.get(&session) {
            #[cfg(test)]
            assert_eq!(
                *session_status,
                read_status(sql, session)?,
                "session {session}"
            );
            return Ok(*session_status);
        }
        let session_status = read_status(sql, session)?;
        keep(&mut self.sessions, session, session_status);
        Ok(session_status)
    }

    /// The role of a user with an agent.
    pub(super) fn role(
        &mut self,
        sql: &Sql<'_>,
        agent: AgentId,
        user: &UserId,
    ) -> sql::Result<Option<AgentRole>> {
        if let Some(role) = self.roles.get(&agent).and_then(|roles| roles.get(user)) {
            #[cfg(test)]
            assert_eq!(
                *role,
                read_role(sql, agent, user)?,
                "the role of {user} with {agent}"
            );
            return Ok(*role);
        }
        let role = read_role(sql, agent, user)?;
        if self.roles.len() >= ROWS_MAX {
            self.roles.clear();
        }
        keep(self.roles.entry(agent).or_default(), user.clone(), role);
        Ok(role)
    }

    /// A trigger; none when there is no such trigger.
    pub(super) fn trigger(
        &mut self,
        sql: &Sql<'_>,
        name: &TriggerName,
    ) -> sql::Result<Option<TriggerStatus>> {
        if let Some(session_status) = self.triggers.get(name) {
            #[cfg(test)]
            assert_eq!(*session_status, read_trigger(sql, name)?, "trigger {name}");
            return Ok(*session_status);
        }
        let session_status = read_trigger(sql, name)?;
        keep(&mut self.triggers, name.clone(), session_status);
        Ok(session_status)
    }

    /// Counts one more open event of a trigger.
    fn count_open(&mut self, accepted: &TriggerEventAccepted) {
        if let Some(Some(session_status)) = self.triggers.get_mut(&accepted.name) {
            session_status.open += 1;
            if accepted.scheduled {
                session_status.next_due = accepted.next_due;
            }
        }
    }

    /// Counts one more input of a session that waits.
    fn count_waiting(&mut self, session: SessionId) {
        if let Some(Some(session_status)) = self.sessions.get_mut(&session) {
            session_status.waiting += 1;
        }
    }

    /// Follows an event that was just appended and projected.
    pub(super) fn follow(&mut self, sql: &Sql<'_>, recorded: &Recorded) -> sql::Result<()> {
        use Event as E;
        let Some(event) = &recorded.event else {
            self.forget_rows();
            return Ok(());
        };
        match event {
            E::InputAccepted(it) => self.count_waiting(it.session),
            E::SessionOpened(it) => self.forget_session(it.session),
            E::SessionDeleted(it) => self.forget_session(it.session),
            E::InputDead(it) => self.forget_session(it.session),
            E::InputRequeued(it) => self.forget_session(it.session),
            E::InputCancelled(it) => self.forget_session(it.session),
            E::InputsDropped(it) => self.forget_session(it.session),
            E::RunStarted(it) => self.forget_session(it.session),
            E::RunEnded(it) => self.forget_session(it.session),
            E::RunStepped(it) => match session_of(sql, it.run)? {
                Some(session) => self.forget_session(session),
                None => self.forget_rows(),
            },
            // Events about a session's labels and content change no cached row.
            E::SessionRenamed(_) | E::SessionPinned(_) | E::SessionAttributed(_) => {}
            E::SessionCleared(_) | E::QueueConfigured(_) | E::TurnCommitted(_) => {}
            E::TurnsImported(_) | E::ItemRecorded(_) | E::UiSaved(_) | E::FileUploaded(_) => {}
            // Nor do the memory and the settings of an agent.
            E::NoteRemembered(_) | E::NoteForgotten(_) | E::MemoryDue(_) | E::MemoryRead(_) => {}
            E::PreferencesUpdated(_) | E::PreferencesTransferred(_) | E::AgentRenamed(_) => {}
            E::AgentConfigured(_) | E::PromptOverridden(_) | E::SettingsUpdated(_) => {}
            // Nor does the work of a run.
            E::StepFailed(_) | E::RunRecovered(_) | E::RunCut(_) | E::RunSettled(_) => {}
            E::OperationContinued(_) | E::OperationAnswered(_) | E::ApprovalAnswered(_) => {}
            E::OperationStarted(_) | E::OperationAttempted(_) | E::BoundaryDecided(_) => {}
            E::KeyValueWritten(_) | E::PluginEmitted(_) => {}
            // Nor do keys, definitions and the host as a whole.
            E::ComponentAdmitted(_) | E::KeyIssued(_) | E::KeyRevoked(_) => {}
            E::ConnectorKeyBound(_) | E::ConnectorKeyUnbound(_) | E::DefinitionMade(_) => {}
            E::DefinitionRemoved(_) | E::OperatorRead(_) | E::ConfigReloaded(_) => {}
            E::ConfigRefused(_) | E::ProviderTroubled(_) => {}
            E::TriggerEventAccepted(it) => self.count_open(it),
            E::TriggerDefined(it) => self.forget_trigger(&it.name),
            E::TriggerRemoved(it) => self.forget_trigger(&it.name),
            E::TriggerPaused(it) => self.forget_trigger(&it.name),
            E::TriggerResumed(it) => self.forget_trigger(&it.name),
            E::TriggerEventsSkipped(it) => self.forget_trigger(&it.name),
            E::TriggerFired(it) => self.forget_trigger(&it.name),
            E::TriggerEventFailed(it) => self.forget_trigger(&it.name),
            E::TriggerPosted(it) => self.forget_trigger(&it.name),
            // Nor do troubles of triggers, and connectors: their messages become inputs.
            E::TriggerTroubled(_) | E::ConnectorReceived(_) | E::InboundMessagesSettled(_) => {}
            E::ConnectorTroubled(_) | E::PairingOffered(_) | E::PairingSettled(_) => {}
            E::OutboundMessageQueued(_)
            | E::OutboundMessageStarted(_)
            | E::OutboundMessageSettled(_) => {}
            E::OutboundMessageRequeued(_) => {}
            // These concern roles, or many sessions, or are rare.
            E::AgentCreated(_) | E::AgentArchived(_) | E::UserAssigned(_) => self.forget_rows(),
            E::RoleChanged(_) | E::UserUnassigned(_) => self.forget_rows(),
            E::SessionImported(_) | E::SlotTaken(_) | E::SlotCompleted(_) => self.forget_rows(),
            E::SlotTerminated(_) | E::ExecutionSuspended(_) => self.forget_rows(),
            E::ExecutionResumed(_) | E::ActionRequested(_) => self.forget_rows(),
            E::ResponseReceived(_) | E::ActionWithdrawn(_) => self.forget_rows(),
            E::HostRestored(_) | E::PurgeBegun(_) | E::Purged(_) => self.forget_rows(),
        }
        Ok(())
    }

    fn forget_session(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }

    fn forget_trigger(&mut self, name: &TriggerName) {
        self.triggers.remove(name);
    }

    fn forget_rows(&mut self) {
        self.sessions.clear();
        self.triggers.clear();
        self.roles.clear();
    }

    /// An API key with its number, which it gets here if it has none.
    pub(super) fn numbered(&mut self, sql: &Sql<'_>, key: &KeyId) -> sql::Result<NumberedKey> {
        let number = match self.key_numbers.get(key) {
            Some(number) => {
                #[cfg(test)]
                assert_eq!(
                    Some(*number),
                    user_storage::read_number(sql, key)?,
                    "the number of {key}"
                );
                *number
            }
            None => {
                let number = user_storage::number_of(sql, key)?;
                keep(&mut self.key_numbers, key.clone(), number);
                number
            }
        };
        Ok(NumberedKey {
            id: key.clone(),
            number,
        })
    }

    /// A user has brought so many bytes more.
    pub(super) fn bring(&mut self, brought: Brought) {
        let Brought { user, with, bytes } = brought;
        *self.brought.entry(user).or_default() += bytes;
        if let Some(key) = with {
            *self.brought_with.entry(key.id).or_default() += bytes;
        }
    }

    /// Bytes that a user has brought in this transaction and that are not in their row yet.
    pub(super) fn brought(&self, user: &UserId) -> u64 {
        self.brought.get(user.as_str()).copied().unwrap_or(0)
    }

    /// Returns the bytes stored under an API key in this transaction that are not in its row yet.
    pub(super) fn brought_with(&self, key: &KeyId) -> u64 {
        self.brought_with.get(key).copied().unwrap_or(0)
    }

    /// Writes the bytes that users have stored in this transaction, once for each user and each
    /// key.
    pub(super) fn write_brought(&mut self, sql: &Sql<'_>) -> sql::Result<()> {
        self.brought
            .drain()
            .try_for_each(|(user, bytes)| user_storage::add(sql, &user, bytes))?;
        self.brought_with
            .drain()
            .try_for_each(|(key, bytes)| user_storage::add_with(sql, &key, bytes))
    }
}

fn keep<K: std::hash::Hash + Eq, V>(rows: &mut HashMap<K, V>, key: K, row: V) {
    if rows.len() >= ROWS_MAX {
        rows.clear();
    }
    rows.insert(key, row);
}

fn read_version(sql: &Sql<'_>, number: Option<i64>) -> sql::Result<u64> {
    let text = "SELECT version FROM events WHERE stream = ?1 ORDER BY version DESC LIMIT 1";
    sql.number(text, [number])
}

fn read_status(sql: &Sql<'_>, session: SessionId) -> sql::Result<Option<AcceptanceStatus>> {
    let rows = sql.ask(&AcceptanceStatus::query(session))?;
    rows.first().map(AcceptanceStatus::from_row).transpose()
}

fn read_trigger(sql: &Sql<'_>, name: &TriggerName) -> sql::Result<Option<TriggerStatus>> {
    let rows = sql.ask(&TriggerStatus::query(name))?;
    rows.first().map(TriggerStatus::from_row).transpose()
}

fn read_role(sql: &Sql<'_>, agent: AgentId, user: &UserId) -> sql::Result<Option<AgentRole>> {
    guard::read_role(&sql.ask(&guard::role_query(agent, user))?)
}
