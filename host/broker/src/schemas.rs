//! JSON Schemas: they are compiled, and documents compared with them, on threads of their own.
//!
//! The size of a schema and a document is bounded before ([`domain::schema`]). The rest is done by
//! a few threads with stacks of their own, within a time limit. After that the caller gets an
//! error, and the thread counts as lost until it is done. The schema is remembered then, and gets
//! no other thread. When all threads are lost, nothing is validated, which is an error like any
//! other.
//!
//! `format` is an annotation here: checks of it are neither bounded nor the same for all drafts.

mod given_up;
mod threads;

use domain::schema;
use domain::tool::ToolDefinition;
use given_up::GivenUpSchemas;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use std::sync::Arc;
pub(crate) use threads::GivenUp;
use threads::Threads;

/// Number of faults that are listed for one document.
const COMPLAINTS_MAX: usize = 5;
/// Number of comparisons up to which the faults of a document are listed, each with its place.
const COMPLAINED_MAX: u64 = 50_000;
/// The largest compiled regular expression, in bytes.
const PATTERN_COMPILED_BYTES_MAX: usize = 1 << 20;
/// Approximate number of states of all regular expressions of a component's tools.
const COMPONENT_PATTERN_STATES_MAX: u64 = 4 * schema::PATTERN_STATES_MAX;
/// Maximum bytes of states that a regular expression keeps during a match.
const PATTERN_STATES_BYTES_MAX: usize = 2 << 20;

/// A schema that was checked and compiled.
#[derive(Debug, Clone)]
pub(crate) struct Schema(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: Value,
    validator: Validator,
}

/// The service that compiles schemas and compares documents with them. All clones share their
/// threads, and the memory of the schemas that were given up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schemas {
    threads: Arc<Threads>,
    given_up: Arc<GivenUpSchemas>,
}

impl Schemas {
    /// Compiles a schema.
    ///
    /// # Errors
    /// The reason why it cannot be used: it is not a schema, it exceeds a limit, it was given up
    /// before, or it could not be compiled now.
    pub(crate) async fn compile(&self, schema: &Value) -> Result<Schema, String> {
        self.try_compile(schema)
            .await
            .unwrap_or_else(|given_up| Err(given_up.to_string()))
    }

    /// Returns the faults of a document, each with its place; none when it fits.
    ///
    /// # Errors
    /// It could not be compared in time.
    pub(crate) async fn complaints(
        &self,
        schema: &Schema,
        document: Value,
    ) -> Result<Option<String>, GivenUp> {
        let compared = schema.clone();
        self.run(&schema.0.source, move || complaints(&compared, &document))
            .await
    }

    /// Returns the faults of a document by a schema that is used once. A schema that cannot be used
    /// is a fault of every document.
    ///
    /// # Errors
    /// It could not be compared in time.
    pub(crate) async fn judge(
        &self,
        schema: &Value,
        document: Value,
    ) -> Result<Option<String>, GivenUp> {
        let source = schema.clone();
        let judged = self.run(schema, move || match compiled(source) {
            Ok(schema) => complaints(&schema, &document),
            Err(unfit) => Some(format!("its schema cannot be used: {unfit}")),
        });
        judged.await
    }

    /// Compiles the schemas of a component's tools. The caller's thread blocks, as at start.
    ///
    /// # Errors
    /// The first schema that cannot be used: its tool, its part, and the reason. Or all of them:
    /// their regular expressions have too many states, or they could not be compiled now.
    pub(crate) fn compile_tools(
        &self,
        tools: &[ToolDefinition],
    ) -> Result<Vec<ToolSchemas>, String> {
        let counted = tools.to_vec();
        self.threads
            .run_and_wait(move || check_patterns(&counted))
            .unwrap_or_else(|given_up| Err(given_up.to_string()))?;
        tools.iter().map(|tool| self.compile_tool(tool)).collect()
    }

    /// Compiles the stored schemas of tools' arguments. A schema that can no longer be used refuses
    /// all arguments.
    ///
    /// # Errors
    /// They could not be compiled now.
    pub(crate) async fn compile_arguments(
        &self,
        tools: &[ToolDefinition],
    ) -> Result<Vec<(String, Result<Schema, String>)>, GivenUp> {
        let mut schemas = Vec::with_capacity(tools.len());
        for tool in tools {
            let compiled = match self.try_compile(&tool.arguments).await {
                Ok(compiled) => compiled,
                Err(before @ GivenUp::Before(_)) => Err(before.to_string()),
                Err(given_up) => return Err(given_up),
            };
            schemas.push((tool.name.clone(), compiled));
        }
        Ok(schemas)
    }

    async fn try_compile(&self, schema: &Value) -> Result<Result<Schema, String>, GivenUp> {
        let source = schema.clone();
        self.run(schema, move || compiled(source)).await
    }

    fn compile_tool(&self, tool: &ToolDefinition) -> Result<ToolSchemas, String> {
        let part = |part: &str, schema: &Value| {
            let source = schema.clone();
            self.run_and_wait(schema, move || compiled(source))
                .unwrap_or_else(|given_up| Err(given_up.to_string()))
                .map_err(|unfit| format!("`{}.{part}`: {unfit}", tool.name))
        };
        Ok(ToolSchemas {
            arguments: part("arguments", &tool.arguments)?,
            results: tool
                .results
                .as_ref()
                .map(|schema| part("results", schema))
                .transpose()?,
        })
    }

    /// Has work done with a schema, unless that was given up before.
    async fn run<T: Send + 'static>(
        &self,
        schema: &Value,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, GivenUp> {
        self.given_up.check(schema)?;
        let done = self.threads.run(work).await;
        self.remember(schema, &done);
        done
    }

    /// The same, while the caller's thread blocks.
    fn run_and_wait<T: Send + 'static>(
        &self,
        schema: &Value,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, GivenUp> {
        self.given_up.check(schema)?;
        let done = self.threads.run_and_wait(work);
        self.remember(schema, &done);
        done
    }

    fn remember<T>(&self, schema: &Value, done: &Result<T, GivenUp>) {
        if matches!(done, Err(GivenUp::TooLong)) {
            self.given_up.remember(schema);
        }
    }
}

/// The schemas of a tool's arguments, and of its result if it promises one.
#[derive(Debug, Clone)]
pub(crate) struct ToolSchemas {
    pub(crate) arguments: Schema,
    pub(crate) results: Option<Schema>,
}

/// Checks the regular expressions of all tools together.
fn check_patterns(tools: &[ToolDefinition]) -> Result<(), String> {
    let schemas = tools
        .iter()
        .flat_map(|tool| [Some(&tool.arguments), tool.results.as_ref()])
        .flatten();
    let states = schemas
        .map(schema::pattern_states)
        .fold(0, u64::saturating_add);
    if states > COMPONENT_PATTERN_STATES_MAX {
        return Err(format!(
            "the regular expressions of all tools come to {states} states; \
             {COMPONENT_PATTERN_STATES_MAX} at most"
        ));
    }
    Ok(())
}

fn compiled(source: Value) -> Result<Schema, String> {
    schema::check(&source).map_err(|unfit| unfit.to_string())?;
    let mut anonymous = source.clone();
    if let Value::Object(fields) = &mut anonymous {
        // Its references count from itself, not from a document that has the same name elsewhere.
        for name in ["$id", "id"] {
            if fields.get(name).is_some_and(Value::is_string) {
                fields.shift_remove(name);
            }
        }
    }
    let patterns = PatternOptions::regex()
        .size_limit(PATTERN_COMPILED_BYTES_MAX)
        .dfa_size_limit(PATTERN_STATES_BYTES_MAX);
    let validator = jsonschema::options()
        .with_pattern_options(patterns)
        .should_validate_formats(false)
        .build(&anonymous)
        .map_err(|error| error.to_string())?;
    Ok(Schema(Arc::new(Compiled { source, validator })))
}

fn complaints(schema: &Schema, document: &Value) -> Option<String> {
    let Compiled { source, validator } = &*schema.0;
    let comparisons = match schema::comparisons(source, document) {
        Ok(comparisons) => comparisons,
        Err(too_costly) => return Some(too_costly.to_string()),
    };
    if comparisons > COMPLAINED_MAX {
        // Each of a million items may be faulty, and each fault takes memory.
        let summary =
            "it does not fit its schema; it is too large for all that is wrong to be told";
        return (!validator.is_valid(document)).then(|| summary.to_owned());
    }
    let complaints: Vec<String> = validator
        .iter_errors(document)
        .take(COMPLAINTS_MAX)
        .map(|error| {
            let place = error.instance_path().to_string();
            let fault = unwanted_keys(&error, document).unwrap_or_else(|| error.to_string());
            if place.is_empty() {
                fault
            } else {
                format!("{place}: {fault}")
            }
        })
        .collect();
    (!complaints.is_empty()).then(|| complaints.join("; "))
}

/// Returns the fault of an object with keys where there may be none, which the validator does not
/// name; none of another fault.
fn unwanted_keys(error: &ValidationError<'_>, document: &Value) -> Option<String> {
    let object = document.pointer(error.instance_path().as_str())?;
    if !matches!(error.kind(), ValidationErrorKind::FalseSchema) || object == &**error.instance() {
        return None;
    }
    let keys = object.as_object()?.keys().take(COMPLAINTS_MAX);
    let keys: Vec<String> = keys.map(|key| format!("`{key}`")).collect();
    Some(format!("it takes no keys, and has {}", keys.join(", ")))
}

#[cfg(test)]
mod tests;
