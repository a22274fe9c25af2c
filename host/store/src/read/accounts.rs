//! Amounts drawn on accounts by the runs whose address is theirs or below.

use super::ReadError;
use crate::sql::{Columns, Sql};
use crate::store::Store;
use domain::account::Accounts;
use domain::budget::Spent;
use domain::id::RunId;
use rusqlite::Row;

/// Amounts that runs other than a given one have drawn on its accounts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drawn {
    /// Number of other runs that came of the message that began everything.
    pub runs: u64,
    /// Amounts that they have drawn on each account, in the accounts' order.
    pub others: Vec<Spent>,
}

impl Store {
    /// Returns the amounts that runs other than this one have drawn on some accounts. Without a
    /// run, all runs count.
    pub async fn drawn(
        &self,
        accounts: &Accounts,
        except: Option<RunId>,
    ) -> Result<Drawn, ReadError> {
        let accounts = accounts.clone();
        self.point_read(move |sql| drawn(sql, &accounts, except))
            .await
    }
}

/// See [`Store::drawn`].
pub(crate) fn drawn(
    sql: &Sql<'_>,
    accounts: &Accounts,
    except: Option<RunId>,
) -> rusqlite::Result<Drawn> {
    let addresses = accounts.addresses();
    let Some(first) = addresses.first() else {
        return Ok(Drawn::default());
    };
    let except = except.map(|run| run.to_string());
    let mut all = Drawn {
        runs: 0,
        others: vec![Spent::default(); addresses.len()],
    };
    let mut add = |address: Option<String>, run: &str, spent: Spent| {
        if except.as_deref() == Some(run) {
            return;
        }
        all.runs += 1;
        let within = |account: &String| match &address {
            Some(address) => address
                .strip_prefix(account.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            // The run that a message began draws on that account alone.
            None => account == first,
        };
        for (account, others) in addresses.iter().zip(&mut all.others) {
            if within(account) {
                *others = others.plus(spent);
            }
        }
    };
    // A `0` follows a `/`: these are all whose address begins with this one.
    let text = "SELECT accounts, id, tokens, calls, cost_micros FROM runs WHERE accounts >= ?1 AND \
                accounts < ?1 || '0' UNION ALL \
                SELECT NULL, id, tokens, calls, cost_micros FROM runs WHERE id = ?1 AND accounts \
                IS NULL";
    let found = sql.rows(text, [first], |row| {
        Ok((
            row.get::<_, Option<String>>(0)?,
            row.get::<_, String>(1)?,
            spent(row)?,
        ))
    })?;
    for (address, run, spent) in found {
        add(address, &run, spent);
    }
    Ok(all)
}

fn spent(row: &Row<'_>) -> rusqlite::Result<Spent> {
    Ok(Spent {
        tokens: row.uint(2)?,
        calls: u32::try_from(row.uint(3)?).unwrap_or(u32::MAX),
        cost_micros: row.uint(4)?,
    })
}
