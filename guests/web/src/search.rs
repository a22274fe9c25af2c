//! `web_search`: one question to the search service that the operator chose, and its results as
//! plain text.

mod answer;
mod backend;

use self::backend::Backend;
use crate::content::on_one_line;
use crate::network::{Network, Request, read};
use crate::settings::Settings;
use agent_host_sdk::http::Method;
use agent_host_sdk::{Json, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Results that are returned unless the caller says otherwise.
pub(crate) const RESULTS: u32 = 5;
/// Results that a caller may ask for. The schema of the arguments says it too.
pub(crate) const RESULTS_MAX: u32 = 20;
/// Characters of a query.
const QUERY_CHARS_MAX: usize = 400;
/// Bytes of an answer that are read. One that is longer is no answer to such a question.
pub(crate) const ANSWER_BYTES_MAX: usize = 2 << 20;

/// The arguments of `web_search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    #[schemars(length(min = 1, max = 400))]
    query: String,
    /// 5 by default.
    #[schemars(range(min = 1, max = 20))]
    max_results: Option<u32>,
}

/// One result of a search. Strangers wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Hit {
    /// The title of the page.
    pub(crate) title: String,
    /// The address of the page.
    pub(crate) url: String,
    /// Some words of the page, or on it.
    pub(crate) snippet: String,
}

pub(crate) fn search(
    network: &dyn Network,
    settings: &Settings,
    arguments: &Arguments,
) -> Result<Json<Vec<Hit>>, ToolError> {
    let query = checked_query(&arguments.query)?;
    let results_max = arguments.max_results.unwrap_or(RESULTS);
    if !(1..=RESULTS_MAX).contains(&results_max) {
        return Err(ToolError::invalid(
            "maxResults",
            format_args!("must be from 1 to {RESULTS_MAX}"),
        ));
    }
    let backend = Backend::from_settings(settings)?;
    let url = backend.address(&query, results_max);
    let headers = backend.headers();
    let request = Request {
        method: Method::Get,
        url: &url,
        headers: &headers,
        body: &[],
    };
    let lost = |error| backend.unanswered(error);
    let mut answer = network.send(&request).map_err(lost)?;
    if !(200..=299).contains(&answer.status) {
        return Err(backend.refused(&mut answer));
    }
    let (bytes, whole) = read(&mut answer.body, ANSWER_BYTES_MAX).map_err(lost)?;
    if !whole {
        return Err(backend.failed(format_args!(
            "answers with more than {ANSWER_BYTES_MAX} bytes, which is no list of results"
        )));
    }
    let found = backend
        .results(&bytes)
        .map_err(|reason| backend.unreadable(&answer, &reason))?;
    Ok(Json(answer::hits(found, results_max as usize)))
}

fn checked_query(query: &str) -> Result<String, ToolError> {
    if query.chars().count() > QUERY_CHARS_MAX {
        return Err(ToolError::invalid(
            "query",
            format_args!("is longer than {QUERY_CHARS_MAX} characters: use fewer words"),
        ));
    }
    let query = on_one_line(query, QUERY_CHARS_MAX);
    if query.is_empty() {
        return Err(ToolError::invalid("query", "must have a word in it"));
    }
    Ok(query)
}
