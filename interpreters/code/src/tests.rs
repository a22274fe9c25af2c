//! Programs, each with what comes of it.

mod errors;
mod time;

use crate::{Code, Ending, RunResult};
use agent_host_sdk::ToolError;
use agent_host_sdk::harness::Bench;
use serde_json::{Value, json};

fn run(code: &str) -> RunResult {
    // A build that is not optimized has time as well.
    run_with(json!({ "code": code, "timeout": 20_000 }))
}

fn run_with(arguments: Value) -> RunResult {
    let text = Bench::new(Code).text("execute_code", arguments).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn value(code: &str) -> Value {
    let result = run(code);
    assert_eq!(result.status, Ending::Completed, "{code}: {result:?}");
    result.value.unwrap_or_else(|| panic!("no value: {code}"))
}

fn rendered(code: &str) -> String {
    let result = run(code);
    assert_eq!(result.status, Ending::Completed, "{code}: {result:?}");
    result.rendered.unwrap_or_else(|| panic!("no text: {code}"))
}

#[test]
fn the_value_of_the_last_expression_is_returned_as_json_where_it_has_such_a_form() {
    for (code, expected) in [
        ("1 + 1", json!(2)),
        ("'a' + 'b'", json!("ab")),
        (
            "const a = [1, 'x', { b: true }]; a",
            json!([1, "x", { "b": true }]),
        ),
        (
            "class P { #x = 3; get x() { return this.#x } } new P().x",
            json!(3),
        ),
        ("JSON.parse('{\"a\":[1]}')", json!({ "a": [1] })),
        ("[...'ab'].map((c) => c.codePointAt(0))", json!([97, 98])),
        ("/(?<y>\\d{4})/.exec('in 2028').groups.y", json!("2028")),
        ("eval('2 ** 10')", json!(1_024)),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

#[test]
fn a_value_without_a_form_in_json_is_returned_as_text() {
    for (code, expected) in [
        ("2n ** 70n", "1180591620717411303424n"),
        ("NaN", "NaN"),
        ("new Map([['a', 1]])", "Map(1) { \"a\" => 1 }"),
        ("(function f() {})", "[Function: f]"),
        ("class C {}; C", "[class C]"),
        ("(class { constructor() {} })", "[class (anonymous)]"),
        ("Map", "[Function: Map]"),
        ("({ a: undefined })", "{ a: undefined }"),
        ("const o = {}; o.o = o; o", "{ o: [Circular] }"),
        ("new Date(0)", "1970-01-01T00:00:00.000Z"),
        ("Symbol('s')", "Symbol(s)"),
    ] {
        assert_eq!(rendered(code), expected, "{code}");
    }
    let nothing = run("let a = 1;");
    assert_eq!((nothing.value, nothing.rendered), (None, None));
}

#[test]
fn what_is_printed_is_kept_apart_by_stream() {
    let result = run("console.log('a', 1, [2], { b: null });\n\
         console.info('%s has %d', 'x', 3, 'more'); console.debug('100%');\n\
         console.warn('w'); console.error(new RangeError('bad').message);\n\
         console.group('g'); console.log('in'); console.groupEnd(); console.log('out');\n\
         console.assert(1 === 2, 'no'); console.assert(true);");
    assert_eq!(
        result.stdout,
        "a 1 [ 2 ] { b: null }\nx has 3 more\n100%\ng\n  in\nout\n"
    );
    assert_eq!(result.stderr, "w\nbad\nAssertion failed no\n");
    let result = run("console.table([{ a: 1, b: 'x' }, { a: 2 }])");
    assert_eq!(
        result.stdout,
        "(index) | a | b\n--------+---+--\n0       | 1 | x\n1       | 2 |\n"
    );
}

#[test]
fn output_over_its_limit_is_cut_and_the_program_goes_on() {
    let result = run(
        "const line = 'x'.repeat(1000); for (let i = 0; i < 2000; i++) console.log(line); 'end'",
    );
    assert_eq!(result.value, Some(json!("end")));
    assert!(result.stdout.len() < 300 << 10, "{}", result.stdout.len());
    assert!(
        result.stdout.contains("[cut here: 262144 bytes are kept"),
        "no mark"
    );
    let result = run("'x'.repeat(100_000)");
    let text = result.rendered.unwrap();
    assert!(text.ends_with("[cut here: the value has 100000 bytes]"));
}

#[test]
fn promises_are_run_and_the_last_one_is_awaited() {
    for code in [
        "Promise.resolve(7)",
        "(async () => { await null; return 7 })()",
        "const f = async () => 7;\nreturn await f()",
        "await new Promise((done) => setTimeout(done, 50)); return 7",
        "await 7",
        "const r = await Promise.all([1, Promise.resolve(7)]); r[1]",
        "if (await null) return 1;\nconst o = { async f() { return 7 } };\no\n  .f();",
        "let n = 0; queueMicrotask(() => { n = 7 }); Promise.resolve().then(() => n)",
    ] {
        assert_eq!(value(code), json!(7), "{code}");
    }
    let nothing = run("let a = await 7;");
    assert_eq!((nothing.value, nothing.rendered), (None, None));
    let result = run("(async () => {\n  throw new TypeError('no');\n})()");
    assert_eq!(result.status, Ending::Failed);
    let error = result.error.unwrap();
    assert_eq!((error.name.as_str(), error.line), ("TypeError", Some(2)));
    let result = run("Promise.reject(new Error('nobody asks')); 5");
    assert_eq!(result.error.unwrap().message, "nobody asks");
    assert_eq!(
        value("const p = Promise.reject(1); p.catch(() => 8)"),
        json!(8)
    );
    let result = run("import('fs')");
    assert_eq!(result.status, Ending::Failed, "{result:?}");
}

#[test]
fn a_program_that_awaits_what_never_comes_has_failed() {
    for (code, said) in [
        (
            "console.log('begun'); await new Promise(() => {}); console.log('never')",
            "the program awaits a promise that nothing resolves",
        ),
        (
            "console.log('begun'); (async () => { await new Promise(() => {}) })()",
            "the program awaits a promise that nothing resolves",
        ),
        (
            "console.log('begun'); Promise.reject(new Error('why')); await new Promise(() => {})",
            "why",
        ),
    ] {
        let result = run(code);
        assert_eq!(result.status, Ending::Failed, "{code}: {result:?}");
        assert_eq!(result.stdout, "begun\n", "{code}");
        assert_eq!(result.error.unwrap().message, said, "{code}");
    }
    // Whoever does not wait for it has the value.
    assert_eq!(
        value("(async () => { await new Promise(() => {}) })(); 5"),
        json!(5)
    );
}

#[test]
fn timers_run_in_order_and_nobody_waits_for_them() {
    let result = run_with(json!({ "timeout": 20_000, "code":
        "const begin = Date.now();\n\
         setTimeout(() => console.log('late', Date.now() - begin >= 8_990), 9_000);\n\
         setTimeout((word) => console.log(word), 10, 'soon');\n\
         setImmediate(() => console.log('first'));\n\
         let n = 0; const id = setInterval(() => { if (++n === 3) clearInterval(id) }, 1_000);\n\
         setTimeout(() => console.log('n', n), 8_000);\n\
         clearTimeout(setTimeout(() => console.log('never'), 1));" }));
    assert_eq!(result.stdout, "first\nsoon\nn 3\nlate true\n");
    assert!(result.duration_ms < 8_000, "{}", result.duration_ms);

    let result = run_with(json!({ "timeout": 1_000, "code":
        "let n = 0; setInterval(() => { n += 1; if (n < 3) console.log(n) }, 100)" }));
    assert_eq!(result.status, Ending::TimedOut);
    assert_eq!(result.stdout, "1\n2\n");
}

#[test]
fn a_timer_that_throws_has_its_place_and_leaves_what_was_printed() {
    let result = run(
        "let n = 0;\nsetInterval(function (step) {\n  console.log(this === undefined || \
         this === globalThis, n);\n  if ((n += step) > 2) throw new Error('late');\n}, 5, 1);",
    );
    assert_eq!(result.status, Ending::Failed, "{result:?}");
    assert_eq!(result.stdout, "true 0\ntrue 1\ntrue 2\n");
    let error = result.error.unwrap();
    assert_eq!((error.message.as_str(), error.line), ("late", Some(4)));
}

#[test]
fn loops_of_a_program_that_awaits_do_what_they_did_and_errors_keep_their_place() {
    for code in [
        "let n = 0; await null; for (let i = 0; i < 4; i++) n += i; while (n < 7) n++; return n",
        "const f = async () => { let n = 0; for (;;) { await null; if (++n > 6) return n } }; f()",
        "let n = 0; await null; do n++; while (n < 7); for (const x of [1]) ; return n",
        "await null; for (;;) break; const s = `while (a) ${'for (;;)'}`; return s.length - 11",
        "await null; for (;;) return 'a;while (b)'.replace(/while (.)(b)/, '').length + 4",
    ] {
        assert_eq!(value(code), json!(7), "{code}");
    }
    let text = "() => { while (a) for (;;) b }";
    assert_eq!(value(&format!("await 1; ({text}).toString()")), json!(text));
    let code = "/* await */\nlet n = 3; while (n-- > 0) for (;;) null.x";
    let error = run(code).error.unwrap();
    let expected = run(&code.replace("await", "begin")).error.unwrap();
    assert!(expected.column.is_some(), "{expected:?}");
    assert_eq!((error.line, error.column), (Some(2), expected.column));
}

#[test]
fn a_buffer_for_which_there_is_no_memory_is_told_as_that() {
    for code in [
        "const size = 2 ** 40;\nnew ArrayBuffer(size)",
        "await null;\nnew Uint8Array(2 ** 31)",
    ] {
        let result = run(code);
        assert_eq!(result.status, Ending::OutOfMemory, "{code}: {result:?}");
        let error = result.error.unwrap();
        assert_eq!(error.message, "the program used more memory than it may");
        assert_eq!(error.line, Some(2), "{code}: {error:?}");
    }
    assert_eq!(
        value("(() => { try { new ArrayBuffer(2 ** 40) } catch { return 7 } })()"),
        json!(7)
    );
    let own = run("throw new RangeError('the maximum buffer size')");
    assert_eq!(own.status, Ending::Failed);
}

#[test]
fn calls_without_end_are_an_error_of_the_program() {
    let result = run("function f() { return f() + 1 }\nf()");
    let error = result.error.unwrap();
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("RangeError", "Maximum call stack size exceeded")
    );
    assert_eq!(
        value("const sum = (n) => (n === 0 ? 0 : n + sum(n - 1)); sum(1_000)"),
        json!(500_500)
    );
}

#[test]
fn small_parts_of_the_world_around_the_language_are_there() {
    for (code, expected) in [
        ("atob(btoa('hello'))", json!("hello")),
        (
            "new TextDecoder().decode(new TextEncoder().encode('h\u{e9}\u{1f600}'))",
            json!("h\u{e9}\u{1f600}"),
        ),
        (
            "new URL('../c?z=1', 'http://h:8080/a/b/d').href",
            json!("http://h:8080/a/c?z=1"),
        ),
        (
            "new URLSearchParams('a=1&a=2').getAll('a')",
            json!(["1", "2"]),
        ),
        (
            "const a = { b: [1] }; const c = structuredClone(a); c.b.push(2); [a, c]",
            json!([{ "b": [1] }, { "b": [1, 2] }]),
        ),
        ("typeof performance.now()", json!("number")),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

#[test]
fn a_language_that_is_not_there_is_refused_with_those_that_are() {
    let refused = Bench::new(Code)
        .text("execute_code", json!({ "code": "1", "language": "cobol" }))
        .unwrap_err();
    assert_eq!(
        refused,
        ToolError::InvalidArguments(
            "`language` is `cobol`, which is not installed; installed: javascript".to_owned()
        )
    );
    for language in ["js", "JavaScript", "ecmascript"] {
        let result = run_with(json!({ "code": "1", "language": language }));
        assert_eq!(result.language, "javascript");
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused_by_name() {
    for (arguments, field) in [
        (json!({ "code": " " }), "`code`"),
        (json!({ "code": "1", "timeout": 0 }), "`timeout`"),
        (json!({ "code": "x".repeat(300_000) }), "`code`"),
    ] {
        match Bench::new(Code).text("execute_code", arguments) {
            Err(ToolError::InvalidArguments(detail)) => {
                assert!(detail.starts_with(field), "{detail}");
            }
            other => panic!("{other:?}"),
        }
    }
}
