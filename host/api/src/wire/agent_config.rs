//! The configuration of an agent other than its address, in public form.

/// Configuration of an agent other than its address, as far as it is set.
#[derive(Debug, utoipa::ToSchema)]
#[schema(as = ShownAgentConfig)]
#[expect(dead_code, reason = "says in the description what a configuration is")]
pub(crate) struct AgentConfigSchema {
    /// The name for people that was said. Without, `name` beside it is its definition's.
    name: Option<String>,
    /// Its user name, for mentions as `@name`.
    username: Option<String>,
    /// Its purpose, in place of its definition's.
    description: Option<String>,
    /// Its own system prompt, in place of its definition's. Hidden from a mentee.
    system_prompt: Option<String>,
    /// The folder that it works in.
    workspace_dir: Option<String>,
    /// The app that it belongs to.
    app_id: Option<String>,
}
