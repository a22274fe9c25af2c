//! Names and constructs of a filter, looked at before it is carried out.
//!
//! A fault that is met only where it is reached would be caught by `try`, `?` and `//`, or never be
//! met in a list without items, and the filter would give a wrong result in silence.

use super::terms::Variable;
use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::path::Part;

/// Terms within terms. Each takes some of the stack when it is carried out.
const DEPTH_MAX: usize = 512;

/// The functions that a filter may call: those without arguments, with one, and with two.
const FUNCTIONS: [&[&str]; 3] = [
    &[
        "empty",
        "error",
        "values",
        "nulls",
        "booleans",
        "numbers",
        "strings",
        "arrays",
        "objects",
        "iterables",
        "scalars",
        "null",
        "true",
        "false",
        "not",
        "length",
        "type",
        "keys",
        "keys_unsorted",
        "to_entries",
        "from_entries",
        "tojson",
        "tostring",
        "fromjson",
        "tonumber",
        "floor",
        "ceil",
        "round",
        "abs",
        "ascii_downcase",
        "ascii_upcase",
        "trim",
        "ltrim",
        "rtrim",
        "@text",
        "@json",
        "@csv",
        "@tsv",
        "add",
        "any",
        "all",
        "sort",
        "unique",
        "min",
        "max",
        "first",
        "last",
        "reverse",
        "flatten",
    ],
    &[
        "error",
        "select",
        "first",
        "last",
        "range",
        "sort_by",
        "group_by",
        "unique_by",
        "min_by",
        "max_by",
        "map",
        "map_values",
        "with_entries",
        "any",
        "all",
        "test",
        "has",
        "contains",
        "inside",
        "startswith",
        "endswith",
        "ltrimstr",
        "rtrimstr",
        "split",
        "index",
        "join",
        "getpath",
    ],
    &["limit", "range", "test", "sub", "gsub"],
];

/// Checks that a filter has only names that are known and constructs that are carried out.
///
/// # Errors
/// The first that is not, for people.
pub(super) fn check<'t>(term: &'t Term<&'t str>, given: &'t [Variable]) -> Result<(), String> {
    let variables = given.iter().map(|variable| variable.name.as_str());
    let mut names = Names {
        variables: variables.collect(),
        depth: 0,
    };
    names.term(term)
}

/// The place in a filter that is looked at.
struct Names<'t> {
    /// The variables that may be named there.
    variables: Vec<&'t str>,
    /// The number of terms around it.
    depth: usize,
}

fn not_here(what: &str) -> Result<(), String> {
    Err(format!("{what} is not read here"))
}

fn shown(name: &str) -> String {
    domain::shown::visible(name, 80)
}

fn function(name: &str, arguments: usize) -> Result<(), String> {
    let known = FUNCTIONS.get(arguments);
    if known.is_some_and(|known| known.contains(&name)) {
        return Ok(());
    }
    let name = shown(name);
    Err(format!("there is no function {name}/{arguments} here"))
}

impl<'t> Names<'t> {
    fn term(&mut self, term: &'t Term<&'t str>) -> Result<(), String> {
        if self.depth >= DEPTH_MAX {
            return Err(format!(
                "the filter has more than {DEPTH_MAX} terms within each other"
            ));
        }
        self.depth += 1;
        let checked = self.within(term);
        self.depth -= 1;
        checked
    }

    fn terms(&mut self, terms: impl IntoIterator<Item = &'t Term<&'t str>>) -> Result<(), String> {
        terms.into_iter().try_for_each(|term| self.term(term))
    }

    fn within(&mut self, term: &'t Term<&'t str>) -> Result<(), String> {
        match term {
            Term::Id | Term::Recurse | Term::Num(_) | Term::Arr(None) => Ok(()),
            Term::Str(format, parts) => {
                if let Some(format) = format {
                    function(format, 0)?;
                }
                self.terms(parts.iter().filter_map(|part| match part {
                    StrPart::Term(term) => Some(term),
                    StrPart::Str(_) | StrPart::Char(_) => None,
                }))
            }
            Term::Arr(Some(inner)) | Term::Neg(inner) => self.term(inner),
            Term::Obj(entries) => entries.iter().try_for_each(|(key, value)| {
                self.term(key)?;
                self.terms(value)
            }),
            Term::BinOp(left, op, right) => {
                self.term(left)?;
                self.right(op, right)
            }
            Term::TryCatch(inner, caught) => {
                self.term(inner)?;
                self.terms(caught.as_deref())
            }
            Term::IfThenElse(branches, otherwise) => {
                for (condition, then) in branches {
                    self.terms([condition, then])?;
                }
                self.terms(otherwise.as_deref())
            }
            Term::Call(name, arguments) => {
                function(name, arguments.len())?;
                self.terms(arguments)
            }
            Term::Var(name) if self.variables.contains(name) => Ok(()),
            Term::Var(name) => Err(format!("there is no variable {} here", shown(name))),
            Term::Path(inner, path) => {
                self.term(inner)?;
                path.0.iter().try_for_each(|(part, _)| match part {
                    Part::Index(index) => self.term(index),
                    Part::Range(from, until) => self.terms(from.iter().chain(until)),
                })
            }
            Term::Label(..) | Term::Break(_) => not_here("label"),
            Term::Fold(name, ..) => not_here(name),
            Term::Def(..) => not_here("def"),
        }
    }

    /// Checks the right side of an operator, where a variable that `as` binds may be named.
    fn right(&mut self, op: &'t BinaryOp<&'t str>, right: &'t Term<&'t str>) -> Result<(), String> {
        match op {
            BinaryOp::Pipe(Some(Pattern::Var(name))) => {
                self.variables.push(name);
                let checked = self.term(right);
                self.variables.pop();
                checked
            }
            BinaryOp::Pipe(Some(_)) => not_here("a pattern after `as`"),
            BinaryOp::Pipe(None)
            | BinaryOp::Comma
            | BinaryOp::Alt
            | BinaryOp::Or
            | BinaryOp::And
            | BinaryOp::Math(_)
            | BinaryOp::Cmp(_) => self.term(right),
            BinaryOp::Assign | BinaryOp::Update | BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt => {
                not_here("an assignment")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FUNCTIONS;
    use crate::jq::terms::{Filter, Scope};
    use crate::jq::values::Halt;
    use crate::meter::Meter;
    use jaq_core::load::lex::Lexer;
    use jaq_core::load::parse::Parser;
    use serde_json::Value;

    #[test]
    fn each_function_of_the_list_is_carried_out() {
        for (count, names) in FUNCTIONS.iter().enumerate() {
            for name in *names {
                let code = match count {
                    0 => (*name).to_owned(),
                    count => format!("{name}({})", vec!["."; count].join(";")),
                };
                let Ok(tokens) = Lexer::new(code.as_str()).lex() else {
                    panic!("{code} is no filter");
                };
                let Ok(term) = Parser::new(&tokens).parse(|parser| parser.term()) else {
                    panic!("{code} is no filter");
                };
                let mut meter = Meter::new(Box::new(|| false));
                let scope = Scope {
                    input: &Value::Null,
                    variables: &[],
                };
                match Filter::new(&mut meter).values(&term, scope) {
                    Ok(_) => {}
                    Err(Halt::Raised(why)) => assert!(!why.contains("no function"), "{why}"),
                    Err(Halt::Stopped(stop)) => panic!("{code}: {stop:?}"),
                }
            }
        }
    }
}
