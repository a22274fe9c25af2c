//! Amounts drawn on accounts by the runs whose address is theirs or below.

use super::ReadError;
use crate::query::{Query, Row, Rows, Value};
use crate::sql::{self, Columns};
use crate::store::Store;
use domain::account::Accounts;
use domain::budget::Amount;
use domain::id::RunId;

/// Amounts that runs other than a given one have drawn on its accounts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drawn {
    /// Number of further runs that resulted from the first message.
    pub runs: u64,
    /// Amounts that they have drawn on each account, in the accounts' order.
    pub others: Vec<Amount>,
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
        self.point_read(move |sql| {
            let rows = drawn_query(&accounts).map(|query| sql.ask(&query));
            read_drawn(&rows.transpose()?.unwrap_or_default(), &accounts, except)
        })
        .await
    }
}

/// The query for the amounts that runs have drawn on some accounts; none without an account.
pub(crate) fn drawn_query(accounts: &Accounts) -> Option<Query<'static>> {
    // A `0` follows a `/`: these are all whose address begins with this one.
    let text = "SELECT accounts, id, tokens, calls, cost_micros FROM runs WHERE accounts >= ?1 AND \
                accounts < ?1 || '0' UNION ALL SELECT NULL, id, tokens, calls, cost_micros FROM \
                runs WHERE id = ?2 AND accounts IS NULL";
    let first = accounts.first()?;
    let address = Value::Text(first.to_string().into());
    Some(Query::new(text, [address, Value::id(&RunId(first.0))]))
}

/// Adds up the rows that answer [`drawn_query`]. See [`Store::drawn`].
pub(crate) fn read_drawn(
    rows: &Rows,
    accounts: &Accounts,
    except: Option<RunId>,
) -> sql::Result<Drawn> {
    let addresses = accounts.addresses();
    let mut all = Drawn {
        runs: 0,
        others: vec![Amount::default(); addresses.len()],
    };
    for row in rows.iter() {
        let address = row.text_opt(0)?;
        if except == Some(row.get(1)?) {
            continue;
        }
        let spent = spent(row)?;
        all.runs += 1;
        for (index, (account, others)) in addresses.iter().zip(&mut all.others).enumerate() {
            let draws = match address {
                Some(address) => address
                    .strip_prefix(account.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
                // The run that a message began draws on that account alone.
                None => index == 0,
            };
            if draws {
                *others = others.plus(spent);
            }
        }
    }
    Ok(all)
}

fn spent(row: &Row) -> sql::Result<Amount> {
    Ok(Amount {
        tokens: row.uint(2)?,
        calls: u32::try_from(row.uint(3)?).unwrap_or(u32::MAX),
        cost_micros: row.uint(4)?,
    })
}
