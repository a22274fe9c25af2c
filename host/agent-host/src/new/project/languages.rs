//! The parts of a project that depend on its language.

use super::{ProjectFile, Template};
use crate::new::embedded::{LOCK, SDK, TOOLCHAIN_FILE, TOOLCHAIN_SCRIPT, WASI, WASI_LICENCE};
use crate::new::{Kind, Language};

/// The parts of a project in one language.
#[derive(Debug)]
pub(super) struct Parts {
    /// The language's name for people.
    pub(super) name: &'static str,
    /// The built component.
    pub(super) component: &'static str,
    /// The first command in the project's folder: it tests, or installs what the others need.
    pub(super) first: &'static str,
    /// The command that builds.
    pub(super) build: &'static str,
    /// The section of README.md on tests and builds.
    pub(super) readme: &'static str,
    /// The section of README.md on folders, HTTP and more; empty for a kind of plugin that reaches
    /// nothing.
    pub(super) reach: &'static str,
    /// Rows of README.md's table of files.
    pub(super) readme_files: &'static str,
    /// Packages that the kind of plugin needs.
    pub(super) dependencies: &'static str,
    /// The files of the language.
    pub(super) templates: &'static [Template],
}

/// Templates by their places in a project and in the folder of templates.
macro_rules! templates {
    ($($path:literal = $file:literal),* $(,)?) => {
        &[$(Template {
            path: $path,
            text: include_str!(concat!("../templates/", $file)),
        }),*]
    };
}

impl Language {
    /// Returns the parts of a project with this kind of plugin; none if there is no template of it
    /// in the language.
    pub(super) fn parts(self, kind: Kind) -> Option<Parts> {
        match self {
            Self::Rust => Some(rust(kind)),
            Self::Python => python(kind),
            Self::Js => js(kind),
            Self::C => c(kind),
        }
    }

    /// Returns the files that a project in this language has of those that the program carries,
    /// beside the interface.
    pub(super) fn embedded(self, kind: Kind) -> Vec<ProjectFile> {
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
        readme: include_str!("../templates/rust/build.md"),
        // The SDK's README has it.
        reach: "",
        readme_files: match kind {
            Kind::Tool | Kind::Agent | Kind::Trigger => {
                include_str!("../templates/rust/files.md")
            }
            Kind::Connector => include_str!("../templates/rust/connector.files.md"),
        },
        dependencies: match kind {
            Kind::Tool | Kind::Trigger => {
                include_str!("../templates/rust/tool.dependencies.toml")
            }
            Kind::Agent => include_str!("../templates/rust/agent.dependencies.toml"),
            Kind::Connector => include_str!("../templates/rust/connector.dependencies.toml"),
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
        readme: include_str!("../templates/python/build.md"),
        reach: match kind {
            Kind::Tool => include_str!("../templates/python/reach.md"),
            Kind::Agent | Kind::Trigger | Kind::Connector => "",
        },
        readme_files: include_str!("../templates/python/files.md"),
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
            Kind::Tool => include_str!("../templates/js/tool.build.md"),
            Kind::Agent => include_str!("../templates/js/agent.build.md"),
            Kind::Trigger | Kind::Connector => return None,
        },
        reach: match kind {
            Kind::Tool => include_str!("../templates/js/reach.md"),
            Kind::Agent | Kind::Trigger | Kind::Connector => "",
        },
        readme_files: include_str!("../templates/js/files.md"),
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
        readme: include_str!("../templates/c/build.md"),
        reach: match kind {
            Kind::Tool => include_str!("../templates/c/reach.md"),
            Kind::Agent | Kind::Trigger | Kind::Connector => "",
        },
        readme_files: include_str!("../templates/c/files.md"),
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
            include_bytes!(concat!("../templates/c/", $path)),
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
