//! Answers of a running host beside the schemas of its description: each is valid, and has no field
//! that is not described.

use agent_host_tests::process::{Answer, Host, Row};
use reqwest::Method;
use serde_json::{Map, Value, json};

/// The keys under which a schema is composed of others.
const COMPOSED: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// A host, its description, and what was found so far.
pub(super) struct ApiRequests<'a> {
    host: &'a Host,
    document: Value,
    /// The differences between answers and description.
    pub(super) findings: Vec<String>,
    /// Number of answers that were compared.
    pub(super) compared: usize,
}

impl<'a> ApiRequests<'a> {
    pub(super) async fn new(host: &'a Host) -> Self {
        Self {
            host,
            document: host.get("/openapi.json").await.body,
            findings: Vec::new(),
            compared: 0,
        }
    }

    /// Asks for something, compares the answer, and returns it.
    pub(super) async fn get(&mut self, path: &str) -> Value {
        self.ask(Method::GET, path, Value::Null).await
    }

    /// Sends something, compares the answer, and returns it.
    pub(super) async fn post(&mut self, path: &str, body: Value) -> Value {
        self.ask(Method::POST, path, body).await
    }

    /// Sends a request, compares the answer, and returns its body.
    pub(super) async fn ask(&mut self, method: Method, path: &str, body: Value) -> Value {
        let request = self.host.request(method.clone(), path);
        let request = match body {
            Value::Null => request,
            body => request.json(&body),
        };
        let answer = self.host.send(request).await;
        self.compare(&method, path, &answer);
        answer.body
    }

    /// Sends requests, a line each, such as `POST {agent}/archive {"fresh":true}`, in which names
    /// in braces stand for these values.
    pub(super) async fn all(&mut self, names: &[(&str, &str)], lines: &[&str]) {
        for line in lines {
            let row = Row::of(&format!("{line} => 0"), names);
            let body = row.body.unwrap_or_default();
            self.ask(row.method, &row.path, body).await;
        }
    }

    /// Compares an answer that is no problem.
    pub(super) fn compare(&mut self, method: &Method, path: &str, answer: &Answer) {
        self.compared += 1;
        let found = self.differences(method, path, answer);
        self.findings
            .extend(found.iter().map(|it| format!("{method} {path}: {it}")));
    }

    fn differences(&self, method: &Method, path: &str, answer: &Answer) -> Vec<String> {
        if answer.status >= 400 {
            return vec![format!("{} {}", answer.status, answer.body)];
        }
        let Some(operation) = self.operation(method, path) else {
            return vec!["it is not described".to_owned()];
        };
        let media_type = answer.content_type.split(';').next().unwrap();
        let content = &operation["responses"][answer.status.to_string()]["content"];
        let Some(schema) = content.get(media_type).map(|it| &it["schema"]) else {
            return vec![format!("{} {media_type}: not described", answer.status)];
        };
        let whole = json!({ "allOf": [schema], "components": self.document["components"] });
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&whole)
            .unwrap();
        let errors = validator.iter_errors(&answer.body);
        let mut found: Vec<String> = errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        self.undescribed("", &[schema], &answer.body, &mut found);
        found
    }

    /// The operation of a request. A path with a name of its own comes before one with an id.
    fn operation(&self, method: &Method, path: &str) -> Option<&Value> {
        let given: Vec<&str> = path.split('?').next()?.split('/').collect();
        let mut fitting: Vec<(&String, &Value)> = self.document["paths"]
            .as_object()?
            .iter()
            .filter(|(own, _)| {
                let own: Vec<&str> = own.split('/').collect();
                let same = |(own, given): (&&str, &&str)| own.starts_with('{') || own == given;
                own.len() == given.len() && own.iter().zip(&given).all(same)
            })
            .collect();
        fitting.sort_by_key(|(own, _)| own.matches('{').count());
        let (_, item) = fitting.first()?;
        item.get(method.as_str().to_lowercase())
    }

    /// Adds the fields of a value that no schema of it describes.
    fn undescribed(&self, at: &str, schemas: &[&Value], value: &Value, found: &mut Vec<String>) {
        let mut parts = Vec::new();
        schemas
            .iter()
            .for_each(|schema| self.collect(schema, &mut parts));
        match value {
            Value::Object(fields) => self.undescribed_fields(at, &parts, fields, found),
            Value::Array(items) => {
                let of: Vec<&Value> = parts.iter().filter_map(|part| part.get("items")).collect();
                if of.is_empty() {
                    return;
                }
                for (index, item) in items.iter().enumerate() {
                    self.undescribed(&format!("{at}/{index}"), &of, item, found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn undescribed_fields(
        &self,
        at: &str,
        parts: &[&Value],
        fields: &Map<String, Value>,
        found: &mut Vec<String>,
    ) {
        // It is said that it may have any field, or nothing is said at all.
        let is_free = |part: &&&Value| {
            part["additionalProperties"] == true
                || (part["type"].is_null() && part["properties"].is_null())
        };
        if parts.iter().any(|part| is_free(&part)) {
            return;
        }
        for (name, value) in fields {
            let of: Vec<&Value> = parts
                .iter()
                .filter_map(|part| part["properties"].get(name))
                .collect();
            if of.is_empty() {
                found.push(format!("{at}/{name} is not described"));
            } else {
                self.undescribed(&format!("{at}/{name}"), &of, value, found);
            }
        }
    }

    /// Collects the parts of which a schema is composed, references followed.
    fn collect<'b>(&'b self, schema: &'b Value, parts: &mut Vec<&'b Value>) {
        if let Some(reference) = schema["$ref"].as_str() {
            let pointer = reference.strip_prefix('#').unwrap();
            self.collect(self.document.pointer(pointer).unwrap(), parts);
            return;
        }
        let composed: Vec<&Value> = COMPOSED
            .iter()
            .filter_map(|key| schema[*key].as_array())
            .flatten()
            .collect();
        if composed.is_empty() || schema["properties"].is_object() {
            parts.push(schema);
        }
        for part in composed {
            self.collect(part, parts);
        }
    }
}
