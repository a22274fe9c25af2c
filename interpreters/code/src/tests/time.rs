//! The time of programs.

use super::run_with;
use crate::request::Allowance;
use crate::{Ending, javascript};
use serde_json::json;
use std::time::Duration;

#[test]
fn a_program_without_an_end_is_stopped_at_its_time_and_keeps_its_output() {
    for code in [
        "console.log('begun'); while (true);",
        "console.log('begun'); for (;;) { (() => 1)() }",
        "console.log('begun'); function* f() { while (true) yield 1 } for (const x of f()) ;",
        "setTimeout(() => { console.log('begun'); while (true); })",
        "setInterval((word) => { console.log(word); for (;;) { (() => 1)() } }, 1, 'begun')",
        "await null; console.log('begun'); setTimeout(() => { while (true); })",
        "(async () => { while (true) await null })(); console.log('begun')",
        "await null; console.log('begun'); while (true);",
        "await null; console.log('begun'); for (;;) { try { for (;;); } catch { } finally { } }",
        "(async () => { await null; console.log('begun'); do { (() => 1)() } while (true) })()",
        "Promise.resolve('begun').then((word) => { console.log(word); for (let n = 0; ; n++); })",
        "queueMicrotask(() => { console.log('begun'); [1].forEach(() => { while (true); }) })",
    ] {
        let result = run_with(json!({ "code": code, "timeout": 50 }));
        assert_eq!(result.status, Ending::TimedOut, "{code}");
        assert_eq!(result.stdout, "begun\n", "{code}");
        let message = result.error.unwrap().message;
        assert!(
            message.starts_with("the program was stopped after "),
            "{message}"
        );
        assert!(
            message.ends_with(": it had 50 ms, timers included"),
            "{message}"
        );
    }
}

#[test]
fn a_program_of_long_instructions_is_stopped_at_its_time_as_any_other() {
    for code in [
        "console.log('begun'); while (true);",
        // Each instruction is a long one.
        "console.log('begun'); let s = ''; for (;;) s += 'x'",
        "console.log('begun'); for (;;) console.log('x'.repeat(1000))",
        "console.log('begun'); for (;;) JSON.stringify(Array(1000).fill(1))",
        "console.log('begun'); for (;;) JSON.stringify(Array(100000).fill(1))",
        "await null; console.log('begun'); for (;;) JSON.stringify(Array(10000).fill(1))",
    ] {
        let result = run_with(json!({ "code": code }));
        assert_eq!(result.status, Ending::TimedOut, "{code}");
        assert!(result.stdout.starts_with("begun\n"), "{code}");
        assert!(
            result.duration_ms < 10_000,
            "{code}: {}",
            result.duration_ms
        );
        let error = result.error.unwrap();
        assert!(error.message.contains("it had 800 ms to run"), "{error:?}");
        assert!(error.hint.unwrap().contains("`timeout`"));
    }
}

/// A machine that is busy is one whose clock runs far ahead of the program.
#[test]
fn a_program_of_few_steps_runs_to_its_end_on_a_busy_machine() {
    let no_time = Allowance {
        whole: Duration::from_secs(600),
        computing: Duration::ZERO,
    };
    let few = "let s = 0; for (let i = 0; i < 100; i++) s += i; s";
    let result = javascript::run(few, no_time);
    assert_eq!(result.status, Ending::Completed, "{result:?}");
    assert_eq!(result.value, Some(json!(4_950)));
    for many in [
        "console.log('begun'); while (true);",
        "await null; console.log('begun'); while (true);",
        "console.log('begun'); (async () => { while (true) await null })()",
    ] {
        let result = javascript::run(many, no_time);
        assert_eq!(result.status, Ending::TimedOut, "{many}");
        assert_eq!(result.stdout, "begun\n", "{many}");
    }
}
