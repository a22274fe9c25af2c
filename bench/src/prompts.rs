//! System prompts: making one of much, and what its sections add to a turn.

use crate::measure::{Pair, in_turns, mean_us};
use crate::report::{Bar, Row};
use agent_host_tests::{Setup, World};
use anyhow::ensure;
use domain::artifact::ArtifactItem;
use domain::basis::Peer;
use domain::sections::{Known, SystemBlocks};
use domain::talk;
use domain::tool::{EffectClass, ToolDefinition};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// Tools, peers and items of a prompt of much.
const TOOLS: usize = 200;
const PEERS: usize = 50;
const ITEMS: usize = 1_000;
/// Prompts of one measurement.
const PROMPTS: u32 = 50;
/// The bar for making one, in microseconds.
const MAKING_US: f64 = 2_000.0;
/// Turns of one measurement.
const TURNS: u32 = 40;
/// The agent whose prompts have sections, and the one whose prompts have none.
const WITH: &str = "with";
const WITHOUT: &str = "without";
/// Time limit of a turn.
const TURN: Duration = Duration::from_secs(20);

pub(crate) async fn run() -> anyhow::Result<Vec<Row>> {
    let making = Much::new().make().await?;
    let world = world().await;
    let turns = in_turns(
        async || talk(&world, WITH).await,
        async || talk(&world, WITHOUT).await,
    )
    .await?;
    world.broker.shutdown(Duration::ZERO).await;
    Ok(vec![
        Row::new(
            format!("prompt of {TOOLS} tools, {PEERS} peers, {ITEMS} items / 2 ms"),
            "µs",
            Pair {
                ours: making,
                peer: MAKING_US,
            },
            Bar::AtMost(MAKING_US),
        ),
        Row::new(
            "turn whose prompt has sections / without",
            "µs",
            turns,
            Bar::Within(1.1),
        ),
    ])
}

/// All that a large prompt tells of.
struct Much {
    tools: Vec<ToolDefinition>,
    peers: Vec<Peer>,
    items: Vec<ArtifactItem>,
}

impl Much {
    fn new() -> Self {
        let others = (1..TOOLS).map(|index| tool(&format!("tool_{index}")));
        Self {
            tools: std::iter::once(tool(talk::MESSAGE)).chain(others).collect(),
            peers: (0..PEERS).map(peer).collect(),
            items: (0..ITEMS).map(item).collect(),
        }
    }

    /// Makes prompts of it; the microseconds of one.
    async fn make(&self) -> anyhow::Result<f64> {
        let tools: Vec<&ToolDefinition> = self.tools.iter().collect();
        let peers: Vec<&Peer> = self.peers.iter().collect();
        let known = Known {
            tools: &tools,
            skills: &[],
            has_artifacts: true,
            items: &self.items,
            panels: None,
            peers: &peers,
            off: &BTreeSet::new(),
        };
        mean_us(PROMPTS, async || {
            let sections = known.sections();
            let stored = serde_json::to_vec(&sections)?;
            let blocks = SystemBlocks::default().followed_by(&sections);
            ensure!(
                stored.len() > ITEMS && blocks.texts.len() == 2,
                "the prompt is not whole"
            );
            Ok(())
        })
        .await
    }
}

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: "Does one thing of many, as its name says. Never anything else.".to_owned(),
        arguments: json!({ "type": "object" }),
        results: None,
        capabilities: Vec::new(),
        effect: EffectClass::ReadOnly,
        destructive: false,
        time_limit_ms: None,
    }
}

fn peer(index: usize) -> Peer {
    Peer {
        id: format!("agent-{index}"),
        name: format!("Agent {index}"),
        description: "Does one kind of work, as its name says".to_owned(),
    }
}

fn item(index: usize) -> ArtifactItem {
    ArtifactItem {
        item_type: format!("kind-{}", index / 100),
        id: index.to_string(),
        name: format!("A thing that somebody keeps, number {index}"),
    }
}

/// A host with two agents that differ in their prompts alone, and with their peers.
async fn world() -> World {
    let others = (0..PEERS).map(|index| {
        json!({
            "agentId": format!("agent-{index}"), "displayName": format!("Agent {index}"),
            "description": "Does one kind of work", "toolAllowlist": [],
        })
    });
    let off = [
        "tools",
        "skills",
        "artifactItems",
        "messageContext",
        "artifactsPanels",
        "availableAgents",
    ];
    let measured = [
        json!({ "agentId": WITH, "displayName": "With" }),
        json!({ "agentId": WITHOUT, "displayName": "Without", "promptSectionsOff": off }),
    ];
    World::new(Setup {
        components: vec!["assistant", "files"],
        definitions: measured.into_iter().chain(others).collect(),
        ..Setup::default()
    })
    .await
}

/// Microseconds of a turn, from the message to the stored reply.
async fn talk(world: &World, agent: &str) -> anyhow::Result<f64> {
    let session = world.open(agent).await;
    mean_us(TURNS, async || {
        let receipt = world.say(agent, session, "hello").await;
        let became = world.broker.await_reply(receipt.input, TURN).await?;
        ensure!(became.is_some(), "no reply in time");
        Ok(())
    })
    .await
}
