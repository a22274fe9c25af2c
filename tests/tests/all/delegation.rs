//! Delegations as a model sees them: results of every kind, through a model that calls `delegate`.

use agent_host_tests::process::{shows, tells};
use agent_host_tests::world::target;
use agent_host_tests::{Setup, World};
use broker::{By, PostMessage, PurgeOf, UploadFile};
use domain::delegate::{CacheLimits, Priority};
use domain::digest::Digest;
use domain::event::Event;
use domain::id::RunId;
use domain::message::{Part, Role};
use domain::user::UserId;
use serde_json::{Value, json};

/// Arguments of a call that reads a file.
const READ: &str = r#"{ target = "worker", operation = "read_file", parameters = { path = "a" } }"#;

/// A model that calls `delegate` with these arguments at any words, and then repeats the result.
fn calling(arguments: &str) -> String {
    format!(
        r#"
[[rule]]
when = {{ last = "tool" }}
reply = {{ text = "It says: {{result}}" }}

[[rule]]
[rule.reply]
text = "Let me look."
[[rule.reply.calls]]
tool = "delegate"
arguments = {arguments}
"#
    )
}

/// Returns the result that the model was given for a call with these arguments.
async fn reported(setup: Setup, arguments: &str) -> Value {
    let world = World::new(Setup {
        script: calling(arguments),
        ..setup
    })
    .await;
    let session = world.open("assistant").await;
    let reply = world.turn("assistant", session, "go").await;
    let result = reply.strip_prefix("It says: ").unwrap_or(&reply);
    serde_json::from_str(result).unwrap_or_else(|error| panic!("{error}: {reply}"))
}

fn with(change: impl FnOnce(&mut Setup)) -> Setup {
    let mut setup = Setup::default();
    change(&mut setup);
    setup
}

/// Checks a result without a task: its code, and whether the same call may succeed later.
fn check_refused(result: &Value, code: &str, retryable: bool) {
    let error = &result["error"];
    assert_eq!(
        (&result["success"], &error["code"], &error["retryable"]),
        (&json!(false), &json!(code), &json!(retryable)),
        "{result}"
    );
    assert!(error["message"].is_string(), "{result}");
    assert!(result.get("taskId").is_none(), "{result}");
    assert!(result["metadata"].is_object(), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_that_is_refused_reaches_the_model_as_a_result() {
    // The worker here has tools for files alone.
    let operations = [
        "read_file",
        "write_file",
        "delete_file",
        "list_files",
        "search_files",
    ];
    let reads = json!({ "target": "worker", "operation": "read_file" });
    for (arguments, code, details, metadata) in [
        (
            r#"{ target = "nobody", operation = "read_file", parameters = { path = "a" } }"#,
            "INVALID_TARGET",
            json!({ "allowed": ["worker"] }),
            json!({ "operation": "read_file" }),
        ),
        (
            r#"{ target = "coder", operation = "analyze_code", parameters = {} }"#,
            "AGENT_UNAVAILABLE",
            json!({ "agent": "coder", "allowed": ["worker"] }),
            json!({ "target": "coder", "operation": "analyze_code" }),
        ),
        (
            r#"{ target = "worker", operation = "fly", parameters = {} }"#,
            "INVALID_OPERATION",
            json!({ "allowed": operations }),
            json!({ "target": "worker" }),
        ),
        (
            r#"{ target = "worker", operation = "read_file", parameters = {} }"#,
            "INVALID_PARAMETERS",
            json!({ "parameter": "path" }),
            reads.clone(),
        ),
    ] {
        let result = reported(Setup::default(), arguments).await;
        check_refused(&result, code, false);
        assert_eq!(result["error"]["details"], details, "{result}");
        assert_eq!(result["metadata"], metadata, "{result}");
    }
    let denied = with(|setup| setup.definitions[2]["agentDenylist"] = json!(["worker"]));
    let result = reported(denied, READ).await;
    check_refused(&result, "NOT_ALLOWED", false);
    assert_eq!(result["metadata"], reads, "{result}");
    let too_deep = with(|setup| setup.limits.dispatch.call_depth_max = 0);
    let result = reported(too_deep, READ).await;
    check_refused(&result, "LIMIT_REACHED", false);
    let details = json!({ "limit": "callDepthMax", "max": 0 });
    assert_eq!(result["error"]["details"], details, "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_that_ends_without_a_result_reaches_the_model_as_one() {
    let never = json!({ "steps": [{ "start": [{ "key": "t", "timer": 3_600_000 }] }] });
    let late = with(|setup| {
        setup.definitions[3]["component"] = json!("puppet");
        setup.definitions[3]["settings"] = json!({ "script": never });
    });
    let soon = r#"{ target = "worker", operation = "read_file", parameters = { path = "a" }, timeout = 100 }"#;
    for (setup, arguments, code, state) in [
        (Setup::default(), READ, "TASK_FAILED", "FAILED"),
        (late, soon, "TASK_TIMEOUT", "TIMEOUT"),
    ] {
        let result = reported(setup, arguments).await;
        shows(
            &result,
            &json!({ "success": false, "error/code": code, "taskState": state }),
        );
        assert_eq!(result["error"]["retryable"], false, "{result}");
        assert!(result["taskId"].is_string(), "{result}");
        assert_eq!(result["metadata"]["operation"], "read_file", "{result}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_that_takes_too_long_times_out_and_its_turn_is_ended() {
    let hour = json!([{ "start": [{ "key": "t", "timer": 3_600_000 }] }]);
    let world = World::new(worker_that(&hour)).await;
    let steps = json!([{ "start": [delegate("d", &json!({ "timeout": 150 }))] }]);
    let reported = world.play(steps).await.join("\n");
    tells(&reported, &[r#""code":"TASK_TIMEOUT""#]);
    let runs = world.runs().await;
    let task = world.store().run(runs[1]).await.unwrap().unwrap();
    world
        .until(task.session, |row| row.open_run.is_none())
        .await;
}

/// A call of `delegate` by the agent itself, with more arguments.
fn delegate(key: &str, more: &Value) -> Value {
    let mut arguments = json!({
        "target": "worker", "operation": "list_files", "parameters": { "path": "/data" },
    });
    let more = more.as_object().unwrap().clone();
    arguments.as_object_mut().unwrap().extend(more);
    json!({ "key": key, "tool": "delegate", "args": arguments })
}

/// The task's own time would be over long before that of the approval.
#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_that_nobody_approves_in_time_says_so_and_is_no_timeout() {
    let world = World::new(with(|setup| {
        setup.definitions[3]["confirm"] = json!("destructive");
        setup.limits.approval_ms = 5_000;
    }))
    .await;
    let deletes = json!({
        "operation": "delete_file", "parameters": { "path": "/data/a.txt" }, "timeout": 2_500,
    });
    let steps = json!([{ "start": [delegate("d", &deletes)] }]);
    let reported = world.play(steps).await.join("\n");
    tells(&reported, &["approval-expired"]);
    assert!(!reported.contains("TASK_TIMEOUT"), "{reported}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_told_that_a_call_which_keeps_failing_was_not_made_again() {
    let script = r#"
[[rule]]
when = { resultContains = "was not made again" }
reply = { text = "It says: {result}" }

[[rule]]
reply = { calls = [{ tool = "read_file", arguments = { path = "/data/none.txt" } }] }
"#;
    let world = World::new(with(|setup| {
        setup.definitions[2]["toolAllowlist"] = json!(["read_file"]);
        setup.script = script.to_owned();
    }))
    .await;
    let session = world.open("assistant").await;
    let reply = world.turn("assistant", session, "go").await;
    tells(&reply, &["was not made again"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_own_delegation_that_is_refused_reaches_it_as_a_result() {
    let denied = with(|setup| setup.definitions[0]["agentDenylist"] = json!(["worker"]));
    for (setup, more, code) in [
        (
            Setup::default(),
            json!({ "target": "nobody" }),
            "INVALID_TARGET",
        ),
        (
            Setup::default(),
            json!({ "parameters": {} }),
            "INVALID_PARAMETERS",
        ),
        (denied, json!({}), "NOT_ALLOWED"),
    ] {
        let world = World::new(setup).await;
        let steps = json!([{ "start": [delegate("d", &more)] }]);
        let reported = world.play(steps).await.join("\n");
        let reported = reported.strip_prefix("d parts ").unwrap_or(&reported);
        let result =
            serde_json::from_str(reported).unwrap_or_else(|error| panic!("{error}: {reported}"));
        check_refused(&result, code, false);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delegations_beyond_the_limit_wait_and_are_done_by_urgency_and_order() {
    for of_tree in [false, true] {
        let world = World::new(with(|setup| {
            let limits = &mut setup.limits.dispatch;
            if of_tree {
                limits.tree_dispatches_max = 1;
            } else {
                limits.children_max = 1;
            }
        }))
        .await;
        let calls = [
            delegate("a", &json!({})),
            delegate("b", &json!({ "priority": 1 })),
            delegate("c", &json!({ "priority": 3 })),
            delegate("d", &json!({ "priority": 4 })),
            delegate("e", &json!({ "priority": 3 })),
        ];
        let reported = world
            .play(json!([{ "until": "all", "start": calls }]))
            .await;
        let done = reported
            .iter()
            .filter(|line| line.contains(r#""success":true"#));
        assert_eq!(done.count(), 5, "{reported:?}");
        let begun: Vec<Priority> = world
            .starts()
            .await
            .into_iter()
            .skip(1)
            .map(|start| start.priority)
            .collect();
        let high = Priority::High;
        assert_eq!(
            begun,
            [
                Priority::Normal,
                Priority::Critical,
                high,
                high,
                Priority::Low
            ],
            "of the tree: {of_tree}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_parallel_delegations_all_succeed_under_default_limits() {
    let world = World::new(Setup::default()).await;
    let calls: Vec<Value> = (0..20)
        .map(|n| delegate(&format!("d{n}"), &json!({})))
        .collect();
    let reported = world
        .play(json!([{ "until": "all", "start": calls }]))
        .await;
    let done = reported
        .iter()
        .filter(|line| line.contains(r#""success":true"#));
    assert_eq!(done.count(), 20, "{reported:?}");
    let starts = world.starts().await;
    let shares: Vec<u32> = starts
        .iter()
        .skip(1)
        .map(|start| start.limits.tool_calls_max)
        .collect();
    assert_eq!(shares.len(), 20);
    assert!(
        shares.iter().all(|calls| (3..=4).contains(calls)),
        "a hundred calls, evenly: {shares:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_without_calls_left_may_be_repeated_if_open_work_gives_some_back() {
    let who = |key: &str| json!({ "key": key, "tool": "who" });
    let none = json!({});
    for (max, before, retryable) in [
        // The first has one of four calls as its share.
        (4, vec![delegate("a", &none), who("b"), who("c")], true),
        (2, vec![who("a"), who("b")], false),
    ] {
        let world = World::new(with(|setup| {
            setup.definitions[0]["limits"] = json!({ "toolCallsMax": max });
        }))
        .await;
        let mut start = before;
        start.push(delegate("z", &none));
        let reported = world
            .play(json!([{ "until": "all", "start": start }]))
            .await;
        let refused = reported
            .iter()
            .find_map(|line| line.strip_prefix("z parts "));
        let refused = refused.unwrap_or_else(|| panic!("{reported:?}"));
        let result: Value = serde_json::from_str(refused).unwrap();
        check_refused(&result, "LIMIT_REACHED", retryable);
        assert_eq!(result["error"]["details"]["limit"], "toolCallsMax");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delegations_of_one_reply_beyond_the_calls_that_are_left_name_the_limit() {
    // Each of another file: the same call that fails again and again is not made any more.
    let call = |n: u32| {
        let arguments = READ.replace("\"a\"", &format!("\"a{n}\""));
        format!("\n[[rule.reply.calls]]\ntool = \"delegate\"\narguments = {arguments}\n")
    };
    let calls: String = (1..8).map(call).collect();
    // Where no calls are left, the agent asks for an answer without tools.
    let answer = "[[rule]]\nwhen = { userContains = \"No more tools\" }\nreply = { text = \"That is all.\" }\n";
    let script = format!("{answer}{}{calls}", calling(READ));
    for (max, tasks) in [(1, 0), (2, 1)] {
        let world = World::new(with(|setup| {
            setup.script = script.clone();
            setup.definitions[2]["limits"] = json!({ "toolCallsMax": max });
        }))
        .await;
        let session = world.open("assistant").await;
        world.turn("assistant", session, "go").await;
        let messages = world.messages(session).await;
        let results: Vec<Value> = messages
            .iter()
            .filter(|message| message.answers.is_some())
            .map(|message| serde_json::from_str(&message.text()).unwrap())
            .collect();
        assert_eq!(results.len(), 8, "{results:?}");
        let made = results.iter().filter(|result| result["taskId"].is_string());
        assert_eq!(made.count(), tasks, "{results:?}");
        for result in results.iter().filter(|it| it["taskId"].is_null()) {
            assert_eq!(result["error"]["code"], "LIMIT_REACHED", "{result}");
            let error = &result["error"];
            assert_eq!(error["details"]["limit"], "toolCallsMax", "{result}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("(toolCallsMax)"), "{result}");
            assert_eq!(result["metadata"]["operation"], "read_file", "{result}");
        }
        // A task is made with the last call rather than with none.
        let starts = world.starts().await;
        let shares = starts.iter().skip(1);
        assert!(
            shares
                .map(|start| start.limits.tool_calls_max)
                .eq(vec![1_u32; tasks])
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_delegations_wait_than_may_and_none_of_a_turn_that_is_waited_for() {
    let world = World::new(with(|setup| {
        setup.limits.dispatch.children_max = 1;
        setup.limits.dispatch.delegations_queued_max = 1;
        setup.limits.dispatch.call_depth_max = 2;
    }))
    .await;
    let none = json!({});
    let three = [
        delegate("a", &none),
        delegate("b", &none),
        delegate("c", &none),
    ];
    let reported = world
        .play(json!([{ "until": "all", "start": three }]))
        .await;
    let refused = reported.iter().find(|line| line.starts_with("c ")).unwrap();
    assert!(
        refused.contains(r#""code":"LIMIT_REACHED""#)
            && refused.contains(r#""limit":"delegationsQueuedMax""#)
            && refused.contains("(childrenMax)"),
        "{reported:?}"
    );
    let two = json!({ "until": "all", "start": [delegate("a", &none), delegate("b", &none)] });
    let inner = json!({ "steps": [two] }).to_string();
    let reported = world
        .play(json!([{ "start": [{ "key": "d", "agent": "other", "text": inner }] }]))
        .await
        .join("\n");
    let refused = reported.lines().find(|line| line.contains("LIMIT_REACHED"));
    assert!(
        refused.is_some_and(|line| line.contains("b parts {")),
        "{reported}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_that_waits_for_room_ends_at_its_deadline() {
    let hour = json!({ "steps": [{ "start": [{ "key": "t", "timer": 3_600_000 }] }] });
    let world = World::new(with(|setup| {
        setup.limits.dispatch.children_max = 1;
        setup.definitions[3]["component"] = json!("puppet");
        setup.definitions[3]["settings"] = json!({ "script": hour });
    }))
    .await;
    let calls = [
        delegate("a", &json!({})),
        delegate("b", &json!({ "timeout": 300 })),
    ];
    let reported = world.play(json!([{ "start": calls }])).await.join("\n");
    tells(&reported, &["b parts", "TASK_TIMEOUT"]);
    world.quiet().await;
}

/// Returns a setup whose worker is a puppet that does this at every task.
fn worker_that(steps: &Value) -> Setup {
    with(|setup| {
        setup.definitions[3]["component"] = json!("puppet");
        setup.definitions[3]["settings"] = json!({ "script": { "steps": steps } });
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_a_task_names_is_handed_on_if_its_caller_may_read_it() {
    let content = b"an essay";
    let digest = Digest::of(content);
    let named = digest.reference();
    let world = World::new(worker_that(&json!([{ "read": named }]))).await;
    let session = world.open("puppet").await;
    let file = UploadFile {
        target: target("puppet"),
        session,
        name: "essay.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        content: content.to_vec(),
        user: UserId::local(),
    };
    world.broker.files().upload(file).await.unwrap();
    let parameters = json!({ "path": "/data", "pattern": format!("in {named}") });
    let task = json!({ "operation": "search_files", "parameters": parameters });
    let steps = json!({ "steps": [{ "start": [delegate("a", &task)] }] }).to_string();
    let elsewhere = world.open("puppet").await;
    let shown = Part::Blob {
        digest,
        media_type: "text/plain".to_owned(),
        size: content.len() as u64,
    };
    for (caller, output, blobs) in [
        (session, "8 bytes", vec![shown]),
        (elsewhere, "no blob", Vec::new()),
    ] {
        let reported = world.turn("puppet", caller, &steps).await;
        tells(&reported, &[&format!(r#""output":"{output}""#)]);
        let of_task = world.starts().await.pop().unwrap().session;
        let messages = world.messages(of_task).await;
        let content: Value = serde_json::from_str(&messages[0].text()).unwrap();
        assert_eq!(content["parameters"], parameters);
        assert_eq!(messages[0].parts[1..], blobs[..], "{output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_told_its_time_and_no_more_than_its_caller_has() {
    let mut setup = worker_that(&json!([{ "reply": "done" }]));
    // The caller, the one whom it asks, and that one's worker.
    setup.limits.dispatch.call_depth_max = 2;
    let world = World::new(setup).await;
    let own = json!({ "start": [delegate("a", &json!({ "timeout": 50_000 }))] });
    let inner = json!({ "steps": [own] }).to_string();
    let below = json!({
        "start": [{ "key": "d", "agent": "other", "text": inner, "timeout": 20_000 }],
    });
    for (step, within_ms) in [(own, 50_000..=50_000), (below, 1..=20_000)] {
        let reported = world.play(json!([step])).await.join("\n");
        tells(&reported, &[r#""output":"done""#]);
        let of_task = world.starts().await.pop().unwrap().session;
        let messages = world.messages(of_task).await;
        let content: Value = serde_json::from_str(&messages[0].text()).unwrap();
        let time_ms = content["timeoutMs"].as_u64().unwrap();
        assert!(within_ms.contains(&time_ms), "{content}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_report_reaches_the_model_as_json_that_names_its_blob() {
    // The worker repeats what its model says.
    let asks = json!([{ "start": [{ "key": "m", "model": "x" }] }]);
    let said = format!("begin{}end", "x".repeat(100 << 10));
    let script = format!(
        "[[rule]]\nwhen.userContains = '\"operation\"'\nreply.text = \"{said}\"\n{}",
        calling(READ)
    );
    let world = World::new(Setup {
        script,
        ..worker_that(&asks)
    })
    .await;
    let whole = format!("m message {said}");
    let digest = Digest::of(whole.as_bytes());
    let bytes = whole.len();
    let session = world.open("assistant").await;
    world.turn("assistant", session, "go").await;
    let messages = world.messages(session).await;
    let reported = messages
        .iter()
        .find(|message| message.role == Role::Tool)
        .unwrap();
    let result: Value = serde_json::from_str(&reported.text()).unwrap();
    let output = result["output"].as_str().unwrap();
    assert!(
        output.starts_with("m message begin") && output.ends_with("end") && output.len() < 10_000,
        "{output}"
    );
    let expected = json!({
        "success": true, "taskState": "COMPLETED",
        "blob": { "digest": digest.reference(), "bytes": bytes, "mediaType": "text/plain" },
    });
    shows(&result, &expected);
    assert!(result["taskId"].is_string() && result["metadata"]["agentId"].is_string());
    assert_eq!(
        reported.parts[1],
        Part::Blob {
            digest,
            media_type: "text/plain".to_owned(),
            size: bytes as u64,
        }
    );
    assert_eq!(
        world.store().blob(digest).await.unwrap(),
        Some(whole.into_bytes())
    );
    // Whoever sees the session may fetch it there, and not in another one.
    let user = UserId::local();
    let agent = target("assistant");
    let files = world.broker.files();
    let fetch = |session| files.get(&user, &agent, session, digest, None);
    let (file, content) = fetch(session).await.unwrap();
    assert_eq!(
        (file.media_type.as_str(), content.len()),
        ("text/plain", bytes)
    );
    let elsewhere = world.open("assistant").await;
    assert!(fetch(elsewhere).await.is_err());
    // An agent that delegates by itself reads it too.
    let reported = world
        .play(json!([{ "start": [delegate("a", &json!({}))] }]))
        .await
        .join("\n");
    assert!(
        reported.ends_with(&format!(" ({bytes} bytes)")),
        "{reported}"
    );
    assert!(world.store().unnamed_blobs(10).await.unwrap().is_empty());
}

/// Two steps that read the same one after the other.
fn twice() -> Value {
    json!([
        { "start": [delegate("a", &json!({}))] },
        { "start": [delegate("b", &json!({}))] },
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_is_used_again_where_the_operator_says_so_and_says_so() {
    for cache in [None, Some(CacheLimits::default())] {
        let world = World::new(with(|setup| setup.limits.delegation_cache = cache)).await;
        let reported = world.play(twice()).await.join("\n");
        let runs = if cache.is_some() { 2 } else { 3 };
        assert_eq!(world.runs().await.len(), runs, "{reported}");
        assert_eq!(
            reported.contains(r#""cached":true"#),
            cache.is_some(),
            "{reported}"
        );
        // The work of another user is done anew.
        let eve: UserId = "eve".parse().unwrap();
        let session = world.open_for(&eve, "puppet").await;
        let once = json!({ "steps": [{ "start": [delegate("a", &json!({}))] }] });
        let message = world.message("puppet", session, &once.to_string(), None);
        let said = PostMessage {
            target: target("puppet"),
            user: eve,
            ..message
        };
        world.broker.messages().post(said).await.unwrap();
        world.idle(session).await;
        assert_eq!(world.runs().await.len(), runs + 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_read_is_used_again_with_other_code_or_grants() {
    let cache = Some(CacheLimits::default());
    let mut world = World::new(with(|setup| setup.limits.delegation_cache = cache)).await;
    world.play(twice()).await;
    let before = world.runs().await.len();
    world.reload(|_| ()).await;
    let reported = world.play(twice()).await.join("\n");
    assert_eq!(world.runs().await.len(), before + 2, "{reported}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_for_a_session_is_read_again_after_its_purge() {
    let cache = Some(CacheLimits::default());
    let world = World::new(with(|setup| setup.limits.delegation_cache = cache)).await;
    let reads = json!([{ "start": [delegate("a", &json!({}))] }]);
    let session = world.open("puppet").await;
    let script = json!({ "steps": reads }).to_string();
    world.turn("puppet", session, &script).await;
    let agent = world.row(session).await.agent;
    let me = UserId::local();
    let puppet = target("puppet");
    let deleting = world
        .broker
        .sessions()
        .delete(By::from(&me), &puppet, session)
        .await;
    deleting.unwrap();
    let before = world.runs().await.len();
    let reported = world.play(reads.clone()).await.join("\n");
    tells(&reported, &[r#""cached":true"#]);
    assert_eq!(world.runs().await.len(), before + 1, "{reported}");

    let what = PurgeOf::Session(broker::Target::Agent(agent), session);
    world.broker.purge(By::from(&me), &what).await.unwrap();
    let before = world.runs().await.len();
    let reported = world.play(reads).await.join("\n");
    tells(&reported, &[r#""success":true"#]);
    assert!(!reported.contains(r#""cached":true"#), "{reported}");
    assert_eq!(world.runs().await.len(), before + 2, "{reported}");
}

/// A write and a read of one step run side by side, and nobody knows which of them was first.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_beside_a_write_is_read_again() {
    let cache = Some(CacheLimits::default());
    let world = World::new(with(|setup| setup.limits.delegation_cache = cache)).await;
    let write = json!({
        "operation": "write_file", "parameters": { "path": "/data/w.txt", "content": "new" },
    });
    let reported = world
        .play(json!([
            { "until": "all", "start": [delegate("w", &write), delegate("a", &json!({}))] },
            { "start": [delegate("b", &json!({}))] },
            { "start": [delegate("c", &json!({}))] },
        ]))
        .await;
    let of = |key: &str| {
        let line = reported.iter().find(|line| line.starts_with(key));
        line.unwrap_or_else(|| panic!("nothing about {key}: {reported:?}"))
    };
    for (key, is_kept) in [("w ", false), ("a ", false), ("b ", false), ("c ", true)] {
        assert!(of(key).contains(r#""success":true"#), "{reported:?}");
        assert_eq!(
            of(key).contains(r#""cached":true"#),
            is_kept,
            "{reported:?}"
        );
    }
    assert!(
        of("b ").contains("w.txt") && of("c ").contains("w.txt"),
        "{reported:?}"
    );
    // The agent, the write and two reads.
    assert_eq!(world.runs().await.len(), 4, "{reported:?}");
}

/// In the turn that a user began, and in that of a worker.
#[tokio::test(flavor = "multi_thread")]
async fn without_streams_a_worker_begins_when_the_call_before_it_is_done() {
    let mut setup = worker_that(&json!([{ "start": [{ "key": "t", "timer": 100 }] }]));
    setup.limits.dispatch.call_depth_max = 2;
    for definition in setup.definitions.iter_mut().take(2) {
        definition["enableStreaming"] = json!(false);
    }
    let world = World::new(setup).await;
    let none = json!({});
    let two = [delegate("a", &none), delegate("b", &none)];
    let inner = json!({ "steps": [{ "until": "all", "start": two }] }).to_string();
    let three = [
        json!({ "key": "o", "agent": "other", "text": inner }),
        delegate("a", &none),
        delegate("b", &none),
    ];
    let steps = json!([{ "until": "all", "start": three }]);
    let reported = world.play(steps).await.join("\n");
    assert!(!reported.contains("LIMIT_REACHED"), "{reported}");
    let all = store::EventFilter::default();
    let events = world.store().events(0, all, 1_000_000).await.unwrap();
    let mut at_work: Vec<(RunId, RunId)> = Vec::new();
    let mut done = 0;
    for recorded in events {
        let run = recorded.subject.run;
        match recorded.event {
            Some(Event::RunStarted(started)) => {
                let Some(reply_to) = started.reply_to else {
                    continue;
                };
                let beside = at_work.iter().any(|(_, caller)| *caller == reply_to.run);
                assert!(!beside, "two workers of one turn at once: {reported}");
                at_work.push((started.run, reply_to.run));
            }
            Some(Event::RunEnded(_)) => {
                let before = at_work.len();
                at_work.retain(|(worker, _)| Some(*worker) != run);
                done += before - at_work.len();
            }
            _ => {}
        }
    }
    assert_eq!(done, 5, "{reported}");
}
