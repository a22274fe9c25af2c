//! Tools on a bench: their definitions checked, their calls made by hand.

use crate::content::text_of;
use crate::harness::buckets::as_one;
use crate::harness::rules::check_definitions;
use crate::tool::{CallContext, Progress, ToolDefinition, ToolError, Tools, call_by_name};
use serde_json::Value;
use std::cell::RefCell;

/// The tools of a component, to be called by a test.
#[derive(Debug)]
pub struct Bench<T> {
    tools: T,
    context: CallContext,
}

impl<T: Tools> Bench<T> {
    /// Puts tools on the bench.
    ///
    /// # Panics
    /// When a definition is not one that the host takes.
    pub fn new(tools: T) -> Self {
        let bench = Self {
            tools,
            context: context_of_test(),
        };
        check_definitions(&bench.definitions());
        bench
    }

    /// The definitions as the host and models see them.
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools
            .tools()
            .iter()
            .map(crate::Tool::definition)
            .collect()
    }

    /// One tool's definition.
    ///
    /// # Panics
    /// When there is no such tool.
    pub fn definition(&self, name: &str) -> ToolDefinition {
        self.definitions()
            .into_iter()
            .find(|definition| definition.name == name)
            .expect("there is such a tool")
    }

    /// Makes the calls that follow attempts of another call, with an id and an idempotency key of
    /// its own. Until then they are attempts of one.
    #[must_use]
    pub fn under_key(mut self, key: &str) -> Self {
        key.clone_into(&mut self.context.call_id);
        key.clone_into(&mut self.context.idempotency_key);
        self
    }

    /// Has the calls that follow made with so much of their time left.
    #[must_use]
    pub fn with_deadline_ms(mut self, deadline_ms: u32) -> Self {
        self.context.deadline_ms = deadline_ms;
        self
    }

    /// Makes one call. The host validates arguments against the schema before; here only the tool's
    /// type does.
    ///
    /// # Errors
    /// The error that the tool returns.
    pub fn call(&self, name: &str, arguments: Value) -> Result<Progress, ToolError> {
        self.run(&self.context, name, arguments)
    }

    /// Makes one call and takes the text of its result.
    ///
    /// # Errors
    /// The error that the tool returns.
    ///
    /// # Panics
    /// When the call is not done with one segment.
    pub fn text(&self, name: &str, arguments: Value) -> Result<String, ToolError> {
        match self.call(name, arguments)? {
            Progress::Done(parts) => Ok(text_of(&parts)),
            progress @ (Progress::Later { .. } | Progress::Ask { .. }) => {
                panic!("the call goes on: {progress:?}")
            }
        }
    }

    /// Makes the next segment of a call. It gets the state that the last one left and, after a
    /// question, the answer.
    ///
    /// # Errors
    /// The error that the tool returns.
    pub fn resume(
        &self,
        name: &str,
        arguments: Value,
        state: &[u8],
        answer: Option<Value>,
    ) -> Result<Progress, ToolError> {
        let context = CallContext {
            resumed: Some(state.to_owned()),
            answer,
            ..self.context.clone()
        };
        self.run(&context, name, arguments)
    }

    fn run(
        &self,
        context: &CallContext,
        name: &str,
        arguments: Value,
    ) -> Result<Progress, ToolError> {
        let offered = self.tools.tools();
        let called = offered.iter().find(|tool| tool.name() == name);
        let declared = called
            .map(|tool| tool.definition().capabilities)
            .unwrap_or_default();
        declaring(declared, || {
            as_one(|| call_by_name(&self.tools, context, name, arguments))
        })
    }
}

pub(super) fn context_of_test() -> CallContext {
    CallContext {
        agent_id: "00000000-0000-4000-8000-000000000001".to_owned(),
        session_id: "00000000-0000-4000-8000-000000000002".to_owned(),
        user_id: "test".to_owned(),
        call_id: "call-of-test".to_owned(),
        idempotency_key: "call-of-test/0".to_owned(),
        deadline_ms: 30_000,
        resumed: None,
        answer: None,
    }
}

thread_local! {
    /// None outside of calls, where everything may be tried.
    static DECLARED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Puts back what was declared before, also when the call panics.
struct Before(Option<Vec<String>>);

impl Drop for Before {
    fn drop(&mut self) {
        DECLARED.set(self.0.take());
    }
}

/// Makes a call of a tool that declares these capabilities.
pub(super) fn declaring<T>(capabilities: Vec<String>, call: impl FnOnce() -> T) -> T {
    let _before = Before(DECLARED.replace(Some(capabilities)));
    call()
}

/// Panics in a call of a tool that declares none of these capabilities.
pub(super) fn require(capabilities: &[&str]) {
    let lacks = DECLARED.with_borrow(|declared| {
        declared.as_ref().is_some_and(|declared| {
            !declared
                .iter()
                .any(|capability| capabilities.contains(&capability.as_str()))
        })
    });
    if let Some(capability) = capabilities.first().filter(|_| lacks) {
        panic!(
            "the tool does not declare that it needs this, so the host refuses it whatever is \
             granted: add `.needs(\"{capability}\")`"
        );
    }
}
