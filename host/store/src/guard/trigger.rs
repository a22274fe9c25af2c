//! Guards on triggers: how many there are, when one is due, and how far a trigger event is.

use super::question::{Answers, Question, Questions, ask};
use super::{Condition, Footprint, Resource, unless};
use crate::query::{Query, Row, Value};
use crate::read::TriggerEventState;
use crate::sql::{self, Columns};
use domain::id::TriggerEventId;
use domain::time::Timestamp;
use domain::trigger::TriggerName;
use domain::user::UserId;

/// Condition on triggers and their trigger events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerGuard {
    /// There are at most so many triggers before this commit.
    AtMost {
        /// Maximum number of triggers.
        max: u64,
    },
    /// At most so many triggers belong to the user before this commit.
    OfUserAtMost {
        /// The user.
        user: UserId,
        /// Maximum number of triggers.
        max: u64,
    },
    /// At most so many events of the trigger are open before this commit.
    PendingAtMost {
        /// The trigger.
        trigger: TriggerName,
        /// Maximum number of trigger events.
        max: u64,
    },
    /// The trigger is there, enabled and not paused, and this is the next trigger event of its
    /// schedule.
    NextDue {
        /// The trigger.
        trigger: TriggerName,
        /// The time of the trigger event; none for a trigger without one.
        due: Option<Timestamp>,
    },
    /// The trigger event is in this state.
    TriggerEventIs {
        /// The trigger.
        trigger: TriggerName,
        /// The trigger event.
        trigger_event: TriggerEventId,
        /// The state.
        state: TriggerEventState,
    },
}

impl Condition for TriggerGuard {
    fn questions(&self) -> Questions<'_> {
        match self {
            Self::AtMost { .. } => {
                ask("SELECT count(*) FROM triggers WHERE removed_at IS NULL", [])
            }
            Self::OfUserAtMost { user, .. } => ask(
                "SELECT count(*) FROM triggers WHERE user_id = ?1 AND removed_at IS NULL",
                [Value::text(user.as_str())],
            ),
            Self::PendingAtMost { trigger, .. } | Self::NextDue { trigger, .. } => {
                [Some(Question::TriggerStatus(trigger)), None]
            }
            Self::TriggerEventIs {
                trigger,
                trigger_event,
                ..
            } => ask(
                "SELECT state FROM trigger_events WHERE id = ?1 AND trigger_name = ?2",
                [Value::id(trigger_event), Value::text(trigger.as_str())],
            ),
        }
    }

    fn judge(&self, [rows, _]: &Answers) -> sql::Result<Option<String>> {
        let wanted = match self {
            Self::AtMost { max } | Self::OfUserAtMost { max, .. } => {
                let found = rows.number()?;
                return Ok(unless(found <= *max, || format!("there are {found}")));
            }
            Self::PendingAtMost { max, .. } => {
                let trigger_status = rows.first().map(TriggerStatus::from_row).transpose()?;
                let found = trigger_status.map_or(0, |trigger_status| trigger_status.open);
                return Ok(unless(found <= *max, || format!("{found} are open")));
            }
            Self::NextDue { due, .. } => {
                let trigger_status = rows.first().map(TriggerStatus::from_row).transpose()?;
                let Some(trigger_status) =
                    trigger_status.filter(|trigger_status| trigger_status.is_fired)
                else {
                    return Ok(Some("it is paused, disabled or not there".to_owned()));
                };
                let found = trigger_status.next_due;
                return Ok(unless(found == *due, || format!("it is due at {found:?}")));
            }
            Self::TriggerEventIs { state, .. } => state.as_str(),
        };
        let found = rows.first().map(|row| row.text(0)).transpose()?;
        Ok(unless(found == Some(wanted), || {
            format!("it is {}", found.unwrap_or("not there"))
        }))
    }

    fn footprint(&self) -> Footprint {
        match self {
            Self::AtMost { .. } => vec![Resource::Triggers],
            Self::OfUserAtMost { user, .. } => vec![Resource::User(user.clone())],
            Self::PendingAtMost { trigger, .. }
            | Self::NextDue { trigger, .. }
            | Self::TriggerEventIs { trigger, .. } => vec![Resource::Trigger(trigger.clone())],
        }
    }
}

/// State of a trigger that decides whether a trigger event is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TriggerStatus {
    /// True if it is enabled, not paused and not removed.
    pub(crate) is_fired: bool,
    /// The next trigger event of its schedule.
    pub(crate) next_due: Option<Timestamp>,
    /// Trigger events that are not done with.
    pub(crate) open: u64,
}

impl TriggerStatus {
    /// The query for a trigger's status. No row: there is no such trigger.
    pub(crate) fn query(trigger: &TriggerName) -> Query<'_> {
        let text = "SELECT t.enabled = 1 AND t.paused IS NULL AND t.removed_at IS NULL, \
                    t.next_due, (SELECT count(*) FROM trigger_events o WHERE o.trigger_name = t.name \
                    AND o.state IN ('waiting', 'fired')) FROM triggers t WHERE t.name = ?1";
        Query::new(text, [Value::text(trigger.as_str())])
    }

    /// Reads the row that answers [`TriggerStatus::query`].
    pub(crate) fn from_row(row: &Row) -> sql::Result<Self> {
        Ok(Self {
            is_fired: row.get(0)?,
            next_due: row.uint_opt(1)?.map(Timestamp),
            open: row.uint(2)?,
        })
    }

    /// Returns the row that this was read from.
    pub(crate) fn to_row(self) -> Row {
        Row::new([
            Value::Integer(self.is_fired.into()),
            self.next_due
                .map_or(Value::Null, |due| Value::number(due.0)),
            Value::number(self.open),
        ])
    }
}
