//! Answers to `file_upload`: the session files that they name, the small files that they contain,
//! and the errors in both.
//!
//! The agent reads the same data of a file from either source: digest, name, media type and size.
//! Its bytes are a blob.

use crate::access::tool::ClientAction;
use crate::values::digest::Digest;
use crate::values::file::{self, File};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use shapes::widget::{INLINE_BYTES_MAX, UPLOAD_BYTES_MAX, UPLOAD_FILES};

/// The widget.
const WIDGET: &str = "file_upload";
/// The field of an answer that contains its files.
const FILES: &str = "files";

/// The invalid part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// A JSON pointer into the answer.
    pub place: String,
    /// The problem, and the requirement.
    pub problem: String,
}

/// A file contained in an answer, to be stored as one of the session's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// Its entry among the session's files.
    pub file: File,
    /// Its bytes.
    pub content: Vec<u8>,
}

/// An answer with its files.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerWithFiles {
    /// The answer as the agent reads it.
    pub answer: Value,
    /// The new files of its session.
    pub brought: Vec<Brought>,
}

/// Returns whether an answer to a question can have files.
#[must_use]
pub fn may_have_files(action: &ClientAction) -> bool {
    action.widget == WIDGET
}

/// Checks the files of an answer against the question and the session's files. None for an answer
/// without files: to another widget, one that skips the question, or one that fits a schema of the
/// agent's own and has none.
///
/// # Errors
/// The first invalid file.
pub fn accept(
    action: &ClientAction,
    answer: &Value,
    known: &[File],
) -> Result<Option<AnswerWithFiles>, Misfit> {
    if !may_have_files(action) {
        return Ok(None);
    }
    let Some(given) = answer.get(FILES).and_then(Value::as_array) else {
        return Ok(None);
    };
    let limits = Limits::of(&action.props);
    if given.is_empty() || given.len() > limits.files {
        let problem = format!(
            "1 to {} files are needed, these are {}",
            limits.files,
            given.len()
        );
        return Err(Misfit {
            place: format!("/{FILES}"),
            problem,
        });
    }
    let mut files: Vec<File> = Vec::new();
    let mut brought: Vec<Brought> = Vec::new();
    for (at, entry) in given.iter().enumerate() {
        let one = read(entry, known)
            .and_then(|one| limits.check(&one).map(|()| one))
            .map_err(|(field, problem)| {
                let field = if field.is_empty() {
                    String::new()
                } else {
                    format!("/{field}")
                };
                Misfit {
                    place: format!("/{FILES}/{at}{field}"),
                    problem,
                }
            })?;
        let file = one.file;
        if files.iter().any(|other| is_same(other, &file)) {
            return Err(Misfit {
                place: format!("/{FILES}/{at}"),
                problem: "it is there twice; name each file once".to_owned(),
            });
        }
        if !known.contains(&file) {
            brought.extend(one.content.map(|content| Brought {
                file: file.clone(),
                content,
            }));
        }
        files.push(file);
    }
    let mut answer = answer.clone();
    if let Some(fields) = answer.as_object_mut() {
        fields.insert(FILES.to_owned(), files.iter().map(File::describe).collect());
    }
    Ok(Some(AnswerWithFiles { answer, brought }))
}

/// The same content under the same name is the same file.
fn is_same(one: &File, other: &File) -> bool {
    one.digest == other.digest && one.name == other.name
}

/// A file of an answer.
struct FileAnswer {
    file: File,
    /// Its bytes, if the answer contains them.
    content: Option<Vec<u8>>,
}

/// The field at fault and its fault; an empty field for the entry as a whole.
type UploadFault = (&'static str, String);

fn read(entry: &Value, known: &[File]) -> Result<FileAnswer, UploadFault> {
    let Some(fields) = entry.as_object() else {
        return Err((
            "",
            "a file is an object: `digest`, or `name`, `media_type` and `content_base64`"
                .to_owned(),
        ));
    };
    match (fields.get("digest"), fields.get("content_base64")) {
        (Some(digest), None) => named(digest, fields, known),
        (None, Some(content)) => inline(content, fields, known),
        (Some(_), Some(_)) => Err((
            "content_base64",
            "a file has a `digest` or a content, and not both".to_owned(),
        )),
        (None, None) => Err((
            "",
            "a file needs its `digest`, or `name`, `media_type` and `content_base64`".to_owned(),
        )),
    }
}

fn named(
    digest: &Value,
    fields: &Map<String, Value>,
    known: &[File],
) -> Result<FileAnswer, UploadFault> {
    let no_digest = || {
        (
            "digest",
            "a digest is `sha256:` and 64 hexadecimal digits".to_owned(),
        )
    };
    let digest = digest
        .as_str()
        .and_then(Digest::from_reference)
        .ok_or_else(no_digest)?;
    let name = match fields.get("name") {
        None => None,
        Some(name) => Some(
            name.as_str()
                .ok_or_else(|| ("name", "a name is text".to_owned()))?,
        ),
    };
    let found = known
        .iter()
        .find(|file| file.digest == digest && name.is_none_or(|name| file.name == name));
    let not_there = || {
        let field = if known.iter().any(|file| file.digest == digest) {
            "name"
        } else {
            "digest"
        };
        (
            field,
            "this session has no such file; hand it over first, with POST to `files` below the \
             session"
                .to_owned(),
        )
    };
    found
        .map(|file| FileAnswer {
            file: file.clone(),
            content: None,
        })
        .ok_or_else(not_there)
}

fn inline(
    content: &Value,
    fields: &Map<String, Value>,
    known: &[File],
) -> Result<FileAnswer, UploadFault> {
    let text = |field: &'static str| {
        fields
            .get(field)
            .and_then(Value::as_str)
            .ok_or_else(|| (field, "a text is needed".to_owned()))
    };
    let name = text("name")?;
    let media_type = text("media_type")?;
    file::check_name(name).map_err(|problem| ("name", problem))?;
    file::check_media_type(media_type).map_err(|problem| ("media_type", problem))?;
    let content = content.as_str().and_then(|text| STANDARD.decode(text).ok());
    let content = content.ok_or_else(|| {
        (
            "content_base64",
            "it is not base64 (RFC 4648, section 4, with padding)".to_owned(),
        )
    })?;
    if content.len() as u64 > INLINE_BYTES_MAX.unsigned_abs() {
        let problem = format!(
            "a file that stands in an answer has at most {INLINE_BYTES_MAX} bytes, this one has \
             {}; hand it over first, with POST to \
             `files` below the session, and name it by its digest",
            content.len()
        );
        return Err(("content_base64", problem));
    }
    let file = File {
        digest: Digest::of(&content),
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        bytes: content.len() as u64,
    };
    // The media type of the first upload is kept.
    let file = known
        .iter()
        .find(|known| is_same(known, &file))
        .cloned()
        .unwrap_or(file);
    Ok(FileAnswer {
        file,
        content: Some(content),
    })
}

/// The limits that a question sets for files. Its props were checked when it was asked.
struct Limits<'a> {
    accept: Option<Vec<&'a str>>,
    bytes: u64,
    files: usize,
}

impl<'a> Limits<'a> {
    fn of(props: &'a Value) -> Self {
        let number = |name: &str, otherwise: i64| {
            props
                .get(name)
                .and_then(Value::as_i64)
                .unwrap_or(otherwise)
                .unsigned_abs()
        };
        Self {
            accept: props
                .get("accept")
                .and_then(Value::as_array)
                .map(|accepted| accepted.iter().filter_map(Value::as_str).collect()),
            bytes: number("max_bytes", UPLOAD_BYTES_MAX),
            files: usize::try_from(number("max_files", *UPLOAD_FILES.start()))
                .unwrap_or(usize::MAX),
        }
    }

    fn check(&self, given: &FileAnswer) -> Result<(), UploadFault> {
        let field = |inline: &'static str| {
            if given.content.is_some() {
                inline
            } else {
                "digest"
            }
        };
        let File {
            bytes, media_type, ..
        } = &given.file;
        if *bytes > self.bytes {
            return Err((
                field("content_base64"),
                format!(
                    "a file of at most {} bytes is asked for, this one has {bytes}",
                    self.bytes
                ),
            ));
        }
        match &self.accept {
            Some(accepted) if !file::is_accepted(accepted.iter().copied(), media_type) => Err((
                field("media_type"),
                format!(
                    "`{}` is asked for, this file is `{media_type}`",
                    accepted.join("`, `")
                ),
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn action(props: Value) -> ClientAction {
        ClientAction::of("file_upload", props)
    }

    fn file(content: &[u8], name: &str, media_type: &str) -> File {
        File {
            digest: Digest::of(content),
            name: name.to_owned(),
            media_type: media_type.to_owned(),
            bytes: content.len() as u64,
        }
    }

    fn known() -> Vec<File> {
        vec![
            file(b"an essay", "essay.txt", "text/plain"),
            file(b"an essay", "copy.txt", "text/markdown"),
            file(&[0; 50], "a.png", "image/png"),
        ]
    }

    fn named(content: &[u8]) -> Value {
        json!({ "digest": Digest::of(content).reference() })
    }

    fn inline(content: &[u8], name: &str) -> Value {
        json!({ "name": name, "media_type": "text/plain", "content_base64": STANDARD.encode(content) })
    }

    fn answer(props: Value, files: &Value) -> Result<AnswerWithFiles, Misfit> {
        accept(&action(props), &json!({ "files": files }), &known())
            .map(|accepted| accepted.unwrap())
    }

    #[test]
    fn an_agent_reads_the_same_of_a_file_whichever_way_it_came() {
        let accepted = answer(
            json!({ "max_files": 3 }),
            &json!([named(b"an essay"), inline(b"more", "more.txt")]),
        )
        .unwrap();
        assert_eq!(
            accepted.answer,
            json!({ "files": [
            { "digest": Digest::of(b"an essay").reference(), "name": "essay.txt", "media_type": "text/plain", "bytes": 8 },
            { "digest": Digest::of(b"more").reference(), "name": "more.txt", "media_type": "text/plain", "bytes": 4 },
        ] })
        );
        assert_eq!(
            accepted.brought,
            [Brought {
                file: file(b"more", "more.txt", "text/plain"),
                content: b"more".to_vec()
            }]
        );
    }

    #[test]
    fn of_several_names_for_one_content_the_first_is_meant_or_the_one_that_is_said() {
        let digest = Digest::of(b"an essay").reference();
        let accepted = answer(
            json!({}),
            &json!([{ "digest": digest, "name": "copy.txt" }]),
        )
        .unwrap();
        assert_eq!(accepted.answer["files"][0]["media_type"], "text/markdown");
        let unknown = answer(
            json!({}),
            &json!([{ "digest": digest, "name": "other.txt" }]),
        )
        .unwrap_err();
        assert_eq!(unknown.place, "/files/0/name");
    }

    #[test]
    fn a_file_that_comes_again_in_an_answer_is_the_one_that_was_there() {
        let accepted = answer(json!({}), &json!([inline(b"an essay", "copy.txt")])).unwrap();
        assert_eq!(
            (
                accepted.brought.len(),
                &accepted.answer["files"][0]["media_type"]
            ),
            (0, &json!("text/markdown"))
        );
    }

    #[test]
    fn an_answer_without_files_has_none() {
        let skipped = json!({ "skipped": true });
        assert_eq!(accept(&action(json!({})), &skipped, &[]), Ok(None));
        let other = ClientAction {
            widget: "form".to_owned(),
            ..action(json!({}))
        };
        assert_eq!(
            accept(&other, &json!({ "files": [1] }), &[]),
            Ok(None),
            "what a form calls its fields is its own business"
        );
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let digest = Digest::of(b"an essay").reference();
        let with = |field: &str, value: Value| {
            let mut file = inline(b"x", "x.txt");
            file[field] = value;
            json!([file])
        };
        let large = STANDARD.encode(vec![0; (512 << 10) + 1]);
        for (props, files, place) in [
            (json!({}), json!([]), "/files"),
            (
                json!({}),
                json!([named(b"an essay"), named(&[0; 50])]),
                "/files",
            ),
            (
                json!({ "max_files": 2 }),
                json!([named(b"an essay"), named(b"an essay")]),
                "/files/1",
            ),
            (
                json!({}),
                json!([named(b"never handed over")]),
                "/files/0/digest",
            ),
            (
                json!({}),
                json!([{ "digest": "sha256:12" }]),
                "/files/0/digest",
            ),
            (json!({}), json!([{ "digest": 7 }]), "/files/0/digest"),
            (
                json!({}),
                json!([{ "digest": digest, "name": 7 }]),
                "/files/0/name",
            ),
            (
                json!({}),
                json!([{ "digest": digest, "content_base64": "" }]),
                "/files/0/content_base64",
            ),
            (json!({}), json!([{}]), "/files/0"),
            (json!({}), json!(["x"]), "/files/0"),
            (
                json!({ "max_bytes": 49 }),
                json!([named(&[0; 50])]),
                "/files/0/digest",
            ),
            (
                json!({ "accept": ["text/*"] }),
                json!([named(&[0; 50])]),
                "/files/0/digest",
            ),
            (
                json!({ "max_bytes": 3 }),
                json!([inline(b"four", "x.txt")]),
                "/files/0/content_base64",
            ),
            (
                json!({ "accept": ["image/*"] }),
                json!([inline(b"four", "x.txt")]),
                "/files/0/media_type",
            ),
            (json!({}), with("name", json!("../x")), "/files/0/name"),
            (json!({}), with("name", json!("..")), "/files/0/name"),
            (
                json!({}),
                with("media_type", json!("text")),
                "/files/0/media_type",
            ),
            (
                json!({}),
                with("media_type", Value::Null),
                "/files/0/media_type",
            ),
            (
                json!({}),
                with("content_base64", json!("eA")),
                "/files/0/content_base64",
            ),
            (
                json!({}),
                with("content_base64", json!("eA==\n")),
                "/files/0/content_base64",
            ),
            (
                json!({}),
                with("content_base64", json!("e_8=")),
                "/files/0/content_base64",
            ),
            (
                json!({}),
                with("content_base64", json!(large)),
                "/files/0/content_base64",
            ),
        ] {
            let misfit = answer(props, &files).unwrap_err();
            assert_eq!(misfit.place, place, "{}", misfit.problem);
        }
    }

    #[test]
    fn a_file_of_exactly_as_many_bytes_as_are_asked_for_fits() {
        assert!(answer(json!({ "max_bytes": 50 }), &json!([named(&[0; 50])])).is_ok());
        assert!(
            answer(
                json!({ "max_bytes": 4 }),
                &json!([inline(b"four", "x.txt")])
            )
            .is_ok()
        );
    }
}
