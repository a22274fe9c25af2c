//! The models of the gateway as they are looked at, with the state of their providers.

use crate::config::{CONTEXT_WINDOW_DEFAULT, PriceConfig, ProviderKind};
use crate::gateway::{Gateway, Model, Upstream};
use crate::health::{Freshness, Health, ListedNames, ModelList, ProviderStatus};
use crate::provider::Provider;
use domain::sampling::{Sampling, UnfitSetting};
use futures::future::join_all;
use std::collections::BTreeSet;

/// A model of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredModel {
    /// Its alias.
    pub alias: String,
    /// Its provider's name in the config.
    pub provider: String,
    /// The provider's name of it.
    pub model: String,
    /// True if it is used when none is named.
    pub is_default: bool,
    /// Tokens of prompt and reply that it can hold.
    pub context_window: u64,
    /// Tokens of a reply, at most, if the config limits them.
    pub max_tokens: Option<u32>,
    /// Aliases that are tried when it does not answer.
    pub fallbacks: Vec<String>,
    /// Its price.
    pub price: Option<PriceConfig>,
    /// The outcome of the last call of it; none without a call since the start.
    pub health: Option<Health>,
}

/// A provider of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredProvider {
    /// Its name in the config.
    pub name: String,
    /// The API that it speaks.
    pub kind: ProviderKind,
    /// The state in which it was last seen.
    pub health: Option<Health>,
    /// Its own list of models.
    pub list: ModelList,
}

impl Gateway {
    /// Checks whether a model takes these settings, and those that are tried in its place. Without
    /// a model, the default one. A model that is unknown is no fault of the settings.
    ///
    /// # Errors
    /// The first setting that one of their providers does not take.
    pub fn check_sampling(
        &self,
        model: Option<&str>,
        sampling: &Sampling,
    ) -> Result<(), UnfitSetting> {
        for (alias, model) in self.asked_for(model) {
            if let Some((field, taken)) = model.upstream.provider.unfit(sampling) {
                let message = format!(
                    "`{field}` is not for provider `{}` of model `{alias}`: {taken}; change it, or \
                     name another model",
                    model.upstream.name
                );
                return Err(UnfitSetting { field, message });
            }
        }
        Ok(())
    }

    /// Checks whether a model takes a limit of its replies, and those that are tried in its place,
    /// as [`check_sampling`](Self::check_sampling) does.
    ///
    /// # Errors
    /// One of them is a program, which works for as long as it sees fit.
    pub fn check_reply_limit(
        &self,
        model: Option<&str>,
        max_tokens: Option<u32>,
    ) -> Result<(), UnfitSetting> {
        let program = self
            .asked_for(model)
            .into_iter()
            .find(|(_, model)| model.upstream.provider.is_program());
        match (max_tokens, program) {
            (Some(_), Some((alias, model))) => Err(UnfitSetting {
                field: "maxTokens",
                message: format!(
                    "`maxTokens` is not for provider `{}` of model `{alias}`: a program takes no \
                     such setting, and `program.limits` bound its turn; remove it, or name \
                     another model",
                    model.upstream.name
                ),
            }),
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Returns a model with those that are tried in its place; none if it is unknown.
    fn asked_for(&self, model: Option<&str>) -> Vec<(&str, &Model)> {
        let Ok((alias, model)) = self.find(model) else {
            return Vec::new();
        };
        let fallbacks = model.config.fallbacks.iter();
        let fallbacks = fallbacks.filter_map(|alias| self.models.get_key_value(alias));
        std::iter::once((alias, model))
            .chain(fallbacks.map(|(alias, model)| (alias.as_str(), model)))
            .collect()
    }

    /// Returns all models by alias. Asks nobody.
    #[must_use]
    pub fn models(&self) -> Vec<ConfiguredModel> {
        let default = self.find(None).map(|(alias, _)| alias).ok();
        let models = self.models.iter().map(|(alias, model)| {
            let config = &model.config;
            ConfiguredModel {
                alias: alias.clone(),
                provider: config.provider.clone(),
                model: config.model.clone(),
                is_default: default == Some(alias.as_str()),
                context_window: config.context_window.unwrap_or(CONTEXT_WINDOW_DEFAULT),
                max_tokens: config.max_tokens,
                fallbacks: config.fallbacks.clone(),
                price: config.price,
                health: model.upstream.health.of_model(&config.model),
            }
        });
        models.collect()
    }

    /// Returns how the providers stand that were called, by name. Asks nobody.
    #[must_use]
    pub fn statuses(&self) -> Vec<(&str, ProviderStatus)> {
        let called = self.upstreams.iter();
        called
            .filter_map(|it| Some((it.name.as_str(), it.health.provider_status()?)))
            .collect()
    }

    /// Returns all providers by name, with their own lists of models. Each whose list is too old is
    /// asked for it, all at the same time: that costs nothing, and takes ten seconds at most. A
    /// scripted provider and a program list the models that the configuration gives them.
    pub async fn providers(&self, freshness: Freshness) -> Vec<ConfiguredProvider> {
        let mut states = Vec::new();
        for upstream in &self.upstreams {
            states.push(self.provider(upstream, freshness));
        }
        join_all(states).await
    }

    async fn provider(&self, upstream: &Upstream, freshness: Freshness) -> ConfiguredProvider {
        let ask = async {
            match &upstream.provider {
                Provider::Remote(remote) => remote.list(&upstream.name).await,
                Provider::Scripted(_) | Provider::Program(_) => Ok(Some(self.configured(upstream))),
            }
        };
        let list = upstream.health.list(freshness, ask).await;
        ConfiguredProvider {
            name: upstream.name.clone(),
            kind: upstream.kind,
            health: upstream.health.of_provider(),
            list,
        }
    }

    /// Returns the models of a provider that has those that the configuration gives it.
    fn configured(&self, upstream: &Upstream) -> ListedNames {
        let names: BTreeSet<String> = self
            .models
            .values()
            .filter(|model| model.config.provider == upstream.name)
            .map(|model| model.config.model.clone())
            .collect();
        ListedNames {
            names: names.into_iter().collect(),
            is_cut: false,
        }
    }
}
