//! Providers of models that are in trouble.

use super::ReadError;
use crate::sql::{row, select};
use crate::store::Maintenance;
use domain::time::Timestamp;
use domain::trouble::ServiceTrouble;

row! {
    /// A provider that is in trouble.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ProviderTrouble from "provider_troubles" {
        /// The provider, as the configuration names it.
        pub provider: String,
        /// The trouble that an operator was last notified of.
        pub trouble: ServiceTrouble as json,
        /// Time at which it was noticed.
        pub since: Timestamp = "troubled_at",
    }
}

impl Maintenance {
    /// Returns the providers that are in trouble, by name. Their number is at most that of all
    /// providers ever configured.
    pub async fn provider_troubles(&self) -> Result<Vec<ProviderTrouble>, ReadError> {
        self.read(|sql| {
            let text = select!(ProviderTrouble, "ORDER BY provider");
            sql.all(text, [])
        })
        .await
    }
}
