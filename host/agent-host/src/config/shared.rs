//! Content that users share: folders and buckets that keep nobody apart, and changes that make what
//! was kept apart common; and the places that the host trusts.
//!
//! Trusted are its data, its secrets, and all that it runs or reads as its operator's word. They
//! are one list, made from every key of the configuration: whoever adds a key says here whether it
//! names such a place. No component and no program of a provider writes to one, and none reads
//! what is secret. What a program of a provider is started from, and its home, have a check of
//! their own (`programs.rs`), which lets it write to its home.

use super::directories::Reached;
use super::document::{Config, Loaded};
use super::finding::{Finding, warning};
use super::left_behind::{Grants, count, either, entries};
use super::secrets::SecretSource;
use super::server::ServerConfig;
use crate::guests;
use domain::grant::{Access, BucketScope, DirectoryGrant, FolderPattern, Owner};
use llm::ProviderConfig;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The owners between whom a grant keeps content apart, the fewest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Apart {
    Nobody,
    Agents,
    Users,
}

impl Apart {
    fn of_scope(scope: BucketScope) -> Self {
        match scope {
            BucketScope::Component => Self::Nobody,
            BucketScope::Agent => Self::Agents,
            BucketScope::User | BucketScope::Session => Self::Users,
        }
    }

    fn of_folder(pattern: &FolderPattern) -> Self {
        let owners = pattern.owners().map(|owner| match owner {
            Owner::Agent => Self::Agents,
            Owner::User | Owner::Session => Self::Users,
        });
        owners.max().unwrap_or(Self::Nobody)
    }

    /// Returns those who have in common what was kept apart, with a grant that keeps fewer apart.
    fn in_common(self, now: Self) -> &'static str {
        match (self, now) {
            (Self::Users, Self::Agents) => "all users of an agent",
            (Self::Agents, _) => "all agents",
            (Self::Users | Self::Nobody, _) => "all users",
        }
    }
}

/// Finds what was kept apart by the grants before, and is common by those that follow.
pub(super) fn opened(before: &Grants, after: &Grants) -> Vec<Finding> {
    let opened = before.iter().flat_map(|(component, grant)| {
        let now = after.get(component).map(|now| now.key_value.as_slice());
        let buckets = grant.key_value.iter().filter_map(move |was| {
            let now = now?.iter().find(|now| now.bucket == was.bucket)?;
            let were = Apart::of_scope(was.scope);
            let are = Apart::of_scope(now.scope);
            let was = was.scope.as_str();
            (are < were).then(|| {
                let message = format!(
                    "the bucket `{}` was kept apart by {was}, and is common to {} from now on: its \
                     scope is `{}`. Keep `scope = \"{was}\"` to keep it apart",
                    now.bucket,
                    were.in_common(are),
                    now.scope.as_str(),
                );
                warning(format!("components.{component}.keyValue"), message)
            })
        });
        let folders = grant.directories.iter();
        let folders = folders.flat_map(move |was| folders_opened(component, was, before, after));
        buckets.chain(folders)
    });
    opened.collect()
}

/// Finds the folders by which one that was kept apart becomes common.
fn folders_opened(
    component: &str,
    was: &DirectoryGrant,
    before: &Grants,
    after: &Grants,
) -> Vec<Finding> {
    let Ok(pattern) = FolderPattern::parse(&was.path) else {
        return Vec::new();
    };
    let were = Apart::of_folder(&pattern);
    let folders = after.iter().flat_map(|(name, grant)| {
        let folders = grant.directories.iter();
        folders.map(move |now| (name, now))
    });
    let opened = folders.filter_map(|(name, now)| {
        let mut granted = before.get(name).into_iter().flat_map(|it| &it.directories);
        let is_new = !granted.any(|it| it.path == now.path);
        let other = FolderPattern::parse(&now.path).ok()?;
        let are = Apart::of_folder(&other);
        if !is_new || are >= were {
            return None;
        }
        let in_common = were.in_common(are);
        let owners = pattern.owners_text();
        let shown = common(&pattern, &other).map_or(0, |common| entries(common, |_| true));
        let message = if shown > 0 {
            format!(
                "{} of `{}` {} kept apart by {owners}, and {} common to {in_common} from now on: \
                 `{name}` is granted `{}`",
                count(shown, "entry"),
                was.path.display(),
                either(shown, "was", "were"),
                either(shown, "is", "are"),
                now.path.display(),
            )
        } else if name == component && now.at == was.at {
            format!(
                "what a tool keeps at `{}` was kept apart by {owners}, and is common to \
                 {in_common} from now on: the path is `{}`",
                was.at,
                now.path.display(),
            )
        } else {
            return None;
        };
        let keep = format!("Grant `{}` to keep it apart", was.path.display());
        let key = format!("components.{name}.directories");
        Some(warning(key, format!("{message}. {keep}")))
    });
    opened.collect()
}

/// Returns the folder with content of owners that one who sees another folder whole sees.
fn common<'a>(was: &'a FolderPattern, now: &'a FolderPattern) -> Option<&'a Path> {
    if now.is_owned() {
        None
    } else if was.base.starts_with(&now.base) {
        Some(&was.base)
    } else {
        now.base.starts_with(&was.base).then_some(&now.base)
    }
}

/// Finds folders and buckets that all users share and write, of a host with more than one user.
pub(super) fn by_users(loaded: &Loaded, users: u64) -> Vec<Finding> {
    if users < 2 && loaded.config.server.identity.is_empty() {
        return Vec::new();
    }
    let found = loaded.config.components.iter().flat_map(|(name, config)| {
        let folders = config.directories.iter().enumerate();
        let folders = folders.filter_map(move |(index, folder)| {
            let pattern = FolderPattern::parse(&folder.path).ok()?;
            let is_shared = folder.access != Access::ReadOnly && !pattern.is_owned();
            let path = folder.path.display();
            is_shared.then(|| {
                let message = format!(
                    "all users share `{path}`, and calls for one of them change what others find; \
                     grant `{}` unless they are to share it",
                    folder.path.join("{user}").display()
                );
                warning(format!("components.{name}.directories[{index}]"), message)
            })
        });
        let buckets = config.key_value.iter().enumerate();
        let buckets = buckets.filter_map(move |(index, bucket)| {
            let is_shared =
                bucket.access != Access::ReadOnly && bucket.scope == BucketScope::Component;
            is_shared.then(|| {
                let message = format!(
                    "all users share the bucket `{}`, and calls for one of them change what others \
                     find; grant it with `scope = \"user\"` unless they are to share it",
                    bucket.bucket
                );
                warning(format!("components.{name}.keyValue[{index}]"), message)
            })
        });
        folders.chain(buckets)
    });
    found.collect()
}

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
            // `programs.rs` looks at its parts.
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
