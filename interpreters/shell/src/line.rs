//! A line as it is carried out: lists, pipes, variables and substitution.

use crate::state::{Ended, Line, Stop, fits, push};
use crate::{builtins, cli, files};
use agent_host_shapes::shown::visible;
use agent_host_shell::{Output, ROOT, Wanted};
use deno_task_shell::parser::{
    BooleanList, Command, CommandInner, IoFile, Pipeline, PipelineInner, Redirect, RedirectFd,
    RedirectOp, Sequence, SequentialList, Word, WordPart,
};
use std::mem::take;

/// The exit code of a command that is not there.
const NOT_FOUND: u8 = 127;

impl Line<'_> {
    /// Carries a parsed line out.
    ///
    /// # Errors
    /// The call that it needs next.
    pub(crate) fn carry_out(mut self, list: &SequentialList) -> Result<Output, Wanted> {
        let mut out = String::new();
        let ended = self.list(list, "", &mut out);
        // What was printed until then is the line's, however it ends.
        let mut output = Output {
            out,
            err: self.err,
            exit: self.last,
        };
        match ended {
            Ok(()) => {}
            Err(Stop::Call(wanted)) => return Err(wanted),
            Err(Stop::Over(why)) => output.cut_off(&why, self.given.answered.len()),
        }
        Ok(output)
    }

    /// Returns the output of commands in place of a word, without the line ends after it. Variables
    /// that they set are theirs.
    pub(crate) fn substitute(&mut self, list: &SequentialList) -> Result<String, Stop> {
        let variables = self.variables.clone();
        let mut out = String::new();
        let ended = self.list(list, "", &mut out);
        self.variables = variables;
        ended?;
        out.truncate(out.trim_end_matches('\n').len());
        Ok(out)
    }

    /// Carries commands out, and adds what they print.
    fn list(&mut self, list: &SequentialList, input: &str, out: &mut String) -> Result<(), Stop> {
        list.items
            .iter()
            .try_for_each(|item| self.sequence(&item.sequence, input, out))
    }

    fn sequence(&mut self, sequence: &Sequence, input: &str, out: &mut String) -> Result<(), Stop> {
        match sequence {
            Sequence::ShellVar(var) => {
                // A substitution in the value leaves its own exit code.
                self.last = 0;
                let value = self.text_of(var.value.parts())?;
                self.variables.insert(var.name.clone(), value);
                Ok(())
            }
            Sequence::Pipeline(pipeline) => self.pipeline(pipeline, input, out),
            Sequence::BooleanList(both) => self.both(both, input, out),
        }
    }

    /// Carries a list of `&&` and `||` out. The parser reads it from the right, and it is carried
    /// out from the left.
    fn both(&mut self, both: &BooleanList, input: &str, out: &mut String) -> Result<(), Stop> {
        self.sequence(&both.current, input, out)?;
        let mut op = both.op;
        let mut next = &both.next;
        loop {
            let goes_on = op.moves_next_for_exit_code(i32::from(self.last));
            let Sequence::BooleanList(more) = next else {
                if goes_on {
                    self.sequence(next, input, out)?;
                }
                return Ok(());
            };
            if goes_on {
                self.sequence(&more.current, input, out)?;
            }
            op = more.op;
            next = &more.next;
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, input: &str, out: &mut String) -> Result<(), Stop> {
        let mut inner = &pipeline.inner;
        let mut piped = None;
        loop {
            let input = piped.as_deref().unwrap_or(input);
            match inner {
                PipelineInner::Command(command) => {
                    self.command(command, input, out)?;
                    if pipeline.negated {
                        self.last = u8::from(self.last == 0);
                    }
                    return Ok(());
                }
                PipelineInner::PipeSequence(pipe) => {
                    let mut printed = String::new();
                    self.command(&pipe.current, input, &mut printed)?;
                    piped = Some(printed);
                    inner = &pipe.next;
                }
            }
        }
    }

    fn command(&mut self, command: &Command, piped: &str, out: &mut String) -> Result<(), Stop> {
        let redirect = command.redirect.as_ref();
        let mut read = None;
        if let Some(Redirect {
            op: RedirectOp::Input(_),
            io_file: IoFile::Word(word),
            ..
        }) = redirect
        {
            let path = self.text_of(word.parts())?;
            match files::read(self.given, &path) {
                Ok(text) => read = Some(text),
                Err(why) => {
                    self.last = 1;
                    let reported = ["bash: ", why.as_str(), "\n"];
                    return push(&mut self.err, &reported);
                }
            }
        }
        let before = take(&mut self.err);
        let mut printed = String::new();
        let ended = self.ended(&command.inner, read.unwrap_or(piped), &mut printed);
        let within = std::mem::replace(&mut self.err, before);
        let mut ended = match ended {
            Ok(ended) => ended,
            Err(stop) => {
                // The line ends here: what its commands printed so far is all that they did.
                self.err.push_str(&within);
                if redirect.is_none() {
                    out.push_str(&printed);
                }
                return Err(stop);
            }
        };
        ended.out.insert_str(0, &printed);
        ended.err.insert_str(0, &within);
        self.last = ended.exit;
        if let Some(redirect) = redirect {
            redirected(redirect, &mut ended);
        }
        push(&mut self.err, &[&ended.err])?;
        push(out, &[&ended.out])
    }

    /// Carries a command out. A group adds what it prints to `printed`.
    fn ended(
        &mut self,
        inner: &CommandInner,
        input: &str,
        printed: &mut String,
    ) -> Result<Ended, Stop> {
        match inner {
            CommandInner::Simple(simple) => {
                let arguments = self.arguments(&simple.args)?;
                self.simple(&arguments, input)
            }
            CommandInner::Subshell(list) => {
                let variables = self.variables.clone();
                let ended = self.list(list, input, printed);
                self.variables = variables;
                ended?;
                Ok(Ended {
                    exit: self.last,
                    ..Ended::default()
                })
            }
        }
    }

    fn simple(&mut self, arguments: &[String], input: &str) -> Result<Ended, Stop> {
        let Some((name, arguments)) = arguments.split_first() else {
            return Ok(Ended::default());
        };
        self.begin()?;
        if builtins::NAMES.contains(&name.as_str()) {
            return builtins::run(self, name, arguments, input);
        }
        let named = if name.contains('/') {
            files::whole(name)
        } else {
            name.clone()
        };
        let mut commands = self.given.commands.iter();
        match commands.find(|it| it.name == named || it.path == named) {
            Some(command) => cli::run(self, command, arguments, input),
            None => Ok(Ended::failed(NOT_FOUND, self.not_found(name))),
        }
    }

    /// Returns the text for a command that is not there, with those that are.
    fn not_found(&self, name: &str) -> String {
        let commands = self.given.commands.iter().map(|it| it.name.as_str());
        let all: Vec<&str> = builtins::NAMES.into_iter().chain(commands).collect();
        let name = visible(name, 80);
        format!(
            "bash: {name}: command not found. This is no system shell. Available are: {}; and the \
             files below {ROOT}",
            all.join(", ")
        )
    }
}

/// Applies a redirection of the output.
fn redirected(redirect: &Redirect, ended: &mut Ended) {
    let RedirectOp::Output(_) = redirect.op else {
        return;
    };
    let of_err = matches!(redirect.maybe_fd, Some(RedirectFd::Fd(2)));
    match (&redirect.io_file, of_err) {
        (IoFile::Word(_), true) => ended.err.clear(),
        (IoFile::Word(_), false) => ended.out.clear(),
        (IoFile::Fd(_), true) => ended.out.push_str(&take(&mut ended.err)),
        (IoFile::Fd(_), false) => ended.err.push_str(&take(&mut ended.out)),
    }
}

/// Arguments of one command.
const ARGUMENTS_MAX: usize = 4_096;
/// The characters at which a text outside of quotes is divided. Other blanks are part of a word.
const BLANKS: [char; 3] = [' ', '\t', '\n'];

/// The arguments that words become, the last of which may go on.
#[derive(Default)]
struct Fields {
    done: Vec<String>,
    /// The argument that is being made; none between two.
    open: Option<String>,
    /// Bytes of all of them.
    bytes: usize,
}

impl Fields {
    fn push(&mut self, text: &str) -> Result<(), Stop> {
        self.bytes = self.bytes.saturating_add(text.len());
        fits(self.bytes)?;
        self.open.get_or_insert_default().push_str(text);
        Ok(())
    }

    /// Adds a text that stood outside of quotes, which is divided at its blanks.
    fn push_divided(&mut self, text: &str) -> Result<(), Stop> {
        if text.starts_with(BLANKS) {
            self.end()?;
        }
        let mut words = text
            .split(BLANKS)
            .filter(|word| !word.is_empty())
            .peekable();
        while let Some(word) = words.next() {
            self.push(word)?;
            if words.peek().is_some() || text.ends_with(BLANKS) {
                self.end()?;
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Stop> {
        if self.open.is_some() && self.done.len() >= ARGUMENTS_MAX {
            return Err(Stop::Over(format!(
                "a command has more than {ARGUMENTS_MAX} arguments"
            )));
        }
        self.done.extend(self.open.take());
        Ok(())
    }
}

impl Line<'_> {
    /// Returns the arguments that some words become.
    pub(crate) fn arguments(&mut self, words: &[Word]) -> Result<Vec<String>, Stop> {
        let mut fields = Fields::default();
        for word in words {
            for part in word.parts() {
                self.part(part, &mut fields)?;
            }
            fields.end()?;
        }
        Ok(fields.done)
    }

    /// Returns the one text that a word is, as the value of a variable.
    pub(crate) fn text_of(&mut self, parts: &[WordPart]) -> Result<String, Stop> {
        let mut text = String::new();
        for part in parts {
            let chunk = match part {
                WordPart::Text(chunk) => {
                    push(&mut text, &[chunk])?;
                    continue;
                }
                WordPart::Variable(name) => self.variable(name),
                WordPart::Command(list) => self.substitute(list)?,
                WordPart::Quoted(parts) => self.text_of(parts)?,
                // Both were refused before.
                WordPart::Tilde | WordPart::Brace(_) => continue,
            };
            push(&mut text, &[&chunk])?;
        }
        Ok(text)
    }

    fn part(&mut self, part: &WordPart, fields: &mut Fields) -> Result<(), Stop> {
        match part {
            WordPart::Text(text) => fields.push(text),
            WordPart::Variable(name) => {
                let value = self.variable(name);
                fields.push_divided(&value)
            }
            WordPart::Command(list) => {
                let out = self.substitute(list)?;
                fields.push_divided(&out)
            }
            WordPart::Quoted(parts) => {
                let text = self.text_of(parts)?;
                fields.push(&text)
            }
            // Both were refused before.
            WordPart::Tilde | WordPart::Brace(_) => Ok(()),
        }
    }
}
