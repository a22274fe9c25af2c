//! The health of a provider as last seen, and the list of models that it last gave.
//!
//! Real calls are the best witnesses, and cost nothing more. A list of models is asked for only by
//! whoever looks at models, never on the way of a turn: it is kept for a while, and one request
//! serves all who want it at the same time.

use crate::failure::{Failure, Reason, Refusal};
use crate::gate::{lock, millis};
use egress::awake::Instant;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Mutex;

/// Milliseconds for which a list of models is kept.
pub const LIST_LIFETIME_MS: u64 = 60_000;
/// Milliseconds for which it is kept that a list could not be had.
pub const FAILED_LIST_LIFETIME_MS: u64 = 5_000;
/// Milliseconds within which a list is not asked for again, even if it is wanted anew.
pub const LIST_REFRESH_MS_MIN: u64 = 1_000;

/// The age that a list may have for whoever looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// As old as lists are kept: [`LIST_LIFETIME_MS`], or [`FAILED_LIST_LIFETIME_MS`].
    Kept,
    /// Asked for now, unless that was done within [`LIST_REFRESH_MS_MIN`].
    Anew,
}

/// The state of a provider, or of one of its models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ModelHealthState)]
pub enum HealthState {
    /// It answered.
    Up,
    /// It answers, and refuses: the key, the account, the model or the rate of calls.
    Refusing,
    /// It does not answer, or nothing that can be used.
    Down,
}

impl HealthState {
    fn after(failure: &Failure) -> Self {
        match failure {
            // The prompt was at fault, or the host's own limits.
            Failure::TooLong { .. } | Failure::Unaffordable { .. } | Failure::UnknownModel(_) => {
                Self::Up
            }
            Failure::RateLimited { .. }
            | Failure::Refused { .. }
            | Failure::ProgramFailed { .. } => Self::Refusing,
            Failure::Unavailable { .. }
            | Failure::Barred { .. }
            | Failure::CutOff { .. }
            | Failure::Garbage { .. } => Self::Down,
        }
    }
}

/// The request from which a state is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ModelHealthSource)]
pub enum SeenBy {
    /// A call of a model.
    Call,
    /// A request for the list of models.
    List,
}

/// A failure as it is shown: without the words of the provider, which stand in the log, and without
/// those of a program, which are of somebody's turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownFailure {
    /// The failure's code, such as `model-unavailable`.
    pub code: &'static str,
    /// The failure in words.
    pub message: String,
}

impl ShownFailure {
    fn of_call(failure: &Failure) -> Self {
        Self {
            code: failure.code(),
            message: failure.clone().without_words().to_string(),
        }
    }

    /// A list names no model, and neither does its failure.
    fn of_list(failure: &Failure) -> Self {
        let message = match failure {
            Failure::Unavailable {
                provider, reason, ..
            } => format!("provider `{provider}` is unavailable: {reason}"),
            Failure::RateLimited { provider, .. } => {
                format!("provider `{provider}` limits the rate of requests")
            }
            Failure::Refused {
                provider, status, ..
            } => format!("provider `{provider}` refused to list its models with status {status}"),
            Failure::Garbage {
                provider, problem, ..
            } => format!("provider `{provider}` sent no list of its models: {problem}"),
            _ => failure.clone().without_words().to_string(),
        };
        Self {
            code: failure.code(),
            message,
        }
    }
}

/// The state in which a provider, or a model, was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The state.
    pub state: HealthState,
    /// The request from which it is known.
    pub seen_by: SeenBy,
    /// Milliseconds since then, while the machine was awake.
    pub age_ms: u64,
    /// The failure, if it was one.
    pub failure: Option<ShownFailure>,
}

/// The models that a provider lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedNames {
    /// The provider's names of them, in its order.
    pub(crate) names: Vec<String>,
    /// True if there are more.
    pub(crate) is_cut: bool,
}

/// The list of a provider's models, and its age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelList {
    /// The list; none if the provider has none to give. Otherwise why it could not be had.
    pub models: Result<Option<Vec<String>>, ShownFailure>,
    /// True if the provider has more models than are listed.
    pub is_cut: bool,
    /// Milliseconds since it was asked for, while the machine was awake.
    pub age_ms: u64,
}

/// One sight of a provider.
#[derive(Debug, Clone)]
struct Sight {
    at: Instant,
    state: HealthState,
    by: SeenBy,
    failure: Option<ShownFailure>,
}

impl Sight {
    fn health(&self) -> Health {
        Health {
            state: self.state,
            seen_by: self.by,
            age_ms: millis(self.at.elapsed()),
            failure: self.failure.clone(),
        }
    }
}

/// A list that is kept.
#[derive(Debug, Clone)]
struct KeptList {
    at: Instant,
    list: Result<Option<ListedNames>, ShownFailure>,
}

impl KeptList {
    /// Returns whether it will do for somebody who asked at a time.
    fn serves(&self, freshness: Freshness, asked: Instant) -> bool {
        let lifetime_ms = match (freshness, &self.list) {
            (Freshness::Anew, _) => LIST_REFRESH_MS_MIN,
            (Freshness::Kept, Ok(_)) => LIST_LIFETIME_MS,
            (Freshness::Kept, Err(_)) => FAILED_LIST_LIFETIME_MS,
        };
        self.at >= asked || millis(asked.saturating_duration_since(self.at)) < lifetime_ms
    }

    fn shown(&self) -> ModelList {
        let is_cut = matches!(&self.list, Ok(Some(listed)) if listed.is_cut);
        ModelList {
            models: self
                .list
                .clone()
                .map(|listed| listed.map(|listed| listed.names)),
            is_cut,
            age_ms: millis(self.at.elapsed()),
        }
    }
}

/// The cause of failures that an operator would call an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageCause {
    /// The host's credentials do not count.
    Credentials,
    /// The host's account has nothing left or is not paid for.
    Account,
    /// A model is asked for that is not there or not open to the account.
    Model,
    /// The provider refuses calls, and does not say why.
    Refusing,
    /// The provider cannot be reached.
    Unreachable,
    /// The provider does not answer, or nothing that can be used.
    Failing,
    /// The program in a model's place is missing, or fails.
    Program,
}

impl OutageCause {
    /// Returns the cause of a failure; none if the failure is the call's own or one of its rate.
    fn of(failure: &Failure) -> Option<Self> {
        match failure {
            Failure::Refused { about, .. } | Failure::ProgramFailed { about, .. } => match about {
                Refusal::Credentials => Some(Self::Credentials),
                Refusal::Account => Some(Self::Account),
                Refusal::Model => Some(Self::Model),
                Refusal::Request => None,
                Refusal::Unclear if matches!(failure, Failure::ProgramFailed { .. }) => {
                    Some(Self::Program)
                }
                Refusal::Unclear => Some(Self::Refusing),
            },
            Failure::Unavailable {
                reason: Reason::Connect | Reason::Broken,
                ..
            }
            | Failure::Barred { .. } => Some(Self::Unreachable),
            Failure::Unavailable { .. } | Failure::Garbage { .. } => Some(Self::Failing),
            Failure::CutOff { .. } => Some(Self::Program),
            _ => None,
        }
    }

    /// Returns whether one failure proves it: the next call would fail for the same cause.
    #[must_use]
    pub fn is_certain(self) -> bool {
        match self {
            Self::Credentials | Self::Account => true,
            Self::Model | Self::Refusing | Self::Unreachable | Self::Failing | Self::Program => {
                false
            }
        }
    }

    /// The cause in words for an operator.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Credentials => "the credentials do not count",
            Self::Account => "the account has nothing left or is not paid for",
            Self::Model => "the model is not there or not open to the account",
            Self::Refusing => "calls are refused without a known reason",
            Self::Unreachable => "it cannot be reached",
            Self::Failing => "no usable answer comes",
            Self::Program => "its program is missing or fails",
        }
    }
}

/// The last of failures in a row, and its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// The cause.
    pub cause: OutageCause,
    /// The failure.
    pub failure: ShownFailure,
}

/// The status of a provider after its calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProviderStatus {
    /// Failures in a row that are the provider's, or that concern the host's account with it.
    pub failures: u32,
    /// The last of these failures; none if the last call that tells of the provider went well.
    pub outage: Option<Outage>,
}

/// All that is remembered of a provider's health. It begins anew with the process.
#[derive(Debug, Default)]
pub(crate) struct HealthRecord {
    last: Mutex<Option<Sight>>,
    provider_status: Mutex<Option<ProviderStatus>>,
    /// The last call of each model, by the provider's name of it: as many as are configured.
    models: Mutex<HashMap<String, Sight>>,
    /// Held while the list is asked for, so that one request serves all who wait.
    list: tokio::sync::Mutex<Option<KeptList>>,
}

impl HealthRecord {
    /// Records the outcome of a call of a model. Returns whether it is news: not the failure that
    /// the call before it had.
    pub(crate) fn called(&self, model: &str, failure: Option<&Failure>) -> bool {
        let sight = Sight {
            at: Instant::now(),
            state: failure.map_or(HealthState::Up, HealthState::after),
            by: SeenBy::Call,
            failure: failure.map(ShownFailure::of_call),
        };
        self.note(failure);
        let shown = sight.failure.clone();
        *lock(&self.last) = Some(sight.clone());
        let before = lock(&self.models).insert(model.to_owned(), sight);
        before.is_none_or(|before| before.failure != shown)
    }

    /// Notes what a call tells of the provider. A failure that is the call's own tells nothing, nor
    /// does a limit on the rate of calls.
    fn note(&self, failure: Option<&Failure>) {
        let mut provider_status = lock(&self.provider_status);
        let Some(failure) = failure else {
            *provider_status = Some(ProviderStatus::default());
            return;
        };
        if let Some(cause) = OutageCause::of(failure) {
            let provider_status = provider_status.get_or_insert_default();
            provider_status.failures = provider_status.failures.saturating_add(1);
            provider_status.outage = Some(Outage {
                cause,
                failure: ShownFailure::of_call(failure),
            });
        }
    }

    /// Returns the provider's status; none before a call that tells of it.
    pub(crate) fn provider_status(&self) -> Option<ProviderStatus> {
        lock(&self.provider_status).clone()
    }

    /// Returns the provider's health; none if nothing was asked of it yet.
    pub(crate) fn of_provider(&self) -> Option<Health> {
        lock(&self.last).as_ref().map(Sight::health)
    }

    /// Returns the health of one of its models as the last call of it showed; none without a call.
    pub(crate) fn of_model(&self, model: &str) -> Option<Health> {
        lock(&self.models).get(model).map(Sight::health)
    }

    /// Returns the list that is kept, or asks for it. A caller that is dropped meanwhile leaves the
    /// request to the next one.
    pub(crate) async fn list<F>(&self, freshness: Freshness, ask: F) -> ModelList
    where
        F: Future<Output = Result<Option<ListedNames>, Failure>>,
    {
        let asked = Instant::now();
        let mut kept = self.list.lock().await;
        if let Some(list) = kept.as_ref().filter(|list| list.serves(freshness, asked)) {
            return list.shown();
        }
        let answer = ask.await;
        let at = Instant::now();
        let failure = answer.as_ref().err();
        let sight = Sight {
            at,
            state: failure.map_or(HealthState::Up, HealthState::after),
            by: SeenBy::List,
            failure: failure.map(ShownFailure::of_list),
        };
        *lock(&self.last) = Some(sight);
        let list = answer.map_err(|failure| ShownFailure::of_list(&failure));
        kept.insert(KeptList { at, list }).shown()
    }
}

#[cfg(test)]
mod tests;
