//! The files of a project, from templates and from files that the program carries.

mod languages;

use super::carried::WIT;
use super::{Kind, Language};
use crate::invocation::quoted;
use languages::Parts;
use std::path::Path;

/// The place in README.md for the location of the program.
const PATH_NOTE: &str = "\nThe host's program is `agent-host`; this finds the one that made this \
                         folder:\n\n```text\nexport PATH={{folder}}:$PATH\n```\n";

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

/// A template and its place in a project.
#[derive(Debug, Clone, Copy)]
struct Template {
    path: &'static str,
    text: &'static str,
}

/// The parts of a project that depend on the kind of plugin alone.
struct KindParts {
    word: &'static str,
    opening: &'static str,
    say: &'static str,
    configuration: &'static str,
    script: &'static str,
    /// The section of README.md on other hosts.
    own_host: &'static str,
}

impl<'a> Project<'a> {
    pub(super) fn new(
        kind: Kind,
        language: Language,
        name: &'a str,
        program: Option<&'a Path>,
    ) -> Self {
        Self {
            kind,
            language,
            name,
            program,
        }
    }

    /// Returns all its files.
    pub(super) fn files(&self) -> Vec<ProjectFile> {
        let KindParts {
            configuration,
            script,
            ..
        } = self.kind.parts();
        let parts = self.language.parts(self.kind);
        let common = [
            ("README.md", include_str!("templates/README.md")),
            ("agent-host.toml", configuration),
            ("script.toml", script),
        ];
        let common = common.map(|(path, text)| Template { path, text });
        let filled = common
            .iter()
            .chain(parts.templates)
            .map(|template| ProjectFile::new(template.path, self.filled(template.text)));
        let wit = WIT
            .iter()
            .map(|file| ProjectFile::new(file.path, file.in_project()));
        filled
            .chain(wit)
            .chain(self.language.carried(self.kind))
            .collect()
    }

    /// Returns the next three commands, the last one with this word for the program.
    pub(super) fn next(&self, host: &str) -> [String; 3] {
        let Parts { first, build, .. } = self.language.parts(self.kind);
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

    /// Returns a template's text with the words of this project.
    fn filled(&self, text: &str) -> String {
        let kind = self.kind.parts();
        let parts = self.language.parts(self.kind);
        let folder = self
            .program
            .and_then(Path::parent)
            .map_or_else(String::new, quoted);
        let path = match self.program {
            Some(_) => PATH_NOTE,
            None => "",
        };
        let reach = match parts.reach {
            "" => String::new(),
            section => format!("\n{section}"),
        };
        // Those first whose text has words to fill in itself.
        [
            ("build", parts.readme),
            ("make", parts.build),
            ("reach", &reach),
            ("files", parts.readme_files.trim_end()),
            ("use", kind.own_host.trim_end()),
            ("say", kind.say),
            ("dependencies", parts.dependencies),
            ("path", path),
            ("folder", &folder),
            ("opening", kind.opening),
            ("kind", kind.word),
            ("language", parts.name),
            ("component", parts.component),
            ("title", &self.title()),
            ("snake", &self.snake()),
            ("name", self.name),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (place, word)| {
            text.replace(&format!("{{{{{place}}}}}"), word)
        })
    }

    /// The name as a tool and a Rust crate have it.
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

impl Kind {
    fn parts(self) -> KindParts {
        match self {
            Self::Tool => KindParts {
                word: "tool",
                opening: "A tool that counts the words of a text,",
                say: "echo 'one two three' | agent-host chat --config agent-host.toml",
                configuration: include_str!("templates/tool/agent-host.toml"),
                script: include_str!("templates/tool/script.toml"),
                own_host: include_str!("templates/tool/use.md"),
            },
            Self::Agent => KindParts {
                word: "agent",
                opening: "An agent that answers in one sentence,",
                say: "echo 'The sea is salt.' | agent-host chat --config agent-host.toml",
                configuration: include_str!("templates/agent/agent-host.toml"),
                script: include_str!("templates/agent/script.toml"),
                own_host: include_str!("templates/agent/use.md"),
            },
        }
    }
}
