//! The rules of a host for arguments, results and questions, for tests of a component without one.
//!
//! They are asked by `agent-host plugin test`. A host asks the same of every call
//! (`performance/tool.rs`) and of every question (`asking.rs`).

use crate::asking;
use crate::catalogue::Catalogue;
use domain::message::{Part, text_of};
use domain::tool::ClientAction;
use serde_json::Value;

/// The complaint about a result with a part that only the host may write.
const ONLY_TEXT: &str =
    "a tool returns parts of text only; long text is kept as a blob by the host";

impl Catalogue {
    /// Returns the faults of arguments for a tool, for which a host does not call it.
    pub async fn arguments_fault(&self, tool: &str, arguments: Value) -> Option<String> {
        let schema = &self.tool_schemas(tool)?.arguments;
        let complaints = self.schemas().complaints(schema, arguments).await;
        complaints.unwrap_or_else(|given_up| Some(given_up.to_string()))
    }

    /// Returns the faults of a tool's result, with which a host lets the call fail.
    pub async fn result_fault(&self, tool: &str, parts: &[Part]) -> Option<String> {
        if parts.iter().any(|part| !matches!(part, Part::Text { .. })) {
            return Some(ONLY_TEXT.to_owned());
        }
        let schema = self.tool_schemas(tool)?.results.as_ref()?;
        let result = match domain::json::parse(&text_of(parts)) {
            Ok(result) => result,
            Err(refused) => return Some(refused.to_string()),
        };
        let complaints = self.schemas().complaints(schema, result).await;
        complaints.unwrap_or_else(|given_up| Some(given_up.to_string()))
    }

    /// Returns a question as a client gets it: with the schema that its answer has to fit.
    ///
    /// # Errors
    /// The reason why a host does not ask it.
    pub async fn question(&self, action: &ClientAction) -> Result<ClientAction, String> {
        asking::ready(self.schemas(), action).await
    }
}
