//! The ledger of what is cut off, refused or kept waiting. Like everything that is done, it is
//! there with the tool, the component, the operation and the rule.

use super::network::Server;
use agent_host_tests::patience::until;
use agent_host_tests::process::puppet;
use agent_host_tests::world::PATIENCE;
use agent_host_tests::{Setup, World};
use domain::egress::EgressGrant;
use domain::event::{BoundaryDecided, BoundaryDecision, BoundaryVerdict, Event, Recorded};
use domain::grant::{Grant, PatternList, SecretGrant, SecretSlot, capability};
use domain::id::SessionId;
use domain::ruling::STEP;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A host whose tool may send a secret to a server.
fn reaching(network: Vec<EgressGrant>) -> Setup {
    let definitions = vec![
        puppet(),
        json!({ "agentId": "other", "displayName": "Other", "component": "puppet" }),
    ];
    let change_grant = |name: &str, grant: &mut Grant| {
        if name == "reach" {
            let slot = SecretSlot::Header("authorization".into());
            let port = grant
                .network
                .first()
                .and_then(|network| network.ports.as_ref()?.first().copied());
            let secret = "github".into();
            let host = "127.0.0.1".into();
            let prefix = "Bearer ".into();
            grant.secrets = vec![SecretGrant {
                secret,
                host,
                port,
                slot,
                prefix,
            }];
        }
    };
    let secrets = vec![("github", "SK-CANARY-4711-0815")];
    Setup {
        components: vec!["puppet", "reach"],
        definitions,
        network,
        secrets,
        change_grant,
        ..Setup::default()
    }
}

/// A call that sends a request with the secret in it to a server that never answers.
fn hanging(server: &Server) -> Value {
    let arguments = json!({
        "url": server.url("/open/a"), "headers": [["Authorization", "{{secret.github}}"]],
    });
    json!({ "key": "t", "tool": "send_request", "args": arguments })
}

async fn until_asked(server: &Server) {
    until(async || !server.asked().is_empty()).await;
}

/// Begins a turn of the puppet's.
async fn begin(world: &World, steps: Value) -> SessionId {
    let session = world.open("puppet").await;
    world.play_in(session, &steps).await;
    session
}

/// The ledger's entries of a stored event.
fn ledger(recorded: &Recorded) -> &[BoundaryDecided] {
    recorded.event.as_ref().map_or(&[], Event::ledger)
}

/// The request that was cut off, and the use of the secret, are on record once: what was decided
/// until the outcome in its commit, and what was decided until the work was stopped, once that
/// outcome was durable, after it.
async fn is_on_record(world: &World, why: &str) {
    let is_sent = |it: &&BoundaryDecided| it.tool.as_deref() == Some("send_request");
    let patience = Instant::now() + PATIENCE;
    let (events, places) = loop {
        let events = world.recorded().await;
        let places: Vec<usize> = (0..events.len())
            .filter(|place| ledger(&events[*place]).iter().any(|it| is_sent(&it)))
            .collect();
        if places.len() == 2 {
            break (events, places);
        }
        assert!(
            places.len() < 2 && Instant::now() < patience,
            "{why}: {places:?}"
        );
        sleep(Duration::from_millis(5)).await;
    };
    let decided: Vec<&BoundaryDecided> = places
        .iter()
        .flat_map(|place| ledger(&events[*place]).iter().filter(is_sent))
        .collect();
    for decided in &decided {
        assert_eq!(decided.component.as_deref(), Some("reach"), "{why}");
        assert!(
            decided.code.is_some() && decided.grant.is_some(),
            "{why}: {decided:?}"
        );
    }
    assert!(
        decided[0].operation.is_some() && decided[0].operation == decided[1].operation,
        "{why}: {decided:?}"
    );
    let hops: Vec<_> = decided.iter().flat_map(|it| &it.egress.hops).collect();
    assert_eq!(
        hops.iter()
            .map(|hop| (hop.verdict.as_str(), hop.path.as_deref()))
            .collect::<Vec<_>>(),
        [("dropped", Some("/open/a"))],
        "{why}"
    );
    assert!(hops[0].bytes_out > 0, "{why}: {decided:?}");
    let used: Vec<_> = decided
        .iter()
        .flat_map(|it| &it.decisions)
        .filter(|it| it.capability == capability::SECRETS_USE)
        .map(|it| (it.verdict, it.times))
        .collect();
    assert_eq!(used, [(BoundaryVerdict::Granted, 1)], "{why}");
    let place = places[0];
    // The outcome is recorded at the same moment: in the same event, or beside it in the stream.
    let near = |step: isize| {
        place
            .checked_add_signed(step)
            .and_then(|at| events.get(at))
            .filter(|it| it.stream == events[place].stream)
    };
    let is_outcome = |event: &Event| {
        matches!(
            event,
            Event::RunStepped(_) | Event::RunSettled(_) | Event::RunEnded(_)
        )
    };
    let beside = [-1, 0, 1]
        .into_iter()
        .filter_map(near)
        .any(|it| it.event.as_ref().is_some_and(is_outcome));
    assert!(beside, "{why}: nothing stands beside it");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_did_until_its_agent_cancelled_it_is_on_record() {
    let server = Server::saying(None);
    let world = World::new(reaching(vec![server.grant()])).await;
    let session = begin(
        &world,
        json!([{ "start": [hanging(&server)], "hear": true }, { "cancel": ["t"] }]),
    )
    .await;
    until_asked(&server).await;
    assert_eq!(
        world.turn("puppet", session, "enough").await,
        "said enough\nt cancelled"
    );
    is_on_record(&world, "cancelled by its agent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_did_until_its_user_cancelled_it_is_on_record() {
    let server = Server::saying(None);
    let world = World::new(reaching(vec![server.grant()])).await;
    let session = begin(&world, json!([{ "start": [hanging(&server)] }])).await;
    until_asked(&server).await;
    assert!(world.cancel("puppet", session).await);
    world.idle(session).await;
    is_on_record(&world, "cancelled by its user").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_did_until_its_turn_had_used_up_its_time_is_on_record() {
    let server = Server::saying(None);
    let mut setup = reaching(vec![server.grant()]);
    setup.definitions[0]["limits"] = json!({ "activeMsMax": 2_000 });
    let world = World::new(setup).await;
    let session = begin(&world, json!([{ "start": [hanging(&server)] }])).await;
    until_asked(&server).await;
    world.idle(session).await;
    is_on_record(&world, "out of time").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_did_until_the_deadline_of_its_work_is_on_record() {
    let server = Server::saying(None);
    let world = World::new(reaching(vec![server.grant()])).await;
    let inner = json!({ "steps": [{ "start": [hanging(&server)] }] }).to_string();
    let session = begin(
        &world,
        json!([{ "start": [{ "key": "o", "agent": "other", "text": inner, "timeout": 2_000 }] }]),
    )
    .await;
    until_asked(&server).await;
    let child = world
        .store()
        .run(world.runs().await[1])
        .await
        .unwrap()
        .unwrap()
        .session;
    world.idle(session).await;
    world.idle(child).await;
    is_on_record(&world, "after its deadline").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_did_until_the_host_was_stopped_is_on_record() {
    let server = Server::saying(None);
    let world = World::new(reaching(vec![server.grant()])).await;
    let session = begin(&world, json!([{ "start": [hanging(&server)] }])).await;
    until_asked(&server).await;
    // What is begun anew then finds a grant that lets nothing through.
    let world = world.restart(|setup| setup.network.clear()).await;
    world.idle(session).await;
    let sent: Vec<BoundaryDecided> = world
        .ledger()
        .await
        .into_iter()
        .filter(|it| !it.egress.is_empty())
        .collect();
    let hops: Vec<&str> = sent[0]
        .egress
        .hops
        .iter()
        .map(|hop| hop.verdict.as_str())
        .collect();
    assert_eq!(hops, ["dropped"], "{sent:?}");
    assert!(
        sent[0]
            .decisions
            .iter()
            .any(|it| it.capability == capability::SECRETS_USE),
        "{sent:?}"
    );
}

/// Everything that was not granted: the tool, and the decision as capability, verdict, rule and
/// detail.
async fn not_granted(world: &World) -> Vec<(Option<String>, String)> {
    let line = |it: &BoundaryDecision| {
        format!(
            "{} {:?} {} {}",
            it.capability, it.verdict, it.rule, it.detail
        )
    };
    let lines = world.ledger().await.into_iter().flat_map(|decided| {
        let lines = decided
            .decisions
            .iter()
            .filter(|it| it.verdict != BoundaryVerdict::Granted)
            .map(line)
            .collect::<Vec<_>>();
        lines
            .into_iter()
            .map(move |line| (decided.tool.clone(), line))
    });
    lines.collect()
}

fn line_of_tool(tool: &str, line: &str) -> (Option<String>, String) {
    (Some(tool.to_owned()), line.to_owned())
}

fn plain(line: &str) -> (Option<String>, String) {
    (None, line.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_line_of_a_refused_call_names_the_tool_its_component_and_what_it_lacks() {
    let mut setup = Setup::default();
    setup.definitions[0]["toolDenylist"] = json!(["read_file"]);
    setup.definitions[0]["capabilityDenylist"] = json!(["files.write"]);
    let world = World::new(setup).await;
    let reported = world
        .play(json!([{
            "until": "all",
            "start": [{ "key": "a", "tool": "read_file" }, { "key": "b", "tool": "write_file" }],
        }]))
        .await;
    assert_eq!(reported, ["a denied", "b denied"]);
    let catalogue = world.broker.catalogue();
    let (entry, _) = catalogue.tool("write_file").unwrap();
    let lines = world.ledger().await;
    let operations: Vec<_> = lines.iter().map(|line| line.operation.unwrap()).collect();
    assert!(
        operations.len() == 2 && operations[0] != operations[1],
        "{lines:?}"
    );
    for (line, (tool, capability)) in lines
        .iter()
        .zip([("read_file", "tools.call"), ("write_file", "files.write")])
    {
        assert_eq!(
            (line.tool.as_deref(), line.component.as_deref()),
            (Some(tool), Some("files"))
        );
        assert_eq!(line.code, Some(entry.component.digest()));
        let grant = world
            .store()
            .blob(line.grant.unwrap())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            serde_json::from_slice::<Grant>(&grant).unwrap(),
            entry.grant
        );
        assert_eq!(
            line.decisions
                .iter()
                .map(|it| it.capability.as_str())
                .collect::<Vec<_>>(),
            [capability]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_and_agents_that_are_not_there_and_the_hosts_own_tool_have_their_lines_too() {
    let mut setup = Setup::default();
    setup.definitions[0]["toolDenylist"] = json!(["delegate"]);
    let world = World::new(setup).await;
    let reported = world
        .play(json!([{
            "until": "all",
            "start": [
                { "key": "a", "tool": "delegate" }, { "key": "b", "tool": "no_such_tool" },
                { "key": "c", "agent": "nobody", "text": "x" },
            ],
        }]))
        .await;
    assert!(
        reported[0].contains(r#""code":"NOT_ALLOWED""#),
        "{reported:?}"
    );
    assert!(
        reported[1].starts_with("b failed TOOL_NOT_AVAILABLE"),
        "{reported:?}"
    );
    let lines = [
        line_of_tool("delegate", "tools.call Refused toolDenylist delegate"),
        line_of_tool("no_such_tool", "tools.call Refused unknown no_such_tool"),
        plain("agents.call Refused unknown nobody"),
    ];
    assert_eq!(not_granted(&world).await, lines);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_not_there_and_one_that_is_not_granted_look_the_same() {
    for (model, rule) in [
        (json!("nope"), "unknown nope"),
        (json!("m"), "notGranted m"),
    ] {
        let mut setup = Setup::default();
        setup.definitions[0]["model"] = model;
        setup.change_grant = |name, grant| {
            if name == "puppet" {
                grant.models = PatternList::default();
            }
        };
        let world = World::new(setup).await;
        assert_eq!(
            world
                .play(json!([{ "start": [{ "key": "m", "model": "x" }] }]))
                .await,
            ["m denied"]
        );
        assert_eq!(
            not_granted(&world).await,
            [plain(&format!("models.call Refused {rule}"))]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_limit_keeps_from_being_asked_is_limited_and_not_granted() {
    let mut setup = Setup::default();
    setup.limits.dispatch.call_depth_max = 0;
    setup.definitions[0]["limits"] = json!({ "toolCallsMax": 2, "tokensMax": 100 });
    let world = World::new(setup).await;
    let reported = world
        .play(json!([{
            "until": "all",
            "start": [
                { "key": "a", "agent": "other", "text": "x" }, { "key": "b", "model": "x" },
                { "key": "c", "tool": "look" },
                { "key": "d", "tool": "look" },
            ],
        }]))
        .await;
    assert_eq!(
        reported
            .iter()
            .filter(|line| line.contains("failed limit-reached"))
            .count(),
        3,
        "{reported:?}"
    );
    let lines = [
        plain(
            "agents.call Limited limits agents may call each other 0 deep and no deeper \
               (callDepthMax)",
        ),
        plain("models.call Limited limits tokensMax"),
        line_of_tool("look", "tools.call Limited limits toolCallsMax"),
    ];
    assert_eq!(not_granted(&world).await, lines);
    let granted = world
        .ledger()
        .await
        .into_iter()
        .flat_map(|it| it.decisions)
        .filter(|it| it.verdict == BoundaryVerdict::Granted);
    let asked: Vec<String> = granted
        .map(|it| it.capability)
        .filter(|it| it.ends_with(".call"))
        .collect();
    assert_eq!(asked, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_not_asked_after_all_is_not_on_record_as_granted() {
    let world = World::new(Setup::default()).await;
    let reported = world
        .play(json!([{ "start": [{ "key": "m", "model": "x", "schema": { "type": 7 } }] }]))
        .await;
    assert!(
        reported[0].starts_with("m failed invalid-arguments"),
        "{reported:?}"
    );
    assert_eq!(world.ledger().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_attempt_at_a_step_that_is_refused_has_its_line() {
    let world = World::new(Setup::default()).await;
    let session = begin(
        &world,
        json!([{ "start": [{ "key": "k".repeat(200), "timer": 5 }] }]),
    )
    .await;
    world.idle(session).await;
    let lines = world.ledger().await;
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in lines {
        assert_eq!(
            (line.component.as_deref(), line.operation),
            (Some("puppet"), None)
        );
        assert!(line.code.is_some() && line.grant.is_some());
        let [decision] = line.decisions.as_slice() else {
            panic!("{:?}", line.decisions)
        };
        assert_eq!(
            (
                decision.capability.as_str(),
                decision.verdict,
                decision.rule.as_str()
            ),
            (STEP, BoundaryVerdict::Refused, "contract")
        );
        assert!(
            decision.detail.contains("start[0].key` is 200 bytes long"),
            "{}",
            decision.detail
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_stepped_too_often_waits_and_the_ledger_says_so_once() {
    let change_grant = |name: &str, grant: &mut Grant| {
        if name == "puppet" {
            grant.limits.calls_per_minute_max = 1;
        }
    };
    let world = World::new(Setup {
        change_grant,
        ..Setup::default()
    })
    .await;
    let session = begin(&world, json!([{ "start": [{ "key": "t", "timer": 1 }] }])).await;
    until(async || !not_granted(&world).await.is_empty()).await;
    sleep(Duration::from_millis(500)).await;
    assert_eq!(
        not_granted(&world).await,
        [plain("agents.step Limited limits callsPerMinuteMax")]
    );
    assert!(world.row(session).await.open_run.is_some(), "it waits");
    assert!(world.cancel("puppet", session).await);
    world.idle(session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_code_under_two_names_has_the_limits_of_each() {
    let change_grant = |_: &str, grant: &mut Grant| grant.limits.calls_per_minute_max = 1;
    let mut setup = Setup {
        change_grant,
        ..Setup::default()
    };
    setup.components.push("twin=puppet");
    setup
        .definitions
        .push(json!({ "agentId": "twin", "displayName": "Twin", "component": "twin" }));
    let world = World::new(setup).await;
    for definition in ["puppet", "twin"] {
        let session = world.open(definition).await;
        assert_eq!(
            world
                .turn(
                    definition,
                    session,
                    &json!({ "steps": [{ "reply": "done" }] }).to_string()
                )
                .await,
            "done",
            "{definition}"
        );
    }
    assert_eq!(not_granted(&world).await, []);
}
