//! Guards on a run and its operations.

use super::question::{Answers, Questions, ask};
use super::{Condition, Footprint, Resource, unless};
use crate::query::Value;
use crate::sql;
use domain::id::{OperationId, RunId};

/// Condition on a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunGuard {
    /// The run was started and has not ended.
    Open(RunId),
    /// The operation of this run was started and has not settled.
    OperationOpen {
        /// The run.
        run: RunId,
        /// The operation.
        operation: OperationId,
    },
}

impl Condition for RunGuard {
    fn questions(&self) -> Questions<'_> {
        match self {
            Self::Open(run) => ask(
                "SELECT 1 FROM runs WHERE id = ?1 AND outcome IS NULL",
                [Value::id(run)],
            ),
            Self::OperationOpen { run, operation } => ask(
                "SELECT 1 FROM operations WHERE id = ?1 AND run = ?2",
                [Value::digest(&operation.0), Value::id(run)],
            ),
        }
    }

    fn judge(&self, [rows, _]: &Answers) -> sql::Result<Option<String>> {
        match self {
            Self::Open(_) | Self::OperationOpen { .. } => {
                Ok(unless(!rows.is_empty(), || "it is not open".to_owned()))
            }
        }
    }

    fn footprint(&self) -> Footprint {
        match self {
            Self::Open(run) | Self::OperationOpen { run, .. } => vec![Resource::Run(*run)],
        }
    }
}
