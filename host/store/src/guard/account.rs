//! Guards on the shared usage of the runs that resulted from one message.

use super::question::{Answers, Question, Questions};
use super::{Condition, Footprint, Resource, unless};
use crate::read::accounts::{drawn_query, read_drawn};
use crate::sql;
use domain::account::Accounts;
use domain::budget::Amount;
use domain::id::RunId;

/// Condition on the accounts of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountGuard {
    /// All accounts of a run can cover the amounts that this commit draws on them, in addition to
    /// all amounts already drawn.
    Covers {
        /// The run.
        run: RunId,
        /// Its accounts.
        accounts: Accounts,
        /// Amount that the run has drawn itself, with the outcomes that this commit records.
        drawn: Amount,
        /// Amount that this commit draws.
        more: Amount,
    },
    /// The message that began everything has led to at most so many runs before this commit.
    RunsAtMost {
        /// The accounts of the work that it began, the message's first.
        accounts: Accounts,
        /// Maximum number of runs.
        max: u64,
    },
}

impl Condition for AccountGuard {
    fn questions(&self) -> Questions<'_> {
        match self {
            Self::Covers { accounts, .. } | Self::RunsAtMost { accounts, .. } => {
                [drawn_query(accounts).map(Question::Other), None]
            }
        }
    }

    fn judge(&self, [rows, _]: &Answers) -> sql::Result<Option<String>> {
        Ok(match self {
            Self::Covers {
                run,
                accounts,
                drawn,
                more,
            } => {
                let others = read_drawn(rows, accounts, Some(*run))?.others;
                accounts.shortage(&others, *drawn, *more)
            }
            Self::RunsAtMost { accounts, max } => {
                let begun = read_drawn(rows, accounts, None)?.runs;
                unless(begun <= *max, || format!("{begun} have begun"))
            }
        })
    }

    fn footprint(&self) -> Footprint {
        match self {
            Self::Covers { run, accounts, .. } => {
                let addresses = accounts.addresses().into_iter().map(Resource::Account);
                addresses.chain([Resource::Run(*run)]).collect()
            }
            Self::RunsAtMost { accounts, .. } => {
                let first = accounts.addresses().into_iter().next();
                first.map(Resource::Account).into_iter().collect()
            }
        }
    }
}
