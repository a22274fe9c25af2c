//! The file with sample calls of a tool component, and what they expect.

use super::call::BucketTexts;
use crate::answer::serialized;
use crate::failure::{Exit, Failure};
use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Calls of one file.
const CASES_MAX: usize = 1_000;
/// Bytes of a file with calls: 4 MiB.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The path at which a call finds its temporary folder when the file names none.
const FOLDER_AT: &str = "/workspace";

/// All of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "case", alias = "cases")]
    cases: Vec<Case>,
}

/// One sample call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// Its name in the report; otherwise its number stands there.
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    /// The path of the temporary folder, for a tool that declares `files.*`.
    #[serde(default = "folder_at")]
    pub(crate) folder: String,
    /// Files in that folder before the call, by their paths from it.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Values of buckets before the call, by bucket and key.
    #[serde(default)]
    pub(crate) buckets: BucketTexts,
    /// Environment variables, for a tool that declares `env.read`.
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// Answers to the tool's questions, in order.
    #[serde(default)]
    pub(crate) answers: Vec<Value>,
    /// Answers to HTTP requests. No call is run with them: see [`read`].
    #[serde(default)]
    http: Option<Value>,
    #[serde(default)]
    pub(crate) expect: Expected,
}

/// The expected outcome of a call, or a part of it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    #[serde(default)]
    pub(crate) outcome: Ending,
    /// All of the text of the result, or of the error.
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// Parts of that text.
    #[serde(default)]
    pub(crate) contains: Vec<String>,
    /// A part of the result as JSON: objects may have more keys.
    #[serde(default)]
    pub(crate) json: Option<Value>,
    /// Files in the folder after the call, by their paths from it.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// All that these buckets hold after the call.
    #[serde(default)]
    pub(crate) buckets: BucketTexts,
}

/// The ways in which a call may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ending {
    #[default]
    Done,
    /// It asks the user, and the file has no answer.
    Asks,
    InvalidArguments,
    NotFound,
    Denied,
    Failed,
    RetryLater,
}

fn folder_at() -> String {
    FOLDER_AT.to_owned()
}

impl Case {
    /// A call of a tool in an empty setting, of which nothing is expected.
    pub(crate) fn plain(tool: &str) -> Self {
        Self {
            name: String::new(),
            tool: tool.to_owned(),
            arguments: Map::new(),
            folder: folder_at(),
            files: BTreeMap::new(),
            buckets: BTreeMap::new(),
            environment: BTreeMap::new(),
            answers: Vec::new(),
            http: None,
            expect: Expected::default(),
        }
    }
}

/// Reads the calls of a file, TOML or JSON by its extension, for a component with these tools.
///
/// # Errors
/// It cannot be read, or a call in it makes no sense: which, and the fix.
pub(crate) fn read(file: &Path, tools: &[&str]) -> Result<Vec<Case>, Failure> {
    let place = || format!("`{}`", file.display());
    let bytes = std::fs::metadata(file).with_context(|| format!("cannot read {}", place()))?;
    if bytes.len() > FILE_BYTES_MAX {
        let error = anyhow!(
            "{} has {} bytes; {FILE_BYTES_MAX} at most",
            place(),
            bytes.len()
        );
        return Err(Failure::new(Exit::Usage, error));
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", place()))?;
    let is_json = file
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    parse(&text, is_json, tools).map_err(|error| {
        Failure::new(Exit::Usage, error.context(place()))
            .advise("see `agent-host plugin test --help` for a file with calls")
    })
}

/// Reads the calls of a text.
fn parse(text: &str, is_json: bool, tools: &[&str]) -> Result<Vec<Case>, anyhow::Error> {
    let Document { mut cases } = if is_json {
        let mut reader = serde_json::Deserializer::from_str(text);
        let document = serde_path_to_error::deserialize(&mut reader)?;
        reader.end()?;
        document
    } else {
        serde_path_to_error::deserialize(toml::Deserializer::parse(text)?)?
    };
    if cases.len() > CASES_MAX {
        return Err(anyhow!("{} calls; {CASES_MAX} at most", cases.len()));
    }
    for (index, case) in cases.iter_mut().enumerate() {
        if case.name.is_empty() {
            case.name = format!("case {}", index + 1);
        }
        if let Some(fault) = fault(case, tools) {
            return Err(anyhow!("{}: {fault}", case.name));
        }
    }
    Ok(cases)
}

/// Returns the reason why a call cannot be run.
fn fault(case: &Case, tools: &[&str]) -> Option<String> {
    let leads_out = |path: &&String| path.split('/').any(|step| matches!(step, "" | "." | ".."));
    let mut paths = case.files.keys().chain(case.expect.files.keys());
    if !tools.contains(&case.tool.as_str()) {
        Some(format!(
            "the component offers no tool `{}`; known are {}",
            case.tool,
            tools.join(", ")
        ))
    } else if case.http.is_some() {
        Some(
            "`http`: HTTP requests have no canned answers here, because the host's way out dials \
             only real addresses; test such calls natively, in Rust with `harness::Bench`, and \
             here what the tool does when a request is refused"
                .to_owned(),
        )
    } else if !case.folder.starts_with('/') || case.folder.len() < 2 {
        Some(format!(
            "`folder` is `{}`: write the path at which the tool finds it, such as `{FOLDER_AT}`",
            case.folder
        ))
    } else {
        paths.find(leads_out).map(|path| {
            format!("`files` has `{path}`: write a path from the folder, without `.` and `..`")
        })
    }
}

/// Letters that are shown of a text that is not as expected.
const SHOWN_CHARS_MAX: usize = 120;

/// The visible result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VisibleResult {
    pub(crate) ending: Ending,
    /// The text of the result, or of the error.
    pub(crate) text: String,
}

/// The files and buckets after a call.
#[derive(Debug)]
pub(crate) struct Left {
    /// The files that were asked for, as far as they are there.
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) buckets: BucketTexts,
}

impl Left {
    /// These buckets, before any file is read back.
    pub(crate) fn new(buckets: BucketTexts) -> Self {
        Self {
            files: BTreeMap::new(),
            buckets,
        }
    }
}

impl Expected {
    /// Returns everything that differs; nothing when the call did as expected.
    pub(crate) fn differences(&self, seen: &VisibleResult, left: &Left) -> Vec<String> {
        let shown = shown(&seen.text);
        if self.outcome != seen.ending {
            return vec![format!(
                "it ends as `{}` instead of `{}`: {shown}",
                serialized(&seen.ending),
                serialized(&self.outcome)
            )];
        }
        let mut differences = Vec::new();
        if let Some(text) = self.text.as_ref().filter(|text| **text != seen.text) {
            differences.push(format!("it says {shown} instead of {text:?}"));
        }
        let missing = self
            .contains
            .iter()
            .filter(|part| !seen.text.contains(*part));
        differences.extend(missing.map(|part| format!("{part:?} is not in {shown}")));
        if let Some(expected) = &self.json {
            let difference = match serde_json::from_str::<Value>(&seen.text) {
                Ok(found) => difference("", expected, &found),
                Err(_) => Some(format!("{shown} is not JSON")),
            };
            differences.extend(difference);
        }
        for (path, text) in &self.files {
            match left.files.get(path) {
                None => differences.push(format!("there is no file `{path}` afterwards")),
                Some(found) if found != text => differences.push(format!(
                    "the file `{path}` holds {} instead of {text:?}",
                    self::shown(found)
                )),
                Some(_) => {}
            }
        }
        differences.extend(self.bucket_differences(&left.buckets));
        differences
    }

    /// Compares all of each bucket that is named: what was to be deleted must be gone.
    fn bucket_differences(&self, left: &BucketTexts) -> Vec<String> {
        let nothing = BTreeMap::new();
        let mut differences = Vec::new();
        for (bucket, expected) in &self.buckets {
            let found = left.get(bucket).unwrap_or(&nothing);
            let keys: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
            for key in keys {
                match (expected.get(key), found.get(key)) {
                    (Some(_), None) => differences.push(format!(
                        "there is no key `{key}` in the bucket `{bucket}` afterwards"
                    )),
                    (None, Some(found)) => differences.push(format!(
                        "the bucket `{bucket}` has the key `{key}` afterwards, with {}",
                        shown(found)
                    )),
                    (Some(expected), Some(found)) if expected != found => {
                        differences.push(format!(
                            "the key `{key}` of the bucket `{bucket}` holds {} instead of \
                             {expected:?}",
                            shown(found)
                        ));
                    }
                    (Some(_), Some(_)) | (None, None) => {}
                }
            }
        }
        differences
    }
}

/// Returns the first place at which a document lacks a part that is expected.
fn difference(place: &str, expected: &Value, found: &Value) -> Option<String> {
    let at = |part: &dyn std::fmt::Display| format!("{place}/{part}");
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            expected
                .iter()
                .find_map(|(key, value)| match found.get(key) {
                    Some(there) => difference(&at(key), value, there),
                    None => Some(format!("the result has no {}", at(key))),
                })
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => expected
            .iter()
            .zip(found)
            .enumerate()
            .find_map(|(index, (expected, found))| difference(&at(&index), expected, found)),
        _ if expected == found => None,
        _ => Some(format!(
            "the result has {} at {} instead of {expected}",
            shown(&found.to_string()),
            if place.is_empty() { "its root" } else { place },
        )),
    }
}

/// Returns the beginning of a text, in quotation marks.
pub(crate) fn shown(text: &str) -> String {
    let beginning: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    let rest = if beginning.len() < text.len() {
        "…"
    } else {
        ""
    };
    format!("{beginning:?}{rest}")
}

#[cfg(test)]
mod tests {
    use super::{Ending, Expected, Left, VisibleResult, parse};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    const TOOLS: [&str; 2] = ["read_file", "count"];

    #[test]
    fn calls_are_read_from_toml_and_from_json() {
        let toml = r#"
            [[case]]
            name = "reads"
            tool = "read_file"
            arguments = { path = "a.txt" }
            files = { "a.txt" = "hello" }
            expect = { contains = ["hel"] }

            [[case]]
            tool = "count"
            expect.outcome = "invalid-arguments"
        "#;
        let json = r#"{"cases": [
            {"name": "reads", "tool": "read_file", "arguments": {"path": "a.txt"},
             "files": {"a.txt": "hello"}, "expect": {"contains": ["hel"]}},
            {"tool": "count", "expect": {"outcome": "invalid-arguments"}}
        ]}"#;
        let read = parse(toml, false, &TOOLS).unwrap();
        assert_eq!(read, parse(json, true, &TOOLS).unwrap());
        assert_eq!(read[0].arguments["path"], "a.txt");
        assert_eq!(
            (read[1].name.as_str(), read[1].expect.outcome),
            ("case 2", Ending::InvalidArguments)
        );
    }

    #[test]
    fn a_call_that_makes_no_sense_is_told_with_its_name_and_the_fix() {
        for (line, reported) in [
            (
                "tool = \"raed_file\"",
                "case 1: the component offers no tool `raed_file`; known",
            ),
            (
                "tool = \"count\"\nfolder = \"x\"",
                "`folder` is `x`: write the path",
            ),
            (
                "tool = \"count\"\nfiles = { \"../a\" = \"\" }",
                "`files` has `../a`: write a path from the folder",
            ),
            (
                "tool = \"count\"\nexpect.files = { \"/a\" = \"\" }",
                "`files` has `/a`",
            ),
            (
                "tool = \"count\"\nhttp = [{ status = 200 }]",
                "HTTP requests have no canned answers here",
            ),
            ("tool = \"count\"\nargs = {}", "unknown field `args`"),
            (
                "tool = \"count\"\nexpect.outcome = \"ok\"",
                "unknown variant `ok`",
            ),
            ("arguments = {}", "missing field `tool`"),
        ] {
            let error = parse(&format!("[[case]]\n{line}"), false, &TOOLS).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(reported), "{error}");
        }
        assert!(parse("", false, &TOOLS).is_err());
        assert!(parse("{\"cases\": []} x", true, &TOOLS).is_err());
    }

    fn differences(expected: Value, text: &str) -> Vec<String> {
        let expected: Expected = serde_json::from_value(expected).unwrap();
        let seen = VisibleResult {
            ending: Ending::Done,
            text: text.to_owned(),
        };
        let entries = BTreeMap::from([("a".to_owned(), "x".to_owned())]);
        let left = Left {
            files: entries.clone(),
            buckets: BTreeMap::from([("notes".to_owned(), entries)]),
        };
        expected.differences(&seen, &left)
    }

    #[test]
    fn a_part_of_the_outcome_is_enough() {
        let result = r#"{"words": 2, "list": [{"a": 1, "b": 2}]}"#;
        for expected in [
            json!({}),
            json!({ "contains": ["words", "2"] }),
            json!({ "json": { "words": 2 } }),
            json!({ "json": { "list": [{ "a": 1 }] } }),
            json!({ "text": result, "files": { "a": "x" } }),
            json!({ "buckets": { "notes": { "a": "x" }, "other": {} } }),
        ] {
            assert_eq!(differences(expected, result), Vec::<String>::new());
        }
    }

    #[test]
    fn what_differs_is_told_with_its_place() {
        let result = r#"{"words": 2, "list": [1]}"#;
        for (expected, reported) in [
            (
                json!({ "outcome": "denied" }),
                "ends as `done` instead of `denied`",
            ),
            (json!({ "contains": ["three"] }), "\"three\" is not in"),
            (json!({ "text": "x" }), "instead of \"x\""),
            (
                json!({ "json": { "words": 3 } }),
                "has \"2\" at /words instead of 3",
            ),
            (json!({ "json": { "more": 1 } }), "the result has no /more"),
            (
                json!({ "json": { "list": [1, 2] } }),
                "at /list instead of [1,2]",
            ),
            (json!({ "files": { "b": "" } }), "there is no file `b`"),
            (
                json!({ "files": { "a": "y" } }),
                "holds \"x\" instead of \"y\"",
            ),
            (
                json!({ "buckets": { "notes": { "a": "y" } } }),
                "the key `a` of the bucket `notes` holds \"x\" instead of \"y\"",
            ),
            (
                json!({ "buckets": { "notes": {} } }),
                "the bucket `notes` has the key `a` afterwards, with \"x\"",
            ),
            (
                json!({ "buckets": { "other": { "b": "" } } }),
                "there is no key `b` in the bucket `other`",
            ),
        ] {
            let found = differences(expected, result);
            assert!(found.len() == 1 && found[0].contains(reported), "{found:?}");
        }
        let found = differences(json!({ "json": 1 }), "words");
        assert_eq!(found, ["\"words\" is not JSON"]);
    }
}
