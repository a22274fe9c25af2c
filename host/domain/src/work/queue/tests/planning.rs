//! Tests of which inputs are claimed when, and as what.

use super::*;

fn joined(session: &mut Session, condition: Condition) -> (Vec<u32>, &'static str) {
    let plan = session.later(condition);
    session.does(&plan)
}

#[test]
fn words_that_steer_join_the_run_in_order_and_wait_for_no_debounce() {
    let mut session = Session::new();
    for priority in [Priority::Low, Priority::Critical, Priority::Normal] {
        session
            .hears_urgently("steer debounce:1h", None, RUNNING, priority)
            .unwrap();
    }
    for condition in [DEAF, Condition::Compacting, Condition::AwaitingClient] {
        assert_eq!(
            session
                .queue
                .plan(condition, Some(&UserId::local()), session.now),
            Plan::Nothing,
            "{condition:?}"
        );
    }
    let plan = session
        .queue
        .plan(RUNNING, Some(&UserId::local()), session.now);
    assert_eq!(session.does(&plan), (vec![1, 2, 3], "join"));
}

#[test]
fn words_that_could_not_steer_begin_the_next_turn() {
    let mut session = Session::new();
    for mode in ["steer", "followup", "steer"] {
        session.hears(mode, None, DEAF).unwrap();
    }
    let plan = session
        .queue
        .plan(Condition::Free, Some(&UserId::local()), session.now);
    assert_eq!(session.does(&plan), (vec![1, 3], "words"));
    assert_eq!(
        session
            .queue
            .plan(RUNNING, Some(&UserId::local()), session.now),
        Plan::Nothing
    );
    assert_eq!(session.drains(), [(vec![2], "words")]);
}

#[test]
fn more_words_than_join_at_one_boundary_join_at_the_next() {
    let mut session = Session::new();
    for _ in 0..=JOINED_INPUTS_MAX {
        session.hears("steer", None, RUNNING).unwrap();
    }
    assert_eq!(joined(&mut session, RUNNING).0.len(), JOINED_INPUTS_MAX);
    assert_eq!(joined(&mut session, RUNNING), (vec![33], "join"));
    assert_eq!(joined(&mut session, RUNNING), (vec![], "nothing"));
}

#[test]
fn the_queue_waits_until_its_last_input_is_old_enough() {
    let mut session = Session::new();
    session
        .hears("followup debounce:1h", None, RUNNING)
        .unwrap();
    session
        .hears("followup debounce:2s", None, RUNNING)
        .unwrap();
    let until = session.now.plus_ms(2_000);
    assert_eq!(
        session.queue.plan(RUNNING, Some(&UserId::local()), until),
        Plan::Nothing,
        "after the run"
    );
    assert_eq!(
        session
            .queue
            .plan(Condition::Free, Some(&UserId::local()), session.now),
        Plan::WaitUntil(until)
    );
    assert_eq!(
        session.queue.plan(
            Condition::Free,
            Some(&UserId::local()),
            Timestamp(until.0 - 1)
        ),
        Plan::WaitUntil(until)
    );
    let plan = session
        .queue
        .plan(Condition::Free, Some(&UserId::local()), until);
    assert_eq!(session.does(&plan), (vec![1], "words"), "one turn each");
    let set_back = Timestamp(session.now.0 - 60_000);
    let plan = session
        .queue
        .plan(Condition::Free, Some(&UserId::local()), set_back);
    assert_eq!(
        session.does(&plan),
        (vec![2], "words"),
        "a clock that was set back keeps nobody waiting"
    );
}

#[test]
fn words_that_find_the_agent_free_end_the_wait_of_those_before() {
    let mut session = Session::new();
    session
        .hears("followup debounce:1h", None, RUNNING)
        .unwrap();
    session
        .hears("followup debounce:1h", None, Condition::Free)
        .unwrap();
    let plan = session
        .queue
        .plan(Condition::Free, Some(&UserId::local()), session.now);
    assert_eq!(session.does(&plan), (vec![1], "words"));
}

#[test]
fn what_needs_not_wait_does_not_wait_for_what_does() {
    let mut session = Session::new();
    session
        .hears_urgently("followup", None, RUNNING, Priority::Critical)
        .unwrap();
    session.has(WaitKind::OwnTurn, Priority::Low);
    let plan = session
        .queue
        .plan(Condition::Free, Some(&UserId::local()), session.now);
    assert_eq!(session.does(&plan), (vec![2], "own"));
}

#[test]
fn the_most_urgent_goes_first_and_of_equally_urgent_ones_the_oldest() {
    let mut session = Session::new();
    for priority in [
        Priority::Low,
        Priority::Normal,
        Priority::Critical,
        Priority::High,
        Priority::Normal,
        Priority::Critical,
    ] {
        session
            .hears_urgently("followup", None, RUNNING, priority)
            .unwrap();
    }
    session.has(WaitKind::OwnTurn, Priority::High);
    let order: Vec<u32> = session
        .drains()
        .into_iter()
        .flat_map(|(claimed, _)| claimed)
        .collect();
    assert_eq!(order, [3, 6, 4, 7, 2, 5, 1]);
}

#[test]
fn collected_words_become_one_turn_as_far_as_they_stand_together() {
    let mut session = Session::new();
    for mode in ["collect", "steer", "collect", "followup", "collect"] {
        session.hears(mode, Some("chat"), DEAF).unwrap();
    }
    session.has(WaitKind::OwnTurn, Priority::Normal);
    session.hears("collect", Some("chat"), DEAF).unwrap();
    let turns = [
        (vec![1, 3], "collected"),
        (vec![2], "words"),
        (vec![4], "words"),
        (vec![5], "collected"),
    ];
    assert_eq!(
        session.drains(),
        [&turns[..], &[(vec![6], "own"), (vec![7], "collected")]].concat()
    );
}

#[test]
fn words_of_several_routes_get_a_turn_each_until_all_of_them_have_gone() {
    for routes in [
        [Some("a"), Some("b"), Some("b")],
        [None, Some("a"), Some("a")],
        [Some("a"), None, Some("a")],
    ] {
        let mut session = Session::new();
        for route in routes {
            session.hears("collect", route, RUNNING).unwrap();
        }
        for id in 1..=2 {
            assert_eq!(
                joined(&mut session, Condition::Free),
                (vec![id], "words"),
                "{routes:?}"
            );
        }
        session.hears("collect", routes[2], RUNNING).unwrap();
        assert_eq!(
            session.drains(),
            [(vec![3], "words"), (vec![4], "words")],
            "{routes:?}"
        );
        session.hears("collect", routes[0], RUNNING).unwrap();
        session.hears("collect", routes[0], RUNNING).unwrap();
        assert_eq!(session.drains(), [(vec![5, 6], "collected")], "{routes:?}");
    }
}

#[test]
fn more_text_than_fits_one_turn_goes_into_the_next() {
    let mut session = Session::new();
    for text_bytes in [
        COLLECTED_BYTES_MAX + 1,
        COLLECTED_BYTES_MAX,
        1,
        COLLECTED_BYTES_MAX - 1,
    ] {
        let grouping = Grouping::Collect {
            route: None,
            text_bytes,
        };
        session.has(
            WaitKind::Queued(Queued {
                grouping,
                debounce_ms: Debounce::NONE,
                excerpt: String::new(),
            }),
            Priority::Normal,
        );
    }
    assert_eq!(
        session.drains(),
        [
            (vec![1], "collected"),
            (vec![2], "collected"),
            (vec![3, 4], "collected")
        ]
    );
}

#[test]
fn a_collected_text_numbers_what_it_stands_for_under_what_was_dropped() {
    let mut session = Session::new();
    for _ in 0..3 {
        session.hears("collect cap:2", None, RUNNING).unwrap();
    }
    let Plan::Start(PlannedTurn::Collected { notice, claims }) = session.later(Condition::Free)
    else {
        panic!()
    };
    assert_eq!(claims.iter().copied().collect::<Vec<_>>(), [2, 3]);
    let text = collected(notice.as_ref(), ["two", "three\n"]);
    let dropped = "[Queue overflow] Dropped 1 message due to cap.\nSummary:\n- text 1";
    let expected = format!(
        "[Queued messages while agent was busy]\n\n{dropped}\n\n---\nQueued \
                 #1\ntwo\n\n---\nQueued #2\nthree\n"
    );
    assert_eq!(text, expected);
    assert_eq!(
        collected(None, ["one"]),
        "[Queued messages while agent was busy]\n\n---\nQueued #1\none"
    );
}

#[test]
fn an_interrupt_ends_the_run_and_begins_the_next_and_leaves_the_queue_alone() {
    let mut session = Session::new();
    session.hears("followup", None, RUNNING).unwrap();
    session.has(WaitKind::OwnTurn, Priority::Critical);
    session.hears("interrupt", None, RUNNING).unwrap();
    session.hears("interrupt", None, RUNNING).unwrap();
    for condition in [
        RUNNING,
        DEAF,
        Condition::Compacting,
        Condition::AwaitingClient,
    ] {
        assert_eq!(
            session.later(condition),
            Plan::Abort { newest: 4 },
            "{condition:?}"
        );
    }
    let plan = session
        .queue
        .plan(Condition::Free, Some(&UserId::local()), session.now);
    assert_eq!(
        session.does(&plan),
        (vec![3, 4], "words"),
        "the newest is the last word, and the older one is not lost"
    );
    assert_eq!(
        session
            .queue
            .plan(RUNNING, Some(&UserId::local()), session.now),
        Plan::Nothing,
        "the run that it began is not ended by the older one"
    );
    assert_eq!(session.drains(), [(vec![2], "own"), (vec![1], "words")]);
}

#[test]
fn so_many_interrupts_begin_a_turn_and_those_beyond_end_it_and_begin_the_next() {
    let mut session = Session::new();
    for _ in 0..=JOINED_INPUTS_MAX {
        session.hears("interrupt", None, RUNNING).unwrap();
    }
    let plan = session
        .queue
        .plan(Condition::Free, Some(&UserId::local()), session.now);
    assert_eq!(session.does(&plan).0.len(), JOINED_INPUTS_MAX);
    let newest = u32::try_from(JOINED_INPUTS_MAX + 1).unwrap();
    assert_eq!(session.later(RUNNING), Plan::Abort { newest });
    let plan = session
        .queue
        .plan(Condition::Free, Some(&UserId::local()), session.now);
    assert_eq!(session.does(&plan).0, [newest]);
}

#[test]
fn work_that_was_handed_over_is_not_told_of_words_that_were_dropped() {
    let mut session = Session::new();
    session.has(WaitKind::OwnTurn, Priority::High);
    for _ in 0..2 {
        session.hears("followup cap:1", None, RUNNING).unwrap();
    }
    assert_eq!(
        session.drains(),
        [(vec![1], "own"), (vec![3], "notice, words")]
    );
}

#[test]
fn what_several_users_say_never_shares_a_turn() {
    let bob: UserId = "bob".parse().unwrap();
    let collected = || {
        WaitKind::Queued(Queued {
            grouping: Grouping::Collect {
                route: None,
                text_bytes: 4,
            },
            debounce_ms: Debounce::NONE,
            excerpt: String::new(),
        })
    };
    for (kind, how) in [
        (WaitKind::Steer, "words"),
        (WaitKind::Interrupt, "words"),
        (collected(), "collected"),
    ] {
        let mut session = Session::new();
        session.has(kind.clone(), Priority::Normal);
        session.has_of(kind.clone(), Priority::Normal, bob.clone());
        session.has(kind.clone(), Priority::Normal);
        let turns = session.drains();
        let claimed: Vec<Vec<u32>> = turns.iter().map(|(claimed, _)| claimed.clone()).collect();
        // What is collected keeps its place among its neighbours, and what interrupts ends the turn
        // of what came before.
        let expected = if kind == WaitKind::Steer {
            vec![vec![1, 3], vec![2]]
        } else {
            vec![vec![1], vec![2], vec![3]]
        };
        assert_eq!(claimed, expected, "{kind:?}");
        assert!(
            turns.iter().all(|(_, as_what)| *as_what == how),
            "{turns:?}"
        );
    }
    let mut session = Session::new();
    session.has_of(WaitKind::Steer, Priority::Normal, bob.clone());
    assert_eq!(
        session.later(RUNNING),
        Plan::Nothing,
        "the run is of another user"
    );
    let theirs = session.queue.plan(RUNNING, Some(&bob), session.now);
    assert_eq!(session.does(&theirs), (vec![1], "join"));
}
