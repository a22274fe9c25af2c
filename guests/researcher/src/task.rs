//! Tasks: an operation with its parameters, as `delegate` sends them.

use crate::sources::Place;
use agent_host_sdk::{MessageId, Turn};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Bytes of a query.
const QUERY_BYTES_MAX: usize = 4_000;
/// Rounds of a research for which the call names no number.
const DEPTH: u32 = 2;
/// Rounds of a research.
const DEPTH_MAX: u32 = 5;
/// Sources that one task names.
const SOURCES_MAX: usize = 20;
/// Bytes of a path or an address.
const PLACE_BYTES_MAX: usize = 2_048;
/// The word among `sources` that lets a research search the web beside them.
const WEB: &str = "web";

const DEEP: &str = "deep_research";
const SYNTHESIS: &str = "synthesize_sources";
const DEEP_FORM: &str = "deep_research(query, maxDepth?, sources?)";
const SYNTHESIS_FORM: &str = "synthesize_sources(sources, format?)";

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Sections of text, the sources at the end.
    Markdown,
    /// A list, one claim a line, the sources at the end.
    Bullets,
    /// The claims and the sources as data.
    Json,
}

impl Format {
    fn parse(word: &str) -> Result<Self, String> {
        match word.trim().to_lowercase().as_str() {
            "markdown" | "report" => Ok(Self::Markdown),
            "bullets" => Ok(Self::Bullets),
            "json" => Ok(Self::Json),
            _ => Err(format!(
                "format: `markdown`, `bullets` or `json` is needed, this is `{word}`"
            )),
        }
    }
}

/// A task, checked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// The question to answer; none when given sources are to be brought together.
    pub(crate) query: Option<String>,
    /// Rounds of planning and reading at most.
    pub(crate) depth_max: u32,
    /// True if the web is searched.
    pub(crate) web: bool,
    /// The sources that the task names, in its order.
    pub(crate) places: Vec<Place>,
    /// The same as they are written: the text of a source that is one.
    pub(crate) written: Vec<String>,
    /// The form of the report.
    pub(crate) format: Format,
    /// Milliseconds from its beginning until whoever delegated gives the task up, if it says so.
    pub(crate) timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Words {
    operation: String,
    parameters: Option<Map<String, Value>>,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Deep {
    query: String,
    max_depth: Option<u32>,
    sources: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Synthesis {
    sources: Vec<String>,
    format: Option<String>,
}

impl Task {
    /// Reads the task in a message.
    ///
    /// # Errors
    /// It is none, or a parameter makes no sense: which, and what it has to be.
    pub(crate) fn from_message(turn: Turn<'_>, id: MessageId) -> Result<Self, String> {
        let text = turn.message(id).map(|message| message.text());
        Self::read(&text.unwrap_or_default())
    }

    /// Reads the task in the text of a message.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let words: Words = serde_json::from_str(text).map_err(|error| {
            format!(
                "this is not a task, which is {{\"operation\": …, \"parameters\": {{…}}}}: {error}"
            )
        })?;
        let parameters = words.parameters.unwrap_or_default();
        let task = match words.operation.as_str() {
            DEEP => deep(parameters),
            SYNTHESIS => synthesis(parameters),
            other => Err(format!(
                "operation `{other}` is not supported by this researcher, which has: {DEEP_FORM}, \
                 {SYNTHESIS_FORM}"
            )),
        };
        task.map(|task| Self {
            timeout_ms: words.timeout_ms,
            ..task
        })
    }

    /// The question that notes and report are about, in words.
    pub(crate) fn question(&self) -> &str {
        self.query
            .as_deref()
            .unwrap_or("What do these sources say, where do they agree, and where not?")
    }
}

fn read<T: DeserializeOwned>(parameters: Map<String, Value>, form: &str) -> Result<T, String> {
    serde_json::from_value(Value::Object(parameters))
        .map_err(|error| format!("the parameters cannot be read: {error}. Expected: {form}"))
}

fn deep(parameters: Map<String, Value>) -> Result<Task, String> {
    let deep: Deep = read(parameters, DEEP_FORM)?;
    let query = deep.query.trim();
    if !(1..=QUERY_BYTES_MAX).contains(&query.len()) {
        return Err(format!(
            "query: a text of 1 to {QUERY_BYTES_MAX} bytes is needed"
        ));
    }
    let depth_max = deep.max_depth.unwrap_or(DEPTH);
    if !(1..=DEPTH_MAX).contains(&depth_max) {
        return Err(format!(
            "maxDepth: a whole number from 1 to {DEPTH_MAX} is needed, this is {depth_max}"
        ));
    }
    let mut written = deep.sources.unwrap_or_default();
    let is_web = |source: &String| source.trim().eq_ignore_ascii_case(WEB);
    let web = written.is_empty() || written.iter().any(is_web);
    written.retain(|source| !is_web(source));
    let places = places(&written)?;
    if let Some(at) = places
        .iter()
        .position(|place| matches!(place, Place::Text(_)))
    {
        let text = written.get(at).map(String::as_str).unwrap_or_default();
        return Err(format!(
            "sources: `{}` is no source to research in, which is `web`, an http or https address, \
             the path of a file (`/notes/a.md`) or of a folder (`/notes/`), or the digest of a \
             file of this session (`sha256:…`); synthesize_sources takes texts",
            agent_host_sdk::shortened(text, 200)
        ));
    }
    Ok(Task {
        query: Some(query.to_owned()),
        depth_max,
        web,
        places,
        written,
        format: Format::Markdown,
        timeout_ms: None,
    })
}

fn synthesis(parameters: Map<String, Value>) -> Result<Task, String> {
    let synthesis: Synthesis = read(parameters, SYNTHESIS_FORM)?;
    let format = synthesis.format.as_deref().map(Format::parse).transpose()?;
    let places = places(&synthesis.sources)?;
    if places.is_empty() {
        return Err("sources: at least one text, address, path or digest is needed".to_owned());
    }
    if places.iter().any(|place| matches!(place, Place::Folder(_))) {
        return Err(
            "sources: name the files of a folder one by one; deep_research searches folders"
                .to_owned(),
        );
    }
    Ok(Task {
        query: None,
        depth_max: 1,
        web: false,
        places,
        written: synthesis.sources,
        format: format.unwrap_or(Format::Markdown),
        timeout_ms: None,
    })
}

fn places(written: &[String]) -> Result<Vec<Place>, String> {
    if written.len() > SOURCES_MAX {
        return Err(format!(
            "sources: {SOURCES_MAX} at most, these are {}; leave some out or make several tasks",
            written.len()
        ));
    }
    let named = written.iter().enumerate();
    named
        .map(|(at, source)| {
            let source = source.trim();
            if source.is_empty() {
                return Err(format!("sources[{at}]: is empty; leave it out"));
            }
            Ok(place(at, source))
        })
        .collect()
}

/// The kind of a source: text unless it looks like a place.
fn place(at: usize, source: &str) -> Place {
    let is_word = source.len() <= PLACE_BYTES_MAX
        && !source.chars().any(|c| c.is_control() || c.is_whitespace());
    let is_path = source.starts_with('/') && !source.contains(['\n', '\0']);
    if is_word && (source.starts_with("http://") || source.starts_with("https://")) {
        Place::Url(source.to_owned())
    } else if is_word && source.starts_with("sha256:") {
        Place::Blob(source.to_owned())
    } else if is_path && source.len() <= PLACE_BYTES_MAX && source.ends_with('/') {
        Place::Folder(source.to_owned())
    } else if is_path && source.len() <= PLACE_BYTES_MAX {
        Place::File(source.to_owned())
    } else {
        Place::Text(at)
    }
}
