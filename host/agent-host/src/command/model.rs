//! `model`: the models of a running host, and whether their providers answer.

use crate::cli::Model;
use crate::client::Client;
use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use crate::fields::{is_true, list, number, text};
use crate::terminal::Terminal;
use anyhow::anyhow;
use serde_json::Value;

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Model, terminal: Terminal) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    match what {
        Model::List => {
            let models = client.get("/api/models").await?;
            terminal.result(&models, || models_lines(&models));
            if list(&models, "/models").is_empty() {
                terminal.notice("there are no models: add one under `models` in the configuration");
            }
            Ok(())
        }
        Model::Check => {
            let models = client.get("/api/models?refresh=true").await?;
            terminal.result(&models, || check_lines(&models));
            match faults(&models).as_slice() {
                [] => Ok(()),
                faults => Err(Failure::new(Exit::Failed, anyhow!(faults.join("; ")))
                    .advise("agent-host doctor checks keys and addresses of providers")),
            }
        }
    }
}

/// One line for each model.
fn models_lines(document: &Value) -> Vec<String> {
    let line = |model: &Value| {
        let default = if is_true(model, "/is_default") {
            "  (default)"
        } else {
            ""
        };
        format!(
            "{}  {}/{}  window {}{}{default}",
            text(model, "/alias"),
            text(model, "/provider"),
            text(model, "/model"),
            number(model, "/context_window"),
            state(model)
        )
    };
    list(document, "/models").iter().map(line).collect()
}

/// The state of a model or a provider, if it was seen.
fn state(seen: &Value) -> String {
    match text(seen, "/health/state") {
        "" => String::new(),
        state => format!(
            "  {state} ({} at {})",
            text(seen, "/health/seen_by"),
            text(seen, "/health/seen_at")
        ),
    }
}

/// One line for each provider, and one for each model that its provider does not list.
fn check_lines(document: &Value) -> Vec<String> {
    let providers = list(document, "/providers").iter().map(|provider| {
        let name = text(provider, "/name");
        match provider.get("models").and_then(Value::as_array) {
            Some(models) => format!("ok    {name}  lists {} models", models.len()),
            None if text(provider, "/error/code").is_empty() => {
                format!("ok    {name}  answers, and has no list of its models")
            }
            None => format!("fail  {name}  {}", text(provider, "/error/message")),
        }
    });
    let unlisted = unlisted(document).map(|model| {
        format!(
            "fail  {}  {} is not in the list of {}",
            text(model, "/alias"),
            text(model, "/model"),
            text(model, "/provider")
        )
    });
    providers.chain(unlisted).collect()
}

/// The models that their providers do not list.
fn unlisted(document: &Value) -> impl Iterator<Item = &Value> {
    list(document, "/models")
        .iter()
        .filter(|model| model.get("listed") == Some(&Value::Bool(false)))
}

/// The providers that gave no list for a reason, and the models that are in none.
fn faults(document: &Value) -> Vec<String> {
    let failing = list(document, "/providers")
        .iter()
        .filter(|provider| !text(provider, "/error/code").is_empty())
        .map(|provider| {
            format!(
                "provider `{}` does not answer well",
                text(provider, "/name")
            )
        });
    let unlisted =
        unlisted(document).map(|model| format!("model `{}` is not listed", text(model, "/alias")));
    failing.chain(unlisted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document() -> Value {
        json!({
            "models": [
                { "alias": "main", "provider": "p", "model": "m-1", "context_window": 9,
                  "is_default": true, "listed": true,
                  "health": { "state": "up", "seen_by": "call", "seen_at": "T" } },
                { "alias": "gone", "provider": "p", "model": "m-2", "context_window": 8,
                  "is_default": false, "listed": false, "health": null },
            ],
            "providers": [
                { "name": "p", "models": ["m-1"], "error": null },
                { "name": "q", "models": null, "error": null },
                { "name": "r", "models": null,
                  "error": { "code": "model-unavailable", "message": "no connection" } },
            ],
        })
    }

    #[test]
    fn models_are_told_a_line_each_with_their_state() {
        assert_eq!(
            models_lines(&document()),
            [
                "main  p/m-1  window 9  up (call at T)  (default)",
                "gone  p/m-2  window 8"
            ]
        );
    }

    #[test]
    fn a_check_tells_which_providers_fail_and_which_models_are_not_listed() {
        assert_eq!(
            check_lines(&document()),
            [
                "ok    p  lists 1 models",
                "ok    q  answers, and has no list of its models",
                "fail  r  no connection",
                "fail  gone  m-2 is not in the list of p",
            ]
        );
        assert_eq!(
            faults(&document()),
            [
                "provider `r` does not answer well",
                "model `gone` is not listed"
            ]
        );
    }
}
