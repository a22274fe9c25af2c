//! JSON Schemas: they are compiled, and documents compared with them, on threads of their own.
//!
//! The demands of a schema and a document are bounded before ([`domain::schema`]). The rest is done
//! by a few threads with stacks of their own, and given up when it takes too long: the caller gets
//! an error, and the thread counts as lost until it is done. When all are lost, nothing is
//! compared, which is an error like any other.

mod threads;

use domain::schema;
use domain::tool::ToolDefinition;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
/// Bytes of states that a regular expression keeps while it is matched.
const PATTERN_STATES_BYTES_MAX: usize = 2 << 20;

/// A schema that was checked and compiled.
#[derive(Debug, Clone)]
pub(crate) struct Schema(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: Value,
    validator: Validator,
    /// True once a comparison with it was given up.
    given_up: AtomicBool,
}

/// The service that compiles schemas and compares documents with them. All clones share their
/// threads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schemas(Arc<Threads>);

impl Schemas {
    /// Compiles a schema.
    ///
    /// # Errors
    /// The reason why it cannot be used: it is no schema, it is over a limit, or it could not be
    /// compiled now.
    pub(crate) async fn compile(&self, schema: &Value) -> Result<Schema, String> {
        let schema = schema.clone();
        self.0
            .run(move || compiled(schema))
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
        // A schema that took a thread from everybody does not get another one.
        if schema.0.given_up.load(Ordering::Relaxed) {
            return Err(GivenUp::TooLong);
        }
        let compared = schema.clone();
        let done = self.0.run(move || complaints(&compared, &document)).await;
        if matches!(done, Err(GivenUp::TooLong)) {
            schema.0.given_up.store(true, Ordering::Relaxed);
        }
        done
    }

    /// Returns the faults of a document by a schema that is used once. A schema that cannot be used
    /// is a fault of every document.
    pub(crate) async fn judge(
        &self,
        schema: &Value,
        document: Value,
    ) -> Result<Option<String>, GivenUp> {
        let schema = schema.clone();
        let judged = self.0.run(move || match compiled(schema) {
            Ok(schema) => complaints(&schema, &document),
            Err(unfit) => Some(format!("its schema cannot be used: {unfit}")),
        });
        judged.await
    }

    /// Compiles the schemas of a component's tools. The caller's thread waits for it, as at start.
    ///
    /// # Errors
    /// The first schema that cannot be used: its tool, its part, and the reason. Or all of them:
    /// their regular expressions have too many states, or they could not be compiled now.
    pub(crate) fn compile_tools(
        &self,
        tools: &[ToolDefinition],
    ) -> Result<Vec<ToolSchemas>, String> {
        let tools = tools.to_vec();
        self.0
            .run_and_wait(move || compiled_tools(&tools))
            .unwrap_or_else(|given_up| Err(given_up.to_string()))
    }

    /// Compiles the schemas of tools' arguments, as they were stored. One that cannot be used any
    /// more refuses all arguments.
    ///
    /// # Errors
    /// They could not be compiled now.
    pub(crate) async fn compile_arguments(
        &self,
        tools: &[ToolDefinition],
    ) -> Result<Vec<(String, Result<Schema, String>)>, GivenUp> {
        let arguments: Vec<(String, Value)> = tools
            .iter()
            .map(|tool| (tool.name.clone(), tool.arguments.clone()))
            .collect();
        self.0
            .run(move || {
                arguments
                    .into_iter()
                    .map(|(name, schema)| (name, compiled(schema)))
                    .collect()
            })
            .await
    }
}

/// The schemas of a tool's arguments, and of its result if it promises one.
#[derive(Debug, Clone)]
pub(crate) struct ToolSchemas {
    pub(crate) arguments: Schema,
    pub(crate) results: Option<Schema>,
}

impl ToolSchemas {
    fn new(tool: &ToolDefinition) -> Result<Self, String> {
        let part = |part: &str, schema: &Value| {
            compiled(schema.clone()).map_err(|unfit| format!("`{}.{part}`: {unfit}", tool.name))
        };
        Ok(Self {
            arguments: part("arguments", &tool.arguments)?,
            results: tool
                .results
                .as_ref()
                .map(|schema| part("results", schema))
                .transpose()?,
        })
    }
}

fn compiled_tools(tools: &[ToolDefinition]) -> Result<Vec<ToolSchemas>, String> {
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
    tools.iter().map(ToolSchemas::new).collect()
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
        .build(&anonymous)
        .map_err(|error| error.to_string())?;
    Ok(Schema(Arc::new(Compiled {
        source,
        validator,
        given_up: AtomicBool::new(false),
    })))
}

fn complaints(schema: &Schema, document: &Value) -> Option<String> {
    let Compiled {
        source, validator, ..
    } = &*schema.0;
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
            if place.is_empty() {
                error.to_string()
            } else {
                format!("{place}: {error}")
            }
        })
        .collect();
    (!complaints.is_empty()).then(|| complaints.join("; "))
}

#[cfg(test)]
mod tests;
