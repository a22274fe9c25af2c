//! Runs: the open ones, the outcomes of ended ones, and the usage of each on its accounts.

use crate::sql::{self, Sql, insert, named};
use domain::budget::Amount;
use domain::event::{RunEnded, RunStarted};
use domain::id::{RunId, SessionId};

/// Maximum that one change adds or subtracts. No sum of these comes near 63 bits.
const COUNTED_MAX: u64 = 1 << 50;
/// Maximum of a stored sum.
const KEPT_MAX: u64 = 1 << 60;

/// A sum as it is stored: from 0 to the maximum.
macro_rules! kept {
    ($sum:literal) => {
        concat!(
            "CASE WHEN ",
            $sum,
            " < 0 THEN 0 WHEN ",
            $sum,
            " > :most THEN :most ELSE ",
            $sum,
            " END"
        )
    };
}

pub(super) fn started(sql: &Sql<'_>, started: &RunStarted) -> sql::Result<()> {
    insert!(
        sql,
        runs {
            id: started.run,
            session: started.session,
            agent: started.agent,
            started_at: started.time,
            accounts: (!started.accounts.is_empty()).then(|| started.accounts.address()),
            user_id: started.user_id
        }
    )
}

/// Adds to the amounts that a run draws on its accounts, and subtracts the reserve.
pub(super) fn draws(sql: &Sql<'_>, run: RunId, more: Amount, less: Amount) -> sql::Result<()> {
    if more == less {
        return Ok(());
    }
    let counted = |number: u64| number.min(COUNTED_MAX);
    sql.write(
        concat!(
            "UPDATE runs SET tokens = ",
            kept!("tokens + :more_tokens - :less_tokens"),
            ", calls = ",
            kept!("calls + :more_calls - :less_calls"),
            ", cost_micros = ",
            kept!("cost_micros + :more_cost - :less_cost"),
            " WHERE id = :id"
        ),
        named![
            id = run,
            more_tokens = counted(more.tokens),
            less_tokens = counted(less.tokens),
            more_calls = more.calls,
            less_calls = less.calls,
            more_cost = counted(more.cost_micros),
            less_cost = counted(less.cost_micros),
            most = KEPT_MAX
        ],
    )
}

pub(super) fn ended(sql: &Sql<'_>, ended: &RunEnded) -> sql::Result<()> {
    sql.write(
        "UPDATE runs SET turn = :turn, outcome = :outcome, ended_at = :ended_at WHERE id = :id",
        named![
            id = ended.run,
            turn = ended.turn,
            outcome = ended.end.as_str(),
            ended_at = ended.time
        ],
    )
}

/// Returns the session of a run; none when its start was erased.
pub(super) fn needs_session(sql: &Sql<'_>, run: RunId) -> sql::Result<Option<SessionId>> {
    sql.one("SELECT session FROM runs WHERE id = ?1", [run])
}
