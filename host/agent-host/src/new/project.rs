//! The files of a project, from templates and from files that the program carries, in each
//! language.

use super::embedded::{LOCK, SDK, TOOLCHAIN_FILE, TOOLCHAIN_SCRIPT, WASI, WASI_LICENCE, WIT};
use super::{Kind, Language};
use crate::terminal::quoted;
use clap::ValueEnum;
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

/// The parts of a project in one language.
#[derive(Debug)]
struct Parts {
    /// The language's name for people.
    name: &'static str,
    /// The built component.
    component: &'static str,
    /// The first command in the project's folder: it tests, or installs what the others need.
    first: &'static str,
    /// The command that builds.
    build: &'static str,
    /// The section of README.md on tests and builds.
    readme: &'static str,
    /// The section of README.md on folders, HTTP and more; empty for a kind of plugin that reaches
    /// nothing.
    reach: &'static str,
    /// Rows of README.md's table of files.
    readme_files: &'static str,
    /// Packages that the kind of plugin needs.
    dependencies: &'static str,
    /// The files of the language.
    templates: &'static [Template],
}

/// Templates by their places in a project and in the folder of templates.
macro_rules! templates {
    ($($path:literal = $file:literal),* $(,)?) => {
        &[$(Template {
            path: $path,
            text: include_str!(concat!("templates/", $file)),
        }),*]
    };
}

impl Language {
    /// Returns the parts of a project with this kind of plugin; none if there is no template of it
    /// in the language.
    fn parts(self, kind: Kind) -> Option<Parts> {
        match self {
            Self::Rust => Some(rust(kind)),
            Self::Python => python(kind),
            Self::Js => js(kind),
            Self::C => c(kind),
        }
    }

    /// Returns the files that a project in this language has of those that the program carries,
    /// beside the interface.
    fn embedded(self, kind: Kind) -> Vec<ProjectFile> {
        let mut files = match self {
            // Crates bring the imports of a component in Rust.
            Self::Rust => return sdk(),
            Self::Python | Self::Js => Vec::new(),
            Self::C => bindings(kind),
        };
        if kind == Kind::Tool {
            files.extend(wasi());
        }
        files
    }
}

fn rust(kind: Kind) -> Parts {
    Parts {
        name: "Rust",
        component: "target/wasm32-wasip2/release/{{snake}}.wasm",
        first: "cargo test",
        build: "RUSTC=$(scripts/guest-toolchain) cargo build --release --target wasm32-wasip2",
        readme: include_str!("templates/rust/build.md"),
        // The SDK's README has it.
        reach: "",
        readme_files: match kind {
            Kind::Tool | Kind::Agent | Kind::Trigger => {
                include_str!("templates/rust/files.md")
            }
            Kind::Connector => include_str!("templates/rust/connector.files.md"),
        },
        dependencies: match kind {
            Kind::Tool | Kind::Trigger => {
                include_str!("templates/rust/tool.dependencies.toml")
            }
            Kind::Agent => include_str!("templates/rust/agent.dependencies.toml"),
            Kind::Connector => include_str!("templates/rust/connector.dependencies.toml"),
        },
        templates: match kind {
            Kind::Tool => templates![
                "Cargo.toml" = "rust/Cargo.toml",
                "src/lib.rs" = "rust/tool.rs",
                ".gitignore" = "rust/gitignore",
            ],
            Kind::Agent => templates![
                "Cargo.toml" = "rust/Cargo.toml",
                "src/lib.rs" = "rust/agent.rs",
                ".gitignore" = "rust/gitignore",
            ],
            Kind::Trigger => templates![
                "Cargo.toml" = "rust/Cargo.toml",
                "src/lib.rs" = "rust/trigger.rs",
                ".gitignore" = "rust/gitignore",
            ],
            Kind::Connector => templates![
                "Cargo.toml" = "rust/Cargo.toml",
                "src/lib.rs" = "rust/connector.rs",
                "examples/chat.rs" = "rust/chat.rs",
                ".gitignore" = "rust/gitignore",
            ],
        },
    }
}

fn python(kind: Kind) -> Option<Parts> {
    Some(Parts {
        name: "Python",
        component: "{{name}}.wasm",
        first: "python3 -m venv venv && . venv/bin/activate && pip install -r requirements.txt",
        build: "componentize-py -d wit -w {{kind}}-plugin componentize app -o {{component}} && \
                agent-host plugin stamp {{component}} --manifest manifest.json",
        readme: include_str!("templates/python/build.md"),
        reach: match kind {
            Kind::Tool => include_str!("templates/python/reach.md"),
            Kind::Agent | Kind::Trigger | Kind::Connector => "",
        },
        readme_files: include_str!("templates/python/files.md"),
        dependencies: "",
        templates: match kind {
            Kind::Tool => templates![
                "app.py" = "python/tool.py",
                "test_app.py" = "python/test_tool.py",
                "manifest.json" = "manifest.json",
                "requirements.txt" = "python/requirements.txt",
                ".gitignore" = "python/gitignore",
            ],
            Kind::Agent => templates![
                "app.py" = "python/agent.py",
                "test_app.py" = "python/test_agent.py",
                "manifest.json" = "manifest.json",
                "requirements.txt" = "python/requirements.txt",
                ".gitignore" = "python/gitignore",
            ],
            Kind::Trigger | Kind::Connector => return None,
        },
    })
}

fn js(kind: Kind) -> Option<Parts> {
    Some(Parts {
        name: "JavaScript",
        component: "{{name}}.wasm",
        first: "npm install && npm test",
        build: "npm run build",
        readme: match kind {
            Kind::Tool => include_str!("templates/js/tool.build.md"),
            Kind::Agent => include_str!("templates/js/agent.build.md"),
            Kind::Trigger | Kind::Connector => return None,
        },
        reach: match kind {
            Kind::Tool => include_str!("templates/js/reach.md"),
            Kind::Agent | Kind::Trigger | Kind::Connector => "",
        },
        readme_files: include_str!("templates/js/files.md"),
        dependencies: "",
        templates: match kind {
            Kind::Tool => templates![
                "plugin.js" = "js/tool.js",
                "plugin.test.js" = "js/tool.test.js",
                "manifest.json" = "manifest.json",
                "package.json" = "js/tool.package.json",
                ".gitignore" = "js/gitignore",
            ],
            Kind::Agent => templates![
                "plugin.js" = "js/agent.js",
                "plugin.test.js" = "js/agent.test.js",
                "manifest.json" = "manifest.json",
                "package.json" = "js/agent.package.json",
                ".gitignore" = "js/gitignore",
            ],
            Kind::Trigger | Kind::Connector => return None,
        },
    })
}

fn c(kind: Kind) -> Option<Parts> {
    Some(Parts {
        name: "C",
        component: "{{name}}.wasm",
        first: "make test",
        build: "make",
        readme: include_str!("templates/c/build.md"),
        reach: match kind {
            Kind::Tool => include_str!("templates/c/reach.md"),
            Kind::Agent | Kind::Trigger | Kind::Connector => "",
        },
        readme_files: include_str!("templates/c/files.md"),
        dependencies: "",
        templates: match kind {
            Kind::Tool => templates![
                "Makefile" = "c/Makefile",
                "plugin.c" = "c/tool.c",
                "plugin_test.c" = "c/tool_test.c",
                "manifest.json" = "manifest.json",
                "json.h" = "c/json.h",
                ".gitignore" = "c/gitignore",
            ],
            Kind::Agent => templates![
                "Makefile" = "c/Makefile",
                "plugin.c" = "c/agent.c",
                "plugin_test.c" = "c/agent_test.c",
                "manifest.json" = "manifest.json",
                "json.h" = "c/json.h",
                ".gitignore" = "c/gitignore",
            ],
            Kind::Trigger | Kind::Connector => return None,
        },
    })
}

/// Includes generated files by their paths in a project.
macro_rules! generated {
    ($($path:literal),* $(,)?) => {
        vec![$(ProjectFile::new(
            $path,
            include_bytes!(concat!("templates/c/", $path)),
        )),*]
    };
}

/// The interface in C, made by `wit-bindgen c`. Whoever changes the version of the interface makes
/// it again.
fn bindings(kind: Kind) -> Vec<ProjectFile> {
    match kind {
        Kind::Tool => generated![
            "bindings/tool_plugin.c",
            "bindings/tool_plugin.h",
            "bindings/tool_plugin_component_type.o",
        ],
        Kind::Agent => generated![
            "bindings/agent_plugin.c",
            "bindings/agent_plugin.h",
            "bindings/agent_plugin_component_type.o",
        ],
        // There is no template of them in C.
        Kind::Trigger | Kind::Connector => Vec::new(),
    }
}

fn wasi() -> impl Iterator<Item = ProjectFile> {
    WASI.iter()
        .chain([&WASI_LICENCE])
        .map(|file| ProjectFile::new(file.path, file.in_project()))
}

fn sdk() -> Vec<ProjectFile> {
    let mut files: Vec<ProjectFile> = SDK
        .iter()
        .chain([&TOOLCHAIN_FILE])
        .map(|file| ProjectFile::new(file.path, file.in_project()))
        .collect();
    files.push(ProjectFile::new("Cargo.lock", LOCK));
    files.push(ProjectFile {
        is_run: true,
        ..ProjectFile::new(TOOLCHAIN_SCRIPT.path, TOOLCHAIN_SCRIPT.text)
    });
    files
}
