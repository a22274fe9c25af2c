//! The ledger: what the boundary decided is on record with the call, in the commit of its outcome,
//! and who was denied something stays denied however the work is handed on.

use agent_host_tests::guests::wasm;
use agent_host_tests::process::tells;
use agent_host_tests::{Setup, World};
use domain::event::{BoundaryDecided, BoundaryVerdict, Event, RunStepped};
use domain::grant::{Access, Grant, PatternList};
use domain::id::Stream;
use domain::user::UserId;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use store::EventFilter;

/// The decisions of a call or a step: capability, verdict and rule, in one line each.
fn decision_lines(decided: &BoundaryDecided) -> Vec<String> {
    let line = |decision: &domain::event::BoundaryDecision| {
        format!(
            "{} {:?} {}",
            decision.capability, decision.verdict, decision.rule
        )
    };
    decided.decisions.iter().map(line).collect()
}

/// Everything that was refused, in order.
async fn refused(world: &World) -> Vec<String> {
    let lines = world.ledger().await;
    let lines = lines.iter().flat_map(|decided| {
        decided
            .decisions
            .iter()
            .map(move |decision| (decided, decision))
    });
    let refused = lines.filter(|(_, decision)| decision.verdict == BoundaryVerdict::Refused);
    refused
        .map(|(decided, decision)| {
            format!(
                "{}: {} {} {}",
                decided.definition, decision.capability, decision.rule, decision.detail
            )
        })
        .collect()
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!([{ "start": [{ "key": "t", "tool": tool, "args": arguments }] }])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_did_is_on_record_with_code_and_grant_in_the_commit_of_its_outcome() {
    let world = World::new(Setup::default()).await;
    world
        .play(call(
            "write_file",
            &json!({ "path": "a.txt", "content": "x" }),
        ))
        .await;
    let steps = world.steps().await;
    let of_a_call = |step: &RunStepped| {
        let entry = step.ledger.iter().find(|it| it.operation.is_some());
        Some((step.settled.clone(), entry?.clone()))
    };
    let (settled, decided) = steps.iter().find_map(of_a_call).unwrap();
    let catalogue = world.broker.catalogue();
    let (entry, _) = catalogue.tool("write_file").unwrap();
    assert_eq!(
        (decided.tool.as_deref(), decided.component.as_deref()),
        (Some("write_file"), Some("files"))
    );
    assert_eq!(decided.code, Some(entry.component.digest()));
    let grant = world
        .store()
        .blob(decided.grant.unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        serde_json::from_slice::<Grant>(&grant).unwrap(),
        entry.grant,
        "the digest leads to the grant"
    );
    // The outcome stands beside it.
    let outcomes = settled.iter().map(|it| Some(it.operation));
    assert!(outcomes.eq([decided.operation]), "{settled:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn granted_variables_reach_the_tool_and_the_record_has_their_names() {
    let setup = |denied: &[&str]| {
        let agent = json!({
            "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
            "capabilityDenylist": denied,
        });
        let change_grant: fn(&str, &mut Grant) = |name, grant| {
            if name == "reach" {
                grant.environment = [("PLACE".to_owned(), "VALUE-OF-IT".to_owned())].into();
            }
        };
        Setup {
            components: vec!["puppet", "reach"],
            definitions: vec![agent],
            change_grant,
            ..Setup::default()
        }
    };
    let world = World::new(setup(&[])).await;
    let said = world.play(call("environment", &json!({}))).await.join("\n");
    assert_eq!(said, r#"t parts [("PLACE", "VALUE-OF-IT")] [] None"#);
    // Without asking for them there are none.
    world.play(call("reach", &json!({}))).await;
    let ledger = world.ledger().await;
    let about: Vec<&domain::event::BoundaryDecision> = ledger
        .iter()
        .flat_map(|decided| &decided.decisions)
        .filter(|decision| decision.capability == "env.read")
        .collect();
    let lines: Vec<String> = about
        .iter()
        .map(|it| format!("{:?} {} {}", it.verdict, it.rule, it.detail))
        .collect();
    assert_eq!(
        lines,
        [
            "Granted grant PLACE",
            "Refused notAsked wasi:cli/environment.get-environment"
        ]
    );

    let world = World::new(setup(&["env.read"])).await;
    assert_eq!(
        world.play(call("environment", &json!({}))).await,
        ["t denied"]
    );
    assert_eq!(
        refused(&world).await,
        ["puppet: env.read capabilityDenylist environment"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_read_is_not_given_a_folder_to_write() {
    let mut setup = Setup::default();
    setup.definitions[0]["capabilityDenylist"] = json!(["files.read"]);
    let world = World::new(setup).await;
    let said = world
        .play(call(
            "write_file",
            &json!({ "path": "a.txt", "content": "x" }),
        ))
        .await;
    assert_eq!(said, ["t denied"]);
    assert_eq!(
        refused(&world).await,
        ["puppet: files.read capabilityDenylist write_file"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_told_uniformly_to_the_agent_and_with_its_rule_to_the_operator() {
    let mut setup = Setup::default();
    setup.definitions[0]["toolDenylist"] = json!(["delete_*"]);
    setup.definitions[0]["capabilityDenylist"] = json!(["files.write"]);
    setup.definitions[0]["agentDenylist"] = json!(["tutor"]);
    setup.change_grant = |name, grant| {
        if name == "puppet" {
            grant.models = PatternList::default();
        }
    };
    let world = World::new(setup).await;
    let steps = json!([{ "until": "all", "start": [
        { "key": "a", "tool": "delete_file" },
        { "key": "b", "tool": "write_file" },
        { "key": "c", "agent": "tutor", "text": "x" },
        { "key": "d", "model": "x" },
    ] }]);
    assert_eq!(
        world.play(steps).await,
        ["a denied", "b denied", "c denied", "d denied"]
    );
    assert_eq!(
        refused(&world).await,
        [
            "puppet: tools.call toolDenylist delete_file",
            "puppet: files.write capabilityDenylist write_file",
            "puppet: agents.call agentDenylist tutor",
            "puppet: models.call notGranted m",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_dispatch_to_an_agent_may_not_delegate_to_it_either() {
    let arguments =
        json!({ "target": "worker", "operation": "list_files", "parameters": { "path": "/data" } });
    let denied = json!({ "agentDenylist": ["worker"] });
    let ungranted: fn(&str, &mut Grant) = |name, grant| {
        if name == "puppet" {
            grant.agents = PatternList::default();
        }
    };
    for (lists, change_grant, rule) in [
        (denied, Setup::default().change_grant, "agentDenylist"),
        (json!({}), ungranted, "notGranted"),
    ] {
        let mut setup = Setup {
            change_grant,
            ..Setup::default()
        };
        setup.definitions[0]
            .as_object_mut()
            .unwrap()
            .extend(lists.as_object().unwrap().clone());
        let world = World::new(setup).await;
        let reported = world.play(call("delegate", &arguments)).await.join("\n");
        assert!(reported.contains(r#""code":"NOT_ALLOWED""#), "{reported}");
        assert_eq!(
            refused(&world).await,
            [format!("puppet: agents.call {rule} worker")]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_is_denied_is_denied_to_whom_it_hands_the_work() {
    let mut setup = Setup::default();
    setup.definitions[0]["capabilityDenylist"] = json!(["files.write"]);
    let world = World::new(setup).await;
    let inner = json!({ "steps": call("write_file", &json!({ "path": "a.txt", "content": "x" })) })
        .to_string();
    let outer = json!([{ "start": [{ "key": "o", "agent": "other", "text": inner }] }]);
    assert_eq!(world.play(outer).await, ["o parts t denied"]);
    assert_eq!(
        refused(&world).await,
        ["other: files.write callersDenylist write_file"]
    );
    assert!(!world.dir.path().join("files/a.txt").exists());
    // The same agent, asked by the user, may.
    let session = world.open("other").await;
    world.turn("other", session, &inner).await;
    assert!(world.dir.path().join("files/a.txt").exists());
}

/// A worker for an agent is denied what that one was, also in turns that it begins itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_denied_what_its_agent_was_also_in_turns_that_it_begins_itself() {
    let mut setup = Setup::default();
    setup.definitions[0]["capabilityDenylist"] = json!(["files.write"]);
    let world = World::new(setup).await;
    let inner = json!({ "steps": [{ "reply": "done" }] }).to_string();
    world
        .play(json!([{ "start": [{ "key": "o", "agent": "other", "text": inner }] }]))
        .await;
    // The user speaks to the agent that was made for the work.
    let rows = world.recorded().await;
    let spawned = rows.iter().find_map(|recorded| match &recorded.event {
        Some(Event::AgentCreated(created)) if created.parent.is_some() => Some(created.agent),
        _ => None,
    });
    let target = broker::Target::Agent(spawned.unwrap());
    let new = broker::NewSession::of(target.clone(), UserId::local());
    let session = world.broker.sessions().open(new).await.unwrap().row.id;
    let text = json!({ "steps": call("write_file", &json!({ "path": "a.txt", "content": "x" })) })
        .to_string();
    let message = broker::PostMessage {
        target,
        ..world.message("other", session, &text, None)
    };
    world.broker.messages().post(message).await.unwrap();
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "t denied");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_is_widened_while_a_turn_is_open_is_not_for_that_turn() {
    let change_grant = |_: &str, grant: &mut Grant| {
        grant
            .directories
            .iter_mut()
            .for_each(|folder| folder.access = Access::ReadOnly)
    };
    let setup = Setup {
        change_grant,
        ..Setup::default()
    };
    let world = World::new(setup).await;
    let session = world.open("puppet").await;
    let write =
        json!({ "key": "t", "tool": "write_file", "args": { "path": "a.txt", "content": "x" } });
    let steps =
        json!({ "steps": [{ "start": [{ "key": "w", "timer": 300 }] }, { "start": [write] }] });
    world.say("puppet", session, &steps.to_string()).await;
    world.until(session, |row| row.open_run.is_some()).await;
    let world = world.restart(|setup| setup.change_grant = |_, _| {}).await;
    world.idle(session).await;
    let reply = world.last_reply(session).await;
    assert_eq!(reply, "w elapsed\nt denied");
    assert!(!world.dir.path().join("files/a.txt").exists());
    // The next turn has it.
    assert_eq!(
        world
            .play(call(
                "write_file",
                &json!({ "path": "a.txt", "content": "x" })
            ))
            .await
            .len(),
        1
    );
    assert!(world.dir.path().join("files/a.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_upgrade_in_a_turn_entries_name_the_code_of_their_own_step() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let ask = |key: &str| json!({ "key": key, "model": "x" });
    let steps = json!([
        { "until": "all", "start": [ask("a"), { "key": "t", "timer": 1_500 }] },
        { "until": "all", "start": [ask("b")] },
    ]);
    world.play_in(session, &steps).await;
    world.until(session, |row| row.open_run.is_some()).await;
    let world = world
        .restart(|setup| {
            setup.components.retain(|name| *name != "puppet");
            // A section at its end that says nothing: other bytes, the same agent.
            setup
                .made
                .push(("puppet", [wasm("puppet"), vec![0, 2, 1, b'x']].concat()));
        })
        .await;
    world.idle(session).await;
    let run = world.runs().await[0];
    let events = world
        .store()
        .stream(Stream::Run(run), 0, 1_000)
        .await
        .unwrap();
    let mut entries = 0;
    let mut codes = BTreeSet::new();
    for event in events.into_iter().filter_map(|recorded| recorded.event) {
        let code = event.step().map(|step| step.basis.documents.component);
        for decided in event.ledger() {
            if decided.component.as_deref() == Some("puppet") && decided.operation.is_none() {
                assert_eq!(decided.code, code, "the entry is in its step");
                assert_eq!(decided.user_id, Some(UserId::local()));
                entries += 1;
                codes.extend(decided.code);
            }
        }
    }
    assert_eq!(
        (entries, codes.len()),
        (2, 2),
        "an entry for each step that asked a model, and each of its own code"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_is_admitted_once_for_each_version_of_its_grant() {
    let admitted = async |world: &World| {
        let events = world
            .store()
            .events(
                0,
                EventFilter {
                    ledger: true,
                    ..EventFilter::default()
                },
                1_000,
            )
            .await
            .unwrap();
        let named = events
            .into_iter()
            .filter_map(|recorded| match recorded.event {
                Some(Event::ComponentAdmitted(admitted)) => Some(admitted.component),
                _ => None,
            });
        named.collect::<Vec<_>>()
    };
    let world = World::new(Setup::default()).await;
    let first = ["assistant", "effects", "files", "puppet", "tutor", "worker"];
    assert_eq!(admitted(&world).await, first);
    let world = world.restart(|_| {}).await;
    assert_eq!(admitted(&world).await, first);
    let world = world
        .restart(|setup| {
            setup.change_grant = |name, grant| {
                if name == "files" {
                    grant.directories.clear();
                }
            };
        })
        .await;
    assert_eq!(admitted(&world).await[first.len()..], ["files"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_code_under_a_name_is_told_in_the_ledger_unless_it_is_pinned() {
    let last = async |world: &World| {
        let events = world
            .store()
            .events(
                0,
                EventFilter {
                    ledger: true,
                    ..EventFilter::default()
                },
                1_000,
            )
            .await
            .unwrap();
        let admitted = events
            .into_iter()
            .filter_map(|recorded| match recorded.event {
                Some(Event::ComponentAdmitted(admitted)) if admitted.component == "effects" => {
                    Some((admitted.code, admitted.replaces))
                }
                _ => None,
            });
        admitted.collect::<Vec<_>>()
    };
    // Sections at the end that say nothing: other bytes, the same tools.
    let code = |sections: usize| [wasm("effects"), [0, 2, 1, b'x'].repeat(sections)].concat();
    let digest = |sections| domain::digest::Digest::of(&code(sections));
    let with = |sections: usize, is_pinned: bool| {
        move |setup: &mut Setup| {
            setup.components.retain(|name| *name != "effects");
            setup.made = vec![("effects", code(sections))];
            setup.is_pinned = is_pinned;
        }
    };
    let world = World::new(Setup::default()).await;
    assert_eq!(last(&world).await, [(digest(0), None)]);
    let world = world.restart(with(1, false)).await;
    assert_eq!(last(&world).await[1..], [(digest(1), Some(digest(0)))]);
    let world = world.restart(with(1, false)).await;
    assert_eq!(
        last(&world).await.len(),
        2,
        "what was told is not told again"
    );
    let world = world.restart(with(2, true)).await;
    assert_eq!(
        last(&world).await[2..],
        [(digest(2), None)],
        "somebody has looked at it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_a_tool_that_there_is_not_is_repeated_escaped() {
    let world = World::new(Setup::default()).await;
    let reported = world
        .play(json!([{ "start": [{ "key": "t", "tool": "a\u{202e}b\u{1b}[2J\u{e0041}\nc" }] }]))
        .await;
    let reported = reported.join("\n");
    tells(
        &reported,
        &[r"there is no tool `a\u{202e}b\u{1b}[2J\u{e0041}\nc`; available are"],
    );
    let ledger = serde_json::to_string(&world.ledger().await).unwrap();
    assert!(
        ledger.contains(r"a\\u{202e}b") && !ledger.contains('\u{202e}'),
        "{ledger}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_ends_a_call_is_on_record() {
    let mut setup = Setup::default();
    setup.guest_limits.wall_ms_max = 50;
    let world = World::new(setup).await;
    assert_eq!(
        world.play(call("look", &json!({ "sleep": 2_000 }))).await,
        ["t timed-out"]
    );
    let lines: Vec<String> = world
        .ledger()
        .await
        .iter()
        .filter(|decided| decided.operation.is_some())
        .flat_map(decision_lines)
        .collect();
    assert!(
        lines.contains(&"tools.call Limited limits".to_owned()),
        "{lines:?}"
    );
}
