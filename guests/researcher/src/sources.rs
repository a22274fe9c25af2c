//! Sources: where they are, and what tools and blobs say of them.

use agent_host_sdk::{Outcome, Part, Turn, shortened, text_of};
use serde::{Deserialize, Serialize};

/// Bytes of a source that are read for notes; what comes after them is left out, and told.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 10;
/// Characters that a page is asked for.
pub(crate) const PAGE_CHARS: usize = 16_000;
/// Results of one search that are looked at.
pub(crate) const HITS_MAX: usize = 8;
/// Bytes of a blob that are read.
const BLOB_BYTES_MAX: u32 = 256 << 10;
/// Bytes of an address that a search found; longer ones are passed over.
const URL_BYTES_MAX: usize = 1_000;
/// Bytes of a title.
const TITLE_BYTES_MAX: usize = 160;
/// Bytes of a reason why something could not be read.
const REASON_BYTES_MAX: usize = 240;

/// The place of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    /// An address on the web.
    Url(String),
    /// A file in a granted folder.
    File(String),
    /// A granted folder, to be searched.
    Folder(String),
    /// A blob of this session, by its handle.
    Blob(String),
    /// A text that stands in the task, by its index there.
    Text(usize),
}

impl Place {
    /// The place as it is told.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Url(place) | Self::File(place) | Self::Folder(place) | Self::Blob(place) => {
                one_line(place, URL_BYTES_MAX)
            }
            Self::Text(at) => format!("the given text {}", at + 1),
        }
    }
}

/// The state of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// To be read.
    Waiting,
    /// Being read.
    Reading,
    /// Read, under this number.
    Read(u32),
    /// Not to be read, for this reason.
    Failed(String),
}

/// A source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Source {
    pub(crate) place: Place,
    pub(crate) title: String,
    pub(crate) state: State,
    /// Its place among the results of its search; 0 for one that the task names.
    pub(crate) rank: usize,
    /// Times that it was said to be elsewhere.
    pub(crate) moves: u32,
    /// True if only its beginning was read.
    pub(crate) is_cut: bool,
}

impl Source {
    pub(crate) fn new(place: Place, title: &str, rank: usize) -> Self {
        Self {
            place,
            title: one_line(title, TITLE_BYTES_MAX),
            state: State::Waiting,
            rank,
            moves: 0,
            is_cut: false,
        }
    }

    /// The number under which it was read.
    pub(crate) fn number(&self) -> Option<u32> {
        match self.state {
            State::Read(number) => Some(number),
            State::Waiting | State::Reading | State::Failed(_) => None,
        }
    }

    /// Marks it as one that cannot be read.
    pub(crate) fn fail(&mut self, reason: &str) {
        self.state = State::Failed(one_line(reason, REASON_BYTES_MAX));
    }
}

/// A result of a search.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Hit {
    #[serde(default)]
    pub(crate) title: String,
    pub(crate) url: String,
}

/// The text of a source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
    pub(crate) is_cut: bool,
    /// The address where it is instead.
    pub(crate) redirect: Option<String>,
}

impl Page {
    /// A page of this text, no longer than what is read.
    pub(crate) fn from_text(text: &str) -> Self {
        Self {
            title: None,
            text: shortened(text, TEXT_BYTES_MAX),
            is_cut: text.len() > TEXT_BYTES_MAX,
            redirect: None,
        }
    }
}

#[derive(Deserialize)]
struct Fetched {
    title: Option<String>,
    redirect: Option<String>,
    text: String,
    cut: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Found {
    List(Vec<Hit>),
    Within { results: Vec<Hit> },
}

/// The results of a search that can be read: addresses on the web, each once.
///
/// # Errors
/// Why there are none to be had.
pub(crate) fn hits(turn: Turn<'_>, outcome: &Outcome) -> Result<Vec<Hit>, String> {
    let text = text(turn, outcome)?;
    let found: Found = serde_json::from_str(&text)
        .map_err(|error| format!("the results of `web_search` cannot be read: {error}"))?;
    let mut hits = match found {
        Found::List(hits) | Found::Within { results: hits } => hits,
    };
    hits.retain(|hit| {
        let is_web = hit.url.starts_with("http://") || hit.url.starts_with("https://");
        is_web
            && hit.url.len() <= URL_BYTES_MAX
            && !hit.url.chars().any(|c| c.is_control() || c.is_whitespace())
    });
    hits.truncate(HITS_MAX);
    Ok(hits)
}

/// The files below a folder in which a search found lines, in their order, each once.
///
/// # Errors
/// Why there are none to be had.
pub(crate) fn found_files(
    turn: Turn<'_>,
    outcome: &Outcome,
    folder: &str,
) -> Result<Vec<String>, String> {
    let text = text(turn, outcome)?;
    let mut files: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('[')) {
        // `path:12: the line`, where only the first colon that a number follows ends the path.
        let path = line
            .match_indices(':')
            .find_map(|(at, _)| {
                let number = line.get(at + 1..)?.split_once(':')?.0;
                let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
                line.get(..at).filter(|_| is_number)
            })
            .unwrap_or_default();
        let path = if path.starts_with('/') || path.is_empty() {
            path.to_owned()
        } else {
            format!("{folder}{path}")
        };
        if !path.is_empty() && path.len() <= URL_BYTES_MAX && !files.contains(&path) {
            files.push(path);
        }
    }
    files.truncate(HITS_MAX);
    Ok(files)
}

/// The page that `web_fetch` fetched.
///
/// # Errors
/// Why there is none.
pub(crate) fn fetched(turn: Turn<'_>, outcome: &Outcome) -> Result<Page, String> {
    let text = text(turn, outcome)?;
    let Ok(fetched) = serde_json::from_str::<Fetched>(&text) else {
        return Ok(Page::from_text(&text));
    };
    let page = Page::from_text(&fetched.text);
    Ok(Page {
        title: fetched.title,
        redirect: fetched.redirect,
        is_cut: page.is_cut || fetched.cut.is_some(),
        ..page
    })
}

/// The text of a result, also when it was too long to come as a whole.
///
/// # Errors
/// The operation has none.
pub(crate) fn text(turn: Turn<'_>, outcome: &Outcome) -> Result<String, String> {
    let Outcome::Parts(parts) = outcome else {
        return Err(outcome.to_string());
    };
    let whole = parts.iter().find_map(|part| match part {
        Part::Blob(blob) => read_blob(turn, &blob.handle),
        Part::Text(_) | Part::Call(_) | Part::Opaque(_) => None,
    });
    Ok(whole.unwrap_or_else(|| text_of(parts)))
}

/// The text of a blob; none when this session does not show it or it is no text.
pub(crate) fn read_blob(turn: Turn<'_>, handle: &str) -> Option<String> {
    let mut bytes = turn.read_blob(handle, 0, BLOB_BYTES_MAX)?;
    if let Err(error) = std::str::from_utf8(&bytes) {
        // A letter that the length cut in two, and nothing else.
        error.error_len().is_none().then_some(())?;
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
}

/// Text of strangers on one line, without what would make it more than words.
pub(crate) fn one_line(text: &str, bytes_max: usize) -> String {
    let cleaned: String = text
        .chars()
        .map(|c| match c {
            '[' => '(',
            ']' => ')',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    let words: Vec<&str> = cleaned.split_whitespace().collect();
    shortened(&words.join(" "), bytes_max)
}
