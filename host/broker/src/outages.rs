//! Outages of providers of models: recorded when one begins, when it gets worse, and when it is
//! over.
//!
//! They are detected from calls of models; no provider is probed for it. The records outlive the
//! process, so an outage is reported once, however often the host starts meanwhile.

use crate::clock::Clock;
use crate::journal::Context;
use domain::event::{Event, ProviderTroubled};
use domain::id::Stream;
use domain::trouble::{FAILURES_REPORTED, ServiceTrouble, TroubleRecord};
use llm::{Gateway, Outage, OutageCause};
use std::collections::HashMap;
use store::{Commit, CommitError, Expected, ReadError, Store};
use tokio::sync::Mutex;

/// The record of each provider that was called.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    /// None until it was read from the store.
    records: Mutex<Option<HashMap<String, TroubleRecord>>>,
}

/// The reason why an outage could not be put on record. The next call tries again.
#[derive(Debug, thiserror::Error)]
enum NotRecorded {
    #[error("the outages on record could not be read")]
    Read(#[from] ReadError),
    #[error("it could not be stored")]
    Commit(#[from] CommitError),
}

impl Outages {
    /// Compares the state of providers after a call with the records.
    pub(crate) async fn inspect(&self, store: &Store, clock: &Clock, gateway: &Gateway) {
        let mut records = self.records.lock().await;
        if let Err(error) = compare(store, clock, gateway, &mut records).await {
            *records = None;
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the state of the providers could not be recorded"
            );
        }
    }
}

async fn compare(
    store: &Store,
    clock: &Clock,
    gateway: &Gateway,
    records: &mut Option<HashMap<String, TroubleRecord>>,
) -> Result<(), NotRecorded> {
    let known = match records {
        Some(known) => known,
        None => records.insert(on_record(store).await?),
    };
    for (provider, status) in gateway.statuses() {
        let record = known.entry(provider.to_owned()).or_default();
        let reported = match &status.outage {
            None => record.succeeded(),
            Some(outage) if outage.cause.is_certain() => {
                record.failed(FAILURES_REPORTED, trouble(outage))
            }
            Some(outage) => record.failed(status.failures, trouble(outage)),
        };
        if let Some(trouble) = reported {
            put_on_record(store, clock, provider, trouble).await?;
        }
    }
    Ok(())
}

async fn on_record(store: &Store) -> Result<HashMap<String, TroubleRecord>, ReadError> {
    let troubled = store.provider_troubles().await?;
    Ok(troubled
        .into_iter()
        .map(|it| (it.provider, TroubleRecord::remembering(Some(&it.trouble))))
        .collect())
}

fn trouble(outage: &Outage) -> ServiceTrouble {
    let cause = outage.cause.as_str();
    let failure = &outage.failure;
    let reason = format!("{cause}: {}: {}", failure.code, failure.message);
    match outage.cause {
        OutageCause::Credentials => ServiceTrouble::Unauthorised { reason },
        OutageCause::Account
        | OutageCause::Model
        | OutageCause::Refusing
        | OutageCause::Unreachable
        | OutageCause::Failing
        | OutageCause::Program => ServiceTrouble::Failing { reason },
    }
}

async fn put_on_record(
    store: &Store,
    clock: &Clock,
    provider: &str,
    trouble: ServiceTrouble,
) -> Result<(), CommitError> {
    match &trouble {
        ServiceTrouble::Unauthorised { reason } => {
            tracing::warn!(
                llm.provider = provider,
                reason,
                "a provider of models does not accept the host's credentials"
            );
        }
        ServiceTrouble::Failing { reason } => {
            tracing::warn!(
                llm.provider = provider,
                reason,
                "a provider of models is down"
            );
        }
        ServiceTrouble::Recovered => {
            tracing::info!(llm.provider = provider, "a provider of models is up again");
        }
    }
    let time = clock.now();
    let event = Event::ProviderTroubled(ProviderTroubled {
        provider: provider.to_owned(),
        trouble,
        time,
    });
    let event = Context::new("host", time).event(event);
    let commit = Commit::new().append(Stream::Host, Expected::Any, vec![event]);
    store.commit(commit).await.map(drop)
}
