//! Paths from values to the values in them.

use super::terms::{Filter, Scope, Values};
use super::values::{Halt, indexed, kind, raised, sliced};
use crate::meter::VALUE_BYTES;
use jaq_core::load::parse::Term;
use jaq_core::path::{Opt, Part};
use serde_json::Value;
use std::slice;

impl Filter<'_> {
    /// Returns what a path leads to from the values of a term. The input and variables are not
    /// copied for it.
    pub(super) fn followed(
        &mut self,
        inner: &Term<&str>,
        path: &[(Part<Term<&str>>, Opt)],
        scope: Scope<'_>,
    ) -> Values {
        let (mut values, path) = match (inner, path.split_first()) {
            (Term::Id, Some((first, more))) => {
                (self.step(slice::from_ref(scope.input), first, scope)?, more)
            }
            (Term::Var(name), Some((first, more))) => {
                let value = scope.variable(name)?;
                (self.step(slice::from_ref(value), first, scope)?, more)
            }
            (inner, _) => (self.values(inner, scope)?, path),
        };
        for by in path {
            values = self.step(&values, by, scope)?;
        }
        Ok(values)
    }

    /// Follows one part of a path from some values.
    fn step(&mut self, values: &[Value], by: &(Part<Term<&str>>, Opt), scope: Scope<'_>) -> Values {
        let opt = by.1;
        let mut all = Vec::new();
        match &by.0 {
            Part::Index(index) => {
                let indices = self.values(index, scope)?;
                for value in values {
                    for index in &indices {
                        self.meter.work(VALUE_BYTES)?;
                        let found = indexed(value, index);
                        let found = found.and_then(|found| self.copy(found));
                        all.extend(taken(found, opt)?);
                    }
                }
            }
            Part::Range(None, None) => {
                for value in values {
                    self.meter.work(VALUE_BYTES)?;
                    let found = self.items(value);
                    all.extend(taken(found, opt)?.into_iter().flatten());
                }
            }
            Part::Range(from, until) => {
                let from = self.bound(from.as_ref(), scope)?;
                let until = self.bound(until.as_ref(), scope)?;
                for value in values {
                    for until in &until {
                        for from in &from {
                            let found = sliced(self.meter, value, from, until);
                            all.extend(taken(found, opt)?);
                        }
                    }
                }
            }
        }
        Ok(all)
    }

    /// Returns the values of a bound of a slice; null for one that is left out.
    fn bound(&mut self, term: Option<&Term<&str>>, scope: Scope<'_>) -> Values {
        match term {
            Some(term) => self.values(term, scope),
            None => Ok(vec![Value::Null]),
        }
    }

    /// Returns the items of a list, or the values of an object.
    fn items(&mut self, value: &Value) -> Values {
        match value {
            Value::Array(items) => items.iter().map(|item| self.copy(item)).collect(),
            Value::Object(fields) => fields.values().map(|item| self.copy(item)).collect(),
            other => raised(format!("{} has no items", kind(other))),
        }
    }
}

/// Returns what a part of a path has found. What it cannot be followed from gives nothing if it is
/// optional.
fn taken<T>(found: Result<T, Halt>, opt: Opt) -> Result<Option<T>, Halt> {
    match (found, opt) {
        (Ok(found), _) => Ok(Some(found)),
        (Err(Halt::Raised(_)), Opt::Optional) => Ok(None),
        (Err(halt), _) => Err(halt),
    }
}
