//! The lines of the ledger, pinned.

use super::super::tests::{begun, stepped};
use super::audit;
use domain::definition::DefinitionId;
use domain::digest::Digest;
use domain::egress::{Hop, Method, Scheme, Traffic};
use domain::event::{
    BoundaryDecided, BoundaryDecision, BoundaryVerdict, ComponentAdmitted, Event, Recorded,
    RunStarted, Subject,
};
use domain::grant::OwnedFolder;
use domain::id::{AgentId, EventId, OperationId, RunId, SessionId};
use domain::ruling::Rule;
use domain::time::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

fn recorded(event: Event) -> Recorded {
    let id = Uuid::from_u128(7);
    Recorded {
        position: 42,
        stream: "run/x".to_owned(),
        version: 3,
        id: EventId(id),
        kind: String::new(),
        event: Some(event),
        subject: Subject {
            agent: Some(AgentId(id)),
            session: Some(SessionId(id)),
            run: Some(RunId(id)),
        },
        actor: "agent:reader".to_owned(),
        causation: None,
        correlation: None,
        time: Timestamp(1_700_000_000_000),
        hash: Digest([0; 32]),
    }
}

#[test]
fn a_decision_about_files_names_the_folder_of_its_own_that_the_call_used() {
    let folder = |at: &str, granted: &str, folder: &str| OwnedFolder {
        at: at.to_owned(),
        granted: granted.to_owned(),
        folder: folder.to_owned(),
    };
    let folders = [
        folder("/w", "/srv/{user}", "/srv/ada"),
        folder("/w/own", "/tmp/{session}", "/tmp/7"),
    ];
    let shown = |capability: &str, detail: &str| {
        let decision = BoundaryDecision {
            capability: capability.to_owned(),
            verdict: BoundaryVerdict::Granted,
            rule: Rule::Granted,
            times: 1,
            detail: detail.to_owned(),
        };
        let used = super::used_folder(&decision, &folders)?;
        Some((used.folder.clone(), used.granted.clone()))
    };
    let pair = |folder: &str, granted: &str| Some((folder.to_owned(), granted.to_owned()));
    assert_eq!(shown("files.read", "/w"), pair("/srv/ada", "/srv/{user}"));
    assert_eq!(
        shown("files.write", "/w/own/a"),
        pair("/tmp/7", "/tmp/{session}")
    );
    assert_eq!(
        shown("files.read", "/w/owner"),
        pair("/srv/ada", "/srv/{user}")
    );
    assert_eq!(shown("files.read", "/wide/a"), None);
    assert_eq!(shown("net.http", "/w/a"), None);
}

#[test]
fn the_lines_of_a_call_say_who_did_what_with_which_code_under_which_grant() {
    let decision = |capability: &str, verdict, rule, times| BoundaryDecision {
        capability: capability.to_owned(),
        verdict,
        rule,
        times,
        detail: "/workspace/a".to_owned(),
    };
    let hop = Hop {
        method: Method::Get,
        scheme: Some(Scheme::Https),
        host: Some("example.com".to_owned()),
        port: Some(443),
        path: Some("/a".to_owned()),
        status: Some(200),
        verdict: "done".to_owned(),
        bytes_in: 10,
        bytes_out: 20,
        ms: 5,
        times: 1,
    };
    let run = RunId(Uuid::from_u128(7));
    let decided = BoundaryDecided {
        run: Some(run),
        operation: Some(OperationId::mint(run, 1, "t")),
        segment: 0,
        user_id: Some("ada".parse().unwrap()),
        definition: DefinitionId("reader".to_owned()),
        tool: Some("read_file".to_owned()),
        component: Some("files".to_owned()),
        code: Some(Digest([1; 32])),
        version: None,
        grant: Some(Digest([2; 32])),
        decisions: vec![
            decision("files.read", BoundaryVerdict::Granted, Rule::Granted, 3),
            decision(
                "files.write",
                BoundaryVerdict::Refused,
                Rule::CapabilityDenylist,
                1,
            ),
        ],
        left_out: 2,
        folders: Vec::new(),
        egress: Traffic { hops: vec![hop] },
        time: Timestamp(1_700_000_000_000),
    };
    let golden: Vec<Value> = include_str!("golden.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let Event::RunStepped(mut step) = stepped(Vec::new(), Vec::new(), Vec::new()) else {
        panic!("a step")
    };
    step.ledger = vec![decided.clone()];
    let begun = RunStarted {
        first_step: Some(step.clone()),
        ..begun()
    };
    // Alone, in a step, and in the first step of a run.
    for event in [
        Event::BoundaryDecided(Box::new(decided)),
        Event::RunStepped(step),
        Event::RunStarted(Box::new(begun)),
    ] {
        let lines = audit(&recorded(event));
        let lines: Vec<Value> = lines.iter().map(|line| json!(line)).collect();
        assert_eq!(lines, golden);
    }
}

#[test]
fn a_component_that_is_admitted_has_a_line_with_its_code_and_its_grant() {
    let admitted = ComponentAdmitted {
        component: "files".to_owned(),
        code: Digest([1; 32]),
        version: Some("0.2.0".to_owned()),
        grant: Digest([2; 32]),
        described: Digest([3; 32]),
        replaces: Some(Digest([4; 32])),
        time: Timestamp(1_700_000_000_000),
    };
    let lines = audit(&recorded(Event::ComponentAdmitted(admitted)));
    let [line] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    let line = serde_json::to_value(line).unwrap();
    assert_eq!(
        (&line["kind"], &line["component"], &line["version"]),
        (&json!("admission"), &json!("files"), &json!("0.2.0"))
    );
    assert_eq!(line["code"], Digest([1; 32]).reference());
    assert_eq!(line["grant"], Digest([2; 32]).reference());
    assert_eq!(
        line["detail"],
        format!(
            "not what was admitted before ({}), and not pinned",
            Digest([4; 32]).reference()
        )
    );
}
