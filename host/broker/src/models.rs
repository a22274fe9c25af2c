//! Models as operators see them. The gateway has them; this gives access to layers without a
//! gateway.

use crate::boxed::boxed;
use crate::shared::Models;
pub use llm::{
    ConfiguredModel, ConfiguredProvider, Freshness, Health, HealthState, ModelList, PriceConfig,
    ProviderKind, SeenBy, ShownFailure,
};

impl Models<'_> {
    /// Returns the models of the configuration, by alias. Queries no provider.
    #[must_use]
    pub fn list(&self) -> Vec<ConfiguredModel> {
        self.core.gateway().models()
    }

    /// Returns the providers of the configuration, by name, with their own lists of models.
    /// Providers with outdated lists are queried; that takes ten seconds at most.
    #[boxed]
    pub async fn providers(&self, freshness: Freshness) -> Vec<ConfiguredProvider> {
        self.core.gateway().providers(freshness).await
    }
}
