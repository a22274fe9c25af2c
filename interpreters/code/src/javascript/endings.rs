//! The value of a program that becomes the body of a function: a script has the value of its last
//! expression, and a function only what it returns. A program that awaits at its top level becomes
//! one, for in a script `await` is a name like any other.

use super::places::{Changed, Insert, Place, byte_of};
use boa_engine::ast::declaration::Declaration;
use boa_engine::ast::function::{FormalParameterList, FunctionBody};
use boa_engine::ast::scope::Scope;
use boa_engine::ast::visitor::{VisitWith as _, Visitor};
use boa_engine::ast::{Expression, Position, Spanned as _, Statement, StatementListItem};
use boa_engine::interner::{Interner, Sym};
use boa_engine::parser::{Error, Parser};
use boa_engine::{JsError, Source};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Put before the last expression.
const RETURN: &str = "return ";

/// Returns a body that returns the value of its last expression. One that ends in anything else
/// stays as it is.
pub(super) fn returning(code: &str) -> Changed {
    with_return(code).unwrap_or_else(|| Changed {
        code: code.to_owned(),
        inserts: Vec::new(),
    })
}

fn with_return(code: &str) -> Option<Changed> {
    let body = body(code, &mut Interner::new()).ok()?;
    let last = last_of(body.statements())?;
    let StatementListItem::Statement(statement) = body.statements().get(last)? else {
        return None;
    };
    let Statement::Expression(expression) = statement.as_ref() else {
        return None;
    };
    let before = beginning(expression);
    let at = byte_of(code, before)?;
    let changed = format!("{}{RETURN}{}", code.get(..at)?, code.get(at..)?);
    returns_at(&changed, last, body.statements().len()).then(|| Changed {
        code: changed,
        inserts: vec![Insert {
            before,
            width: RETURN.len() as u32,
        }],
    })
}

/// Returns the index of the last statement that does something where it stands.
fn last_of(statements: &[StatementListItem]) -> Option<usize> {
    statements.iter().rposition(|item| match item {
        StatementListItem::Statement(statement) => !matches!(statement.as_ref(), Statement::Empty),
        StatementListItem::Declaration(declaration) => !matches!(
            declaration.as_ref(),
            Declaration::FunctionDeclaration(_)
                | Declaration::GeneratorDeclaration(_)
                | Declaration::AsyncFunctionDeclaration(_)
                | Declaration::AsyncGeneratorDeclaration(_)
        ),
    })
}

/// Returns the place at which an expression begins. The engine's own place of a call is that of its
/// arguments, so that the first place of all that belongs to the expression counts.
fn beginning(expression: &Expression) -> Place {
    let mut first = First(expression.span().start());
    let ControlFlow::Continue(()) = first.visit_expression(expression);
    Place {
        line: first.0.line_number(),
        column: first.0.column_number(),
    }
}

/// Finds the first place of an expression's parts.
struct First(Position);

impl<'ast> Visitor<'ast> for First {
    type BreakTy = Infallible;

    fn visit_expression(&mut self, node: &'ast Expression) -> ControlFlow<Infallible> {
        self.0 = self.0.min(node.span().start());
        node.visit_with(self)
    }
}

/// Returns whether a body has so many statements, of which the one at the index returns.
fn returns_at(code: &str, index: usize, count: usize) -> bool {
    let Ok(body) = body(code, &mut Interner::new()) else {
        return false;
    };
    let statements = body.statements();
    statements.len() == count
        && statements.get(index).is_some_and(|item| {
            matches!(
                item,
                StatementListItem::Statement(statement)
                    if matches!(statement.as_ref(), Statement::Return(_))
            )
        })
}

/// Returns whether a program that is a script reads `await` as a name outside of its functions, as
/// in `await (f())` or before a line break. Nothing there has this name, so another `await` is
/// meant. False for a program that is no script.
pub(super) fn reads_await(code: &str) -> bool {
    let mut interner = Interner::new();
    let script =
        Parser::new(Source::from_bytes(code)).parse_script(&Scope::new_global(), &mut interner);
    let (Ok(script), Some(name)) = (script, interner.get("await")) else {
        return false;
    };
    Reads(name).visit_script(&script).is_break()
}

/// Returns the error of a program that cannot be the body of a function either: at its own place,
/// where the error as a script may be about the first `await`. A body ends at a bracket too many,
/// which only a module complains of.
pub(super) fn error_as_body(code: &str) -> Option<JsError> {
    let as_module = || {
        Parser::new(Source::from_bytes(code))
            .parse_module(&Scope::new_global(), &mut Interner::new())
            .err()
    };
    let as_body = body(code, &mut Interner::new()).err();
    as_body.or_else(as_module).map(JsError::from)
}

/// Reads a program as the body of a function that awaits.
pub(super) fn body(code: &str, interner: &mut Interner) -> Result<FunctionBody, Error> {
    Parser::new(Source::from_bytes(code)).parse_function_body(interner, false, true)
}

/// Finds a name that is read outside of functions.
struct Reads(Sym);

impl<'ast> Visitor<'ast> for Reads {
    type BreakTy = ();

    fn visit_expression(&mut self, node: &'ast Expression) -> ControlFlow<()> {
        match node {
            Expression::Identifier(name) if name.sym() == self.0 => ControlFlow::Break(()),
            _ => node.visit_with(self),
        }
    }

    fn visit_formal_parameter_list(&mut self, _: &'ast FormalParameterList) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn visit_function_body(&mut self, _: &'ast FunctionBody) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::{reads_await, returning};

    #[test]
    fn a_last_expression_is_returned_and_nothing_else_changes() {
        for (code, expected) in [
            ("await 5", "return await 5"),
            (
                "await a;\nb.c(d)[e]\n  .f()",
                "await a;\nreturn b.c(d)[e]\n  .f()",
            ),
            (
                "await a\n({ b: 1 }).b; // c",
                "return await a\n({ b: 1 }).b; // c",
            ),
            ("await a; ({ b: 1 });;", "await a; return ({ b: 1 });;"),
            ("/* é */ await a; `${b}`", "/* é */ await a; return `${b}`"),
            ("await a; b ? c : d", "await a; return b ? c : d"),
            ("await a; b().c = 1", "await a; return b().c = 1"),
            ("await a; b++", "await a; return b++"),
            ("await a\n++b", "await a\nreturn ++b"),
            (
                "await a; b\nfunction b() {}",
                "await a; return b\nfunction b() {}",
            ),
        ] {
            let changed = returning(code);
            assert_eq!(changed.code, expected);
            assert_eq!(changed.inserts.len(), 1, "{code}");
        }
        for code in [
            "await a; return b",
            "await a; const b = 1;",
            "await a; if (b) c",
            "a; class B {}",
            "await a; {",
            "",
        ] {
            let changed = returning(code);
            assert_eq!(changed.code, code);
            assert!(changed.inserts.is_empty(), "{code}");
        }
    }

    #[test]
    fn await_is_read_as_a_name_only_outside_of_functions() {
        for code in [
            "await (f())",
            "if (a) { b(await [c]) }",
            "`${await (f())}`",
            "let a = await\nf()",
            "class A { static { } [await (b)]() {} }",
        ] {
            assert!(reads_await(code), "{code}");
        }
        for code in [
            "a.await(b); ({ await: 1 })",
            "'await (a)'",
            "function f() { await (a) } (b = await (c)) => await (d)",
            "const f = async (a) => await (a)",
            "({ m() { await (a) } }); class A { m() { await (a) } static { } }",
            "await a",
        ] {
            assert!(!reads_await(code), "{code}");
        }
    }
}
