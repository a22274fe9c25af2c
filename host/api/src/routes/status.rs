//! The state of the host as a whole, in numbers, for the operator.

use super::probes::VERSION;
use crate::problem::Problem;
use crate::state::{Api, Readiness};
use crate::wire::Time;
use axum::extract::State;
use edge::ConnectorState;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// The state of the host.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = HostStatus)]
pub(super) struct Status {
    /// The version of the program.
    version: &'static str,
    /// Seconds since it began to accept requests.
    uptime_s: u64,
    /// The readiness to accept requests.
    readiness: HostReadiness,
    /// Sessions, those that have ended or were deleted left out.
    sessions: SessionCounts,
    /// Inputs.
    inputs: InputCounts,
    /// Triggers.
    triggers: TriggerNumbers,
    /// Connectors.
    connectors: ConnectorNumbers,
    /// Providers of models, and connectors, that the host depends on and cannot use at present.
    outages: Vec<Outage>,
    /// The database.
    store: StoreSize,
}

/// The readiness of the host to accept requests.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
enum HostReadiness {
    /// It accepts them.
    Ready,
    /// It is starting.
    Starting,
    /// It is about to end.
    Stopping,
    /// The disk is full.
    DiskFull,
    /// The store takes nothing.
    NotRecording,
    /// The store cannot be read.
    NotReading,
}

/// Numbers of sessions.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct SessionCounts {
    /// Open ones.
    open: u64,
    /// Open ones of which a turn is in progress, or waits for an answer.
    running: u64,
    /// Open ones in quarantine.
    quarantined: u64,
}

/// Numbers of inputs.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct InputCounts {
    /// Inputs that wait for a turn, reminders that are not due included.
    waiting: u64,
    /// Inputs that could not be dealt with: dead letters.
    dead: u64,
}

/// Numbers of triggers.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct TriggerNumbers {
    /// Number of triggers.
    defined: u64,
    /// Number of triggers that the host paused after too many failures of them or their schedule.
    given_up: u64,
    /// Number of triggers that are not fired for some minutes, after failures in a row.
    resting: u64,
    /// Trigger events that wait to be dealt with.
    trigger_events: u64,
}

/// Numbers of connectors, and of the messages that they send.
#[derive(Debug, Default, Serialize, utoipa::ToSchema)]
pub(super) struct ConnectorNumbers {
    /// Number of connectors.
    configured: u64,
    /// Number of connectors whose service cannot be used or refuses their credentials, or that no
    /// component can serve.
    in_trouble: u64,
    /// Messages that wait to be sent.
    waiting: u64,
    /// Messages of which it is not known whether they were sent.
    unknown: u64,
    /// Messages that were given up.
    dead: u64,
}

/// A service that the host depends on and cannot use.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Outage {
    /// The kind of service: `provider` or `connector`.
    kind: &'static str,
    /// Its name in the configuration.
    name: String,
    /// Time since which it cannot be used; none where no component can serve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Time>,
    /// The reason, as far as there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind, self.name)?;
        match &self.reason {
            Some(reason) => write!(f, ": {reason}"),
            None => f.write_str(" has no component that can serve it"),
        }
    }
}

/// The size of the database, and what failed in it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct StoreSize {
    /// Events in the log.
    events: u64,
    /// Bytes of the database.
    bytes: u64,
    /// Bytes of its write-ahead log.
    write_ahead_log_bytes: u64,
    /// The reason why it could not be moved to the database at the last try.
    #[serde(skip_serializing_if = "Option::is_none")]
    write_ahead_log_failing: Option<String>,
    /// Transactions that failed since the start.
    failures: u64,
}

/// Reports the state of the host.
#[utoipa::path(
    get, path = "/api/status", tag = "operator",
    operation_id = "getStatus",
    security(("token" = ["admin"])),
    responses((status = 200, description = "The current state.", body = Status)),
)]
pub(super) async fn show(State(api): State<Api>) -> Result<axum::Json<Status>, Problem> {
    let broker = api.broker()?;
    let store = broker.maintenance();
    let counts = store.counts().await?;
    let log = store.log_state();
    let triggers = store.trigger_counts().await?;
    let mut connectors = ConnectorNumbers::default();
    for connector in api.edge()?.connectors().list().await? {
        connectors.count(&connector);
    }
    let outages = outages(&api).await?;
    let quarantined = u64::try_from(broker.stats().quarantined).unwrap_or(u64::MAX);
    Ok(axum::Json(Status {
        version: VERSION,
        uptime_s: api.uptime().as_secs(),
        readiness: api.readiness().await.into(),
        sessions: SessionCounts {
            open: counts.open_sessions,
            running: counts.running_sessions,
            quarantined,
        },
        inputs: InputCounts {
            waiting: counts.waiting_inputs,
            dead: counts.dead_inputs,
        },
        triggers: TriggerNumbers {
            defined: triggers.there,
            given_up: triggers.given_up,
            resting: triggers.resting,
            trigger_events: triggers.open_trigger_events,
        },
        connectors,
        outages,
        store: StoreSize {
            events: *store.durable().borrow(),
            bytes: counts.database_bytes,
            write_ahead_log_bytes: log.bytes,
            write_ahead_log_failing: log.failing,
            failures: store.stats().failures,
        },
    }))
}

impl ConnectorNumbers {
    fn count(&mut self, connector: &ConnectorState) {
        self.configured += 1;
        self.in_trouble += u64::from(connector.condition.is_trouble());
        self.waiting += connector.waiting;
        self.unknown += connector.unknown;
        self.dead += connector.dead;
    }
}

/// Returns the providers and connectors of the configuration that cannot be used at present.
pub(super) async fn outages(api: &Api) -> Result<Vec<Outage>, Problem> {
    let broker = api.broker()?;
    let models = broker.models().list();
    let configured: BTreeSet<&str> = models.iter().map(|it| it.provider.as_str()).collect();
    let troubled = broker.maintenance().provider_troubles().await?.into_iter();
    let providers = troubled.filter(|it| configured.contains(it.provider.as_str()));
    let providers = providers.map(|it| Outage {
        kind: "provider",
        name: it.provider,
        since: Some(Time(it.since)),
        reason: it.trouble.reason().map(ToOwned::to_owned),
    });
    let connectors = api.edge()?.connectors().list().await?.into_iter();
    let connectors = connectors.filter(|it| it.condition.is_trouble());
    let connectors = connectors.map(|it| Outage {
        kind: "connector",
        name: it.name.to_string(),
        since: it.since.map(Time),
        reason: it.reason,
    });
    Ok(providers.chain(connectors).collect())
}

impl From<Readiness> for HostReadiness {
    fn from(readiness: Readiness) -> Self {
        match readiness {
            Readiness::Ready { .. } => Self::Ready,
            Readiness::Starting => Self::Starting,
            Readiness::Draining => Self::Stopping,
            Readiness::DiskFull => Self::DiskFull,
            Readiness::NotRecording => Self::NotRecording,
            Readiness::NotReading => Self::NotReading,
        }
    }
}
