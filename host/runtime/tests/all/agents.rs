//! Steps: what they may read, that they repeat, and how they end.

use crate::fixture::{Fixture, Sight, basis, replied, some_basis};
use agent_host_runtime::{Described, Level, Outcome};
use domain::grant::GuestLimits;
use std::sync::Arc;

#[tokio::test]
async fn a_step_reads_its_view_and_every_answer_goes_into_the_hash() {
    let (fixture, reader) = Fixture::of("reader").await;
    let Described::Agent(description) = reader.describes() else {
        panic!("not an agent")
    };
    assert_eq!(description.id, "reader");
    let first = fixture.step(&reader, &some_basis()).await;
    let second = fixture.step(&reader, &some_basis()).await;
    let expected =
        r#"{"prompt":"p"} Some(1) ["{\"type\":\"object\"}"] ["worker"] Some([7]) Some([1, 1])"#;
    assert_eq!(replied(&first), expected);
    assert_eq!(first.answers, second.answers);
    assert_eq!(first.logs.len(), 1);
    assert_eq!(
        (first.logs[0].level, first.logs[0].message.as_str()),
        (Level::Info, "reading for /agent/one")
    );
    assert!(
        first.usage.wall_us > 0
            && first.usage.host_calls >= 8
            && first.usage.memory_bytes_peak >= 64 << 10,
        "{:?}",
        first.usage
    );

    let clock = fixture.load("clock").await;
    assert_ne!(
        fixture.step(&clock, &some_basis()).await.answers,
        first.answers
    );
}

#[tokio::test]
async fn an_agents_clock_stands_still_and_its_randomness_follows_from_the_seed() {
    let (fixture, clock) = Fixture::of("clock").await;
    let first = replied(&fixture.step(&clock, &basis(1_234_567, b"seed")).await);
    let again = replied(&fixture.step(&clock, &basis(1_234_567, b"seed")).await);
    let other = replied(&fixture.step(&clock, &basis(1_234_567, b"another")).await);
    assert!(
        first.starts_with("now 1234567 wall 1234567 slept 0 chance "),
        "{first}"
    );
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[tokio::test]
async fn a_step_that_cannot_read_its_view_is_faulted_and_not_trapped() {
    let (fixture, reader) = Fixture::of("reader").await;
    let view = Arc::new(Sight::new(true));
    let limits = GuestLimits::default();
    let stepped = fixture
        .step_seeing(&reader, view, &some_basis(), limits)
        .await;
    assert_eq!(
        stepped.outcome,
        Outcome::Faulted {
            detail: "the view could not be read: the disk is gone".into(),
            began: true,
        }
    );
}

#[tokio::test]
async fn a_step_that_returns_what_is_not_json_is_refused_by_the_fields_name() {
    let (fixture, refused) = Fixture::of("refused").await;
    let Outcome::Refused { detail } = fixture.step(&refused, &some_basis()).await.outcome else {
        panic!("not refused")
    };
    assert!(detail.starts_with("`effects[0]` is not JSON"), "{detail}");
}

#[tokio::test]
async fn a_component_of_tools_cannot_be_stepped() {
    let (fixture, echo) = Fixture::of("echo").await;
    assert!(matches!(
        fixture.step(&echo, &some_basis()).await.outcome,
        Outcome::Faulted { .. }
    ));
}
