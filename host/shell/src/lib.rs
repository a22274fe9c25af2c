//! Command lines over skills, as the host and its component for them share them: what a line is
//! given, what comes of it, and how a command is described.
//!
//! The component is `interpreters/shell`, which links this crate too. Carrying a line out is a pure
//! function of a [`CommandLine`]. When a command needs a call that has no result yet, the function
//! ends and says which. With the result it is run again from the beginning and comes further. So a
//! line survives a restart, and no call is made twice for it.

pub mod flags;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The folder in which all skills are.
pub const ROOT: &str = "/skills";
/// Bytes of a command line.
pub const COMMAND_BYTES_MAX: usize = 16 << 10;
/// The most tool calls of one command line.
pub const COMMAND_CALLS_MAX: usize = 32;
/// The one tool of the component: it takes a [`CommandLine`] and returns a [`LineOutcome`].
pub const TOOL: &str = "run";
/// The exit code of a line that met a limit.
pub const OVER: u8 = 125;
/// Bytes of output of a line that an agent is shown; the rest is left out.
pub const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// A command line with everything that it can reach.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CommandLine<'a> {
    /// The line itself.
    pub command: Cow<'a, str>,
    /// All files by their whole paths.
    pub files: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// The commands of skills.
    pub commands: Vec<Command<'a>>,
    /// The results of the calls that the line has made so far.
    pub answered: Cow<'a, [Answered]>,
    /// The place at which the line is to end, if it met a limit there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

/// The place at which a line ends, because the command there met a limit of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cut {
    /// The commands that are carried out before.
    pub after: usize,
    /// The reason, for people.
    pub why: String,
}

/// The command of a skill.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Command<'a> {
    /// Its name.
    pub name: String,
    /// Its whole path.
    pub path: String,
    /// The id of the skill.
    pub skill: Cow<'a, str>,
    /// The description of the skill.
    pub description: Cow<'a, str>,
    /// The tools that it calls.
    pub tools: Vec<Tool<'a>>,
}

/// A tool that a command calls.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Tool<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its description.
    pub description: Cow<'a, str>,
    /// The schema of its arguments.
    pub arguments: Cow<'a, Value>,
}

/// The result of a call that a line has made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// The tool.
    pub tool: String,
    /// Its arguments: a JSON object as text.
    pub arguments: String,
    /// The result, or the reason why there is none.
    pub text: String,
    /// True if the call failed.
    pub failed: bool,
}

/// The state in which a line ends for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineOutcome {
    /// It has ended, with the text that an agent is shown of its output.
    Done(String),
    /// It needs the result of a call.
    Call(Wanted),
}

/// A call that a line needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wanted {
    /// The tool.
    pub tool: String,
    /// Its arguments: a JSON object as text.
    pub arguments: String,
}

/// The output of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// The exit code of the last command.
    pub exit: u8,
}

impl Output {
    /// Returns the output of a line that is not carried out.
    #[must_use]
    pub fn refused(why: &str) -> Self {
        Self {
            err: format!("bash: {why}\n"),
            exit: 2,
            ..Self::default()
        }
    }

    /// Adds that a line met a limit after so many calls, which stand.
    pub fn cut_off(&mut self, why: &str, calls: usize) {
        let status = match calls {
            0 => String::new(),
            1 => "; the call that it made stands: look at what it did before you go on".to_owned(),
            calls => format!(
                "; the {calls} calls that it made stand: look at what they did before you go on"
            ),
        };
        self.err.push_str(&format!("bash: {why}{status}\n"));
        self.exit = OVER;
    }

    /// Returns the text that a model is shown: output, errors, and the exit code unless it is 0.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut shown = shortened(&self.out);
        let mut add = |text: &str| {
            if !shown.is_empty() && !shown.ends_with('\n') {
                shown.push('\n');
            }
            shown.push_str(text);
        };
        if !self.err.is_empty() {
            add(&format!("[stderr]\n{}", shortened(&self.err)));
        }
        if self.exit != 0 {
            add(&format!("[exit code {}]", self.exit));
        }
        shown
    }
}

fn shortened(text: &str) -> String {
    match text.get(..text.floor_char_boundary(OUTPUT_BYTES_MAX)) {
        Some(head) if head.len() < text.len() => {
            let left_out = text.len() - head.len();
            format!("{head}\n[{left_out} more bytes are left out: narrow it with head or grep]\n")
        }
        Some(_) | None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{OUTPUT_BYTES_MAX, Output};

    #[test]
    fn an_agent_is_shown_so_much_of_the_output_and_told_how_much_is_left_out() {
        let long = Output {
            out: "é".repeat(OUTPUT_BYTES_MAX),
            err: "e".repeat(OUTPUT_BYTES_MAX + 5),
            exit: 1,
        };
        let shown = long.shown();
        assert!(shown.len() < 2 * OUTPUT_BYTES_MAX + 400, "{}", shown.len());
        let reported = format!("[{OUTPUT_BYTES_MAX} more bytes are left out");
        assert!(shown.contains(&reported), "{}", &shown[shown.len() - 400..]);
        assert!(shown.contains("[5 more bytes are left out"));
        assert!(shown.ends_with("[exit code 1]"));
    }
}
