//! The order in which those who wait get a permit.

use super::*;
use Priority::{Critical, High, Low, Normal};
use futures::FutureExt;

fn party(user: &str, agent: u128, priority: Priority) -> Party {
    Party {
        user: user.parse().unwrap(),
        agent: AgentId(uuid::Uuid::from_u128(agent)),
        priority,
        section: None,
    }
}

fn one(priority: Priority) -> Party {
    party("ann", 1, priority)
}

/// Returns the order in which the first so many parties get the only permit.
fn order(asked: &[Party], first: usize) -> Vec<usize> {
    let semaphore = FairSemaphore::new(1);
    let mut leased = semaphore.enter(one(Low)).now_or_never();
    assert!(leased.is_some(), "a free permit is taken at once");
    let mut waiting: Vec<_> = asked
        .iter()
        .map(|party| Some(Box::pin(semaphore.enter(party.clone()))))
        .collect();
    for waits in waiting.iter_mut().flatten() {
        assert!(waits.now_or_never().is_none());
    }
    let mut order = Vec::new();
    while order.len() < first {
        drop(leased.take());
        let called = waiting
            .iter_mut()
            .enumerate()
            .find_map(|(index, waits)| Some((index, waits.as_mut()?.now_or_never()?)));
        let (index, permit) = called.expect("somebody is called");
        waiting[index] = None;
        leased = Some(permit);
        order.push(index);
    }
    order
}

#[test]
fn of_a_users_waiters_the_most_urgent_is_next_and_of_equals_the_first() {
    assert_eq!(
        order(&[Low, Normal, Critical, Normal, High, Critical].map(one), 6),
        [2, 5, 4, 1, 3, 0]
    );
}

/// Users take turns, and in the turns of a user their agents, however much one of them has under
/// way.
#[test]
fn users_take_turns_and_in_the_turns_of_a_user_their_agents() {
    // Ann has ten thousand waiting, of which her second agent has two; then Bob comes, and Carol.
    let mut asked = vec![party("ann", 1, Normal); 9_998];
    asked.extend(vec![party("ann", 2, Normal); 2]);
    asked.extend([
        party("bob", 3, Normal),
        party("bob", 3, Normal),
        party("carol", 4, Normal),
    ]);
    assert_eq!(order(&asked, 6), [0, 10_000, 10_002, 9_998, 10_001, 1]);
}

#[test]
fn urgent_work_of_one_user_takes_no_other_users_turn() {
    // Ann has ten critical ones of two agents waiting, and then Bob comes with two.
    let mut asked: Vec<_> = (0..10)
        .map(|index| party("ann", index % 2, Critical))
        .collect();
    asked.extend([party("bob", 3, Low), party("bob", 4, Normal)]);
    assert_eq!(order(&asked, 6), [0, 11, 1, 10, 2, 3]);
    let sectioned: Vec<_> = asked
        .into_iter()
        .map(|party| party.in_section("component", 1))
        .collect();
    assert_eq!(order(&sectioned, 6), [0, 11, 1, 10, 2, 3]);
}

#[test]
fn urgent_work_that_waits_for_a_full_section_holds_up_none_of_its_user() {
    let semaphore = FairSemaphore::new(2);
    let ask = |agent: u128, priority: Priority, name: &str| {
        semaphore.ask(&party("ann", agent, priority).in_section(name, 1))
    };
    let full = ask(1, Normal, "full");
    let other = ask(2, Normal, "other");
    let mut urgent = ask(3, Critical, "full");
    let mut low = ask(4, Low, "third");
    drop(other);
    assert!(urgent.called().now_or_never().is_none());
    assert!(
        low.called().now_or_never().is_some(),
        "who is more urgent has no use for the permit"
    );
    drop(full);
    assert!(urgent.called().now_or_never().is_some());
}

#[test]
fn who_gives_up_waiting_holds_nobody_up() {
    let semaphore = FairSemaphore::new(1);
    let leased = semaphore.enter(one(Normal)).now_or_never();
    let mut gone = Box::pin(semaphore.enter(one(Critical)));
    let mut called = Box::pin(semaphore.enter(one(High)));
    let mut last = Box::pin(semaphore.enter(one(Low)));
    for waits in [&mut gone, &mut called, &mut last] {
        assert!(waits.now_or_never().is_none());
    }
    drop(gone);
    drop(leased);
    // Called, and gone before it looked.
    drop(called);
    assert!(last.now_or_never().is_some());
}

#[test]
fn a_turn_is_kept_while_nobody_looks_and_not_taken_by_who_gave_up() {
    let semaphore = FairSemaphore::new(1);
    let leased = semaphore.enter(one(Normal)).now_or_never();
    let ask = |user: &str, agent: u128| semaphore.ask(&party(user, agent, Normal));
    // Ann's first two give up; her turn is her own all the same, and so is that of her first agent.
    let gone = ask("ann", 1);
    let gone_too = ask("ann", 2);
    let anns = ask("ann", 1);
    let annas = ask("ann", 2);
    let mut bobs = ask("bob", 3);
    let carols = ask("carol", 4);
    drop((gone, gone_too));
    // Who does something else in between has waited all the same.
    for _ in 0..3 {
        assert!(bobs.called().now_or_never().is_none());
    }
    drop(leased);
    let mut waiting = vec![
        ("carol", carols),
        ("bob", bobs),
        ("anna", annas),
        ("ann", anns),
    ];
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let called = waiting
            .iter_mut()
            .position(|(_, ticket)| ticket.called().now_or_never().is_some())
            .expect("somebody is called");
        let (who, ticket) = waiting.remove(called);
        order.push(who);
        assert!(ticket.permit().is_ok(), "it is there");
    }
    assert_eq!(order, ["ann", "bob", "carol", "anna"]);
}

#[test]
fn in_a_section_that_is_full_users_take_turns_although_places_are_free() {
    // Ann's first has the only permit of the section; ninety-nine of hers wait, then Bob.
    let semaphore = FairSemaphore::new(8);
    let mut anns: VecDeque<_> = (0..100)
        .map(|_| semaphore.ask(&party("ann", 1, Normal).in_section("component", 1)))
        .collect();
    let mut bobs = semaphore.ask(&party("bob", 2, Normal).in_section("component", 1));
    drop(anns.pop_front());
    assert!(
        bobs.called().now_or_never().is_none(),
        "Ann's next was there first"
    );
    drop(anns.pop_front());
    assert!(bobs.called().now_or_never().is_some());
    assert!(
        anns.iter_mut()
            .all(|ticket| ticket.called().now_or_never().is_none()),
        "it is his alone"
    );
    drop(bobs);
    assert!(
        anns.front_mut()
            .is_some_and(|ticket| ticket.called().now_or_never().is_some())
    );
}

#[test]
fn who_waits_for_a_section_that_is_full_holds_nobody_up_and_keeps_its_turn() {
    let semaphore = FairSemaphore::new(2);
    let ask = |user: &str, agent: u128, name: &str| {
        semaphore.ask(&party(user, agent, Normal).in_section(name, 1))
    };
    let full = ask("ann", 1, "full");
    let mut anns = ask("ann", 1, "full");
    let other = ask("bob", 2, "other");
    assert!(
        matches!(other, Ticket::Called(_)),
        "a permit is free, and its section has room"
    );
    let mut carols = ask("carol", 3, "third");
    drop(other);
    assert!(anns.called().now_or_never().is_none());
    assert!(
        carols.called().now_or_never().is_some(),
        "who waited longer has no use for the permit"
    );
    let mut bobs = ask("bob", 2, "full");
    let mut last = ask("dora", 4, "full");
    drop(full);
    let order =
        [&mut anns, &mut bobs, &mut last].map(|ticket| ticket.called().now_or_never().is_some());
    assert_eq!(order, [true, false, false]);
}

#[test]
fn who_gives_up_gives_its_place_back_to_its_own_section() {
    let semaphore = FairSemaphore::new(4);
    let ask = |name: &str| semaphore.ask(&one(Normal).in_section(name, 1));
    let leased = ask("full");
    let called = ask("full");
    let mut last = ask("full");
    drop(leased);
    // Called, and gone before it looked.
    drop(called);
    assert!(last.called().now_or_never().is_some());
    assert!(matches!(ask("other"), Ticket::Called(_)));
    let mut waits = ask("full");
    assert!(waits.called().now_or_never().is_none());
    drop(last);
    assert!(waits.called().now_or_never().is_some());
}

#[test]
fn a_section_that_nobody_uses_or_waits_for_is_forgotten() {
    let semaphore = FairSemaphore::new(4);
    let ask = |name: &str| semaphore.ask(&one(Normal).in_section(name, 1));
    let leased = ask("agent");
    let waits = ask("agent");
    drop(leased);
    assert_eq!(semaphore.queue().sections.len(), 1);
    drop(waits);
    assert_eq!(semaphore.queue().sections.len(), 0);
    assert!(matches!(ask("agent"), Ticket::Called(_)));
}

/// There is a section for each agent at work, so a permit that is given back may cost nothing for
/// each of them.
#[test]
fn a_release_looks_only_at_sections_with_room_that_somebody_waits_for() {
    let semaphore = FairSemaphore::new(1_001);
    // All that an agent asks for is in one section.
    let ask =
        |agent: u128| semaphore.ask(&party("ann", agent, Normal).in_section(agent.to_string(), 1));
    let mut leased: Vec<_> = (0..1_000).map(ask).collect();
    let candidates = || semaphore.queue().callable.len();
    assert_eq!(semaphore.queue().sections.len(), 1_000);
    assert_eq!(candidates(), 0, "nobody waits");
    let mut full = ask(0);
    assert_eq!(candidates(), 0, "its section is full");
    let last = ask(1_000);
    let mut waits = ask(1_001);
    assert_eq!(candidates(), 1, "only a permit is missing");
    drop(leased.pop());
    assert!(waits.called().now_or_never().is_some());
    assert_eq!(candidates(), 0, "it was called");
    drop(leased.swap_remove(0));
    assert!(full.called().now_or_never().is_some());
    assert_eq!(candidates(), 0);
    drop((leased, last, full, waits));
    let queue = semaphore.queue();
    assert_eq!((queue.sections.len(), queue.callable.len()), (0, 0));
}
