//! Tables of programs, with the calls in the conditions of their loops.

use super::insert;
use crate::javascript::places::{Place, original};

/// The program with `T` for each call that was inserted.
fn inserted(code: &str) -> Option<String> {
    let ticking = insert(&format!("await 0;{code}"))?;
    let code = ticking.code.replace(super::TICK, "T");
    Some(code.strip_prefix("await 0;")?.to_owned())
}

#[test]
fn loops_look_at_the_clock_in_their_conditions() {
    for (code, expected) in [
        ("while (a) b", "while (T(),a) b"),
        ("do { a } while(b)", "do { a } while(T(),b)"),
        ("for (;;) a", "for (;T();) a"),
        ("for (;/* b */;) a", "for (;T()/* b */;) a"),
        (
            "for (let i = f(() => { x; }); i < 3; i++) a",
            "for (let i = f(() => { x; });T(), i < 3; i++) a",
        ),
        (
            "for (const a of b) while (c) ;",
            "for (const a of b) while (T(),c) ;",
        ),
        (
            "i++ / 2; while (a / b / c) ;",
            "i++ / 2; while (T(),a / b / c) ;",
        ),
        (
            "x = `${`${a}`}`; for (;;) ;",
            "x = `${`${a}`}`; for (;T();) ;",
        ),
        ("é = 1; while (é) ;", "é = 1; while (T(),é) ;"),
    ] {
        assert_eq!(inserted(code).as_deref(), Some(expected), "{code}");
    }
}

#[test]
fn what_is_no_loop_stays_as_it_is() {
    for code in [
        "Symbol.for('a;b')",
        "a.while(b)",
        "'while (a)' + \"for (;;)\"",
        "`while (a) ${'for (;;)'} while (b)`",
        "// while (a)\n/* for (;;) */",
        "a.replace(/while (x)[/;]for (;;)/g, '')",
        "return /\"while (x)/",
        "for (const a of b) c",
        // What is not whole is left to the engine to complain of.
        "while (a",
        "while (a) 'b",
        "while (/a\n) b",
        "while (a) `b",
        "while (a) ]",
    ] {
        assert_eq!(inserted(code), None, "{code}");
    }
    assert_eq!(insert("while (a) b"), None);
}

#[test]
fn columns_are_counted_back() {
    let code = "a.then(b);\nwhile (a) { for (;;) c }";
    let ticking = insert(code).unwrap();
    let changed = ticking.code.lines().nth(1).unwrap();
    for mark in ["while", "a)", "{ for", "c }"] {
        let place = |line: &str| Place {
            line: 2,
            column: u32::try_from(line.find(mark).unwrap() + 1).unwrap(),
        };
        let found = original(&ticking.inserts, place(changed));
        assert_eq!(found, place(code.lines().nth(1).unwrap()), "{mark}");
    }
    let above = Place {
        line: 1,
        column: 40,
    };
    assert_eq!(original(&ticking.inserts, above), above);
}
