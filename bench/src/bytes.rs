//! Bytes of a turn in the database, all tables and indexes together.

use crate::measure::Pair;
use crate::report::{Bar, Row};
use crate::size::Size;
use agent_host_tests::{Setup, World};
use anyhow::{Context, ensure};
use domain::id::SessionId;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use std::time::Duration;

/// The agent that is talked to, and the same with a long prompt.
const PLAIN: &str = "assistant";
const PROMPTED: &str = "prompted";
/// Turns of one word each way, and of each other kind.
const TURNS: usize = 2_000;
const OTHER_TURNS: usize = 200;
/// Turns of one session.
const SESSION_TURNS: usize = 100;
/// Characters of a long message, and of a long prompt.
const MESSAGE_CHARS: usize = 4_096;
const PROMPT_CHARS: usize = 8_192;
/// Prose of which long messages are made.
const PROSE: &str = concat!(
    include_str!("../../docs/guide/triggers-and-connectors.md"),
    include_str!("../../docs/guide/tools-and-grants.md"),
    include_str!("../../docs/guide/operating.md"),
    include_str!("../../docs/guide/command-line-agents.md"),
);
/// Bytes of a turn of ten calls that are words: the tool's name and arguments, and the results.
const WORDS_OF_CALLS: usize = 10 * ("look".len() + "{}".len() + "did it".len());

/// The replies of the model, by what was said to it.
const SCRIPT: &str = r#"
[[rule]]
when = { last = "tool" }
reply = { text = "Done." }

[[rule]]
when = { user = "^ten$" }
reply = { calls = [
    { tool = "look", arguments = {} }, { tool = "look", arguments = {} }, { tool = "look", arguments = {} },
    { tool = "look", arguments = {} }, { tool = "look", arguments = {} }, { tool = "look", arguments = {} },
    { tool = "look", arguments = {} }, { tool = "look", arguments = {} }, { tool = "look", arguments = {} },
    { tool = "look", arguments = {} },
] }

[[rule]]
when = { user = "^say:((?s:.)*)$" }
reply = { text = "$1" }

[[rule]]
reply = { text = "Hello." }
"#;

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let world = world().await;
    let bench = Bench { world };
    let few = size.scaled(OTHER_TURNS).max(SESSION_TURNS / 10);
    // The agents are made, and what is stored once is stored.
    for agent in [PLAIN, PROMPTED] {
        bench.turns(agent, 1, |_| "hello".to_owned()).await?;
    }
    let hello = |_| "hello".to_owned();
    let (word, events) = bench.turns(PLAIN, size.scaled(TURNS), hello).await?;
    let (prompted, _) = bench.turns(PROMPTED, few, hello).await?;
    let (again, _) = bench.turns(PLAIN, few, hello).await?;
    let (message, _) = bench.turns(PLAIN, few, prose).await?;
    let reply = |turn| format!("say:{}", prose(turn + OTHER_TURNS));
    let (reply, _) = bench.turns(PLAIN, few, reply).await?;
    let (calls, _) = bench.turns(PLAIN, few, |_| "ten".to_owned()).await?;
    bench.world.broker.shutdown(Duration::ZERO).await;
    let row = |name: &str, ours: f64, peer: usize, most: f64| {
        let peer = peer as f64;
        Row::new(name, "bytes", Pair { ours, peer }, Bar::AtMost(most))
    };
    let words = "hello".len() + "Hello.".len();
    Ok(vec![
        row(
            "a turn of one word each way / the words",
            word,
            words,
            6_144.0,
        ),
        Row::new(
            "its events",
            "events",
            Pair {
                ours: events,
                peer: 5.0,
            },
            Bar::AtMost(5.0),
        ),
        row(
            "what a message of 4 KiB adds / the message",
            message - again,
            MESSAGE_CHARS,
            6_656.0,
        ),
        row(
            "what a reply adds that repeats such a message / both",
            reply - again,
            2 * MESSAGE_CHARS,
            2.0 * 6_656.0,
        ),
        row(
            "what a system prompt of 8 KiB adds to a later turn / the prompt",
            prompted - again,
            PROMPT_CHARS,
            64.0,
        ),
        row(
            "a turn with ten calls of a tool, without its words / the words",
            calls - WORDS_OF_CALLS as f64,
            WORDS_OF_CALLS,
            25_600.0,
        ),
    ])
}

struct Bench {
    world: World,
}

impl Bench {
    /// Takes turns in sessions of their own, and returns the bytes and the events that the database
    /// has more for each. Opening the sessions is not counted.
    async fn turns(
        &self,
        agent: &str,
        turns: usize,
        words: impl Fn(usize) -> String,
    ) -> anyhow::Result<(f64, f64)> {
        let mut sessions = Vec::new();
        for _ in 0..turns.div_ceil(SESSION_TURNS) {
            let session = self.world.open(agent).await;
            self.turn(agent, session, "hello").await?;
            sessions.push(session);
        }
        let before = self.stored().await?;
        for turn in 0..turns {
            let session = sessions.get(turn / SESSION_TURNS).context("a session")?;
            self.turn(agent, *session, &words(turn)).await?;
        }
        let after = self.stored().await?;
        let each = |after: i64, before: i64| (after - before) as f64 / turns as f64;
        Ok((each(after.0, before.0), each(after.1, before.1)))
    }

    async fn turn(&self, agent: &str, session: SessionId, words: &str) -> anyhow::Result<()> {
        let mut durable = self.world.store().durable();
        let message = self.world.message(agent, session, words, None);
        self.world.broker.messages().post(message).await?;
        loop {
            durable.borrow_and_update();
            let row = self.world.store().session(session).await?;
            if row.is_some_and(|row| row.open_run.is_none() && row.waiting == 0) {
                return Ok(());
            }
            durable.changed().await?;
        }
    }

    /// Bytes of the tables and indexes, and the number of events, once all words are in the index.
    async fn stored(&self) -> anyhow::Result<(i64, i64)> {
        let database = self.world.dir.path().join("data").join("store.db");
        ensure!(database.exists(), "there is no `{}`", database.display());
        let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let unindexed = "SELECT count(*) FROM recall r WHERE r.id > coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'indexed'), 0)";
        while connection.query_row(unindexed, [], |row| row.get::<_, i64>(0))? > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let bytes = "SELECT sum(pgsize) FROM dbstat";
        let events = "SELECT count(*) FROM events";
        Ok((
            connection.query_row(bytes, [], |row| row.get(0))?,
            connection.query_row(events, [], |row| row.get(0))?,
        ))
    }
}

/// Prose of 4 KiB, other for each turn.
fn prose(turn: usize) -> String {
    let words = PROSE.split_whitespace().cycle().skip(turn * 97);
    let mut text = format!("{turn}:");
    for word in words {
        if text.len() + 1 + word.len() > MESSAGE_CHARS {
            return text;
        }
        text.push(' ');
        text.push_str(word);
    }
    text
}

async fn world() -> World {
    let prompt: String = PROSE.chars().take(PROMPT_CHARS).collect();
    World::new(Setup {
        components: vec![PLAIN, "effects"],
        definitions: vec![
            json!({ "agentId": PLAIN, "displayName": "Assistant", "toolAllowlist": ["look"] }),
            json!({
                "agentId": PROMPTED, "displayName": "Prompted", "component": PLAIN,
                "toolAllowlist": ["look"], "systemPrompt": prompt,
            }),
        ],
        script: SCRIPT.to_owned(),
        ..Setup::default()
    })
    .await
}
