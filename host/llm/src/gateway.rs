//! The gateway itself: which model is meant, and how often it is asked.

use crate::budget::{AttemptBudget, Unbudgeted};
use crate::config::{
    CONTEXT_WINDOW_DEFAULT, Config, ConfigError, ModelConfig, ProviderKind, RetryLimits, Timeouts,
};
use crate::delta::{DeltaSink, Feed};
use crate::failure::{Failure, Reason, UnknownModel, nearest};
use crate::gate::{Gate, Pass, millis};
use crate::health::HealthRecord;
use crate::peer::Peer;
use crate::program::Supervisor;
use crate::provider::{Answer, Ask, Provider};
use crate::retry::{AttemptError, Mode, Next, Stage, next};
use crate::trail::{ProgramNote, Traced, Trail};
use attempted::{believed, log_failure};
use domain::delegate::Presentation;
use domain::model::{Prompt, Reply};
use domain::operation::Attempt;
use domain::price::Price;
use domain::redact::Redactor;
use egress::awake::{Instant, sleep, timeout_at};
use setup::Surroundings;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

mod attempted;
mod listing;
mod remedy;
mod setup;

pub use listing::{ConfiguredModel, ConfiguredProvider};

/// All the models that can be asked. Shared by all callers; nothing of one call reaches another but
/// what the provider can bear.
pub struct Gateway {
    default: Option<String>,
    models: BTreeMap<String, Model>,
    /// The providers, by name.
    upstreams: Vec<Arc<Upstream>>,
    retry: RetryLimits,
    timeouts: Timeouts,
    /// The redactor of the keys of all providers.
    redactor: Redactor,
}

/// A model and where it is.
struct Model {
    config: ModelConfig,
    price: Option<Price>,
    upstream: Arc<Upstream>,
}

impl Model {
    /// Returns its window, in tokens.
    fn window(&self) -> u64 {
        self.config.context_window.unwrap_or(CONTEXT_WINDOW_DEFAULT)
    }
}

/// A provider and what its calls share.
struct Upstream {
    name: String,
    kind: ProviderKind,
    provider: Provider,
    gate: Gate,
    health: HealthRecord,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("default", &self.default)
            .field("models", &self.models.keys())
            .finish_non_exhaustive()
    }
}

/// The model that a call would ask, and what it has in the config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedModel {
    /// The model's alias in the config.
    pub alias: String,
    /// The provider's name in the config.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// Tokens of prompt and reply that it can hold; 128,000 where the config does not say.
    pub context_window: u64,
    /// Tokens of a reply, at most, whatever is asked for.
    pub max_tokens: Option<u32>,
    /// Tokens that its provider is asked for if nothing limits a reply; none for its own limit.
    pub default_output_tokens: Option<u32>,
    /// Aliases of the models that are tried when this one does not answer.
    pub fallbacks: Vec<String>,
    /// The form in which it is shown operations, where an agent leaves that to the model.
    pub operations: Presentation,
    /// True if it or one of its fallbacks is a program, which may change the world by itself: a
    /// call of it is not repeated.
    pub is_program: bool,
    /// Its highest price, whichever of them answers; none when one of them has no price.
    pub price: Option<Price>,
}

/// The outcome of a call.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The reply, or why there is none.
    pub result: Result<Reply, Failure>,
    /// Every attempt in order, failed ones included.
    pub attempts: Vec<Attempt>,
    /// The models that were asked instead and gave no reply either, each with its code.
    pub also_failed: Vec<String>,
}

impl Gateway {
    /// Sets up all that the config names: reads keys and rule files, connects to nothing.
    ///
    /// `base` is the folder that relative paths start from, `env` reads environment variables.
    ///
    /// # Errors
    /// The first key of the config that cannot be used. No message has a provider's key in it.
    pub fn new(
        config: Config,
        base: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        setup::gateway(
            config,
            &Surroundings {
                base,
                env,
                resolver: None,
                supervisor: None,
            },
        )
    }

    /// Sets up all that the config names as [`new`](Self::new) does, and lets its programs be
    /// started and kept by `supervisor`. Without one, every call of a program is refused.
    ///
    /// # Errors
    /// The first key of the config that cannot be used. No message has a provider's key in it.
    pub fn with_supervisor(
        config: Config,
        base: &Path,
        env: &dyn Fn(&str) -> Option<String>,
        supervisor: Supervisor,
    ) -> Result<Self, ConfigError> {
        setup::gateway(
            config,
            &Surroundings {
                base,
                env,
                resolver: None,
                supervisor: Some(supervisor),
            },
        )
    }

    /// Sets up other models over the same providers: what is known of these, and what their calls
    /// share, goes on. Models, the default model and retries are those of the config; its
    /// providers, time limits and breakers do not count.
    ///
    /// # Errors
    /// The first key of the config that cannot be used, such as a provider that is not there yet.
    pub fn successor(&self, config: Config) -> Result<Self, ConfigError> {
        setup::successor(self, config)
    }

    /// Returns whether there is a model of this alias.
    #[must_use]
    pub fn has(&self, alias: &str) -> bool {
        self.models.contains_key(alias)
    }

    /// Resolves a model's alias or name; without one, the default. Only models in the config can be
    /// meant: by alias, by the provider's name of them, or by `<provider>/<model>`.
    ///
    /// # Errors
    /// No such model, or no default. Says which there are and which may have been meant.
    pub fn resolve(&self, model: Option<&str>) -> Result<ResolvedModel, UnknownModel> {
        let (alias, model) = self.find(model)?;
        let others = model
            .config
            .fallbacks
            .iter()
            .filter_map(|alias| self.models.get(alias))
            .map(|model| model.price);
        let price = others.fold(model.price, |dearest, price| {
            Some(dearest?.or_dearer(price?))
        });
        Ok(ResolvedModel {
            alias: alias.to_owned(),
            provider: model.config.provider.clone(),
            model: model.config.model.clone(),
            context_window: model.window(),
            max_tokens: model.config.max_tokens,
            default_output_tokens: model.upstream.provider.default_output_tokens(),
            fallbacks: model.config.fallbacks.clone(),
            operations: model.config.operations.unwrap_or_default(),
            is_program: self.may_be_program(model),
            price,
        })
    }

    /// The longest time, in milliseconds, for which its models may show nothing of a streamed
    /// reply: before its first chunk, or between two of them.
    #[must_use]
    pub fn silence_ms_max(&self) -> u64 {
        self.timeouts.first_token_ms.max(self.timeouts.idle_ms)
    }

    /// Returns whether a model is told of the tools of a prompt, and what else the host's sections
    /// say. A program has tools of its own, whatever its fallbacks have.
    #[must_use]
    pub fn takes_tools(&self, model: Option<&str>) -> bool {
        let found = self.find(model);
        found.map_or(true, |(_, model)| !model.upstream.provider.is_program())
    }

    /// Returns whether the model of an alias is a program, whatever its fallbacks are.
    #[must_use]
    pub fn is_program(&self, alias: &str) -> bool {
        let model = self.models.get(alias);
        model.is_some_and(|model| model.upstream.provider.is_program())
    }

    /// Returns the error for a model that there is not, or that is not for whoever asks: the same
    /// for both. It names only the models `for_them`.
    #[must_use]
    pub fn unknown(&self, asked: &str, for_them: impl Fn(&str) -> bool) -> UnknownModel {
        let known = self.models.keys().filter(|alias| for_them(alias));
        let known: Vec<String> = known.cloned().collect();
        UnknownModel {
            asked: Some(asked.to_owned()),
            nearest: nearest(asked, known.iter().map(String::as_str)),
            known,
        }
    }

    /// Returns whether a model is a script, whose rules read results of tools field by field.
    #[must_use]
    pub fn is_script(&self, model: Option<&str>) -> bool {
        let found = self.find(model);
        found.is_ok_and(|(_, model)| model.upstream.provider.is_script())
    }

    fn may_be_program(&self, model: &Model) -> bool {
        let fallbacks = model.config.fallbacks.iter();
        fallbacks
            .filter_map(|alias| self.models.get(alias))
            .chain([model])
            .any(|model| model.upstream.provider.is_program())
    }

    /// The smallest window of all models that can be asked; 0 without any.
    #[must_use]
    pub fn smallest_window(&self) -> u64 {
        self.models
            .values()
            .map(Model::window)
            .min()
            .unwrap_or_default()
    }

    /// Returns the redactor of the keys of all providers.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Asks for a reply: retries, falls back, and always comes back with every attempt on record.
    /// The total time limit covers everything from its first permit at a provider on, but for
    /// waiting for another permit.
    ///
    /// The calls of `deltas` are for show; only the result counts. Dropped before its end, the call
    /// stops and its costs are not known.
    pub async fn complete(&self, prompt: &Prompt, deltas: &dyn DeltaSink) -> Completion {
        self.complete_leaving(prompt, deltas, &Traced, &Unbudgeted)
            .await
    }

    /// Asks for a reply as [`complete`](Self::complete) does, and leaves a trail of what it does at
    /// the boundary. The trail is there also when the call is dropped before its end. Every attempt
    /// but the first is made only if `budget` affords it. Each takes the budget's turn at its
    /// provider, and is measured for it once it is let in there.
    pub async fn complete_leaving(
        &self,
        prompt: &Prompt,
        deltas: &dyn DeltaSink,
        trail: &dyn Trail,
        budget: &dyn AttemptBudget,
    ) -> Completion {
        let deadline = self.deadline();
        let mut course = Course {
            gateway: self,
            prompt,
            deltas,
            trail,
            budget,
            deadline,
            attempts: Vec::new(),
            also_failed: Vec::new(),
        };
        let result = Box::pin(course.run()).await;
        Completion {
            result,
            attempts: course.attempts,
            also_failed: course.also_failed,
        }
    }

    /// Returns the end of a call that begins now.
    fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.timeouts.total_ms)
    }

    fn find(&self, asked: Option<&str>) -> Result<(&str, &Model), UnknownModel> {
        let named = |config: &ModelConfig, name: &str| {
            config.model == name
                || name
                    .strip_prefix(&config.provider)
                    .and_then(|rest| rest.strip_prefix('/'))
                    == Some(&config.model)
        };
        let found = match asked.or(self.default.as_deref()) {
            Some(name) => self.models.get_key_value(name).or_else(|| {
                self.models
                    .iter()
                    .find(|(_, model)| named(&model.config, name))
            }),
            None => self.models.iter().next().filter(|_| self.models.len() == 1),
        };
        found
            .map(|(alias, model)| (alias.as_str(), model))
            .ok_or_else(|| UnknownModel {
                asked: asked.map(str::to_owned),
                known: self.models.keys().cloned().collect(),
                nearest: asked
                    .and_then(|asked| nearest(asked, self.models.keys().map(String::as_str))),
            })
    }
}

/// One call on its way.
struct Course<'a> {
    gateway: &'a Gateway,
    prompt: &'a Prompt,
    deltas: &'a dyn DeltaSink,
    trail: &'a dyn Trail,
    budget: &'a dyn AttemptBudget,
    deadline: Instant,
    attempts: Vec<Attempt>,
    also_failed: Vec<String>,
}

impl Course<'_> {
    async fn run(&mut self) -> Result<Reply, Failure> {
        let gateway = self.gateway;
        let (_, model) = gateway.find(self.prompt.model.as_deref())?;
        let failure = match self.try_model(model).await {
            Ok(reply) => return Ok(reply),
            // Another model would be given the same thread; whoever asked can make it shorter.
            Err(failure @ (Failure::TooLong { .. } | Failure::Unaffordable { .. })) => {
                return Err(failure);
            }
            Err(failure) if has_worked(model, &failure) => return Err(failure),
            Err(failure) => failure,
        };
        for alias in &model.config.fallbacks {
            let Some(fallback) = gateway.models.get(alias) else {
                continue;
            };
            if !self.budget.permits(alias) {
                continue;
            }
            if Instant::now() >= self.deadline {
                break;
            }
            tracing::info!(
                llm.model = fallback.config.model,
                "another model is asked instead"
            );
            match self.try_model(fallback).await {
                Err(Failure::Unaffordable { reported }) => {
                    return Err(Failure::Unaffordable { reported });
                }
                Err(failure) if has_worked(fallback, &failure) => return Err(failure),
                Err(also) => self.also_failed.push(format!(
                    "`{}` of provider `{}` ({})",
                    fallback.config.model,
                    fallback.upstream.name,
                    also.code()
                )),
                replied => return replied,
            }
        }
        // What was asked and failed is in the log already, unless nothing was sent.
        if self.attempts.is_empty() || !self.also_failed.is_empty() {
            tracing::warn!(
                llm.provider = model.upstream.name,
                llm.model = model.config.model,
                llm.also_failed = self.also_failed.join(", "),
                error.code = failure.code(),
                error = failure.report(),
                "no model gave a reply"
            );
        }
        Err(failure)
    }

    /// Asks one model as often as the limits allow.
    async fn try_model(&mut self, model: &Model) -> Result<Reply, Failure> {
        let upstream = &*model.upstream;
        let peer = upstream.provider.peer(&upstream.name, &model.config.model);
        let mut mode = Mode::first(self.deltas);
        let mut attempts = 0;
        let mut failed = None;
        loop {
            let patience_ms = self.gateway.retry.retry_after_ms_max;
            let pass = match upstream
                .gate
                .enter(peer, self.budget.party(), patience_ms, &mut self.deadline)
                .await
            {
                Ok(pass) => pass,
                // What went wrong before says more than that it is not tried again.
                Err(failure) => return Err(failed.unwrap_or(failure)),
            };
            if self.attempts.is_empty() {
                // Nothing before its first permit was the call's own doing.
                self.deadline = self.gateway.deadline();
            }
            let number = self.afford(peer).await?;
            let failure = match self.attempt(model, mode, number, pass).await {
                Ok(Answer {
                    parts,
                    stop,
                    usage: _,
                    own_work,
                }) => {
                    return Ok(Reply {
                        parts,
                        stop,
                        provider: upstream.name.clone(),
                        model: model.config.model.clone(),
                        own_calls: own_work.calls,
                        untrusted: own_work.has_tools,
                    });
                }
                Err(failure) => failure,
            };
            attempts += 1;
            let limits = &self.gateway.retry;
            if let Some(ms) = failure
                .retry_after_ms
                .filter(|_| matches!(failure.failure, Failure::RateLimited { .. }))
            {
                let paused_ms = upstream.gate.hold(&model.config.model, ms.get());
                tracing::warn!(
                    llm.provider = upstream.name,
                    llm.model = model.config.model,
                    paused_ms,
                    "a model is left alone for as long as its provider asked"
                );
            }
            match next(limits, &failure, attempts, fastrand::f64()) {
                Next::Again {
                    mode: again,
                    delay_ms,
                } if Instant::now() + Duration::from_millis(delay_ms) < self.deadline => {
                    sleep(Duration::from_millis(delay_ms)).await;
                    mode = again;
                    failed = Some(failure.failure);
                }
                Next::Again { .. } | Next::GiveUp => return Err(failure.failure),
            }
        }
    }

    /// The number of the next attempt, if it is afforded.
    async fn afford(&self, peer: Peer<'_>) -> Result<u32, Failure> {
        if self.attempts.is_empty() {
            return Ok(self.budget.first());
        }
        let number = self
            .budget
            .afford(&self.attempts)
            .await
            .map_err(|reported| Failure::Unaffordable { reported })?;
        // Whoever affords it may have taken its time; nothing is sent that could not be waited for.
        if Instant::now() >= self.deadline {
            Err(peer.unavailable(Reason::Deadline, ""))
        } else {
            Ok(number)
        }
    }

    /// Asks once, and puts that on record.
    async fn attempt(
        &mut self,
        model: &Model,
        mode: Mode,
        number: u32,
        pass: Pass<'_>,
    ) -> Result<Answer, AttemptError> {
        let upstream = &*model.upstream;
        let ask = Ask {
            prompt: self.prompt,
            provider: &upstream.name,
            model: &model.config.model,
            max_tokens: model.config.max_tokens,
            parameters: &model.config.parameters,
            agent: self.budget.party().agent,
            context_window: model.window(),
            trail: self.trail,
            bare: false,
        };
        let feed = Feed::new(self.deltas, number, &upstream.provider.redactor());
        let measuring = self.budget.measure(upstream.provider.quiet_ms(mode));
        let started = Instant::now();
        let asked = upstream.provider.ask(&ask, mode, &feed);
        let result = timeout_at(self.deadline, asked)
            .await
            .unwrap_or_else(|_| Err(out_of_time(&ask, upstream, mode)));
        drop(measuring);
        let wall_ms = millis(started.elapsed());
        let usage = match &result {
            Ok(answer) => believed(answer.usage, wall_ms, &ask),
            Err(error) => believed(error.usage(), wall_ms, &ask),
        };
        let failure = result.as_ref().err().map(|error| &error.failure);
        let is_news = upstream.health.called(ask.model, failure);
        match &result {
            Err(error) => {
                feed.discard();
                log_failure(&ask, number, error, is_news);
                if error.counts_against_the_provider() {
                    pass.failed(ask.provider)
                } else {
                    pass.succeeded()
                }
            }
            Ok(_) => pass.succeeded(),
        }
        self.attempts.push(Attempt {
            provider: upstream.name.clone(),
            model: model.config.model.clone(),
            usage,
            cost_micros: model
                .price
                .zip(usage)
                .map(|(price, usage)| price.cost(usage)),
            wall_ms,
            error: result.as_ref().err().map(|error| error.failure.report()),
            reserved: None,
        });
        result
    }
}

/// Returns whether a model is a program that may have worked before it failed. Another one that did
/// the same might do it twice.
fn has_worked(model: &Model, failure: &Failure) -> bool {
    model.upstream.provider.is_program()
        && matches!(
            failure,
            Failure::CutOff { .. } | Failure::ProgramFailed { .. }
        )
}

/// Returns the error of an attempt that the deadline ended.
fn out_of_time(ask: &Ask<'_>, upstream: &Upstream, mode: Mode) -> AttemptError {
    let peer = upstream.provider.peer(ask.provider, ask.model);
    let failure = if upstream.provider.is_program() {
        let reported = "stopped: the time for this call is used up";
        ask.trail.program(&ProgramNote {
            reported: format!("{}: {reported}", ask.provider),
            is_limit: true,
        });
        peer.cut_off(reported, "")
    } else {
        peer.unavailable(Reason::Deadline, "")
    };
    AttemptError::new(mode, Stage::Asked, failure)
}

#[cfg(test)]
mod tests;
