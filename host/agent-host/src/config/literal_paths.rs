//! Paths with a sign that a shell replaces, and this host does not: `~`, `$HOME`, `${HOME}` and
//! `%USERPROFILE%` stand for nothing in a configuration.

use super::document::Config;
use super::finding::{Finding, error};
use super::secrets::SecretSource;
use std::path::{Path, PathBuf};

/// Finds all paths with such a sign.
pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    let Config {
        components,
        skills,
        secrets,
        providers,
        server,
        ..
    } = config;
    let mut paths: Vec<(String, &PathBuf)> = Vec::new();
    for (name, component) in components {
        let file = component.path.iter();
        paths.extend(file.map(|path| (format!("components.{name}.path"), path)));
        let folders = component.directories.iter().enumerate();
        paths.extend(folders.map(|(index, folder)| {
            let key = format!("components.{name}.directories[{index}].path");
            (key, &folder.path)
        }));
    }
    let skills = skills.iter();
    paths.extend(skills.map(|(name, skill)| (format!("skills.{name}.path"), &skill.path)));
    paths.extend(secrets.iter().filter_map(|(name, source)| match source {
        SecretSource::File(path) => Some((format!("secrets.{name}.file"), path)),
        SecretSource::Env(_) | SecretSource::Command(_) => None,
    }));
    for (name, provider) in providers {
        let of = |key: &str| format!("providers.{name}.{key}");
        let file = provider.api_key_file.iter();
        paths.extend(file.map(|path| (of("apiKeyFile"), path)));
        let script = provider.script.iter();
        paths.extend(script.map(|path| (of("script"), path)));
        if let Some(program) = &provider.program {
            paths.push((of("program.path"), &program.path));
            paths.push((of("program.folder"), &program.folder));
            paths.push((of("program.home"), &program.home));
            let folders = program.read_folders.iter().enumerate();
            paths.extend(
                folders
                    .map(|(index, folder)| (of(&format!("program.readFolders[{index}]")), folder)),
            );
        }
    }
    let data = server.data_dir.iter();
    paths.extend(data.map(|path| ("server.dataDir".to_owned(), path)));
    let token = server.token_file.iter();
    paths.extend(token.map(|path| ("server.tokenFile".to_owned(), path)));
    // The other words of a command may be meant for a shell that it begins.
    let programs = secrets.iter().filter_map(|(name, source)| match source {
        SecretSource::Command(words) => {
            Some((format!("secrets.{name}.command"), Path::new(words.first()?)))
        }
        SecretSource::File(_) | SecretSource::Env(_) => None,
    });
    let paths = paths.into_iter().map(|(key, path)| (key, path.as_path()));
    let found = paths.chain(programs).filter_map(|(key, path)| {
        let sign = sign(path)?;
        let message = format!(
            "`{sign}` stands for nothing here, as no shell reads the configuration; write the \
             whole path, such as `/home/ada/work`"
        );
        Some(error(key, message))
    });
    findings.extend(found);
}

/// Returns the sign in a path that a shell would replace; none in most.
pub(super) fn sign(path: &Path) -> Option<String> {
    let text = path.to_string_lossy();
    let first = text.split('/').next().unwrap_or_default();
    if first == "~" || (first.starts_with('~') && text.contains('/')) {
        return Some(first.to_owned());
    }
    let is_of_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let word = |rest: &str| -> String { rest.chars().take_while(is_of_name).collect() };
    for (at, found) in text.match_indices(['$', '%']) {
        let rest = text.get(at + 1..).unwrap_or_default();
        let sign = match (found, rest.strip_prefix('{')) {
            ("$", Some(braced)) => {
                let name = word(braced);
                let is_closed = braced
                    .strip_prefix(&name)
                    .is_some_and(|it| it.starts_with('}'));
                is_closed.then(|| format!("${{{name}}}"))
            }
            ("$", None) => Some(word(rest))
                .filter(|name| name.starts_with(|c: char| !c.is_ascii_digit()))
                .map(|name| format!("${name}")),
            (_, _) => Some(word(rest))
                .filter(|name| !name.is_empty())
                .filter(|name| {
                    rest.strip_prefix(name)
                        .is_some_and(|it| it.starts_with('%'))
                })
                .map(|name| format!("%{name}%")),
        };
        if sign.is_some() {
            return sign;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{check, sign};
    use crate::config::Config;
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn signs_that_a_shell_replaces_are_found_and_plain_names_are_not() {
        for (path, expected) in [
            ("~/ws", Some("~")),
            ("~", Some("~")),
            ("~ada/ws", Some("~ada")),
            ("$HOME/ws", Some("$HOME")),
            ("/srv/${HOME}/ws", Some("${HOME}")),
            ("%USERPROFILE%/ws", Some("%USERPROFILE%")),
            ("/srv/ws", None),
            ("ws~", None),
            ("~backup", None),
            ("100%/of$/5$", None),
            ("users/{user}", None),
        ] {
            assert_eq!(sign(Path::new(path)).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_sign_is_an_error_at_every_key_that_has_a_path() {
        let config: Config = serde_json::from_value(json!({
            "components": { "c": {
                "path": "~/c.wasm",
                "directories": [{ "path": "$HOME/ws", "at": "/w", "access": "read-only" }],
            } },
            "skills": { "s": { "path": "~/skills" } },
            "secrets": {
                "c": { "command": ["~/bin/pass", "~/key"] },
                "d": { "command": ["sh", "-c", "cat ~/key"] },
                "k": { "file": "~/key" },
            },
            "providers": {
                "p": { "kind": "scripted", "script": "~/s.toml", "apiKeyFile": "${HOME}/key" },
            },
            "server": { "dataDir": "~/data", "tokenFile": "%TMP%/token" },
        }))
        .unwrap();
        let mut findings = Vec::new();
        check(&config, &mut findings);
        let mut keys: Vec<&str> = findings.iter().map(|it| it.key.as_str()).collect();
        keys.sort_unstable();
        assert_eq!(
            keys,
            [
                "components.c.directories[0].path",
                "components.c.path",
                "providers.p.apiKeyFile",
                "providers.p.script",
                "secrets.c.command",
                "secrets.k.file",
                "server.dataDir",
                "server.tokenFile",
                "skills.s.path",
            ]
        );
    }
}
