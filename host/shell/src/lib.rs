//! Command lines over skills: read by a shell's parser, and carried out by no shell.
//!
//! A line reaches the files of an agent's skills, which are texts in memory, and the tools of its
//! commands, which the caller of this crate calls as it calls any other tool. There is nothing else
//! that it could reach: this crate starts no process, and has no file system, network, clock or
//! environment. Never in here: IO of any kind.
//!
//! Carrying a line out is a pure function of the line, the skills and the results of the calls that
//! it has made so far ([`run`]). When a command needs a call that has no result yet, the function
//! ends and says which. With the result it is run again from the beginning and comes further. So a
//! line survives a restart, and no call is made twice for it.
//!
//! All work is counted before it is done, and bounded with what is done again after each call. The
//! count bounds the memory too. A line also ends when its caller says so ([`Stopped`]), within a
//! second: what cannot be divided is small enough for that.
//!
//! ## Where things are
//!
//! - lines that would be misread, refused before they are parsed: `vet.rs`
//! - commands, pipes, variables, substitution, words: `line.rs`; their state: `state.rs`
//! - files below `/skills`: `files.rs`; options and texts of commands: `reading.rs`
//! - the commands `cat`, `wc`, `uniq`, `echo`, `ls`: `builtins.rs`; `head` and `tail`: `edge.rs`;
//!   `sort`: `sort.rs`; `grep`: `grep.rs`; `jq`: `jq.rs` and `jq/`
//! - patterns of `grep` and `jq`: `pattern.rs`
//! - the commands of skills: `cli.rs`
//! - the work that one line may cause: `meter.rs`

mod builtins;
mod cli;
mod edge;
mod files;
mod grep;
mod jq;
mod line;
mod meter;
mod pattern;
mod reading;
mod sort;
mod state;
#[cfg(test)]
mod tests;
mod vet;

use domain::skill::SkillSet;

/// Bytes of output of a line that an agent is shown; the rest is left out.
pub const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// Bytes of stack that a line needs at most: its parsers and what carries it out call themselves.
pub const STACK_BYTES: usize = 32 << 20;

/// Says whether a line is to stop: it takes too long, or nobody waits for it any more.
pub type Stopped = Box<dyn Fn() -> bool>;

/// The result of a call that a line has made.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineOutcome {
    /// It has ended.
    Done(Output),
    /// It needs the result of a call.
    Call(Wanted),
}

/// A call that a line needs.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Carries a command line out, as far as the results of its calls go, until it is to stop. It needs
/// a stack of [`STACK_BYTES`].
#[must_use]
pub fn run(
    command: &str,
    skills: &SkillSet,
    answered: &[Answered],
    stopped: Stopped,
) -> LineOutcome {
    if let Err(refused) = vet::vet(command) {
        return LineOutcome::Done(Output::refused(&refused));
    }
    let list = match deno_task_shell::parser::parse(command) {
        Ok(list) => list,
        Err(error) => return LineOutcome::Done(Output::refused(&error.to_string())),
    };
    if let Err(refused) = vet::vet_list(&list) {
        return LineOutcome::Done(Output::refused(&refused));
    }
    state::Line::new(skills, answered, stopped).carry_out(&list)
}

impl Output {
    /// Returns the output of a line that is not carried out.
    fn refused(why: &str) -> Self {
        Self {
            err: format!("bash: {why}\n"),
            exit: 2,
            ..Self::default()
        }
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
