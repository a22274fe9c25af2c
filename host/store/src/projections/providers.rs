//! Providers of models that are in trouble: a row while it lasts.

use crate::sql::{self, Sql, to_json, upsert};
use domain::event::ProviderTroubled;
use domain::trouble::ServiceTrouble;

pub(super) fn troubled(sql: &Sql<'_>, it: &ProviderTroubled) -> sql::Result<()> {
    match &it.trouble {
        ServiceTrouble::Recovered => sql.write(
            "DELETE FROM provider_troubles WHERE provider = ?1",
            [it.provider.as_str()],
        ),
        ServiceTrouble::Unauthorised { .. } | ServiceTrouble::Failing { .. } => upsert!(
            sql,
            provider_troubles {
                provider: it.provider
            },
            set {
                trouble: to_json(&it.trouble)?,
                troubled_at: it.time
            }
        ),
    }
}
