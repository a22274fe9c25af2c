//! Programs that await at their top level. A script has no such `await`: there it is a name like
//! any other, and the program becomes the body of a function.

use boa_engine::ast::Expression;
use boa_engine::ast::function::{FormalParameterList, FunctionBody};
use boa_engine::ast::scope::Scope;
use boa_engine::ast::visitor::{VisitWith as _, Visitor};
use boa_engine::interner::{Interner, Sym};
use boa_engine::parser::{Error, Parser};
use boa_engine::{JsError, Source};
use std::ops::ControlFlow;

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
    use super::reads_await;

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
