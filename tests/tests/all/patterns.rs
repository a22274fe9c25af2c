//! The ways in which agents work together, and what each leaves behind: workers that stay, nests of
//! them, work that its user does not see. All of it begins with something that was accepted.

use agent_host_tests::process::{script, tells};
use agent_host_tests::{Setup, World};
use broker::By;
use broker::{Fork, PostMessage, Target};
use domain::event::{AgentCreated, Event, Source};
use domain::id::{InputId, SessionId};
use domain::message::Role;
use domain::user::UserId;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn dispatch(key: &str, content: &str, wait: bool) -> Value {
    json!({
        "key": key, "tool": "dispatch_to_agent",
        "args": { "target": "other", "content": content, "wait": wait },
    })
}

/// The agents that were made for others, in order.
async fn workers(world: &World) -> Vec<AgentCreated> {
    let created = world
        .recorded()
        .await
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Some(Event::AgentCreated(created)) if created.parent.is_some() => Some(created),
            _ => None,
        });
    created.collect()
}

/// A worker that was made for one piece of work stays. It can be read, spoken to and forked after a
/// restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_made_for_one_piece_of_work_stays_of_use_after_a_restart() {
    let world = World::new(Setup::default()).await;
    let made = script(&json!([{ "start": [{ "key": "t", "timer": 1 }] }, { "reply": "made" }]));
    world
        .play(json!([{ "start": [dispatch("w", &made, true)] }]))
        .await;
    let world = world.restart(|_| ()).await;
    let [worker] = workers(&world).await.try_into().unwrap();
    assert_eq!(worker.path.as_str(), "/local/agent/puppet/sub/0");
    let me = UserId::local();
    let by_path = Target::Path(worker.path.to_string());
    let found = world.broker.agents().get(&me, &by_path).await.unwrap();
    assert!(
        found.row.active && found.row.agent.id == worker.agent,
        "it is there, and not archived with its work"
    );
    let session = world
        .starts()
        .await
        .into_iter()
        .find(|start| start.agent == worker.agent)
        .unwrap()
        .session;
    let view = world
        .broker
        .sessions()
        .get(&me, &by_path, session, None)
        .await
        .unwrap();
    let said: Vec<(Role, String)> = view
        .messages
        .iter()
        .map(|message| (message.role, message.text()))
        .collect();
    assert_eq!(
        said,
        [(Role::User, made), (Role::Assistant, "made".to_owned())],
        "what it was told, and what it made of it"
    );
    // A further message goes to it directly, and it goes on where it was.
    let more = script(&json!([{ "reply": "and more" }]));
    let fork = Fork {
        turn: None,
        message: None,
        name: None,
        model: None,
    };
    let forked = world
        .broker
        .transcripts()
        .fork(By::from(&me), &by_path, session, fork)
        .await
        .unwrap()
        .row;
    let message = PostMessage {
        target: by_path,
        ..world.message("other", session, &more, None)
    };
    world.broker.messages().post(message).await.unwrap();
    let row = world.idle(session).await;
    assert_eq!(
        (row.revision, world.last_reply(session).await.as_str()),
        (2, "and more")
    );
    assert_eq!(
        (forked.agent, world.last_reply(forked.id).await.as_str()),
        (worker.agent, "made"),
        "a fork stays where it was made"
    );
    // The next one is another, and leaves this one as it is.
    world
        .play(json!([{ "start": [dispatch("w", &script(&json!([{ "reply": "again" }])), true)] }]))
        .await;
    let paths: Vec<String> = workers(&world)
        .await
        .into_iter()
        .map(|worker| worker.path.into())
        .collect();
    assert_eq!(
        paths,
        ["/local/agent/puppet/sub/0", "/local/agent/puppet/sub/1"]
    );
    assert_eq!(world.row(session).await.revision, 2);
}

/// Workers spawn workers three deep and no deeper, and every run and every path says how deep.
#[tokio::test(flavor = "multi_thread")]
async fn workers_spawn_workers_three_deep_and_every_run_and_path_says_how_deep() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let below = |content: &str| script(&json!([{ "start": [dispatch("d", content, false)] }]));
    let fourth = script(&json!([{ "reply": "too deep" }]));
    world
        .say("puppet", session, &below(&below(&below(&below(&fourth)))))
        .await;
    world.quiet().await;
    let starts = world.starts().await;
    let mut of_work: Vec<(u32, u32)> = starts
        .iter()
        .filter(|start| start.reply_to.is_some() || start.spawn_depth == 0)
        .map(|start| (start.depth, start.spawn_depth))
        .collect();
    of_work.sort_unstable();
    of_work.dedup();
    assert_eq!(of_work, [(0, 0), (0, 1), (0, 2), (0, 3)]);
    let paths: Vec<String> = workers(&world)
        .await
        .into_iter()
        .map(|worker| worker.path.into())
        .collect();
    let expected = ["/sub/0", "/sub/0/sub/0", "/sub/0/sub/0/sub/0"]
        .map(|below| format!("/local/agent/puppet{below}"));
    assert_eq!(paths, expected);
    // The third gets the reason why there is no fourth, and goes on without it.
    let deepest = starts.iter().find(|start| start.spawn_depth == 3).unwrap();
    let reported = world.messages(deepest.session).await.last().unwrap().text();
    assert_eq!(
        reported,
        "d failed limit-reached: workers may spawn workers 3 deep and no deeper (spawnDepthMax)"
    );
    assert!(
        starts
            .iter()
            .all(|start| start.spawn_depth <= 3 && start.depth == 0),
        "and a late reply makes nobody deeper"
    );
}

/// All that begins or joins a turn was accepted before in its session, whoever it came from.
#[tokio::test(flavor = "multi_thread")]
async fn all_that_begins_or_joins_a_turn_was_accepted_before_whoever_it_came_from() {
    let mut setup = Setup::default();
    let opening = json!({
        "agentId": "lesson", "displayName": "Lesson", "component": "puppet",
        "settings": { "script": { "steps": [{ "complete": {} }] } },
    });
    setup.definitions.push(opening);
    let world = World::new(setup).await;
    let lesson = world.open_as("lesson", Some("lesson")).await;
    let session = world.open("puppet").await;
    let reply = script(&json!([{ "reply": "heard" }]));
    let message = json!({
        "key": "m", "tool": "agents_message",
        "args": { "agentId": "other", "content": reply, "mode": "async" },
    });
    let steps = json!([{
        "effects": [{ "schedule": 30 }], "until": "all",
        "start": [message, dispatch("w", &reply, true), dispatch("d", &reply, false)],
    }]);
    world.play_in(session, &steps).await;
    world.quiet().await;
    // One message joins the turn that another one began.
    let joined = world.open("puppet").await;
    let waits = script(&json!([{ "start": [{ "key": "t", "timer": 1_000 }] }]));
    world.say("puppet", joined, &waits).await;
    world.until(joined, |row| row.open_run.is_some()).await;
    world.say("puppet", joined, "and this").await;
    world.quiet().await;
    // What was put aside and is requeued was accepted once.
    world
        .play_in(session, &json!([{ "trap": "on purpose" }]))
        .await;
    world.quiet().await;
    let dead = world.broker.dead_letters().list(10).await.unwrap();
    let [letter] = dead.as_slice() else {
        panic!("{dead:?}")
    };
    world
        .broker
        .dead_letters()
        .requeue(By::from(&UserId::local()), letter.accepted.input, None)
        .await
        .unwrap();
    world.quiet().await;
    let world = world.restart(|_| ()).await;
    let mut accepted: BTreeMap<InputId, (SessionId, &'static str)> = BTreeMap::new();
    let mut kinds = BTreeSet::new();
    let mut runs = 0;
    let mut joins = 0;
    for recorded in world.recorded().await {
        let (of, claimed) = match recorded.event {
            Some(Event::InputAccepted(it)) => {
                let kind = match it.source {
                    Source::Api => "api",
                    Source::Trigger { .. } => "trigger",
                    Source::Connector { .. } => "connector",
                    Source::Opening => "opening",
                    Source::Dispatch { .. } => "dispatch",
                    Source::LateReply { .. } => "late reply",
                    Source::Reminder { .. } => "reminder",
                };
                assert!(
                    accepted.insert(it.input, (it.session, kind)).is_none(),
                    "an input was accepted twice"
                );
                continue;
            }
            Some(Event::RunStarted(it)) => {
                assert!(!it.claimed.is_empty(), "a turn of nothing");
                let first_step = it.first_step.iter();
                assert!(first_step.flat_map(|step| &step.claimed).next().is_none());
                runs += 1;
                (it.session, it.claimed)
            }
            Some(Event::RunStepped(it)) => {
                let session = recorded.subject.session.unwrap();
                joins += usize::from(session == joined && !it.claimed.is_empty());
                (session, it.claimed)
            }
            _ => continue,
        };
        for input in claimed {
            let (session, kind) = accepted
                .get(&input)
                .copied()
                .unwrap_or_else(|| panic!("{input} was never accepted"));
            assert_eq!(session, of, "it was accepted in another session");
            kinds.insert(kind);
        }
    }
    assert_eq!(
        kinds,
        BTreeSet::from(["api", "dispatch", "late reply", "opening", "reminder"])
    );
    assert_eq!(joins, 1, "a message joined a turn, and was accepted before");
    // The user's words twice and once more, the opening, and three pieces of work; answers and
    // reminders may join one of these.
    assert!(
        runs >= 7 && world.row(lesson).await.revision == 1,
        "{runs} turns"
    );
}

/// Work that is waited for is one turn, out of the user's sight and on record with whoever did it.
#[tokio::test(flavor = "multi_thread")]
async fn awaited_work_is_one_turn_out_of_the_users_sight_and_on_record_with_its_doer() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let work = script(&json!([
        { "effects": [{ "say": "between ourselves" }], "start": [{ "key": "put", "tool": "put" }] },
        { "effects": [{ "say": "still between ourselves" }], "reply": "the result" },
    ]));
    let message = json!({
        "key": "m", "tool": "agents_message", "args": { "agentId": "other", "content": work },
    });
    world
        .played(
            session,
            &json!([{ "until": "all", "start": [message, dispatch("w", &work, true)] }]),
        )
        .await;
    let own = world.messages(session).await;
    let replies: Vec<String> = own
        .iter()
        .filter(|message| message.role == Role::Assistant)
        .map(|message| message.text())
        .collect();
    let [reply] = replies.as_slice() else {
        panic!("{replies:?}")
    };
    tells(reply, &["w parts the result", r#""response":"the result""#]);
    let reported: String = own
        .iter()
        .filter(|message| message.role != Role::User)
        .map(|message| message.text())
        .collect();
    assert!(
        !reported.contains("between ourselves"),
        "its user sees none of it: {reported}"
    );
    let starts = world.starts().await;
    let others: Vec<SessionId> = starts
        .iter()
        .map(|start| start.session)
        .filter(|of| *of != session)
        .collect();
    assert_eq!(
        others.len(),
        2,
        "one turn each, of another agent and of a worker"
    );
    let events = world.recorded().await;
    let ended = |of: SessionId| {
        events
            .iter()
            .position(|it| matches!(&it.event, Some(Event::RunEnded(it)) if it.session == of))
            .unwrap()
    };
    for other in others {
        assert!(
            ended(other) < ended(session),
            "whoever handed it over waited for it"
        );
        let history: Vec<(Role, String)> = world
            .messages(other)
            .await
            .iter()
            .map(|message| (message.role, message.text()))
            .collect();
        assert_eq!(
            history.first(),
            Some(&(Role::User, work.clone())),
            "it was told what to do as a user tells it"
        );
        let texts: String = history.into_iter().map(|(_, text)| text + "\n").collect();
        assert!(
            texts.contains("\nbetween ourselves\n")
                && texts.ends_with("still between ourselves\nthe result\n"),
            "{texts}"
        );
        assert_eq!(world.row(other).await.revision, 1);
    }
    // Neither work was begun in the user's session, nor is it asked for there.
    let view = world.view("puppet", session).await;
    assert!(view.asking.is_empty());
    assert_eq!(world.row(session).await.revision, 1);
}
