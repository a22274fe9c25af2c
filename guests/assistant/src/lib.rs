//! The assistant: talks with the user and hands the work to others through the one tool that it is
//! given, `delegate`.
//!
//! It is the SDK's loop under the definition's prompt, and nothing else: an operator makes another
//! assistant by writing another definition.

use agent_host_sdk::{Agent, Description, export_agent};

/// The agent.
#[derive(Debug)]
pub struct Assistant;

impl Agent for Assistant {
    fn describe(&self) -> Description {
        Description::new(
            "assistant",
            "Assistant",
            "Talks with the user and delegates the work.",
        )
        .wants("delegate")
    }
}

export_agent!(Assistant);

#[cfg(test)]
mod tests;
