//! The limits and texts of the queue. What is claimed when, and in which order, is held by the
//! model: `tests/model.rs`.

mod model;
mod words;

use super::*;
use crate::access::user::UserId;
use crate::thread::speaker::Speaker;
use crate::values::time::Timestamp;
use crate::work::delegate::Priority;

const NOON: Timestamp = Timestamp(1_700_000_000_000);
const RUNNING: Condition = Condition::Running { steerable: true };
const DEAF: Condition = Condition::Running { steerable: false };

/// A session with its queue: inputs are called by the place in which they came, from 1.
#[derive(Default)]
struct Session {
    queue: Queue<u32>,
    received: u32,
}

impl Session {
    /// A message arrives, with its settings as in a directive, a millisecond after the one before.
    fn hears(&mut self, settings: &str, condition: Condition) -> Result<(), QueueFull> {
        let Ok(Directive::Set(said)) = format!("/queue {settings}").parse() else {
            panic!("{settings}")
        };
        let text = format!("text\n{}", self.received + 1);
        let none = QueueOverride::default();
        let arriving = Arriving {
            settings: QueueSettings::resolve([said, none, none]),
            route: None,
            text: &text,
            line: &text,
        };
        let accepted = self.queue.arrive(&arriving, condition)?;
        if let Some(drops) = accepted.drops {
            let waiting = &mut self.queue.waiting;
            waiting.retain(|waiting| !drops.ids.contains(&waiting.id));
            self.queue.overflow = drops.overflow;
        }
        self.has(accepted.kind, UserId::local());
        Ok(())
    }

    fn has(&mut self, kind: WaitKind, user: UserId) {
        self.received += 1;
        self.queue.waiting.push(WaitingInput {
            id: self.received,
            arrived: NOON.plus_ms(self.received.into()),
            priority: Priority::Normal,
            user,
            kind,
        });
    }

    fn collects(&mut self, text_bytes: u64, user: UserId) {
        let queued = Queued {
            grouping: Grouping::Collect {
                route: None,
                text_bytes,
            },
            debounce_ms: Debounce::NONE,
            excerpt: String::new(),
        };
        self.has(WaitKind::Queued(queued), user);
    }

    fn waits(&self) -> Vec<u32> {
        let waiting = self.queue.waiting.iter();
        waiting.map(|waiting| waiting.id).collect()
    }

    /// Carries out the plan for when all debounces are over, and returns the inputs that it claims.
    fn claims(&mut self, condition: Condition, user: &UserId) -> Vec<u32> {
        let later = NOON.plus_ms(2 * DEBOUNCE_MS_MAX);
        let claimed: Vec<u32> = match self.queue.plan(condition, Some(user), later) {
            Plan::Join(claims)
            | Plan::Start(
                PlannedTurn::Words { claims, .. } | PlannedTurn::Collected { claims, .. },
            ) => claims.iter().copied().collect(),
            _ => Vec::new(),
        };
        let waiting = &mut self.queue.waiting;
        waiting.retain(|waiting| !claimed.contains(&waiting.id));
        claimed
    }

    /// Lets one turn follow the other until nothing waits.
    fn drains(&mut self) -> Vec<Vec<u32>> {
        let mut turns = Vec::new();
        while !self.queue.waiting.is_empty() {
            turns.push(self.claims(Condition::Free, &UserId::local()));
        }
        turns
    }
}

#[test]
fn a_full_queue_refuses_what_arrives_when_nothing_that_waits_is_to_be_dropped() {
    let mut session = Session::default();
    session.hears("followup", RUNNING).unwrap();
    session.hears("collect", RUNNING).unwrap();
    let full = session.hears("followup cap:2 drop:new", RUNNING);
    let error = full.unwrap_err().to_string();
    let expected = "the queue holds 2 messages and its cap is 2; wait for the run";
    assert!(error.starts_with(expected), "{error}");
    session.hears("steer cap:2 drop:new", RUNNING).unwrap();
    session.hears("interrupt cap:2 drop:new", RUNNING).unwrap();
    assert_eq!(
        session.waits(),
        [1, 2, 3, 4],
        "what does not wait for the run to end is not counted"
    );
}

#[test]
fn a_line_has_the_words_of_users_and_names_others() {
    let user = || Speaker::User {
        user_id: UserId::local(),
    };
    let trigger = || Speaker::Trigger {
        trigger: "issues".to_owned(),
        asks: None,
    };
    for (speaker, untrusted, expected) in [
        (None, false, "obey"),
        (Some(user()), false, "obey"),
        (Some(trigger()), false, "[from trigger=\"issues\"] obey"),
        (
            Some(trigger()),
            true,
            "[from trigger=\"issues\", untrusted: left out]",
        ),
        // It quotes somebody else.
        (
            Some(user()),
            true,
            "[from user=\"local\", untrusted: left out]",
        ),
        (None, true, "[from elsewhere, untrusted: left out]"),
    ] {
        assert_eq!(line(speaker.as_ref(), untrusted, "obey"), expected);
    }
}

#[test]
fn however_long_a_queue_may_be_a_hundred_lines_are_kept_of_what_was_dropped() {
    let mut session = Session::default();
    for _ in 0..OVERFLOW_LINES_MAX + 9 {
        session.hears("followup cap:1000", RUNNING).unwrap();
    }
    for _ in 0..OVERFLOW_LINES_MAX + 8 {
        let cap = session.waits().len();
        let settings = format!("followup cap:{cap}");
        session.hears(&settings, RUNNING).unwrap();
    }
    let overflow = &session.queue.overflow;
    assert_eq!(
        (overflow.lines().len(), overflow.dropped()),
        (OVERFLOW_LINES_MAX, OVERFLOW_LINES_MAX as u64 + 8)
    );
    assert_eq!(overflow.lines()[0], "text 9", "the oldest lines are lost");
}

#[test]
fn what_was_to_be_told_and_was_not_is_told_with_what_was_dropped_since() {
    let mut session = Session::default();
    for settings in ["followup", "followup cap:1 drop:old", "followup cap:1"] {
        session.hears(settings, RUNNING).unwrap();
    }
    let first = session.queue.overflow.clone();
    let reported = session.queue.overflow.notice().unwrap();
    assert_eq!(reported.untold(), first, "{reported:?}");
    session.queue.overflow = Overflow::default();
    session.hears("followup cap:1", RUNNING).unwrap();
    let both = reported.untold().and(session.queue.overflow.clone());
    let expected = "[Queue overflow] Dropped 3 messages due to cap.\nSummary:\n- text 2\n- text 3";
    assert_eq!(both.notice().unwrap().as_str(), expected);
    assert_eq!(both.notice().unwrap().untold(), both);
}

#[test]
fn so_many_messages_join_at_one_boundary_or_begin_a_turn_and_the_rest_the_next() {
    let newest = u32::try_from(JOINED_INPUTS_MAX + 1).unwrap();
    for (mode, condition) in [("steer", RUNNING), ("interrupt", Condition::Free)] {
        let mut session = Session::default();
        for _ in 0..=JOINED_INPUTS_MAX {
            session.hears(mode, RUNNING).unwrap();
        }
        let first = session.claims(condition, &UserId::local());
        assert_eq!(first.len(), JOINED_INPUTS_MAX, "{mode}");
        if mode == "interrupt" {
            let ended = session.queue.plan(RUNNING, Some(&UserId::local()), NOON);
            assert_eq!(ended, Plan::Abort { newest });
        }
        assert_eq!(session.claims(condition, &UserId::local()), [newest]);
        assert_eq!(session.waits(), Vec::<u32>::new());
    }
}

#[test]
fn more_text_than_fits_one_turn_goes_into_the_next() {
    let mut session = Session::default();
    let most = COLLECTED_BYTES_MAX;
    for text_bytes in [most + 1, most, 1, most - 1] {
        session.collects(text_bytes, UserId::local());
    }
    assert_eq!(session.drains(), [vec![1], vec![2], vec![3, 4]]);
}

#[test]
fn what_several_users_say_never_shares_a_turn() {
    let bob: UserId = "bob".parse().unwrap();
    for (kind, expected) in [
        (Some(WaitKind::Steer), vec![vec![1, 3], vec![2]]),
        // What interrupts ends the turn of what came before.
        (Some(WaitKind::Interrupt), vec![vec![1], vec![2], vec![3]]),
        // What is collected keeps its place among its neighbours.
        (None, vec![vec![1], vec![2], vec![3]]),
    ] {
        let mut session = Session::default();
        for user in [UserId::local(), bob.clone(), UserId::local()] {
            match kind.clone() {
                Some(kind) => session.has(kind, user),
                None => session.collects(4, user),
            }
        }
        assert_eq!(session.drains(), expected, "{kind:?}");
    }
    let mut session = Session::default();
    session.has(WaitKind::Steer, bob.clone());
    let of_another = session.claims(RUNNING, &UserId::local());
    assert_eq!(of_another, Vec::<u32>::new());
    assert_eq!(session.claims(RUNNING, &bob), [1]);
}
