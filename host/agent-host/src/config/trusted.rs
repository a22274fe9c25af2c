//! The places that the host trusts: its data, its secrets, and all that it runs or reads as its
//! operator's word.
//!
//! They are one list, made from every key of the configuration: whoever adds a key says here
//! whether it names such a place. No component and no program of a provider writes to one, and
//! none reads what is secret. What a program of a provider is started from, and its home, have a
//! check of their own (`programs/writers.rs`), which lets it write to its home.

use super::directories::Reached;
use super::document::{Config, Loaded};
use super::secrets::SecretSource;
use super::server::ServerConfig;
use crate::guests;
use domain::grant::Access;
use llm::ProviderConfig;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A part of the file system that the host trusts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A file or folder that nobody else changes.
    Read,
    /// A folder in which nobody else changes anything.
    ReadWhole,
    /// A file that nobody else reads or changes.
    Secret,
    /// A folder in which nobody else reads or changes anything.
    SecretWhole,
}

/// The list while it is made, and the folder that is compared with it.
struct Search<'a> {
    granted: &'a Reached,
    access: Access,
    found: Option<String>,
}

impl Search<'_> {
    fn inspect(&mut self, kind: Kind, place: &Path, what: impl FnOnce() -> String) {
        let is_barred = match kind {
            Kind::Read | Kind::ReadWhole => self.access != Access::ReadOnly,
            Kind::Secret | Kind::SecretWhole => true,
        };
        if self.found.is_some() || !is_barred {
            return;
        }
        let place = Reached::by(place);
        let is_whole = matches!(kind, Kind::ReadWhole | Kind::SecretWhole);
        if place.is_in(self.granted) || is_whole && self.granted.is_in(&place) {
            self.found = Some(what());
        }
    }
}

/// Returns what a folder would give away: data of the host, a secret, or control over what the host
/// reads and runs.
pub(super) fn own_of_host(loaded: &Loaded, granted: &Path, access: Access) -> Option<String> {
    let mut search = Search {
        granted: &Reached::by(granted),
        access,
        found: None,
    };
    let data = loaded.data_dir();
    search.inspect(Kind::SecretWhole, &data, || {
        let data = Reached::by(&data).end;
        format!(
            "data of the host (`server.dataDir` is `{}`)",
            data.display()
        )
    });
    configured(loaded, &mut search);
    if let Ok(program) = std::env::current_exe() {
        search.inspect(Kind::Read, &program, || {
            "the program of the host, which it runs again to compile components".to_owned()
        });
    }
    for place in guests::places() {
        search.inspect(Kind::Read, &place, || {
            "the folder in which the host looks for its built-in components".to_owned()
        });
    }
    search.inspect(Kind::Read, &loaded.file, || {
        "the configuration itself".to_owned()
    });
    search.found
}

/// Looks at all that the configuration names. Each key stands here, so that none is forgotten.
fn configured(loaded: &Loaded, search: &mut Search<'_>) {
    let Config {
        components,
        skills,
        secrets,
        providers,
        server,
        // They name no file: what they read, they read by a component and its grant, or by a
        // secret.
        agents: _,
        require_pins: _,
        personas: _,
        default_model: _,
        default_system_prompt: _,
        models: _,
        retry: _,
        timeouts: _,
        breaker: _,
        limits: _,
        agent_tools: _,
        delegation: _,
        queue: _,
        triggers: _,
        hooks: _,
        connectors: _,
        path_rules: _,
        roles: _,
    } = &loaded.config;
    let ServerConfig {
        token_file: _,
        data_dir: _,
        listen: _,
        hosts: _,
        log: _,
        identity: _,
        limits: _,
        reload: _,
    } = server;
    search.inspect(Kind::Secret, &loaded.token_file(), || {
        "the token of the API".to_owned()
    });
    of_providers(loaded, providers, search);
    of_secrets(loaded, secrets, search);
    for (name, component) in components {
        if let Some(file) = &component.path {
            search.inspect(Kind::Read, &loaded.resolve(file), || {
                format!("the file of the component `{name}`")
            });
        }
    }
    for (name, skill) in skills {
        search.inspect(Kind::ReadWhole, &loaded.resolve(&skill.path), || {
            format!("the skill `{name}`")
        });
    }
}

/// Looks at what providers read.
fn of_providers(
    loaded: &Loaded,
    providers: &BTreeMap<String, ProviderConfig>,
    search: &mut Search<'_>,
) {
    for (name, provider) in providers {
        let ProviderConfig {
            api_key_file,
            script,
            // `programs/writers.rs` looks at its parts.
            program: _,
            kind: _,
            base_url: _,
            api_key_env: _,
            private_addresses: _,
            concurrent_max: _,
            api_key: _,
        } = provider;
        if let Some(file) = api_key_file {
            search.inspect(Kind::Secret, &loaded.resolve(file), || {
                format!("the key of the provider `{name}`")
            });
        }
        if let Some(file) = script {
            search.inspect(Kind::Read, &loaded.resolve(file), || {
                format!("the rules of the provider `{name}`")
            });
        }
    }
}

/// Looks at where the values of secrets come from.
fn of_secrets(loaded: &Loaded, secrets: &BTreeMap<String, SecretSource>, search: &mut Search<'_>) {
    for (name, source) in secrets {
        match source {
            SecretSource::File(file) => {
                search.inspect(Kind::Secret, &loaded.resolve(file), || {
                    format!("the secret `{name}`")
                });
            }
            SecretSource::Command(words) => {
                for place in named_by(loaded, words) {
                    // Where the configuration lies, others have folders beside it.
                    let is_around = Reached::by(&loaded.file).is_in(&Reached::by(&place));
                    let (kind, what) = match place.is_dir() {
                        true if is_around => (Kind::Secret, "folder"),
                        true => (Kind::SecretWhole, "folder"),
                        false => (Kind::Secret, "file"),
                    };
                    search.inspect(kind, &place, || {
                        format!("a {what} of the command that says the secret `{name}`")
                    });
                }
            }
            SecretSource::Env(_) => {}
        }
    }
}

/// Returns what the words of a command name: its program, and every argument that is a file or a
/// folder, or has one behind a `=`, such as `--identity=key`.
fn named_by(loaded: &Loaded, words: &[String]) -> Vec<PathBuf> {
    let by_name = words
        .first()
        .filter(|program| !program.contains('/'))
        .into_iter();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let searched = by_name.filter_map(|program| {
        std::env::split_paths(&path)
            .map(|folder| folder.join(program))
            .find(|file| file.is_file())
    });
    let parts = words.iter().flat_map(|word| {
        let value = word.split_once('=').map(|(_, value)| value);
        std::iter::once(word.as_str()).chain(value)
    });
    parts
        .filter(|part| !part.is_empty())
        .map(|part| loaded.resolve(Path::new(part)))
        .filter(|place| place.is_file() || place.is_dir())
        .chain(searched)
        .collect()
}
