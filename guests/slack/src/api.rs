//! Calls of the Web API, and what their failures mean.

use crate::Configuration;
use agent_host_sdk::ConnectorError;
use agent_host_sdk::http::Request;
use serde_json::Value;
use std::time::Duration;

/// The time that the server has to answer.
const PATIENCE: Duration = Duration::from_secs(8);
/// Time after which a server that failed is asked again, in milliseconds.
const RETRY_MS: u32 = 5_000;
/// Bytes of a file.
const FILE_BYTES_MAX: usize = 8 << 20;
/// Errors by which Slack says that the token does not count.
const UNAUTHORISED: [&str; 7] = [
    "account_inactive",
    "invalid_auth",
    "missing_scope",
    "not_authed",
    "org_login_required",
    "token_expired",
    "token_revoked",
];
/// Errors by which Slack says that it did nothing, and may do it later.
const LATER: [&str; 3] = ["ratelimited", "rate_limited", "service_unavailable"];
/// Errors after which it cannot be told whether anything was done.
const UNCLEAR: [&str; 3] = ["fatal_error", "internal_error", "request_timeout"];

/// The Web API of one app.
pub(crate) struct Api {
    configuration: Configuration,
}

impl Api {
    pub(crate) fn new(configuration: Configuration) -> Self {
        Self { configuration }
    }

    /// Has something done, once.
    pub(crate) fn act(&self, method: &str, asked: &Value) -> Result<Value, ConnectorError> {
        let Configuration { server, secret, .. } = &self.configuration;
        let response = Request::post(format!("{server}/api/{method}"))
            .secret_header("authorization", secret)
            .json(asked)
            .timeout(PATIENCE)
            .send()
            .map_err(|error| ConnectorError::of_acting(&error, RETRY_MS))?;
        let status = response.status();
        if status == 429 {
            let seconds = response
                .header("retry-after")
                .and_then(|text| text.parse::<u32>().ok());
            let wait = seconds.map_or(RETRY_MS, |seconds| seconds.saturating_mul(1_000));
            return Err(ConnectorError::later("the server limits the rate", wait));
        }
        let answer: Option<Value> = response.json().ok();
        let Some(answer) = answer.filter(|answer| answer.get("ok").is_some()) else {
            let reported = format!("the server answered {status} without a result");
            return Err(ConnectorError::Unknown(reported));
        };
        if answer["ok"] == true {
            return Ok(answer);
        }
        Err(meaning(answer["error"].as_str().unwrap_or("unknown_error")))
    }

    /// Gets the bytes of a file by its private URL.
    pub(crate) fn file(&self, url: &str) -> Result<Vec<u8>, ConnectorError> {
        let Configuration {
            file_server,
            secret,
            ..
        } = &self.configuration;
        // A URL of anybody else's would get the token.
        if !url.starts_with(&format!("{file_server}/")) {
            return Err(ConnectorError::Rejected(
                "the file lies elsewhere".to_owned(),
            ));
        }
        let response = Request::get(url)
            .secret_header("authorization", secret)
            .timeout(PATIENCE)
            .body_bytes_max(FILE_BYTES_MAX)
            .send()
            .map_err(|error| ConnectorError::of_reading(&error, RETRY_MS))?;
        ConnectorError::file_of(&response, RETRY_MS)
    }
}

fn meaning(error: &str) -> ConnectorError {
    if UNAUTHORISED.contains(&error) {
        ConnectorError::Unauthorised(error.to_owned())
    } else if LATER.contains(&error) {
        ConnectorError::later(error, RETRY_MS)
    } else if UNCLEAR.contains(&error) {
        ConnectorError::Unknown(error.to_owned())
    } else {
        ConnectorError::Rejected(error.to_owned())
    }
}
