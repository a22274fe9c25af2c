//! The conversations during which the process dies. Every kind of work and every end occurs in
//! them.

use super::client::Client;
use super::client::{Fate, Ledger, Sent};
use anyhow::Result;
use serde_json::{Value, json};

/// Turns of different kinds of work.
const TURNS: usize = 4;
/// A timer, in milliseconds, that comes when its session sleeps. A session that is still at work
/// would see a shorter one itself, and the watch over timers would have nobody to wake.
const ASLEEP_MS: u64 = 250;

/// A conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Conversation {
    /// Two sessions side by side, with work of every effect class, several segments, timers,
    /// another agent, models, recall.
    Work,
    /// Questions of the agent and of a tool, messages during a waiting turn, a turn cancelled in a
    /// call.
    People,
    /// A limit, a structured session that is completed and one that is terminated, a dead letter
    /// that is requeued.
    Ends,
    /// Agents that talk: messages that are waited for and that are not, a reply to the caller
    /// before the end, and work whose reply comes late and begins a turn.
    Exchanges,
    /// Work that is waited for and is never done: a worker whose step fails, and an agent that is
    /// archived before it takes up a message.
    Graves,
    /// A model that is asked again, because what it replies never fits.
    Repairs,
    /// Words that begin chats, each under a key.
    Begins,
    /// A turn, and a backup.
    Backup,
    /// A turn, damage to what follows from the events, and its repair, while another turn is taken.
    Rebuild,
    /// A turn of so many events that its run gets a snapshot.
    Long,
}

impl Conversation {
    pub(super) async fn hold(self, client: &mut Client, ledger: &mut Ledger) -> Result<()> {
        match self {
            Self::Work => work(client, ledger).await,
            Self::People => people(client, ledger).await,
            Self::Ends => ends(client, ledger).await,
            Self::Exchanges => exchanges(client, ledger).await,
            Self::Graves => graves(client, ledger).await,
            Self::Repairs => {
                let asks =
                    json!({ "key": "model", "model": "be kind", "schema": { "type": "object" } });
                one_turn(
                    client,
                    ledger,
                    &json!({ "steps": [{ "start": [asks] }] }).to_string(),
                )
                .await
            }
            Self::Begins => {
                for definition in ["puppet", "other", "gone"] {
                    let exchange = client.begin(ledger, definition, &says("hi")).await?;
                    client.idle(&exchange).await?;
                }
                Ok(())
            }
            Self::Backup => {
                one_turn(client, ledger, &turn(0)).await?;
                client.back_up().await
            }
            Self::Rebuild => {
                one_turn(client, ledger, &turn(0)).await?;
                client.damage()?;
                let exchange = client.open("puppet").await?;
                client
                    .say(ledger, Sent::new(&exchange, &turn(1), 0))
                    .await?;
                client.rebuild().await?;
                client.idle(&exchange).await
            }
            Self::Long => {
                let steps: Vec<Value> = (0..40)
                    .map(|step| {
                        json!({ "start": [{ "key": format!("send-{step}"), "tool": "send" }] })
                    })
                    .collect();
                one_turn(client, ledger, &json!({ "steps": steps }).to_string()).await
            }
        }
    }
}

/// Turns of all kinds of work, one after the other. Keys carry the number, because a message that
/// arrives at the end of a turn becomes part of it.
pub(in crate::all) fn turn(number: usize) -> String {
    let key = |name: &str| format!("{name}-{number}");
    let reply = json!({ "steps": [{ "reply": "hi" }] }).to_string();
    let turn = match number % TURNS {
        0 => json!({ "steps": [{ "until": "all", "start": [
            { "key": key("look"), "tool": "look" }, { "key": key("put"), "tool": "put" },
            { "key": key("send"), "tool": "send", "args": { "sleep": 5 } },
        ] }] }),
        1 => json!({
            "steps": [
                { "start": [{ "key": key("timer"), "timer": 20 }] },
                {
                    "until": "all",
                    "start": [
                        { "key": key("patient"), "tool": "patient" },
                        { "key": key("send"), "tool": "send" },
                    ],
                },
            ],
        }),
        2 => json!({ "steps": [
            { "start": [{ "key": key("agent"), "agent": "other", "text": reply }] },
            { "start": [{ "key": key("model"), "model": "be kind" }] },
        ] }),
        _ => json!({
            "steps": [
                {
                    "effects": [
                        { "remember": "the zebra is striped" }, { "state": { "number": number } },
                    ],
                    "start": [
                        { "key": key("recall"), "recall": "zebra" },
                        { "key": key("slow"), "tool": "look", "args": { "sleep": 200 } },
                    ],
                },
                {
                    "cancel": [key("slow")], "until": "all",
                    "start": [{ "key": key("timer"), "timer": 5 }],
                },
            ],
        }),
    };
    turn.to_string()
}

async fn one_turn(client: &mut Client, ledger: &mut Ledger, text: &str) -> Result<()> {
    let exchange = client.open("puppet").await?;
    client.say(ledger, Sent::new(&exchange, text, 0)).await?;
    client.idle(&exchange).await
}

async fn work(client: &mut Client, ledger: &mut Ledger) -> Result<()> {
    let exchanges = [client.open("puppet").await?, client.open("puppet").await?];
    client.follow(&exchanges[0]);
    for number in 0..TURNS {
        for exchange in &exchanges {
            client
                .say(ledger, Sent::new(exchange, &turn(number), number))
                .await?;
        }
        for exchange in &exchanges {
            client.idle(exchange).await?;
        }
    }
    Ok(())
}

async fn people(client: &mut Client, ledger: &mut Ledger) -> Result<()> {
    let exchange = client.open("puppet").await?;
    client.follow(&exchange);
    let questions = json!({ "steps": [{ "until": "all", "start": [
        { "key": "question", "client": "question" }, { "key": "asks", "tool": "asks" },
    ] }] });
    client
        .say(ledger, Sent::new(&exchange, &questions.to_string(), 0))
        .await?;
    client.answer_until_idle(ledger, &exchange).await?;

    let long = json!({ "key": "long", "timer": 3_600_000 });
    let hears = json!({ "steps": [
        { "start": [long], "hear": true },
        { "cancel": ["long"], "until": "all", "start": [{ "key": "soon", "timer": ASLEEP_MS }] },
    ] });
    client
        .say(ledger, Sent::new(&exchange, &hears.to_string(), 1))
        .await?;
    // Words that wait together begin one turn, and this one is to hear the next.
    client
        .until(&exchange, |session| {
            !session["run_id"].is_null() && session["waiting"] == 0
        })
        .await?;
    client
        .say(ledger, Sent::new(&exchange, "are you there?", 2))
        .await?;
    client.idle(&exchange).await?;

    let waits = json!({
        "steps": [{
            "until": "all",
            "start": [long, { "key": "sent", "tool": "send", "args": { "sleep": 150 } }],
        }],
    });
    client
        .say(
            ledger,
            Sent::new(&exchange, &waits.to_string(), 3).fated(Fate::Aborted),
        )
        .await?;
    client.cancel(&exchange).await?;
    client.idle(&exchange).await
}

async fn ends(client: &mut Client, ledger: &mut Ledger) -> Result<()> {
    let limited = client.open("limited").await?;
    let ticks: Vec<Value> = (0..3)
        .map(|tick| json!({ "start": [{ "key": format!("tick-{tick}"), "timer": 1 }] }))
        .collect();
    client
        .say(
            ledger,
            Sent::new(&limited, &json!({ "steps": ticks }).to_string(), 0).fated(Fate::Limited),
        )
        .await?;
    client.idle(&limited).await?;

    let lesson = client
        .begin_lesson(ledger, "completed", Fate::Completed)
        .await?;
    client.follow(&lesson);
    client.answer_until_idle(ledger, &lesson).await?;
    let lesson = client
        .begin_lesson(ledger, "terminated", Fate::Aborted)
        .await?;
    client.terminate(&lesson).await?;

    let exchange = client.open("puppet").await?;
    client
        .say(
            ledger,
            Sent::new(
                &exchange,
                &json!({ "steps": [{ "trap": "on purpose" }] }).to_string(),
                0,
            )
            .fated(Fate::Dead),
        )
        .await?;
    client.idle(&exchange).await?;
    client.requeue(ledger).await?;
    client.idle(&exchange).await
}

fn says(reply: &str) -> String {
    json!({ "steps": [{ "reply": reply }] }).to_string()
}

fn message(key: &str, arguments: &Value) -> Value {
    json!({ "key": key, "tool": "agents_message", "args": arguments })
}

fn dispatch(key: &str, arguments: &Value) -> Value {
    json!({ "key": key, "tool": "dispatch_to_agent", "args": arguments })
}

async fn exchanges(client: &mut Client, ledger: &mut Ledger) -> Result<()> {
    let exchange = client.open("puppet").await?;
    client.follow(&exchange);
    let content = json!({ "content": "before the end" });
    let early = json!({ "steps": [
        { "start": [{ "key": "early", "tool": "reply_to_caller", "args": content }] },
        { "start": [{ "key": "timer", "timer": 30 }] },
        { "reply": "to nobody" },
    ] });
    let late = json!({ "steps": [
        { "start": [{ "key": "timer", "timer": 150 }] },
        { "reply": "by and by" },
    ] });
    let turn = json!({
        "steps": [
            {
                "until": "all",
                "start": [
                    message("sync", &json!({
                        "agentId": "other", "content": says("at once"), "session": "create",
                    })),
                    dispatch("early", &json!({
                        "target": "other", "content": early.to_string(), "wait": true,
                    })),
                ],
            },
            {
                "until": "all",
                "start": [
                    message("async", &json!({
                        "agentId": "other", "content": says("by message"), "mode": "async",
                    })),
                    dispatch("late", &json!({ "target": "other", "content": late.to_string() })),
                ],
            },
        ],
    });
    client
        .say(ledger, Sent::new(&exchange, &turn.to_string(), 0))
        .await?;
    client
        .until_heard(
            &exchange,
            &["at once", "before the end", "by message", "by and by"],
        )
        .await
}

async fn graves(client: &mut Client, ledger: &mut Ledger) -> Result<()> {
    let exchange = client.open("puppet").await?;
    client.follow(&exchange);
    let trap = json!({ "steps": [{ "trap": "on purpose" }] }).to_string();
    let never = says("never");
    ledger.handed = vec![(trap.clone(), Fate::Dead), (never.clone(), Fate::Dead)];
    let waits = json!({
        "steps": [{
            "start": [
                dispatch("dig", &json!({ "target": "other", "content": trap, "wait": true })),
            ],
        }],
    });
    client
        .say(ledger, Sent::new(&exchange, &waits.to_string(), 0))
        .await?;
    client.until_heard(&exchange, &["dig failed"]).await?;

    let gone = client.open("gone").await?;
    let long = json!({ "steps": [{ "start": [{ "key": "long", "timer": 3_600_000 }] }] });
    client
        .say(
            ledger,
            Sent::new(&gone, &long.to_string(), 0).fated(Fate::Aborted),
        )
        .await?;
    client.until_at_work(&gone).await?;
    let asks = message(
        "ask",
        &json!({ "agentId": "gone", "content": never, "session": gone.id() }),
    );
    client
        .say(
            ledger,
            Sent::new(
                &exchange,
                &json!({ "steps": [{ "start": [asks] }] }).to_string(),
                1,
            ),
        )
        .await?;
    client
        .until(&gone, |session| session["waiting"] == 1)
        .await?;
    client.archive(&gone).await?;
    client.idle(&gone).await?;
    client
        .until_heard(&exchange, &["ask failed agent-message-failed", "archived"])
        .await
}
