//! Usage of settled work, in a row for each day, session, user and model.

use crate::sql::{self, Sql, int, named};
use domain::event::Recorded;
use domain::id::{RunId, Stream};
use domain::usage::{UsageShare, UsageShares};
use uuid::Uuid;

/// The session and the agent of purged usage.
const NOBODY: RunId = RunId(Uuid::nil());

/// A statement that adds a share's sums to the row of an owner, on its day with its model. The
/// owner is the session, the user and the agent that the statement reads.
macro_rules! add_to_row_of {
    ($owner:literal, $there:literal) => {
        concat!(
            "INSERT INTO usage (session, user_id, agent, day, model, model_calls, attempts, \
             unpriced_attempts, input_tokens, output_tokens, cached_tokens, cost_micros, \
             tool_calls, active_ms, reserved_tokens, reserved_cost_micros) SELECT ",
            $owner,
            ", :day, :share, :calls, :attempts, :unpriced, :input, :output, :cached, :cost, \
             :tools, :active, :reserved, :reserved_cost ",
            $there,
            " ON CONFLICT (day, session, user_id, model) DO UPDATE SET model_calls = \
             usage.model_calls + excluded.model_calls, attempts = usage.attempts + \
             excluded.attempts, unpriced_attempts = usage.unpriced_attempts + \
             excluded.unpriced_attempts, input_tokens = usage.input_tokens + \
             excluded.input_tokens, output_tokens = usage.output_tokens + excluded.output_tokens, \
             cached_tokens = usage.cached_tokens + excluded.cached_tokens, cost_micros = \
             usage.cost_micros + excluded.cost_micros, tool_calls = usage.tool_calls + \
             excluded.tool_calls, active_ms = usage.active_ms + excluded.active_ms, \
             reserved_tokens = usage.reserved_tokens + excluded.reserved_tokens, \
             reserved_cost_micros = usage.reserved_cost_micros + excluded.reserved_cost_micros"
        )
    };
}

/// Adds to the sums of a run's session and user: one row for each share. A run whose start was
/// erased has none.
pub(super) fn add(sql: &Sql<'_>, run: RunId, used: &UsageShares) -> sql::Result<()> {
    let text = add_to_row_of!("session, user_id, agent", "FROM runs WHERE id = :id");
    used.iter()
        .try_for_each(|share| write(sql, text, &share, run))
}

/// Adds active time that an event of a run's stream records in addition to outcomes.
pub(super) fn worked(sql: &Sql<'_>, recorded: &Recorded, active_ms: u64) -> sql::Result<()> {
    let Ok(Stream::Run(run)) = recorded.stream.parse() else {
        return Ok(());
    };
    let mut used = UsageShares::default();
    used.worked(active_ms, recorded.time);
    add(sql, run, &used)
}

/// Adds the sums of purged usage to rows without a user.
pub(super) fn keep_purged(sql: &Sql<'_>, shares: &[UsageShare]) -> sql::Result<()> {
    let text = add_to_row_of!(":id, '', :id", "WHERE TRUE");
    shares
        .iter()
        .try_for_each(|share| write(sql, text, share, NOBODY))
}

/// Subtracts a run's usage from the sums of its session and user.
pub(crate) fn take_back(sql: &Sql<'_>, run: RunId, used: &UsageShares) -> sql::Result<()> {
    let text = "UPDATE usage SET model_calls = model_calls - :calls, attempts = attempts - \
                :attempts, unpriced_attempts = unpriced_attempts - :unpriced, input_tokens = \
                input_tokens - :input, output_tokens = output_tokens - :output, cached_tokens = \
                cached_tokens - :cached, cost_micros = cost_micros - :cost, tool_calls = \
                tool_calls - :tools, active_ms = active_ms - :active, reserved_tokens = \
                reserved_tokens - :reserved, reserved_cost_micros = reserved_cost_micros - \
                :reserved_cost WHERE (day, session, user_id, model) = (SELECT :day, session, \
                user_id, :share FROM runs WHERE id = :id)";
    let empty = "DELETE FROM usage WHERE (day, session, user_id, model) = (SELECT :day, session, \
                 user_id, :share FROM runs WHERE id = :id) AND model_calls = 0 AND attempts = 0 \
                 AND unpriced_attempts = 0 AND input_tokens = 0 AND output_tokens = 0 AND \
                 cached_tokens = 0 AND cost_micros = 0 AND tool_calls = 0 AND active_ms = 0 AND \
                 reserved_tokens = 0 AND reserved_cost_micros = 0";
    for share in used.iter() {
        write(sql, text, &share, run)?;
        sql.write(
            empty,
            named![day = share.day.0, share = model(&share), id = run],
        )?;
    }
    Ok(())
}

fn write(sql: &Sql<'_>, text: &'static str, share: &UsageShare, id: RunId) -> sql::Result<()> {
    let [
        calls,
        attempts,
        unpriced,
        input,
        output,
        cached,
        cost,
        tools,
        active,
        reserved,
        reserved_cost,
    ] = share.sum.numbers().map(int);
    sql.write(
        text,
        named![
            calls,
            attempts,
            unpriced,
            input,
            output,
            cached,
            cost,
            tools,
            active,
            reserved,
            reserved_cost,
            day = share.day,
            share = model(share),
            id
        ],
    )
}

/// The model in a key, which is never null.
fn model(share: &UsageShare) -> &str {
    share.model.as_deref().unwrap_or_default()
}
