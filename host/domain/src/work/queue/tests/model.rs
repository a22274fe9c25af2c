//! Random histories of a session, beside the simplest queue that could be right: nothing is lost,
//! doubled or out of its order.

use super::*;
use crate::work::queue::model::{Letter, ModelMessage, Next, Reference};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy)]
enum Happening {
    /// Something arrives; without settings it gets a turn of its own.
    Arrives {
        settings: Option<QueueSettings>,
        priority: Priority,
        route: Option<&'static str>,
        from: &'static str,
        long: bool,
    },
    /// The driver looks, as it does at every boundary.
    Inspects,
    /// The open run changes to this condition; without one nothing happens.
    Changes(Condition),
    /// The open run ends.
    Ends,
    /// The clock goes on, or back.
    Passes(i64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let mode = proptest::sample::select(Mode::ALL.to_vec());
    let drop = proptest::sample::select(vec![
        DropPolicy::New,
        DropPolicy::Old,
        DropPolicy::Summarize,
    ]);
    let settings =
        (mode, 0..3_000_u32, 1..5_usize, drop).prop_map(|(mode, debounce, cap, drop)| {
            QueueSettings {
                mode,
                debounce_ms: debounce.to_string().parse().unwrap(),
                cap: cap.to_string().parse().unwrap(),
                drop,
            }
        });
    let settings = prop_oneof![6 => settings.prop_map(Some), 1 => Just(None)];
    let priority = proptest::sample::select(vec![
        Priority::Normal,
        Priority::Normal,
        Priority::Low,
        Priority::High,
        Priority::Critical,
    ]);
    let route = proptest::sample::select(vec![Some("a"), Some("a"), Some("a"), None, Some("b")]);
    let from = proptest::sample::select(vec!["alice", "alice", "bob"]);
    let arrives = (
        settings,
        priority,
        route,
        from,
        proptest::bool::weighted(0.05),
    )
        .prop_map(
            |(settings, priority, route, from, long)| Happening::Arrives {
                settings,
                priority,
                route,
                from,
                long,
            },
        );
    let condition = proptest::sample::select(vec![
        RUNNING,
        DEAF,
        Condition::Compacting,
        Condition::AwaitingClient,
    ]);
    prop_oneof![
        6 => arrives,
        4 => Just(Happening::Inspects),
        1 => condition.prop_map(Happening::Changes),
        1 => Just(Happening::Ends),
        2 => (-200..2_000_i64).prop_map(Happening::Passes),
    ]
}

/// The fate of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Waits,
    Claimed,
    Dropped,
    Refused,
}

/// The rows, the model and what became of everything.
struct World {
    queue: Queue<u32>,
    model: Reference<u32>,
    condition: Condition,
    now: Timestamp,
    texts: BTreeMap<u32, String>,
    /// The user of each of them.
    from: BTreeMap<u32, &'static str>,
    /// The user of the open run.
    of: Option<&'static str>,
    fates: BTreeMap<u32, Fate>,
    /// The last that was claimed of each kind, priority and user.
    last: BTreeMap<(&'static str, Priority, &'static str), u32>,
    /// Number of dropped inputs that were reported to the agent.
    reported: u64,
}

impl World {
    fn new() -> Self {
        let queue = Queue::default();
        let model = Reference::default();
        let texts = BTreeMap::new();
        let from = BTreeMap::new();
        let fates = BTreeMap::new();
        let last = BTreeMap::new();
        Self {
            queue,
            model,
            condition: Condition::Free,
            now: NOON,
            texts,
            from,
            of: None,
            fates,
            last,
            reported: 0,
        }
    }

    fn takes(&mut self, happening: Happening) {
        match happening {
            Happening::Arrives {
                settings,
                priority,
                route,
                from,
                long,
            } => self.hears(settings, (priority, from), route, long),
            Happening::Inspects => self.inspects(),
            Happening::Changes(condition) if self.condition != Condition::Free => {
                self.condition = condition
            }
            Happening::Changes(_) => {}
            Happening::Ends => self.condition = Condition::Free,
            Happening::Passes(ms) => self.now = Timestamp(self.now.0.saturating_add_signed(ms)),
        }
        self.is_sound();
    }

    fn hears(
        &mut self,
        settings: Option<QueueSettings>,
        (priority, from): (Priority, &'static str),
        route: Option<&str>,
        long: bool,
    ) {
        let id = u32::try_from(self.fates.len()).unwrap();
        let text = if long {
            format!("{id} {}", "long ".repeat(300_000))
        } else {
            format!("{id}\n  of {route:?}")
        };
        self.texts.insert(id, text.clone());
        let letter = Letter {
            settings,
            priority,
            from: from.to_owned(),
            route: route.map(str::to_owned),
            text: text.clone(),
        };
        self.from.insert(id, from);
        let modelled = self.model.arrive(id, letter, self.condition, self.now);
        let accepted = match settings {
            None => Ok(Admission {
                kind: WaitKind::OwnTurn,
                drops: None,
            }),
            Some(settings) => self.queue.arrive(
                &Arriving {
                    settings,
                    route,
                    text: &text,
                    line: &text,
                },
                self.condition,
            ),
        };
        let Ok(accepted) = accepted else {
            assert!(modelled.is_err(), "{id} is refused");
            self.fates.insert(id, Fate::Refused);
            return;
        };
        let queued = matches!(accepted.kind, WaitKind::Queued(_));
        let dropped = accepted
            .drops
            .as_ref()
            .map(|drops| drops.ids.clone())
            .unwrap_or_default();
        assert_eq!(modelled.as_ref(), Ok(&dropped));
        if let Some(drops) = accepted.drops {
            self.queue
                .waiting
                .retain(|waiting| !drops.ids.contains(&waiting.id));
            self.queue.overflow = drops.overflow;
        }
        for id in dropped {
            assert_eq!(self.fates.insert(id, Fate::Dropped), Some(Fate::Waits));
        }
        let user = from.parse().unwrap();
        self.queue.waiting.push(WaitingInput {
            id,
            arrived: self.now,
            priority,
            user,
            kind: accepted.kind,
        });
        self.fates.insert(id, Fate::Waits);
        if let Some(settings) = settings.filter(|_| queued) {
            assert!(
                self.queue.queued().count() <= settings.cap.inputs(),
                "the cap holds"
            );
        }
    }

    /// Asks for the plan, crashes, asks again from the rows, and does it.
    fn inspects(&mut self) {
        let plan = self.plan(self.condition, self.now);
        let rows = serde_json::to_string(&self.queue).unwrap();
        self.queue = serde_json::from_str(&rows).unwrap();
        assert_eq!(
            self.plan(self.condition, self.now),
            plan,
            "the rows say it all"
        );
        let modelled = self.model.next(self.condition, self.of, self.now);
        assert_eq!(self.does(plan), modelled);
        if let Next::Start(ids, _) = &modelled {
            (self.condition, self.of) = (RUNNING, Some(self.from[&ids[0]]));
        }
        if let Next::Start(ids, _) | Next::Join(ids, _) = &modelled {
            assert!(
                ids.iter().all(|id| Some(self.from[id]) == self.of),
                "what shares a turn is of one user"
            );
        }
    }

    fn plan(&self, condition: Condition, now: Timestamp) -> Plan<u32> {
        let of: Option<UserId> = self.of.map(|of| of.parse().unwrap());
        self.queue.plan(condition, of.as_ref(), now)
    }

    /// Does what the plan says, and returns what the agent gets.
    fn does(&mut self, plan: Plan<u32>) -> Next<u32> {
        match plan {
            Plan::Nothing => Next::Nothing,
            Plan::WaitUntil(until) => {
                assert!(until > self.now);
                assert!(
                    !matches!(self.plan(self.condition, until), Plan::WaitUntil(_)),
                    "the time is no promise of another"
                );
                Next::Wait(until)
            }
            Plan::Abort { newest } => {
                assert_ne!(self.condition, Condition::Free);
                self.condition = Condition::Free;
                let Plan::Start(PlannedTurn::Words { claims, .. }) =
                    self.plan(Condition::Free, self.now)
                else {
                    panic!()
                };
                let interrupting = self
                    .queue
                    .waiting
                    .iter()
                    .filter(|waiting| waiting.kind == WaitKind::Interrupt);
                let users: BTreeSet<&str> =
                    interrupting.map(|waiting| self.from[&waiting.id]).collect();
                assert!(
                    claims.iter().last() == Some(&newest) || users.len() > 1,
                    "the newest goes last, or ends the turns of others"
                );
                Next::Abort(newest)
            }
            Plan::Join(claims) => {
                assert_eq!(self.condition, RUNNING);
                let (ids, said) = self.claims(claims.iter().copied());
                Next::Join(ids, said)
            }
            Plan::Start(turn) => {
                assert_eq!(self.condition, Condition::Free);
                self.starts(turn)
            }
        }
    }

    fn starts(&mut self, turn: PlannedTurn<u32>) -> Next<u32> {
        match turn {
            PlannedTurn::Own(id) => {
                let (ids, said) = self.claims([id]);
                Next::Start(ids, said)
            }
            PlannedTurn::Words { notice, claims } => {
                self.tells(notice.as_ref());
                let (ids, words) = self.claims(claims.iter().copied());
                let notice = notice.map(|notice| ModelMessage::Notice(notice.to_string()));
                Next::Start(ids, notice.into_iter().chain(words).collect())
            }
            PlannedTurn::Collected { notice, claims } => {
                self.tells(notice.as_ref());
                let (ids, _) = self.claims(claims.iter().copied());
                let texts = ids.iter().map(|id| self.texts[id].as_str());
                let text = collected(notice.as_ref(), texts);
                Next::Start(ids, vec![ModelMessage::Words(text)])
            }
        }
    }

    fn tells(&mut self, notice: Option<&OverflowNotice>) {
        assert_eq!(notice, self.queue.overflow.notice().as_ref());
        self.reported += std::mem::take(&mut self.queue.overflow).dropped();
    }

    fn claims(&mut self, ids: impl IntoIterator<Item = u32>) -> (Vec<u32>, Vec<ModelMessage>) {
        let ids: Vec<u32> = ids.into_iter().collect();
        for id in &ids {
            assert_eq!(
                self.fates.insert(*id, Fate::Claimed),
                Some(Fate::Waits),
                "{id} is claimed once"
            );
            let place = self
                .queue
                .waiting
                .iter()
                .position(|waiting| waiting.id == *id)
                .unwrap();
            let waiting = self.queue.waiting.remove(place);
            let kind = match &waiting.kind {
                WaitKind::OwnTurn => "own",
                WaitKind::Steer => "steer",
                WaitKind::Interrupt => "interrupt",
                WaitKind::Queued(_) => "queued",
            };
            let before = self
                .last
                .insert((kind, waiting.priority, self.from[id]), *id);
            assert!(
                before < Some(*id),
                "{id} keeps its place among those of {kind}, {:?} and {}",
                waiting.priority,
                waiting.user
            );
        }
        let said = ids
            .iter()
            .map(|id| ModelMessage::Words(self.texts[id].clone()))
            .collect();
        (ids, said)
    }

    /// Every input has one fate, which the rows, the model and the notices agree on.
    fn is_sound(&self) {
        let with = |fate: Fate| {
            self.fates
                .iter()
                .filter(move |(_, of)| **of == fate)
                .map(|(id, _)| *id)
        };
        let rows: Vec<u32> = self
            .queue
            .waiting
            .iter()
            .map(|waiting| waiting.id)
            .collect();
        assert_eq!(
            rows.iter().copied().collect::<BTreeSet<_>>(),
            with(Fate::Waits).collect()
        );
        assert_eq!(rows, self.model.waiting());
        assert_eq!(
            with(Fate::Dropped).count() as u64,
            self.reported + self.queue.overflow.dropped(),
            "who is dropped is told of"
        );
    }

    /// Lets runs end and time pass until nothing waits.
    fn settles(&mut self) {
        for _ in 0..2 * self.fates.len() + 2 {
            self.condition = Condition::Free;
            if let Plan::WaitUntil(until) = self.plan(self.condition, self.now) {
                self.now = until;
            }
            self.inspects();
        }
        assert!(
            self.queue.waiting.is_empty(),
            "whatever waits gets its turn"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Every input of any history is claimed once in its order or dropped with a notice or refused.
    #[test]
    fn every_input_is_claimed_once_in_order_or_dropped_with_a_notice_or_refused(
        happenings in proptest::collection::vec(happening(), 1..80),
    ) {
        let mut world = World::new();
        for happening in happenings {
            world.takes(happening);
        }
        world.settles();
        world.is_sound();
    }
}
