//! The cost of writing the ledger: the commit of an outcome with its line of the ledger, beside the
//! commit of the outcome alone.

use crate::measure::{Pair, in_turns, mean_us};
use crate::report::{Bar, Row};
use crate::thread::new;
use crate::view::NOON;
use domain::definition::DefinitionId;
use domain::digest::Digest;
use domain::egress::{Hop, Method, Scheme, Traffic};
use domain::event::{
    BoundaryDecided, BoundaryDecision, BoundaryVerdict, Event, PluginEmitted, Subject,
};
use domain::id::{RunId, SessionId, Stream};
use domain::ruling::Rule;
use serde_json::json;
use store::{Commit, Expected, Options, Store};
use uuid::Uuid;

/// Commits of one measurement, one after the other.
const COMMITS: u32 = 500;

/// The rows of `boundary` that are about the store.
///
/// # Errors
/// The store's.
pub(crate) async fn run() -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(&folder.path().join("data"), Options::default())?;
    let commits = in_turns(
        async || committed(&store, true).await,
        async || committed(&store, false).await,
    )
    .await?;
    store.close().await;
    let added = Pair {
        ours: commits.ours - commits.peer,
        peer: 1.0,
    };
    let bytes = Pair {
        ours: serde_json::to_vec(&line(RunId(Uuid::now_v7())))?.len() as f64,
        peer: 1.0,
    };
    Ok(vec![
        Row::new(
            "outcome's commit with ledger line / without",
            "µs",
            commits,
            Bar::Reported,
        ),
        Row::new(
            "what the ledger's line adds to the commit",
            "µs",
            added,
            Bar::Reported,
        ),
        Row::new("bytes of such a line", "bytes", bytes, Bar::Reported),
    ])
}

async fn committed(store: &Store, with_line: bool) -> anyhow::Result<f64> {
    let stream = Stream::Session(SessionId(Uuid::new_v4()));
    mean_us(COMMITS, async || {
        let run = RunId(Uuid::now_v7());
        let outcome = Event::PluginEmitted(PluginEmitted {
            name: "plugin.bench.done".to_owned(),
            data: json!({ "parts": "x".repeat(200) }),
        });
        let events = std::iter::once(outcome).chain(with_line.then(|| line(run)));
        store
            .commit(
                Commit::new().append(
                    stream,
                    Expected::Any,
                    events
                        .map(|event| {
                            new(
                                event,
                                Subject {
                                    run: Some(run),
                                    ..Subject::default()
                                },
                            )
                        })
                        .collect(),
                ),
            )
            .await?;
        Ok(())
    })
    .await
}

/// Returns the ledger line of a call that read a file, and sent a request with a secret.
fn line(run: RunId) -> Event {
    let decision = |capability: &str, times: u64, detail: &str| BoundaryDecision {
        capability: capability.to_owned(),
        verdict: BoundaryVerdict::Granted,
        rule: Rule::Granted,
        times,
        detail: detail.to_owned(),
    };
    let mut egress = Traffic::default();
    egress.add(Hop {
        method: Method::Get,
        scheme: Some(Scheme::Https),
        host: Some("api.example.com".to_owned()),
        port: Some(443),
        path: Some("/v1/things".to_owned()),
        status: Some(200),
        verdict: "done".to_owned(),
        bytes_in: 4_096,
        bytes_out: 512,
        ms: 80,
        times: 1,
    });
    Event::BoundaryDecided(Box::new(BoundaryDecided {
        run: Some(run),
        operation: None,
        segment: 0,
        user_id: None,
        definition: DefinitionId("assistant".to_owned()),
        tool: Some("web_fetch".to_owned()),
        component: Some("web".to_owned()),
        code: Some(Digest::of(b"code")),
        version: None,
        grant: Some(Digest::of(b"grant")),
        decisions: vec![
            decision("files.read", 12, "/data/notes.md"),
            decision("net.http", 1, "GET api.example.com/v1/things"),
            decision(
                "secrets.use",
                1,
                "key -> api.example.com header authorization",
            ),
        ],
        left_out: 0,
        folders: Vec::new(),
        egress,
        time: NOON,
    }))
}
