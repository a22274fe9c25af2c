//! An agent of a prompt and ten lines: answers everything with a haiku.

use agent_host_sdk::{Agent, Description, Turn, export_agent};

const PROMPT: &str = "You answer every message with a single haiku: three lines of five, seven \
                      and five syllables, and nothing else.";

/// The agent.
#[derive(Debug)]
pub struct Haiku;

impl Agent for Haiku {
    fn describe(&self) -> Description {
        Description::new("haiku", "Haiku", "Answers everything with a haiku.")
    }

    fn prompt(&self, turn: Turn<'_>) -> Vec<String> {
        vec![PROMPT.to_owned(), turn.prompt()]
    }
}

export_agent!(Haiku);

#[cfg(test)]
mod tests {
    use super::{Haiku, PROMPT};
    use agent_host_sdk::harness::Conversation;

    #[test]
    fn the_model_is_asked_for_a_haiku_and_told_what_the_operator_says() {
        let poem = "An old silent pond\nA frog jumps into the pond\nSplash! Silence again";
        let mut conversation = Conversation::new(Haiku)
            .prompt("Prefer the seaside.")
            .model_says(poem);
        assert_eq!(conversation.say("Tell me about frogs").words(), poem);
        assert_eq!(
            conversation.requests()[0].system,
            [PROMPT, "Prefer the seaside."]
        );
    }
}
