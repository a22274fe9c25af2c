//! The rules of the queue, one sentence each.

mod arriving;
mod model;
mod planning;
mod words;

use super::*;
use crate::access::user::UserId;
use crate::values::time::Timestamp;
use crate::work::delegate::Priority;

const NOON: Timestamp = Timestamp(1_700_000_000_000);
const RUNNING: Condition = Condition::Running { steerable: true };
const DEAF: Condition = Condition::Running { steerable: false };

fn settings(words: &str) -> QueueSettings {
    let Ok(Directive::Set(said)) = format!("/queue {words}").parse() else {
        panic!("{words}")
    };
    QueueSettings::resolve([said, QueueOverride::default(), QueueOverride::default()])
}

/// A session with its queue: inputs are called by the place in which they came, from 1.
struct Session {
    queue: Queue<u32>,
    received: u32,
    now: Timestamp,
}

impl Session {
    fn new() -> Self {
        Self {
            queue: Queue::default(),
            received: 0,
            now: NOON,
        }
    }

    /// Words arrive, a millisecond after what was before.
    fn hears(
        &mut self,
        mode: &str,
        route: Option<&str>,
        condition: Condition,
    ) -> Result<u32, QueueFull> {
        self.hears_urgently(mode, route, condition, Priority::Normal)
    }

    fn hears_urgently(
        &mut self,
        mode: &str,
        route: Option<&str>,
        condition: Condition,
        priority: Priority,
    ) -> Result<u32, QueueFull> {
        let text = format!("text\n{}", self.received + 1);
        let accepted = self.queue.arrive(
            &Arriving {
                settings: settings(mode),
                route,
                text: &text,
                line: &text,
            },
            condition,
        )?;
        if let Some(drops) = accepted.drops {
            self.queue
                .waiting
                .retain(|waiting| !drops.ids.contains(&waiting.id));
            self.queue.overflow = drops.overflow;
        }
        Ok(self.has(accepted.kind, priority))
    }

    fn has(&mut self, kind: WaitKind, priority: Priority) -> u32 {
        self.has_of(kind, priority, UserId::local())
    }

    fn has_of(&mut self, kind: WaitKind, priority: Priority, user: UserId) -> u32 {
        self.received += 1;
        self.now = self.now.plus_ms(1);
        self.queue.waiting.push(WaitingInput {
            id: self.received,
            arrived: self.now,
            priority,
            user,
            kind,
        });
        self.received
    }

    fn waits(&self) -> Vec<u32> {
        self.queue
            .waiting
            .iter()
            .map(|waiting| waiting.id)
            .collect()
    }

    /// Returns the plan when all debounces are over.
    fn later(&self, condition: Condition) -> Plan<u32> {
        self.queue.plan(
            condition,
            Some(&UserId::local()),
            self.now.plus_ms(DEBOUNCE_MS_MAX),
        )
    }

    /// Carries out a plan. Returns the inputs that it claims, and whether they go into one message
    /// or under a notice. The claimed wait no longer.
    fn does(&mut self, plan: &Plan<u32>) -> (Vec<u32>, &'static str) {
        let (claimed, how): (Vec<u32>, _) = match plan {
            Plan::Nothing | Plan::WaitUntil(_) => (Vec::new(), "nothing"),
            Plan::Abort { newest } => return (vec![*newest], "abort"),
            Plan::Join(claims) => (claims.iter().copied().collect(), "join"),
            Plan::Start(PlannedTurn::Own(id)) => (vec![*id], "own"),
            Plan::Start(PlannedTurn::Words {
                notice: None,
                claims,
            }) => (claims.iter().copied().collect(), "words"),
            Plan::Start(PlannedTurn::Words {
                notice: Some(_),
                claims,
            }) => (claims.iter().copied().collect(), "notice, words"),
            Plan::Start(PlannedTurn::Collected {
                notice: None,
                claims,
            }) => (claims.iter().copied().collect(), "collected"),
            Plan::Start(PlannedTurn::Collected {
                notice: Some(_),
                claims,
            }) => (claims.iter().copied().collect(), "notice, collected"),
        };
        if how.starts_with("notice") {
            self.queue.overflow = Overflow::default();
        }
        self.queue
            .waiting
            .retain(|waiting| !claimed.contains(&waiting.id));
        (claimed, how)
    }

    /// Lets one turn follow the other until nothing waits.
    fn drains(&mut self) -> Vec<(Vec<u32>, &'static str)> {
        let mut turns = Vec::new();
        while !self.queue.waiting.is_empty() {
            let plan = self.later(Condition::Free);
            turns.push(self.does(&plan));
        }
        turns
    }
}
