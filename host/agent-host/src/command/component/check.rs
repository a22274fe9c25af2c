//! `component check`: what components ask for against what they are granted, with the line that would change it.

use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use crate::guests;
use crate::serve::{Reach, make_private, start_runtime};
use crate::terminal::{Terminal, clean};
use anyhow::anyhow;
use broker::Entry;
use domain::authority::{Reviewed, Standing, review};
use domain::grant::capability;
use runtime::Described;
use serde_json::{Value, json};

/// Interfaces that can be imported and that no grant opens.
const NEVER_OPEN: [&str; 1] = ["wasi:sockets/"];
/// Interfaces that a capability opens.
const OPENED_BY: [(&str, &str); 4] = [
    ("wasi:filesystem/", "files."),
    ("wasi:http/outgoing-handler", capability::NET_HTTP),
    ("wasi:cli/environment", capability::ENV_READ),
    ("wasi:keyvalue/", "<bucket>."),
];

/// Runs the command, for one component or for all.
pub(super) async fn run(loaded: &Loaded, named: Option<&str>, terminal: Terminal) -> Result<(), Failure> {
    let data = loaded.data_dir();
    make_private(&data)?;
    let mut entries = guests::load_all(loaded, &start_runtime(&loaded.config.limits, &data, Reach::default()).await?).await?;
    if let Some(named) = named {
        let known = entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ");
        entries.retain(|entry| entry.name == named);
        if entries.is_empty() {
            return Err(Failure::new(Exit::Usage, anyhow!("there is no component `{named}`; known are {known}")));
        }
    }
    let is_toml = loaded.file.extension().is_some_and(|extension| extension == "toml");
    for entry in &entries {
        let standings = standings(entry);
        let document = json!({
            "component": entry.name, "code": entry.component.digest().reference(), "capabilities": standings, "imports": imports(entry),
        });
        terminal.result(&document, || {
            let mut lines = vec![format!("{}@{}", entry.name, entry.component.digest().short())];
            lines.extend(standings.iter().flat_map(|reviewed| told(&entry.name, reviewed, is_toml)));
            lines.extend(imports(entry));
            lines
        });
    }
    Ok(())
}

/// How each capability stands. An agent component asks for models and agents, by what it is.
fn standings(entry: &Entry) -> Vec<Reviewed> {
    match entry.component.describes() {
        Described::Tools(tools) => review(tools, &entry.grant),
        Described::Agent(_) => {
            let of = |capability: &str, granted: bool| Reviewed {
                capability: capability.to_owned(),
                standing: if granted { Standing::Granted } else { Standing::Refused },
                tools: Vec::new(),
            };
            vec![of("models", !entry.grant.models.is_empty()), of("agents", !entry.grant.agents.is_empty())]
        }
    }
}

fn told(component: &str, reviewed: &Reviewed, is_toml: bool) -> Vec<String> {
    let Reviewed { capability, standing, tools } = reviewed;
    let asked_by = if tools.is_empty() { String::new() } else { format!("asked by {}", tools.join(", ")) };
    match standing {
        Standing::Granted => vec![format!("  granted  {capability:<16} {asked_by}").trim_end().to_owned()],
        Standing::Unused => vec![format!("  unused   {capability:<16} granted, and no tool asks for it: take it out of the grant")],
        Standing::Refused => {
            let mut lines =
                vec![format!("  refused  {capability:<16} {asked_by}; to grant it, in components.{component}:").replace(" ;", "")];
            lines.push(format!("             {}", line_for(capability, is_toml)));
            lines
        }
    }
}

/// The line of the config that grants a capability, with places to fill in.
pub(super) fn line_for(capability: &str, is_toml: bool) -> String {
    let (key, value) = match capability {
        capability::FILES_READ => ("directories", json!([{ "path": "workspace", "at": "/workspace", "access": "read-only" }])),
        capability::FILES_WRITE => ("directories", json!([{ "path": "workspace", "at": "/workspace", "access": "read-write" }])),
        capability::NET_HTTP => ("network", json!([{ "host": "example.com" }])),
        capability::ENV_READ => ("environment", json!({ "NAME": "value" })),
        capability::SECRETS_USE => {
            let slot = json!({ "header": "authorization" });
            ("secrets", json!([{ "secret": "name", "host": "api.example.com", "slot": slot, "prefix": "Bearer " }]))
        }
        "models" => ("models", json!(["*"])),
        "agents" => ("agents", json!(["*"])),
        bucket => match bucket.rsplit_once('.') {
            Some((bucket, "read")) => ("keyValue", json!([{ "bucket": bucket, "access": "read-only" }])),
            Some((bucket, "write")) => ("keyValue", json!([{ "bucket": bucket, "access": "read-write" }])),
            _ => return "nothing grants it: this host knows no such capability".to_owned(),
        },
    };
    if is_toml { format!("{key} = {}", toml(&value)) } else { format!("{}: {value}", json!(key)) }
}

/// A value as TOML writes it on one line.
pub(super) fn toml(value: &Value) -> String {
    match value {
        Value::Array(entries) => format!("[{}]", entries.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::Object(keys) => {
            let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key} = {}", toml(value))).collect();
            format!("{{ {} }}", keys.join(", "))
        }
        plain => plain.to_string(),
    }
}

/// What is said of imports that reach out.
fn imports(entry: &Entry) -> Vec<String> {
    let mut lines = Vec::new();
    for import in entry.component.imports() {
        if NEVER_OPEN.iter().any(|prefix| import.starts_with(prefix)) {
            lines.push(format!("  import   {}: no grant opens it", clean(import)));
        } else if let Some((_, capability)) = OPENED_BY.iter().find(|(prefix, _)| import.starts_with(prefix)) {
            lines.push(format!(
                "  import   {}: open to tools that declare {capability}{}",
                clean(import),
                if capability.ends_with('.') { "*" } else { "" }
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::line_for;

    #[test]
    fn the_line_that_would_grant_a_capability_is_written_as_the_config_is() {
        for (capability, expected) in [
            ("files.write", r#"directories = [{ path = "workspace", at = "/workspace", access = "read-write" }]"#),
            ("net.http", r#"network = [{ host = "example.com" }]"#),
            ("lists.write", r#"keyValue = [{ bucket = "lists", access = "read-write" }]"#),
            ("models", r#"models = ["*"]"#),
        ] {
            assert_eq!(line_for(capability, true), expected);
        }
        assert_eq!(line_for("net.http", false), r#""network": [{"host":"example.com"}]"#);
        assert_eq!(line_for("teleport", true), "nothing grants it: this host knows no such capability");
    }
}
