//! Paths in the configuration with a sign that only a shell replaces.

use super::document::Config;
use super::finding::{Finding, error};
use serde_json::{Value, json};
use std::path::Path;

/// The keys with a path: `*` stands for any name, `[]` for every entry. Of a command only the first
/// word is one: the others may be meant for a shell that it begins.
const PATHS: [&str; 13] = [
    "components.*.path",
    "components.*.directories.[].path",
    "skills.*.path",
    "secrets.*.file",
    "secrets.*.command",
    "providers.*.apiKeyFile",
    "providers.*.script",
    "providers.*.program.path",
    "providers.*.program.folder",
    "providers.*.program.home",
    "providers.*.program.readFolders.[]",
    "server.dataDir",
    "server.tokenFile",
];

/// Finds all paths with such a sign.
pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    let config = json!(config);
    for pattern in PATHS {
        let names: Vec<&str> = pattern.split('.').collect();
        each(&config, &names, "", &mut |key, path| {
            let message = sign(Path::new(path)).map(|sign| {
                format!(
                    "`{sign}` stands for nothing here, as no shell reads the configuration; write \
                     the whole path, such as `/home/ada/work`"
                )
            });
            findings.extend(message.map(|message| error(key, message)));
        });
    }
}

/// Calls a function with the key and the text of each value at a pattern; of a command, that of its
/// program.
fn each(value: &Value, pattern: &[&str], key: &str, found: &mut dyn FnMut(&str, &str)) {
    let below = |name: &str| match key {
        "" => name.to_owned(),
        key => format!("{key}.{name}"),
    };
    match (pattern.split_first(), value) {
        (None, Value::String(text)) => found(key, text),
        (None, Value::Array(words)) => {
            let program = words.first().and_then(Value::as_str);
            program.into_iter().for_each(|program| found(key, program));
        }
        (Some((&"[]", rest)), Value::Array(entries)) => {
            for (index, entry) in entries.iter().enumerate() {
                each(entry, rest, &format!("{key}[{index}]"), found);
            }
        }
        (Some((name, rest)), Value::Object(fields)) => {
            let named = fields.iter().filter(|(it, _)| *name == "*" || it == name);
            named.for_each(|(it, field)| each(field, rest, &below(it), found));
        }
        _ => {}
    }
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
