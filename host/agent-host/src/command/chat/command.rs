//! Lines that are commands to `chat` itself, and no message. Pure: a line in, a command out.
//!
//! Only these words are commands, also while a question waits. Another word of letters after a
//! slash is told to be none, but for `/queue`, which is the host's. Any other line that begins with
//! a slash, such as a path, is a message or an answer; and so is a command with a space before it.

/// The commands, for people.
pub(super) const HELP: [&str; 12] = [
    "/agent NAME [MESSAGE]  go on with another agent: an agentId, a UUID or a path",
    "/back                  come back from it, with a summary",
    "/agents                list the agents",
    "/sessions              list your open sessions",
    "/session ID            go on in one of them",
    "/new                   open a new session with this agent",
    "/rename NAME           name this session",
    "/pin, /unpin           keep this session before the others, or no longer",
    "/fork [NAME]           go on in a copy of this session",
    "/clear                 empty this session and keep its name",
    "/delete                delete this session, and go on in a new one",
    "/queue MODE …          say what happens to messages while the agent is busy",
];

/// The word of the host's own directive, which goes to it as a message.
const DIRECTIVE: &str = "/queue";

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
    /// Names the session.
    Rename {
        /// The name.
        name: String,
    },
    /// Pins the session, or takes the pin away.
    Pin {
        /// True to pin it.
        pinned: bool,
    },
    /// Goes on in a fork of the session.
    Fork {
        /// The name of the fork.
        name: Option<String>,
    },
    /// Empties the session's thread.
    Clear,
    /// Deletes the session.
    Delete,
    /// Lists the commands.
    Help,
}

impl Command {
    /// Reads a line; none for a message.
    ///
    /// # Errors
    /// The command lacks something, or has too much; there is none of that name.
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
            "/rename" if rest.is_empty() => Err("say the name, as in `/rename Plans`".to_owned()),
            "/rename" => Ok(Self::Rename {
                name: rest.to_owned(),
            }),
            "/pin" => alone(Self::Pin { pinned: true }),
            "/unpin" => alone(Self::Pin { pinned: false }),
            "/fork" => Ok(Self::Fork {
                name: Some(rest.to_owned()).filter(|name| !name.is_empty()),
            }),
            "/clear" => alone(Self::Clear),
            "/delete" => alone(Self::Delete),
            "/help" => alone(Self::Help),
            _ if is_like_a_command(word) => Err(format!(
                "`{word}` is no command; `/help` lists them, and a space before it sends the line \
                 as it is"
            )),
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

/// Returns whether a word looks like a command: letters after a slash, and not the host's own.
fn is_like_a_command(word: &str) -> bool {
    let name = word.strip_prefix('/').unwrap_or_default();
    let is_plain = name.chars().all(|letter| letter.is_ascii_alphabetic());
    !name.is_empty() && is_plain && word != DIRECTIVE
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
            ("/newer", Some(Err("`/newer` is no command; `/help`"))),
            (
                "/rename My plans ",
                Some(Ok(Command::Rename {
                    name: "My plans".into(),
                })),
            ),
            ("/rename", Some(Err("say the name"))),
            ("/pin", Some(Ok(Command::Pin { pinned: true }))),
            ("/unpin", Some(Ok(Command::Pin { pinned: false }))),
            ("/fork", Some(Ok(Command::Fork { name: None }))),
            (
                "/fork Another way",
                Some(Ok(Command::Fork {
                    name: Some("Another way".into()),
                })),
            ),
            ("/clear", Some(Ok(Command::Clear))),
            ("/clear all", Some(Err("`/clear` takes nothing"))),
            ("/delete", Some(Ok(Command::Delete))),
            ("/help", Some(Ok(Command::Help))),
            ("/queue collect", None),
            ("/etc/hosts", None),
            ("/ what", None),
            ("/7", None),
            (" /back", None),
            ("hello /back", None),
        ] {
            match (Command::read(line), read) {
                (Some(Err(reported)), Some(Err(begins))) => {
                    assert!(reported.starts_with(begins), "{line}: {reported}");
                }
                (found, Some(Ok(command))) => assert_eq!(found, Some(Ok(command)), "{line}"),
                (found, None) => assert_eq!(found, None, "{line}"),
                (found, Some(Err(begins))) => panic!("{line}: {found:?}, not {begins}"),
            }
        }
    }
}
