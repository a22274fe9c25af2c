//! Words: texts, variables and substitutions become arguments.

use crate::meter::Stop;
use crate::state::Line;
use deno_task_shell::parser::{Word, WordPart};

/// Arguments of one command.
const ARGUMENTS_MAX: usize = 4_096;

/// The arguments that words become, the last of which may go on.
#[derive(Default)]
struct Fields {
    done: Vec<String>,
    /// The argument that is being made; none between two.
    open: Option<String>,
}

impl Fields {
    fn push(&mut self, text: &str) {
        self.open.get_or_insert_default().push_str(text);
    }

    /// Adds a text that stood outside of quotes, which is divided at its blanks.
    fn push_divided(&mut self, text: &str) {
        if text.starts_with(char::is_whitespace) {
            self.end();
        }
        let mut words = text.split_whitespace().peekable();
        while let Some(word) = words.next() {
            self.push(word);
            if words.peek().is_some() || text.ends_with(char::is_whitespace) {
                self.end();
            }
        }
    }

    fn end(&mut self) {
        self.done.extend(self.open.take());
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
            fields.end();
            if fields.done.len() > ARGUMENTS_MAX {
                return Err(Stop::Over(format!(
                    "a command has more than {ARGUMENTS_MAX} arguments"
                )));
            }
        }
        Ok(fields.done)
    }

    /// Returns the one text that a word is, as the value of a variable.
    pub(crate) fn text_of(&mut self, parts: &[WordPart]) -> Result<String, Stop> {
        let mut text = String::new();
        for part in parts {
            let piece = match part {
                WordPart::Text(piece) => piece.clone(),
                WordPart::Variable(name) => self.variable(name),
                WordPart::Command(list) => self.substitute(list)?,
                WordPart::Quoted(parts) => self.text_of(parts)?,
                // Both were refused before.
                WordPart::Tilde | WordPart::Brace(_) => String::new(),
            };
            self.meter.text(text.len() + piece.len())?;
            text.push_str(&piece);
        }
        Ok(text)
    }

    fn part(&mut self, part: &WordPart, fields: &mut Fields) -> Result<(), Stop> {
        match part {
            WordPart::Text(text) => {
                self.meter.text(text.len())?;
                fields.push(text);
            }
            WordPart::Variable(name) => {
                let value = self.variable(name);
                self.meter.text(value.len())?;
                fields.push_divided(&value);
            }
            WordPart::Command(list) => {
                let out = self.substitute(list)?;
                fields.push_divided(&out);
            }
            WordPart::Quoted(parts) => {
                let text = self.text_of(parts)?;
                fields.push(&text);
            }
            // Both were refused before.
            WordPart::Tilde | WordPart::Brace(_) => {}
        }
        Ok(())
    }
}
