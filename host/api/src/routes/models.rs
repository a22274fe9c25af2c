//! Models and their providers: what is configured, what each provider lists, and the state in which
//! it was last seen.

use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{Params, target};
use crate::problem::{Problem, RequestPart};
use crate::state::Api;
use crate::wire::Time;
use axum::extract::State;
use broker::models::{
    ConfiguredModel, ConfiguredProvider, Freshness, Health, HealthState, PriceConfig, ProviderKind,
    SeenBy, ShownFailure,
};
use domain::time::Timestamp;
use domain::user::Scope;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

error_codes! {
    ListErrors = [
        AgentArchived, AgentDead, DefinitionGone, DefinitionNotFound, PathForbidden, PathTaken,
        RoleForbids,
    ] + Agent;
}

/// Models that may be named, and their providers.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ModelList {
    /// The models that the caller may name, by alias.
    models: Vec<ModelView>,
    /// Their providers, by name.
    providers: Vec<ProviderView>,
}

/// One model.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Model)]
pub(super) struct ModelView {
    /// The alias by which definitions, sessions and messages name it.
    alias: String,
    /// The name of its provider in the configuration.
    provider: String,
    /// The provider's name of it.
    model: String,
    /// True if it is used when none is named.
    is_default: bool,
    /// Tokens of prompt and reply that it can hold.
    context_window: u64,
    /// Tokens of a reply, at most; none where the configuration sets no limit.
    max_tokens: Option<u32>,
    /// Aliases that are tried, in this order, when it does not answer.
    fallbacks: Vec<String>,
    /// Its price; none where the configuration has none.
    price: Option<PriceView>,
    /// True if its provider lists it. None if the provider gives no whole list.
    listed: Option<bool>,
    /// The outcome of the last call of it; none without a call since the start.
    health: Option<HealthView>,
}

/// The price of a million tokens.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = ModelPrice)]
pub(super) struct PriceView {
    /// Price of the prompt.
    input_per_million: f64,
    /// Price of the part of the prompt that was read from a cache; none if it is that of the rest.
    cached_per_million: Option<f64>,
    /// Price of the reply.
    output_per_million: f64,
}

/// One provider.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = ModelProvider)]
pub(super) struct ProviderView {
    /// Its name in the configuration.
    name: String,
    /// The API that it speaks.
    kind: ProviderKind,
    /// The state in which it was last seen, by a call or by a request for its list.
    health: Option<HealthView>,
    /// The models that it lists; none if it has no list to give, or did not give one.
    models: Option<Vec<String>>,
    /// True if it has more models than are listed here.
    is_cut: bool,
    /// The reason why its list could not be had.
    error: Option<ModelFailureView>,
    /// Time at which the list was asked for.
    listed_at: Time,
}

/// The state in which a provider or a model was last seen.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = ModelHealth)]
pub(super) struct HealthView {
    /// The state: `up`, `refusing` (it answers, and refuses the key, the account, the model or the
    /// rate of calls) or `down`.
    state: HealthState,
    /// The request from which it is known: `call` or `list`.
    seen_by: SeenBy,
    /// The time of that.
    seen_at: Time,
    /// The failure, if it was one.
    error: Option<ModelFailureView>,
}

/// A failure of a provider.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = ModelFailure)]
pub(super) struct ModelFailureView {
    /// Its code, such as `model-unavailable`.
    code: &'static str,
    /// The failure in words.
    message: String,
}

/// Query that says for which agent, and how old the lists of providers may be.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelParams {
    /// An agent: its UUID, its path, or the id of a definition. Only the models that may be named
    /// for it are listed.
    agent: Option<String>,
    /// True to ask every provider for its list now. Otherwise a list serves for a minute, and a
    /// failure for five seconds.
    refresh: Option<bool>,
}

/// Lists the models that the caller may name for an agent, and their providers with what each lists
/// itself. Without an agent, those that may be named for any agent that the caller has or may make;
/// for the scope `admin`, all of the configuration.
///
/// Providers are asked for their lists, which costs nothing; no model is called. That takes up to
/// ten seconds where a provider does not answer.
#[utoipa::path(
    get, path = "/api/models", tag = "models",
    operation_id = "listModels",
    security(("token" = ["read"])),
    params(ModelParams),
    responses((status = 200, description = "Models and providers.", body = ModelList)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(params): Params<ModelParams>,
) -> Result<axum::Json<ModelList>, Refused<ListErrors>> {
    let broker = api.broker()?;
    let agent = params.agent.as_deref().map(target);
    let all = broker.models().list();
    let models: Vec<ConfiguredModel> = if agent.is_none() && caller.scopes.contains(&Scope::Admin) {
        all
    } else {
        let nameable = broker.models().nameable(&caller.user, agent.as_ref()).await;
        // Where an agent is to be made, its definition and its path are said by the query as well.
        let nameable = nameable.map_err(|error| {
            let agent = RequestPart::Query("agent");
            Problem::from(error)
                .moved("/definition", agent)
                .moved("/path", agent)
        })?;
        let is_nameable = |model: &ConfiguredModel| nameable.contains(&model.alias);
        all.into_iter().filter(is_nameable).collect()
    };
    let aliases: BTreeSet<String> = models.iter().map(|it| it.alias.clone()).collect();
    let of_models: BTreeSet<String> = models.iter().map(|it| it.provider.clone()).collect();
    let is_whole = models.len() == broker.models().list().len();
    let freshness = if params.refresh == Some(true) {
        Freshness::Anew
    } else {
        Freshness::Kept
    };
    let mut providers = broker.models().providers(freshness).await;
    providers.retain(|provider| is_whole || of_models.contains(&provider.name));
    let now = api.access().clock().now();
    let listed: BTreeMap<String, Option<Vec<String>>> = providers
        .iter()
        .map(|provider| (provider.name.clone(), whole_list(provider)))
        .collect();
    let models = models.into_iter().map(|mut model| {
        // No alias that the caller may not name is told of as a fallback.
        model
            .fallbacks
            .retain(|alias| is_whole || aliases.contains(alias));
        let names = listed.get(&model.provider).and_then(Option::as_ref);
        let is_listed = names.map(|names| names.contains(&model.model));
        model_view(model, is_listed, now)
    });
    Ok(axum::Json(ModelList {
        models: models.collect(),
        providers: providers
            .into_iter()
            .map(|provider| provider_view(provider, now))
            .collect(),
    }))
}

/// Returns a provider's list, if nothing is missing in it.
fn whole_list(provider: &ConfiguredProvider) -> Option<Vec<String>> {
    match &provider.list.models {
        Ok(Some(names)) if !provider.list.is_cut => Some(names.clone()),
        Ok(_) | Err(_) => None,
    }
}

fn model_view(model: ConfiguredModel, listed: Option<bool>, now: Timestamp) -> ModelView {
    ModelView {
        alias: model.alias,
        provider: model.provider,
        model: model.model,
        is_default: model.is_default,
        context_window: model.context_window,
        max_tokens: model.max_tokens,
        fallbacks: model.fallbacks,
        price: model.price.map(price),
        listed,
        health: model.health.map(|health| health_view(health, now)),
    }
}

fn price(price: PriceConfig) -> PriceView {
    PriceView {
        input_per_million: price.input_per_million,
        cached_per_million: price.cached_per_million,
        output_per_million: price.output_per_million,
    }
}

fn provider_view(provider: ConfiguredProvider, now: Timestamp) -> ProviderView {
    let listed_at = ago(now, provider.list.age_ms);
    let (models, error) = match provider.list.models {
        Ok(models) => (models, None),
        Err(failure) => (None, Some(failure_view(failure))),
    };
    ProviderView {
        name: provider.name,
        kind: provider.kind,
        health: provider.health.map(|health| health_view(health, now)),
        models,
        is_cut: provider.list.is_cut,
        error,
        listed_at,
    }
}

fn health_view(health: Health, now: Timestamp) -> HealthView {
    HealthView {
        state: health.state,
        seen_by: health.seen_by,
        seen_at: ago(now, health.age_ms),
        error: health.failure.map(failure_view),
    }
}

fn failure_view(failure: ShownFailure) -> ModelFailureView {
    ModelFailureView {
        code: failure.code,
        message: failure.message,
    }
}

/// Returns the time so many milliseconds ago.
fn ago(now: Timestamp, ms: u64) -> Time {
    Time(Timestamp(now.0.saturating_sub(ms)))
}
