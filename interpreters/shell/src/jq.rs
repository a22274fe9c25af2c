//! `jq`: jaq's parser, interpreter and library. The sandbox bounds what a filter may take.
//!
//! There are no modules, no environment and no clock: a line that is carried out again has to come
//! to the same.

use crate::reading::texts;
use crate::state::{Ended, Line, Stop, push};
use agent_host_shapes::shown::visible;
use jaq_core::compile::{self, Undefined};
use jaq_core::data::JustLut;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Filter, Vars};
use jaq_json::write::Pp;
use jaq_json::{Num, Val, read, write};

/// The functions of jaq's library that would tell one time that a line is carried out from another.
const LEFT_OUT: [&str; 2] = ["env", "now"];
/// Definitions that jq has and jaq has not, or that jaq has with another meaning.
const DEFINITIONS: &str = r#"
def from_entries: reduce .[] as $entry ({};
  .[$entry | [.key, .k, .name | values][0] | if . == null then error("an entry has no key") else tostring end]
    = ($entry | if has("value") then .value else .v end));
def with_entries(f): to_entries | map(f) | from_entries;
def join($by): reduce .[] as $item (null;
  (if . == null then "" else . + $by end) + ($item | if . == null then "" else tostring end)) // "";
def row_(f): if isarray then . else error("\(type) is no row") end | map(
  if . == null then "" elif isstring then f elif isarray or isobject then error("\(type) is no cell of a row") else tostring end);
def @csv: row_("\"" + (. / "\"" | join("\"\"")) + "\"") | join(",");
def @tsv: row_(. / "\\" | join("\\\\") / "\t" | join("\\t") / "\n" | join("\\n") / "\r" | join("\\r")) | join("\t");
"#;
/// Whole numbers below this are exact, and written without a fraction.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
/// Characters of a filter that its faults repeat.
const SHOWN_CHARS_MAX: usize = 40;

/// The options of one use.
#[derive(Default)]
struct Options {
    is_raw: bool,
    is_joined: bool,
    is_compact: bool,
    has_no_input: bool,
    is_slurped: bool,
    tells_by_exit: bool,
    /// Variables by their names, with the dollar sign.
    variables: Vec<(String, Val)>,
    others: Vec<String>,
}

impl Options {
    /// Reads the options. The error is their fault, for people.
    fn read(arguments: &[String]) -> Result<Self, String> {
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
                        Val::from(value.clone())
                    } else {
                        read::parse_single(value.as_bytes()).map_err(|error| error.to_string())?
                    };
                    options.variables.push((format!("${name}"), value));
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
                    let argument = visible(argument, 80);
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
pub(crate) fn run(line: &Line<'_>, arguments: &[String], input: &str) -> Result<Ended, Stop> {
    let options = match Options::read(arguments) {
        Ok(options) => options,
        Err(why) => return Ok(Ended::failed(2, format!("jq: {why}"))),
    };
    let Some((code, paths)) = options.others.split_first() else {
        return Ok(Ended::failed(2, "jq: it needs a filter"));
    };
    let filter = match compiled(code, &options.variables) {
        Ok(filter) => filter,
        Err(why) => return Ok(Ended::failed(3, format!("jq: {why}"))),
    };
    let read = texts(line, "jq", paths, input)?;
    let mut inputs = Vec::new();
    if options.has_no_input {
        inputs.push(Val::Null);
    } else {
        for text in &read.texts {
            let documents = read::parse_many(text.text.as_bytes());
            match documents.collect::<Result<Vec<Val>, _>>() {
                Ok(documents) => inputs.extend(documents),
                Err(why) => return Ok(Ended::failed(2, format!("jq: {}: {why}", text.path))),
            }
        }
        if options.is_slurped {
            inputs = vec![inputs.into_iter().collect()];
        }
    }
    let mut ended = filtered(&filter, &options, inputs)?;
    ended.err.insert_str(0, &read.err);
    if !read.err.is_empty() && ended.exit == 0 {
        ended.exit = 2;
    }
    Ok(ended)
}

type Compiled = Filter<JustLut<Val>>;

/// Compiles a filter. The error is its fault, for people.
fn compiled(code: &str, variables: &[(String, Val)]) -> Result<Compiled, String> {
    let definitions = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs())
        .chain(load::parse(DEFINITIONS, |parser| parser.defs()).unwrap_or_default());
    let functions = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs())
        .filter(|(name, ..)| !LEFT_OUT.contains(name));
    let arena = Arena::default();
    let modules = Loader::new(definitions)
        .load(&arena, File { code, path: () })
        .map_err(|errors| unread(&errors))?;
    Compiler::default()
        .with_funs(functions)
        .with_global_vars(variables.iter().map(|(name, _)| name.as_str()))
        .compile(modules)
        .map_err(|errors| undefined(&errors))
}

/// Returns the reason why a filter cannot be read.
fn unread(errors: &load::Errors<&str, ()>) -> String {
    let at = |expected: &str, found: &str| {
        let found = visible(found, SHOWN_CHARS_MAX);
        format!("the filter cannot be read: {expected} is expected at `{found}`")
    };
    match errors.first().map(|(_, error)| error) {
        Some(load::Error::Io(_)) => "there are no modules".to_owned(),
        Some(load::Error::Lex(all)) => all.first().map_or_else(String::new, |(expected, found)| {
            at(expected.as_str(), found)
        }),
        Some(load::Error::Parse(all)) => {
            all.first().map_or_else(String::new, |(expected, found)| {
                at(expected.as_str(), found)
            })
        }
        None => "the filter cannot be read".to_owned(),
    }
}

/// Returns the first name of a filter that is not there.
fn undefined(errors: &compile::Errors<&str, ()>) -> String {
    let all = errors.iter().flat_map(|(_, all)| all);
    let Some((name, kind)) = all.into_iter().next() else {
        return "the filter has a name that is not there".to_owned();
    };
    let name = visible(name, SHOWN_CHARS_MAX);
    match kind {
        Undefined::Filter(arguments) => format!("there is no function {name}/{arguments}"),
        kind => format!("there is no {} {name}", kind.as_str()),
    }
}

fn filtered(filter: &Compiled, options: &Options, inputs: Vec<Val>) -> Result<Ended, Stop> {
    let style = Pp {
        indent: (!options.is_compact).then(|| "  ".to_owned()),
        sep_space: !options.is_compact,
        ..Pp::default()
    };
    let end = if options.is_joined { "" } else { "\n" };
    let variables = options.variables.iter().map(|(_, value)| value.clone());
    let context = Ctx::<JustLut<Val>>::new(&filter.lut, Vars::new(variables));
    let mut ended = Ended::default();
    let mut says_no = true;
    for input in inputs {
        for value in filter.id.run((context.clone(), input)) {
            let value = match value {
                Ok(value) => value,
                Err(thrown) => match thrown.get_err() {
                    Ok(error) => {
                        push(&mut ended.err, &["jq: ", &error.to_string(), "\n"])?;
                        ended.exit = 5;
                        break;
                    }
                    Err(halted) => {
                        ended.exit = halted.get_halt().map_or(5, exit_code);
                        return Ok(ended);
                    }
                },
            };
            let value = plain(value);
            says_no = matches!(value, Val::Null | Val::Bool(false));
            push(
                &mut ended.out,
                &[&shown(&value, &style, options.is_raw), end],
            )?;
        }
    }
    if options.tells_by_exit && ended.exit == 0 && says_no {
        ended.exit = 1;
    }
    Ok(ended)
}

/// Returns the exit code of a filter that halts, as other systems have it.
fn exit_code(code: i32) -> u8 {
    u8::try_from(code & 0xff).unwrap_or(u8::MAX)
}

/// Returns a value as JSON has it: a number is whole if it may be, and null if it is none.
fn plain(value: Val) -> Val {
    match value {
        Val::Num(Num::Float(number)) if !number.is_finite() => Val::Null,
        Val::Num(Num::Float(number)) if number.fract() == 0.0 && number.abs() < WHOLE_MAX => {
            // Whole and within the bound, so it is exact.
            let whole = read::parse_single_num(format!("{number:.0}").as_bytes());
            Val::Num(whole.unwrap_or(Num::Float(number)))
        }
        Val::Arr(items) => items.iter().cloned().map(plain).collect(),
        Val::Obj(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()));
            Val::obj(fields.map(|(key, value)| (key, plain(value))).collect())
        }
        value => value,
    }
}

/// Returns a value as it is printed.
fn shown(value: &Val, style: &Pp, is_raw: bool) -> String {
    let mut bytes = Vec::new();
    match value {
        Val::TStr(text) | Val::BStr(text) if is_raw => bytes.extend_from_slice(text),
        // Writing to memory cannot fail.
        value => drop(write::write(&mut bytes, style, 0, value)),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
