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
