//! Answers of the host beside its description: each has a status, a media type and a body as the
//! description of its operation says.

use super::host::Answer;
use crate::routes::description;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The description, and the validators that were made from it so far.
struct Described {
    document: Value,
    /// By pointer to a schema.
    validators: Mutex<HashMap<String, Arc<jsonschema::Validator>>>,
}

impl Described {
    fn get() -> &'static Self {
        static DESCRIBED: OnceLock<Described> = OnceLock::new();
        DESCRIBED.get_or_init(|| Self {
            document: description(),
            validators: Mutex::default(),
        })
    }

    /// Returns the path that a request is at, and the description of its operation.
    fn operation(&self, method: &str, path: &str) -> Option<(&str, &Value)> {
        let path = path.split('?').next().unwrap_or_default();
        let path = path.strip_suffix('/').unwrap_or(path);
        let given: Vec<&str> = path.split('/').collect();
        let fits = |own: &str| {
            let own: Vec<&str> = own.split('/').collect();
            let same = |(own, given): (&&str, &&str)| own.starts_with('{') || own == given;
            own.len() == given.len() && own.iter().zip(&given).all(same)
        };
        let paths = self.document["paths"].as_object().unwrap();
        let mut at: Vec<&String> = paths.keys().filter(|own| fits(own)).collect();
        // A name that stands there comes before one that is given.
        at.sort_by_key(|own| own.matches('{').count());
        let item = *at.first()?;
        let operation = paths[item].get(method.to_lowercase())?;
        Some((item, operation))
    }

    fn validator(&self, pointer: &str) -> Arc<jsonschema::Validator> {
        let mut validators = self
            .validators
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let validator = validators.entry(pointer.to_owned()).or_insert_with(|| {
            let schema = json!({
                "allOf": [self.document.pointer(pointer)],
                "components": self.document["components"],
            });
            let options = jsonschema::options().should_validate_formats(true);
            Arc::new(options.build(&schema).unwrap())
        });
        Arc::clone(validator)
    }
}

/// Checks an answer to a request.
///
/// # Panics
/// When it is not as the description says.
pub(super) fn check(method: &str, path: &str, answer: &Answer) {
    let described = Described::get();
    let Some((item, operation)) = described.operation(method, path) else {
        return;
    };
    let status = answer.status.to_string();
    let responses = operation["responses"].as_object().unwrap();
    let known = responses.get(&status);
    assert!(
        known.is_some() || answer.status >= 400,
        "{method} {path}: {status} is not described"
    );
    let key = if known.is_some() { &status } else { "default" };
    let content = responses[key]["content"].as_object();
    if answer.body.is_empty() || content.is_none() {
        return;
    }
    let media_type = answer.media_type();
    let content = content.unwrap();
    assert!(
        content.contains_key(&media_type) || content.contains_key("*/*"),
        "{method} {path}: {status} has the media type `{media_type}`"
    );
    if !media_type.ends_with("json") {
        return;
    }
    let escaped = |text: &str| text.replace('~', "~0").replace('/', "~1");
    let pointer = format!(
        "/paths/{}/{}/responses/{key}/content/{}/schema",
        escaped(item),
        method.to_lowercase(),
        escaped(&media_type)
    );
    let body = answer.json();
    let errors: Vec<String> = described
        .validator(&pointer)
        .iter_errors(&body)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{method} {path}: {errors:#?}\n{body}");
}
