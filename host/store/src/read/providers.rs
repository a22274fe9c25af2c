//! Providers of models that are in trouble.

use super::ReadError;
use crate::sql::Columns;
use crate::store::Store;
use domain::time::Timestamp;
use domain::trouble::ServiceTrouble;

/// A provider that is in trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderTrouble {
    /// The provider, as the configuration names it.
    pub provider: String,
    /// The trouble that an operator was told of last.
    pub trouble: ServiceTrouble,
    /// Time at which it was noticed.
    pub since: Timestamp,
}

impl Store {
    /// Returns the providers that are in trouble, by name. There are no more of them than were
    /// ever configured.
    pub async fn provider_troubles(&self) -> Result<Vec<ProviderTrouble>, ReadError> {
        self.read(|sql| {
            let text = "SELECT provider, trouble, troubled_at FROM provider_troubles ORDER BY \
                        provider";
            sql.rows(text, [], |row| {
                Ok(ProviderTrouble {
                    provider: row.get(0)?,
                    trouble: row.json(1)?,
                    since: Timestamp(row.uint(2)?),
                })
            })
        })
        .await
    }
}
