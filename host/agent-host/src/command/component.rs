//! `component list`, `component inspect`, `component check` and `component suggest`.

mod check;
mod described;
mod lines;
mod needs;
mod suggest;
pub(crate) mod wanted;

pub(crate) use check::review;
pub(crate) use lines::Place;
pub(super) use lines::{Line, Missing};

use crate::answer::{Answer, Row, lines, serialized, table};
use crate::cli::Component;
use crate::config::locations::state_dir;
use crate::config::{BUILT_INS, ComponentConfig, LimitsConfig, Loaded};
use crate::failure::{Exit, Failure};
use crate::guests;
use crate::serve::{Reach, command_runtime, make_private, start_runtime};
use anyhow::anyhow;
use api::wire;
use broker::Entry;
use domain::grant::{DirectoryGrant, FolderPattern, Grant, GuestLimits, Owners};
use domain::shown::visible;
use domain::tool::wording::DESCRIPTION_BYTES_MAX;
use domain::user::UserId;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Runs the command.
pub(super) async fn run(
    what: Component,
    load: impl FnOnce() -> Result<Loaded, Failure>,
) -> Result<Answer, Failure> {
    Ok(match what {
        Component::List => {
            let loaded = load()?;
            let runtime = command_runtime(&loaded, Reach::default()).await?;
            let entries = guests::load_all(&loaded, &runtime).await?;
            let components: Vec<_> = entries.iter().map(wire::component).collect();
            let document = json!({ "components": components });
            Answer::new(document, table(entries.iter().map(row)))
        }
        Component::Suggest(what) => suggest::run(&load()?, &what).await?,
        Component::Check { component } => check::run(&load()?, component.as_deref()).await?,
        Component::Inspect { component } => {
            let (entry, file, place) = one(&component, load).await?;
            let lines = inspect(&entry, &file, &place);
            Answer::new(json!(wire::component(&entry)), lines)
        }
    })
}

/// A component of the configuration, or a file, which gets no grant. Of a file stays what it was
/// compiled to.
async fn one(
    named: &str,
    load: impl FnOnce() -> Result<Loaded, Failure>,
) -> Result<(Entry, PathBuf, Place), Failure> {
    let path = Path::new(named);
    if path
        .extension()
        .is_some_and(|extension| extension == "wasm")
        || path.is_file()
    {
        let cache = CacheFolder::of_files(load)?;
        let loaded = async {
            let runtime =
                start_runtime(&LimitsConfig::default(), &cache.path, Reach::default()).await?;
            guests::load_file(&runtime, path, None).await
        }
        .await;
        let component = loaded.map_err(|failure| Failure {
            error: failure.error.context(format!("cannot load `{named}`")),
            ..failure
        })?;
        return Ok((
            Entry {
                name: named.to_owned(),
                component,
                grant: Grant::default(),
                is_pinned: false,
            },
            path.to_owned(),
            Place::of_file(path),
        ));
    }
    let loaded = load()?;
    let config = configured(&loaded, named)?;
    let file = guests::locate(&loaded, named, &config)?;
    let runtime = command_runtime(&loaded, Reach::default()).await?;
    let entry = guests::load_one(&loaded, &runtime, named.to_owned(), &config).await?;
    let place = Place::in_config(&loaded, named);
    Ok((entry, file, place))
}

/// A folder whose cache is used for a file.
struct CacheFolder {
    path: PathBuf,
    /// Removed when the command ends.
    _scratch: Option<TempDir>,
}

impl CacheFolder {
    /// Returns the configuration's data folder, or the usual one where there is no configuration
    /// that can be read, or else a folder that does not last.
    fn of_files(load: impl FnOnce() -> Result<Loaded, Failure>) -> Result<Self, Failure> {
        let data = load().map_or_else(|_| state_dir(), |loaded| loaded.data_dir());
        if make_private(&data).is_ok() {
            return Ok(Self {
                path: data,
                _scratch: None,
            });
        }
        let scratch = tempfile::tempdir()?;
        Ok(Self {
            path: scratch.path().to_owned(),
            _scratch: Some(scratch),
        })
    }
}

/// Returns the configuration of a component, defaults for a built-in one without an entry.
fn configured(loaded: &Loaded, named: &str) -> Result<ComponentConfig, Failure> {
    let built_in = BUILT_INS.contains(&named);
    match loaded.config.components.get(named) {
        Some(config) => Ok(config.clone()),
        None if built_in => Ok(ComponentConfig::default()),
        None => {
            let components = loaded.config.components.keys().map(String::as_str);
            let known: BTreeSet<&str> = components.chain(BUILT_INS).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            let error = anyhow!("there is no component `{named}`; known are {known}");
            Err(Failure::new(Exit::Usage, error))
        }
    }
}

fn row(entry: &Entry) -> Row {
    let row = Row::default().cell(&entry.name);
    let row = row.cell(entry.component.digest().short());
    row.note([described::brief(entry.component.describes())])
}

fn inspect(entry: &Entry, file: &Path, place: &Place) -> Vec<String> {
    let component = &entry.component;
    let digest = component.digest();
    let pin = pin_line(&digest.to_string(), place.is_toml());
    let mut lines = vec![
        head(&entry.name, file),
        format!("  digest   {}", digest.reference()),
        format!("  pin      {pin}"),
        format!("  size     {} bytes", component.size_bytes()),
    ];
    lines.extend(described::lines(component.describes()));
    let granted = granted(&entry.grant).into_iter();
    let limits = limits(&entry.grant.limits).into_iter();
    let imports = component.imports().iter();
    lines.extend(granted.map(|granted| format!("  granted  {granted}")));
    lines.extend(limits.map(|limit| format!("  limit    {limit}")));
    lines.extend(imports.map(|import| format!("  imports  {import}")));
    lines.extend(wanted::describe(component));
    let wanted = wanted::lines(component, &wanted::as_config(&entry.grant));
    let wanted = place.describe(&wanted).into_iter();
    lines.extend(wanted.map(|line| format!("  {line}")));
    lines
}

/// Returns the name of a component and its file, which are the same for a file that was named.
fn head(name: &str, file: &Path) -> String {
    if Path::new(name) == file {
        return name.to_owned();
    }
    format!("{name} ({})", file.display())
}

/// Returns the line of the configuration that pins a component.
fn pin_line(digest: &str, is_toml: bool) -> String {
    if is_toml {
        format!("sha256 = \"{digest}\"")
    } else {
        format!("\"sha256\": \"{digest}\"")
    }
}

/// A description in which everything is seen, on one line: what is not printable is escaped.
fn seen(text: &str) -> String {
    visible(text, DESCRIPTION_BYTES_MAX)
}

/// Returns whose a granted folder is, with an example; empty for a folder that all share.
fn whose_folder(folder: &DirectoryGrant) -> String {
    let Some(pattern) = FolderPattern::parse(&folder.path)
        .ok()
        .filter(FolderPattern::is_owned)
    else {
        return String::new();
    };
    let local = UserId::local();
    // No agent and no session is meant, so that only a folder of a user alone has an example.
    let owners = Owners {
        user: local.as_str(),
        agent: "",
        session: "",
    };
    let example = pattern.names(owners).map(|names| {
        let own = names
            .iter()
            .fold(pattern.base.clone(), |path, name| path.join(name));
        format!(", such as {}", own.display())
    });
    format!(
        "; a folder for each {}{}",
        pattern.owners_text(),
        example.unwrap_or_default()
    )
}

/// Returns the granted folders for a check, one line each, with whose they are.
fn folder_lines(grant: &Grant) -> Vec<String> {
    let line = |folder: &DirectoryGrant| {
        let whose = match whose_folder(folder) {
            whose if whose.is_empty() => "; one folder for all users".to_owned(),
            whose => whose,
        };
        format!(
            "  folder   {} at {}{whose}",
            folder.path.display(),
            folder.at
        )
    };
    grant.directories.iter().map(line).collect()
}

/// The line on requests of a grant.
const REQUESTS: (&str, &str) = ("/network", "requests to {/host} ({/methods:list})");
/// The lines on what it grants beside folders, requests and the environment.
const GRANTED: [(&str, &str); 4] = [
    (
        "/keyValue",
        "bucket {/bucket} ({/access}, shared by each {/scope})",
    ),
    (
        "/secrets",
        "secret {/secret} for {/host}[[:{/port}]] \
         ([[header {/slot/header}]][[query {/slot/query}]][[path {/slot/path}]])",
    ),
    ("", "[[models {/models:list}]]"),
    ("", "[[agents {/agents:list}]]"),
];

/// Returns the contents of a grant, one line each.
pub(super) fn granted(grant: &Grant) -> Vec<String> {
    let folders = grant.directories.iter().map(|folder| {
        let bounded = if folder.has_patterns() || folder.has_quota() {
            ", within its patterns and quotas"
        } else {
            ""
        };
        format!(
            "{} at {} ({}{bounded}){}",
            folder.path.display(),
            folder.at,
            serialized(&folder.access),
            whose_folder(folder)
        )
    });
    let environment = grant.environment.keys();
    let environment = environment.map(|name| format!("environment variable {name}"));
    let document = json!(grant);
    folders
        .chain(lines(&document, &[REQUESTS]))
        .chain(environment)
        .chain(lines(&document, &GRANTED))
        .collect()
}

/// The limits that are not as when they are not written.
fn limits(limits: &GuestLimits) -> Vec<String> {
    let limits = json!(limits);
    let unwritten = json!(GuestLimits::default());
    let other = limits
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            let usual = unwritten.get(key)?;
            (value != usual).then(|| format!("{key} = {value} (otherwise {usual})"))
        });
    other.collect()
}

#[cfg(test)]
mod tests {
    use super::{granted, head, limits};
    use domain::grant::Grant;
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn the_path_of_a_file_is_told_once() {
        let file = Path::new("out/my_tool.wasm");
        assert_eq!(head("out/my_tool.wasm", file), "out/my_tool.wasm");
        assert_eq!(head("mine", file), "mine (out/my_tool.wasm)");
    }

    #[test]
    fn a_granted_folder_is_told_with_whose_it_is() {
        let grant = |path: &str| -> Grant {
            let folder = json!({ "path": path, "at": "/w", "access": "read-only" });
            serde_json::from_value(json!({ "directories": [folder] })).unwrap()
        };
        for (path, whose) in [
            ("/srv/w", "; one folder for all users"),
            (
                "/srv/{user}",
                "; a folder for each user, such as /srv/local",
            ),
            (
                "/srv/{user}/x",
                "; a folder for each user, such as /srv/local/x",
            ),
            (
                "/srv/{agent}/{session}",
                "; a folder for each agent and session",
            ),
        ] {
            assert_eq!(
                super::folder_lines(&grant(path)),
                [format!("  folder   {path} at /w{whose}")]
            );
        }
        assert_eq!(
            granted(&grant("/srv/{user}")),
            ["/srv/{user} at /w (read-only); a folder for each user, such as /srv/local"]
        );
    }

    #[test]
    fn everything_that_a_grant_is_about_is_told() {
        let grant: Grant = serde_json::from_value(json!({
            "directories": [{ "path": "/srv/work", "at": "/w", "access": "read-write", "deny": ["x"] }],
            "network": [{ "host": "api.example.com" }],
            "environment": { "LANG": "C" },
            "keyValue": [{ "bucket": "lists", "scope": "user", "access": "read-only" }],
            "secrets": [{ "secret": "key", "host": "api.example.com", "slot": { "header": "authorization" } }],
            "models": ["small", "big"],
            "agents": ["worker"],
            "limits": { "cpuMsMax": 5 },
        }))
        .unwrap();
        assert_eq!(
            granted(&grant),
            [
                "/srv/work at /w (read-write, within its patterns and quotas)",
                "requests to api.example.com (GET, HEAD)",
                "environment variable LANG",
                "bucket lists (read-only, shared by each user)",
                "secret key for api.example.com (header authorization)",
                "models small, big",
                "agents worker",
            ]
        );
        assert_eq!(limits(&grant.limits), ["cpuMsMax = 5 (otherwise 1000)"]);
        assert!(
            granted(&Grant::default()).is_empty() && limits(&Grant::default().limits).is_empty()
        );
    }
}
