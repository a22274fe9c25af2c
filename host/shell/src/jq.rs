//! `jq`: filters are read by jaq's parser and carried out here, so that each value that is made is
//! counted before it takes memory.
//!
//! Left out are definitions, folds, labels, recursion by name, assignments, and what follows paths.
//! There are no modules, no environment and no clock. A filter with any of these, or with a name
//! that is not known, is refused before anything is carried out. All values of a term are made
//! before the first is used, so `first` and `limit` make no shorter work of it.

mod functions;
mod names;
mod paths;
mod plain;
mod terms;
mod values;

use crate::meter::{Meter, Stop};
use crate::reading::texts;
use crate::state::{Ended, Line};
use jaq_core::load::lex::Lexer;
use jaq_core::load::parse::{Parser, Term};
use serde_json::{Deserializer, Value};
use terms::{Filter, Scope, Variable};
use values::Halt;

/// Bytes of a filter.
const FILTER_BYTES_MAX: usize = 2 << 10;
/// Brackets in a filter. The parser calls itself for each.
const BRACKETS_MAX: usize = 64;
/// Signs and words in a filter that a term follows. The parser calls itself for each of these too.
const PREFIXES_MAX: usize = 256;

/// The options of one use.
#[derive(Default)]
struct Options {
    is_raw: bool,
    is_joined: bool,
    is_compact: bool,
    has_no_input: bool,
    is_slurped: bool,
    tells_by_exit: bool,
    variables: Vec<Variable>,
    others: Vec<String>,
}

impl Options {
    /// Reads the options. The inner error is their fault, for people.
    fn read(meter: &mut Meter, arguments: &[String]) -> Result<Result<Self, String>, Stop> {
        if arguments.iter().any(|argument| argument == "--argjson") {
            for argument in arguments {
                meter.reading(argument)?;
            }
        }
        Ok(Self::taken(arguments))
    }

    fn taken(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut all = arguments.iter();
        while let Some(argument) = all.next() {
            match argument.as_str() {
                "--raw-output" => options.is_raw = true,
                "--compact-output" => options.is_compact = true,
                "--null-input" => options.has_no_input = true,
                "--slurp" => options.is_slurped = true,
                "--arg" | "--argjson" => {
                    let (Some(name), Some(value)) = (all.next(), all.next()) else {
                        return Err(format!("{argument} takes a name and a value"));
                    };
                    let value = if argument == "--arg" {
                        Value::from(value.as_str())
                    } else {
                        domain::json::parse(value).map_err(|refused| refused.to_string())?
                    };
                    options.variables.push(Variable {
                        name: format!("${name}"),
                        value,
                    });
                }
                "-" => options.others.push(argument.clone()),
                _ => match argument.strip_prefix('-') {
                    Some(letters) => options.take(argument, letters)?,
                    None => options.others.push(argument.clone()),
                },
            }
        }
        Ok(options)
    }

    fn take(&mut self, argument: &str, letters: &str) -> Result<(), String> {
        for letter in letters.chars() {
            match letter {
                'r' => self.is_raw = true,
                'j' => {
                    self.is_raw = true;
                    self.is_joined = true;
                }
                'c' => self.is_compact = true,
                'n' => self.has_no_input = true,
                's' => self.is_slurped = true,
                'e' => self.tells_by_exit = true,
                _ => {
                    let argument = domain::shown::visible(argument, 80);
                    return Err(format!(
                        "there is no option {argument} here; options are: -r -j -c -n -s -e --arg \
                         NAME TEXT --argjson NAME JSON"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Carries `jq` out.
pub(crate) fn run(line: &mut Line<'_>, arguments: &[String], input: &str) -> Result<Ended, Stop> {
    let options = match Options::read(&mut line.meter, arguments)? {
        Ok(options) => options,
        Err(why) => return Ok(Ended::failed(2, format!("jq: {why}"))),
    };
    let Some((code, paths)) = options.others.split_first() else {
        return Ok(Ended::failed(2, "jq: it needs a filter"));
    };
    if let Err(why) = fits(code) {
        return Ok(Ended::failed(3, format!("jq: {why}")));
    }
    let Ok(tokens) = Lexer::new(code).lex() else {
        return Ok(Ended::failed(
            3,
            "jq: the filter cannot be read: quotes or brackets are open",
        ));
    };
    let Ok(term) = Parser::new(&tokens).parse(|parser| parser.term()) else {
        return Ok(Ended::failed(3, "jq: the filter cannot be read"));
    };
    if let Err(why) = names::check(&term, &options.variables) {
        return Ok(Ended::failed(3, format!("jq: {why}")));
    }
    let read = texts(line, "jq", paths, input)?;
    let mut inputs = Vec::new();
    if options.has_no_input {
        inputs.push(Value::Null);
    } else {
        for text in &read.texts {
            match documents(&mut line.meter, text.text)? {
                Ok(documents) => inputs.extend(documents),
                Err(why) => {
                    return Ok(Ended::failed(2, format!("jq: {}: {why}", text.path)));
                }
            }
        }
        if options.is_slurped {
            inputs = vec![Value::Array(inputs)];
        }
    }
    let mut ended = filtered(&mut line.meter, &term, &options, &inputs)?;
    ended.err.insert_str(0, &read.err);
    if !read.err.is_empty() && ended.exit == 0 {
        ended.exit = 2;
    }
    Ok(ended)
}

/// Checks the size of a filter.
fn fits(code: &str) -> Result<(), String> {
    if code.len() > FILTER_BYTES_MAX {
        return Err(format!(
            "the filter is longer than {FILTER_BYTES_MAX} bytes; divide it"
        ));
    }
    if code.matches(['(', '[', '{']).count() > BRACKETS_MAX {
        return Err(format!(
            "the filter has more than {BRACKETS_MAX} brackets; divide it"
        ));
    }
    let prefixes = ["-", "try", "if", "as", "label", "def", "reduce", "foreach"];
    if prefixes
        .iter()
        .map(|it| code.matches(*it).count())
        .sum::<usize>()
        > PREFIXES_MAX
    {
        return Err(format!(
            "the filter has more than {PREFIXES_MAX} signs and words that a term follows; divide it"
        ));
    }
    Ok(())
}

/// Reads the documents of a text. The inner error is the fault of the text.
fn documents(meter: &mut Meter, text: &str) -> Result<Result<Vec<Value>, String>, Stop> {
    meter.inspect()?;
    meter.reading(text)?;
    let all = Deserializer::from_str(text).into_iter::<Value>();
    let read: Result<Vec<Value>, _> = all.collect();
    Ok(read.map_err(|error| error.to_string()))
}

fn filtered(
    meter: &mut Meter,
    term: &Term<&str>,
    options: &Options,
    inputs: &[Value],
) -> Result<Ended, Stop> {
    let mut ended = Ended::default();
    let mut last = None;
    let mut filter = Filter::new(meter);
    for input in inputs {
        let scope = Scope {
            input,
            variables: &options.variables,
        };
        let values = match filter.values(term, scope) {
            Ok(values) => values,
            Err(Halt::Raised(why)) => {
                let reported = ["jq: ", why.as_str(), "\n"];
                filter.meter.push_all(&mut ended.err, &reported)?;
                ended.exit = 5;
                continue;
            }
            Err(Halt::Stopped(stop)) => return Err(stop),
        };
        for value in values {
            let end = if options.is_joined { "" } else { "\n" };
            match &value {
                Value::String(text) if options.is_raw => {
                    filter.meter.push_all(&mut ended.out, &[text, end])?;
                }
                value => {
                    let text = filter.meter.json(value, options.is_compact)?;
                    filter.meter.push_all(&mut ended.out, &[&text, end])?;
                }
            }
            last = Some(value);
        }
    }
    let says_no = matches!(last, None | Some(Value::Null | Value::Bool(false)));
    if options.tells_by_exit && ended.exit == 0 && says_no {
        ended.exit = 1;
    }
    Ok(ended)
}
