//! The buckets of tools: written with the result of the call or not at all, seen by those that they
//! are for, and never held by two calls at once.

mod crash;

use agent_host_tests::guests::test_program;
use agent_host_tests::process::puppet;
use agent_host_tests::{Setup, World};
use broker::PostMessage;
use domain::event::{BoundaryDecision, BoundaryVerdict};
use domain::grant::{Access, BucketGrant, BucketPlace, BucketScope, GuestLimits};
use domain::id::SessionId;
use domain::message::Part;
use serde_json::{Value, json};
use std::time::Duration;

fn bucket(scope: BucketScope) -> BucketGrant {
    BucketGrant {
        scope,
        ..BucketGrant::new("notes", Access::ReadWrite)
    }
}

fn setup(key_value: Vec<BucketGrant>) -> Setup {
    let definitions = ["puppet", "other"]
        .map(|id| json!({ "agentId": id, "displayName": id, "component": "puppet" }))
        .to_vec();
    Setup {
        components: vec!["puppet", "shelf"],
        definitions,
        key_value,
        ..Setup::default()
    }
}

/// A host whose puppet has a tool that keeps notes in this scope.
pub(super) fn shelved(scope: &str) -> Value {
    json!({
        "agents": [puppet()],
        "components": {
            "puppet": { "path": test_program("puppet") },
            "shelf": {
                "path": test_program("shelf"),
                "keyValue": [{ "bucket": "notes", "scope": scope, "access": "read-write" }],
            },
        },
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "m": { "provider": "scripted", "model": "m" } },
    })
}

/// Returns the bucket that all calls of `shelf` share.
fn shared(bucket: &str) -> BucketPlace {
    BucketPlace {
        component: "shelf".into(),
        bucket: bucket.into(),
        scope: BucketScope::Component,
        of: String::new(),
    }
}

/// The script of a turn with one call.
fn script(tool: &str, args: &Value) -> String {
    json!({ "steps": [{ "start": [{ "key": "t", "tool": tool, "args": args }] }] }).to_string()
}

/// Makes a call in a session and returns its result, one line.
async fn call_in(
    world: &World,
    user: &str,
    definition: &str,
    session: SessionId,
    tool: &str,
    args: &Value,
) -> String {
    let content = vec![Part::text(script(tool, args))];
    let message = PostMessage {
        user: user.parse().unwrap(),
        content,
        ..world.message(definition, session, "", None)
    };
    world.broker.messages().post(message).await.unwrap();
    world.idle(session).await;
    world.last_reply(session).await
}

/// The same in a session of its own.
async fn call(world: &World, tool: &str, args: Value) -> String {
    let session = world.open("puppet").await;
    call_in(world, "local", "puppet", session, tool, &args).await
}

async fn keep(world: &World, operations: Value) -> String {
    call(world, "keep", json!({ "do": operations })).await
}

/// The decisions on record about buckets, of all calls.
async fn decisions(world: &World) -> Vec<BoundaryDecision> {
    let decided = world.ledger().await.into_iter();
    decided
        .flat_map(|entry| entry.decisions)
        .filter(|decision| {
            decision.capability.starts_with("notes.") || decision.capability.starts_with("other.")
        })
        .collect()
}

async fn verified(world: &World) {
    assert_eq!(world.store().verify().await.unwrap().fault, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_read_by_the_next_call_and_after_a_restart() {
    let world = World::new(setup(vec![bucket(BucketScope::Agent)])).await;
    let received = keep(
        &world,
        json!([
            ["set", "a", "1"],
            ["set", "b", "0xff00"],
            ["set", "c", ""],
            ["get", "b"],
            ["delete", "c"],
            ["keys"]
        ]),
    )
    .await;
    assert_eq!(received, "t parts ok | ok | ok | 0xff00 | ok | a,b");
    let read = json!([
        ["get", "a"],
        ["get", "b"],
        ["get", "c"],
        ["exists", "a"],
        ["exists", "c"],
        ["get-many", ["b", "x", "a"]]
    ]);
    let expected = "t parts 1 | 0xff00 | - | true | false | b=0xff00,-,a=1";
    assert_eq!(keep(&world, read.clone()).await, expected);
    let world = world.restart(|_| ()).await;
    assert_eq!(keep(&world, read.clone()).await, expected);
    verified(&world).await;
    world.store().rebuild().await.unwrap();
    assert_eq!(keep(&world, read).await, expected, "what the events say");
    let decisions = decisions(&world).await;
    assert!(
        decisions
            .iter()
            .all(|decision| decision.verdict == BoundaryVerdict::Granted),
        "{decisions:?}"
    );
    let first: Vec<_> = decisions[..2]
        .iter()
        .map(|it| (it.capability.as_str(), it.times, it.detail.as_str()))
        .collect();
    assert_eq!(
        first,
        [
            ("notes.write", 4, "wasi:keyvalue/store.set `notes`"),
            ("notes.read", 2, "wasi:keyvalue/store.get `notes`")
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_does_not_come_to_a_result_has_written_nothing() {
    // A busy machine gives a guest that computes its share of the wall time alone.
    let limits = GuestLimits {
        cpu_ms_max: 20,
        wall_ms_max: 2_000,
        ..GuestLimits::default()
    };
    let world = World::new(Setup {
        guest_limits: limits,
        ..setup(vec![bucket(BucketScope::Component)])
    })
    .await;
    keep(&world, json!([["set", "a", "before"]])).await;
    let write = json!([["set", "a", "after"], ["set", "b", "new"]]);
    for (tool, then, begins) in [
        ("keep", "trap", "t failed trapped"),
        ("keep", "fail", "t failed tool-failed"),
        ("keep", "spin", "t failed out-of-cpu"),
        ("keep", "sleep", "t timed-out"),
        ("once", "trap", "t unknown"),
        (
            "promise",
            "",
            "t failed tool-failed: the result does not fit",
        ),
    ] {
        let received = call(&world, tool, json!({ "do": write, "then": then })).await;
        assert!(received.starts_with(begins), "{tool} {then}: {received}");
    }
    assert_eq!(
        keep(&world, json!([["get", "a"], ["get", "b"]])).await,
        "t parts before | -"
    );
    verified(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_that_is_continued_commits_what_it_wrote_with_its_continuation() {
    let world = World::new(setup(vec![bucket(BucketScope::Component)])).await;
    let later = json!({ "do": [["add", "n", 1]], "then": "later", "resumed": [["add", "n", 10]] });
    assert_eq!(call(&world, "keep", later).await, "t parts 11");
    let session = world.open("puppet").await;
    let asks = json!({ "do": [["add", "n", 100]], "then": "ask", "resumed": [["get", "n"]] });
    world.say("puppet", session, &script("keep", &asks)).await;
    let (question, _) = world.question("puppet", session).await;
    assert_eq!(
        keep(&world, json!([["get", "n"], ["add", "n", 1_000]])).await,
        "t parts 111 | 1111",
        "nobody is kept waiting meanwhile"
    );
    world.answer("puppet", question, json!(true)).await.unwrap();
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "t parts 1111");
    verified(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_do_not_see_each_other() {
    for (scope, expected) in [
        (BucketScope::Component, ["set", "set", "set", "set"]),
        (BucketScope::User, ["set", "set", "set", "-"]),
        (BucketScope::Agent, ["set", "set", "-", "-"]),
        (BucketScope::Session, ["set", "-", "-", "-"]),
    ] {
        let world = World::new(setup(vec![bucket(scope)])).await;
        let own = world.open_for(&"ada".parse().unwrap(), "puppet").await;
        call_in(
            &world,
            "ada",
            "puppet",
            own,
            "keep",
            &json!({ "do": [["set", "k", "set"]] }),
        )
        .await;
        let mut seen = Vec::new();
        for (user, definition, session) in [
            ("ada", "puppet", own),
            (
                "ada",
                "puppet",
                world.open_for(&"ada".parse().unwrap(), "puppet").await,
            ),
            (
                "ada",
                "other",
                world.open_for(&"ada".parse().unwrap(), "other").await,
            ),
            (
                "grace",
                "puppet",
                world.open_for(&"grace".parse().unwrap(), "puppet").await,
            ),
        ] {
            let received = call_in(
                &world,
                user,
                definition,
                session,
                "peek",
                &json!({ "do": [["get", "k"]] }),
            )
            .await;
            seen.push(received.trim_start_matches("t parts ").to_owned());
        }
        assert_eq!(
            seen, expected,
            "{scope:?}: the session, another one, another agent, another user"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn components_do_not_see_each_others_buckets_and_find_their_own_again() {
    let world = World::new(setup(vec![bucket(BucketScope::Component)])).await;
    keep(&world, json!([["set", "k", "mine"]])).await;
    let world = world
        .restart(|setup| setup.components = vec!["puppet", "drawer=shelf"])
        .await;
    assert_eq!(
        keep(&world, json!([["get", "k"], ["set", "k", "yours"]])).await,
        "t parts - | ok"
    );
    let world = world
        .restart(|setup| setup.components = vec!["puppet", "shelf"])
        .await;
    assert_eq!(keep(&world, json!([["get", "k"]])).await, "t parts mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_granted_or_only_for_reading_is_refused_and_on_record() {
    let world = World::new(setup(vec![bucket(BucketScope::Agent)])).await;
    let write = json!([
        ["set", "a", "1"], ["delete", "a"], ["add", "a", 1], ["set-many", { "a": "1" }],
        ["delete-many", ["a"]], ["get", "a"],
    ]);
    let denied = ["no: access-denied"; 5].join(" | ");
    assert_eq!(
        call(&world, "peek", json!({ "do": write })).await,
        format!("t parts {denied} | -"),
        "a tool that only reads"
    );
    assert_eq!(
        call(&world, "keep", json!({ "bucket": "other" })).await,
        "t parts no: access-denied"
    );
    let world = world
        .restart(|setup| setup.key_value = vec![BucketGrant::new("notes", Access::ReadOnly)])
        .await;
    assert_eq!(
        keep(&world, write).await,
        format!("t parts {denied} | -"),
        "a grant that only reads"
    );
    let refused: Vec<_> = decisions(&world)
        .await
        .into_iter()
        .filter(|it| it.verdict == BoundaryVerdict::Refused)
        .map(|it| (it.capability, it.rule.as_str(), it.times))
        .collect();
    let expected = [
        ("notes.write", "readOnly", 5),
        ("other.read", "notGranted", 1),
        ("notes.write", "notGranted", 5),
    ];
    assert_eq!(
        refused,
        expected.map(|(capability, rule, times)| (capability.to_owned(), rule, times))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_holds_what_its_grant_says_and_no_more() {
    let small = BucketGrant {
        bytes_max: 100,
        keys_max: 3,
        ..bucket(BucketScope::Agent)
    };
    let world = World::new(setup(vec![small])).await;
    let received = keep(
        &world,
        json!([
            ["many", "k", 3],
            ["set", "more", "x"],
            ["fill", "k000000", 90],
            ["delete", "k000001"],
            ["set", "more", "x"]
        ]),
    );
    let keys = "no: quota: the bucket holds at most 3 keys (keysMax)";
    let bytes = "no: quota: the bucket holds at most 100 bytes, keys included (bytesMax)";
    assert_eq!(
        received.await,
        format!("t parts ok | {keys} | {bytes} | ok | ok")
    );
    assert_eq!(
        keep(
            &world,
            json!([
                ["set", "again", "x"],
                ["fill", "more", 79],
                ["fill", "more", 81]
            ])
        )
        .await,
        format!("t parts {keys} | ok | {bytes}")
    );
    let limited: Vec<_> = decisions(&world)
        .await
        .into_iter()
        .filter(|it| it.verdict == BoundaryVerdict::Limited)
        .map(|it| (it.detail, it.times))
        .collect();
    let detail = "keysMax: wasi:keyvalue/store.set `notes`".to_owned();
    assert_eq!(
        limited,
        [(detail.clone(), 2), (detail, 2)],
        "the first limit that was met, and how many"
    );
    verified(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_increments_at_the_same_time_are_sixty_four() {
    let world = World::new(setup(vec![bucket(BucketScope::Component)])).await;
    let one = |session| {
        let world = &world;
        let args = json!({ "do": [["add", "n", 1], ["read-add", "m"]] });
        async move { call_in(world, "local", "puppet", session, "keep", &args).await }
    };
    let mut sessions = Vec::new();
    for _ in 0..64 {
        sessions.push(world.open("puppet").await);
    }
    let received = futures::future::join_all(sessions.into_iter().map(one)).await;
    let mut sums: Vec<u32> = received
        .iter()
        .map(|received| received.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    sums.sort_unstable();
    assert_eq!(
        sums,
        (1..=64).collect::<Vec<u32>>(),
        "what is read and then written is as safe"
    );
    assert_eq!(
        keep(&world, json!([["get", "n"], ["get", "m"]])).await,
        "t parts 64 | 64"
    );
    verified(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_turn_wait_for_each_other_and_not_for_ever() {
    let both = ["notes", "other"].map(|name| BucketGrant {
        scope: BucketScope::Component,
        ..BucketGrant::new(name, Access::ReadWrite)
    });
    let limits = GuestLimits {
        wall_ms_max: 1_500,
        ..GuestLimits::default()
    };
    let world = World::new(Setup {
        guest_limits: limits,
        ..setup(both.to_vec())
    })
    .await;
    let add =
        |key: &str| json!({ "key": key, "tool": "keep", "args": { "do": [["add", "n", 1]] } });
    let reported = world
        .play(json!([{ "until": "all", "start": [add("a"), add("b"), add("c")] }]))
        .await;
    assert_eq!(reported.len(), 3, "{reported:?}");
    assert_eq!(
        world
            .store()
            .bucket_value(&shared("notes"), "n")
            .await
            .unwrap()
            .as_deref(),
        Some(&b"3"[..])
    );

    // Each holds what the other wants.
    let crossed = |key: &str, first: &str, second: &str| {
        let operations = json!([
            ["add", "n", 1],
            ["sleep", 300],
            ["in", second, ["add", "n", 1]]
        ]);
        json!({ "key": key, "tool": "keep", "args": { "bucket": first, "do": operations } })
    };
    let reported = world.play(json!([{
        "until": "all", "start": [crossed("x", "notes", "other"), crossed("y", "other", "notes")],
    }])).await;
    let given_up = reported
        .iter()
        .filter(|line| line.ends_with("timed-out"))
        .count();
    let done = reported
        .iter()
        .filter(|line| line.contains(" parts "))
        .count();
    assert!(given_up >= 1 && given_up + done == 2, "{reported:?}");
    let value = async |place| {
        world
            .store()
            .bucket_value(&place, "n")
            .await
            .unwrap()
            .map(|value| String::from_utf8(value).unwrap())
    };
    let sums = (value(shared("notes")).await, value(shared("other")).await);
    let expected = if done == 1 {
        ("4", Some("1"))
    } else {
        ("3", None)
    };
    assert_eq!(
        sums,
        (Some(expected.0.to_owned()), expected.1.map(str::to_owned)),
        "{reported:?}"
    );
    assert_eq!(
        keep(&world, json!([["add", "n", 1]]))
            .await
            .trim_start_matches("t parts "),
        (expected.0.parse::<u32>().unwrap() + 1).to_string()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_is_dropped_lets_its_buckets_go() {
    let world = World::new(setup(vec![bucket(BucketScope::Component)])).await;
    let session = world.open("puppet").await;
    let long = json!({ "do": [["add", "n", 1]], "then": "sleep" });
    world.say("puppet", session, &script("keep", &long)).await;
    world.until(session, |row| row.open_run.is_some()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.cancel("puppet", session).await;
    world.idle(session).await;
    assert_eq!(keep(&world, json!([["add", "n", 1]])).await, "t parts 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_keys_come_in_order_and_survive_what_is_deleted_on_the_way() {
    let world = World::new(setup(vec![bucket(BucketScope::Agent)])).await;
    let received = keep(&world, json!([["many", "k", 2_300], ["walk"]])).await;
    assert_eq!(received, "t parts ok | 2300 in 3 true k000000 k002299");
    let received = keep(
        &world,
        json!([
            ["walk"],
            ["set", "k000500x", ""],
            ["walk"],
            ["keys", 77],
            ["walk", "delete"],
            ["exists", "k000000"]
        ]),
    )
    .await;
    assert_eq!(
        received,
        "t parts 2300 in 3 true k000000 k002299 | ok | 2301 in 3 true k000000 k002299 | \
         no: there is no page of this cursor: a cursor is good for the call that got it | 2301 in \
         3 true k000000 k002299 | false"
    );
    assert_eq!(
        keep(&world, json!([["walk"], ["exists", "k000000"]])).await,
        "t parts 0 in 1 true   | false"
    );
    verified(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_tools_keep_adds_no_commit_to_a_turn() {
    let world = World::new(setup(vec![bucket(BucketScope::Agent)])).await;
    for (tool, args, extra) in [
        ("keep", json!({ "do": [["get", "a"]] }), 1),
        (
            "keep",
            json!({ "do": [["set", "a", "1"], ["in", "notes", ["add", "n", 1]]] }),
            1,
        ),
        ("once", json!({ "do": [["set", "a", "2"]] }), 2),
        (
            "keep",
            json!({ "do": [["set", "a", "1"]], "then": "later", "resumed": [["set", "a", "3"]] }),
            2,
        ),
    ] {
        let session = world.open("puppet").await;
        let before = world.store().stats();
        call_in(&world, "local", "puppet", session, tool, &args).await;
        let after = world.store().stats();
        assert_eq!(
            after.commits - before.commits,
            2 + extra,
            "{tool} {args}: as without buckets"
        );
    }
}
