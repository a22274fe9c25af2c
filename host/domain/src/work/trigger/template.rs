//! Templates of messages: an operator's text with a few variables.
//!
//! A variable is `{{`, a path and `}}`. The template language has nothing else: no blocks, no
//! filters, no functions, no arithmetic, and no includes. The syntax is checked when a trigger is
//! defined, so that it cannot fail when the trigger is fired.

use super::{MESSAGE_BYTES_MAX, SpecFault, TEMPLATE_BYTES_MAX, TEMPLATE_VARIABLES_MAX};
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
    check(field, template)?;
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

// The syntax of variables: `{{`, a path from one of the few roots, `}}`.

/// The allowed continuation of a root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// Nothing: it is a value.
    Nothing,
    /// `.id`.
    Id,
    /// One name, if any.
    Name,
    /// Any path.
    Path,
}

const ROOTS: [(&str, Follows); 7] = [
    ("now", Follows::Nothing),
    ("path", Follows::Nothing),
    ("agent", Follows::Id),
    ("trigger", Follows::Id),
    ("headers", Follows::Name),
    ("query", Follows::Name),
    ("payload", Follows::Path),
];

/// The valid forms of variables, as a fix.
const FIX: &str = "write variables as `{{now}}`, `{{path}}`, `{{agent.id}}`, `{{trigger.id}}`, \
                   `{{headers.x}}`, `{{query.x}}` or `{{payload.a.b[0]}}`";
/// Characters of a variable that an error repeats.
const SHOWN_CHARS_MAX: usize = 64;
/// Digits of an index in a list.
const DIGITS_MAX: usize = 9;

/// Checks that a template's variables are valid, each from one of the roots.
fn check(field: &str, template: &str) -> Result<(), SpecFault> {
    let mut rest = template;
    let mut count = 0;
    while let Some(at) = rest.find('{') {
        let found = rest.get(at..).unwrap_or_default();
        rest = match found.as_bytes().get(1) {
            Some(b'{') => {
                count += 1;
                after_variable(field, found)?
            }
            Some(sign @ (b'%' | b'#')) => {
                let message = format!("has `{{{}` in it, which is no variable", char::from(*sign));
                return Err(SpecFault::new(field, message, FIX));
            }
            _ => found.get(1..).unwrap_or_default(),
        };
    }
    if count > TEMPLATE_VARIABLES_MAX {
        let message = format!("has {count} variables");
        let fix = format!("write at most {TEMPLATE_VARIABLES_MAX}");
        return Err(SpecFault::new(field, message, fix));
    }
    Ok(())
}

/// The template after a variable at its beginning.
fn after_variable<'a>(field: &str, found: &'a str) -> Result<&'a str, SpecFault> {
    let mut scan = Scan(found.get(2..).unwrap_or_default());
    match scan.variable() {
        Ok(()) => Ok(scan.0),
        Err(why) => {
            let end = found.find("}}").map_or(found.len(), |end| end + 2);
            let shown = found.get(..end).unwrap_or(found);
            let shown: String = shown.chars().take(SHOWN_CHARS_MAX).collect();
            let message = format!("has `{}` in it: {why}", shown.escape_debug());
            Err(SpecFault::new(field, message, FIX))
        }
    }
}

/// The unread rest of a template.
struct Scan<'a>(&'a str);

impl<'a> Scan<'a> {
    fn variable(&mut self) -> Result<(), String> {
        self.space();
        let root = self.name().ok_or("it names no variable")?;
        let known = ROOTS.iter().find(|(name, _)| *name == root);
        let (_, follows) = known.ok_or_else(|| format!("there is no `{root}`"))?;
        let mut parts = 0;
        let mut is_id = false;
        while let Some(part) = self.part()? {
            parts += 1;
            is_id = part == Part::Name("id");
        }
        let fits = match follows {
            Follows::Nothing => parts == 0,
            Follows::Id => parts == 1 && is_id,
            Follows::Name => parts <= 1,
            Follows::Path => true,
        };
        if !fits {
            return Err(match follows {
                Follows::Nothing => format!("nothing can follow on `{root}`"),
                Follows::Id => format!("only `{root}.id` is there"),
                Follows::Name | Follows::Path => format!("one name can follow on `{root}`"),
            });
        }
        self.space();
        if self.take("}}") {
            return Ok(());
        }
        if self.0.starts_with('-') && !self.0.starts_with("-}}") {
            return Err(format!(
                "a name with `-` stands in brackets, such as `{root}[\"x-event\"]`, or with `_` \
                 for it"
            ));
        }
        Err("only a path can stand between `{{` and `}}`".to_owned())
    }

    /// The next part of a path: `.name`, `[0]` or `["name"]`.
    fn part(&mut self) -> Result<Option<Part<'a>>, String> {
        if self.take(".") {
            let name = self.name().ok_or("a name has to follow on `.`")?;
            return Ok(Some(Part::Name(name)));
        }
        if !self.take("[") {
            return Ok(None);
        }
        let part = if let Some(quote) = self.0.chars().next().filter(|sign| "\"'".contains(*sign)) {
            let quoted = self.0.get(1..).unwrap_or_default();
            let end = quoted.find(quote).ok_or("a quote is not closed")?;
            let name = quoted.get(..end).unwrap_or_default();
            if name.contains(['\\', '\n', '{', '}']) {
                return Err("a quoted name has no `\\`, no braces and no line's end".to_owned());
            }
            self.0 = quoted.get(end + 1..).unwrap_or_default();
            Part::Name(name)
        } else {
            let end = self.0.find(|sign: char| !sign.is_ascii_digit());
            let (digits, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
            if digits.is_empty() || digits.len() > DIGITS_MAX {
                return Err("a number or a quoted name has to follow on `[`".to_owned());
            }
            self.0 = rest;
            Part::Place
        };
        if self.take("]") {
            Ok(Some(part))
        } else {
            Err("`]` is missing".to_owned())
        }
    }

    /// A name: letters of ASCII, digits and `_`, without a digit at its beginning.
    fn name(&mut self) -> Option<&'a str> {
        let end = self
            .0
            .find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
        let (name, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        let is_name = name.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_');
        is_name.then(|| {
            self.0 = rest;
            name
        })
    }

    fn take(&mut self, text: &str) -> bool {
        match self.0.strip_prefix(text) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }
}

#[derive(PartialEq, Eq)]
enum Part<'a> {
    Name(&'a str),
    Place,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn fill(template: &str, payload: &serde_json::Value) -> Result<String, TemplateError> {
        let headers = [
            ("x-event".to_owned(), "push".to_owned()),
            ("x-event".to_owned(), "second".to_owned()),
        ];
        let query = [("page".to_owned(), "2".to_owned())];
        render(
            template,
            &Variables {
                now: Timestamp(1_700_000_000_123),
                path: "a/b",
                agent_id: "agent-1",
                trigger_id: "hub",
                headers: &headers,
                query: &query,
                payload,
            },
        )
    }

    #[test]
    fn variables_are_filled_in() {
        let payload = json!({
            "a": { "b": [{ "c": "deep" }, 2] },
            "z": 1, "y": true, "n": null, "f": 1.5, "big": u64::MAX,
            "with-hyphen": "h",
            "text": "<b>{{now}} & \"x\"</b>",
            "items": [1, "two", null],
        });
        for (template, expected) in [
            ("", ""),
            ("plain } { text\n", "plain } { text\n"),
            ("{{now}}", "2023-11-14T22:13:20.123Z"),
            (
                "{{ path }}|{{agent.id}}|{{ trigger.id }}",
                "a/b|agent-1|hub",
            ),
            (
                "{{headers.x_event}} {{headers[\"x-event\"]}} {{headers['X-Event']}}",
                "push push push",
            ),
            ("{{query.page}}{{query.other}}", "2"),
            ("{{payload.a.b[0].c}}", "deep"),
            ("{{payload[\"a\"]['b'][1]}}", "2"),
            ("{{payload.a}}", r#"{"b":[{"c":"deep"},2]}"#),
            ("{{payload.items}}", r#"[1,"two",null]"#),
            (
                "{{payload.z}} {{payload.y}} {{payload.n}}|{{payload.f}}",
                "1 true |1.5",
            ),
            ("{{payload.big}}", "18446744073709551615"),
            ("{{payload[\"with-hyphen\"]}}", "h"),
            ("{{payload.text}}", "<b>{{now}} & \"x\"</b>"),
            (
                "[{{payload.missing}}{{payload.missing.deeper[3].x}}{{payload.z.w}}]",
                "[]",
            ),
            ("{{payload.items[7]}}", ""),
            ("{{payload.items.length}}{{payload.keys}}", ""),
            ("{{headers}}", r#"{"x-event":"push"}"#),
            ("{{query}}", r#"{"page":"2"}"#),
        ] {
            assert_eq!(
                fill(template, &payload).as_deref(),
                Ok(expected),
                "{template}"
            );
        }
        assert_eq!(fill("{{payload}}", &json!("text")).as_deref(), Ok("text"));
        assert_eq!(fill("{{payload.a}}", &json!([1])).as_deref(), Ok(""));
    }

    #[test]
    fn nothing_of_the_template_language_is_there_but_variables() {
        for template in [
            "{{",
            "{{}}",
            "{{ now",
            "{{nothing}}",
            "{{payload.a | upper}}",
            "{{payload.a()}}",
            "{{range(1)}}",
            "{{1 + 1}}",
            "{{'x' * 1000000}}",
            "{{payload.a ~ payload.b}}",
            "{{payload.a if payload.b}}",
            "{{[1, 2]}}",
            "{{payload[payload.a]}}",
            "{{payload[-1]}}",
            "{{payload[1:2]}}",
            "{{payload.a.}}",
            "{{payload..a}}",
            "{{payload.a[}}",
            "{{payload['a}}",
            "{{payload['\\x41']}}",
            "{{headers.x-event}}",
            "{{now.year}}",
            "{{path[0]}}",
            "{{agent}}",
            "{{agent.name}}",
            "{{trigger.id.x}}",
            "{{headers.a.b}}",
            "{{self}}",
            "{{loop.index}}",
            "{{debug()}}",
            "{{- now -}}",
            "{% for x in payload %}{% endfor %}",
            "{% include 'x' %}",
            "{% set x = 1 %}",
            "{# a comment #}",
            "{{now}} {% raw %}",
        ] {
            let error = fill(template, &json!({})).unwrap_err();
            let text = error.to_string();
            assert!(
                matches!(error, TemplateError::Malformed(_)),
                "{template}: {text}"
            );
            assert!(
                text.contains("`message`") && text.contains("{{payload.a.b[0]}}"),
                "{text}"
            );
            assert!(check_template("message", template).is_err(), "{template}");
        }
    }

    #[test]
    fn a_header_with_a_hyphen_is_explained() {
        let fault = check_template("message", "{{headers.x-event}}").unwrap_err();
        assert!(
            fault.to_string().contains("headers[\"x-event\"]"),
            "{fault}"
        );
    }

    #[test]
    fn a_template_and_its_message_have_limits() {
        let long = json!("x".repeat(MESSAGE_BYTES_MAX));
        assert_eq!(fill("{{payload}}", &long).unwrap().len(), MESSAGE_BYTES_MAX);
        assert_eq!(fill("{{payload}}.", &long), Err(TemplateError::TooLong));
        let list = json!(["x".repeat(MESSAGE_BYTES_MAX)]);
        assert_eq!(fill("{{payload}}", &list), Err(TemplateError::TooLong));
        assert!(fill(&"x".repeat(TEMPLATE_BYTES_MAX), &json!(1)).is_ok());
        assert!(fill(&"x".repeat(TEMPLATE_BYTES_MAX + 1), &json!(1)).is_err());
        let deep = "{{payload.a.b.c[0]}}".repeat(256);
        assert!(fill(&deep, &json!({ "a": { "b": { "c": ["x"] } } })).is_ok());
        assert!(fill(&"{{now}}".repeat(257), &json!(1)).is_err());
        let path = format!("{{{{payload{}}}}}", ".a".repeat(8_000));
        assert_eq!(fill(&path, &json!({})).as_deref(), Ok(""));
    }

    proptest! {
        /// A template that was checked is filled in, whatever the payload.
        #[test]
        fn a_checked_template_does_not_fail(
            template in "([a-z{}%# ]|\\{\\{(now|path|agent\\.id|payload(\\.[a-c]|\\[[0-2]\\]){0,3})\\}\\}){0,20}",
            payload in prop_oneof![
                Just(json!({ "a": { "b": [1, { "c": null }] } })),
                Just(json!([[1, 2], { "a": true }])),
                Just(json!("text")),
                Just(json!(null)),
            ],
        ) {
            let checked = check_template("message", &template);
            prop_assert_eq!(checked.is_ok(), fill(&template, &payload).is_ok());
        }

        #[test]
        fn text_without_braces_stays_as_it_is(text in "[^{}]{0,200}") {
            prop_assert_eq!(fill(&text, &json!({})), Ok(text));
        }
    }
}
