//! Programs whose top level awaits.

use super::{run, value};
use serde_json::json;

#[test]
fn await_before_a_bracket_a_template_or_a_line_break_awaits_at_the_top_level() {
    for code in [
        "const r = await (async () => 7)(); r",
        "const r = await\n  Promise.resolve(7);\nr",
        "const [r] = await [7]; r",
        "const r = await `${7}`; Number(r)",
        "if (true) {\n  await (async () => {})();\n}\n7",
        "let n = 0; for (const f of [async () => 7]) n += await (f()); n",
        // Whoever gives it a meaning keeps it.
        "const await = (n) => n + 1; await (6)",
        "function f() { const await = (n) => n + 1; return await (6) } f()",
    ] {
        assert_eq!(value(code), json!(7), "{code}");
    }
    let error = run("let a = 1;\nawait (async () => null.x)()")
        .error
        .unwrap();
    assert_eq!((error.name.as_str(), error.line), ("TypeError", Some(2)));
}

#[test]
fn an_error_in_a_program_that_awaits_is_told_where_it_is() {
    for (code, message, place) in [
        ("await 0;\nlet b = 1 +* 2", "'*'", (2, Some(12))),
        ("let a = 1;\nawait 0; let b = ;", "';'", (2, Some(18))),
        (
            "await 0;\nconst f = () => { return 1 +; }",
            "';'",
            (2, Some(29)),
        ),
        ("await 0;\n}\nf()", "'}'", (2, Some(1))),
        ("await 0;\nlet b = (1 +", "ends in the middle", (2, None)),
        ("function f() { await 0 }\nawait f()", "'0'", (1, Some(22))),
        ("return 1;\nlet b = ;", "';'", (2, Some(9))),
    ] {
        let error = run(code).error.unwrap();
        assert_eq!(error.name, "SyntaxError", "{code}: {error:?}");
        assert!(error.message.contains(message), "{code}: {error:?}");
        let found = (error.line, error.column);
        assert_eq!(found, (Some(place.0), place.1), "{code}: {error:?}");
    }
}

#[test]
fn calls_of_async_functions_without_end_are_told_as_such() {
    for code in [
        "async function f() { return f() }\nf()",
        "const f = async () => { try { await f() } catch { } };\nf()",
    ] {
        let error = run(code).error.unwrap();
        assert_eq!(error.name, "RangeError", "{error:?}");
        assert_eq!(error.message, "Maximum call stack size exceeded");
        assert_eq!(error.line, Some(1), "{error:?}");
        assert!(error.stack.len() < 5, "{error:?}");
    }
    // The engine itself drops the error of what goes on after an `await`.
    let error = run("await 0; function f() { f() } f()").error.unwrap();
    assert!(error.message.ends_with("that nothing resolves"));
    assert!(error.hint.unwrap().contains("nest deeper than 2000"));
}
