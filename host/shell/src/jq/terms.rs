//! The terms of a filter. No value is added to others that was not counted before it was made.

use super::functions::formatted;
use super::values::{
    Halt, arithmetic, compared, indexed, is_true, kind, number_from, raised, weight,
};
use crate::meter::{Meter, OBJECT_BYTES, VALUE_BYTES};
use crate::pattern::Searched;
use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::ops::Math;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The values that a term gives, in order.
pub(super) type Values = Result<Vec<Value>, Halt>;

/// A variable with its value; its name begins with `$`.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: Value,
}

/// The input of a term, and the variables that it may name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'s> {
    pub(super) input: &'s Value,
    pub(super) variables: &'s [Variable],
}

impl<'s> Scope<'s> {
    /// Returns the scope with another input.
    pub(super) fn with(self, input: &'s Value) -> Self {
        Self { input, ..self }
    }

    pub(super) fn variable(self, name: &str) -> Result<&'s Value, Halt> {
        let found = self.variables.iter().rev().find(|it| it.name == name);
        found
            .map(|variable| &variable.value)
            .ok_or_else(|| Halt::Raised(format!("there is no variable {name}")))
    }
}

/// A filter that is carried out.
pub(super) struct Filter<'m> {
    pub(super) meter: &'m mut Meter,
    /// The patterns that were compiled, by their text and whether case is ignored.
    pub(super) patterns: BTreeMap<(String, bool), Rc<Searched>>,
}

/// Returns the error for a construct that no filter has once its names are checked.
fn unchecked<T>() -> Result<T, Halt> {
    raised("the filter was not checked")
}

impl<'m> Filter<'m> {
    pub(super) fn new(meter: &'m mut Meter) -> Self {
        Self {
            meter,
            patterns: BTreeMap::new(),
        }
    }

    /// Counts a value, and makes a copy of it.
    pub(super) fn copy(&mut self, value: &Value) -> Result<Value, Halt> {
        self.meter.work(weight(value))?;
        Ok(value.clone())
    }

    /// Counts a value that was made from others.
    pub(super) fn made(&mut self, value: Value) -> Result<Value, Halt> {
        self.meter.work(weight(&value))?;
        Ok(value)
    }

    /// Returns the values of a term for one input.
    pub(super) fn values(&mut self, term: &Term<&str>, scope: Scope<'_>) -> Values {
        self.meter.work(VALUE_BYTES)?;
        match term {
            Term::Id => Ok(vec![self.copy(scope.input)?]),
            Term::Recurse => self.all_below(scope.input),
            Term::Num(number) => Ok(vec![number_from(number)?]),
            Term::Str(format, parts) => self.text(*format, parts, scope),
            Term::Arr(None) => Ok(vec![Value::Array(Vec::new())]),
            Term::Arr(Some(inner)) => Ok(vec![Value::Array(self.values(inner, scope)?)]),
            Term::Obj(entries) => self.objects(entries, scope),
            Term::Neg(inner) => {
                let values = self.values(inner, scope)?;
                let zero = Value::from(0);
                let negated = values
                    .iter()
                    .map(|value| arithmetic(self.meter, Math::Sub, &zero, value));
                negated.collect()
            }
            Term::BinOp(left, BinaryOp::Pipe(pattern), right) => {
                let values = self.values(left, scope)?;
                self.piped(values, (pattern.as_ref(), &**right), scope)
            }
            Term::BinOp(left, op, right) => self.both((&**left, &**right), op, scope),
            Term::TryCatch(inner, caught) => match self.values(inner, scope) {
                Err(Halt::Raised(why)) => match caught {
                    Some(caught) => self.values(caught, scope.with(&Value::from(why))),
                    None => Ok(Vec::new()),
                },
                values => values,
            },
            Term::IfThenElse(branches, otherwise) => {
                self.chosen(branches, otherwise.as_deref(), scope)
            }
            Term::Call(name, arguments) => self.call(name, arguments, scope),
            Term::Var(name) => Ok(vec![self.copy(scope.variable(name)?)?]),
            Term::Path(inner, path) => self.followed(inner, &path.0, scope),
            Term::Label(..) | Term::Break(_) | Term::Fold(..) | Term::Def(..) => unchecked(),
        }
    }

    /// Returns a value and all values in it.
    fn all_below(&mut self, input: &Value) -> Values {
        let mut all = Vec::new();
        let mut next = vec![input];
        while let Some(value) = next.pop() {
            all.push(self.copy(value)?);
            match value {
                Value::Array(items) => next.extend(items.iter().rev()),
                Value::Object(fields) => next.extend(fields.values().rev()),
                _ => {}
            }
        }
        Ok(all)
    }

    fn text(
        &mut self,
        format: Option<&str>,
        parts: &[StrPart<&str, Term<&str>>],
        scope: Scope<'_>,
    ) -> Values {
        let mut texts = vec![String::new()];
        for part in parts {
            let chunks: Vec<String> = match part {
                StrPart::Str(text) => vec![(*text).to_owned()],
                StrPart::Char(char) => vec![char.to_string()],
                StrPart::Term(term) => {
                    let values = self.values(term, scope)?;
                    let chunks = values
                        .iter()
                        .map(|value| formatted(self.meter, format, value));
                    chunks.collect::<Result<_, _>>()?
                }
            };
            let mut longer = Vec::new();
            for chunk in &chunks {
                for text in &texts {
                    self.meter.work(VALUE_BYTES)?;
                    self.meter.longer(text.len(), chunk.len())?;
                    self.meter.work(text.len())?;
                    longer.push(format!("{text}{chunk}"));
                }
            }
            texts = longer;
        }
        self.meter.work(texts.len().saturating_mul(VALUE_BYTES))?;
        Ok(texts.into_iter().map(Value::from).collect())
    }

    fn objects(
        &mut self,
        entries: &[(Term<&str>, Option<Term<&str>>)],
        scope: Scope<'_>,
    ) -> Values {
        let mut objects = vec![Value::Object(Map::new())];
        for (key, value) in entries {
            // A variable by itself is the value, under its name.
            let keys = match (key, value) {
                (Term::Var(name), None) => vec![Value::from(name.trim_start_matches('$'))],
                (key, _) => self.values(key, scope)?,
            };
            let mut longer = Vec::new();
            for name in keys {
                if !name.is_string() {
                    return raised(format!("{} cannot be an object's key", kind(&name)));
                }
                let values = match (key, value) {
                    (_, Some(value)) => self.values(value, scope)?,
                    (Term::Var(_), None) => self.values(key, scope)?,
                    (_, None) => vec![self.copy(indexed(scope.input, &name)?)?],
                };
                longer.extend(self.longer(&objects, &name, &values)?);
            }
            objects = longer;
        }
        Ok(objects)
    }

    /// Returns each object with each value under a key.
    fn longer(&mut self, objects: &[Value], key: &Value, values: &[Value]) -> Values {
        let name = key.as_str().unwrap_or_default();
        let mut longer = Vec::new();
        for value in values {
            for object in objects {
                self.meter.work(OBJECT_BYTES + name.len() + weight(value))?;
                let mut object = self.copy(object)?;
                if let Value::Object(fields) = &mut object {
                    fields.insert(name.to_owned(), value.clone());
                }
                longer.push(object);
            }
        }
        Ok(longer)
    }

    /// Returns what a term gives for each of some values, which are its inputs or a variable.
    fn piped(
        &mut self,
        values: Vec<Value>,
        to: (Option<&Pattern<&str>>, &Term<&str>),
        scope: Scope<'_>,
    ) -> Values {
        let mut all = Vec::new();
        for value in values {
            match to.0 {
                None => all.extend(self.values(to.1, scope.with(&value))?),
                Some(Pattern::Var(name)) => {
                    let mut variables = scope.variables.to_vec();
                    for variable in &variables {
                        let name = variable.name.len();
                        self.meter
                            .work(VALUE_BYTES + name + weight(&variable.value))?;
                    }
                    variables.push(Variable {
                        name: (*name).to_owned(),
                        value,
                    });
                    let scope = Scope {
                        input: scope.input,
                        variables: &variables,
                    };
                    all.extend(self.values(to.1, scope)?);
                }
                Some(_) => return unchecked(),
            }
        }
        Ok(all)
    }

    fn both(
        &mut self,
        sides: (&Term<&str>, &Term<&str>),
        op: &BinaryOp<&str>,
        scope: Scope<'_>,
    ) -> Values {
        match op {
            BinaryOp::Comma => {
                let mut values = self.values(sides.0, scope)?;
                values.extend(self.values(sides.1, scope)?);
                Ok(values)
            }
            BinaryOp::Alt => {
                let left = match self.values(sides.0, scope) {
                    Err(Halt::Raised(_)) => Vec::new(),
                    values => values?,
                };
                let left: Vec<Value> = left.into_iter().filter(is_true).collect();
                if left.is_empty() {
                    self.values(sides.1, scope)
                } else {
                    Ok(left)
                }
            }
            BinaryOp::Or | BinaryOp::And => {
                let ends = matches!(op, BinaryOp::Or);
                let mut all = Vec::new();
                for left in self.values(sides.0, scope)? {
                    if is_true(&left) == ends {
                        all.push(Value::Bool(ends));
                        continue;
                    }
                    let right = self.values(sides.1, scope)?;
                    all.extend(right.iter().map(|value| Value::Bool(is_true(value))));
                }
                Ok(all)
            }
            BinaryOp::Math(math) => self.pairs(sides, scope, |meter, left, right| {
                arithmetic(meter, *math, left, right)
            }),
            BinaryOp::Cmp(cmp) => self.pairs(sides, scope, |meter, left, right| {
                meter.work(weight(left).min(weight(right)))?;
                Ok(Value::Bool(compared(*cmp, left, right)))
            }),
            _ => unchecked(),
        }
    }

    /// Returns what becomes of each pair of values of two terms.
    fn pairs(
        &mut self,
        sides: (&Term<&str>, &Term<&str>),
        scope: Scope<'_>,
        becomes: impl Fn(&mut Meter, &Value, &Value) -> Result<Value, Halt>,
    ) -> Values {
        let rights = self.values(sides.1, scope)?;
        let lefts = self.values(sides.0, scope)?;
        let mut all = Vec::new();
        for right in &rights {
            for left in &lefts {
                self.meter.work(VALUE_BYTES)?;
                all.push(becomes(self.meter, left, right)?);
            }
        }
        Ok(all)
    }

    fn chosen(
        &mut self,
        branches: &[(Term<&str>, Term<&str>)],
        otherwise: Option<&Term<&str>>,
        scope: Scope<'_>,
    ) -> Values {
        let Some(((condition, then), more)) = branches.split_first() else {
            return match otherwise {
                Some(otherwise) => self.values(otherwise, scope),
                None => Ok(vec![self.copy(scope.input)?]),
            };
        };
        let mut all = Vec::new();
        for holds in self.values(condition, scope)? {
            all.extend(if is_true(&holds) {
                self.values(then, scope)?
            } else {
                self.chosen(more, otherwise, scope)?
            });
        }
        Ok(all)
    }
}
