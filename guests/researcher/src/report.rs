//! Reports: what a model drafts is held against the sources that were read, and written out.

use crate::memory::Research;
use crate::sources::{Source, State, one_line};
use crate::task::{Format, Task};
use agent_host_sdk::shortened;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The mark of a claim that names no source which was read.
pub(crate) const NO_SOURCE: &str = "[no source]";
const SECTIONS_MAX: usize = 20;
const CLAIMS_MAX: usize = 40;
const OPEN_MAX: usize = 10;
/// Bytes of a claim.
const CLAIM_BYTES_MAX: usize = 1_000;
/// Bytes of a title, a heading or an open question.
const LINE_BYTES_MAX: usize = 300;

/// A report, as a model writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Draft {
    title: String,
    sections: Vec<Section>,
    open: Vec<String>,
    /// Numbers that were taken out because no source with them was read.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    invented: BTreeSet<u64>,
}

/// A reason for which sources could not be read.
#[derive(Debug)]
pub(crate) struct Reason {
    /// The sources.
    pub(crate) places: Vec<String>,
    /// The reason.
    pub(crate) words: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Section {
    heading: String,
    claims: Vec<Claim>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Claim {
    text: String,
    sources: Vec<u64>,
}

impl Draft {
    /// The JSON Schema of a report.
    pub(crate) fn schema() -> Value {
        let line = json!({ "type": "string", "maxLength": LINE_BYTES_MAX });
        let claim = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "maxLength": CLAIM_BYTES_MAX },
                "sources": { "type": "array", "items": { "type": "integer", "minimum": 0 } },
            },
            "required": ["text", "sources"],
            "additionalProperties": false,
        });
        let section = json!({
            "type": "object",
            "properties": {
                "heading": line,
                "claims": { "type": "array", "items": claim, "maxItems": CLAIMS_MAX },
            },
            "required": ["heading", "claims"],
            "additionalProperties": false,
        });
        json!({
            "type": "object",
            "properties": {
                "title": line,
                "sections": { "type": "array", "items": section, "maxItems": SECTIONS_MAX },
                "open": { "type": "array", "items": line, "maxItems": OPEN_MAX },
            },
            "required": ["title", "sections", "open"],
            "additionalProperties": false,
        })
    }

    /// A report with a title that claims nothing.
    pub(crate) fn empty(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            ..Self::default()
        }
    }

    /// The notes themselves as a report, for want of a better one: section by section what each
    /// source says.
    pub(crate) fn from_notes(research: &Research) -> Self {
        let section = |source: &Source| {
            let number = source.number()?;
            let notes = research.notes.iter().filter(|note| note.source == number);
            let claims: Vec<Claim> = notes
                .map(|note| Claim {
                    text: note.claim.clone(),
                    sources: vec![number.into()],
                })
                .collect();
            (!claims.is_empty()).then(|| Section {
                heading: name(source),
                claims,
            })
        };
        Self {
            title: "Notes".to_owned(),
            sections: research.sources.iter().filter_map(section).collect(),
            ..Self::default()
        }
    }

    /// The same, bounded, with the numbers of sources that were read and no others. Numbers that
    /// the text names count as well, and stand in it no more.
    pub(crate) fn compared_with(mut self, sources: &[Source]) -> Self {
        let read: BTreeSet<u64> = sources
            .iter()
            .filter_map(|source| source.number().map(u64::from))
            .collect();
        self.title = one_line(&self.title, LINE_BYTES_MAX);
        self.sections.truncate(SECTIONS_MAX);
        self.open.truncate(OPEN_MAX);
        for open in &mut self.open {
            *open = one_line(open, LINE_BYTES_MAX);
        }
        self.invented = BTreeSet::new();
        for section in &mut self.sections {
            section.heading = one_line(&section.heading, LINE_BYTES_MAX);
            section.claims.truncate(CLAIMS_MAX);
            for claim in &mut section.claims {
                let cited = Cited::parse(&claim.text);
                let named = claim.sources.iter().copied().chain(cited.numbers);
                let named: BTreeSet<u64> = named.collect();
                self.invented.extend(named.difference(&read));
                claim.sources = named.intersection(&read).copied().collect();
                claim.text = shortened(&cited.text, CLAIM_BYTES_MAX);
            }
            section.claims.retain(|claim| !claim.text.is_empty());
        }
        self.sections.retain(|section| !section.claims.is_empty());
        self
    }

    /// Returns whether it claims anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.sections.iter().flat_map(|section| &section.claims)
    }
}

/// A text without the numbers in brackets that it had, and these.
struct Cited {
    text: String,
    numbers: Vec<u64>,
}

impl Cited {
    /// Takes `[1]`, `[1, 2]` and the mark of a missing source out of a text.
    fn parse(text: &str) -> Self {
        let mut kept = String::new();
        let mut numbers = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('[') {
            kept.push_str(before);
            let within = after.split_once(']');
            let cited = within.and_then(|(words, _)| numbers_of(words));
            match (within, cited) {
                (Some((_, behind)), Some(cited)) => {
                    numbers.extend(cited);
                    // The space before it goes with it.
                    kept.truncate(kept.trim_end().len());
                    rest = behind;
                }
                _ => {
                    kept.push('[');
                    rest = after;
                }
            }
        }
        kept.push_str(rest);
        let words: Vec<&str> = kept.split_whitespace().collect();
        Self {
            text: words.join(" "),
            numbers,
        }
    }
}

/// The numbers in `1, 2`; none if it is something else.
fn numbers_of(words: &str) -> Option<Vec<u64>> {
    if words == NO_SOURCE.trim_matches(['[', ']']) {
        return Some(Vec::new());
    }
    let numbers = words.split([',', ';', ' ']).filter(|word| !word.is_empty());
    let numbers: Option<Vec<u64>> = numbers.map(|word| word.parse().ok()).collect();
    numbers.filter(|numbers| !numbers.is_empty())
}

/// Writes a report out: the claims with their numbers, what is open, and the sources.
pub(crate) fn written(task: &Task, research: &Research, draft: &Draft) -> String {
    match task.format {
        Format::Json => as_json(research, draft),
        Format::Markdown => as_markdown(research, draft, |claims| {
            let sentences: Vec<String> = claims.iter().map(sentence).collect();
            sentences.join(" ")
        }),
        Format::Bullets => as_markdown(research, draft, |claims| {
            let lines: Vec<String> = claims
                .iter()
                .map(|claim| format!("- {}", sentence(claim)))
                .collect();
            lines.join("\n")
        }),
    }
}

/// A claim with its numbers: `Tides come twice a day. [1][3]`.
fn sentence(claim: &Claim) -> String {
    let numbers: String = claim
        .sources
        .iter()
        .map(|number| format!("[{number}]"))
        .collect();
    let numbers = if numbers.is_empty() {
        NO_SOURCE
    } else {
        numbers.as_str()
    };
    format!("{} {numbers}", claim.text)
}

fn as_markdown(research: &Research, draft: &Draft, write: impl Fn(&[Claim]) -> String) -> String {
    let mut blocks = Vec::new();
    if !draft.title.is_empty() {
        blocks.push(format!("# {}", draft.title));
    }
    for section in &draft.sections {
        if !section.heading.is_empty() {
            blocks.push(format!("## {}", section.heading));
        }
        blocks.push(write(&section.claims));
    }
    let list = |title: &str, lines: Vec<String>| {
        let lines: String = lines.iter().map(|line| format!("\n- {line}")).collect();
        (!lines.is_empty()).then(|| format!("## {title}\n{lines}"))
    };
    blocks.extend(list("Open", draft.open.clone()));
    blocks.extend(list("About this report", remarks(research, draft)));
    blocks.extend(sources(research, draft));
    blocks.extend(list("Could not be read", unread(research)));
    blocks.join("\n\n")
}

/// The sources that were read, a line each.
fn sources(research: &Research, draft: &Draft) -> Option<String> {
    let cited: BTreeSet<u64> = draft
        .claims()
        .flat_map(|claim| claim.sources.iter().copied())
        .collect();
    let line = |source: &Source| {
        let number = source.number()?;
        let cut = if source.is_cut {
            " (its beginning was read)"
        } else {
            ""
        };
        let idle = if cited.contains(&number.into()) {
            ""
        } else {
            " (read, not cited)"
        };
        let place = source.place.shown();
        let name = name(source);
        let place = if name == place {
            String::new()
        } else {
            format!(" – {place}")
        };
        Some(format!("[{number}] {name}{place}{cut}{idle}"))
    };
    let mut read: Vec<&Source> = research.sources.iter().collect();
    read.sort_by_key(|source| source.number());
    let lines: Vec<String> = read.into_iter().filter_map(line).collect();
    // Two spaces at the end of a line keep it a line of its own.
    (!lines.is_empty()).then(|| format!("## Sources\n\n{}", lines.join("  \n")))
}

/// The title of a source; its place where it has none.
fn name(source: &Source) -> String {
    if source.title.is_empty() {
        source.place.shown()
    } else {
        source.title.clone()
    }
}

/// The sources that could not be read, with the reason of each.
fn unread(research: &Research) -> Vec<String> {
    let line = |source: &Source| match &source.state {
        State::Failed(reason) => Some(format!("{}: {reason}", source.place.shown())),
        State::Waiting | State::Reading | State::Read(_) => None,
    };
    research.sources.iter().filter_map(line).collect()
}

/// The reasons for which sources could not be read, each once, with all sources that it holds for.
pub(crate) fn reasons(research: &Research) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = Vec::new();
    for source in &research.sources {
        let State::Failed(words) = &source.state else {
            continue;
        };
        let place = source.place.shown();
        match reasons.iter_mut().find(|reason| reason.words == *words) {
            Some(reason) => reason.places.push(place),
            None => reasons.push(Reason {
                places: vec![place],
                words: words.clone(),
            }),
        }
    }
    reasons
}

fn remarks(research: &Research, draft: &Draft) -> Vec<String> {
    let mut remarks = research.remarks.clone();
    if !draft.invented.is_empty() {
        let numbers: Vec<String> = draft.invented.iter().map(u64::to_string).collect();
        remarks.push(format!(
            "Numbers of sources that were not read were taken out: {}.",
            numbers.join(", ")
        ));
    }
    if draft.claims().any(|claim| claim.sources.is_empty()) {
        remarks.push(format!(
            "What is marked {NO_SOURCE} is not borne by anything that was read."
        ));
    }
    remarks
}

fn as_json(research: &Research, draft: &Draft) -> String {
    let claim = |claim: &Claim| {
        json!({
            "text": claim.text, "sources": claim.sources, "hasSource": !claim.sources.is_empty(),
        })
    };
    let section = |section: &Section| {
        let claims: Vec<Value> = section.claims.iter().map(claim).collect();
        json!({ "heading": section.heading, "claims": claims })
    };
    let source = |source: &Source| {
        let number = source.number()?;
        let place = source.place.shown();
        Some(json!({
            "number": number, "title": source.title, "place": place, "isCut": source.is_cut,
        }))
    };
    let sections: Vec<Value> = draft.sections.iter().map(section).collect();
    let sources: Vec<Value> = research.sources.iter().filter_map(source).collect();
    json!({
        "title": draft.title, "sections": sections, "open": draft.open, "sources": sources,
        "unread": unread(research), "remarks": remarks(research, draft),
    })
    .to_string()
}
