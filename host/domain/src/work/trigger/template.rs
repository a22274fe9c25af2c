//! Templates of messages: an operator's text with a few variables.
//!
//! A variable is `{{`, a path and `}}`. The template language has nothing else: no blocks, no
//! filters, no functions, no arithmetic, and no includes. The syntax is checked when a trigger is
//! defined, so that it cannot fail when the trigger is fired.

mod syntax;
#[cfg(test)]
mod tests;

use super::{MESSAGE_BYTES_MAX, SpecFault, TEMPLATE_BYTES_MAX};
use crate::values::time::Timestamp;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Enumerator, Object, Serde, ValueKind};
use minijinja::{Environment, ErrorKind, Output, State, UndefinedBehavior, Value, context};
use std::io;
use std::sync::{Arc, LazyLock};

/// Instructions of the template engine for one message. A template has 256 variables at most, with
/// a handful of instructions each.
const FUEL: u64 = 20_000;

/// The values of the variables.
#[derive(Debug, Clone, Copy)]
pub struct Variables<'a> {
    /// `{{now}}`: the time of the trigger run, the same for every attempt.
    pub now: Timestamp,
    /// `{{path}}`: the rest of a webhook call's path, or a watched folder.
    pub path: &'a str,
    /// `{{agent.id}}`: the recipient of the message; empty if it is not known yet.
    pub agent_id: &'a str,
    /// `{{trigger.id}}`: the trigger's name.
    pub trigger_id: &'a str,
    /// `{{headers.x}}`: headers without credentials, names in lower case.
    pub headers: &'a [(String, String)],
    /// `{{query.x}}`: the query without credentials.
    pub query: &'a [(String, String)],
    /// `{{payload.a.b[0]}}`: the content of the trigger event.
    pub payload: &'a serde_json::Value,
}

/// The reason why a template makes no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It is malformed.
    #[error(transparent)]
    Malformed(#[from] SpecFault),
    /// The message is too long.
    #[error(
        "the message is longer than {MESSAGE_BYTES_MAX} bytes with its variables; name the parts \
         of the payload that it needs"
    )]
    TooLong,
    /// The engine gave it up.
    #[error("the template cannot be filled in: {0}")]
    Engine(String),
}

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::empty();
    engine.set_undefined_behavior(UndefinedBehavior::Chainable);
    let mut syntax = SyntaxConfig::builder();
    syntax.keep_trailing_newline(true);
    if let Ok(syntax) = syntax.build() {
        engine.set_syntax(syntax);
    }
    engine.set_fuel(Some(FUEL));
    engine.set_formatter(write_value);
    engine
});

/// Checks a template.
pub(super) fn check_template(field: &str, template: &str) -> Result<(), SpecFault> {
    if template.len() > TEMPLATE_BYTES_MAX {
        let message = format!("has {} bytes", template.len());
        let fix = format!("write at most {TEMPLATE_BYTES_MAX}");
        return Err(SpecFault::new(field, message, fix));
    }
    syntax::check(field, template)?;
    let compiled = ENGINE.template_from_str(template);
    compiled.map(drop).map_err(|error| {
        let message = format!("is no template: {error}");
        SpecFault::new(
            field,
            message,
            "write variables such as `{{payload.title}}`",
        )
    })
}

/// Fills in the variables of a template. Missing values become empty text; objects and lists become
/// JSON.
///
/// # Errors
/// It is malformed, or the message would be too long.
pub fn render(template: &str, variables: &Variables<'_>) -> Result<String, TemplateError> {
    check_template("message", template)?;
    let failed = |error: &minijinja::Error| TemplateError::Engine(error.to_string());
    let compiled = ENGINE.template_from_str(template);
    let compiled = compiled.map_err(|error| failed(&error))?;
    let values = context! {
        now => variables.now.to_string(),
        path => variables.path,
        agent => context! { id => variables.agent_id },
        trigger => context! { id => variables.trigger_id },
        headers => Value::from_object(Fields(variables.headers.to_vec())),
        query => Value::from_object(Fields(variables.query.to_vec())),
        payload => Value::from(Serde(variables.payload)),
    };
    let mut message = Bounded(Vec::new());
    match compiled.render_captured_to(values, &mut message) {
        Ok(_) => String::from_utf8(message.0).map_err(|_| TemplateError::TooLong),
        Err(error) if error.kind() == ErrorKind::WriteFailure => Err(TemplateError::TooLong),
        Err(error) => Err(failed(&error)),
    }
}

/// Writes a value into the message.
fn write_value(output: &mut Output, _: &mut State, value: &Value) -> Result<(), minijinja::Error> {
    if matches!(value.kind(), ValueKind::Undefined | ValueKind::None) {
        return Ok(());
    }
    let written = match value.as_str() {
        Some(text) => output.write_str(text),
        None => {
            let json = serde_json::to_string(value)
                .map_err(|_| minijinja::Error::from(ErrorKind::BadSerialization))?;
            output.write_str(&json)
        }
    };
    written.map_err(|_| minijinja::Error::from(ErrorKind::WriteFailure))
}

/// Headers or query parameters; the first with a name counts. `_` also stands for `-`, so that
/// `{{headers.x_event}}` finds `x-event`.
#[derive(Debug)]
struct Fields(Vec<(String, String)>);

impl Object for Fields {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.as_str()?;
        let exact = self
            .0
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(key));
        let found = exact.or_else(|| {
            let with_hyphens = key.replace('_', "-");
            let mut fields = self.0.iter();
            fields.find(|(name, _)| name.eq_ignore_ascii_case(&with_hyphens))
        });
        found.map(|(_, value)| Value::from(value.as_str()))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let mut names: Vec<Value> = Vec::new();
        for (name, _) in &self.0 {
            let name = Value::from(name.as_str());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Enumerator::Values(names)
    }
}

/// A message with a bounded length.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MESSAGE_BYTES_MAX {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
