//! The files of a project, from templates and from files that the program carries, in each
//! language.
//!
//! Templates of all languages lie in `templates/KIND`, of all kinds in `templates/LANGUAGE`, and
//! the others in `templates/LANGUAGE/KIND`, at their places in a project. Files with [`PARTS`] for
//! names are parts of other files.

use super::embedded::{EmbeddedFile, below};
use super::{Kind, Language};
use crate::cli::word_of;
use crate::terminal::quoted;
use clap::ValueEnum;
use std::path::Path;

/// The place in README.md for the location of the program.
const PATH_NOTE: &str = "\nThe host's program is `agent-host`; this finds the one that made this \
                         folder:\n\n```text\nexport PATH={{folder}}:$PATH\n```\n";

/// The folder of the templates, and that of the packages of WASI that the host links.
const TEMPLATES: &str = "host/agent-host/src/new/templates/";
const WASI: &str = "host/agent-host/src/new/wasi/";

/// The parts of other files, by the words that they stand for there.
const PARTS: [(&str, &str); 6] = [
    ("build", "build.md"),
    ("reach", "reach.md"),
    ("files", "files.md"),
    ("use", "use.md"),
    ("trial", "try.md"),
    ("dependencies", "dependencies.toml"),
];

/// A project that is to be made.
#[derive(Debug)]
pub(super) struct Project<'a> {
    kind: Kind,
    language: Language,
    name: &'a str,
    /// The program, when it was called by a path.
    program: Option<&'a Path>,
}

/// A file of a project.
#[derive(Debug)]
pub(super) struct ProjectFile {
    /// Its path from the project's folder.
    pub(super) path: String,
    /// Its content.
    pub(super) bytes: Vec<u8>,
    /// True if it can be run.
    pub(super) is_run: bool,
}

impl ProjectFile {
    fn new(path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.to_owned(),
            bytes: bytes.into(),
            is_run: false,
        }
    }
}

impl<'a> Project<'a> {
    /// Returns a project; none if there is no template of the kind of plugin in the language.
    pub(super) fn new(
        kind: Kind,
        language: Language,
        name: &'a str,
        program: Option<&'a Path>,
    ) -> Option<Self> {
        let project = Self {
            kind,
            language,
            name,
            program,
        };
        let [_, _, own] = project.folders();
        below(&own).next().map(|_| project)
    }

    /// Returns the folders with its templates, the most general first.
    fn folders(&self) -> [String; 3] {
        let kind = word_of(&self.kind);
        let language = word_of(&self.language);
        [
            format!("{TEMPLATES}{kind}/"),
            format!("{TEMPLATES}{language}/"),
            format!("{TEMPLATES}{language}/{kind}/"),
        ]
    }

    /// Returns all its files.
    pub(super) fn files(&self) -> Vec<ProjectFile> {
        let [of_kind, of_language, own] = self.folders();
        // Those of other kinds lie in folders of it.
        let of_language = below(&of_language).filter(|(path, _)| !path.contains('/'));
        let templates = below(&of_kind).chain(of_language).chain(below(&own));
        let manifest = (self.language != Language::Rust).then_some("manifest.json");
        let common = ["README.md"].into_iter().chain(manifest);
        let common = common.flat_map(|path| below(TEMPLATES).filter(move |(it, _)| *it == path));
        let filled = common
            .chain(templates)
            .filter(|(path, _)| PARTS.iter().all(|(_, part)| part != path))
            .map(|(path, file)| {
                let path = path.replace("gitignore", ".gitignore");
                ProjectFile::new(&path, self.filled(&file.text()))
            });
        let wit = below("").filter(|(path, _)| path.starts_with("wit/"));
        let wit = wit.map(|(path, file)| ProjectFile::new(path, file.in_project()));
        filled.chain(wit).chain(self.embedded()).collect()
    }

    /// Returns the carried files that are no templates of a project in its language.
    fn embedded(&self) -> Vec<ProjectFile> {
        let mut files = match self.language {
            // Crates bring the imports of a component in Rust.
            Language::Rust => return sdk(),
            Language::Python | Language::Js => Vec::new(),
            Language::C => bindings(self.kind),
        };
        if self.kind == Kind::Tool {
            files.extend(wasi());
        }
        files
    }

    /// Returns the next three commands, the last one with this word for the program.
    pub(super) fn next(&self, host: &str) -> [String; 3] {
        let LanguageWords { first, build, .. } = self.language.wording();
        // The builds in these languages call the program by its name.
        let path = match (self.language, self.program) {
            (Language::Rust, _) | (_, None) => "",
            (Language::Python | Language::Js | Language::C, Some(_)) => {
                "export PATH={{folder}}:$PATH && "
            }
        };
        [
            self.filled(&format!("cd {{{{name}}}} && {path}{first}")),
            self.filled(build),
            format!("{host} serve --config agent-host.toml"),
        ]
    }

    /// Returns a part of other files, from the folder that is most its own.
    fn part(&self, name: &str) -> String {
        let folders = self.folders().into_iter().rev();
        let mut found = folders.filter_map(|folder| {
            let (_, file) = below(&folder).find(|(path, _)| *path == name)?;
            Some(file.text())
        });
        let text = found.next().unwrap_or_default();
        match name {
            "reach.md" if !text.is_empty() => format!("\n{text}"),
            "files.md" | "use.md" | "try.md" => text.trim_end().to_owned(),
            _ => text,
        }
    }

    /// Returns a template's text with the words of this project.
    fn filled(&self, text: &str) -> String {
        let kind = self.kind.wording();
        let language = self.language.wording();
        let folder = self
            .program
            .and_then(Path::parent)
            .map_or_else(String::new, quoted);
        let path = match self.program {
            Some(_) => PATH_NOTE,
            None => "",
        };
        let words = [
            ("make", language.build),
            ("unit", kind.unit),
            ("path", path),
            ("folder", &folder),
            ("opening", kind.opening),
            ("kind", &word_of(&self.kind)),
            ("language", language.name),
            ("component", language.component),
            ("title", &self.title()),
            ("snake", &self.snake()),
            ("name", self.name),
        ];
        // Those first whose text has words to fill in itself.
        let parts = PARTS.map(|(place, name)| (place, self.part(name)));
        let parts = parts.iter().map(|(place, text)| (*place, text.as_str()));
        parts
            .chain(words)
            .fold(text.to_owned(), |text, (place, word)| {
                text.replace(&format!("{{{{{place}}}}}"), word)
            })
    }

    fn snake(&self) -> String {
        self.name.replace('-', "_")
    }

    /// The name for people.
    fn title(&self) -> String {
        let words = self.name.replace(['-', '_'], " ");
        let mut letters = words.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    }
}

/// The words of a kind of plugin in templates.
struct KindWords {
    opening: &'static str,
    /// The word for what goes on with the code that it began with.
    unit: &'static str,
}

impl Kind {
    /// Returns the languages in which there is a template of it.
    pub(super) fn languages(self) -> Vec<Language> {
        let all = Language::value_variants().iter().copied();
        all.filter(|language| Project::new(self, *language, "", None).is_some())
            .collect()
    }

    fn wording(self) -> KindWords {
        let (opening, unit) = match self {
            Self::Tool => (
                "A tool, which counts the words of a text until you write its own work,",
                "turn",
            ),
            Self::Agent => (
                "An agent, which answers in one sentence until you write its own work,",
                "turn",
            ),
            Self::Trigger => (
                "A trigger that says the next message of a list each time it is due,",
                "trigger_run",
            ),
            Self::Connector => ("A connector to a chat service over HTTP,", "call"),
        };
        KindWords { opening, unit }
    }
}

/// The words of a language in templates.
struct LanguageWords {
    name: &'static str,
    /// The path of the built component from the project's folder.
    component: &'static str,
    /// The command before the first build.
    first: &'static str,
    /// The command that builds the component.
    build: &'static str,
}

impl Language {
    fn wording(self) -> LanguageWords {
        match self {
            Self::Rust => LanguageWords {
                name: "Rust",
                component: "target/wasm32-wasip2/release/{{snake}}.wasm",
                first: "cargo test",
                build: "RUSTC=$(scripts/guest-toolchain) cargo build --release --target \
                        wasm32-wasip2",
            },
            Self::Python => LanguageWords {
                name: "Python",
                component: "{{name}}.wasm",
                first: "python3 -m venv venv && . venv/bin/activate && pip install -r \
                        requirements.txt",
                build: "componentize-py -d wit -w {{kind}}-plugin componentize app -o \
                        {{component}} && agent-host plugin stamp {{component}} --manifest \
                        manifest.json",
            },
            Self::Js => LanguageWords {
                name: "JavaScript",
                component: "{{name}}.wasm",
                first: "npm install && npm test",
                build: "npm run build",
            },
            Self::C => LanguageWords {
                name: "C",
                component: "{{name}}.wasm",
                first: "make test",
                build: "make",
            },
        }
    }
}

/// Returns the interface in C, made by `wit-bindgen c`. Whoever changes the version of the
/// interface makes it again.
fn bindings(kind: Kind) -> Vec<ProjectFile> {
    let made = below(TEMPLATES).filter_map(|(path, file)| Some((path.strip_prefix("c/")?, file)));
    let begin = format!("bindings/{}_", word_of(&kind));
    let own = made.filter(|(path, _)| path.starts_with(&begin));
    own.map(|(path, file)| ProjectFile::new(path, file.bytes))
        .collect()
}

/// Returns the packages of WASI that the host links, for worlds that import them.
fn wasi() -> impl Iterator<Item = ProjectFile> {
    below(WASI).map(|(name, file)| {
        let path = match name.strip_suffix(".wit") {
            Some(package) => format!("wit/deps/{package}/{name}"),
            None => format!("wit/deps/WASI-{name}"),
        };
        ProjectFile::new(&path, file.in_project())
    })
}

/// Returns the SDK, with the compiler and the versions of crates that it is tested with.
fn sdk() -> Vec<ProjectFile> {
    let file = |(path, file): (&str, &EmbeddedFile)| match path {
        "sdk/Cargo.lock" => Some(ProjectFile::new("Cargo.lock", file.bytes)),
        "scripts/guest-toolchain" => Some(ProjectFile {
            is_run: true,
            ..ProjectFile::new(path, file.bytes)
        }),
        "rust-toolchain.toml" => Some(ProjectFile::new(path, file.in_project())),
        path if path.starts_with("sdk/") => Some(ProjectFile::new(path, file.in_project())),
        _ => None,
    };
    below("").filter_map(file).collect()
}
