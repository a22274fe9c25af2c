//! Storms of agents: the limits hold, others are served meanwhile, and the ledger and the dead
//! letters tell the story.

use super::account::Account;
use agent_host_tests::{Setup, World};
use broker::PostMessage;
use domain::event::{BoundaryDecision, BoundaryVerdict, Event, Recorded, RunStarted, Source};
use domain::id::{InputId, RunId, SessionId};
use domain::message::Role;
use domain::time::Timestamp;
use domain::user::UserId;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Number of times that agents answer each other in a row.
const HOPS_MAX: u32 = 16;
/// Dispatches of one tree of agents that are open at the same time.
const TREE_MAX: usize = 8;
/// Workers that one turn has at work at the same time.
const CHILDREN_MAX: usize = 5;
/// Depth to which workers nest.
const SPAWNS_MAX: u32 = 3;
/// Number of bombs that are set off until one goes on for as long as it may. A bomb ends early when
/// all late replies join a turn that is open.
const BOMBS_MAX: usize = 10;
/// And how often those whom it began answer each other in a row.
const BOMB_HOPS_MAX: u32 = 6;

/// A setup with a third agent, who has nothing to do with the storm.
fn with_a_bystander(change: impl FnOnce(&mut Setup)) -> Setup {
    let mut setup = Setup::default();
    setup
        .definitions
        .push(json!({ "agentId": "third", "displayName": "Third", "component": "puppet" }));
    change(&mut setup);
    setup
}

/// Has another user ask another agent something while the storm goes on, and be answered.
async fn another_is_served(world: &World) {
    let bob: UserId = "bob".parse().unwrap();
    let session = world.open_for(&bob, "third").await;
    let message = PostMessage {
        user: bob,
        ..world.message("third", session, r#"{"steps":[{"reply":"here"}]}"#, None)
    };
    world.broker.messages().post(message).await.unwrap();
    world.replies(session, "here").await;
    let storm = world
        .store()
        .sessions_with_work(Timestamp(u64::MAX >> 1))
        .await
        .unwrap();
    assert!(
        !storm.is_empty(),
        "the storm was over before anybody else was served"
    );
}

/// The record of a storm.
struct Story {
    account: Account,
    starts: Vec<RunStarted>,
    /// The refusals because of a limit: the session and the decision.
    limited: Vec<(SessionId, BoundaryDecision)>,
    /// Dispatches that were open at once, at most: of all, and of one run.
    most: (usize, usize),
}

impl Story {
    /// Reads the record. Checks that every input was dealt with once or put aside once, and every
    /// reply delivered once.
    async fn of(world: &World) -> Self {
        let events = world.recorded().await;
        let account = Account::of(&events).unwrap();
        account.check_inputs().unwrap();
        account.check_runs().unwrap();
        account.check_replies().unwrap();
        let starts: Vec<RunStarted> = events
            .iter()
            .filter_map(|it| match &it.event {
                Some(Event::RunStarted(started)) => Some(RunStarted::clone(started)),
                _ => None,
            })
            .collect();
        let session_of: HashMap<RunId, SessionId> = starts
            .iter()
            .map(|start| (start.run, start.session))
            .collect();
        let ledger = world.ledger().await;
        let limited = ledger.into_iter().flat_map(|entry| {
            let session = session_of[&entry.run.unwrap()];
            entry
                .decisions
                .into_iter()
                .filter(|it| it.verdict == BoundaryVerdict::Limited)
                .map(move |it| (session, it))
        });
        let limited = limited.collect();
        let most = at_once(&events);
        Self {
            account,
            starts,
            limited,
            most,
        }
    }

    fn runs_of(&self, session: SessionId) -> impl Iterator<Item = &RunStarted> {
        self.starts
            .iter()
            .filter(move |start| start.session == session)
    }

    /// Counts the refusals by the name of the limit.
    fn refused(&self) -> BTreeMap<&'static str, usize> {
        let names = [
            "callDepthMax",
            "spawnDepthMax",
            "childrenMax",
            "treeDispatchesMax",
            "toolCallsMax",
        ];
        let count = |name: &str| {
            self.limited
                .iter()
                .filter(|(_, it)| it.detail.contains(name))
                .count()
        };
        let refused: BTreeMap<&str, usize> =
            names.into_iter().map(|name| (name, count(name))).collect();
        assert_eq!(
            refused.values().sum::<usize>(),
            self.limited.len(),
            "each names one of the limits: {:?}",
            self.limited
        );
        refused
    }
}

/// Returns the highest number of dispatches that were open at once, of all and of one run. Each is
/// open from its acceptance to the end of the run that took it up.
fn at_once(events: &[Recorded]) -> (usize, usize) {
    let mut open = HashMap::<InputId, RunId>::new();
    let mut claimed = HashMap::<RunId, Vec<InputId>>::new();
    let mut most = (0, 0);
    for event in events.iter().filter_map(|it| it.event.as_ref()) {
        match event {
            Event::InputAccepted(accepted) => {
                if let Source::Dispatch {
                    reply_to: Some(reply_to),
                    ..
                } = &accepted.source
                {
                    open.insert(accepted.input, reply_to.run);
                    let of_run = open.values().filter(|run| **run == reply_to.run).count();
                    most = (most.0.max(open.len()), most.1.max(of_run));
                }
            }
            Event::RunStarted(started) => {
                drop(claimed.insert(started.run, started.claimed.clone()))
            }
            Event::RunEnded(ended) => {
                for input in claimed.remove(&ended.run).into_iter().flatten() {
                    open.remove(&input);
                }
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?} never came to an end");
    most
}

/// Two agents that message each other for ever end in one dead letter, while others are served.
#[tokio::test(flavor = "multi_thread")]
async fn two_agents_that_message_each_other_for_ever_end_in_one_dead_letter() {
    // Whoever answers takes its time: what comes while the other's turn is open would join that
    // turn instead of beginning another.
    let again = |to: &str, ms: u64| {
        let message = json!({ "agentId": to, "content": "go on", "mode": "async" });
        json!({ "steps": [
            { "start": [{ "key": "m", "tool": "agents_message", "args": message }] },
            { "start": [{ "key": "t", "timer": ms }] },
            { "reply": "and you?" },
        ] })
    };
    let world = World::new(with_a_bystander(|setup| {
        setup.definitions[0]["settings"] = json!({ "script": again("other", 1) });
        setup.definitions[1]["settings"] = json!({ "script": again("puppet", 500) });
    }))
    .await;
    let session = world.open("puppet").await;
    world.say("puppet", session, "begin").await;
    another_is_served(&world).await;
    world.quiet().await;
    let dead = world.broker.dead_letters().list(100).await.unwrap();
    let [letter] = dead.as_slice() else {
        panic!("{dead:?}")
    };
    assert!(
        letter.dead.reason.contains("16 times in a row") && letter.accepted.session == session,
        "{letter:?}"
    );
    let one = world
        .broker
        .dead_letters()
        .get(letter.accepted.input)
        .await
        .unwrap();
    assert_eq!(&one, letter, "it can be looked at alone");
    assert!(
        matches!(&one.accepted.source, Source::LateReply { from, hops: 17, .. } if from == "other")
    );
    let story = Story::of(&world).await;
    // Each turn of the one began with the user's words or the answer before, and sent one message,
    // which is one turn of the other.
    let hops: Vec<u32> = story.runs_of(session).map(|start| start.hops).collect();
    assert_eq!(hops, (0..=HOPS_MAX).collect::<Vec<_>>());
    let others: Vec<u32> = story
        .starts
        .iter()
        .filter(|start| start.definition.0 == "other")
        .map(|start| start.hops)
        .collect();
    assert_eq!(others, hops, "each message is one turn of the other");
    assert_eq!(
        story.starts.len(),
        2 * hops.len() + 1,
        "and that of the bystander"
    );
    let late: Vec<u32> = story.account.late.values().copied().collect();
    assert_eq!(
        late,
        (1..=HOPS_MAX + 1).collect::<Vec<_>>(),
        "and one answer, of which the last was put aside"
    );
    assert_eq!(
        (
            story.account.handed.len(),
            story.account.aside.values().sum::<u32>()
        ),
        (hops.len(), 1)
    );
    // What was refused: each time the other would have called back, and did not.
    assert_eq!(
        story.refused(),
        [
            ("callDepthMax", 17),
            ("childrenMax", 0),
            ("spawnDepthMax", 0),
            ("toolCallsMax", 0),
            ("treeDispatchesMax", 0)
        ]
        .into()
    );
    assert!(
        story.limited.iter().all(|(of, _)| *of != session),
        "and nobody else was refused anything"
    );
    let heard = world
        .messages(session)
        .await
        .into_iter()
        .filter(|message| message.role == Role::User)
        .count();
    assert_eq!(heard, hops.len(), "the user's words and sixteen answers");
}

/// Workers that go on by themselves, each of which does the same. What they reply is `reply`, also
/// when late replies join their turn.
fn bomb(to: &str, reply: &str) -> Value {
    let start: Vec<Value> = (0..CHILDREN_MAX)
        .map(|n| json!({ "key": format!("b{n}"), "agent": to, "text": "go", "detached": true }))
        .collect();
    let mut steps = vec![json!({ "until": "all", "start": start })];
    steps.extend((0..=CHILDREN_MAX).map(|_| json!({ "reply": reply })));
    json!({ "steps": steps })
}

fn bombs(reply: &str) -> Setup {
    with_a_bystander(|setup| {
        setup.definitions[0]["settings"] = json!({ "script": bomb("other", reply) });
        setup.definitions[1]["settings"] = json!({ "script": bomb("puppet", reply) });
    })
}

/// Checks the rules for every fan-out bomb, whatever it does with late replies. Each limit held,
/// and every dispatch that was asked for is one turn of a worker or one refusal in the ledger.
fn check_bomb(story: &Story, bystanders: usize) {
    assert!(
        story.most.0 <= TREE_MAX && story.most.1 <= CHILDREN_MAX,
        "{:?} at once",
        story.most
    );
    let within = |start: &RunStarted| {
        start.depth == 0 && start.spawn_depth <= SPAWNS_MAX && start.hops <= HOPS_MAX
    };
    assert!(
        story.starts.iter().all(within),
        "no deeper and no longer than they may"
    );
    let handed = story.account.handed.len();
    let refused = story.limited.len();
    let dispatched: HashSet<InputId> = story.account.handed.keys().copied().collect();
    let of_workers = story
        .starts
        .iter()
        .filter(|start| start.claimed.iter().any(|input| dispatched.contains(input)))
        .count();
    assert_eq!(of_workers, handed, "what was handed over is one turn each");
    let exploding = story.starts.len() - bystanders;
    assert!(
        handed + refused <= exploding * CHILDREN_MAX,
        "{handed} and {refused} of {exploding} turns"
    );
}

/// A fan-out bomb meets the limits of depth, breadth and number, and the ledger tells it.
#[tokio::test(flavor = "multi_thread")]
async fn a_fan_out_bomb_meets_the_limits_of_depth_breadth_and_number_in_the_ledger() {
    // A script: the agent that hears it does that, and nothing more.
    let world = World::new(bombs(
        &json!({ "steps": [{ "reply": "boom" }] }).to_string(),
    ))
    .await;
    let session = world.open("puppet").await;
    world.say("puppet", session, "begin").await;
    another_is_served(&world).await;
    world.quiet().await;
    let story = Story::of(&world).await;
    check_bomb(&story, 1);
    let refused = story.refused();
    assert!(refused["treeDispatchesMax"] > 0, "{refused:?}");
    assert_eq!(
        refused["callDepthMax"] + refused["childrenMax"],
        0,
        "nobody called, and nobody tried more than five: {refused:?}"
    );
    // Only turns that begin with work hand over more: five dispatches each, of which every one is
    // there or was refused.
    let exploded = 1 + story.account.handed.len();
    assert_eq!(
        story.account.handed.len() + story.limited.len(),
        exploded * CHILDREN_MAX
    );
    assert!(
        world
            .broker
            .dead_letters()
            .list(100)
            .await
            .unwrap()
            .is_empty(),
        "nothing of it was put aside"
    );
}

/// Turns at most of a bomb that goes off again with every late reply. Few dispatches at once come
/// to some hundred turns in as many hops; without a limit of those it would never end.
const RUNS_MAX: usize = 5_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_fan_out_bomb_that_goes_off_again_with_every_late_reply_burns_out_too() {
    // What it may use is no limit here: each dispatch has half of what is left.
    let mut setup = bombs("boom");
    setup.limits.dispatch.runs_per_message_max = u32::try_from(RUNS_MAX).unwrap();
    setup.limits.dispatch.hops_max = BOMB_HOPS_MAX;
    for definition in &mut setup.definitions {
        definition["limits"] = json!({ "toolCallsMax": u32::MAX });
    }
    let world = World::new(setup).await;
    let session = world.open("puppet").await;
    world.say("puppet", session, "begin").await;
    another_is_served(&world).await;
    world.quiet().await;
    let mut story = Story::of(&world).await;
    let mut bombs = 1;
    while story.account.aside.is_empty() && bombs < BOMBS_MAX {
        world.say("puppet", session, "begin").await;
        world.quiet().await;
        story = Story::of(&world).await;
        bombs += 1;
    }
    check_bomb(&story, 1);
    let runs = story.starts.len() - 1;
    let late = story.account.late.len();
    assert!(runs <= bombs * RUNS_MAX, "{runs} turns");
    assert_eq!(late, story.account.handed.len(), "each worker replied once");
    // A turn begins with the user's words, with work, or with late replies; several of those may
    // begin one together, or join one.
    assert!(
        runs <= bombs + story.account.handed.len() + late,
        "{runs} turns of nothing"
    );
    assert!(
        story.refused()["spawnDepthMax"] > 0,
        "and as deep: {:?}",
        story.refused()
    );
    // It goes on for as long as it may: its last answers are put aside, and nothing else is.
    let dead = world.broker.dead_letters().list(1_000).await.unwrap();
    assert!(!dead.is_empty() && dead.len() == story.account.aside.len());
    for letter in &dead {
        assert_eq!(
            letter.accepted.source.hops(),
            BOMB_HOPS_MAX + 1,
            "{letter:?}"
        );
        assert!(letter.dead.reason.contains("(hopsMax)"), "{letter:?}");
    }
}
