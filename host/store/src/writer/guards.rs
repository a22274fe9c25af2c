//! Guards inside the writer's transaction: their questions answered from its cache or the rows,
//! their judgement heard.

use super::cache::Cache;
use super::refused::Refused;
use crate::commit::{Clash, Conflict};
use crate::guard::{AcceptanceStatus, Answers, Guard, Question, TriggerStatus};
use crate::query::{Row, Rows, Value};
use crate::sql::{self, Sql};
use crate::user_storage::{stored_bytes_query, stored_bytes_with_query};

/// Passes, or returns a description of the actual state.
pub(super) fn check(sql: &Sql<'_>, cache: &mut Cache, guard: &Guard) -> Result<(), Refused> {
    let mut answers = Answers::default();
    for (question, rows) in guard.questions().iter().zip(&mut answers) {
        if let Some(question) = question {
            *rows = answer(sql, cache, question)?;
        }
    }
    match guard.judge(&answers)? {
        None => Ok(()),
        Some(detail) => Err(Refused::Conflict(Conflict {
            clash: Clash::Guard(guard.clone()),
            detail,
        })),
    }
}

fn answer(sql: &Sql<'_>, cache: &mut Cache, question: &Question<'_>) -> sql::Result<Rows> {
    match question {
        Question::AcceptanceStatus(session) => {
            let session_status = cache.session_status(sql, *session)?;
            Ok(session_status.map(AcceptanceStatus::to_row).into())
        }
        Question::Role { agent, user } => {
            let role = cache.role(sql, *agent, user)?;
            Ok(role
                .map(|role| Row::new([Value::text(role.as_str())]))
                .into())
        }
        Question::StoredBytes(user) => {
            // The bytes stored in this transaction are not in the row yet.
            let stored = sql.ask(&stored_bytes_query(user))?.number()?;
            let bytes = Value::number(stored + cache.brought(user));
            Ok(Some(Row::new([bytes])).into())
        }
        Question::StoredBytesWith(key) => {
            let stored = sql.ask(&stored_bytes_with_query(key))?.number()?;
            let bytes = Value::number(stored + cache.brought_with(key));
            Ok(Some(Row::new([bytes])).into())
        }
        Question::TriggerStatus(trigger) => {
            let session_status = cache.trigger(sql, trigger)?;
            Ok(session_status.map(TriggerStatus::to_row).into())
        }
        Question::Other(query) => sql.ask(query),
    }
}
