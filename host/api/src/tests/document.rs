//! The description as generators of clients need it: names that are unique and follow a rule, forms
//! and bounds of what is sent, nothing that is undeclared.

use super::host::Host;
use super::routes::documented;
use crate::input::POSITION_MAX;
use crate::routes::description;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The verbs with which the id of an operation begins, by method.
const VERBS: [(&str, &[&str]); 5] = [
    (
        "GET",
        &[
            "check", "compare", "download", "export", "find", "follow", "get", "list", "search",
        ],
    ),
    (
        "POST",
        &[
            "abort", "answer", "archive", "cancel", "clear", "compact", "confirm", "create",
            "fork", "hand", "import", "pause", "release", "reload", "requeue", "resume", "return",
            "route", "run", "send", "switch", "upload", "verify",
        ],
    ),
    ("PUT", &["bind", "update"]),
    ("PATCH", &["update"]),
    (
        "DELETE",
        &["cancel", "delete", "reset", "revoke", "terminate", "unbind"],
    ),
];

/// Fields with text whose names end as ids and times do, and that have no form.
const OTHER_IDS: [&str; 18] = [
    "Criterion.id",
    "ItemRecorded.item_id",
    "LegacyItem.id",
    "NewAgent.id",
    "TriggerEventWebhook.call_id",
    "PurgeRequest.agent_id",
    "SessionItem.id",
    "SnapshotMessage.tool_call_id",
    "VisitorAnswer.id",
    "VisitorMessage.id",
    "app_id",
    "event_id",
    "message_id",
    "model_id",
    "selected_panel_id",
    "service_id",
    "target_id",
    "visitor_id",
];

fn operation<'a>(document: &'a Value, method: &str, path: &str) -> &'a Value {
    &document["paths"][path][method.to_lowercase()]
}

/// The words of a name in camel case, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for letter in name.chars() {
        match words.last_mut() {
            Some(word) if !letter.is_uppercase() => word.push(letter),
            _ => words.push(letter.to_lowercase().to_string()),
        }
    }
    words
}

/// A new operation needs `operation_id = "verbResource"` in its `utoipa::path`.
#[test]
fn operation_ids_are_unique_and_made_of_a_verb_and_a_resource() {
    let document = description();
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for (method, path) in documented() {
        let id = operation(&document, &method, &path)["operationId"]
            .as_str()
            .unwrap_or_default();
        let words = words(id);
        let verbs = VERBS.iter().find(|(of, _)| *of == method).unwrap().1;
        assert!(
            words.len() >= 2 && verbs.contains(&words[0].as_str()),
            "{method} {path}: `{id}` is to begin with one of {verbs:?} and name a resource"
        );
        assert!(
            id.chars().all(|letter| letter.is_ascii_alphabetic()),
            "{id}"
        );
        // Generators write them in the case of their language.
        let other = seen.insert(words.join("_"), format!("{method} {path}"));
        assert_eq!(other, None, "`{id}` of {method} {path}");
    }
    for (path, method, id) in [
        ("/api/agents", "get", "listAgents"),
        ("/api/agents/{id}", "get", "getAgent"),
        ("/api/agents/{id}/sessions", "get", "listSessions"),
        ("/api/agents/{id}/sessions/{sid}", "get", "getSession"),
        (
            "/api/agents/{id}/sessions/{sid}/messages",
            "post",
            "sendMessage",
        ),
    ] {
        assert_eq!(document["paths"][path][method]["operationId"], id, "{path}");
    }
}

/// Generators of clients leave out an operation whose body is of another type.
#[test]
fn a_body_is_described_as_json_or_as_bytes() {
    let document = description();
    let mut seen = BTreeSet::new();
    for (method, path) in documented() {
        let body = &operation(&document, &method, &path)["requestBody"];
        let Some(content) = body["content"].as_object() else {
            continue;
        };
        for (media_type, described) in content {
            match media_type.as_str() {
                "application/json" => {}
                "application/octet-stream" => {
                    assert_eq!(described["schema"]["format"], "binary", "{method} {path}");
                }
                other => panic!("{method} {path}: {other}"),
            }
            seen.insert(media_type.clone());
        }
    }
    assert_eq!(seen.len(), 2, "{seen:?}");
}

#[test]
fn every_path_parameter_is_declared_and_every_tag_described() {
    let document = description();
    assert_eq!(document["servers"][0]["url"], "/");
    assert_eq!(
        document["components"]["securitySchemes"]["token"]["scheme"],
        "bearer"
    );
    let tags: BTreeSet<&str> = document["tags"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|tag| {
            tag["description"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        })
        .filter_map(|tag| tag["name"].as_str())
        .collect();
    let mut used = BTreeSet::new();
    for (method, path) in documented() {
        let operation = operation(&document, &method, &path);
        used.extend(
            operation["tags"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(Value::as_str),
        );
        let named: Vec<&str> = path
            .split('{')
            .skip(1)
            .filter_map(|rest| rest.split('}').next())
            .collect();
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let mut declared = Vec::new();
        for parameter in parameters {
            let name = parameter["name"].as_str().unwrap();
            assert!(
                parameter["description"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{method} {path}: `{name}` has no description"
            );
            if parameter["in"] == "path" {
                assert_eq!(parameter["required"], true, "{method} {path}: `{name}`");
                declared.push(name);
            }
        }
        assert_eq!(declared, named, "{method} {path}");
    }
    assert_eq!(tags, used);
}

/// The sources in a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
}

/// Two types of the same name would be one schema: whichever comes last.
#[test]
fn no_two_types_are_described_under_one_name() {
    let mut files = Vec::new();
    for layer in ["domain", "store", "llm", "broker", "edge", "api"] {
        let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        sources(&host.join(layer).join("src"), &mut files);
    }
    let mut names: BTreeMap<String, PathBuf> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut renamed = None;
        let mut is_schema = false;
        let mut derives = false;
        for line in text.lines().map(str::trim_start) {
            if line.starts_with("#[derive(") {
                (is_schema, derives, renamed) = (false, true, None);
            }
            if derives {
                is_schema |= line.contains("ToSchema");
                derives = !line.ends_with(")]");
            } else if let Some(rest) = line.strip_prefix("#[schema(as = ") {
                renamed = rest.split([',', ')']).next().map(str::to_owned);
            }
            let declared = line.split_once("struct ").or(line.split_once("enum "));
            let Some((before, after)) = declared.filter(|_| is_schema) else {
                continue;
            };
            if !(before.is_empty() || before.starts_with("pub")) || after.starts_with('$') {
                continue;
            }
            let own = after.split(|letter: char| !letter.is_alphanumeric()).next();
            let name = renamed.take().or(own.map(str::to_owned)).unwrap();
            is_schema = false;
            let other = names.insert(name.clone(), file.clone());
            assert_eq!(
                other,
                None,
                "`{name}` is described in {} too",
                file.display()
            );
        }
    }
    assert!(names.len() > 100, "the test has lost its object: {names:?}");
}

/// Checks that the fields of a schema, and of those within it, have names in `snake_case`.
fn has_snake_case(place: &str, schema: &Value) {
    match schema {
        Value::Object(parts) => {
            for (key, part) in parts {
                let fields = part.as_object().filter(|_| key == "properties");
                for field in fields.into_iter().flat_map(|fields| fields.keys()) {
                    // The states of tasks are words of the design in capitals.
                    let is_snake = !field.contains(|letter: char| letter.is_uppercase())
                        || *field == field.to_uppercase();
                    assert!(is_snake, "{place}: {field}");
                }
                has_snake_case(place, part);
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| has_snake_case(place, part)),
        _ => {}
    }
}

#[test]
fn fields_have_names_in_snake_case() {
    let document = description();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        // A trigger stands in the API as the configuration writes it.
        if name != "TriggerSpec" {
            has_snake_case(name, schema);
        }
    }
}

/// Returns whether a schema is of a text of any form.
fn is_bare_text(document: &Value, schema: &Value) -> bool {
    if let Some(of) = schema["$ref"].as_str() {
        return is_bare_text(document, document.pointer(&of[1..]).unwrap());
    }
    if let Some(parts) = schema["oneOf"].as_array() {
        return parts.iter().any(|part| is_bare_text(document, part));
    }
    let kinds = &schema["type"];
    let is_text = *kinds == "string"
        || kinds
            .as_array()
            .is_some_and(|kinds| kinds.contains(&"string".into()));
    is_text
        && ["format", "pattern", "enum", "const"]
            .iter()
            .all(|key| schema[*key].is_null())
}

#[test]
fn ids_and_times_have_their_form() {
    let document = description();
    let mut forms = BTreeSet::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let parts = schema["allOf"].as_array().into_iter().flatten();
        let properties = parts
            .chain([schema])
            .filter_map(|part| part["properties"].as_object())
            .flatten();
        for (field, schema) in properties {
            let is_one = field == "id" || field.ends_with("_id") || field.ends_with("_at");
            let place = format!("{name}.{field}");
            let is_other = OTHER_IDS.contains(&field.as_str()) || OTHER_IDS.contains(&&*place);
            assert!(
                !is_one || is_other || !is_bare_text(&document, schema),
                "{place}: {schema}"
            );
            forms.extend(schema["$ref"].as_str().map(str::to_owned));
        }
    }
    let form = |name: &str| {
        let reference = format!("#/components/schemas/{name}");
        assert!(forms.contains(&reference), "{name}");
        &document["components"]["schemas"][name]
    };
    assert_eq!(form("AgentId")["format"], "uuid");
    assert_eq!(form("Time")["format"], "date-time");
    assert_eq!(form("TurnId")["pattern"], "^[0-9a-fA-F]{64}$");
    assert_eq!(form("ContentDigest")["pattern"], "^sha256:[0-9a-fA-F]{64}$");
    assert_eq!(form("AgentRole")["enum"].as_array().unwrap().len(), 4);
    let events = document["components"]["schemas"]["Event"]["oneOf"].as_array();
    let erased = json!({ "$ref": "#/components/schemas/EventErased" });
    let kinds = events.unwrap().iter().filter(|it| **it != erased);
    assert_eq!(kinds.count(), domain::event::kinds().len());
}

/// A reference to a schema that is not there is nothing that generators can use.
#[test]
fn every_reference_leads_to_a_schema() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(
                    fields
                        .get("$ref")
                        .and_then(Value::as_str)
                        .map(str::to_owned),
                );
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = description();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 100, "{found:?}");
    for reference in found {
        assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_no_client_can_count_to_is_refused_as_described() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    let document = description();
    for (operation, path, name) in [
        ("/api/events", "/api/events".to_owned(), "after"),
        ("/api/audit", "/api/audit".to_owned(), "after"),
        (
            "/api/agents/{id}/sessions/{sid}",
            format!("/api/agents/{agent}/sessions/{session}"),
            "from",
        ),
        (
            "/api/agents/{id}/sessions/{sid}",
            format!("/api/agents/{agent}/sessions/{session}"),
            "to",
        ),
        (
            "/api/agents/{id}/sessions/{sid}/items",
            format!("/api/agents/{agent}/sessions/{session}/items"),
            "after",
        ),
    ] {
        let parameters = document["paths"][operation]["get"]["parameters"]
            .as_array()
            .unwrap();
        let described = parameters.iter().find(|it| it["name"] == name).unwrap();
        let schema = &described["schema"];
        assert_eq!(
            (&schema["minimum"], &schema["maximum"]),
            (&0.into(), &POSITION_MAX.into()),
            "{operation} {name}"
        );
        let last = host.get(&format!("{path}?{name}={POSITION_MAX}")).await;
        assert_eq!(last.status, 200, "{path} {name}: {}", last.body);
        for beyond in [POSITION_MAX + 1, 1 << 63, u64::MAX] {
            let refused = host.get(&format!("{path}?{name}={beyond}")).await;
            assert_eq!(refused.status, 400, "{path} {name}: {}", refused.body);
            let problem = refused.json();
            assert_eq!(problem["field"], format!("query:{name}"));
            assert_eq!(
                problem["detail"],
                format!(
                    "{name}: {beyond} is out of its range: it must be from 0 to {POSITION_MAX}"
                )
            );
        }
    }
    for (query, header, part) in [
        ("?after=9223372036854775808", "x: y", "query:after"),
        (
            "",
            "last-event-id: 9223372036854775808",
            "header:Last-Event-ID",
        ),
    ] {
        let path = format!("/api/agents/{agent}/stream{query}");
        let refused = host.send("GET", &path, &[header], "").await;
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert_eq!(refused.json()["field"], part);
    }
    let fork = format!("/api/agents/{agent}/sessions/{session}/fork");
    let refused = host.post(&fork, r#"{"message":9223372036854775808}"#).await;
    assert_eq!(
        (refused.status, &refused.json()["field"]),
        (422, &"/message".into())
    );
}
