//! One old session: its content, its status at the time of its import, and the data for the agent
//! that continues it.

use super::{ID_BYTES_MAX, ImportFault, OldAction, OldItem, Voucher, unnamed};
use crate::access::user::UserId;
use crate::agents::definition::SESSION_TIME_LIMIT_S_MAX;
use crate::agents::session::{EndStatus, PastSession};
use crate::events::agent::end_session::EXPIRED;
use crate::values::fields::{self, FieldFault, kind};
use crate::values::id::{ConversationId, SessionId};
use crate::values::text::words;
use crate::values::time::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Items of one session.
const ITEMS_MAX: usize = 1_000;
/// Bytes of a session's type.
const TYPE_BYTES_MAX: usize = 64;
/// Bytes of the old system's name for a user, as for a token's claim.
const USER_BYTES_MAX: usize = 512;
/// Bytes of a reason.
const REASON_BYTES_MAX: usize = 1_000;
/// The key of a session's config under which its agent finds data of the old system.
const IMPORTED: &str = "imported";

/// An old session.
#[derive(Debug, Clone, PartialEq)]
pub struct OldSession {
    /// Its place in the document.
    pub place: usize,
    /// The user to whom it belonged.
    pub user_id: UserId,
    /// Its id, which it keeps.
    pub session_id: SessionId,
    /// Its conversation's id, which it keeps too.
    pub conversation_id: ConversationId,
    /// Its type.
    pub session_type: String,
    /// Its status in the old system.
    pub status: OldStatus,
    /// Its items, in order. The last is the one that waited for its client, unless that one has an
    /// earlier place.
    pub items: Vec<OldItem>,
    /// The action that waited for its client.
    pub pending_action: Option<OldAction>,
    /// The state that a client needs to restore its display.
    pub ui_state: Option<Map<String, Value>>,
    /// Time at which it began.
    pub started_at: Timestamp,
    /// Time at which it ended.
    pub completed_at: Option<Timestamp>,
    /// The reason why it was ended from outside.
    pub terminated_reason: Option<String>,
    /// Its configuration, such as a tutor's lesson.
    pub config: Option<Map<String, Value>>,
    /// Its time limit in seconds, from its config.
    pub time_limit_s: Option<u32>,
}

/// The status of an old session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldStatus {
    /// It had not begun.
    Pending,
    /// It went on.
    Active,
    /// It waited for its client.
    AwaitingClientAction,
    /// It had ended well.
    Completed,
    /// Its time was up.
    Expired,
    /// It was ended from outside.
    Terminated,
}

/// The status of an old session at the time of its import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportStatus {
    /// It continues, until its own time limit if it has one.
    GoesOn {
        /// The time left, in milliseconds.
        left_ms: Option<u64>,
    },
    /// It continued, and its time limit expired at this time.
    Overdue(Timestamp),
    /// It had ended.
    Ended,
}

words!(OldStatus {
    Pending = "pending",
    Active = "active",
    AwaitingClientAction = "awaiting_client_action",
    Completed = "completed",
    Expired = "expired",
    Terminated = "terminated",
});

impl FromStr for OldStatus {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        Self::from_word(text)
            .ok_or_else(|| format!("`{text:.64}` is no status; there are: {}", known()))
    }
}

impl OldSession {
    /// The session at a place of its document. None of its times is later than `latest`.
    pub(super) fn read(
        fields: &Fields<'_>,
        place: usize,
        issuer: Option<&Voucher>,
        latest: Timestamp,
    ) -> Result<Self, ImportFault> {
        let name = fields.named("started_at", "created_at");
        let started_at = fields.time(name, Timestamp(0)..=latest)?;
        let started_at = started_at
            .ok_or_else(|| fields.fault(name, "it is missing: when did the session begin?"))?;
        let completed_at = fields.time("completed_at", started_at..=latest)?;
        let pending = fields
            .object("pending_action")?
            .map(|action| OldAction::read(&action))
            .transpose()?;
        let current = fields.text_of("current_item_id", 1..=ID_BYTES_MAX)?;
        let mut items = items(fields, started_at, completed_at.unwrap_or(latest))?;
        if let Some(action) = &pending {
            put_on_record(&mut items, action, current);
        }
        let config = fields.object("config")?;
        if let Some(config) = &config
            && config.value(IMPORTED).is_some()
        {
            return Err(config.fault(
                IMPORTED,
                "this host puts there what came with the session; call it something else",
            ));
        }
        let time_limit_s = match &config {
            Some(config) => config.whole(
                "time_limit_seconds",
                0..=u64::from(SESSION_TIME_LIMIT_S_MAX),
            )?,
            None => None,
        };
        let ui_state = fields.object("ui_state")?;
        if let Some(ui_state) = &ui_state {
            ui_state.flag("chat_input_locked")?;
            ui_state.object("active_widget")?;
        }
        Ok(Self {
            place,
            user_id: user(fields, issuer)?,
            session_id: fields.parsed_needed(fields.named("session_id", "id"))?,
            conversation_id: fields.parsed_needed("conversation_id")?,
            session_type: fields
                .text_needed("session_type", 1..=TYPE_BYTES_MAX)?
                .to_owned(),
            status: fields.parsed_needed("status")?,
            items,
            pending_action: pending,
            ui_state: ui_state
                .map(|ui_state| ui_state.map().clone())
                .filter(|ui_state| !ui_state.is_empty()),
            started_at,
            completed_at,
            terminated_reason: fields
                .text_of("terminated_reason", 0..=REASON_BYTES_MAX)?
                .map(str::to_owned),
            config: config.map(|config| config.map().clone()),
            // 0 means none, as in the old system.
            time_limit_s: time_limit_s
                .and_then(|seconds| u32::try_from(seconds).ok())
                .filter(|seconds| *seconds > 0),
        })
    }

    /// Returns its status at this time.
    #[must_use]
    pub fn import_status(&self, now: Timestamp) -> ImportStatus {
        match self.status {
            OldStatus::Completed | OldStatus::Expired | OldStatus::Terminated => {
                ImportStatus::Ended
            }
            OldStatus::Pending | OldStatus::Active | OldStatus::AwaitingClientAction => {
                match self.deadline() {
                    None => ImportStatus::GoesOn { left_ms: None },
                    Some(deadline) if deadline > now => ImportStatus::GoesOn {
                        left_ms: Some(deadline.since_ms(now)),
                    },
                    Some(deadline) => ImportStatus::Overdue(deadline),
                }
            }
        }
    }

    /// Returns the time at which its own time limit ends, counted from its beginning.
    fn deadline(&self) -> Option<Timestamp> {
        self.time_limit_s
            .map(|seconds| self.started_at.plus_ms(u64::from(seconds) * 1_000))
    }

    /// Returns the number of its answered items.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.items
            .iter()
            .filter(|item| item.answered.is_some())
            .count()
    }

    /// Returns the config with which it is opened when it continues. It is the old config, plus
    /// `imported`, with which its agent can ask again: the unanswered items, and what its client
    /// showed.
    #[must_use]
    pub fn handed_over(&self) -> Map<String, Value> {
        let mut config = self.config.clone().unwrap_or_default();
        let unanswered: Vec<Value> = self
            .items
            .iter()
            .filter(|item| item.answered.is_none())
            .map(OldItem::describe)
            .collect();
        let imported = json!({
            "pending_action": self.pending_action.as_ref().map(OldAction::describe), "ui_state": self.ui_state, "unanswered": unanswered,
            "answered": self.answered(), "started_at": self.started_at.to_string(),
        });
        config.insert(IMPORTED.to_owned(), imported);
        config
    }

    /// The session in an agent's history. A session that would continue but cannot, for this
    /// reason, ends now.
    #[must_use]
    pub fn past(&self, cannot_go_on: &str, now: Timestamp) -> PastSession {
        let (status, ended, reason) = match (self.import_status(now), self.status) {
            (ImportStatus::GoesOn { .. }, _) => {
                (EndStatus::Terminated, now, Some(cannot_go_on.to_owned()))
            }
            (ImportStatus::Overdue(since), _) => {
                (EndStatus::Terminated, since, Some(EXPIRED.to_owned()))
            }
            (ImportStatus::Ended, OldStatus::Completed) => {
                (EndStatus::Completed, self.ended(), None)
            }
            (ImportStatus::Ended, OldStatus::Expired) => (
                EndStatus::Terminated,
                self.ended(),
                Some(EXPIRED.to_owned()),
            ),
            (ImportStatus::Ended, _) => {
                let reason = self
                    .terminated_reason
                    .clone()
                    .unwrap_or_else(|| "unknown".to_owned());
                (EndStatus::Terminated, self.ended(), Some(reason))
            }
        };
        PastSession {
            session_id: self.session_id,
            conversation_id: self.conversation_id,
            session_type: self.session_type.clone(),
            started_by: self.user_id.clone(),
            status,
            started_at: self.started_at,
            completed_at: ended,
            terminated_reason: reason,
            interactions: self.answered() as u64,
            summary: None,
        }
    }

    /// Returns the time at which it ended; if none is given, the time of its latest event.
    fn ended(&self) -> Timestamp {
        let happened = self.items.iter().flat_map(|item| {
            [
                item.asked,
                item.answered.as_ref().map(|answered| answered.time),
            ]
        });
        self.completed_at
            .unwrap_or_else(|| happened.flatten().fold(self.started_at, Timestamp::max))
    }
}

/// Returns its user, by the id here or by the issuer's claim.
fn user(fields: &Fields<'_>, issuer: Option<&Voucher>) -> Result<UserId, ImportFault> {
    match issuer {
        None => fields.parsed_needed("user_id"),
        Some(Voucher { issuer, naming }) => {
            let claim = fields.text_needed("user_id", 1..=USER_BYTES_MAX)?;
            Ok(UserId::of_claim(issuer, claim, *naming))
        }
    }
}

/// The items, without duplicates and in order.
fn items(fields: &Fields<'_>, from: Timestamp, to: Timestamp) -> Result<Vec<OldItem>, ImportFault> {
    let mut items = Vec::new();
    let mut last = 0;
    let mut places: HashMap<String, usize> = HashMap::new();
    for (at, entry) in fields.few_objects("items", ITEMS_MAX)?.iter().enumerate() {
        let sequence = entry.whole("sequence", 0..=u64::from(u32::MAX))?;
        if let Some(sequence) = sequence {
            if at > 0 && sequence <= last {
                return Err(entry.fault(
                    "sequence",
                    format!("it is {sequence} and follows {last}; put the items in their order"),
                ));
            }
            last = sequence;
        }
        let item = OldItem::read(entry, at + 1, from, to)?;
        if let Some(first) = places.insert(item.id.clone(), at) {
            return Err(entry.fault(
                "id",
                format!("item {first} of this session is called `{}` too", item.id),
            ));
        }
        items.push(item);
    }
    Ok(items)
}

/// Records a waiting action, as an item without an answer. That is the current item, an item that
/// shows the same, or a new one.
fn put_on_record(items: &mut Vec<OldItem>, action: &OldAction, current: Option<&str>) {
    let shows_it = |item: &&mut OldItem| {
        let shown = item.shown.as_ref();
        let by_call = || {
            action.tool_call_id.is_some()
                && shown.is_some_and(|shown| shown.tool_call_id == action.tool_call_id)
        };
        let is_it = || {
            current == Some(item.id.as_str())
                || by_call()
                || shown.is_some_and(|shown| shown.action == action.action)
        };
        item.answered.is_none() && is_it()
    };
    if let Some(item) = items.iter_mut().rev().find(shows_it) {
        item.shown.get_or_insert_with(|| action.clone());
        return;
    }
    let is_free = |id: &str| items.iter().all(|item| item.id != id);
    let own = current.filter(|id| is_free(id)).map(str::to_owned);
    // With one more number than there are items, one number is free.
    let id = own.or_else(|| {
        (1..=items.len() + 1)
            .rev()
            .map(unnamed)
            .find(|id| is_free(id))
    });
    items.push(OldItem::of_pending(action.clone(), id.unwrap_or_default()));
}

/// An object of an old document.
pub(super) type Fields<'a> = fields::Fields<'a, ImportFault>;

impl FieldFault for ImportFault {
    const MISSING: &'static str = "it is missing, and every one has it";

    fn new(_: usize, field: String, message: String) -> Self {
        Self { field, message }
    }
}

impl<'a> Fields<'a> {
    /// The present name of two alternative field names; the first if both are missing.
    pub(super) fn named(&self, name: &'static str, other: &'static str) -> &'static str {
        if self.value(name).is_none() && self.value(other).is_some() {
            other
        } else {
            name
        }
    }

    /// A required text of so many bytes.
    pub(super) fn text_needed(
        &self,
        name: &str,
        bytes: RangeInclusive<usize>,
    ) -> Result<&'a str, ImportFault> {
        self.needed(name, self.text_of(name, bytes)?)
    }

    /// Parses the text of a field; none if it is missing.
    pub(super) fn parsed<T: FromStr<Err: fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, ImportFault> {
        let parse = |text: &str| {
            text.parse()
                .map_err(|error: T::Err| self.fault(name, error.to_string()))
        };
        self.text(name)?.map(parse).transpose()
    }

    /// Parses the text of a field that is required.
    pub(super) fn parsed_needed<T: FromStr<Err: fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<T, ImportFault> {
        self.needed(name, self.parsed(name)?)
    }

    /// A time within this range.
    pub(super) fn time(
        &self,
        name: &str,
        between: RangeInclusive<Timestamp>,
    ) -> Result<Option<Timestamp>, ImportFault> {
        let Some(time) = self.parsed::<Timestamp>(name)? else {
            return Ok(None);
        };
        if between.contains(&time) {
            return Ok(Some(time));
        }
        let (earliest, latest) = between.into_inner();
        let message = if time < earliest {
            format!("it is {time}, which is before {earliest}, when what it belongs to began")
        } else {
            format!("it is {time}, which is after {latest}, by when it must have been")
        };
        Err(self.fault(name, message))
    }

    /// A whole number.
    pub(super) fn whole(
        &self,
        name: &str,
        between: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ImportFault> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        let (least, most) = between.clone().into_inner();
        let no = || {
            self.fault(
                name,
                format!(
                    "a whole number from {least} to {most} is needed, this is {}",
                    shown(value)
                ),
            )
        };
        value
            .as_u64()
            .filter(|number| between.contains(number))
            .map(Some)
            .ok_or_else(no)
    }

    /// A list of so many objects in it.
    pub(super) fn few_objects(&self, name: &str, most: usize) -> Result<Vec<Self>, ImportFault> {
        let count = self
            .typed(name, "a list", Value::as_array)?
            .map_or(0, Vec::len);
        if count > most {
            let message = format!("at most {most} are taken, these are {count}");
            return Err(self.fault(name, message));
        }
        self.objects(name)
    }

    /// Refuses a value with more bytes of JSON than this.
    pub(super) fn at_most(&self, bytes: usize) -> Result<(), ImportFault> {
        let is = serde_json::to_vec(self.map()).map_or(0, |json| json.len());
        if is > bytes {
            Err(self.fault(
                "",
                format!("at most {bytes} bytes as JSON are taken, these are {is}"),
            ))
        } else {
            Ok(())
        }
    }
}

/// A number as it is; for other values only their type.
pub(super) fn shown(value: &Value) -> String {
    if value.is_number() {
        value.to_string()
    } else {
        kind(value).to_owned()
    }
}
