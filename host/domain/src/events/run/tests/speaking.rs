//! Tests of whose words a run takes in, and of what a program's work leaves in it.

use super::*;
use crate::thread::speaker::Speaker;

fn said(input: u128, user: &str, text: &str) -> InputAccepted {
    let mut accepted = words(text);
    accepted.input = InputId(Uuid::from_u128(input));
    if let Some(message) = &mut accepted.message {
        message.speaker = Some(Speaker::User {
            user_id: user.parse().unwrap(),
        });
    }
    accepted
}

#[test]
fn collected_inputs_become_one_message_for_each_speaker() {
    let mut run = begun();
    run.started.collected = true;
    let late = InputAccepted {
        message: Some(Draft::text(Role::User, "agent:worker", "ANSWER-Y")),
        ..said(3, "ann", "")
    };
    let inputs = [
        said(1, "ann", "one"),
        said(2, "ann", "two"),
        late,
        said(4, "ann", "What is on my list?"),
    ];
    let taken = intake(&run, Vec::new(), &inputs, SALT);
    let heard: Vec<(String, bool)> = taken
        .heard
        .iter()
        .map(|message| {
            let is_user = message.said_by().is_some_and(|speaker| speaker.is_user());
            (message.text(), is_user)
        })
        .collect();
    assert_eq!(heard.len(), 3, "{heard:?}");
    assert!(heard[0].0.contains("one") && heard[0].0.contains("two") && heard[0].1);
    assert!(heard[1].0.contains("ANSWER-Y") && !heard[1].0.contains("list") && !heard[1].1);
    assert!(heard[2].0.contains("What is on my list?") && heard[2].1);
}

/// One forwards something between two messages of her own: those are her words still.
#[test]
fn collected_inputs_of_one_speaker_keep_their_own_marks() {
    let mut run = begun();
    run.started.collected = true;
    let marked = |mut input: InputAccepted| {
        let message = input.message.as_mut().unwrap();
        message.untrusted = true;
        input
    };
    let inputs = [
        said(1, "ann", "one"),
        marked(said(2, "ann", "FROM OUTSIDE")),
        marked(said(3, "bob", "ALSO")),
        said(4, "bob", "four"),
        said(5, "bob", "five"),
    ];
    let taken = intake(&run, Vec::new(), &inputs, SALT);
    let heard: Vec<(bool, bool)> = taken
        .heard
        .iter()
        .map(|message| (message.untrusted, message.text().contains("one")))
        .collect();
    assert_eq!(
        heard,
        [(false, true), (true, false), (true, false), (false, false)]
    );
    assert!(taken.heard[1].text().contains("FROM OUTSIDE"));
    assert_ne!(taken.heard[1].said_by(), taken.heard[2].said_by());
    let last = taken.heard[3].text();
    assert!(last.contains("four") && last.contains("five"), "{last}");
}

/// Messages that join an open run stay apart, each with its speaker and its mark.
#[test]
fn inputs_that_join_a_run_stay_messages_of_their_own() {
    let late = InputAccepted {
        message: Some(Draft {
            untrusted: true,
            ..Draft::text(Role::User, "agent:worker", "ANSWER-Y")
        }),
        ..said(1, "ann", "")
    };
    let inputs = [late, said(2, "bob", "and?"), said(3, "ann", "and?")];
    let taken = intake(&asked(), Vec::new(), &inputs, SALT);
    let heard = taken.heard.iter();
    let heard: Vec<_> = heard
        .map(|message| (message.said_by(), message.untrusted))
        .collect();
    let expected = inputs.iter().filter_map(|input| input.message.as_ref());
    let expected: Vec<_> = expected
        .map(|draft| (draft.said_by(), draft.untrusted))
        .collect();
    assert_eq!(heard, expected);
}

/// The outcome of a call of a model, which a program in its place gave.
fn program_says(run: &Run, own_calls: &[&str], untrusted: bool) -> Settlement {
    let reply = Reply {
        parts: vec![Part::text("FROM THE WEB")],
        stop: Stop::End,
        provider: "claude".into(),
        model: "m".into(),
        own_calls: own_calls.iter().map(ToString::to_string).collect(),
        untrusted,
    };
    let operation = &run.by_key("m1").unwrap().operation;
    settlement(operation, Ended::Replied(reply), NOW)
}

fn asked() -> Run {
    let wait = wait(vec![asking_a_model("m1")], Until::Any);
    let words = [words("hello")];
    step(&begun(), vec![], &words, wait, EffectClass::Idempotent).0
}

#[test]
fn the_reply_of_a_program_with_tools_of_its_own_is_marked() {
    for untrusted in [false, true] {
        let run = asked();
        let settled = program_says(&run, &[], untrusted);
        assert_eq!(settled.is_untrusted(), untrusted);
        let wait = wait(vec![asking_a_model("m2")], Until::Any);
        let (run, _) = step(&run, vec![settled], &[], wait, EffectClass::Idempotent);
        assert_eq!(
            run.is_untrusted(),
            untrusted,
            "and so is the run, as a whole"
        );
        assert_eq!(run.messages.last().unwrap().untrusted, untrusted);
    }
}

#[test]
fn the_number_of_calls_is_that_of_the_calls_made_and_not_of_a_budget() {
    let mut run = asked();
    run.spending.delegated.calls = 25;
    let settled = program_says(&run, &["WebFetch", "Bash"], true);
    let next = wait(vec![asking_a_model("m2")], Until::Any);
    let (run, _) = step(&run, vec![settled], &[], next, EffectClass::Idempotent);
    assert_eq!(run.calls_made(), 2);
    let names: Vec<String> = run
        .tool_calls(NOW)
        .into_iter()
        .map(|call| call.name)
        .collect();
    assert_eq!(names, ["WebFetch", "Bash"]);
}
