//! The operations that can be delegated: their targets, and their parameters.

use super::{Invalid, PATH_BYTES_MAX, Target, URL_BYTES_MAX};
use serde_json::{Map, Value, json};
use std::fmt;

/// The operation that runs a program.
pub(super) const EXECUTE_CODE: &str = "execute_code";
/// Its parameter for the program's language.
pub(super) const LANGUAGE: &str = "language";
/// Bytes of a value that is repeated in the suggested call.
const SHOWN_BYTES_MAX: usize = 200;

/// The type that a parameter's value must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// Any text.
    Text,
    /// Text that is not blank.
    Words,
    /// A path in the target's granted folders, as the target's tools see it. It has no `..`, no NUL
    /// and no backslash, so it is inside a grant or nowhere. The folders of the tool's instance
    /// decide which, not this check.
    Path,
    /// An `http` or `https` URL. The grant of the tool that fetches it decides whether it may be
    /// fetched.
    Url,
    /// A whole number from 0.
    Number,
    /// A whole number from 1.
    Count,
    /// True or false.
    Flag,
    /// A list of texts.
    Texts,
    /// An object of texts.
    TextMap,
}

/// One parameter of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterRule {
    /// Its name.
    pub name: &'static str,
    /// The type of its value.
    pub kind: ParameterKind,
    /// True if the operation needs it.
    pub required: bool,
}

/// One operation of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationRule {
    /// The target that supports it.
    pub target: Target,
    /// Its name, which is also the name of the tool for it. The built-in worker performs
    /// `web_fetch` with `web_send` if its method may change something.
    pub name: &'static str,
    /// Its description for a model that sees it as a tool.
    pub description: &'static str,
    /// Its parameters; any other is refused.
    pub parameters: &'static [ParameterRule],
}

const fn needs(name: &'static str, kind: ParameterKind) -> ParameterRule {
    ParameterRule {
        name,
        kind,
        required: true,
    }
}

const fn takes(name: &'static str, kind: ParameterKind) -> ParameterRule {
    ParameterRule {
        name,
        kind,
        required: false,
    }
}

macro_rules! operations {
    ($($target:ident $name:ident($($takes:ident $parameter:ident: $kind:ident),+) $description:literal;)+) => {
        /// All operations, in the order in which agents see them.
        pub const OPERATIONS: &[OperationRule] = &[$(OperationRule {
            target: Target::$target,
            name: stringify!($name),
            description: $description,
            parameters: &[$($takes(stringify!($parameter), ParameterKind::$kind)),+],
        }),+];
    };
}

operations! {
    Worker read_file(needs path: Path, takes offset: Number, takes limit: Count)
        "Reads a text file, or some of its lines.";
    Worker write_file(needs path: Path, needs content: Text, takes createParents: Flag)
        "Writes a file; one that is there is replaced.";
    Worker delete_file(needs path: Path, takes recursive: Flag)
        "Deletes a file, or a folder.";
    Worker list_files(needs path: Path, takes pattern: Words, takes maxDepth: Count)
        "Lists a folder.";
    Worker search_files(needs path: Path, needs pattern: Words, takes recursive: Flag)
        "Finds lines of files by a regular expression.";
    Worker web_search(needs query: Words, takes maxResults: Count)
        "Searches the web.";
    Worker web_fetch(needs url: Url, takes method: Words, takes headers: TextMap, takes body: Text)
        "Fetches a web page, or sends a request.";
    Researcher deep_research(needs query: Words, takes maxDepth: Count, takes sources: Texts)
        "Researches a question and reports with numbered sources.";
    Researcher synthesize_sources(needs sources: Texts, takes format: Words)
        "Brings texts, pages and files together in one report.";
    Coder analyze_code(needs path: Path, takes patterns: Texts)
        "Analyses the code in a folder.";
    Coder generate_code(needs spec: Words, takes language: Words, takes framework: Words)
        "Writes code from a description.";
    Coder review_code(needs diff: Words, takes guidelines: Text)
        "Reviews a diff.";
    Coder execute_code(needs code: Words, takes language: Words, takes timeout: Count)
        "Runs a program and returns what it printed and its value.";
}

/// The operation with its parameters: `read_file(path; optional: offset, limit)`.
impl fmt::Display for OperationRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |required: bool| {
            let those = self.parameters.iter();
            let those = those.filter(|parameter| parameter.required == required);
            those.map(|parameter| parameter.name).collect::<Vec<_>>()
        };
        write!(f, "{}({}", self.name, names(true).join(", "))?;
        match names(false).as_slice() {
            [] => f.write_str(")"),
            optional => write!(f, "; optional: {})", optional.join(", ")),
        }
    }
}

impl OperationRule {
    /// Returns the JSON Schema of its parameters. If languages are given, they are the allowed
    /// values for a program's language.
    pub(super) fn schema(&self, languages: &[String]) -> Value {
        let property = |parameter: &ParameterRule| {
            let mut schema = parameter.kind.schema();
            let of_program = self.name == EXECUTE_CODE && parameter.name == LANGUAGE;
            if let Some(fields) = schema.as_object_mut()
                && of_program
                && !languages.is_empty()
            {
                fields.insert("enum".to_owned(), json!(languages));
            }
            (parameter.name.to_owned(), schema)
        };
        let required = self
            .parameters
            .iter()
            .filter(|parameter| parameter.required);
        json!({
            "type": "object",
            "properties": self.parameters.iter().map(property).collect::<Map<_, _>>(),
            "required": required.map(|parameter| parameter.name).collect::<Vec<_>>(),
            "additionalProperties": false,
        })
    }

    /// Returns valid parameters: the given ones that are valid and short, and a placeholder for
    /// each missing one.
    pub(super) fn mended(&self, given: Option<&Map<String, Value>>) -> Map<String, Value> {
        let fits = |parameter: &&ParameterRule| {
            // Models write a mark for "optional" into the name itself.
            let names = [parameter.name.to_owned(), format!("{}?", parameter.name)];
            let found = names.iter().find_map(|name| given?.get(name))?;
            let short = found.to_string().len() <= SHOWN_BYTES_MAX;
            (short && parameter.kind.check(found).is_ok()).then(|| found.clone())
        };
        let each = self.parameters.iter().filter_map(|parameter| {
            let value = match fits(&parameter) {
                None if parameter.required => parameter.kind.example(parameter.name),
                found => found?,
            };
            Some((parameter.name.to_owned(), value))
        });
        each.collect()
    }

    /// Checks parameters against the rules. `null` counts as an omitted parameter.
    pub(super) fn check(&self, parameters: &Map<String, Value>) -> Result<(), Invalid> {
        let mend = |what: String| Invalid::parameters(format!("{what} Expected: {self}."));
        for name in parameters.keys() {
            if !self
                .parameters
                .iter()
                .any(|parameter| parameter.name == name)
            {
                let known = self.parameters.iter().map(|parameter| parameter.name);
                let what = format!("{} has no parameter `{name}`.", self.name);
                return Err(mend(what).allowing(known));
            }
        }
        for parameter in self.parameters {
            let name = parameter.name;
            match parameters.get(name) {
                None | Some(Value::Null) if parameter.required => {
                    let what = format!("{} needs the parameter `{name}`.", self.name);
                    return Err(mend(what).about(name));
                }
                None | Some(Value::Null) => {}
                Some(value) => parameter
                    .kind
                    .check(value)
                    .map_err(|what| mend(format!("`{name}` {what}.")).about(name))?,
            }
        }
        Ok(())
    }
}

impl ParameterKind {
    /// Returns the JSON Schema of its values, as far as a model needs it.
    fn schema(self) -> Value {
        match self {
            Self::Text | Self::Words | Self::Path | Self::Url => json!({ "type": "string" }),
            Self::Number => json!({ "type": "integer", "minimum": 0 }),
            Self::Count => json!({ "type": "integer", "minimum": 1 }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Self::TextMap => {
                json!({ "type": "object", "additionalProperties": { "type": "string" } })
            }
        }
    }

    /// Returns a placeholder for a missing value.
    fn example(self, name: &str) -> Value {
        match self {
            Self::Text | Self::Words | Self::Path => json!(format!("<{name}>")),
            Self::Url => json!("https://example.org/"),
            Self::Number => json!(0),
            Self::Count => json!(1),
            Self::Flag => json!(false),
            Self::Texts => json!([format!("<{name}>")]),
            Self::TextMap => json!({}),
        }
    }

    /// Checks a value. The error continues a sentence that begins with the parameter's name.
    fn check(self, value: &Value) -> Result<(), String> {
        match (self, value) {
            (Self::Text, Value::String(_)) | (Self::Flag, Value::Bool(_)) => Ok(()),
            (Self::Words, Value::String(text)) => {
                if_so(!text.trim().is_empty(), "must not be empty")
            }
            (Self::Path, Value::String(path)) => check_path(path),
            (Self::Url, Value::String(url)) => check_url(url),
            (Self::Number, Value::Number(number)) => {
                if_so(number.is_u64(), "must be a whole number from 0")
            }
            (Self::Count, Value::Number(number)) => if_so(
                number.as_u64().is_some_and(|n| n > 0),
                "must be a whole number from 1",
            ),
            (Self::Texts, Value::Array(items)) => {
                if_so(items.iter().all(Value::is_string), "must hold texts only")
            }
            (Self::TextMap, Value::Object(items)) => {
                if_so(items.values().all(Value::is_string), "must hold texts only")
            }
            (Self::Text | Self::Words | Self::Path | Self::Url, _) => {
                Err("must be text".to_owned())
            }
            (Self::Number | Self::Count, _) => Err("must be a whole number".to_owned()),
            (Self::Flag, _) => Err("must be true or false".to_owned()),
            (Self::Texts, _) => Err("must be a list of texts".to_owned()),
            (Self::TextMap, _) => Err("must be an object of texts".to_owned()),
        }
    }
}

fn if_so(so: bool, otherwise: &str) -> Result<(), String> {
    if so {
        Ok(())
    } else {
        Err(otherwise.to_owned())
    }
}

fn check_path(path: &str) -> Result<(), String> {
    if path.is_empty() {
        return Err("must not be empty".to_owned());
    }
    if path.len() > PATH_BYTES_MAX {
        return Err(format!("is longer than {PATH_BYTES_MAX} bytes"));
    }
    if path.contains(['\0', '\\']) {
        return Err("must not contain NUL or a backslash".to_owned());
    }
    if_so(
        path.split('/').all(|component| component != ".."),
        "must not contain `..`",
    )
}

fn check_url(url: &str) -> Result<(), String> {
    if url.len() > URL_BYTES_MAX {
        return Err(format!("is longer than {URL_BYTES_MAX} bytes"));
    }
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme));
    let plain = !url.chars().any(|c| c.is_control() || c.is_whitespace());
    if_so(
        rest.is_some_and(|rest| !rest.is_empty()) && plain,
        "must be an http or https URL",
    )
}
