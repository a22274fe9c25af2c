//! Providers of models that are in trouble: a row while it lasts.

use crate::sql::{Sql, int, to_json};
use domain::event::ProviderTroubled;
use domain::trouble::ServiceTrouble;
use rusqlite::params;

pub(super) fn troubled(sql: &Sql<'_>, it: &ProviderTroubled) -> rusqlite::Result<()> {
    match &it.trouble {
        ServiceTrouble::Recovered => sql.write(
            "DELETE FROM provider_troubles WHERE provider = ?1",
            [it.provider.as_str()],
        ),
        ServiceTrouble::Unauthorised { .. } | ServiceTrouble::Failing { .. } => sql.write(
            "INSERT OR REPLACE INTO provider_troubles (provider, trouble, troubled_at) VALUES \
             (?1, ?2, ?3)",
            params![it.provider, to_json(&it.trouble)?, int(it.time.0)],
        ),
    }
}
