//! A trigger's status: whether it is active, when it is due next, and its number of open trigger
//! events.

use crate::query::{Query, Row, Value};
use crate::sql::{self, Columns};
use domain::time::Timestamp;
use domain::trigger::TriggerName;

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
