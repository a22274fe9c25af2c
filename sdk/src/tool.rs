//! Tools: the trait of the `tool-plugin` world and the macro that exports it.

pub use crate::bindings::agent_plugin::agent_host::plugin::types::EffectClass;
use crate::client::ClientAction;
use crate::content::Part;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;

/// One tool as the host and models see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Its name: 1 to 64 of `a-z`, `0-9` and `_`. Unique on a host.
    pub name: String,
    /// Its description, for the model.
    pub description: String,
    /// JSON Schema (2020-12) of the arguments object.
    pub arguments: Value,
    /// JSON Schema of the result, where the tool promises one.
    pub results: Option<Value>,
    /// The host capabilities that it needs, such as `files.read`.
    pub capabilities: Vec<String>,
    /// The effect of running it again.
    pub effect: EffectClass,
    /// True if it can destroy something that the user may miss.
    pub destructive: bool,
    /// Time limit of one call, in milliseconds. The operator's limit applies when it is shorter.
    pub time_limit_ms: Option<u32>,
}

/// The caller of a tool, and the identity of the call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallContext {
    /// The calling agent, a UUID.
    pub agent_id: String,
    /// Its session, a UUID.
    pub session_id: String,
    /// The user on whose behalf.
    pub user_id: String,
    /// This operation's id. The same for every attempt and every segment of it.
    pub call_id: String,
    /// The same for every attempt of this segment. Hand it to services that accept one.
    pub idempotency_key: String,
    /// Milliseconds until the host stops this call.
    pub deadline_ms: u32,
    /// The state that an earlier segment left with [`Progress::Later`] or [`Progress::Ask`].
    pub resumed: Option<Vec<u8>>,
    /// The client's answer, when an earlier segment ended with [`Progress::Ask`].
    pub answer: Option<Value>,
}

impl CallContext {
    /// Shows the progress of the call to its watchers, and stores nothing. At most 1 KiB, ten a
    /// second; more is dropped.
    pub fn note(&self, message: &str) {
        crate::wire::note(message);
    }
}

/// The state of a call after a segment.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// It is done, and this is its result. Text over 32 KiB is kept as a blob; models see its head
    /// and its tail.
    Done(Vec<Part>),
    /// End this call, and call again after a time.
    Later {
        /// Milliseconds until then. The time survives restarts.
        after_ms: u64,
        /// The state for the next segment; 64 KiB at most.
        state: Vec<u8>,
    },
    /// End this call, and call again with the user's answer.
    Ask {
        /// The question.
        action: ClientAction,
        /// The state for the next segment; 64 KiB at most.
        state: Vec<u8>,
    },
}

/// The reason that a call failed. These are for the caller, who can act on them; a panic is a bug
/// in the tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The arguments fit the schema and still make no sense. Names the field and the fix.
    #[error("{0}")]
    InvalidArguments(String),
    /// The requested thing is not there.
    #[error("{0}")]
    NotFound(String),
    /// The host or the world refused. Deliberately carries no detail.
    #[error("not allowed")]
    Denied,
    /// Something else.
    #[error("{0}")]
    Failed(String),
    /// Busy. The same again may succeed after so many milliseconds.
    #[error("busy, try again in {0} ms")]
    RetryLater(u32),
}

impl ToolError {
    /// An argument makes no sense: which, and what would.
    #[must_use]
    pub fn invalid(field: &str, fix: impl fmt::Display) -> Self {
        Self::InvalidArguments(format!("`{field}` {fix}"))
    }
}

/// A result of a known shape: stands in the result as one text part of JSON, and its schema in the
/// tool's definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// The keyword in the schema of a tool's results that makes it a listing of artifacts.
const ARTIFACTS_MARK: &str = "x-artifact-items";

/// A thing that a component keeps for people to look at, such as an entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ArtifactItem {
    /// Its kind, such as `todo`.
    #[serde(rename = "type")]
    pub item_type: String,
    /// Its id within its kind.
    pub id: String,
    /// Its name for people.
    pub name: String,
}

/// The result of a tool that [lists artifacts](Tool::lists_artifacts).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ArtifactItems {
    /// The items; the host takes 1,000 at most.
    pub items: Vec<ArtifactItem>,
}

/// A type that a tool may return.
pub trait IntoProgress {
    /// The schema that the tool thereby promises.
    #[must_use]
    fn schema() -> Option<Value> {
        None
    }

    /// Converts the value to the call's progress.
    ///
    /// # Errors
    /// The result has no JSON form.
    fn into_progress(self) -> Result<Progress, ToolError>;
}

impl IntoProgress for Progress {
    fn into_progress(self) -> Result<Progress, ToolError> {
        Ok(self)
    }
}

impl IntoProgress for String {
    fn into_progress(self) -> Result<Progress, ToolError> {
        Ok(Progress::Done(vec![Part::Text(self)]))
    }
}

impl IntoProgress for Vec<Part> {
    fn into_progress(self) -> Result<Progress, ToolError> {
        Ok(Progress::Done(self))
    }
}

impl<T: Serialize + JsonSchema> IntoProgress for Json<T> {
    fn schema() -> Option<Value> {
        Some(schema_of::<T>())
    }

    fn into_progress(self) -> Result<Progress, ToolError> {
        let text = serde_json::to_string(&self.0)
            .map_err(|error| ToolError::Failed(format!("the result has no JSON form: {error}")))?;
        text.into_progress()
    }
}

/// The JSON Schema (2020-12) of a type, with everything in place and nothing that a model has no
/// use for: the type's own title and description are left out, those of its fields stay.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.remove("description");
    schema.to_value()
}

/// The implementation of a tool.
pub(crate) type Run = dyn Fn(&CallContext, Value) -> Result<Progress, ToolError>;

/// One tool: what it is and what it does. Its arguments are a type of the author's, whose JSON
/// Schema follows from it.
pub struct Tool {
    name: String,
    description: String,
    arguments: fn() -> Value,
    results: fn() -> Option<Value>,
    capabilities: Vec<String>,
    effect: EffectClass,
    destructive: bool,
    lists_artifacts: bool,
    time_limit_ms: Option<u32>,
    run: Box<Run>,
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("effect", &self.effect)
            .finish_non_exhaustive()
    }
}

impl Tool {
    /// A tool that runs at most once ([`EffectClass::NonIdempotent`]), needs nothing and destroys
    /// nothing, unless the builder says otherwise.
    ///
    /// `A` is a struct with `Deserialize` and `JsonSchema`; doc comments on its fields become
    /// descriptions for the model. The function returns text, parts, [`Json`] of a type of its own,
    /// or [`Progress`].
    pub fn new<A, R, F>(name: impl Into<String>, description: impl Into<String>, run: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: IntoProgress,
        F: Fn(&CallContext, A) -> Result<R, ToolError> + 'static,
    {
        let run = move |context: &CallContext, arguments: Value| {
            let arguments = serde_json::from_value::<A>(arguments).map_err(|error| {
                ToolError::InvalidArguments(format!("the arguments do not fit: {error}"))
            })?;
            run(context, arguments)?.into_progress()
        };
        Self {
            name: name.into(),
            description: description.into(),
            arguments: schema_of::<A>,
            results: R::schema,
            capabilities: Vec::new(),
            effect: EffectClass::NonIdempotent,
            destructive: false,
            lists_artifacts: false,
            time_limit_ms: None,
            run: Box::new(run),
        }
    }

    /// Declares that the tool changes nothing.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.effect = EffectClass::ReadOnly;
        self
    }

    /// Declares that running the tool twice under one key is the same as once.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.effect = EffectClass::Idempotent;
        self
    }

    /// Declares that the tool can destroy something that the user may miss.
    #[must_use]
    pub fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }

    /// Declares that the tool lists the items that the component keeps for people to look at, so
    /// that the host may call it by itself and name them in prompts. Its result is
    /// [`Json<ArtifactItems>`](ArtifactItems), it only reads, needs no argument, and asks for no
    /// capability but reading in the component's own buckets.
    #[must_use]
    pub fn lists_artifacts(mut self) -> Self {
        self.lists_artifacts = true;
        self
    }

    /// Declares that the tool needs a capability, such as `files.read`.
    #[must_use]
    pub fn needs(mut self, capability: impl Into<String>) -> Self {
        self.capabilities.push(capability.into());
        self
    }

    /// Sets the time limit of a call, in milliseconds.
    #[must_use]
    pub fn within_ms(mut self, limit: u32) -> Self {
        self.time_limit_ms = Some(limit);
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its definition, for the host.
    #[must_use]
    pub fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name.clone(),
            description: self.description.clone(),
            arguments: (self.arguments)(),
            results: self.marked((self.results)()),
            capabilities: self.capabilities.clone(),
            effect: self.effect,
            destructive: self.destructive,
            time_limit_ms: self.time_limit_ms,
        }
    }

    /// Returns the schema of its results with the mark of a listing, if it is one.
    fn marked(&self, results: Option<Value>) -> Option<Value> {
        let mut results = results?;
        if let Some(schema) = results.as_object_mut().filter(|_| self.lists_artifacts) {
            schema.insert(ARTIFACTS_MARK.to_owned(), Value::Bool(true));
        }
        Some(results)
    }

    /// Runs one call.
    ///
    /// # Errors
    /// The error that the tool returns, or [`ToolError::InvalidArguments`] when the arguments do
    /// not fit its type.
    pub fn call(&self, context: &CallContext, arguments: Value) -> Result<Progress, ToolError> {
        (self.run)(context, arguments)
    }
}

/// A component that offers tools: short calls, each on a fresh instance with exactly what the
/// operator granted and the calling agent may use.
pub trait Tools {
    /// The tools that there are, 128 at most. Must not depend on anything but the code: it is asked
    /// with no capability at all.
    fn tools(&self) -> Vec<Tool>;
}

/// Calls one of the tools by name.
///
/// # Errors
/// The error that the tool returns, or [`ToolError::NotFound`] when there is no such tool.
pub fn call_by_name(
    tools: &(impl Tools + ?Sized),
    context: &CallContext,
    name: &str,
    arguments: Value,
) -> Result<Progress, ToolError> {
    let offered = tools.tools();
    match offered.iter().find(|tool| tool.name() == name) {
        Some(tool) => tool.call(context, arguments),
        None => {
            let names: Vec<&str> = offered.iter().map(Tool::name).collect();
            Err(ToolError::NotFound(format!(
                "there is no tool `{name}` here, only {}",
                names.join(", ")
            )))
        }
    }
}

/// Makes this crate a tool component: `export_tools!(Clock);` with any expression that yields
/// [`Tools`]. Once per crate. The component carries a [manifest](crate::manifest) with the version,
/// the authors, the licence and the homepage of the crate's `Cargo.toml`, and with the grants that
/// it would like: `export_tools!(Clock, wants: [host("time.example.com", "asks for the time")]);`,
/// by the names of the functions of [`Want`](crate::manifest::Want).
///
/// The crate needs `crate-type = ["cdylib", "rlib"]` and is built for `wasm32-wasip2`; for every
/// other target the macro only checks the type, so that `cargo test` and `cargo clippy` work as in
/// any crate.
#[macro_export]
macro_rules! export_tools {
    ($tools:expr $(,)?) => {
        $crate::export_tools!($tools, wants: []);
    };
    ($tools:expr, wants: [$($wants:tt)*] $(,)?) => {
        $crate::write_manifest!($($wants)*);
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct ToolPlugin;
            impl $crate::wire::ToolExports for ToolPlugin {
                fn describe() -> $crate::wire::WireDefinitions {
                    $crate::wire::describe_tools(&$tools)
                }
                fn call(
                    context: $crate::wire::WireContext,
                    name: ::std::string::String,
                    arguments: ::std::string::String,
                ) -> $crate::wire::WireProgress {
                    $crate::wire::call_tool(&$tools, context, &name, &arguments)
                }
            }
            $crate::bindings::tool_plugin::export_tool_plugin!(
                ToolPlugin with_types_in $crate::bindings::tool_plugin
            );
        };
        #[cfg(not(target_family = "wasm"))]
        const _: fn() = || {
            fn offers_tools(_: &impl $crate::Tools) {}
            offers_tools(&$tools);
        };
    };
}

/// Returns the path of a granted folder, by its mount point: `at` in the grant, such as `/notes`.
///
/// In a component that is the mount point itself. In a native test it is the temporary folder that
/// the test granted with [`harness::grant_folder`](crate::harness::grant_folder). What a call that
/// fails wrote to a folder stays there, unlike what it wrote to a bucket.
///
/// # Panics
/// In a native test alone: when the test granted no such folder, or the tool of the call declares
/// neither `files.read` nor `files.write`. In a component, [`std::fs`] fails below a path that is
/// not granted.
#[must_use]
pub fn folder(at: &str) -> PathBuf {
    #[cfg(target_family = "wasm")]
    return PathBuf::from(at);
    #[cfg(not(target_family = "wasm"))]
    crate::harness::granted_folder(at)
}

#[cfg(test)]
mod tests;
