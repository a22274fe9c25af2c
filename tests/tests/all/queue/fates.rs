//! The fates of all inputs of a session, from what is stored and said: dealt with once and said
//! once, or why not.

use domain::delegate::Priority;
use domain::event::{Event, InputAccepted, Source};
use domain::id::{InputId, SessionId};
use domain::message::Role;
use domain::queue::WaitKind;
use std::collections::{BTreeMap, BTreeSet};
use store::{EventFilter, Store};

/// The stored facts about one session's inputs.
#[derive(Default)]
struct Story {
    accepted: Vec<InputAccepted>,
    claims: Vec<InputId>,
    gone: BTreeMap<InputId, &'static str>,
    requeued: Vec<InputId>,
    dropped: u64,
}

async fn story(store: &Store, session: SessionId) -> Story {
    let filter = EventFilter {
        session: Some(session),
        ..EventFilter::default()
    };
    let mut story = Story::default();
    for recorded in store.events(0, filter, 1_000_000).await.unwrap() {
        match recorded.event {
            Some(Event::InputAccepted(it)) => story.accepted.push(it),
            Some(Event::RunStarted(it)) => story.claims.extend(it.claimed),
            Some(Event::RunStepped(it)) => story.claims.extend(it.claimed),
            Some(Event::InputDead(it)) => drop(story.gone.insert(it.input, "dead")),
            Some(Event::InputRequeued(it)) => {
                story.gone.remove(&it.input);
                story.requeued.push(it.input);
            }
            Some(Event::InputCancelled(it)) => drop(story.gone.insert(it.input, "cancelled")),
            Some(Event::InputsDropped(it)) => {
                story.dropped += it.inputs.len() as u64;
                story
                    .gone
                    .extend(it.inputs.into_iter().map(|input| (input, "dropped")));
            }
            _ => {}
        }
    }
    story
}

/// The number that a notice or a collected message says were dropped before it.
fn number_dropped(text: &str) -> u64 {
    let number = text
        .split("[Queue overflow] Dropped ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    number.map_or(0, |number| number.parse().unwrap())
}

/// Checks that what is stored of a session is what was to become of its inputs. Returns those of
/// its users that were accepted.
pub(super) async fn check(store: &Store, session: SessionId) -> Vec<InputId> {
    let story = story(store, session).await;
    let claims: BTreeSet<InputId> = story.claims.iter().copied().collect();
    for input in &claims {
        let times = |inputs: &[InputId]| inputs.iter().filter(|it| *it == input).count();
        assert!(
            times(&story.claims) <= 1 + times(&story.requeued),
            "{input} was claimed twice"
        );
    }
    let row = store.session(session).await.unwrap().unwrap();
    let messages = store.messages(row.head, 1, row.head_message).await.unwrap();
    let heard: Vec<String> = messages
        .iter()
        .filter(|message| matches!(message.role, Role::User | Role::Notice))
        .map(|message| message.text())
        .collect();
    for accepted in &story.accepted {
        let text = accepted.message.as_ref().unwrap().parts[0].clone();
        let domain::message::Part::Text { text } = text else {
            panic!("{accepted:?}")
        };
        // A line that stays of what was dropped begins with a dash.
        let times: usize = heard
            .iter()
            .flat_map(|heard| heard.lines())
            .filter(|line| *line == text)
            .count();
        let gone = story.gone.get(&accepted.input).copied();
        let claimed = claims.contains(&accepted.input);
        match gone {
            None => assert_eq!((claimed, times), (true, 1), "{text} was accepted"),
            Some("dead") => assert!(times == 0, "{text} was put aside and heard"),
            // One that was requeued was claimed before it was put aside.
            Some(why) => assert_eq!(
                (claimed && !story.requeued.contains(&accepted.input), times),
                (false, 0),
                "{text} was {why}"
            ),
        }
    }
    let reported: u64 = heard.iter().map(|heard| number_dropped(heard)).sum();
    assert_eq!(
        reported, story.dropped,
        "what was dropped and what was told of it"
    );
    // Among equals each waits for those before it.
    let mut orders: BTreeMap<(&str, Priority), Vec<InputId>> = BTreeMap::new();
    let is_once = |input: &InputId| claims.contains(input) && !story.requeued.contains(input);
    for accepted in story
        .accepted
        .iter()
        .filter(|accepted| is_once(&accepted.input))
    {
        let kind = match accepted.waits_for() {
            WaitKind::OwnTurn => "own turn",
            WaitKind::Steer => "steer",
            WaitKind::Interrupt => "interrupt",
            WaitKind::Queued(_) => "queued",
        };
        orders
            .entry((kind, accepted.priority()))
            .or_default()
            .push(accepted.input);
    }
    for (of, expected) in orders {
        let claimed: Vec<InputId> = story
            .claims
            .iter()
            .copied()
            .filter(|claim| expected.contains(claim))
            .collect();
        assert_eq!(claimed, expected, "{of:?} out of order");
    }
    story
        .accepted
        .into_iter()
        .filter(|accepted| accepted.source == Source::Api)
        .map(|accepted| accepted.input)
        .collect()
}
