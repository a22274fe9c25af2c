//! Random sequences of commits against a model in memory.

use super::sample::{Sample, new, noise, run};
use crate::{Commit, CommitError, Expected, Key};
use domain::digest::Digest;
use domain::id::Stream;
use proptest::prelude::*;
use std::collections::HashMap;

/// One commit, and how it expects things to be.
#[derive(Debug, Clone)]
struct Step {
    appends: Vec<(u128, AppendRequest, usize)>,
    key: Option<(u8, u8)>,
    reopen: bool,
}

#[derive(Debug, Clone, Copy)]
enum AppendRequest {
    Any,
    New,
    /// As it is, or off by so many.
    Off(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let append_request = prop_oneof![
        Just(AppendRequest::Any),
        Just(AppendRequest::New),
        (0_u64..2).prop_map(AppendRequest::Off)
    ];
    let append = (0_u128..3, append_request, 0_usize..4);
    let step = (
        prop::collection::vec(append, 0..4),
        prop::option::of((0_u8..3, 0_u8..2)),
        prop::bool::weighted(0.05),
    )
        .prop_map(|(appends, key, reopen)| {
            // A key ages by the time of its commit's events.
            let key = key.filter(|_| appends.iter().any(|(_, _, count)| *count > 0));
            Step {
                appends,
                key,
                reopen,
            }
        });
    prop::collection::vec(step, 1..40)
}

#[derive(Debug, Default)]
struct Model {
    versions: HashMap<u128, u64>,
    /// The streams in the order of their events.
    events: Vec<u128>,
    keys: HashMap<u8, u8>,
}

#[derive(Debug, PartialEq, Eq)]
enum Became {
    Landed(u64),
    Conflict,
    Replayed,
    KeyReused,
}

impl Model {
    fn commit(&mut self, step: &Step) -> (Commit, Became) {
        let mut commit = Commit::new();
        let (mut versions, mut events, mut conflict) =
            (self.versions.clone(), self.events.clone(), false);
        for (stream, append_request, count) in &step.appends {
            let version = versions.entry(*stream).or_default();
            let expected = match append_request {
                AppendRequest::Any => Expected::Any,
                AppendRequest::New => Expected::New,
                AppendRequest::Off(by) => Expected::Version(*version + by),
            };
            conflict |= match expected {
                Expected::Any => false,
                Expected::New => *version > 0,
                Expected::Version(expected) => expected != *version,
            };
            *version += *count as u64;
            events.extend(std::iter::repeat_n(*stream, *count));
            commit = commit.append(
                Stream::Run(run(*stream)),
                expected,
                (0..*count).map(|n| new(noise(n as u64))).collect(),
            );
        }
        if let Some((name, body)) = step.key {
            commit.key = Some(Key {
                source: "s".to_owned(),
                key: name.to_string(),
                request: Digest::of(&[body]),
                reply: vec![body],
                about: None,
            });
            match self.keys.get(&name) {
                Some(known) if *known == body => return (commit, Became::Replayed),
                Some(_) => return (commit, Became::KeyReused),
                None => {}
            }
        }
        if conflict {
            return (commit, Became::Conflict);
        }
        if let Some((name, body)) = step.key {
            self.keys.insert(name, body);
        }
        (self.versions, self.events) = (versions, events);
        (commit, Became::Landed(self.events.len() as u64))
    }
}

async fn check(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut sample = Sample::new();
    let mut model = Model::default();
    for step in &steps {
        if step.reopen {
            sample = sample.reopen().await;
        }
        let (commit, expected) = model.commit(step);
        let became = match sample.commit(commit).await {
            Ok(committed) => Became::Landed(committed.last_position),
            Err(CommitError::Conflict(_)) => Became::Conflict,
            Err(CommitError::Replayed { .. }) => Became::Replayed,
            Err(CommitError::KeyReused) => Became::KeyReused,
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert_eq!(became, expected);
    }
    let stored = sample
        .events(0, crate::EventFilter::default(), usize::MAX)
        .await
        .unwrap();
    let streams: Vec<String> = model
        .events
        .iter()
        .map(|stream| Stream::Run(run(*stream)).to_string())
        .collect();
    prop_assert_eq!(
        stored
            .iter()
            .map(|event| event.stream.clone())
            .collect::<Vec<_>>(),
        streams
    );
    prop_assert!(
        stored
            .iter()
            .zip(1..)
            .all(|(event, position)| event.position == position)
    );
    prop_assert_eq!(sample.verify().await.unwrap().fault, None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_commits_does_what_the_model_does(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check(steps))?;
    }
}
