//! `model`: the models of a running host, and whether their providers answer.

use crate::answer::{Answer, Row, lines, list, text};
use crate::cli::Model;
use crate::client::Client;
use crate::failure::{Exit, Failure};
use anyhow::anyhow;
use serde_json::Value;

/// The kind of a server that may take any name.
const COMPATIBLE: &str = "openai-compatible";
/// Names of a provider's list on a line.
const NAMES_MAX: usize = 10;

/// Runs the command.
pub(super) async fn run(client: &Client, what: Model) -> Result<Answer, Failure> {
    Ok(match what {
        Model::List => listed(&client.get("/api/models").await?),
        Model::Check => {
            let models = client.get("/api/models?refresh=true").await?;
            let lines = check_lines(&models);
            let failure = match faults(&models).as_slice() {
                [] => None,
                faults => Some(
                    Failure::new(Exit::Failed, anyhow!(faults.join("; ")))
                        .advise("agent-host doctor checks keys and addresses of providers"),
                ),
            };
            Answer::new(models, lines).failing(failure)
        }
    })
}

fn listed(models: &Value) -> Answer {
    let row = |model: &Value| {
        let cells = [
            "{/alias}",
            "{/provider}/{/model}",
            "window {/context_window}",
        ];
        Row::of(model, &cells, &[])
            .cell(price(model))
            .cell(in_list(model))
            .cell(state_of(model, models))
            .notes(model, &["{?/is_default}(default)"])
    };
    let nothing = "there are no models: add one under `models` in the configuration";
    Answer::list(models.clone(), "/models", row, nothing)
}

/// The price of a million tokens of a model.
fn price(model: &Value) -> String {
    let of = |kind: &str| {
        let pointer = format!("/price/{kind}_per_million");
        model.pointer(&pointer).and_then(Value::as_f64)
    };
    let (Some(input), Some(output)) = (of("input"), of("output")) else {
        return "no price".to_owned();
    };
    let cached = of("cached").map_or_else(String::new, |cached| format!(", {cached} cached"));
    format!("price {input} in{cached}, {output} out")
}

/// Says whether a model is in its provider's list.
fn in_list(model: &Value) -> &'static str {
    match model.get("listed").and_then(Value::as_bool) {
        Some(true) => "listed",
        Some(false) => "not listed",
        None => "no list",
    }
}

/// The state in which a model was last seen, and that of its provider if the model was not.
fn state_of(model: &Value, document: &Value) -> String {
    let provider = || Some(format!("provider {}", state(provider_of(model, document))?));
    state(model)
        .or_else(provider)
        .unwrap_or_else(|| "not seen".to_owned())
}

/// The state in which a model or a provider was last seen; none if it was not.
fn state(seen: &Value) -> Option<String> {
    lines(
        seen,
        &[("/health", "[[{/state} ({/seen_by} at {/seen_at})]]")],
    )
    .pop()
}

/// One line for each provider, and one for each model that its provider does not list.
fn check_lines(document: &Value) -> Vec<String> {
    let providers = list(document, "/providers").iter().map(|provider| {
        let name = text(provider, "/name");
        match provider.get("models").and_then(Value::as_array) {
            Some(models) if models.len() == 1 => format!("ok    {name}  lists 1 model"),
            Some(models) => format!("ok    {name}  lists {} models", models.len()),
            None if text(provider, "/error/code").is_empty() => {
                format!("ok    {name}  answers, and has no list of its models")
            }
            None => format!("fail  {name}  {}", text(provider, "/error/message")),
        }
    });
    let unlisted = unlisted(document).map(|model| {
        let taken = taken(model, document);
        format!(
            "{}  {}  {} is not in the list of {}, which has {}{}",
            taken.map_or("fail", |_| "note"),
            text(model, "/alias"),
            text(model, "/model"),
            text(model, "/provider"),
            names_of(provider_of(model, document)),
            taken.map_or_else(String::new, |why| format!("; {why}"))
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

fn provider_of<'a>(model: &Value, document: &'a Value) -> &'a Value {
    let name = text(model, "/provider");
    let mut providers = list(document, "/providers").iter();
    let provider = providers.find(|provider| text(provider, "/name") == name);
    provider.unwrap_or(&Value::Null)
}

/// Returns why a model that is not listed may answer all the same; none if it has to be listed.
/// Some servers have one model and take any name for it, such as that of llama.cpp.
fn taken(model: &Value, document: &Value) -> Option<&'static str> {
    match text(model, "/health/state") {
        "up" => Some("it has answered all the same"),
        "" if text(provider_of(model, document), "/kind") == COMPATIBLE => {
            Some("a server of this kind may take any name")
        }
        _ => None,
    }
}

/// The first names that a provider lists.
fn names_of(provider: &Value) -> String {
    let names = list(provider, "/models");
    let shown = names.iter().filter_map(Value::as_str).take(NAMES_MAX);
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        _ if names.is_empty() => "no name".to_owned(),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The providers that gave no list for a reason, and the models that are in none and have to be.
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
    let unlisted = unlisted(document)
        .filter(|model| taken(model, document).is_none())
        .map(|model| format!("model `{}` is not listed", text(model, "/alias")));
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
                  "price": { "input_per_million": 0.25, "cached_per_million": 0.025,
                             "output_per_million": 2.0 },
                  "health": { "state": "up", "seen_by": "call", "seen_at": "T" } },
                { "alias": "gone", "provider": "p", "model": "m-2", "context_window": 8,
                  "is_default": false, "listed": false, "health": null,
                  "price": { "input_per_million": 1.0, "cached_per_million": null,
                             "output_per_million": 0.0 } },
                { "alias": "other", "provider": "q", "model": "m-3", "context_window": 7,
                  "is_default": false, "listed": null, "health": null, "price": null },
            ],
            "providers": [
                { "name": "p", "models": ["m-1"], "error": null,
                  "health": { "state": "up", "seen_by": "list", "seen_at": "U" } },
                { "name": "q", "models": null, "error": null, "health": null },
                { "name": "r", "models": null,
                  "error": { "code": "model-unavailable", "message": "no connection" } },
                { "name": "s", "models": ["a", "b"], "error": null },
            ],
        })
    }

    #[test]
    fn a_server_that_may_take_any_name_passes_with_the_names_that_it_lists() {
        let names: Vec<String> = (1..=NAMES_MAX + 2)
            .map(|number| format!("n-{number}"))
            .collect();
        let model = |alias: &str, provider: &str, state: &str| {
            json!({ "alias": alias, "provider": provider, "model": "qwen", "listed": false,
                    "health": { "state": state } })
        };
        let document = json!({
            "models": [
                model("any", "llama", ""), model("seen", "openai", "up"),
                model("gone", "openai", ""), model("empty", "none", ""),
                model("refused", "llama", "refusing"),
            ],
            "providers": [
                { "name": "llama", "kind": "openai-compatible", "models": ["tiny.gguf"] },
                { "name": "openai", "kind": "openai", "models": names },
                { "name": "none", "kind": "openai-compatible", "models": [] },
            ],
        });
        let any = "a server of this kind may take any name";
        let ten = "n-1, n-2, n-3, n-4, n-5, n-6, n-7, n-8, n-9, n-10 and 2 more";
        assert_eq!(
            check_lines(&document)[3..],
            [
                format!("note  any  qwen is not in the list of llama, which has tiny.gguf; {any}"),
                format!(
                    "note  seen  qwen is not in the list of openai, which has {ten}; it has \
                     answered all the same"
                ),
                format!("fail  gone  qwen is not in the list of openai, which has {ten}"),
                format!("note  empty  qwen is not in the list of none, which has no name; {any}"),
                "fail  refused  qwen is not in the list of llama, which has tiny.gguf".to_owned(),
            ]
        );
        assert_eq!(
            faults(&document),
            [
                "model `gone` is not listed",
                "model `refused` is not listed"
            ]
        );
    }

    #[test]
    fn models_are_told_a_line_each_with_price_list_and_state_of_model_or_provider() {
        assert_eq!(
            listed(&document()).lines,
            [
                "main   p/m-1  window 9  price 0.25 in, 0.025 cached, 2 out  listed      \
                 up (call at T)           (default)",
                "gone   p/m-2  window 8  price 1 in, 0 out                   not listed  \
                 provider up (list at U)",
                "other  q/m-3  window 7  no price                            no list     not seen",
            ]
        );
    }

    #[test]
    fn a_check_tells_which_providers_fail_and_which_models_are_not_listed() {
        assert_eq!(
            check_lines(&document()),
            [
                "ok    p  lists 1 model",
                "ok    q  answers, and has no list of its models",
                "fail  r  no connection",
                "ok    s  lists 2 models",
                "fail  gone  m-2 is not in the list of p, which has m-1",
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
