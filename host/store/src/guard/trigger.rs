//! Guards on triggers: how many there are, when one is due, and how far an occasion is.

use super::question::{Answers, Question, Questions, ask};
use super::trigger_standing::TriggerStanding;
use super::{Condition, Footprint, Resource, unless};
use crate::query::Value;
use crate::sql::{self, Columns};
use domain::id::OccasionId;
use domain::time::Timestamp;
use domain::trigger::TriggerName;
use domain::user::UserId;

/// Condition on triggers and their occasions.
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
    /// At most so many occasions of the trigger are open before this commit.
    PendingAtMost {
        /// The trigger.
        trigger: TriggerName,
        /// Maximum number of occasions.
        max: u64,
    },
    /// The trigger is there, enabled and not paused, and this is the next occasion of its schedule.
    NextDue {
        /// The trigger.
        trigger: TriggerName,
        /// The time of the occasion; none for a trigger without one.
        due: Option<Timestamp>,
    },
    /// The occasion was accepted, and its trigger was not fired with it.
    OccasionWaiting {
        /// The trigger.
        trigger: TriggerName,
        /// The occasion.
        occasion: OccasionId,
    },
    /// The trigger was fired with the occasion, and its messages are to be handed over.
    OccasionFired {
        /// The trigger.
        trigger: TriggerName,
        /// The occasion.
        occasion: OccasionId,
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
                [Some(Question::TriggerStanding(trigger)), None]
            }
            Self::OccasionWaiting { trigger, occasion }
            | Self::OccasionFired { trigger, occasion } => ask(
                "SELECT state FROM occasions WHERE id = ?1 AND trigger_name = ?2",
                [Value::id(occasion), Value::text(trigger.as_str())],
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
                let standing = rows.first().map(TriggerStanding::from_row).transpose()?;
                let found = standing.map_or(0, |standing| standing.open);
                return Ok(unless(found <= *max, || format!("{found} are open")));
            }
            Self::NextDue { due, .. } => {
                let standing = rows.first().map(TriggerStanding::from_row).transpose()?;
                let Some(standing) = standing.filter(|standing| standing.is_fired) else {
                    return Ok(Some("it is paused, disabled or not there".to_owned()));
                };
                let found = standing.next_due;
                return Ok(unless(found == *due, || format!("it is due at {found:?}")));
            }
            Self::OccasionWaiting { .. } => "waiting",
            Self::OccasionFired { .. } => "fired",
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
            | Self::OccasionWaiting { trigger, .. }
            | Self::OccasionFired { trigger, .. } => vec![Resource::Trigger(trigger.clone())],
        }
    }
}
