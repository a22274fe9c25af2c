//! Tests of command lines: the calls that they make are theirs, and the agent hears of the line.

use super::*;
use crate::events::run::recover::is_its_turn;
use crate::work::operation::{Called, CommandCall};

fn operation(id: OperationId, key: &str, performer: Performer) -> Operation {
    Operation {
        id,
        key: key.into(),
        step: 0,
        place: 0,
        performer,
        effect: EffectClass::ReadOnly,
        time_limit_ms: None,
        deadline: Some(NOW.plus_ms(10)),
        answers: None,
        in_thread: false,
        reserved: Default::default(),
        approval: None,
    }
}

/// A run with a command line that waits for its first call.
fn calling_line() -> (Run, OperationId, OperationId) {
    let mut run = begun();
    let line = OperationId::mint(run.started.run, 0, "line");
    let command = "notes-cli add".to_owned();
    run.start(
        &operation(line, "line", Performer::Command { command }),
        NOW,
    );
    run.wait = Some((Until::Any, false));
    let call = line.call(0);
    let started = operation(call, "call", tool(EffectClass::ReadOnly).performer);
    let continued = Continuation {
        operation: line,
        segment: 1,
        state: Vec::new(),
        pause: Pause::None,
        active_ms: 0,
        call: Some(Box::new(CommandCall {
            tool: "notes_add".into(),
            arguments: "{}".into(),
            started,
            time: NOW,
        })),
    };
    let run = run.apply(&Event::OperationContinued(continued)).unwrap();
    (run, line, call)
}

fn settled(run: &Run, call: OperationId) -> (Run, Settlement) {
    let parts = vec![Part::text("kept")];
    let settlement = Settlement {
        untrusted: true,
        ..Settlement::new(call, OperationOutcome::Parts { parts }, NOW)
    };
    let event = Event::RunSettled(RunSettled {
        run: run.started.run,
        settled: vec![settlement.clone()],
    });
    (run.clone().apply(&event).unwrap(), settlement)
}

#[test]
fn a_line_waits_for_its_call_and_goes_on_with_the_result() {
    let (run, line, call) = calling_line();
    assert_eq!(run.spending.tool_calls, 2, "the line and its call");
    assert!(run.open.contains_key(&call));
    let late = NOW.plus_ms(20);
    assert!(
        matches!(next(&run.open[&line], late), Next::Wait { .. }),
        "it ends after its call"
    );
    assert!(matches!(next(&run.open[&call], late), Next::Settle(_)));
    let (run, _) = settled(&run, call);
    let parts = vec![Part::text("kept")];
    assert_eq!(
        run.open[&line].called,
        [Called {
            tool: "notes_add".into(),
            arguments: "{}".into(),
            outcome: OperationOutcome::Parts { parts },
            untrusted: true,
        }]
    );
    let again = next(&run.open[&line], NOW);
    assert_eq!(
        again,
        Next::Perform {
            record_first: false
        }
    );
    assert!(matches!(next(&run.open[&line], late), Next::Settle(_)));
}

#[test]
fn an_agent_is_told_of_a_line_and_not_of_its_calls() {
    let (run, _, call) = calling_line();
    let (after, settlement) = settled(&run, call);
    assert!(!wakes(&run, std::slice::from_ref(&settlement), false));
    assert!(!wakes(&after, &[], false));
    assert!(after.untold.is_empty());
    assert!(after.is_untrusted(), "what the line read is marked");
    let taken = intake(&run, vec![settlement], &[], SALT);
    assert_eq!((taken.news.len(), taken.settled.len()), (0, 1));
}

#[test]
fn a_line_that_is_cancelled_stops_its_call_with_it() {
    let (run, line, call) = calling_line();
    let mut result = wait(vec![], Until::Any);
    if let Decision::Wait(waiting) = &mut result.decision {
        waiting.cancel = vec!["line".into()];
    }
    let heard = intake(&run, vec![], &[], SALT);
    let (after, stepped) = step_on(&run, heard, result, EffectClass::ReadOnly);
    let stopped: Vec<OperationId> = stepped.stopped.iter().map(|it| it.operation).collect();
    assert!(stopped.contains(&line) && stopped.contains(&call));
    assert!(after.open.is_empty());
    let reported: Vec<&News> = after.untold_stopped.iter().collect();
    assert!(
        matches!(reported.as_slice(), [News::Settled { key, .. }] if key == "line"),
        "{reported:?}"
    );
}

#[test]
fn calls_that_are_made_one_by_one_wait_for_those_before_them() {
    let run = with_two_calls(EffectClass::ReadOnly);
    let [first, second] = ["call-2-0", "call-2-1"].map(|key| run.by_key(key).unwrap().operation.id);
    let turns = |run: &Run| [first, second].map(|call| is_its_turn(run, call));
    assert_eq!(turns(&run), [true, false]);
    let settled = Settlement::new(first, OperationOutcome::Denied, NOW);
    let run = run
        .clone()
        .apply(&Event::RunSettled(RunSettled {
            run: run.started.run,
            settled: vec![settled],
        }))
        .unwrap();
    assert!(is_its_turn(&run, second));
}
