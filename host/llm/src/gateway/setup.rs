//! The way from the config to a gateway that can be used. Every mistake is found here and named by
//! its key.

use crate::config::{
    CONCURRENT_DEFAULT, CONCURRENT_MAX, Config, ConfigError, ConfigProblem, ModelConfig,
    PriceConfig, ProviderConfig, ProviderKind,
};
use crate::failure::nearest;
use crate::gate::Breaker;
use crate::gate::Gate;
use crate::gateway::remedy::{ProviderUrl, remedy};
use crate::gateway::{Gateway, Model, Upstream};
use crate::health::HealthRecord;
use crate::key::ApiKey;
use crate::program::Supervisor;
use crate::provider::anthropic::Anthropic;
use crate::provider::exchange::Remote;
use crate::provider::openai::OpenAi;
use crate::provider::program::Cli;
use crate::provider::scripted::Script;
use crate::provider::{Dialect, Provider};
use domain::price::Price;
use domain::redact::Redactor;
use egress::Resolve;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

mod program;

/// The settings that the config does not hold itself.
pub(crate) struct Surroundings<'a> {
    /// The folder from which relative paths start.
    pub(crate) base: &'a Path,
    /// Environment variables.
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
    /// Another way to look up names.
    pub(crate) resolver: Option<Arc<dyn Resolve>>,
    /// The supervisor of programs; none where none may be started.
    pub(crate) supervisor: Option<Supervisor>,
}

/// Sets up a gateway.
pub(crate) fn gateway(
    config: Config,
    surroundings: &Surroundings<'_>,
) -> Result<Gateway, ConfigError> {
    config.check_ranges()?;
    let mut upstreams = BTreeMap::new();
    for (name, provider) in &config.providers {
        let upstream = upstream(name, provider, &config, surroundings)?;
        upstreams.insert(name.clone(), Arc::new(upstream));
    }
    over(config, upstreams)
}

/// Sets up a gateway with other models over the providers of another one.
pub(crate) fn successor(before: &Gateway, config: Config) -> Result<Gateway, ConfigError> {
    config.check_ranges()?;
    let upstreams = before.upstreams.iter();
    let upstreams = upstreams.map(|upstream| (upstream.name.clone(), upstream.clone()));
    let config = Config {
        timeouts: before.timeouts,
        ..config
    };
    over(config, upstreams.collect())
}

/// Sets up a gateway over providers.
fn over(
    config: Config,
    upstreams: BTreeMap<String, Arc<Upstream>>,
) -> Result<Gateway, ConfigError> {
    let mut models = BTreeMap::new();
    for (alias, model) in &config.models {
        check_model(alias, model, &config)?;
        let Some(upstream) = upstreams.get(&model.provider) else {
            let nearest = nearest(&model.provider, upstreams.keys().map(String::as_str));
            let problem = ConfigProblem::Unknown {
                what: "provider",
                name: model.provider.clone(),
                nearest,
            };
            return Err(problem.at(format!("models.{alias}.provider")));
        };
        check_parameters(alias, model, upstream)?;
        let price = price(alias, model)?;
        models.insert(
            alias.clone(),
            Model {
                config: model.clone(),
                price,
                upstream: Arc::clone(upstream),
            },
        );
    }
    let redactors: Vec<Redactor> = upstreams
        .values()
        .map(|upstream| upstream.provider.redactor())
        .collect();
    let redactor = Redactor::all(&redactors);
    let gateway = Gateway {
        default: config.default_model,
        models,
        upstreams: upstreams.into_values().collect(),
        retry: config.retry,
        timeouts: config.timeouts,
        redactor,
    };
    if let Some(name) = &gateway.default
        && let Err(unknown) = gateway.resolve(None)
    {
        let nearest = nearest(name, unknown.known.iter().map(String::as_str));
        return Err(ConfigProblem::Unknown {
            what: "model",
            name: name.clone(),
            nearest,
        }
        .at("defaultModel"));
    }
    Ok(gateway)
}

fn check_model(alias: &str, model: &ModelConfig, config: &Config) -> Result<(), ConfigError> {
    if let Some(unknown) = model
        .fallbacks
        .iter()
        .find(|fallback| !config.models.contains_key(*fallback))
    {
        let nearest = nearest(unknown, config.models.keys().map(String::as_str));
        return Err(ConfigProblem::Unknown {
            what: "model",
            name: unknown.clone(),
            nearest,
        }
        .at(format!("models.{alias}.fallbacks")));
    }
    let provider = config.providers.get(&model.provider);
    let is_program = provider.is_some_and(|provider| Cli::of(provider.kind).is_some());
    if is_program && model.model.starts_with(['-', '@']) {
        let why =
            "the name of a program's model is an argument of it, and does not begin with `-` \
                   or `@`"
                .to_owned();
        return Err(ConfigProblem::Folder { why }.at(format!("models.{alias}.model")));
    }
    if model.max_tokens == Some(0) {
        return Err(ConfigProblem::OutOfRange {
            min: 1,
            max: u64::from(u32::MAX),
        }
        .at(format!("models.{alias}.maxTokens")));
    }
    if model.context_window == Some(0) {
        return Err(ConfigProblem::OutOfRange {
            min: 1,
            max: u64::MAX,
        }
        .at(format!("models.{alias}.contextWindow")));
    }
    Ok(())
}

fn price(alias: &str, model: &ModelConfig) -> Result<Option<Price>, ConfigError> {
    let Some(PriceConfig {
        input_per_million,
        cached_per_million,
        output_per_million,
    }) = model.price
    else {
        return Ok(None);
    };
    let price = Price::per_million(input_per_million, cached_per_million, output_per_million);
    price
        .map(Some)
        .ok_or_else(|| ConfigProblem::NoPrice.at(format!("models.{alias}.price")))
}

fn check_parameters(
    alias: &str,
    model: &ModelConfig,
    upstream: &Upstream,
) -> Result<(), ConfigError> {
    if model.max_tokens.is_some() && matches!(upstream.provider, Provider::Program(_)) {
        // It works for as long as it sees fit.
        return Err(ConfigProblem::Misplaced.at(format!("models.{alias}.maxTokens")));
    }
    let key = |name: &str| format!("models.{alias}.parameters.{name}");
    match (&upstream.provider, model.parameters.keys().next()) {
        (Provider::Scripted(_) | Provider::Program(_), Some(name)) => {
            Err(ConfigProblem::Misplaced.at(key(name)))
        }
        (Provider::Remote(remote), Some(_)) => {
            let reserved = remote.dialect.reserved();
            match model
                .parameters
                .keys()
                .find(|name| reserved.contains(&name.as_str()))
            {
                Some(name) => Err(ConfigProblem::Reserved.at(key(name))),
                None => Ok(()),
            }
        }
        (_, None) => Ok(()),
    }
}

fn upstream(
    name: &str,
    provider: &ProviderConfig,
    config: &Config,
    surroundings: &Surroundings<'_>,
) -> Result<Upstream, ConfigError> {
    let key = |field: &str| format!("providers.{name}.{field}");
    if provider.api_key.is_some() {
        return Err(ConfigProblem::LiteralKey.at(key("apiKey")));
    }
    let concurrent_max = provider.concurrent_max.unwrap_or(CONCURRENT_DEFAULT);
    if !(1..=CONCURRENT_MAX).contains(&concurrent_max) {
        return Err(ConfigProblem::OutOfRange {
            min: 1,
            max: u64::from(CONCURRENT_MAX),
        }
        .at(key("concurrentMax")));
    }
    if provider.program.is_some() && Cli::of(provider.kind).is_none() {
        return Err(ConfigProblem::Misplaced.at(key("program")));
    }
    let made = match provider.kind {
        ProviderKind::Scripted => Provider::Scripted(script(provider, surroundings, &key)?),
        ProviderKind::Openai | ProviderKind::OpenaiCompatible | ProviderKind::Anthropic => {
            Provider::Remote(Box::new(remote(provider, config, surroundings, &key)?))
        }
        ProviderKind::ClaudeCli | ProviderKind::CodexCli | ProviderKind::PiCli => {
            Provider::Program(Box::new(program::program(provider, surroundings, &key)?))
        }
    };
    let gate = Gate::new(
        concurrent_max,
        Breaker::new(config.breaker.failures_max, config.breaker.open_ms),
    );
    Ok(Upstream {
        name: name.to_owned(),
        kind: provider.kind,
        provider: made,
        gate,
        health: HealthRecord::default(),
    })
}

fn script(
    provider: &ProviderConfig,
    surroundings: &Surroundings<'_>,
    key: &dyn Fn(&str) -> String,
) -> Result<Script, ConfigError> {
    let misplaced = [
        ("baseUrl", provider.base_url.is_some()),
        ("apiKeyEnv", provider.api_key_env.is_some()),
        ("apiKeyFile", provider.api_key_file.is_some()),
        ("privateAddresses", !provider.private_addresses.is_empty()),
    ];
    if let Some((field, _)) = misplaced.iter().find(|(_, there)| *there) {
        return Err(ConfigProblem::Misplaced.at(key(field)));
    }
    let missing = || {
        ConfigProblem::Missing {
            why: "a scripted provider needs the path of its rule file",
        }
        .at(key("script"))
    };
    let path = surroundings
        .base
        .join(provider.script.as_ref().ok_or_else(missing)?);
    Script::read(&path).map_err(|problem| problem.at(key("script")))
}

/// The settings of a kind of provider where the config does not name others.
struct KindDefaults {
    url: Option<&'static str>,
    /// The environment variable of the key.
    variable: Option<&'static str>,
    dialect: Box<dyn Dialect>,
}

impl KindDefaults {
    fn new(kind: ProviderKind) -> Self {
        match kind {
            ProviderKind::Openai => Self {
                url: Some("https://api.openai.com/v1"),
                variable: Some("OPENAI_API_KEY"),
                dialect: Box::new(OpenAi::Native),
            },
            ProviderKind::Anthropic => Self {
                url: Some("https://api.anthropic.com"),
                variable: Some("ANTHROPIC_API_KEY"),
                dialect: Box::new(Anthropic),
            },
            ProviderKind::OpenaiCompatible
            | ProviderKind::Scripted
            | ProviderKind::ClaudeCli
            | ProviderKind::CodexCli
            | ProviderKind::PiCli => Self {
                url: None,
                variable: None,
                dialect: Box::new(OpenAi::Compatible),
            },
        }
    }
}

fn remote(
    provider: &ProviderConfig,
    config: &Config,
    surroundings: &Surroundings<'_>,
    key: &dyn Fn(&str) -> String,
) -> Result<Remote, ConfigError> {
    if provider.script.is_some() {
        return Err(ConfigProblem::Misplaced.at(key("script")));
    }
    let KindDefaults {
        url: default_url,
        variable: default_variable,
        dialect,
    } = KindDefaults::new(provider.kind);
    let missing = || {
        ConfigProblem::Missing {
            why: "a provider of this kind needs to be told where its server is",
        }
        .at(key("baseUrl"))
    };
    let base_url = provider
        .base_url
        .as_deref()
        .or(default_url)
        .ok_or_else(missing)?;
    let base = ProviderUrl::parse(base_url).map_err(|problem| problem.at(key("baseUrl")))?;
    let api_key = api_key(provider, default_variable, surroundings, key)?;
    if api_key.is_some() && base.is_in_the_open() {
        tracing::warn!(
            config.key = key("baseUrl"),
            "a key goes to another machine without TLS: whoever is on the way can read it"
        );
    }
    let grant = base
        .grant(&provider.private_addresses)
        .map_err(|problem| problem.at(key("baseUrl")))?;
    grant.check().map_err(|problem| {
        ConfigProblem::Addresses { source: problem }.at(key("privateAddresses"))
    })?;
    let egress = remedy(&base, provider, config, surroundings.resolver.clone())
        .map_err(|problem| problem.at(key("baseUrl")))?;
    let url = base.permit(dialect.path());
    let list_url = base.permit(dialect.list_path());
    let key_place = match (
        &provider.api_key_file,
        provider.api_key_env.as_deref().or(default_variable),
    ) {
        (Some(file), _) => format!("file {}", file.display()),
        (None, variable) => format!("env {}", variable.unwrap_or_default()),
    };
    let redactor = api_key.as_ref().map(ApiKey::redactor).unwrap_or_default();
    Ok(Remote {
        egress,
        grants: [grant],
        url,
        list_url,
        key: api_key,
        key_place,
        redactor,
        dialect,
        timeouts: config.timeouts,
    })
}

fn api_key(
    provider: &ProviderConfig,
    default_variable: Option<&str>,
    surroundings: &Surroundings<'_>,
    key: &dyn Fn(&str) -> String,
) -> Result<Option<ApiKey>, ConfigError> {
    let variable = match (&provider.api_key_env, &provider.api_key_file) {
        (Some(_), Some(_)) => return Err(ConfigProblem::TwoKeys.at(key("apiKeyFile"))),
        (None, Some(file)) => {
            let read = ApiKey::from_file(&surroundings.base.join(file));
            return read
                .map(Some)
                .map_err(|problem| problem.at(key("apiKeyFile")));
        }
        (Some(variable), None) => variable.as_str(),
        (None, None) => match default_variable {
            Some(variable) => variable,
            None => return Ok(None),
        },
    };
    let no = |problem: ConfigProblem| problem.at(key("apiKeyEnv"));
    if !is_variable(variable) {
        return Err(no(ConfigProblem::NotAVariable));
    }
    let text = (surroundings.env)(variable).ok_or_else(|| {
        no(ConfigProblem::Unset {
            variable: variable.to_owned(),
        })
    })?;
    ApiKey::new(&text).map(Some).map_err(no)
}

/// Returns whether a text is a variable's name as people write them. If so, it is no key that was
/// put in the wrong place.
fn is_variable(text: &str) -> bool {
    /// Longer names do not occur; keys do.
    const NAME_CHARS_MAX: usize = 64;
    text.len() <= NAME_CHARS_MAX
        && text.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}
