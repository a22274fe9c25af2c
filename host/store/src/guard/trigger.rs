//! Guards on triggers: how many there are, when one is due, and how far a trigger event is.

use super::question::{Answers, Question, Questions, ask};
use super::trigger_status::TriggerStatus;
use super::{Condition, Footprint, Resource, unless};
use crate::query::Value;
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
    /// The trigger event was accepted, and its trigger was not fired for it yet.
    TriggerEventWaiting {
        /// The trigger.
        trigger: TriggerName,
        /// The trigger event.
        trigger_event: TriggerEventId,
    },
    /// The trigger was fired for the trigger event, and its messages wait to be handed over.
    TriggerEventFired {
        /// The trigger.
        trigger: TriggerName,
        /// The trigger event.
        trigger_event: TriggerEventId,
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
            Self::TriggerEventWaiting {
                trigger,
                trigger_event,
            }
            | Self::TriggerEventFired {
                trigger,
                trigger_event,
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
            Self::TriggerEventWaiting { .. } => "waiting",
            Self::TriggerEventFired { .. } => "fired",
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
            | Self::TriggerEventWaiting { trigger, .. }
            | Self::TriggerEventFired { trigger, .. } => vec![Resource::Trigger(trigger.clone())],
        }
    }
}
