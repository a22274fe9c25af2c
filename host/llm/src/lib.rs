//! The model gateway: asks the models that an operator configured and brings back one whole reply,
//! or says why there is none.
//!
//! It stands apart because models fail in ways that nothing else in the host does: they are slow,
//! they stop half-way, they limit, and they answer nonsense. All of that ends here: the caller gets
//! a complete [`Reply`](domain::model::Reply) or a typed [`Failure`], with the cost of every
//! attempt. Keys are read here and never leave. Never in here: WebAssembly, SQL, what a reply
//! means.
//!
//! ## Where things are
//!
//! - the gateway, and attempts at a model: `gateway.rs`; from the config to it: `config.rs`,
//!   `gateway/setup.rs`
//! - addresses at which a provider may be: `gateway/remedy.rs`
//! - a thread as providers want it: `conversation.rs`; names, schemas and texts as they take them:
//!   `outgoing.rs`
//! - providers: `provider.rs`, one file each in `provider/` with its reply beside it
//!   (`anthropic.rs`, `openai.rs`, `scripted.rs` with `rules.rs` and `template.rs`), and the
//!   exchange that those on the network share (`exchange.rs`)
//! - chunks of a reply, on the wire and to a watcher: `sse.rs`, `delta.rs`; characters that are cut
//!   in two there: `surrogates.rs`; thoughts before a text: `thoughts.rs`
//! - models and providers as they are looked at: `gateway/listing.rs`, with their health as last
//!   seen, `health.rs`, and a provider's own list of models, `provider/list.rs`
//! - retries and pauses: `retry.rs`; what a provider can take: `gate.rs`
//! - turns of users and agents at the host's permits: `fair_semaphore.rs`
//! - failures, and what a provider says of them: `failure.rs`, `peer.rs`; errors in any shape, and
//!   what else all dialects take in: `incoming.rs`
//! - programs of the operating system that answer in a model's place: `provider/program.rs`, and
//!   the processes for them, `program.rs`
//! - keys: `key.rs`; who pays: `budget.rs`; the record of requests: `trail.rs`

mod budget;
mod config;
mod conversation;
mod delta;
mod failure;
pub mod fair_semaphore;
mod gate;
mod gateway;
mod health;
mod incoming;
mod key;
mod outgoing;
mod peer;
pub mod program;
mod provider;
mod retry;
mod sse;
mod surrogates;
#[cfg(test)]
mod tests;
mod thoughts;
mod trail;

pub use budget::{Afforded, AttemptBudget, Measuring, Unbudgeted};
pub use config::{
    BreakerLimits, Config, ConfigError, ConfigProblem, LiteralKey, ModelConfig, PriceConfig,
    ProgramConfig, ProgramLimits, ProviderConfig, ProviderKind, RetryLimits, Timeouts,
};
pub use delta::{Delta, DeltaSink, NoDeltas};
pub use egress::Records;
pub use failure::{Cause, Failure, Reason, Refusal, UnknownModel};
pub use gateway::{Completion, ConfiguredModel, ConfiguredProvider, Gateway, ResolvedModel};
pub use health::{
    FAILED_LIST_LIFETIME_MS, Freshness, Health, HealthState, LIST_LIFETIME_MS, LIST_REFRESH_MS_MIN,
    ModelList, Outage, OutageCause, ProviderStatus, SeenBy, ShownFailure,
};
pub use retry::retry_after_ms;
pub use trail::{ProgramNote, Trail};
