//! Health probes, and the description of what the host serves.

use super::status;
use crate::codes::{Refused, error_codes};
use crate::credential::caller;
use crate::input::Params;
use crate::problem::Problem;
use crate::state::{Api, Readiness};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::user::Scope;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Uri};
use serde::{Deserialize, Serialize};

error_codes! {
    ReadyzErrors = [DependencyDown, DiskFull, ShuttingDown] + Open;
    StartupzErrors = [Starting];
}

/// The version of the program: all of its crates have one.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The hint to an operator where the sessions in quarantine are listed.
const LISTED: &str =
    ": GET /api/quarantine, or `agent-host session quarantined`, says which and why";
/// The word to an operator on a write-ahead log that only grows.
const LOG_FAILING: &str = "; the write-ahead log could not be moved to the database: GET \
    /api/status, or `agent-host status`, says why";

/// Reports that the process is alive. It touches nothing else.
#[utoipa::path(
    get, path = "/healthz", tag = "probes",
    operation_id = "checkHealth",
    security(()),
    responses((status = 200, description = "It is alive.", body = String)),
)]
pub(super) async fn healthz() -> &'static str {
    "ok"
}

/// Query for the extent of the readiness probe.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadyParams {
    /// Any value, to fail also while a provider or a connector cannot be used.
    deep: Option<String>,
}

/// Reports whether the host accepts requests. It does not while it starts or stops, while nothing
/// can be recorded, and while reads fail. Nothing can be recorded when the disk is full, fails or
/// does not answer, or when another process holds the database. A host that is ready also tells of
/// sessions in quarantine, and of a write-ahead log that could not be moved to the database.
///
/// With `?deep` and a credential of the scope `admin` it also fails while a provider of models or
/// a connector cannot be used, and names them. Without that scope `deep` changes nothing.
#[utoipa::path(
    get, path = "/readyz", tag = "probes",
    operation_id = "checkReadiness",
    security(()),
    params(ReadyParams),
    responses(
        (status = 200, description = "It accepts requests.", body = String),
        (status = 503, description = "Not at the moment; `code` gives the reason."),
    ),
)]
pub(super) async fn readyz(
    State(api): State<Api>,
    Params(ReadyParams { deep }): Params<ReadyParams>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<String, Refused<ReadyzErrors>> {
    let ready = shallow(&api).await?;
    if deep.is_some() && is_admin(&api, &uri, &headers).await {
        let outages = status::outages(&api).await?;
        if !outages.is_empty() {
            let reported: Vec<String> = outages.iter().map(ToString::to_string).collect();
            return Err(Problem::dependency_down(&reported.join("; ")).into());
        }
    }
    Ok(ready)
}

async fn is_admin(api: &Api, uri: &Uri, headers: &HeaderMap) -> bool {
    match api.access().check(uri, headers) {
        Ok(presented) => caller(api, presented)
            .await
            .is_ok_and(|caller| caller.scopes.contains(&Scope::Admin)),
        Err(_) => false,
    }
}

async fn shallow(api: &Api) -> Result<String, Problem> {
    match api.readiness().await {
        // Whoever asks needs no credential: which sessions these are, and what is wrong with the
        // log, is for those who have one.
        Readiness::Ready {
            quarantined,
            is_log_failing,
        } => {
            let sessions = match quarantined {
                0 => String::new(),
                1 => format!("; 1 session is in quarantine{LISTED}"),
                _ => format!("; {quarantined} sessions are in quarantine{LISTED}"),
            };
            let log = if is_log_failing { LOG_FAILING } else { "" };
            Ok(format!("ready{sessions}{log}"))
        }
        Readiness::Starting => Err(Problem::starting()),
        Readiness::Draining => Err(Problem::shutting_down()),
        Readiness::DiskFull => Err(Problem::disk_full()),
        Readiness::NotRecording => Err(Problem::not_recording()),
        Readiness::NotReading => Err(Problem::not_reading()),
    }
}

/// Reports whether the host has started. It has from the moment on at which it first accepts
/// requests; `/readyz` says whether it accepts them now.
#[utoipa::path(
    get, path = "/startupz", tag = "probes",
    operation_id = "checkStartup",
    security(()),
    responses(
        (status = 200, description = "It has started.", body = String),
        (status = 503, description = "It is starting."),
    ),
)]
pub(super) async fn startupz(
    State(api): State<Api>,
) -> Result<&'static str, Refused<StartupzErrors>> {
    api.broker()?;
    Ok("started")
}

/// The version of the host.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Version {
    /// The version of the program, such as `0.1.0`.
    version: &'static str,
}

/// Reports the version of the host. It touches nothing else, and answers while the host starts.
#[utoipa::path(
    get, path = "/version", tag = "probes",
    operation_id = "getVersion",
    security(()),
    responses((status = 200, description = "The version.", body = Version)),
)]
pub(super) async fn version() -> axum::Json<Version> {
    axum::Json(Version { version: VERSION })
}

/// The challenge of a client.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ProofParams {
    /// Characters that the client has chosen at random for this request.
    challenge: String,
}

/// The answer to a challenge.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Proof {
    /// 64 hexadecimal digits; null from a host that has no data folder to prove.
    proof: Option<String>,
}

/// Proves which host this is, to a client that reads its data folder.
///
/// The answer is the HMAC-SHA256 under the text of the file `proof` in the data folder, over three
/// lines: `agent-host proof`, the address at which the host listens, and the challenge. Ask before
/// you send a credential: any program may listen at an address at which no host runs. It touches
/// nothing else, and answers while the host starts.
#[utoipa::path(
    get, path = "/proof", tag = "probes",
    operation_id = "checkHost",
    security(()),
    params(ProofParams),
    responses((status = 200, description = "The answer.", body = Proof)),
)]
pub(super) async fn prove(
    State(api): State<Api>,
    Params(ProofParams { challenge }): Params<ProofParams>,
) -> axum::Json<Proof> {
    axum::Json(Proof {
        proof: api.access().proof(&challenge),
    })
}

/// This description.
#[utoipa::path(
    get, path = "/openapi.json", tag = "probes",
    operation_id = "getDescription",
    security(()),
    responses(
        (
            status = 200,
            description = "OpenAPI 3.1.",
            body = Object,
            content_type = "application/json",
        ),
    ),
)]
pub(super) async fn openapi(State(api): State<Api>) -> Response {
    let document = api.document(|| super::description().to_string().into());
    ([(CONTENT_TYPE, "application/json")], document).into_response()
}
