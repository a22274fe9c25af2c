//! Lines that meet a limit or are told to stop: their output and their bounds.

use super::{output, run, skills, wanted};
use crate::{Answered, LineOutcome, OUTPUT_BYTES_MAX, Output};
use std::cell::Cell;

/// Doubles a text until it is too long for a command.
const TOO_LONG: &str = "X=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; X=$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X; \
                        X=$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X; X=$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X; \
                        echo $X$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X";

/// Answers the one call of a line.
fn answered(line: &str, text: &str) -> Output {
    let first = wanted(line);
    let one = Answered {
        tool: first.tool,
        arguments: first.arguments,
        text: text.to_owned(),
        failed: false,
    };
    match run(line, &skills(), &[one]) {
        LineOutcome::Done(output) => output,
        LineOutcome::Call(wanted) => panic!("{line} needs {wanted:?}"),
    }
}

/// Carries a line out, each call of which is answered.
fn ended(line: &str) -> (usize, Output) {
    let mut calls: Vec<Answered> = Vec::new();
    loop {
        match run(line, &skills(), &calls) {
            LineOutcome::Call(wanted) => calls.push(Answered {
                tool: wanted.tool,
                arguments: wanted.arguments,
                text: "done".to_owned(),
                failed: false,
            }),
            LineOutcome::Done(output) => return (calls.len(), output),
        }
    }
}

#[test]
fn a_line_that_meets_a_limit_keeps_what_it_printed_and_names_its_calls() {
    let cut = output(&format!(
        "echo first; nothing; (echo second; {TOO_LONG}); echo third"
    ));
    assert_eq!(cut.out, "first\nsecond\n");
    assert_eq!(cut.exit, 125);
    assert!(cut.err.contains("command not found"), "{}", cut.err);
    assert!(!cut.err.contains("stand"), "{}", cut.err);
    let cut = answered(&format!("notes-cli add --text a; {TOO_LONG}"), "{\"id\":7}");
    assert_eq!(cut.out, "{\"id\":7}\n");
    assert!(
        cut.err.contains("the call that it made stands"),
        "{}",
        cut.err
    );
}

#[test]
fn a_line_that_is_told_to_stop_ends_with_what_it_printed() {
    let line = "echo first; jq -n '[range(9999)]|length'; jq -n '[range(9999)|tojson]|length'";
    let whole = output(line);
    assert_eq!(whole.out, "first\n9999\n9999\n");
    let inspections = Cell::new(0);
    let stopped = Box::new(move || {
        inspections.set(inspections.get() + 1);
        inspections.get() > 20
    });
    let LineOutcome::Done(cut) = crate::run(line, &skills(), &[], stopped) else {
        panic!("an end");
    };
    assert_eq!(cut.exit, 125);
    assert_eq!(cut.out, "first\n9999\n");
    assert!(cut.err.contains("takes too long"), "{}", cut.err);
}

#[test]
fn the_work_of_a_line_is_bounded_with_what_it_does_again_after_each_call() {
    // Some forty megabytes before the first call are worked on anew for each call after it.
    let before = "jq -n '[range(99999)|.]|length' >/dev/null; ";
    let line = before.to_owned() + &"notes-cli add --text a; ".repeat(32);
    let (calls, output) = ended(&line);
    assert_eq!(output.exit, 125);
    assert!(output.err.contains("after each call"), "{}", output.err);
    assert!(
        output.err.contains("calls that it made stand"),
        "{}",
        output.err
    );
    assert!((8..32).contains(&calls), "{calls} calls");
    // Without it, all of them have room.
    let (calls, output) = ended(&"notes-cli add --text a; ".repeat(32));
    assert_eq!((calls, output.exit), (32, 0), "{output:?}");
}

#[test]
fn an_agent_is_shown_so_much_of_the_output_and_told_how_much_is_left_out() {
    let long = Output {
        out: "é".repeat(OUTPUT_BYTES_MAX),
        err: "e".repeat(OUTPUT_BYTES_MAX + 5),
        exit: 1,
    };
    let shown = long.shown();
    assert!(shown.len() < 2 * OUTPUT_BYTES_MAX + 400, "{}", shown.len());
    let reported = format!("[{OUTPUT_BYTES_MAX} more bytes are left out");
    assert!(shown.contains(&reported), "{}", &shown[shown.len() - 400..]);
    assert!(shown.contains("[5 more bytes are left out"));
    assert!(shown.ends_with("[exit code 1]"));
}

#[test]
fn a_command_has_so_many_arguments() {
    let words = "a ".repeat(4_000);
    assert_eq!(
        output(&format!("X='{words}'; echo $X | wc -w")).out,
        "4000\n"
    );
    let most = output(&format!("X='{words}'; echo $X $X"));
    assert_eq!(most.exit, 125);
    assert!(
        most.err.contains("more than 4096 arguments"),
        "{}",
        most.err
    );
}
