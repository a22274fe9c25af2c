//! Errors of programs: their places, stacks and hints.

use super::run;
use crate::Ending;

#[test]
fn an_error_has_its_name_its_message_and_its_place() {
    for (code, name, message, place) in [
        (
            "let a = 1;\n  nothing();",
            "ReferenceError",
            "nothing",
            (2, None),
        ),
        (
            "const f = () => {\n  throw new Error('own');\n};\nf();",
            "Error",
            "own",
            (2, None),
        ),
        ("null.x", "TypeError", "", (1, None)),
        ("let x = ;", "SyntaxError", "", (1, Some(9))),
        ("var a;\nfunction (", "SyntaxError", "", (2, None)),
        (
            "class E extends Error { name = 'Mine' }\nthrow new E('m')",
            "Mine",
            "m",
            (2, None),
        ),
    ] {
        let result = run(code);
        assert_eq!(result.status, Ending::Failed, "{code}");
        let error = result.error.unwrap();
        assert_eq!(error.name, name, "{code}: {error:?}");
        assert!(error.message.contains(message), "{code}: {error:?}");
        assert_eq!(error.line, Some(place.0), "{code}: {error:?}");
        if place.1.is_some() {
            assert_eq!(error.column, place.1, "{code}: {error:?}");
        }
    }
    let result = run("throw { code: 5 }");
    assert_eq!(
        result.error.unwrap().message,
        "the program threw { code: 5 }"
    );
}

/// The engine keeps no places of names, so that each is looked for.
#[test]
fn a_name_that_is_not_defined_has_its_own_line() {
    for (code, name, place) in [
        ("let a = 1;\n  nothing();", "nothing", (2, 3)),
        ("let x = 1;\nlet y = 2;\nfoo.bar()", "foo", (3, 1)),
        ("function f(){\n  return typo;\n}\nf()", "typo", (2, 10)),
        (
            "const f = (a) => {\n let b = a;\n\n return b + typo;\n};\n[1,2].map(f)",
            "typo",
            (4, 13),
        ),
        (
            "const o = {\n  m(a) {\n    // typo\n    return a.typo + typo;\n  },\n};\no.m(1)",
            "typo",
            (4, 21),
        ),
        ("console.log('hi');\nawait null;\nnope()", "nope", (3, 1)),
        ("setTimeout(()=>{\n nope();\n},1)", "nope", (2, 2)),
        (
            "nope\n  .map((a) => a)\n  .filter((a) => a)",
            "nope",
            (1, 1),
        ),
    ] {
        let error = run(code).error.unwrap();
        assert_eq!(error.message, format!("{name} is not defined"), "{code}");
        assert_eq!(error.name, "ReferenceError", "{code}");
        let found = (error.line, error.column);
        assert_eq!(found, (Some(place.0), Some(place.1)), "{code}: {error:?}");
    }
    // No line is better than a wrong one.
    let error = run("let a = 1;\na.b;\nn\\u006fpe").error.unwrap();
    assert_eq!(error.message, "nope is not defined");
    assert_eq!(error.line, None, "{error:?}");
}

#[test]
fn a_program_has_no_files_no_network_and_no_environment() {
    for (code, hint) in [
        (
            "require('fs').readFileSync('/etc/passwd')",
            "no modules, files",
        ),
        ("fetch('http://127.0.0.1/')", "no network"),
        ("process.env.HOME", "no modules, files"),
        ("new XMLHttpRequest()", "no network"),
    ] {
        let error = run(code).error.unwrap();
        assert_eq!(error.name, "ReferenceError", "{code}");
        assert!(error.hint.unwrap().contains(hint), "{code}");
    }
}

#[test]
fn a_name_that_has_another_in_it_has_no_hint() {
    for code in [
        "processItems([1])",
        "importantThing",
        "prefetch()",
        "my_module.x",
        "$Buffer",
    ] {
        let error = run(code).error.unwrap();
        assert_eq!(error.name, "ReferenceError", "{code}");
        assert_eq!(error.hint, None, "{code}");
    }
}

#[test]
fn a_stack_has_the_places_of_the_program_each_once() {
    for (code, stack) in [
        ("await fetch('http://h/')", "<main> (program.js:1:7)"),
        ("await nope;\n", "<main> (program.js:1:7)"),
        (
            "await null; const f = () => { while (true) null.x };\nawait 1; f()",
            "f (program.js:1:49)|<main> (program.js:2:11)",
        ),
        (
            "const f = (n) => {\n  if (n === 0) return nope;\n  return f(n - 1);\n};\nf(5)",
            "f (program.js:2:23)|f (program.js:3:11)|<main> (program.js:5:2)",
        ),
    ] {
        let error = run(code).error.unwrap();
        assert_eq!(error.stack.join("|"), stack, "{code}: {error:?}");
    }
}
