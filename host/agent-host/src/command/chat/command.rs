//! Lines that are commands to `chat` itself, and no message. Pure: a line in, a command out.
//!
//! Only these words are commands, also while a question waits. Any other line that begins with a
//! slash is a message or an answer, as `/queue collect` is for the host; and so is a command with a
//! space before it.

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Goes on with another agent.
    Agent {
        /// Its `agentId`, UUID or path.
        name: String,
        /// The first message to it.
        message: Option<String>,
    },
    /// Comes back from it.
    Back,
    /// Lists the agents.
    Agents,
    /// Lists the sessions with all agents.
    Sessions,
    /// Goes on in another session.
    Session {
        /// Its id.
        id: String,
    },
    /// Opens a new session with this agent.
    New,
}

impl Command {
    /// Reads a line; none for a message.
    ///
    /// # Errors
    /// The command lacks something, or has too much.
    pub(super) fn read(line: &str) -> Option<Result<Self, String>> {
        let (word, rest) = match line.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim()),
            None => (line, ""),
        };
        let alone = |command: Self| match rest {
            "" => Ok(command),
            _ => Err(format!("`{word}` takes nothing after it")),
        };
        Some(match word {
            "/agent" => Self::agent(rest),
            "/back" => alone(Self::Back),
            "/agents" => alone(Self::Agents),
            "/sessions" => alone(Self::Sessions),
            "/session" => Self::session(rest),
            "/new" => alone(Self::New),
            _ => return None,
        })
    }

    fn session(rest: &str) -> Result<Self, String> {
        if rest.is_empty() || rest.contains(char::is_whitespace) {
            return Err("name a session by its id; `/sessions` lists them".to_owned());
        }
        Ok(Self::Session {
            id: rest.to_owned(),
        })
    }

    fn agent(rest: &str) -> Result<Self, String> {
        let (name, message) = match rest.split_once(char::is_whitespace) {
            Some((name, message)) => (name, Some(message.trim().to_owned())),
            None => (rest, None),
        };
        if name.is_empty() {
            return Err("name an agent, as in `/agent worker`; `/agents` lists them".to_owned());
        }
        Ok(Self::Agent {
            name: name.to_owned(),
            message,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Command;

    #[test]
    fn a_line_is_a_command_only_if_it_begins_with_one_of_its_words() {
        let agent = |name: &str, message: Option<&str>| Command::Agent {
            name: name.into(),
            message: message.map(str::to_owned),
        };
        for (line, read) in [
            ("/agent worker", Some(Ok(agent("worker", None)))),
            (
                "/agent /ada/agent/x  do  this ",
                Some(Ok(agent("/ada/agent/x", Some("do  this")))),
            ),
            ("/agent", Some(Err("name an agent"))),
            ("/back", Some(Ok(Command::Back))),
            ("/back now", Some(Err("`/back` takes nothing"))),
            ("/agents", Some(Ok(Command::Agents))),
            ("/sessions ", Some(Ok(Command::Sessions))),
            (
                "/session 3f0c ",
                Some(Ok(Command::Session { id: "3f0c".into() })),
            ),
            ("/session", Some(Err("name a session"))),
            ("/session a b", Some(Err("name a session"))),
            ("/new", Some(Ok(Command::New))),
            ("/newer", None),
            ("/queue collect", None),
            (" /back", None),
            ("hello /back", None),
        ] {
            match (Command::read(line), read) {
                (Some(Err(told)), Some(Err(begins))) => {
                    assert!(told.starts_with(begins), "{line}: {told}");
                }
                (found, Some(Ok(command))) => assert_eq!(found, Some(Ok(command)), "{line}"),
                (found, None) => assert_eq!(found, None, "{line}"),
                (found, Some(Err(begins))) => panic!("{line}: {found:?}, not {begins}"),
            }
        }
    }
}
