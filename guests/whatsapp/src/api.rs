//! Calls of the Cloud API, and what their failures mean.

use crate::Configuration;
use agent_host_sdk::ConnectorError;
use agent_host_sdk::http::{Request, Response};
use serde_json::Value;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The time that the server has to answer.
const PATIENCE: Duration = Duration::from_secs(8);
/// Time after which a server that failed is asked again, in milliseconds.
const RETRY_MS: u32 = 5_000;
/// Time after which a server that limits the rate is asked again, in milliseconds.
const LIMITED_MS: u32 = 60_000;
/// Bytes of a file.
const FILE_BYTES_MAX: usize = 8 << 20;
/// Error codes by which the service says that the token does not count, or not for this.
const UNAUTHORISED: [i64; 5] = [0, 3, 10, 190, 131_005];
/// Error codes of permissions that the token has not, or has no longer.
const UNPERMITTED: RangeInclusive<i64> = 200..=299;
/// Error codes of limits on the rate.
const LIMITED: [i64; 6] = [4, 80_007, 130_429, 131_048, 131_056, 133_016];
/// Error codes by which the service says that it did nothing, and may do it later.
const LATER: [i64; 3] = [2, 131_016, 133_004];
/// Error codes after which it cannot be told whether anything was done.
const UNCLEAR: [i64; 2] = [1, 131_000];

/// The Cloud API of one phone number.
pub(crate) struct Api {
    configuration: Configuration,
}

impl Api {
    pub(crate) fn new(configuration: Configuration) -> Self {
        Self { configuration }
    }

    /// Sends a message, once, and returns the service's id of it.
    pub(crate) fn message(&self, asked: &Value) -> Result<String, ConnectorError> {
        let Configuration {
            server,
            version,
            phone_number_id,
            secret,
            ..
        } = &self.configuration;
        let response = Request::post(format!("{server}/{version}/{phone_number_id}/messages"))
            .secret_header("authorization", secret)
            .json(asked)
            .timeout(PATIENCE)
            .send()
            .map_err(|error| ConnectorError::of_acting(&error, RETRY_MS))?;
        let answer = answer(&response)?;
        answer["messages"][0]["id"]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| ConnectorError::Unknown("the answer has no id of a message".to_owned()))
    }

    /// Gets the bytes of a file by its id.
    pub(crate) fn file(&self, id: &str) -> Result<Vec<u8>, ConnectorError> {
        let Configuration {
            server,
            version,
            file_server,
            secret,
            ..
        } = &self.configuration;
        let reading = |error| ConnectorError::of_reading(&error, RETRY_MS);
        let found = Request::get(format!("{server}/{version}/{id}"))
            .secret_header("authorization", secret)
            .timeout(PATIENCE)
            .send()
            .map_err(reading)?;
        let found = answer(&found)?;
        let url = found["url"].as_str().unwrap_or_default();
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
            .map_err(reading)?;
        ConnectorError::file_of(&response, RETRY_MS)
    }
}

/// Reads an answer: its content, or why there is none.
fn answer(response: &Response) -> Result<Value, ConnectorError> {
    let status = response.status();
    let unclear = || format!("the server answered {status} without a result");
    let answer: Value = response
        .json()
        .map_err(|_| ConnectorError::Unknown(unclear()))?;
    let Some(error) = answer.get("error") else {
        return if response.is_success() {
            Ok(answer)
        } else {
            Err(ConnectorError::Unknown(unclear()))
        };
    };
    let words = error["error_data"]["details"]
        .as_str()
        .or(error["message"].as_str())
        .unwrap_or("no reason given")
        .to_owned();
    let code = error["code"].as_i64();
    let is_one_of = |codes: &[i64]| code.is_some_and(|code| codes.contains(&code));
    let is_unpermitted = code.is_some_and(|code| UNPERMITTED.contains(&code));
    Err(
        if status == 401 || is_unpermitted || is_one_of(&UNAUTHORISED) {
            ConnectorError::Unauthorised(words)
        } else if status == 429 || is_one_of(&LIMITED) {
            ConnectorError::later(&words, LIMITED_MS)
        } else if is_one_of(&LATER) {
            ConnectorError::later(&words, RETRY_MS)
        } else if is_one_of(&UNCLEAR) || code.is_none() {
            ConnectorError::Unknown(words)
        } else {
            ConnectorError::Rejected(words)
        },
    )
}
