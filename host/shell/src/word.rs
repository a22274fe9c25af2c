//! Words: texts, variables and substitutions become arguments.

use crate::meter::{Meter, Stop};
use crate::state::Line;
use deno_task_shell::parser::{Word, WordPart};

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
    fn push(&mut self, meter: &mut Meter, text: &str) -> Result<(), Stop> {
        meter.longer(self.bytes, text.len())?;
        self.bytes += text.len();
        self.open.get_or_insert_default().push_str(text);
        Ok(())
    }

    /// Adds a text that stood outside of quotes, which is divided at its blanks.
    fn push_divided(&mut self, meter: &mut Meter, text: &str) -> Result<(), Stop> {
        if text.starts_with(BLANKS) {
            self.end(meter)?;
        }
        let mut words = text
            .split(BLANKS)
            .filter(|word| !word.is_empty())
            .peekable();
        while let Some(word) = words.next() {
            self.push(meter, word)?;
            if words.peek().is_some() || text.ends_with(BLANKS) {
                self.end(meter)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, meter: &mut Meter) -> Result<(), Stop> {
        if self.open.is_some() && self.done.len() >= ARGUMENTS_MAX {
            return Err(Stop::Over(format!(
                "a command has more than {ARGUMENTS_MAX} arguments"
            )));
        }
        meter.work(64)?;
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
            fields.end(&mut self.meter)?;
        }
        Ok(fields.done)
    }

    /// Returns the one text that a word is, as the value of a variable.
    pub(crate) fn text_of(&mut self, parts: &[WordPart]) -> Result<String, Stop> {
        let mut text = String::new();
        for part in parts {
            let chunk = match part {
                WordPart::Text(chunk) => {
                    self.meter.push(&mut text, chunk)?;
                    continue;
                }
                WordPart::Variable(name) => self.variable(name)?,
                WordPart::Command(list) => self.substitute(list)?,
                WordPart::Quoted(parts) => self.text_of(parts)?,
                // Both were refused before.
                WordPart::Tilde | WordPart::Brace(_) => continue,
            };
            self.meter.push(&mut text, &chunk)?;
        }
        Ok(text)
    }

    fn part(&mut self, part: &WordPart, fields: &mut Fields) -> Result<(), Stop> {
        match part {
            WordPart::Text(text) => fields.push(&mut self.meter, text),
            WordPart::Variable(name) => {
                let value = self.variable(name)?;
                fields.push_divided(&mut self.meter, &value)
            }
            WordPart::Command(list) => {
                let out = self.substitute(list)?;
                fields.push_divided(&mut self.meter, &out)
            }
            WordPart::Quoted(parts) => {
                let text = self.text_of(parts)?;
                fields.push(&mut self.meter, &text)
            }
            // Both were refused before.
            WordPart::Tilde | WordPart::Brace(_) => Ok(()),
        }
    }
}
