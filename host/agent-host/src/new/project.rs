//! The files of a project, from templates and from files that the program carries.

mod languages;

use super::embedded::WIT;
use super::{Kind, Language};
use crate::terminal::quoted;
use clap::ValueEnum;
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
    parts: Parts,
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
    /// The word for what goes on with the code that it began with.
    unit: &'static str,
    configuration: &'static str,
    script: &'static str,
    /// The part of README.md on trying it.
    trial: &'static str,
    /// The section of README.md on other hosts.
    own_host: &'static str,
}

impl<'a> Project<'a> {
    /// Returns a project; none if there is no template of the kind of plugin in the language.
    pub(super) fn new(
        kind: Kind,
        language: Language,
        name: &'a str,
        program: Option<&'a Path>,
    ) -> Option<Self> {
        let parts = language.parts(kind)?;
        Some(Self {
            kind,
            language,
            name,
            program,
            parts,
        })
    }

    /// Returns all its files.
    pub(super) fn files(&self) -> Vec<ProjectFile> {
        let KindParts {
            configuration,
            script,
            ..
        } = self.kind.parts();
        let common = [
            ("README.md", include_str!("templates/README.md")),
            ("agent-host.toml", configuration),
            ("script.toml", script),
        ];
        let common = common.map(|(path, text)| Template { path, text });
        let filled = common
            .iter()
            .chain(self.parts.templates)
            .map(|template| ProjectFile::new(template.path, self.filled(template.text)));
        let wit = WIT
            .iter()
            .map(|file| ProjectFile::new(file.path, file.in_project()));
        filled
            .chain(wit)
            .chain(self.language.embedded(self.kind))
            .collect()
    }

    /// Returns the next three commands, the last one with this word for the program.
    pub(super) fn next(&self, host: &str) -> [String; 3] {
        let Parts { first, build, .. } = self.parts;
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
        let parts = &self.parts;
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
            ("trial", kind.trial.trim_end()),
            ("unit", kind.unit),
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
    /// Returns the languages that have a template of it.
    pub(super) fn languages(self) -> Vec<Language> {
        let all = Language::value_variants().iter().copied();
        all.filter(|language| language.parts(self).is_some())
            .collect()
    }

    /// Returns its word, for people.
    pub(super) fn as_str(self) -> &'static str {
        self.parts().word
    }

    fn parts(self) -> KindParts {
        match self {
            Self::Tool => KindParts {
                word: "tool",
                opening: "A tool, which counts the words of a text until you write its own work,",
                unit: "turn",
                configuration: include_str!("templates/tool/agent-host.toml"),
                script: include_str!("templates/tool/script.toml"),
                trial: include_str!("templates/tool/try.md"),
                own_host: include_str!("templates/tool/use.md"),
            },
            Self::Agent => KindParts {
                word: "agent",
                opening: "An agent, which answers in one sentence until you write its own work,",
                unit: "turn",
                configuration: include_str!("templates/agent/agent-host.toml"),
                script: include_str!("templates/agent/script.toml"),
                trial: include_str!("templates/agent/try.md"),
                own_host: include_str!("templates/agent/use.md"),
            },
            Self::Trigger => KindParts {
                word: "trigger",
                opening: "A trigger that says the next message of a list each time it is due,",
                unit: "trigger_run",
                configuration: include_str!("templates/trigger/agent-host.toml"),
                script: include_str!("templates/trigger/script.toml"),
                trial: include_str!("templates/trigger/try.md"),
                own_host: include_str!("templates/trigger/use.md"),
            },
            Self::Connector => KindParts {
                word: "connector",
                opening: "A connector to a chat service over HTTP,",
                unit: "call",
                configuration: include_str!("templates/connector/agent-host.toml"),
                script: include_str!("templates/connector/script.toml"),
                trial: include_str!("templates/connector/try.md"),
                own_host: include_str!("templates/connector/use.md"),
            },
        }
    }
}
