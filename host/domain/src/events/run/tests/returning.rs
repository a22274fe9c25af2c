//! Tests of the run that brings the summary of another conversation back.

use super::*;
use crate::events::run::compact::{
    self, CODE, KEY, RETURN_CODE, RETURN_INSTRUCTION, RETURN_SYSTEM, conclude,
};
use crate::thread::compaction::{Compaction, Mark, ORIGIN, Return};
use crate::values::id::TurnId;

/// A run of the host's own, which compacts or brings something back.
fn of_host(returns: Option<Return>) -> Run {
    let task = Compaction {
        summarized_through: TurnId(Digest::of(b"turn")),
        through_message: 9,
        first_kept: None,
        tokens_before: 100,
        kept_tokens: 0,
        summary_tokens_max: 50,
        untrusted: true,
        asked_by: Some(UserId::local()),
        returns,
    };
    let started = RunStarted {
        compacts: Some(Box::new(task)),
        claimed: Vec::new(),
        ..begun().started
    };
    Run::begin(started)
}

fn back() -> Return {
    Return {
        session: SessionId(Uuid::from_u128(8)),
        agent: "smith".into(),
        first_message: 5,
    }
}

/// Returns what the run tells of a summary: the message that its last step leaves.
fn reported(run: &Run, summary: &str) -> Message {
    let asked = compact::step(run, &[]);
    let Decision::Wait(wait) = &asked.decision else {
        panic!("{asked:?}")
    };
    let [
        Request {
            work: Work::Model(model),
            ..
        },
    ] = wait.start.as_slice()
    else {
        panic!("{wait:?}")
    };
    let is_return = run.started.compacts.as_ref().unwrap().returns.is_some();
    assert_eq!(model.system == [RETURN_SYSTEM], is_return);
    assert_eq!(model.also == [Part::text(RETURN_INSTRUCTION)], is_return);
    let (run, _) = step(run, vec![], &[], asked, EffectClass::Idempotent);
    let settled = model_says(&run, KEY, vec![Part::text(summary)]);
    let intake = intake(&run, vec![settled], &[], SALT);
    let concluded = compact::step(&run, &intake.news);
    assert!(
        matches!(concluded.decision, Decision::Reply { .. }),
        "{concluded:?}"
    );
    let (_, mut stepped) = step_on(&run, intake, concluded, EffectClass::Idempotent);
    conclude(&run, &mut stepped, SALT);
    let [message] = stepped.said.as_slice() else {
        panic!("{:?}", stepped.said)
    };
    message.clone()
}

#[test]
fn a_summary_that_is_brought_back_is_a_notice_and_no_compaction() {
    let message = reported(&of_host(Some(back())), " All is done. ");
    assert_eq!(
        (message.role, message.origin.as_str(), message.untrusted),
        (Role::Notice, Return::ORIGIN, true)
    );
    assert_eq!(message.text(), back().notice("All is done."));
    assert!(message.text().contains("`smith`"), "{}", message.text());
    assert_eq!(Mark::of(&message), None, "the thread goes on whole");
    let compacted = reported(&of_host(None), "All is done.");
    assert_eq!(compacted.origin, ORIGIN);
    assert!(Mark::of(&compacted).is_some());
}

#[test]
fn a_return_that_comes_to_nothing_has_a_code_of_its_own() {
    assert_eq!(compact::code(&of_host(Some(back()))), RETURN_CODE);
    assert_eq!(compact::code(&of_host(None)), CODE);
    assert_eq!(compact::code(&begun()), CODE);
}
