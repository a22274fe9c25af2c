//! A line as it is carried out: lists, pipes, variables and substitution.

use crate::meter::Stop;
use crate::state::{Ended, Line};
use crate::{Came, Output, builtins, cli, files};
use deno_task_shell::parser::{
    BooleanList, Command, CommandInner, IoFile, Pipeline, PipelineInner, Redirect, RedirectFd,
    RedirectOp, Sequence, SequentialList,
};
use domain::skill::ROOT;
use std::mem::take;

/// The exit code of a command that is not there.
const NOT_FOUND: u8 = 127;
/// The exit code of a line that met a limit.
const OVER: u8 = 125;

impl Line<'_> {
    /// Carries a parsed line out.
    pub(crate) fn carry_out(mut self, list: &SequentialList) -> Came {
        match self.list(list, "") {
            Ok(out) => Came::Done(Output {
                out,
                err: self.err,
                exit: self.last,
            }),
            Err(Stop::Call(wanted)) => Came::Call(wanted),
            Err(Stop::Over(why)) => {
                self.err.push_str(&format!("bash: {why}\n"));
                Came::Done(Output {
                    out: String::new(),
                    err: self.err,
                    exit: OVER,
                })
            }
        }
    }

    /// Returns the output of commands in place of a word, without the line ends after it. Variables
    /// that they set are theirs.
    pub(crate) fn substitute(&mut self, list: &SequentialList) -> Result<String, Stop> {
        let variables = self.saved()?;
        let out = self.list(list, "");
        self.variables = variables;
        Ok(out?.trim_end_matches('\n').to_owned())
    }

    fn list(&mut self, list: &SequentialList, input: &str) -> Result<String, Stop> {
        let mut out = String::new();
        for item in &list.items {
            let more = self.sequence(&item.sequence, input)?;
            self.meter.text(out.len() + more.len())?;
            out.push_str(&more);
        }
        Ok(out)
    }

    fn sequence(&mut self, sequence: &Sequence, input: &str) -> Result<String, Stop> {
        match sequence {
            Sequence::ShellVar(var) => {
                // A substitution in the value leaves its own exit code.
                self.last = 0;
                let value = self.text_of(var.value.parts())?;
                self.variables.insert(var.name.clone(), value);
                Ok(String::new())
            }
            Sequence::Pipeline(pipeline) => self.pipeline(pipeline, input),
            Sequence::BooleanList(both) => self.both(both, input),
        }
    }

    /// Carries a list of `&&` and `||` out. The parser reads it from the right, and it is carried
    /// out from the left.
    fn both(&mut self, both: &BooleanList, input: &str) -> Result<String, Stop> {
        let mut out = self.sequence(&both.current, input)?;
        let mut op = both.op;
        let mut next = &both.next;
        loop {
            let goes_on = op.moves_next_for_exit_code(i32::from(self.last));
            let Sequence::BooleanList(more) = next else {
                if goes_on {
                    out.push_str(&self.sequence(next, input)?);
                }
                return Ok(out);
            };
            if goes_on {
                out.push_str(&self.sequence(&more.current, input)?);
            }
            op = more.op;
            next = &more.next;
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, input: &str) -> Result<String, Stop> {
        let mut inner = &pipeline.inner;
        let mut piped = input.to_owned();
        loop {
            match inner {
                PipelineInner::Command(command) => {
                    piped = self.command(command, &piped)?;
                    if pipeline.negated {
                        self.last = u8::from(self.last == 0);
                    }
                    return Ok(piped);
                }
                PipelineInner::PipeSequence(pipe) => {
                    piped = self.command(&pipe.current, &piped)?;
                    inner = &pipe.next;
                }
            }
        }
    }

    fn command(&mut self, command: &Command, piped: &str) -> Result<String, Stop> {
        let redirect = command.redirect.as_ref();
        let mut read = None;
        if let Some(Redirect {
            op: RedirectOp::Input(_),
            io_file: IoFile::Word(word),
            ..
        }) = redirect
        {
            let path = self.text_of(word.parts())?;
            match files::read(self.skills, &path) {
                Ok(text) => read = Some(text),
                Err(why) => {
                    self.err.push_str(&format!("bash: {why}\n"));
                    self.last = 1;
                    return Ok(String::new());
                }
            }
        }
        let input = read.unwrap_or(piped);
        let before = take(&mut self.err);
        let ended = match &command.inner {
            CommandInner::Simple(simple) => {
                let arguments = self.arguments(&simple.args);
                arguments.and_then(|arguments| self.simple(&arguments, input))
            }
            CommandInner::Subshell(list) => {
                let variables = self.saved()?;
                let out = self.list(list, input);
                self.variables = variables;
                out.map(|out| Ended {
                    out,
                    err: String::new(),
                    exit: self.last,
                })
            }
        };
        let within = std::mem::replace(&mut self.err, before);
        let mut ended = ended?;
        ended.err.insert_str(0, &within);
        self.last = ended.exit;
        if let Some(redirect) = redirect {
            redirected(redirect, &mut ended);
        }
        self.meter.text(ended.out.len())?;
        self.meter.text(self.err.len() + ended.err.len())?;
        self.err.push_str(&ended.err);
        Ok(ended.out)
    }

    fn simple(&mut self, arguments: &[String], input: &str) -> Result<Ended, Stop> {
        let Some((name, arguments)) = arguments.split_first() else {
            return Ok(Ended::default());
        };
        self.meter.work(1 + input.len())?;
        if builtins::NAMES.contains(&name.as_str()) {
            return builtins::run(self, name, arguments, input);
        }
        let named = if name.contains('/') {
            files::whole(name)
        } else {
            name.clone()
        };
        match self.skills.by_command(&named) {
            Some(skill) => cli::run(self, skill, arguments, input),
            None => Ok(Ended::failed(NOT_FOUND, self.not_found(name))),
        }
    }

    /// Returns the text for a command that is not there, with those that are.
    fn not_found(&self, name: &str) -> String {
        let clis = self
            .skills
            .skills()
            .iter()
            .filter(|it| !it.tools.is_empty());
        let all: Vec<String> = builtins::NAMES
            .iter()
            .map(|name| (*name).to_owned())
            .chain(clis.map(domain::skill::Skill::command))
            .collect();
        let name = domain::shown::visible(name, 80);
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
