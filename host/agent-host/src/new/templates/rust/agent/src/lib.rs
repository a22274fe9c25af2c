//! An agent: answers in one sentence.

use agent_host_sdk::{Agent, Description, Turn, export_agent};

const PROMPT: &str = "You answer in one sentence.";

/// The agent. What it does not say here, the SDK's tool-calling loop does: it asks the model,
/// carries out the calls that the model makes, and asks again until there is an answer.
#[derive(Debug)]
pub struct Plugin;

impl Agent for Plugin {
    fn describe(&self) -> Description {
        Description::new("{{name}}", "{{title}}", "Answers in one sentence.")
    }

    fn prompt(&self, turn: Turn<'_>) -> Vec<String> {
        // What changes most often comes last: here the operator's own prompt.
        vec![PROMPT.to_owned(), turn.prompt()]
    }
}

export_agent!(Plugin);

#[cfg(test)]
mod tests {
    use super::{PROMPT, Plugin};
    use agent_host_sdk::harness::Conversation;

    #[test]
    fn the_model_is_asked_for_one_sentence_and_told_what_the_operator_says() {
        let mut conversation = Conversation::new(Plugin)
            .prompt("Prefer short words.")
            .model_says("The sea is salt.");
        let answer = conversation.say("Tell me about the sea");
        assert_eq!(answer.words(), "The sea is salt.");
        assert_eq!(
            conversation.requests()[0].system,
            [PROMPT, "Prefer short words."]
        );
    }
}
