//! Lines that are refused before they are carried out.
//!
//! The parser reads a part of a shell's language, and reads some of the rest as something else
//! without saying so. What it would misread is refused on the text, before it is parsed
//! ([`vet`]). What it reads right and is not done here is refused on what it has read
//! ([`vet_list`]).

use agent_host_shell::COMMAND_BYTES_MAX;
use deno_task_shell::parser::{
    Command, CommandInner, IoFile, PipeSequenceOperator, Pipeline, PipelineInner, Redirect,
    RedirectFd, RedirectOp, Sequence, SequentialList, Word, WordPart,
};

/// Depth of substitutions and groups. The parser reads each more than once.
const DEPTH_MAX: usize = 4;
/// Operators, redirects and line ends of a line. The parser calls itself for each.
const OPERATORS_MAX: usize = 64;
/// The file to which output may be redirected, which keeps none.
pub(crate) const NULL: &str = "/dev/null";

/// Refuses a text that the parser would misread.
///
/// # Errors
/// The reason, with the remedy.
pub(crate) fn vet(text: &str) -> Result<(), String> {
    if text.len() > COMMAND_BYTES_MAX {
        return Err(format!(
            "the line is longer than {COMMAND_BYTES_MAX} bytes; divide it"
        ));
    }
    if let Some(char) = text
        .chars()
        .find(|char| char.is_control() && !matches!(char, '\n' | '\t'))
    {
        return Err(format!(
            "the line has the control character {}; leave it out",
            char.escape_default()
        ));
    }
    let chars: Vec<char> = text.chars().collect();
    let mut scan = Scan {
        chars: &chars,
        at: 0,
        operators: 0,
        redirects: 0,
    };
    scan.commands(0)
}

/// An inspection of a text, character by character.
struct Scan<'a> {
    chars: &'a [char],
    at: usize,
    operators: usize,
    /// Redirects of the command that is passed.
    redirects: usize,
}

impl Scan<'_> {
    fn before(&self) -> Option<char> {
        self.at
            .checked_sub(1)
            .and_then(|at| self.chars.get(at))
            .copied()
    }

    fn peek(&self, after: usize) -> Option<char> {
        self.chars.get(self.at + after).copied()
    }

    /// Passes commands, up to the bracket that ends them below the top.
    fn commands(&mut self, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!(
                "substitutions and groups are nested deeper than {DEPTH_MAX}; use a variable"
            ));
        }
        let redirects_around = std::mem::take(&mut self.redirects);
        while let Some(char) = self.peek(0) {
            match char {
                '\\' => self.escape()?,
                '\'' => self.single()?,
                '"' => self.double(depth)?,
                '$' => self.dollar(depth, false)?,
                '(' => {
                    self.at += 1;
                    self.commands(depth + 1)?;
                    continue;
                }
                ')' => {
                    self.at += 1;
                    if depth == 0 {
                        return Err("there is a `)` without its `(`; quote it".to_owned());
                    }
                    self.redirects = redirects_around;
                    return Ok(());
                }
                '&' | '|' | ';' | '<' | '>' | '\n' => self.operator(char)?,
                _ => self.plain(char)?,
            }
            self.at += 1;
        }
        if depth > 0 {
            return Err("there is a `(` without its `)`".to_owned());
        }
        Ok(())
    }

    /// Passes an operator. Each is counted, a command has one redirect, and a single `&` is none
    /// that there is.
    fn operator(&mut self, char: char) -> Result<(), String> {
        self.operators += 1;
        if self.operators > OPERATORS_MAX {
            return Err(format!(
                "the line has more than {OPERATORS_MAX} operators and line ends; divide it"
            ));
        }
        self.redirects = match char {
            '<' | '>' => self.redirects + 1,
            _ => 0,
        };
        if self.redirects > 1 {
            return Err(format!(
                "a command has one redirect: put it in brackets for a second one, as in \
                 (command 2>&1) >{NULL}"
            ));
        }
        match (char, self.peek(1)) {
            ('&', Some('&')) | ('|', Some('|')) | ('>', Some('&' | '>')) => {
                self.at += 1;
                Ok(())
            }
            ('&', _) => Err(
                "there are no background jobs and no `&>`; leave the `&` out, or \
                             quote it"
                    .to_owned(),
            ),
            ('|', Some('&')) => Err("`|&` is not read; write `2>&1 |`".to_owned()),
            ('<', Some('<' | '(' | '>' | '&')) => {
                Err("of redirections only `<file`, `2>&1` and `>/dev/null` are read".to_owned())
            }
            ('>', Some('|' | '(')) => Err("files cannot be written".to_owned()),
            _ => Ok(()),
        }
    }

    /// Passes a character outside of quotes that may be a pattern, or begin a remark.
    fn plain(&mut self, char: char) -> Result<(), String> {
        match char {
            '`' => Err("`…` is not read; write $(…), or quote it with '…'".to_owned()),
            '*' | '?' | '[' => Err(format!(
                "patterns of file names are not read: quote the `{char}` with '…', or name the \
                 files (see ls)"
            )),
            // The parser reads what stands in braces again for each brace around it.
            '{' => Err("{…} is not read: quote it with '…', or write the words".to_owned()),
            '~' if self.begins_part() => {
                Err("there is no home folder; quote the ~ with '…', or name the path".to_owned())
            }
            // The parser divides words at these, and other shells do not.
            _ if char.is_whitespace() && !char.is_ascii() => Err(format!(
                "the blank {} outside of quotes is not read; quote it, or write a space",
                char.escape_unicode()
            )),
            '#' if self.begins_word() => Err("remarks are not read; leave the # out".to_owned()),
            _ => Ok(()),
        }
    }

    fn begins_word(&self) -> bool {
        let before = self.before();
        before.is_none_or(|char| char.is_whitespace() || matches!(char, ';' | '|' | '&' | '('))
    }

    /// Returns whether the parser begins a word or a part of one here.
    fn begins_part(&self) -> bool {
        self.begins_word() || matches!(self.before(), Some(')' | '<' | '>' | '\'' | '"'))
    }

    /// Passes a backslash outside of quotes. The parser and other shells agree on a few.
    fn escape(&mut self) -> Result<(), String> {
        match self.peek(1) {
            Some('$' | '~' | '"' | '(' | ')' | ';' | '&' | '|' | '<' | '>' | ' ' | '\n') => {
                self.at += 1;
                Ok(())
            }
            _ => Err("this backslash is not read: use '…' instead".to_owned()),
        }
    }

    fn single(&mut self) -> Result<(), String> {
        let end = self
            .chars
            .iter()
            .skip(self.at + 1)
            .position(|char| *char == '\'');
        match end {
            Some(length) => {
                self.at += length + 1;
                Ok(())
            }
            None => Err("there is a ' without its end".to_owned()),
        }
    }

    fn double(&mut self, depth: usize) -> Result<(), String> {
        self.at += 1;
        // The parser begins anew after each substitution.
        let mut begin = self.at;
        while let Some(char) = self.peek(0) {
            match char {
                '"' => return Ok(()),
                '`' => return Err("`…` is not read; write $(…), or use '…'".to_owned()),
                // Here the parser looks for a home folder, as it does outside of quotes.
                '~' if self.at == begin => {
                    return Err(
                        "a ~ at the beginning of \"…\" is not read: use '…' instead".to_owned()
                    );
                }
                '$' => {
                    self.dollar(depth, true)?;
                    if self.peek(0) == Some(')') {
                        begin = self.at + 1;
                    }
                }
                '\\' => match self.peek(1) {
                    Some('\\' | '~' | '(' | ')' | '\'' | '`') | None => {
                        return Err(
                            "this backslash within \"…\" is not read: use '…' instead".to_owned()
                        );
                    }
                    // The parser looks for the end before it looks at what is escaped.
                    Some(_) => self.at += 1,
                },
                _ => {}
            }
            self.at += 1;
        }
        Err("there is a \" without its end".to_owned())
    }

    /// Passes what follows a dollar sign: a name, `?`, a substitution, or nothing.
    fn dollar(&mut self, depth: usize, is_quoted: bool) -> Result<(), String> {
        match (self.peek(1), self.peek(2)) {
            (Some('('), Some('(')) => Err("$((…)) is not read: there is no arithmetic".to_owned()),
            (Some('('), _) => {
                self.at += 2;
                self.commands(depth + 1)?;
                self.at -= 1;
                Ok(())
            }
            (Some('{'), _) => Err("${…} is not read; write $NAME".to_owned()),
            (Some('['), _) => Err("$[…] is not read: there is no arithmetic".to_owned()),
            (Some('?'), _) => {
                self.at += 1;
                Ok(())
            }
            (Some(char), _) if char.is_ascii_alphabetic() || char == '_' => Ok(()),
            (None, _) => Ok(()),
            (Some(char), _) if char.is_whitespace() => Ok(()),
            (Some('"'), _) if is_quoted => Ok(()),
            (Some(char), _) => Err(format!(
                "`${char}` is not read; write $NAME, or use '…' for the text itself"
            )),
        }
    }
}

/// Refuses what the parser reads right and is not done here.
///
/// # Errors
/// The reason, with the remedy.
pub(crate) fn vet_list(list: &SequentialList) -> Result<(), String> {
    for item in &list.items {
        if item.is_async {
            return Err("there are no background jobs; leave the `&` out".to_owned());
        }
        vet_sequence(&item.sequence)?;
    }
    Ok(())
}

fn vet_sequence(sequence: &Sequence) -> Result<(), String> {
    match sequence {
        Sequence::ShellVar(var) => vet_word(&var.value),
        Sequence::Pipeline(Pipeline { inner, .. }) => vet_inner(inner),
        Sequence::BooleanList(both) => {
            vet_sequence(&both.current)?;
            vet_sequence(&both.next)
        }
    }
}

fn vet_inner(inner: &PipelineInner) -> Result<(), String> {
    match inner {
        PipelineInner::Command(command) => vet_command(command),
        PipelineInner::PipeSequence(pipe) => {
            if pipe.op == PipeSequenceOperator::StdoutStderr {
                return Err("`|&` is not read; write `2>&1 |`".to_owned());
            }
            vet_command(&pipe.current)?;
            vet_inner(&pipe.next)
        }
    }
}

fn vet_command(command: &Command) -> Result<(), String> {
    if let Some(redirect) = &command.redirect {
        vet_redirect(redirect)?;
    }
    match &command.inner {
        CommandInner::Simple(simple) => {
            if !simple.env_vars.is_empty() {
                return Err("commands have no environment; leave NAME=value out".to_owned());
            }
            simple.args.iter().try_for_each(vet_word)
        }
        CommandInner::Subshell(list) => vet_list(list),
    }
}

fn vet_redirect(redirect: &Redirect) -> Result<(), String> {
    let written = || {
        Err(format!(
            "files cannot be written; there are {NULL} and 2>&1"
        ))
    };
    match (&redirect.op, &redirect.maybe_fd, &redirect.io_file) {
        (RedirectOp::Input(_), None | Some(RedirectFd::Fd(0)), IoFile::Word(word)) => {
            vet_word(word)
        }
        (RedirectOp::Output(_), None | Some(RedirectFd::Fd(1 | 2)), IoFile::Word(word)) => {
            match word.parts().as_slice() {
                [WordPart::Text(path)] if path == NULL => Ok(()),
                _ => written(),
            }
        }
        (RedirectOp::Output(_), Some(RedirectFd::Fd(2)), IoFile::Fd(1))
        | (RedirectOp::Output(_), None | Some(RedirectFd::Fd(1)), IoFile::Fd(2)) => Ok(()),
        _ => written(),
    }
}

fn vet_word(word: &Word) -> Result<(), String> {
    vet_parts(word.parts())
}

fn vet_parts(parts: &[WordPart]) -> Result<(), String> {
    for part in parts {
        match part {
            WordPart::Text(_) | WordPart::Variable(_) => {}
            WordPart::Tilde => {
                return Err(
                    "there is no home folder; quote the ~ with '…', or name the path".to_owned(),
                );
            }
            WordPart::Command(list) => vet_list(list)?,
            WordPart::Quoted(parts) => vet_parts(parts)?,
            WordPart::Brace(_) => {
                return Err("{…} is not read: quote it with '…', or write the words".to_owned());
            }
        }
    }
    Ok(())
}
