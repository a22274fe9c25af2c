//! Skills: tools that are used by command lines, under the rules of any call.

use agent_host_tests::process::tells;
use agent_host_tests::{Setup, World};
use domain::event::Event;
use domain::id::{OperationId, SessionId, Stream};
use domain::operation::Performer;
use domain::skill::SkillFolder;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A setup whose first agent is offered the component `effects` as a skill, in this form.
fn skilled(exposure: &str) -> Setup {
    let mut setup = Setup::default();
    setup.definitions[0]["toolExposure"] = json!(exposure);
    setup.definitions[0]["skillAllowlist"] = json!(["effects", "guide"]);
    setup.skills = vec![guide("Look first.")];
    setup
}

/// A folder of the operator's that says something.
fn guide(words: &str) -> SkillFolder {
    let text = format!("---\nname: guide\ndescription: A guide.\n---\n{words}\n");
    let files = BTreeMap::from([
        ("SKILL.md".to_owned(), text),
        ("scripts/x.sh".to_owned(), "echo x".to_owned()),
    ]);
    SkillFolder::read("guide", files).unwrap()
}

fn line(command: &str) -> Value {
    json!([{ "start": [{ "key": "b", "tool": "bash", "args": { "command": command } }] }])
}

async fn events(world: &World) -> Vec<Event> {
    let run = world.runs().await[0];
    let events = world.store().stream(Stream::Run(run), 0, 1_000).await;
    let events = events.unwrap().into_iter();
    events.filter_map(|recorded| recorded.event).collect()
}

/// The calls that command lines made, with the tools that were really to be called.
fn calls(events: &[Event]) -> Vec<(OperationId, String)> {
    let calls = events.iter().filter_map(|event| match event {
        Event::OperationContinued(continued) => continued.call.as_ref(),
        _ => None,
    });
    calls
        .filter_map(|call| match &call.started.performer {
            Performer::Tool { tool, .. } => Some((call.started.id, tool.clone())),
            _ => None,
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_by_a_command_is_on_record_before_and_after_it_like_any_other() {
    let world = World::new(skilled("skills")).await;
    let reported = world
        .play(line(
            "effects-cli look && effects-cli send --sleep 1 | head -n 1; cat /etc/passwd",
        ))
        .await;
    assert_eq!(
        reported,
        [
            "b parts look done",
            "send done",
            "[stderr]",
            "cat: /etc/passwd: No such file or directory",
            "[exit code 1]",
        ]
    );
    let effects = world.effects();
    assert_eq!(effects.len(), 4, "{effects:?}");
    let events = events(&world).await;
    let calls = calls(&events);
    let tools: Vec<&str> = calls.iter().map(|(_, tool)| tool.as_str()).collect();
    assert_eq!(tools, ["look", "send"]);
    let place = |is: &dyn Fn(&Event) -> bool| events.iter().position(is).unwrap();
    for (call, tool) in &calls {
        let begun = place(&|event| match event {
            Event::OperationContinued(it) => it
                .call
                .as_ref()
                .is_some_and(|made| made.started.id == *call),
            _ => false,
        });
        let ended = place(&|event| match event {
            Event::RunSettled(it) => it.settled.iter().any(|one| one.operation == *call),
            _ => false,
        });
        assert!(begun < ended, "{tool}");
        if tool == "send" {
            let sent = place(&|event| match event {
                Event::OperationStarted(it) => it.operation == *call,
                _ => false,
            });
            assert!(begun < sent && sent < ended);
        }
        let ledger = world.ledger().await;
        let entry = ledger.iter().find(|entry| entry.operation == Some(*call));
        let entry = entry.expect("a ledger line");
        assert_eq!(entry.tool.as_deref(), Some(tool.as_str()));
        assert_eq!(entry.component.as_deref(), Some("effects"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_shown_the_forms_that_exposure_and_lists_say() {
    for (exposure, allowlist, expected) in [
        ("tools", json!(["effects"]), "tools"),
        ("skills", json!(["effects"]), "bash"),
        ("mixed", json!(["effects"]), "bash"),
        ("mixed", json!(["guide"]), "both"),
        ("mixed", json!([]), "tools"),
        ("skills", json!(["nothing"]), "neither"),
    ] {
        let mut setup = skilled(exposure);
        setup.definitions[0]["skillAllowlist"] = allowlist;
        setup.script = r#"
[[rule]]
when = { tools = ["bash", "look"] }
reply = { text = "both" }
[[rule]]
when = { tools = ["look"] }
reply = { text = "tools" }
[[rule]]
when = { tools = ["bash"] }
reply = { text = "bash" }
[[rule]]
reply = { text = "neither" }
"#
        .to_owned();
        let world = World::new(setup).await;
        let reported = world
            .play(json!([{ "start": [{ "key": "m", "model": "x" }] }]))
            .await;
        assert_eq!(reported, [format!("m message {expected}")], "{exposure}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_reads_skills_and_is_told_that_scripts_cannot_run() {
    let world = World::new(skilled("mixed")).await;
    let reported = world
        .play(line(
            "ls /skills; tail -n 3 guide/SKILL.md; grep -c look effects/SKILL.md; guide/scripts/x.sh",
        ))
        .await
        .join("\n");
    assert!(
        reported.starts_with("b parts effects/\nguide/\n"),
        "{reported}"
    );
    tells(&reported, &["cannot be run"]);
    assert!(reported.ends_with("[exit code 127]"), "{reported}");
    assert!(world.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_limits_hold_for_commands_as_for_calls() {
    let mut setup = skilled("skills");
    setup.definitions[0]["toolDenylist"] = json!(["send"]);
    setup.definitions[0]["limits"] = json!({ "toolCallsMax": 2 });
    let world = World::new(setup).await;
    let reported = world
        .play(line(
            "effects-cli send; effects-cli look; effects-cli look || echo stopped",
        ))
        .await
        .join("\n");
    tells(
        &reported,
        &[
            "there is no tool send",
            "look done\nstopped",
            "limit-reached",
        ],
    );
    assert_eq!(world.effects().len(), 2);

    let mut setup = skilled("skills");
    setup.definitions[0]["toolDenylist"] = json!(["bash"]);
    let world = World::new(setup).await;
    let reported = world.play(line("effects-cli look")).await;
    assert!(!reported.join("\n").contains("done"), "{reported:?}");
    // Without command lines they are not offered as tools either: a denial adds nothing.
    let tool = json!([{ "start": [{ "key": "t", "tool": "look" }] }]);
    let reported = world.play(tool).await;
    assert!(reported[0].contains("TOOL_NOT_AVAILABLE"), "{reported:?}");
    assert!(world.effects().is_empty());

    // What is offered as a skill is no tool.
    let world = World::new(skilled("skills")).await;
    let reported = world
        .play(json!([{ "start": [{ "key": "t", "tool": "look" }] }]))
        .await;
    assert!(reported[0].contains("TOOL_NOT_AVAILABLE"), "{reported:?}");
    assert!(world.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_goes_on_after_a_restart_and_repeats_no_call() {
    let mut setup = skilled("skills");
    setup.definitions[0]["confirm"] = json!(["put"]);
    let world = World::new(setup).await;
    let session = world.open("puppet").await;
    let steps = json!({ "steps": line("effects-cli look && effects-cli put && effects-cli look") });
    world.say("puppet", session, &steps.to_string()).await;
    let (question, action) = world.question("puppet", session).await;
    assert_eq!(action.props["tool"], "put");
    let world = world.restart(|_| {}).await;
    let agrees = json!({ "approve": true, "call": action.props["call"] });
    world.answer("puppet", question, agrees).await.unwrap();
    world
        .replies(session, "b parts look done\nput done\nlook done\n")
        .await;
    let begun: Vec<String> = world
        .effects()
        .iter()
        .filter(|line| line.contains("begin"))
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect();
    assert_eq!(begun, ["look", "put", "look"]);
}

/// Begins a line that asks before its call, and returns the session, the question and the answer.
async fn asking(world: &World, command: &str) -> (SessionId, OperationId, Value) {
    let session = world.open("puppet").await;
    let steps = json!({ "steps": line(command) });
    world.say("puppet", session, &steps.to_string()).await;
    let (question, action) = world.question("puppet", session).await;
    let agrees = json!({ "approve": true, "call": action.props["call"] });
    (session, question, agrees)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_reads_the_skills_that_it_began_with_whatever_is_in_them_by_now() {
    let mut setup = skilled("skills");
    setup.definitions[0]["confirm"] = json!(["put"]);
    let mut world = World::new(setup).await;
    let command = "grep Look guide/SKILL.md; effects-cli put; grep Look guide/SKILL.md";
    let (session, question, agrees) = asking(&world, command).await;
    world
        .reload(|setup| setup.skills = vec![guide("Look twice.")])
        .await;
    // Nothing in memory has the old ones after a restart.
    let world = world
        .restart(|setup| setup.skills = vec![guide("Look thrice.")])
        .await;
    world.answer("puppet", question, agrees).await.unwrap();
    world
        .replies(session, "b parts Look first.\nput done\nLook first.\n")
        .await;
    let reported = world.play(line("grep Look guide/SKILL.md")).await;
    assert_eq!(reported, ["b parts Look thrice."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_that_is_taken_from_an_agent_is_gone_from_its_turn_under_way() {
    let mut setup = skilled("skills");
    setup.definitions[0]["confirm"] = json!(["put"]);
    let mut world = World::new(setup).await;
    let command = "effects-cli put; grep Look guide/SKILL.md || echo gone; effects-cli look";
    let (session, question, agrees) = asking(&world, command).await;
    world
        .reload(|setup| setup.definitions[0]["skillDenylist"] = json!(["guide"]))
        .await;
    world.answer("puppet", question, agrees).await.unwrap();
    world.idle(session).await;
    let reported = world.last_reply(session).await;
    tells(&reported, &["put done", "gone"]);
    assert!(!reported.contains("Look first."), "{reported}");
    assert!(
        reported.contains("look done"),
        "the others stay: {reported}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_cancelled_together_with_the_call_that_it_waits_for() {
    let world = World::new(skilled("skills")).await;
    let command = "effects-cli patient --later 3600000; effects-cli look";
    let reported = world
        .play(json!([
            { "start": [
                { "key": "b", "tool": "bash", "args": { "command": command } },
                { "key": "t", "timer": 500 },
            ] },
            { "cancel": ["b"] },
        ]))
        .await;
    assert_eq!(reported, ["t elapsed", "b cancelled"]);
    assert!(!world.effects().iter().any(|line| line.starts_with("look")));
}

/// A folder with files that are large for a command line.
fn big() -> SkillFolder {
    let items: Vec<Value> = (0..3_000)
        .map(|number| json!({ "name": format!("n{number}") }))
        .collect();
    let lines = (0..3_000).map(|number| format!("line {number} of a text\n"));
    let files = [
        (
            "SKILL.md",
            "---\nname: big\ndescription: Big.\n---\nBody\n".to_owned(),
        ),
        ("items.json", json!(items).to_string()),
        ("lines.txt", lines.collect()),
        ("many.txt", "a\n".repeat(100_000)),
        ("long.txt", "ab".repeat(100_000)),
        ("maps.json", format!("[{}0]", "{\"\":0},".repeat(30_000))),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text));
    SkillFolder::read("big", files.into()).unwrap()
}

/// A world whose puppet has large skills.
async fn with_big() -> World {
    let mut setup = skilled("skills");
    setup.definitions[0]["skillAllowlist"] = json!(["effects", "big"]);
    setup.skills = vec![big()];
    World::new(setup).await
}

async fn shown(world: &World, command: &str) -> String {
    let session = world.open("puppet").await;
    world.played(session, &line(command)).await
}

/// Assignments that double a text so many times.
fn doubled(name: &str, text: &str, times: usize) -> String {
    let again = format!("; {name}=${name}${name}").repeat(times);
    format!("{name}='{text}'{again}; ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_takes_time_or_memory_without_end_is_ended() {
    const MEMORY: &str = "bytes of memory";
    const DEEP: &str = "call stack exhausted";
    const LONG: &str = "a text of more than";
    let world = with_big().await;
    let inputs = "- ".repeat(4_000);
    let text = doubled("X", "a b c d ", 16);
    for (command, expected) in [
        ("jq -n '[range(1000000000)]'".to_owned(), MEMORY),
        (
            format!("echo '[1,1]' | jq '{}length'", "[.[],.[],.[]]|".repeat(20)),
            MEMORY,
        ),
        (format!("cat big/many.txt | sort -n {inputs}"), MEMORY),
        ("jq -n 'repeat(1)'".to_owned(), LONG),
        (format!("cat big/many.txt | cat {inputs}"), LONG),
        (format!("{text} X=$X$X; X=$X$X; echo $X"), LONG),
        (format!("jq -n '{}'", "[".repeat(2_000)), DEEP),
        ("jq -n 'def f: 1+f; f'".to_owned(), DEEP),
        (format!("jq -n '0{}1'", "-".repeat(2_000)), DEEP),
    ] {
        let shown = shown(&world, &command).await;
        assert!(shown.contains(expected), "{command}: {shown}");
        tells(&shown, &["[exit code 125]"]);
    }
    // These are much work, and end by themselves within the limits, or in one of them.
    let search = "grep -cE '[ab]*a[ab]{1000}c' big/long.txt; ".repeat(20);
    let path = doubled("P", "././././", 8);
    for command in [
        search,
        format!("{path} grep -oH . \"$P\"big/many.txt"),
        format!("ls -R {}", ". ".repeat(4_000)),
        format!("grep -rl a {}", ". ".repeat(4_000)),
        format!("jq -s length {}", "big/maps.json ".repeat(500)),
        "jq -n '[range(9000)]-[range(9000)]|length'".to_owned(),
        format!("jq -n '{}1'", "1|".repeat(1_000)),
        format!("echo {}a{}", "$(echo ".repeat(4), ")".repeat(4)),
        "echo a; ".repeat(63) + "echo a",
    ] {
        let shown = shown(&world, &command).await;
        assert!(shown.starts_with("b parts "), "{command}: {shown}");
    }
    // Lines of an ordinary size have room.
    for (command, expected) in [
        (
            "cat -n big/lines.txt | tail -n 1",
            "  3000\tline 2999 of a text\n",
        ),
        ("jq -r '.[].name' big/items.json | wc -l", "3000\n"),
        (
            "jq '[.[]|select(.name|test(\"^n1\"))]|length' big/items.json",
            "1111\n",
        ),
        ("grep -c of big/lines.txt", "3000\n"),
        ("sort -r big/lines.txt | head -n 1", "line 999 of a text\n"),
    ] {
        assert_eq!(
            shown(&world, command).await,
            format!("b parts {expected}"),
            "{command}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_works_too_long_is_ended_and_keeps_what_it_printed() {
    let world = with_big().await;
    let line = "echo first; effects-cli look; (echo second; jq -n 'def f: f; f'); echo third";
    let shown = shown(&world, line).await;
    tells(
        &shown,
        &[
            "b parts first\nlook done\nsecond\n",
            "the line takes too long",
            "the call that it made stands",
            "[exit code 125]",
        ],
    );
    assert!(!shown.contains("third"), "{shown}");
}
