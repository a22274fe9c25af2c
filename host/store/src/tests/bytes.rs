//! The size of a turn in the database, by table and index.

use super::sample::{
    NOON, Sample, ada, agent, message, new, run_ended, run_started, session, stepped, timer,
    turn_after, turn_committed,
};
use crate::sql::Columns;
use crate::{Commit, Expected};
use domain::definition::DefinitionId;
use domain::digest::Digest;
use domain::egress::Traffic;
use domain::event::{
    BoundaryDecided, BoundaryDecision, BoundaryVerdict, Event, InputAccepted, NewEvent, Source,
    Subject,
};
use domain::id::{InputId, RunId, Stream};
use domain::message::{Draft, Role};
use domain::ruling::{MODEL_CALL, Rule};
use uuid::Uuid;

/// Turns that are counted.
const TURNS: u64 = 400;
/// Bytes of a turn of one word each way: the limit of all tables and indexes together.
const BYTES_OF_TURN_MAX: u64 = 6_600;
/// Characters of a long message, and the limit of the bytes that it adds with its full text.
const MESSAGE_CHARS: usize = 4_096;
const BYTES_OF_MESSAGE_MAX: u64 = 6_656;
/// Prose of which long messages are made.
const PROSE: &str = concat!(
    include_str!("../../../../docs/guide/triggers-and-connectors.md"),
    include_str!("../../../../docs/guide/tools-and-grants.md"),
    include_str!("../../../../docs/guide/operating.md"),
);

/// Turns with the events and ids that the broker gives them: a message, one call, one word.
async fn take_turns(sample: &Sample, turns: u64, said: impl Fn(u64) -> String) {
    let mut last = None;
    for turn in 0..turns {
        let words = said(turn);
        let run = RunId(Uuid::now_v7());
        let input = InputId(Uuid::now_v7());
        let first = last
            .as_ref()
            .map_or(1, |turn: &domain::turn::TurnNode| turn.last_message + 1);
        let said = message(first, Role::User, &words);
        let reply = message(first + 1, Role::Assistant, "hello");
        let node = turn_after(
            &sample.store,
            last.as_ref(),
            run,
            &[said.clone(), reply.clone()],
        )
        .await;
        let accepted = Event::InputAccepted(InputAccepted {
            message: Some(Draft::text(Role::User, "api", &words)),
            user_id: ada(),
            ..InputAccepted::of(session(1), input, Source::Api, NOON)
        });
        let Event::RunStarted(mut started) = run_started(run, 1, last.as_ref(), vec![input]) else {
            panic!("a start")
        };
        let config = &mut started.resolved_config;
        config.settings = Digest::of(b"settings");
        config.tools = Digest::of(b"tools");
        config.peers = Digest::of(b"peers");
        config.ceiling = Digest::of(b"ceiling");
        let mut call = stepped(run, vec![said], Vec::new(), vec![timer(run, "model", NOON)]);
        let mut end = stepped(run, Vec::new(), vec![reply], Vec::new());
        end.basis.documents.scene = Digest::of(b"scene");
        call.ledger = vec![asked_a_model(run)];
        started.first_step = Some(Box::new(call));
        let of_run = vec![
            Event::RunStarted(started),
            Event::RunStepped(Box::new(end)),
            run_ended(run, 1, node.id),
        ];
        let subject = Subject {
            agent: Some(agent(1)),
            session: Some(session(1)),
            run: Some(run),
        };
        let about = |event| NewEvent {
            id: domain::id::EventId(Uuid::now_v7()),
            subject,
            actor: "agent:assistant".to_owned(),
            correlation: Some(input),
            ..new(event)
        };
        let accept = NewEvent {
            id: domain::id::EventId(Uuid::now_v7()),
            subject: Subject {
                run: None,
                ..subject
            },
            correlation: Some(input),
            ..new(accepted)
        };
        let commit = Commit::new()
            .append(Stream::Session(session(1)), Expected::Any, vec![accept])
            .append(
                Stream::Run(run),
                Expected::New,
                of_run.into_iter().map(about).collect(),
            )
            .append(
                Stream::Session(session(1)),
                Expected::Any,
                vec![about(turn_committed(1, &node))],
            );
        sample.commit(commit).await.unwrap();
        last = Some(node);
    }
}

/// The ledger's entry of a step that asks a model.
fn asked_a_model(run: RunId) -> BoundaryDecided {
    BoundaryDecided {
        run: Some(run),
        operation: None,
        segment: 0,
        definition: DefinitionId("assistant".to_owned()),
        user_id: Some(ada()),
        tool: None,
        component: Some("assistant".to_owned()),
        code: Some(Digest::of(b"component")),
        version: None,
        grant: Some(Digest::of(b"grant")),
        decisions: vec![BoundaryDecision {
            capability: MODEL_CALL.to_owned(),
            verdict: BoundaryVerdict::Granted,
            rule: Rule::Granted,
            times: 1,
            detail: "default".to_owned(),
        }],
        left_out: 0,
        folders: Vec::new(),
        egress: Traffic::default(),
        time: NOON,
    }
}

/// The bytes of all tables and indexes, and a list of the largest.
async fn bytes_of(said: impl Fn(u64) -> String) -> (u64, String) {
    let sample = Sample::begun().await;
    take_turns(&sample, TURNS, said).await;
    let index = sample.store.recall(agent(1), None, "hello", 1);
    index.await.unwrap();
    sample.close().await;
    let connection = sample.connection();
    let text =
        "SELECT name, sum(pgsize), sum(payload) FROM dbstat GROUP BY name ORDER BY 2 DESC, 1";
    let mut statement = connection.prepare(text).unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut all = 0;
    let mut table = String::new();
    while let Some(row) = rows.next().unwrap() {
        let bytes = row.uint(1).unwrap();
        let payload = row.uint(2).unwrap();
        all += bytes;
        if bytes / TURNS >= 20 {
            table += &format!(
                "\n{:8} {:8} {}",
                bytes / TURNS,
                payload / TURNS,
                row.text(0).unwrap()
            );
        }
    }
    println!("{table}\n{:8} all", all / TURNS);
    (all / TURNS, table)
}

/// Prose of 4 KiB, other for each turn.
fn prose(turn: u64) -> String {
    let places = usize::try_from(turn).unwrap() * 97;
    let mut text = format!("{turn}:");
    for word in PROSE.split_whitespace().cycle().skip(places) {
        if text.len() + 1 + word.len() > MESSAGE_CHARS {
            break;
        }
        text.push(' ');
        text.push_str(word);
    }
    text
}

#[tokio::test]
async fn a_turn_and_a_long_message_take_few_bytes() {
    let (turn, table) = bytes_of(|_| "hello".to_owned()).await;
    assert!(turn <= BYTES_OF_TURN_MAX, "{turn} bytes a turn:{table}");
    let (long, table) = bytes_of(prose).await;
    let message = long - turn;
    assert!(
        message <= BYTES_OF_MESSAGE_MAX,
        "{message} bytes a message:{table}"
    );
}
